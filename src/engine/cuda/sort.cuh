/* Sorting keys of a grid. */
#ifndef KITH_ENGINE_CUDA_SORT_CUH
#define KITH_ENGINE_CUDA_SORT_CUH

#include "engine/cuda/device.cuh"

#include <cub/cub.cuh>

#include <algorithm>

namespace kith_cuda {

/* Sorts n keys of so many bits, and values with them; equal keys stay in their order. */
template <typename K, typename V>
void sort_pairs(kith_cuda_session &session, int bits, uint64_t n, const K *keys, K *sorted_keys,
                const V *values, V *sorted_values) {
  bits = std::min(std::max(bits, 1), (int)sizeof(K) * 8);
  size_t bytes = 0;
  auto sort = [&](void *room) {
    check(cub::DeviceRadixSort::SortPairs(room, bytes, keys, sorted_keys, values, sorted_values, (int64_t)n, 0,
                                          bits, session.stream),
          "sort");
  };
  sort(nullptr);
  auto room = session.make<char>(bytes, "sorting");
  sort(room.get());
}

} // namespace kith_cuda
#endif
