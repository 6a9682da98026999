/* Rows from pairs: the table of a join that finds every pair once, in any order (KITH_DO_PAIRS).
 *
 * Rows come out by id, whatever order the pairs were found in: the same for the same input. */
#include "ops/join.h"

#include <string.h>

enum { ROWS = 256 }; /* finished together */

typedef struct assembly {
  kith_join *j;
  kith_table *table;
  uint64_t *offsets;
  kith_pairs_found found;
} assembly;

/* Whether pair (i, k) of one set has a second row, k's. */
static bool has_mirror(const kith_join *j, uint64_t pair) {
  return j->one_set && !j->options.half && pair >> 32 != (uint32_t)pair;
}

/* offsets[i + 1]: the degree of row i, then the sum of the degrees up to it. */
static void sum_degrees(const assembly *a) {
  uint64_t n = a->j->a->n;
  memset(a->offsets, 0, (n + 1) * sizeof *a->offsets);
  for (uint32_t lane = 0; lane < a->j->engine->lanes; lane++)
    for (const kith_pairs_chunk *chunk = a->found.lists[lane]; chunk; chunk = chunk->next)
      for (uint64_t i = 0; i < chunk->n; i++) {
        a->offsets[(chunk->pairs[i] >> 32) + 1]++;
        if (has_mirror(a->j, chunk->pairs[i]))
          a->offsets[(uint64_t)(uint32_t)chunk->pairs[i] + 1]++;
      }
  for (uint64_t i = 1; i <= n; i++)
    a->offsets[i] += a->offsets[i - 1];
}

/* Puts the neighbours into their rows, back to front: afterwards offsets[i] has moved from the end of row i - 1
 * to its beginning, that is, offsets[i + 1] is where row i begins. */
static void spread_pairs(const assembly *a) {
  uint32_t *neighbors = (uint32_t *)a->table->neighbors;
  for (uint32_t lane = 0; lane < a->j->engine->lanes; lane++)
    for (const kith_pairs_chunk *chunk = a->found.lists[lane]; chunk; chunk = chunk->next)
      for (uint64_t i = 0; i < chunk->n; i++) {
        uint64_t first = chunk->pairs[i] >> 32;
        uint64_t second = (uint32_t)chunk->pairs[i];
        neighbors[--a->offsets[first + 1]] = (uint32_t)second;
        if (has_mirror(a->j, chunk->pairs[i]))
          neighbors[--a->offsets[second + 1]] = (uint32_t)first;
      }
  memmove(a->offsets, a->offsets + 1, a->j->a->n * sizeof *a->offsets);
  a->offsets[a->j->a->n] = a->table->n_pairs;
}

static void finish_rows(void *argument, uint64_t block) {
  const assembly *a = argument;
  uint64_t n = a->j->a->n;
  uint64_t end = (block + 1) * ROWS < n ? (block + 1) * ROWS : n;
  for (uint64_t i = block * ROWS; i < end; i++) {
    uint64_t at = a->offsets[i];
    kith_row row = {.ids = (uint32_t *)a->table->neighbors + at,
                    .distances = a->table->distances ? (double *)a->table->distances + at : NULL,
                    .n = a->offsets[i + 1] - at};
    kith_brute_finish_row(&a->j->space, a->j->a, a->j->b, (uint32_t)i, &row);
  }
}

static void free_chunks(assembly *a) {
  for (uint32_t lane = 0; a->found.lists && lane < a->j->engine->lanes; lane++)
    while (a->found.lists[lane]) {
      kith_pairs_chunk *next = a->found.lists[lane]->next;
      kith_free(a->found.lists[lane]);
      a->found.lists[lane] = next;
    }
  kith_free(a->found.lists);
}

kith_status kith_join_assemble(kith_join *j, kith_table *table, uint64_t *offsets, bool *done) {
  uint64_t bytes = j->engine->lanes * sizeof(kith_pairs_chunk *);
  assembly a = {.j = j, .table = table, .offsets = offsets, .found = {.ctx = j->ctx}};
  *done = false;
  a.found.lists = kith_alloc(&j->ctx->memory, bytes);
  if (!a.found.lists)
    return KITH_OK; /* no room to be quick: count and fill */
  memset(a.found.lists, 0, bytes);
  kith_work work = kith_join_work(j, KITH_DO_PAIRS);
  work.found = &a.found;
  kith_stage_begin(j->ctx, "join", 0.8);
  kith_status status = kith_join_run(j, &work);
  *done = !status && !atomic_load(&a.found.overflow);
  if (*done) {
    sum_degrees(&a);
    status = kith_join_allocate_table(j, table, offsets[j->a->n]);
  }
  if (*done && !status) {
    spread_pairs(&a);
    kith_each_unless_cancelled(j->ctx, (j->a->n + ROWS - 1) / ROWS, finish_rows, &a);
    status = kith_check_cancel(j->ctx);
    j->report.pairs = table->n_pairs;
  }
  free_chunks(&a);
  return status;
}
