/* Candidates of which float32 does not know whether they belong: 32 of them at a time, by the definition. Not
 * inlined: it is rare, and large. */
#ifndef KITH_ENGINE_CUDA_SETTLE_CUH
#define KITH_ENGINE_CUDA_SETTLE_CUH

#include "engine/cuda/join_args.cuh"

namespace kith_cuda {

/* Their masks: bit b for candidate b. */
template <typename T, typename LIMIT>
__device__ __noinline__ uint32_t settle(const T *query, const T *candidates, const uint32_t *positions,
                                        uint32_t n, uint32_t dim, LIMIT limit) {
  uint32_t mask = 0;
  for (uint32_t b = 0; b < n; b++)
    if (belongs(query, candidates + (uint64_t)positions[b] * dim, dim, limit))
      mask |= 1U << b;
  return mask;
}

static __device__ const kith_shift UNMOVED{};

/* Whether the candidate at a position belongs to a query, in any space. */
template <typename T>
__device__ bool is_pair_in_space(const T *query, uint32_t position, const join_args &args, double limit) {
  const image_args &images = args.space.images;
  const T *candidates = (const T *)args.c_coords;
  if (!images.list)
    return belongs_in_space(query, candidates + (uint64_t)position * args.dim, args, limit, UNMOVED);
  image found = images.list[position];
  return belongs_in_space(query, candidates + (uint64_t)found.source * args.dim, args, limit,
                          images.shifts[found.shift]);
}

/* The masks of 32 candidates in any space. */
template <typename T>
__device__ __noinline__ uint32_t settle_in_space(const T *query, const uint32_t *positions, uint32_t n,
                                                 const join_args &args, double limit) {
  uint32_t mask = 0;
  for (uint32_t b = 0; b < n; b++)
    if (is_pair_in_space(query, positions[b], args, limit))
      mask |= 1U << b;
  return mask;
}

/* The masks of 32 candidates in a periodic box that the grid wraps around. */
template <typename T>
__device__ __noinline__ uint32_t settle_folded(const T *query, const uint32_t *positions, uint32_t n,
                                               const join_args &args) {
  const T *candidates = (const T *)args.c_coords;
  uint32_t mask = 0;
  for (uint32_t b = 0; b < n; b++)
    if (belongs_folded(query, candidates + (uint64_t)positions[b] * args.dim, args))
      mask |= 1U << b;
  return mask;
}

} // namespace kith_cuda
#endif
