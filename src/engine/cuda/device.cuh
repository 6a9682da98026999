/* The device: errors, memory and the stream of a session.
 *
 * Inside libkith_cuda.so failures are exceptions of type kith_cuda::failure; api.cu turns them into statuses.
 * Device memory comes from the driver's stream-ordered pool, which keeps what was released, so that a warm call
 * allocates in microseconds. All of it is counted, so that a cap on device memory can be honoured. */
#ifndef KITH_ENGINE_CUDA_DEVICE_CUH
#define KITH_ENGINE_CUDA_DEVICE_CUH

#include "engine/cuda/api.h"

#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

namespace kith_cuda {

struct failure {
  kith_status status;
  std::string text;
};

[[noreturn]] inline void fail(kith_status status, const std::string &text) { throw failure{status, text}; }

/* The device has no room: the caller may try with less. */
[[noreturn]] inline void fail_memory(uint64_t bytes, const char *what) {
  char text[256];
  snprintf(text, sizeof text, "the GPU has no room for %.1f MiB (%s); allow more device memory, or use the CPU",
           (double)bytes / (1 << 20), what);
  fail(KITH_ERR_BUDGET, text);
}

inline void check(cudaError_t error, const char *what) {
  if (error == cudaSuccess)
    return;
  cudaGetLastError(); /* not sticky errors are forgotten */
  kith_status status = error == cudaErrorMemoryAllocation ? KITH_ERR_MEMORY : KITH_ERR_UNSUPPORTED;
  fail(status, std::string("the GPU failed (") + what + "): " + cudaGetErrorString(error));
}

/* After a kernel launch. */
inline void check_launch(const char *what) { check(cudaGetLastError(), what); }

/* Counts the device memory of a session. */
struct memory_count {
  uint64_t limit = 0, used = 0, peak = 0;
};

/* n values of type T on the device, released in stream order. */
template <typename T> class buffer {
public:
  buffer() = default;
  buffer(memory_count &count, cudaStream_t stream, uint64_t n, const char *what)
      : count_(&count), stream_(stream), n_(n), bytes_(n * sizeof(T)) {
    if (bytes_ == 0)
      return;
    if (count.used + bytes_ > count.limit)
      fail_memory(bytes_, what);
    cudaError_t error = cudaMallocAsync(&data_, bytes_, stream);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      data_ = nullptr;
      fail_memory(bytes_, what);
    }
    check(error, what);
    count.used += bytes_;
    count.peak = count.used > count.peak ? count.used : count.peak;
  }
  buffer(buffer &&other) noexcept { swap(other); }
  buffer &operator=(buffer &&other) noexcept {
    swap(other);
    return *this;
  }
  ~buffer() {
    if (data_) {
      cudaFreeAsync(data_, stream_);
      count_->used -= bytes_;
    }
  }
  T *get() const { return static_cast<T *>(data_); }
  uint64_t size() const { return n_; }
  /* Gives the memory away: the new owner releases it. */
  T *release() {
    T *data = get();
    if (data_)
      count_->used -= bytes_;
    data_ = nullptr;
    return data;
  }
  void reset() { *this = buffer(); }

private:
  void swap(buffer &other) {
    std::swap(count_, other.count_);
    std::swap(stream_, other.stream_);
    std::swap(data_, other.data_);
    std::swap(n_, other.n_);
    std::swap(bytes_, other.bytes_);
  }
  memory_count *count_ = nullptr;
  cudaStream_t stream_ = nullptr;
  void *data_ = nullptr;
  uint64_t n_ = 0, bytes_ = 0;
};

constexpr unsigned THREADS = 256; /* of a block, in kernels with a thread an item */

inline double seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

inline unsigned blocks_for(uint64_t items, unsigned per_block) {
  return (unsigned)((items + per_block - 1) / per_block);
}

} // namespace kith_cuda

/* How the pinned block of a session begins. */
struct kith_cuda_numbers {
  alignas(8) char value[64];  /* that somebody reads and waits for */
  uint32_t cells[2], rows[2]; /* of the indexes of a join */
};

/* One GPU of one context. */
struct kith_cuda_session {
  int device = 0;
  int multiprocessors = 0;
  cudaStream_t stream = nullptr;
  cudaStream_t side = nullptr; /* for a request to stop, past the work on the stream */
  cudaEvent_t event = nullptr;
  kith_cuda::memory_count memory;
  uint32_t threads = 1;
  void *pinned = nullptr; /* a small block for numbers that the host waits for */
  struct kith_cuda_ring *ring = nullptr;
  bool patient = false; /* the CPU works on the join too, and has better to do than to wait with attention */

  kith_cuda_numbers &numbers() const { return *(kith_cuda_numbers *)pinned; }
  template <typename T> kith_cuda::buffer<T> make(uint64_t n, const char *what) {
    return kith_cuda::buffer<T>(memory, stream, n, what);
  }
  void wait(const char *what) { kith_cuda::check(cudaStreamSynchronize(stream), what); }
  /* Waits for an event, and calls `meanwhile` again and again. */
  template <typename F> void await(cudaEvent_t event, const char *what, F meanwhile) const {
    constexpr int SHORT_WAIT = 64; /* questions, before it is worth to sleep */
    cudaError_t state;
    for (int asked = 0; (state = cudaEventQuery(event)) == cudaErrorNotReady; asked++) {
      meanwhile();
      if (patient && asked > SHORT_WAIT)
        std::this_thread::sleep_for(std::chrono::microseconds(10));
    }
    kith_cuda::check(state, what);
  }
};

enum { KITH_CUDA_PINNED_BYTES = 1 << 20 };

#endif
