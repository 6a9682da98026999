/* A slower GPU, for experiments: streams that may use only some of its multiprocessors. */
#ifndef KITH_ENGINE_CUDA_THROTTLE_CUH
#define KITH_ENGINE_CUDA_THROTTLE_CUH

#include "engine/cuda/device.cuh"

namespace kith_cuda {

/* The stream of a session: with the multiprocessors that the environment variable KITH_CUDA_SMS asks for (the
 * hardware may give a few more), or all if it is not set. */
void create_stream(kith_cuda_session &session);

} // namespace kith_cuda
#endif
