/* Launching join_tile: from run-time choices to template arguments. */
#ifndef KITH_ENGINE_CUDA_JOIN_LAUNCH_CUH
#define KITH_ENGINE_CUDA_JOIN_LAUNCH_CUH

#include "engine/cuda/join_tile.cuh"

namespace kith_cuda {

template <int D, typename T, int G, space_kind KIND>
void launch_operation(const join_args &args, operation op, cudaStream_t stream) {
  constexpr operation COLLECT_OR_COUNT = collects(D ? D : 9) ? COLLECT : DEGREES;
  constexpr int G_TO_COUNT = counts_in_small_tiles(D) ? G : 32;
  unsigned blocks = blocks_for(args.n_tiles, WARPS);
  if (blocks == 0)
    return;
  if (op == COUNT)
    join_tile<D, T, G_TO_COUNT, COUNT, KIND><<<blocks, 32 * WARPS, 0, stream>>>(args);
  else if (op == DEGREES)
    join_tile<D, T, G, DEGREES, KIND><<<blocks, 32 * WARPS, 0, stream>>>(args);
  else if (op == COLLECT)
    join_tile<D, T, G, COLLECT_OR_COUNT, KIND><<<blocks, 32 * WARPS, 0, stream>>>(args);
  else
    join_tile<D, T, G, FILL, KIND><<<blocks, 32 * WARPS, 0, stream>>>(args);
  check_launch("join_tile");
}

template <int D, space_kind KIND>
void launch_join(const join_args &args, operation op, bool is_f64, uint32_t tile_queries, cudaStream_t stream) {
  constexpr int SMALL = KIND == ANY_SPACE ? 32 : small_tile(D);
  if (is_f64 && tile_queries == SMALL)
    launch_operation<D, double, SMALL, KIND>(args, op, stream);
  else if (is_f64)
    launch_operation<D, double, 32, KIND>(args, op, stream);
  else if (tile_queries == SMALL)
    launch_operation<D, float, SMALL, KIND>(args, op, stream);
  else
    launch_operation<D, float, 32, KIND>(args, op, stream);
}

} // namespace kith_cuda
#endif
