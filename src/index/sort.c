/* A parallel stable radix sort: most significant digit first, then each bucket on its own.
 *
 * The first pass spreads the items over up to 2048 buckets by their highest bits; the threads share it. A
 * bucket then fits in a cache close to its core, where one thread sorts it by the lower bits, least
 * significant digit first. A bucket that holds a large part of everything (keys far from uniform) is sorted
 * by all threads together instead. O(n * passes). */
#include "index/sort.h"

#include <omp.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };
enum { LARGE_BUCKET = 1 << 16 };

uint64_t kith_sort_counts(uint32_t threads) { return (uint64_t)threads * DIGITS + DIGITS + 1; }

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Turns counts[thread][digit] into start positions. */
static void sum_counts(uint32_t *counts, uint32_t threads) {
  uint32_t sum = 0;
  for (uint32_t digit = 0; digit < DIGITS; digit++)
    for (uint32_t t = 0; t < threads; t++) {
      uint32_t count = counts[t * DIGITS + digit];
      counts[t * DIGITS + digit] = sum;
      sum += count;
    }
}

/* Spreads from[0..n) over to[0..n) by the digit at `low`, all threads together: each counts its share of the
 * items, the counts are summed over (digit, thread), and each scatters its share. */
static void spread(const uint64_t *from, uint64_t *to, uint64_t n, uint32_t low, uint32_t mask,
                   uint32_t *counts, uint32_t threads) {
  memset(counts, 0, sizeof *counts * threads * DIGITS);
#pragma omp parallel num_threads((int)threads)
  {
    /* The runtime may give fewer threads than asked for: shares are cut by the number that came. */
    uint64_t team = (uint64_t)omp_get_num_threads();
    uint64_t t = (uint64_t)omp_get_thread_num();
    uint64_t begin = n * t / team;
    uint64_t end = n * (t + 1) / team;
    uint32_t *mine = counts + t * DIGITS;
    for (uint64_t i = begin; i < end; i++)
      mine[(from[i] >> low) & mask]++;
#pragma omp barrier
#pragma omp single
    sum_counts(counts, (uint32_t)team);
    for (uint64_t i = begin; i < end; i++)
      to[mine[(from[i] >> low) & mask]++] = from[i];
  }
}

/* One pass of one thread; digits of up to 2^bits values. */
static void spread_alone(const uint64_t *from, uint64_t *to, uint64_t n, uint32_t low, uint32_t bits) {
  uint32_t starts[DIGITS];
  uint32_t mask = (1U << bits) - 1;
  memset(starts, 0, sizeof *starts << bits);
  for (uint64_t i = 0; i < n; i++)
    starts[(from[i] >> low) & mask]++;
  uint32_t sum = 0;
  for (uint32_t digit = 0; digit <= mask; digit++) {
    uint32_t count = starts[digit];
    starts[digit] = sum;
    sum += count;
  }
  for (uint64_t i = 0; i < n; i++)
    to[starts[(from[i] >> low) & mask]++] = from[i];
}

/* A few items: by insertion. */
static void insert_sort(uint64_t *items, uint64_t n, uint32_t low, uint64_t mask) {
  for (uint64_t i = 1; i < n; i++) {
    uint64_t item = items[i];
    uint64_t at = i;
    for (; at > 0 && ((items[at - 1] >> low) & mask) > ((item >> low) & mask); at--)
      items[at] = items[at - 1];
    items[at] = item;
  }
}

/* Sorts a bucket in place by bits [low, low + bits) on one thread. Digits are as narrow as the bucket is
 * small, so that clearing the counts costs no more than the items do. */
static void sort_bucket(uint64_t *items, uint64_t *scratch, uint64_t n, uint32_t low, uint32_t bits) {
  enum { FEW = 24 };
  if (n <= FEW) {
    insert_sort(items, n, low, bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX);
    return;
  }
  uint32_t width = 6;
  while (width < DIGIT_BITS && (UINT64_C(1) << width) < n)
    width++;
  uint32_t passes = (bits + width - 1) / width;
  uint64_t *from = items;
  uint64_t *to = scratch;
  for (uint32_t pass = 0; pass < passes; pass++) {
    uint32_t begin = bits * pass / passes;
    uint32_t end = bits * (pass + 1) / passes;
    spread_alone(from, to, n, low + begin, end - begin);
    uint64_t *sorted = to;
    to = from;
    from = sorted;
  }
  if (from != items)
    memcpy(items, from, n * sizeof *items);
}

/* The same by all threads, for a large bucket. */
static void sort_large_bucket(uint64_t *items, uint64_t *scratch, uint64_t n, uint32_t low, uint32_t bits,
                              uint32_t *counts, uint32_t threads) {
  uint64_t *from = items;
  uint64_t *to = scratch;
  for (uint32_t done = 0; done < bits; done += DIGIT_BITS) {
    uint32_t width = min_u32(DIGIT_BITS, bits - done);
    spread(from, to, n, low + done, (1U << width) - 1, counts, threads);
    uint64_t *sorted = to;
    to = from;
    from = sorted;
  }
  if (from != items)
    memcpy(items, from, n * sizeof *items);
}

void kith_sort(uint64_t *from, uint64_t *to, uint64_t n, uint32_t low, uint32_t bits, uint32_t *counts,
               uint32_t threads) {
  uint32_t top = min_u32(bits, DIGIT_BITS);
  uint32_t rest = bits - top;
  uint32_t *ends = counts + (uint64_t)threads * DIGITS;
  spread(from, to, n, low + rest, (1U << top) - 1, counts, threads);
  if (rest == 0)
    return;
  /* After spreading, the last thread's position of a digit is where its bucket ends. Threads that did not
   * come left zeros, hence the maximum. */
  for (uint32_t digit = 0; digit < DIGITS; digit++) {
    ends[digit] = 0;
    for (uint32_t t = 0; t < threads; t++)
      if (counts[t * DIGITS + digit] > ends[digit])
        ends[digit] = counts[t * DIGITS + digit];
  }
  uint64_t large = n / 4 > LARGE_BUCKET ? n / 4 : LARGE_BUCKET;
  for (uint32_t digit = 0; digit < DIGITS; digit++) {
    uint32_t begin = digit ? ends[digit - 1] : 0;
    if (ends[digit] - begin > large)
      sort_large_bucket(to + begin, from + begin, ends[digit] - begin, low, rest, counts, threads);
  }
#pragma omp parallel for num_threads((int)threads) schedule(dynamic, 8)
  for (uint32_t digit = 0; digit < DIGITS; digit++) {
    uint32_t begin = digit ? ends[digit - 1] : 0;
    if (ends[digit] - begin <= large)
      sort_bucket(to + begin, from + begin, ends[digit] - begin, low, rest);
  }
}
