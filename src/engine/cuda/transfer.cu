/* Transfers: see transfer.cuh. */
#include "engine/cuda/transfer.cuh"

#include "base/bypass.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace {

/* Measured on an H200: with two buffers a thread the bus waits for threads (40 of 55 GB/s), with four it does
 * not (52 GB/s), and eight threads are as fast as sixteen. */
enum { BUFFERS = 4, MAX_THREADS = 8 };

/* A device has 8 queues for the streams of a process, if nobody asks for more, and streams that share one wait
 * for each other: with a stream for every thread, copies waited for kernels that they have nothing to do with.
 */
enum { STREAMS = 3 };
constexpr uint64_t BUFFER_BYTES = kith_cuda::KITH_CUDA_PIECE_BYTES;
constexpr uint64_t SMALL = 1 << 20; /* what the driver copies fast enough */

} // namespace

/* Linux 6.12 and later: a thread that asks for shorter turns than the others may take its turn before theirs
 * are over. Older ones do nothing, and it works without. */
void kith_cuda::ask_for_short_turns() {
#if defined(SYS_sched_getattr) && defined(SYS_sched_setattr)
  struct { /* as the system has it, in its first version */
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t turn, deadline, period;
  } own{};
  static_assert(sizeof own == 48);
  constexpr uint64_t NANOSECONDS = 200000;
  if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) != 0)
    return;
  own.turn = NANOSECONDS;
  syscall(SYS_sched_setattr, 0, &own, 0);
#endif
}

/* The buffers of one thread, and the stream that it shares with some others. */
struct kith_cuda_lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t done[BUFFERS] = {};
  char *buffer[BUFFERS] = {};
};

/* Threads that wait for something to do. */
class worker_team {
public:
  /* Of n threads, the caller's among them; fewer, if the system refuses some. */
  explicit worker_team(size_t n) {
    try {
      for (size_t i = 1; i < n; i++)
        threads_.emplace_back([this, i] { work(i); });
    } catch (const std::system_error &) {
    }
  }
  size_t size() const { return threads_.size() + 1; }
  ~worker_team() {
    {
      std::lock_guard<std::mutex> hold(lock_);
      over_ = true;
    }
    changed_.notify_all();
    for (std::thread &thread : threads_)
      thread.join();
  }
  /* Runs job(0) on the caller's thread, and job(i), i below n, on those that come while that goes on: where all
   * processors are busy, waiting for a thread takes longer than doing without. */
  void run(size_t n, const std::function<void(size_t)> &job) {
    {
      std::lock_guard<std::mutex> hold(lock_);
      job_ = &job;
      wanted_ = n;
      turn_++;
    }
    changed_.notify_all();
    job(0);
    std::unique_lock<std::mutex> hold(lock_);
    job_ = nullptr;
    done_.wait(hold, [this] { return busy_ == 0; });
  }

private:
  void work(size_t number) {
    kith_cuda::ask_for_short_turns();
    uint64_t seen = 0;
    std::unique_lock<std::mutex> hold(lock_);
    for (;;) {
      changed_.wait(hold, [&] { return over_ || (job_ && turn_ != seen); });
      if (over_)
        return;
      seen = turn_;
      if (number >= wanted_)
        continue;
      const std::function<void(size_t)> &job = *job_;
      busy_++;
      hold.unlock();
      job(number);
      hold.lock();
      if (--busy_ == 0)
        done_.notify_one();
    }
  }

  std::vector<std::thread> threads_;
  std::mutex lock_;
  std::condition_variable changed_, done_;
  const std::function<void(size_t)> *job_ = nullptr;
  size_t wanted_ = 0;
  size_t busy_ = 0; /* threads with the job, beside the caller's */
  uint64_t turn_ = 0;
  bool over_ = false;
};

struct kith_cuda_ring {
  cudaStream_t streams[STREAMS] = {};
  std::vector<kith_cuda_lane> lanes;
  std::unique_ptr<worker_team> team;
  cudaEvent_t ready = nullptr; /* what the session's stream has done before a transfer */
  void *room = nullptr;        /* pinned_room */
  uint64_t room_bytes = 0;

  kith_cuda_ring() = default;
  kith_cuda_ring(const kith_cuda_ring &) = delete;
  ~kith_cuda_ring() {
    for (kith_cuda_lane &lane : lanes) {
      for (int i = 0; i < BUFFERS; i++) {
        cudaFreeHost(lane.buffer[i]);
        if (lane.done[i])
          cudaEventDestroy(lane.done[i]);
      }
    }
    for (cudaStream_t stream : streams)
      if (stream)
        cudaStreamDestroy(stream);
    if (ready)
      cudaEventDestroy(ready);
    cudaFreeHost(room);
  }
};

namespace kith_cuda {

namespace {

kith_cuda_ring &ring_of(kith_cuda_session &session) {
  if (session.ring)
    return *session.ring;
  auto made = std::make_unique<kith_cuda_ring>(); /* the session has it once it is complete */
  kith_cuda_ring &ring = *made;
  check(cudaEventCreateWithFlags(&ring.ready, cudaEventDisableTiming), "event");
  ring.lanes.resize(std::min<uint32_t>(std::max<uint32_t>(session.threads, 1), MAX_THREADS));
  for (cudaStream_t &stream : ring.streams)
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  int number = 0;
  for (kith_cuda_lane &lane : ring.lanes) {
    lane.stream = ring.streams[number++ % STREAMS];
    for (int i = 0; i < BUFFERS; i++) {
      check(cudaEventCreateWithFlags(&lane.done[i], cudaEventDisableTiming), "event");
      check(cudaHostAlloc((void **)&lane.buffer[i], BUFFER_BYTES, cudaHostAllocDefault), "pinned memory");
    }
  }
  ring.team = std::make_unique<worker_team>(ring.lanes.size());
  session.ring = made.release();
  return *session.ring;
}

/* Runs work(lane) on threads of the ring, on one at least: each takes pieces until there are none left. The
 * first failure is thrown on. */
template <typename F> void each_piece(kith_cuda_session &session, uint64_t pieces, F work) {
  kith_cuda_ring &ring = ring_of(session);
  std::atomic<bool> failed{false};
  std::mutex lock;
  failure first{KITH_OK, ""};
  auto note = [&](failure f) {
    std::lock_guard<std::mutex> hold(lock);
    if (!failed)
      first = std::move(f);
    failed = true;
  };
  auto guarded = [&](size_t number) { /* lets nothing through: other threads may have the job */
                                      try {
                                        check(cudaSetDevice(session.device), "device");
                                        work(ring.lanes[number]);
                                      } catch (failure &f) {
                                        note(std::move(f));
                                      } catch (const std::bad_alloc &) {
                                        note(failure{KITH_ERR_MEMORY, ""});
                                      }
  };
  size_t threads = (size_t)std::min<uint64_t>(pieces, ring.team->size());
  if (threads > 1)
    ring.team->run(threads, guarded);
  else if (threads == 1)
    guarded(0);
  if (failed)
    throw first;
}

/* One buffer's worth on its way. */
struct piece {
  const char *from = nullptr;
  char *to = nullptr; /* if it goes there as it is */
  uint64_t bytes = 0;
};

void await(const kith_cuda_session &session, cudaEvent_t event) {
  constexpr const char *WHAT = "copy to the host";
  if (session.patient)
    session.await(event, WHAT, [] {});
  else
    check(cudaEventSynchronize(event), WHAT);
}

/* Pieces number 0 to n - 1, once the event has happened, if there is one: get(number) tells where a piece is,
 * put(piece, buffer) takes what was there. */
template <typename G, typename P>
void copy_pieces(kith_cuda_session &session, uint64_t n, cudaEvent_t after, G get, P put) {
  std::atomic<uint64_t> next{0};
  each_piece(session, n, [&](kith_cuda_lane &lane) {
    if (after)
      check(cudaStreamWaitEvent(lane.stream, after, 0), "event");
    piece pending[BUFFERS];
    auto start = [&](int i) {
      uint64_t number = next.fetch_add(1);
      pending[i].bytes = 0;
      if (number >= n)
        return;
      pending[i] = get(number);
      check(cudaMemcpyAsync(lane.buffer[i], pending[i].from, pending[i].bytes, cudaMemcpyDeviceToHost,
                            lane.stream),
            "copy to the host");
      check(cudaEventRecord(lane.done[i], lane.stream), "event");
    };
    for (int i = 0; i < BUFFERS; i++)
      start(i);
    for (int i = 0; pending[i].bytes; i = (i + 1) % BUFFERS) {
      await(session, lane.done[i]);
      put(pending[i], lane.buffer[i]);
      kith_bypass_end();
      start(i);
    }
  });
}

} // namespace

void copy_to_host(kith_cuda_session &session, void *to, const void *from, uint64_t bytes) {
  if (bytes <= SMALL) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, session.stream), "copy to the host");
    session.wait("copy to the host");
    return;
  }
  cudaEvent_t ready = ring_of(session).ready;
  check(cudaEventRecord(ready, session.stream), "event");
  copy_to_host_after(session, ready, {{to, from, bytes}});
}

void copy_to_host_after(kith_cuda_session &session, cudaEvent_t event, const std::vector<host_copy> &copies) {
  std::vector<piece> pieces;
  for (const host_copy &copy : copies) {
    /* They end where huge pages of their destination do, or two threads would wait for each other to clear one.
     */
    uint64_t end = BUFFER_BYTES - (uint64_t)copy.to % BUFFER_BYTES;
    for (uint64_t at = 0; at < copy.bytes; at = end, end += BUFFER_BYTES)
      pieces.push_back({(const char *)copy.from + at, (char *)copy.to + at, std::min(end, copy.bytes) - at});
  }
  copy_pieces(
      session, pieces.size(), event, [&](uint64_t number) { return pieces[number]; },
      [](const piece &p, const char *buffer) { kith_bypass_copy(p.to, buffer, p.bytes); });
}

void copy_pieces_to_host(kith_cuda_session &session, const void *from, uint64_t bytes, uint64_t piece_bytes,
                         const put_piece &put) {
  copy_pieces(
      session, (bytes + piece_bytes - 1) / piece_bytes, nullptr,
      [&](uint64_t number) {
        uint64_t at = number * piece_bytes;
        return piece{(const char *)from + at, nullptr, std::min(piece_bytes, bytes - at)};
      },
      [&](const piece &p, const char *buffer) {
        put((uint64_t)(p.from - (const char *)from), buffer, p.bytes);
      });
}

namespace {

bool is_packed(const kith_points &p, int64_t width) {
  return p.col_stride == width && p.row_stride == (int64_t)p.dim * width;
}

/* Rows [first, first + n) in C order. */
void pack_rows(const kith_points &p, uint64_t first, uint64_t n, size_t width, char *to) {
  if (is_packed(p, (int64_t)width)) {
    memcpy(to, (const char *)p.data + first * p.dim * width, n * p.dim * width);
    return;
  }
  for (uint64_t i = first; i < first + n; i++)
    for (uint32_t c = 0; c < p.dim; c++, to += width)
      memcpy(to, (const char *)p.data + (int64_t)i * p.row_stride + (int64_t)c * p.col_stride, width);
}

} // namespace

void copy_rows_to_device(kith_cuda_session &session, void *to, const kith_points &from) {
  size_t width = from.dtype == KITH_F64 ? sizeof(double) : sizeof(float);
  uint64_t row_bytes = from.dim * width;
  uint64_t rows = std::max<uint64_t>(std::min(BUFFER_BYTES / row_bytes, from.n / 16 + 1), 1);
  if (row_bytes > BUFFER_BYTES)
    fail(KITH_ERR_UNSUPPORTED, "points of so many dimensions do not fit the buffers of the GPU engine");
  uint64_t pieces = (from.n + rows - 1) / rows;
  std::atomic<uint64_t> next{0};
  session.wait("memory for the points");
  each_piece(session, pieces, [&](kith_cuda_lane &lane) {
    bool used[BUFFERS] = {};
    for (int i = 0;; i = (i + 1) % BUFFERS) {
      uint64_t number = next.fetch_add(1);
      if (number >= pieces)
        break;
      if (used[i])
        check(cudaEventSynchronize(lane.done[i]), "copy to the device");
      used[i] = true;
      uint64_t n = std::min(rows, from.n - number * rows);
      pack_rows(from, number * rows, n, width, lane.buffer[i]);
      check(cudaMemcpyAsync((char *)to + number * rows * row_bytes, lane.buffer[i], n * row_bytes,
                            cudaMemcpyHostToDevice, lane.stream),
            "copy to the device");
      check(cudaEventRecord(lane.done[i], lane.stream), "event");
    }
    check(cudaStreamSynchronize(lane.stream), "copy to the device");
  });
}

void *pinned_room(kith_cuda_session &session, uint64_t bytes) {
  kith_cuda_ring &ring = ring_of(session);
  if (bytes > ring.room_bytes) {
    cudaFreeHost(ring.room);
    ring.room = nullptr;
    ring.room_bytes = 0;
    check(cudaHostAlloc(&ring.room, bytes, cudaHostAllocDefault), "pinned memory");
    ring.room_bytes = bytes;
  }
  return ring.room;
}

void destroy_ring(kith_cuda_session &session) {
  delete session.ring;
  session.ring = nullptr;
}

} // namespace kith_cuda
