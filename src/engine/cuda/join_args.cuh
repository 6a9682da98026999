/* What every kernel of a join is given, and what it may share with the others. */
#ifndef KITH_ENGINE_CUDA_JOIN_ARGS_CUH
#define KITH_ENGINE_CUDA_JOIN_ARGS_CUH

#include "engine/cuda/space.cuh"

namespace kith_cuda {

constexpr unsigned ALL_LANES = 0xFFFFFFFFU;

/* COLLECT finds degrees and keeps the pairs it meets, in the order in which it meets them, in a pool: where
 * tests are many and pairs are few, moving pairs is cheaper than testing twice. */
enum operation { COUNT, DEGREES, COLLECT, FILL };

struct tally {
  unsigned long long pairs, tested, inside;
};

/* What a pass adds up. */
struct totals {
  tally found;
  unsigned long long records; /* COLLECT: in the pool, or what there would be in a larger one */
};

/* Some neighbours of a row: those from place `at` on; NO_ID where there are no more. */
struct alignas(16) record {
  static constexpr int IDS = 14;
  static constexpr uint32_t NO_ID = UINT32_MAX; /* a set has fewer points than that */
  uint32_t row, at;
  uint32_t ids[IDS];
};

struct pool {
  record *records;
  unsigned long long capacity;
  unsigned long long *used; /* more than the capacity: the records are not complete */
};

struct join_args {
  /* queries */
  const void *q_coords;
  const uint32_t *q_ids;
  key_list q_keys;
  const uint32_t *tile_begin;
  const uint32_t *tile_list; /* the tiles to take; NULL: all, in their order */
  uint32_t n_tiles;          /* in the list */
  /* candidates */
  const void *c_coords;
  const uint32_t *c_ids;
  finder find;
  /* the question */
  kith_grid grid;
  const kith_grid *grid_in_memory; /* the same, if it wraps around, for lanes that look at a dimension each */
  const kith_step *steps;
  uint32_t n_steps, own_step;
  kith_predicate predicate;
  uint32_t dim;   /* where D is 0, */
  double give_up; /* and a sum that is too large to go on with */
  bool one_set, half, drop_self;
  /* the answer */
  tally *total;
  uint32_t *degrees;       /* by id */
  const uint64_t *offsets; /* by id */
  uint64_t base;           /* the offset of what goes to the first of */
  uint32_t *neighbors;
  uint64_t first_row, end_row;
  uint8_t *doubtful; /* per tile: some test came within the band. Written by DEGREES, read by FILL */
  struct pool pool;  /* COLLECT */
  const int *stop;
  space_args space; /* kernels that know of one */
};

/* Whether a candidate belongs to a query, by the definition. Not inlined: it is rare, and large. */
template <typename T>
__device__ __noinline__ bool belongs(const T *query, const T *candidate, uint32_t dim, double eps2) {
  double d2 = 0;
  for (uint32_t c = 0; c < dim; c++) {
    double t = __dsub_rn((double)query[c], (double)candidate[c]);
    d2 = __dadd_rn(d2, __dmul_rn(t, t));
  }
  return d2 <= eps2;
}

/* The same in many dimensions: sums never fall, so one above give_up, which is the limit or infinite, may end
 * it (SHORTC). */
struct early_limit {
  double eps2, give_up;
};

template <typename T>
__device__ __noinline__ bool belongs(const T *query, const T *candidate, uint32_t dim, early_limit limit) {
  constexpr uint32_t BETWEEN_CHECKS = 8;
  double d2 = 0;
  for (uint32_t c = 0; c < dim;) {
    for (uint32_t stop = min(c + BETWEEN_CHECKS, dim); c < stop; c++) {
      double t = __dsub_rn((double)query[c], (double)candidate[c]);
      d2 = __dadd_rn(d2, __dmul_rn(t, t));
    }
    if (d2 > limit.give_up)
      return false;
  }
  return d2 <= limit.eps2;
}

/* The same in any space; the candidate is in the image of a shift. */
template <typename T>
__device__ __noinline__ bool belongs_in_space(const T *query, const T *candidate, const join_args &args,
                                              double limit, const kith_shift &shift) {
  const space_args &space = args.space;
  double size = size_of(query, candidate, args.dim, args.predicate.norm, space.lattice, shift);
  if (!(size <= limit))
    return false;
  return !space.ties || size <= space.doubt ||
         is_nearest(query, candidate, args.dim, args.predicate, space.lattice, shift);
}

/* The same in a periodic box that the grid wraps around, in the nearest image. */
template <typename T>
__device__ __noinline__ bool belongs_folded(const T *query, const T *candidate, const join_args &args) {
  double d2 = 0;
  for (uint32_t c = 0; c < args.dim; c++) {
    double t = __dsub_rn((double)query[c], (double)candidate[c]);
    if (args.space.period[c] > 0)
      t = kith_fold(t, args.space.period[c]);
    d2 = __dadd_rn(d2, __dmul_rn(t, t));
  }
  return d2 <= args.predicate.limit;
}

__device__ inline uint64_t sum_over_warp(uint64_t value) {
  for (int step = 16; step; step /= 2)
    value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

} // namespace kith_cuda
#endif
