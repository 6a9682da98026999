/* A parallel stable radix sort: least significant digit first, up to 11 bits a pass.
 *
 * Every thread counts the digits of its share of the items, the counts are summed over (digit, thread), and
 * every thread scatters its share. Digits of at most 11 bits keep the open write streams within the L2
 * cache. O(n * passes); digits that all items share are skipped. */
#include "index/sort.h"

#include <omp.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

uint64_t kith_sort_counts(uint32_t threads) { return (uint64_t)threads * DIGITS; }

/* Turns counts[thread][digit] into start positions; returns false if one digit holds everything. */
static bool sum_counts(uint32_t *counts, uint32_t threads, uint64_t n) {
  uint32_t sum = 0;
  for (uint32_t digit = 0; digit < DIGITS; digit++) {
    uint32_t before = sum;
    for (uint32_t t = 0; t < threads; t++) {
      uint32_t count = counts[t * DIGITS + digit];
      counts[t * DIGITS + digit] = sum;
      sum += count;
    }
    if (sum - before == n)
      return false;
  }
  return true;
}

static void scatter(const uint64_t *from, uint64_t *to, const uint64_t range[2], uint32_t low,
                    uint32_t *starts) {
  for (uint64_t i = range[0]; i < range[1]; i++)
    to[starts[(from[i] >> low) & (DIGITS - 1)]++] = from[i];
}

/* One pass over the digit at `low`; returns whether items moved to `to`. */
static bool sort_pass(const uint64_t *from, uint64_t *to, uint64_t n, uint32_t low, uint32_t *counts,
                      uint32_t threads) {
  bool moved = false;
  memset(counts, 0, sizeof *counts * kith_sort_counts(threads));
#pragma omp parallel num_threads((int)threads)
  {
    /* The runtime may give fewer threads than asked for: shares are cut by the number that came. */
    uint64_t team = (uint64_t)omp_get_num_threads();
    uint64_t t = (uint64_t)omp_get_thread_num();
    uint64_t range[2] = {n * t / team, n * (t + 1) / team};
    uint32_t *mine = counts + t * DIGITS;
    for (uint64_t i = range[0]; i < range[1]; i++)
      mine[(from[i] >> low) & (DIGITS - 1)]++;
#pragma omp barrier
#pragma omp single
    moved = sum_counts(counts, (uint32_t)team, n);
    if (moved)
      scatter(from, to, range, low, mine);
  }
  return moved;
}

uint64_t *kith_sort(uint64_t *items, uint64_t *spare, uint64_t n, uint32_t low, uint32_t bits, uint32_t *counts,
                    uint32_t threads) {
  uint32_t passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
  for (uint32_t pass = 0; pass < passes; pass++) {
    /* Split the bits evenly; a pass may look at a few bits of the next one, which does no harm. */
    uint32_t shift = low + bits * pass / passes;
    if (sort_pass(items, spare, n, shift, counts, threads)) {
      uint64_t *sorted = spare;
      spare = items;
      items = sorted;
    }
  }
  return items;
}
