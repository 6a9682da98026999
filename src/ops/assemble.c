/* Rows from pairs: the table of a join that finds every pair once, in any order (KITH_DO_PAIRS).
 *
 * Pairs are of positions of the engine, which lie close together where points do: counting pairs, and spreading
 * them to the rows of both of their points, stays within caches. These rows are in a pool, by position. They
 * are moved to where their ids belong, and sorted: the same for the same input, whatever order the pairs were
 * found in. */
#include "ops/join.h"

#include "base/clock.h"
#include "engine/cpu/row.h"

#include <string.h>

enum { ROWS = 256 }; /* finished together */

typedef struct assembly {
  kith_join *j;
  kith_table *table;
  uint64_t *offsets;
  kith_pairs_found found;
  const uint32_t *ids; /* of the positions; NULL: these are ids */
  uint64_t n_positions;
  uint64_t *begins; /* begins[position + 1]: of its row in the pool */
  uint32_t *pool;
} assembly;

/* Whether a pair has a second row, that of its second position. */
static bool has_mirror(const kith_join *j, uint64_t pair) {
  return j->one_set && !j->options.half && pair >> 32 != (uint32_t)pair;
}

/* begins[position + 1]: the length of its row, of the pairs of all lanes. */
static void count_list(void *argument, uint64_t lane) {
  const assembly *a = argument;
  for (const kith_pairs_chunk *chunk = a->found.lists[lane]; chunk; chunk = chunk->next)
    for (uint64_t i = 0; i < chunk->n; i++) {
      __atomic_fetch_add(&a->begins[(chunk->pairs[i] >> 32) + 1], 1, __ATOMIC_RELAXED);
      if (has_mirror(a->j, chunk->pairs[i]))
        __atomic_fetch_add(&a->begins[(uint64_t)(uint32_t)chunk->pairs[i] + 1], 1, __ATOMIC_RELAXED);
    }
}

/* begins[position + 1]: where its row ends. Returns how many neighbours there are. */
static uint64_t sum_lengths(assembly *a) {
  memset(a->begins, 0, (a->n_positions + 1) * sizeof *a->begins);
  kith_each(a->j->ctx, a->found.lanes, count_list, a);
  for (uint64_t i = 1; i <= a->n_positions; i++)
    a->begins[i] += a->begins[i - 1];
  return a->begins[a->n_positions];
}

static uint32_t id_of(const assembly *a, uint64_t position) {
  return a->ids ? a->ids[position] : (uint32_t)position;
}

/* Puts the neighbours into the rows of the pool, back to front. */
static void spread_list(void *argument, uint64_t lane) {
  const assembly *a = argument;
  for (const kith_pairs_chunk *chunk = a->found.lists[lane]; chunk; chunk = chunk->next)
    for (uint64_t i = 0; i < chunk->n; i++) {
      uint64_t first = chunk->pairs[i] >> 32;
      uint64_t second = (uint32_t)chunk->pairs[i];
      a->pool[__atomic_sub_fetch(&a->begins[first + 1], 1, __ATOMIC_RELAXED)] = id_of(a, second);
      if (has_mirror(a->j, chunk->pairs[i]))
        a->pool[__atomic_sub_fetch(&a->begins[second + 1], 1, __ATOMIC_RELAXED)] = id_of(a, first);
    }
}

/* offsets[id + 1]: where its row begins among the begins << 32 | its length. */
static void note_rows(const assembly *a, uint64_t pairs) {
  memset(a->offsets, 0, (a->j->a->n + 1) * sizeof *a->offsets);
  for (uint64_t i = 0; i < a->n_positions; i++) {
    uint64_t end = i + 1 < a->n_positions ? a->begins[i + 2] : pairs;
    a->offsets[id_of(a, i) + (uint64_t)1] = (i + 1) << 32 | (end - a->begins[i + 1]);
  }
}

/* The rows by position, and nothing else that is not needed any more; false: there is no room for that. */
static bool make_rows(assembly *a) {
  kith_memory *memory = &a->j->ctx->memory;
  a->begins = kith_alloc(memory, (a->n_positions + 1) * sizeof *a->begins);
  if (!a->begins)
    return false;
  uint64_t pairs = sum_lengths(a);
  a->pool = kith_alloc(memory, pairs * sizeof *a->pool);
  if (!a->pool)
    return false;
  kith_each(a->j->ctx, a->found.lanes, spread_list, a);
  kith_pairs_release(&a->found);
  note_rows(a, pairs);
  kith_join_release_index(a->j);
  return true;
}

static void finish_rows(void *argument, uint64_t block) {
  const assembly *a = argument;
  uint64_t n = a->j->a->n;
  uint64_t end = (block + 1) * ROWS < n ? (block + 1) * ROWS : n;
  const kith_row_rules rules = {.table = kith_kernels_for(a->j->ctx->isa, a->j->space.norm),
                                .space = &a->j->space,
                                .a = a->j->a,
                                .b = a->j->b};
  for (uint64_t i = block * ROWS; i < end; i++) {
    uint64_t at = a->offsets[i];
    kith_row row = {.ids = (uint32_t *)a->table->neighbors + at,
                    .distances = a->table->distances ? (double *)a->table->distances + at : NULL,
                    .n = a->offsets[i + 1] - at};
    kith_row_finish(&rules, (uint32_t)i, &row);
  }
}

static kith_status finish_table(assembly *a) {
  kith_join *j = a->j;
  kith_status status = kith_join_place_rows(j, a->pool, a->begins, a->offsets, a->table);
  if (status)
    return status;
  kith_each_unless_cancelled(j->ctx, (j->a->n + ROWS - 1) / ROWS, finish_rows, a);
  return kith_check_cancel(j->ctx);
}

kith_status kith_join_assemble(kith_join *j, kith_table *table, uint64_t *offsets, bool *done) {
  const kith_engine *engine = j->engine;
  assembly a = {.j = j,
                .table = table,
                .offsets = offsets,
                .ids = engine->ids,
                .n_positions = engine->ids ? engine->n_queries : j->a->n};
  *done = false;
  if (!kith_pairs_open(j->ctx, engine->lanes, &a.found))
    return KITH_OK; /* no room to be quick: count and fill */
  kith_work work = kith_join_work(j, KITH_DO_PAIRS);
  work.found = &a.found;
  kith_stage_begin(j->ctx, "join", 0.8);
  kith_status status = kith_join_run(j, &work);
  double began = kith_seconds();
  *done = !status && !atomic_load(&a.found.overflow) && make_rows(&a);
  if (*done)
    status = finish_table(&a);
  j->report.seconds_join += kith_seconds() - began;
  kith_pairs_release(&a.found);
  kith_free(a.begins);
  kith_free(a.pool);
  return status;
}
