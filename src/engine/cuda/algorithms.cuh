/* Sorting, adding up and selecting on the device, with CUB. */
#ifndef KITH_ENGINE_CUDA_ALGORITHMS_CUH
#define KITH_ENGINE_CUDA_ALGORITHMS_CUH

#include "engine/cuda/device.cuh"

#include <cub/cub.cuh>

#include <algorithm>

namespace kith_cuda {

/* Runs an algorithm of CUB: call(room, bytes), without room, says how many bytes it needs. */
template <typename F> void with_room(kith_cuda_session &session, const char *what, F call) {
  size_t bytes = 0;
  check(call(nullptr, bytes), what);
  auto room = session.make<char>(bytes, what);
  check(call(room.get(), bytes), what);
}

/* A copy of n values on the device. */
template <typename T>
buffer<T> upload(kith_cuda_session &session, const T *from, uint64_t n, const char *what) {
  auto to = session.make<T>(n, what);
  check(cudaMemcpyAsync(to.get(), from, n * sizeof(T), cudaMemcpyHostToDevice, session.stream), what);
  return to;
}

/* The bits of numbers below n. */
inline uint32_t ceil_log2(uint64_t n) {
  uint32_t bits = 0;
  while ((UINT64_C(1) << bits) < n)
    bits++;
  return bits;
}

/* A few numbers on the device, once all that is on the stream is done. */
template <typename T> T read_value(kith_cuda_session &session, const T *from, const char *what) {
  static_assert(sizeof(T) <= sizeof session.numbers().value);
  T *value = (T *)session.numbers().value;
  check(cudaMemcpyAsync(value, from, sizeof *value, cudaMemcpyDeviceToHost, session.stream), what);
  session.wait(what);
  return *value;
}

/* Sorts n keys of so many bits, and values with them; equal keys stay in their order. */
template <typename K, typename V>
void sort_pairs(kith_cuda_session &session, int bits, uint64_t n, const K *keys, K *sorted_keys,
                const V *values, V *sorted_values) {
  bits = std::min(std::max(bits, 1), (int)sizeof(K) * 8);
  with_room(session, "sorting", [&](void *room, size_t &bytes) {
    return cub::DeviceRadixSort::SortPairs(room, bytes, keys, sorted_keys, values, sorted_values, (int64_t)n, 0,
                                           bits, session.stream);
  });
}

} // namespace kith_cuda
#endif
