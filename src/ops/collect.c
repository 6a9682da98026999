/* Rows from a pool: the table of a join that looks for every pair once, row by row (KITH_DO_COLLECT).
 *
 * Rows lie in the pool in the order in which they were found, with gaps where an engine failed and another one
 * did its work again. They are moved to their places when all of them are known, in shares of rows. */
#include "base/bypass.h"
#include "base/clock.h"
#include "ops/join.h"

#include <string.h>

enum { GRAIN = 4096, MOST_SHARES = 1024 };

typedef struct placing {
  kith_join *j;
  const uint32_t *pool;
  const uint64_t *begins; /* of the rows in the pool; NULL: these are their numbers */
  uint32_t *neighbors;
  bool bypasses;     /* to these, past the caches */
  uint64_t *offsets; /* from the second on: number of the row << 32 | degree; then where the rows end */
  uint64_t shares;
  uint64_t firsts[MOST_SHARES + 1]; /* of the shares, in the table */
} placing;

static uint64_t share_begin(const placing *p, uint64_t share) {
  return kith_share_begin(p->j->a->n, share, p->shares);
}

static void sum_share(void *argument, uint64_t share) {
  placing *p = argument;
  uint64_t pairs = 0;
  for (uint64_t i = share_begin(p, share); i < share_begin(p, share + 1); i++)
    pairs += p->offsets[i + 1] & UINT32_MAX;
  p->firsts[share + 1] = pairs;
}

/* The pairs of all rows; p->firsts is then known. */
static uint64_t sum_rows(placing *p) {
  uint64_t shares = kith_shares(p->j->ctx, p->j->a->n, GRAIN);
  p->shares = shares < MOST_SHARES ? shares : MOST_SHARES;
  kith_each(p->j->ctx, p->shares, sum_share, p);
  for (uint64_t s = 0; s < p->shares; s++)
    p->firsts[s + 1] += p->firsts[s];
  return p->firsts[p->shares];
}

static void place_share(void *argument, uint64_t share) {
  const placing *p = argument;
  uint64_t at = p->firsts[share];
  for (uint64_t i = share_begin(p, share); i < share_begin(p, share + 1); i++) {
    uint64_t number = p->offsets[i + 1] >> 32;
    uint64_t degree = p->offsets[i + 1] & UINT32_MAX;
    const uint32_t *row = p->pool + (p->begins ? p->begins[number] : number);
    kith_copy_row(p->neighbors + at, row, degree * sizeof *p->neighbors, p->bypasses);
    p->offsets[i + 1] = at += degree;
  }
  kith_bypass_end();
}

kith_status kith_join_place_rows(kith_join *j, const uint32_t *pool, const uint64_t *begins, uint64_t *offsets,
                                 kith_table *table) {
  placing p = {.j = j, .pool = pool, .begins = begins, .offsets = offsets};
  uint64_t pairs = sum_rows(&p);
  kith_status status = kith_join_allocate_table(j, table, pairs);
  if (status)
    return status;
  p.neighbors = (uint32_t *)table->neighbors;
  p.bypasses = kith_bypass_pays(pairs, j->a->n);
  kith_each(j->ctx, p.shares, place_share, &p);
  j->report.pairs = pairs;
  return KITH_OK;
}

kith_status kith_join_collect(kith_join *j, kith_table *table, uint64_t *offsets, uint64_t capacity,
                              bool *done) {
  kith_pool pool = {.ids = kith_alloc(&j->ctx->memory, capacity * sizeof(uint32_t)), .capacity = capacity};
  *done = false;
  if (!pool.ids)
    return KITH_OK; /* no room to be quick: count and fill */
  memset(offsets, 0, (j->a->n + 1) * sizeof *offsets);
  kith_work work = kith_join_work(j, KITH_DO_COLLECT);
  work.degrees = offsets + 1;
  work.pool = &pool;
  kith_stage_begin(j->ctx, "join", 0.5);
  kith_status status = kith_join_run(j, &work);
  *done = !status && !atomic_load(&pool.overflow);
  if (*done) {
    double began = kith_seconds();
    kith_join_release_index(j);
    status = kith_join_place_rows(j, pool.ids, NULL, offsets, table);
    j->report.seconds_join += kith_seconds() - began;
  }
  kith_free(pool.ids);
  return status;
}
