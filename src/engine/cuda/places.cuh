/* Where the points of embedded metrics lie (space/embed.h), found on the device. */
#ifndef KITH_ENGINE_CUDA_PLACES_CUH
#define KITH_ENGINE_CUDA_PLACES_CUH

#include "engine/cuda/index.cuh"

namespace kith_cuda {

/* The points as unit vectors, if the spec asks for it, in `room`; rows that have no place are NaN if they are
 * to be skipped, and else refused, in general terms: who has the points in host memory can say more. */
view find_places(kith_cuda_session &session, const kith_cuda_spec &spec, const view &points,
                 buffer<char> &room);

} // namespace kith_cuda
#endif
