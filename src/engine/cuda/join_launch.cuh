/* Launching join_tile: from run-time choices to template arguments. */
#ifndef KITH_ENGINE_CUDA_JOIN_LAUNCH_CUH
#define KITH_ENGINE_CUDA_JOIN_LAUNCH_CUH

#include "engine/cuda/join_tile.cuh"

namespace kith_cuda {

template <int D, typename T, int G>
void launch_operation(const join_args &args, operation op, cudaStream_t stream) {
  unsigned blocks = blocks_for(args.n_tiles, WARPS);
  if (blocks == 0)
    return;
  if (op == COUNT)
    join_tile<D, T, G, COUNT><<<blocks, 32 * WARPS, 0, stream>>>(args);
  else if (op == DEGREES)
    join_tile<D, T, G, DEGREES><<<blocks, 32 * WARPS, 0, stream>>>(args);
  else if (op == COLLECT)
    join_tile<D, T, G, collects(D ? D : 9) ? COLLECT : DEGREES><<<blocks, 32 * WARPS, 0, stream>>>(args);
  else
    join_tile<D, T, G, FILL><<<blocks, 32 * WARPS, 0, stream>>>(args);
  check_launch("join_tile");
}

template <int D, typename T>
void launch_general_operation(const join_args &args, operation op, cudaStream_t stream) {
  unsigned blocks = blocks_for(args.n_tiles, WARPS);
  if (blocks == 0)
    return;
  if (op == COUNT)
    join_tile<D, T, 32, COUNT, true><<<blocks, 32 * WARPS, 0, stream>>>(args);
  else if (op == DEGREES)
    join_tile<D, T, 32, DEGREES, true><<<blocks, 32 * WARPS, 0, stream>>>(args);
  else if (op == COLLECT)
    join_tile<D, T, 32, collects(D ? D : 9) ? COLLECT : DEGREES, true><<<blocks, 32 * WARPS, 0, stream>>>(args);
  else
    join_tile<D, T, 32, FILL, true><<<blocks, 32 * WARPS, 0, stream>>>(args);
  check_launch("join_tile");
}

template <int D> void launch_general(const join_args &args, operation op, bool is_f64, cudaStream_t stream) {
  if (is_f64)
    launch_general_operation<D, double>(args, op, stream);
  else
    launch_general_operation<D, float>(args, op, stream);
}

template <int D>
void launch_join(const join_args &args, operation op, bool is_f64, uint32_t tile_queries, cudaStream_t stream) {
  constexpr int SMALL = small_tile(D);
  if (is_f64 && tile_queries == SMALL)
    launch_operation<D, double, SMALL>(args, op, stream);
  else if (is_f64)
    launch_operation<D, double, 32>(args, op, stream);
  else if (tile_queries == SMALL)
    launch_operation<D, float, SMALL>(args, op, stream);
  else
    launch_operation<D, float, 32>(args, op, stream);
}

} // namespace kith_cuda
#endif
