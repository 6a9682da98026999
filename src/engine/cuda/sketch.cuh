/* The order of points that are joined all with all, in which those close to each other share tiles; and boxes
 * around the tiles. By sketches (index/sketch.h): sorted by the first dimension of the sketch and cut into
 * slabs, each of which is sorted by the second one, and so on. */
#ifndef KITH_ENGINE_CUDA_SKETCH_CUH
#define KITH_ENGINE_CUDA_SKETCH_CUH

#include "engine/cuda/index.cuh"
#include "index/sketch.h"

namespace kith_cuda {

/* Points in that order: an index without cells. */
struct sketched_points {
  cell_index index;
  buffer<float> low, high; /* [tile][dimension of the sketch]: boxes around tiles */
};

sketched_points order_by_sketch(kith_cuda_session &session, const view &points, uint64_t invalid_rows,
                                const kith_sketch &sketch, bool as_f64, uint32_t tile);

/* How many slabs each dimension of the sketch is cut into. */
uint32_t count_slabs(uint64_t n_tiles, uint32_t dims);

} // namespace kith_cuda
#endif
