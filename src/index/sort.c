/* A parallel stable radix sort: most significant digit first, then each bucket on its own.
 *
 * The first pass spreads the items over up to 2048 buckets by their highest bits; the threads share it. A
 * bucket then fits in a cache close to its core, where one thread sorts it by the lower bits, least
 * significant digit first. A bucket that holds a large part of everything (keys far from uniform) is sorted
 * by all threads together instead. O(n * passes). */
#include "index/sort.h"

#include "base/team.h"

#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };
enum { LARGE_BUCKET = 1 << 16 };

/* One sort, or one bucket of it. */
typedef struct sort_job {
  kith_context *ctx;
  uint64_t *from, *to;
  uint64_t n;
  uint32_t low; /* of the digit being spread, or of the bits that buckets are sorted by */
  uint32_t bits;
  uint64_t shares;      /* that the items are spread in */
  uint32_t *counts;     /* [share][digit] */
  const uint32_t *ends; /* of the buckets */
  uint64_t large;       /* buckets of more items are not for one thread */
} sort_job;

static uint64_t max_shares(const kith_context *ctx) { return kith_shares(ctx, UINT64_MAX, 1); }

uint64_t kith_sort_counts(const kith_context *ctx) { return (max_shares(ctx) + 1) * DIGITS; }

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void count_share(void *argument, uint64_t share) {
  const sort_job *job = argument;
  uint32_t *counts = job->counts + share * DIGITS;
  uint32_t mask = (1U << job->bits) - 1;
  memset(counts, 0, DIGITS * sizeof *counts);
  uint64_t end = kith_share_begin(job->n, share + 1, job->shares);
  for (uint64_t i = kith_share_begin(job->n, share, job->shares); i < end; i++)
    counts[(job->from[i] >> job->low) & mask]++;
}

static void scatter_share(void *argument, uint64_t share) {
  const sort_job *job = argument;
  uint32_t *places = job->counts + share * DIGITS;
  uint32_t mask = (1U << job->bits) - 1;
  uint64_t end = kith_share_begin(job->n, share + 1, job->shares);
  for (uint64_t i = kith_share_begin(job->n, share, job->shares); i < end; i++)
    job->to[places[(job->from[i] >> job->low) & mask]++] = job->from[i];
}

/* Spreads from[0..n) over to[0..n) by a digit, all threads together: count the digits of every share of the
 * items, sum over (digit, share), scatter every share. Writes the ends of the buckets unless ends is NULL. */
static void spread(const sort_job *whole, uint32_t *ends) {
  enum { GRAIN = 4096 };
  sort_job job = *whole;
  job.shares = kith_shares(job.ctx, job.n, GRAIN);
  kith_each(job.ctx, job.shares, count_share, &job);
  uint32_t sum = 0;
  for (uint32_t digit = 0; digit < DIGITS; digit++) {
    for (uint64_t s = 0; s < job.shares; s++) {
      uint32_t count = job.counts[s * DIGITS + digit];
      job.counts[s * DIGITS + digit] = sum;
      sum += count;
    }
    if (ends)
      ends[digit] = sum;
  }
  kith_each_unless_cancelled(job.ctx, job.shares, scatter_share, &job);
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
static void sort_large_bucket(const sort_job *whole, uint64_t begin, uint64_t n) {
  uint64_t *from = whole->to + begin;
  uint64_t *to = whole->from + begin;
  uint64_t *items = from;
  for (uint32_t done = 0; done < whole->bits; done += DIGIT_BITS) {
    sort_job pass = {.ctx = whole->ctx,
                     .from = from,
                     .to = to,
                     .n = n,
                     .low = whole->low + done,
                     .bits = min_u32(DIGIT_BITS, whole->bits - done),
                     .counts = whole->counts};
    spread(&pass, NULL);
    uint64_t *sorted = to;
    to = from;
    from = sorted;
  }
  if (from != items)
    memcpy(items, from, n * sizeof *items);
}

enum { BUCKETS_PER_ITEM = 16 };

static void sort_some_buckets(void *argument, uint64_t item) {
  const sort_job *job = argument;
  for (uint64_t digit = item * BUCKETS_PER_ITEM; digit < (item + 1) * BUCKETS_PER_ITEM; digit++) {
    uint32_t begin = digit ? job->ends[digit - 1] : 0;
    uint32_t n = job->ends[digit] - begin;
    if (n <= job->large)
      sort_bucket(job->to + begin, job->from + begin, n, job->low, job->bits);
  }
}

void kith_sort(kith_context *ctx, uint64_t *from, uint64_t *to, uint64_t n, uint32_t low, uint32_t bits,
               uint32_t *counts) {
  uint32_t top = min_u32(bits, DIGIT_BITS);
  uint32_t rest = bits - top;
  uint32_t *ends = counts + max_shares(ctx) * DIGITS;
  sort_job job = {.ctx = ctx, .from = from, .to = to, .n = n, .low = low + rest, .bits = top, .counts = counts};
  spread(&job, ends);
  if (rest == 0)
    return;
  job.low = low;
  job.bits = rest;
  job.ends = ends;
  job.large = n / 4 > LARGE_BUCKET ? n / 4 : LARGE_BUCKET;
  for (uint32_t digit = 0; digit < DIGITS; digit++) {
    uint32_t begin = digit ? ends[digit - 1] : 0;
    if (ends[digit] - begin > job.large)
      sort_large_bucket(&job, begin, ends[digit] - begin);
  }
  kith_each_unless_cancelled(ctx, DIGITS / BUCKETS_PER_ITEM, sort_some_buckets, &job);
}
