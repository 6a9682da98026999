/* Places of points: see places.cuh. Compiled without fused operations, so that all bits are those of the CPU.
 */
#include "engine/cuda/places.cuh"

#include "engine/cuda/algorithms.cuh"
#include "space/embed.h"

namespace kith_cuda {

namespace {

/* A thread a row. */
__global__ void embed_rows(const __grid_constant__ view points, bool on_sphere, uint32_t dim, double *to,
                           unsigned long long *faults) {
  uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= points.n)
    return;
  double *x = to + row * dim;
  for (uint32_t c = 0; c < points.dim; c++)
    x[c] = points.get(row, c);
  kith_row_fault fault = KITH_ROW_NOT_FINITE;
  if (kith_row_is_finite(x, points.dim))
    fault = on_sphere ? kith_embed_place(x) : kith_embed_direction(x, dim);
  if (fault == KITH_ROW_FITS)
    return;
  atomicAdd(faults, 1ULL);
  for (uint32_t c = 0; c < dim; c++)
    x[c] = NAN;
}

} // namespace

view find_places(kith_cuda_session &session, const kith_cuda_spec &spec, const view &points,
                 buffer<char> &room) {
  if (!spec.finds_places)
    return points;
  bool on_sphere = spec.metric == KITH_HAVERSINE;
  uint32_t dim = on_sphere ? 3 : points.dim;
  view placed{nullptr, points.n, dim, true, (int64_t)(dim * sizeof(double)), sizeof(double)};
  if (points.n == 0)
    return placed;
  auto places = session.make<char>(points.n * dim * sizeof(double), "the places of the points");
  auto faults = session.make<unsigned long long>(1, "a number");
  check(cudaMemsetAsync(faults.get(), 0, sizeof(unsigned long long), session.stream), "places");
  embed_rows<<<blocks_for(points.n, THREADS), THREADS, 0, session.stream>>>(
      points, on_sphere, dim, (double *)places.get(), faults.get());
  check_launch("places");
  unsigned long long n_faults = read_value(session, faults.get(), "places");
  if (n_faults > 0 && !spec.skip_invalid)
    fail(KITH_ERR_POINTS, std::to_string(n_faults) +
                              " rows have no place in this space: their values are not finite, all zeros, or "
                              "latitudes beyond 90 degrees; remove such rows, or skip them");
  room = std::move(places);
  placed.data = room.get();
  return placed;
}

} // namespace kith_cuda
