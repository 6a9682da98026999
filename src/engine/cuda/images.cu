/* Which tiles meet images at all: see images.cuh. */
#include "engine/cuda/images.cuh"

namespace kith_cuda {

namespace {

/* A warp a tile. */
template <typename T>
__global__ void find_border(const T *coords, const uint32_t *tile_begin, uint32_t n_tiles, uint32_t dim,
                            const __grid_constant__ kith_lattice lattice, double reach, uint32_t *border,
                            uint32_t *count) {
  uint32_t tile = (uint32_t)(((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32);
  uint32_t lane = threadIdx.x % 32;
  if (tile >= n_tiles)
    return;
  uint32_t begin = tile_begin[tile];
  uint32_t end = tile_begin[tile + 1];
  const T *point = coords + (uint64_t)(begin + lane < end ? begin + lane : begin) * dim;
  bool interior = true;
  for (uint32_t i = 0; i < lattice.n; i++) {
    double low;
    double high;
    bound_lanes((double)point[lattice.axis[i]], low, high);
    interior = interior && kith_lattice_is_interior(&lattice, i, low, high, reach);
  }
  if (lane == 0 && !interior)
    border[atomicAdd(count, 1U)] = tile;
}

} // namespace

tiles find_border_tiles(kith_cuda_session &session, const tiles &all, const cell_index &index, bool is_f64,
                        const kith_cuda_spec &spec) {
  tiles border;
  if (all.n == 0)
    return border;
  border.begin = session.make<uint32_t>(all.n, "tiles");
  auto count = session.make<uint32_t>(1, "a number");
  check(cudaMemsetAsync(count.get(), 0, sizeof(uint32_t), session.stream), "tiles");
  unsigned blocks = blocks_for((uint64_t)all.n * 32, THREADS);
  uint32_t dim = spec.a.dim;
  if (is_f64)
    find_border<<<blocks, THREADS, 0, session.stream>>>((const double *)index.coords.get(), all.begin.get(),
                                                        all.n, dim, spec.lattice, spec.predicate.reach,
                                                        border.begin.get(), count.get());
  else
    find_border<<<blocks, THREADS, 0, session.stream>>>((const float *)index.coords.get(), all.begin.get(),
                                                        all.n, dim, spec.lattice, spec.predicate.reach,
                                                        border.begin.get(), count.get());
  check_launch("tiles");
  uint32_t *counted = (uint32_t *)session.pinned;
  check(cudaMemcpyAsync(counted, count.get(), sizeof *counted, cudaMemcpyDeviceToHost, session.stream),
        "tiles");
  session.wait("tiles");
  border.n = *counted;
  return border;
}

} // namespace kith_cuda
