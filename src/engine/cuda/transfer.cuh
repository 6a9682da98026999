/* Copies between host and device memory at the speed of the bus.
 *
 * The driver copies ordinary (pageable) memory through a buffer of its own, on one thread, at a fraction of
 * what the bus can do. Here several threads, on a few streams, each own some pinned buffers: while one crosses
 * the bus, the thread empties (or fills) another. The buffers belong to the session and are made once. */
#ifndef KITH_ENGINE_CUDA_TRANSFER_CUH
#define KITH_ENGINE_CUDA_TRANSFER_CUH

#include "engine/cuda/device.cuh"

#include <functional>
#include <vector>

namespace kith_cuda {

/* The work queued on the session's stream is waited for first. */
void copy_to_host(kith_cuda_session &session, void *to, const void *from, uint64_t bytes);

/* Several at once, once an event has happened, whatever else is on the stream. */
struct host_copy {
  void *to;
  const void *from;
  uint64_t bytes;
};
void copy_to_host_after(kith_cuda_session &session, cudaEvent_t event, const std::vector<host_copy> &copies);

/* What is complete on the device, in pieces of at most so many bytes (2 MiB): put(at, piece, bytes) is called,
 * on several threads, with pieces that begin `at` bytes from the beginning, in any order; what it writes past
 * the caches (base/bypass.h) is then made sure to be seen by others. The session's stream is not waited for. */
using put_piece = std::function<void(uint64_t at, const char *piece, uint64_t bytes)>;
enum { KITH_CUDA_PIECE_BYTES = 2 << 20 };
void copy_pieces_to_host(kith_cuda_session &session, const void *from, uint64_t bytes, uint64_t piece_bytes,
                         const put_piece &put);

/* Rows of `width` contiguous bytes, `stride` bytes apart in host memory, packed on the device. Complete when it
 * returns. */
void copy_rows_to_device(kith_cuda_session &session, void *to, const kith_points &from);

/* Pinned memory of the session that stays until more is asked for: allocating it takes longer than small joins.
 */
void *pinned_room(kith_cuda_session &session, uint64_t bytes);

/* Asks the system to run this thread soon after it wakes, for short turns: it waits for a GPU most of the time,
 * while threads that compute keep all processors busy. The threads of the transfers do that themselves. */
void ask_for_short_turns();

void destroy_ring(kith_cuda_session &session);

} // namespace kith_cuda
#endif
