/* Searches in the ascending rows and cells of an index. */
#ifndef KITH_ENGINE_CPU_SEARCH_H
#define KITH_ENGINE_CPU_SEARCH_H

#include <stdint.h>

/* first_*: the first i in [begin, end) with values[i] >= bound, or end. gallop_*: the same, if it is near
 * begin. */
#define DEFINE_SEARCH(WHAT, TYPE)                                                                              \
  static inline uint32_t first_##WHAT(const TYPE *values, uint32_t begin, uint32_t end, uint64_t bound) {      \
    while (begin < end) {                                                                                      \
      uint32_t middle = begin + (end - begin) / 2;                                                             \
      if (values[middle] < bound)                                                                              \
        begin = middle + 1;                                                                                    \
      else                                                                                                     \
        end = middle;                                                                                          \
    }                                                                                                          \
    return begin;                                                                                              \
  }                                                                                                            \
  static inline uint32_t gallop_##WHAT(const TYPE *values, uint32_t begin, uint32_t end, uint64_t bound) {     \
    uint32_t step = 1;                                                                                         \
    while (end - begin > step && values[begin + step] < bound) {                                               \
      begin += step;                                                                                           \
      step *= 2;                                                                                               \
    }                                                                                                          \
    return first_##WHAT(values, begin, end - begin > step ? begin + step : end, bound);                        \
  }
DEFINE_SEARCH(cell, uint32_t)
DEFINE_SEARCH(row, uint64_t)
#undef DEFINE_SEARCH

#endif
