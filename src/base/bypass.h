/* Copies past the caches, for what is long and not read soon: memory is written in whole lines, without being
 * read first, which takes half of the time or less. What was written that way is seen by other threads only
 * after kith_bypass_end. */
#ifndef KITH_BASE_BYPASS_H
#define KITH_BASE_BYPASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { KITH_LINE_BYTES = 64 };

/* Whether it pays for rows of ids: together they are in no cache when they are read, and rows are long enough
 * to be written in whole lines for the most part. */
static inline bool kith_bypass_pays(uint64_t ids, uint64_t rows) {
  enum { LARGE = 64 << 20, LONG_ROW = 96 };
  return ids * sizeof(uint32_t) >= LARGE && ids >= LONG_ROW * rows;
}

/* A line, to where one begins. */
static inline void kith_bypass_line(char *to, const char *from) {
#ifdef __AVX512F__
  _mm512_stream_si512((__m512i *)(void *)to, _mm512_loadu_si512(from));
#elif defined(__SSE2__)
  for (size_t i = 0; i < KITH_LINE_BYTES; i += sizeof(__m128i))
    _mm_stream_si128((__m128i *)(void *)(to + i), _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
#else
  memcpy(to, from, KITH_LINE_BYTES);
#endif
}

/* Short copies are plain ones. */
static inline void kith_bypass_copy(void *to, const void *from, size_t bytes) {
  char *out = (char *)to;
  const char *in = (const char *)from;
  size_t head = -(uintptr_t)out % KITH_LINE_BYTES;
  if (bytes < (size_t)4 * KITH_LINE_BYTES) {
    memcpy(out, in, bytes);
    return;
  }
  memcpy(out, in, head);
  size_t at = head;
  for (; at + KITH_LINE_BYTES <= bytes; at += KITH_LINE_BYTES)
    kith_bypass_line(out + at, in + at);
  memcpy(out + at, in + at, bytes - at);
}

/* Past the caches, or into them. */
static inline void kith_copy_row(void *to, const void *from, size_t bytes, bool bypasses) {
  if (bypasses)
    kith_bypass_copy(to, from, bytes);
  else
    memcpy(to, from, bytes);
}

/* Once a piece of work, not once a row: it costs as much as a way to memory and back. */
static inline void kith_bypass_end(void) {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

#endif
