/* Copies past the caches, for what is long and not read soon: memory is written in whole lines, without being
 * read first, which takes half of the time or less. What was written that way is seen by other threads only
 * after kith_stream_end. */
#ifndef KITH_BASE_STREAM_H
#define KITH_BASE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Results of so many bytes are in no cache when they are read. */
enum { KITH_STREAM_RESULT = 64 << 20 };

enum { KITH_LINE_BYTES = 64 };

/* A line, to where one begins. */
static inline void kith_stream_line(char *to, const char *from) {
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
static inline void kith_stream_copy(void *to, const void *from, size_t bytes) {
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
    kith_stream_line(out + at, in + at);
  memcpy(out + at, in + at, bytes - at);
}

/* Past the caches, or into them. */
static inline void kith_copy_row(void *to, const void *from, size_t bytes, bool streams) {
  if (streams)
    kith_stream_copy(to, from, bytes);
  else
    memcpy(to, from, bytes);
}

/* It costs as much as a way to memory and back. */
static inline void kith_stream_end(void) {
#ifdef __SSE2__
  _mm_sfence();
#endif
}

#endif
