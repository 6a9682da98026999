/* Whether to join all points with all (dense.cuh), and how points are ordered and narrowed for it. */
#ifndef KITH_ENGINE_CUDA_DENSE_PLAN_CUH
#define KITH_ENGINE_CUDA_DENSE_PLAN_CUH

#include "engine/cuda/api.h"
#include "index/sketch.h"

#include <vector>

namespace kith_cuda {

/* The sketch that points are ordered by (sketch.cuh). */
struct dense_order {
  std::vector<uint32_t> columns;
  std::vector<double> low, high;
  uint32_t split = 1, groups = 0;
  double share = 1; /* of the tiles that a tile meets, expected */

  kith_sketch sketch(kith_norm norm) const {
    return {norm, (uint32_t)columns.size(), columns.data(), low.data(), high.data(), split, groups};
  }
};

/* Norm 2: (x - centre) * scale becomes a half. Norms 1 and max: the nearest whole number within 0 ...
 * last_mark. */
struct dense_plan {
  bool wanted = false;
  dense_order order;
  std::vector<double> center;
  double scale = 1;
  double last_mark = 0;
  bool coded = false;  /* norm 1: and a code beside it (codes.cuh) */
  uint32_t beyond = 0; /* norm max: the bits of a byte that a - b + t has none of, if |a - b| is at most t */
};

/* What is known of the points. */
struct dense_sample {
  const double *rows; /* some of them */
  size_t n;
  const std::vector<double> &min, &max; /* of each column of all */
  const std::vector<uint32_t> &columns; /* those of largest variance first, unless REORDER is off */
  uint64_t n_candidates;
  double grid_tests; /* of a query, if a grid is used instead; expected */
};

dense_plan plan_dense(const kith_cuda_spec &spec, const dense_sample &sample);

} // namespace kith_cuda
#endif
