/* Rows from pairs: the table of a join that finds every pair once, in any order (KITH_DO_PAIRS).
 *
 * Pairs are of positions of the engine, which lie close together where points do: counting pairs, and spreading
 * them to the rows of both of their points, stays within caches. These rows are in a pool, by position. They
 * are moved to where their ids belong, and sorted: by id if that is asked for, else by position, as rows are
 * that are filled. So it is not seen which way was taken, nor in what order pairs were found. */
#include "ops/join.h"

#include "base/clock.h"
#include "engine/cpu/row.h"

#include <string.h>

enum { ROWS = 256 }; /* of a block */

typedef struct assembly {
  kith_join *j;
  kith_table *table;
  uint64_t *offsets;
  kith_pairs_found found;
  const uint32_t *ids; /* of the positions; NULL: these are ids */
  uint64_t n_positions;
  uint64_t *begins; /* begins[position + 1]: of its row in the pool */
  uint32_t *pool;
  uint64_t n_ids; /* in the pool */
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

/* What a row is sorted by. */
static uint32_t key_of(const assembly *a, uint64_t position) {
  return a->j->options.sorted ? id_of(a, position) : (uint32_t)position;
}

/* Puts the neighbours into the rows of the pool, back to front. */
static void spread_list(void *argument, uint64_t lane) {
  const assembly *a = argument;
  for (const kith_pairs_chunk *chunk = a->found.lists[lane]; chunk; chunk = chunk->next)
    for (uint64_t i = 0; i < chunk->n; i++) {
      uint64_t first = chunk->pairs[i] >> 32;
      uint64_t second = (uint32_t)chunk->pairs[i];
      a->pool[__atomic_sub_fetch(&a->begins[first + 1], 1, __ATOMIC_RELAXED)] = key_of(a, second);
      if (has_mirror(a->j, chunk->pairs[i]))
        a->pool[__atomic_sub_fetch(&a->begins[second + 1], 1, __ATOMIC_RELAXED)] = key_of(a, first);
    }
}

static uint64_t row_begin(const assembly *a, uint64_t position) {
  return position < a->n_positions ? a->begins[position + 1] : a->n_ids;
}

/* Puts a block of rows in order, and ids in the place of positions. */
static void order_rows(void *argument, uint64_t block) {
  const assembly *a = argument;
  const kith_kernel_table *table = kith_kernels_for(a->j->ctx->isa, a->j->space.norm);
  for (uint64_t i = block * ROWS; i < (block + 1) * ROWS && i < a->n_positions; i++) {
    uint32_t *row = a->pool + row_begin(a, i);
    uint64_t n = row_begin(a, i + 1) - row_begin(a, i);
    kith_row_order(table, row, NULL, n);
    for (uint64_t k = 0; k < n && !a->j->options.sorted; k++)
      row[k] = id_of(a, row[k]);
  }
}

/* offsets[id + 1]: the position of its row << 32 | its length. */
static void note_rows(const assembly *a) {
  memset(a->offsets, 0, (a->j->a->n + 1) * sizeof *a->offsets);
  for (uint64_t i = 0; i < a->n_positions; i++)
    a->offsets[id_of(a, i) + (uint64_t)1] = i << 32 | (row_begin(a, i + 1) - row_begin(a, i));
}

static void each_rows(assembly *a, uint64_t n, kith_item_fn fn) {
  kith_each_unless_cancelled(a->j->ctx, (n + ROWS - 1) / ROWS, fn, a);
}

/* The rows by position, and nothing else that is not needed any more; false: there is no room for that. */
static bool make_rows(assembly *a) {
  kith_memory *memory = &a->j->ctx->memory;
  a->begins = kith_alloc(memory, (a->n_positions + 1) * sizeof *a->begins);
  if (!a->begins)
    return false;
  a->n_ids = sum_lengths(a);
  a->pool = kith_alloc(memory, a->n_ids * sizeof *a->pool);
  if (!a->pool)
    return false;
  kith_each(a->j->ctx, a->found.lanes, spread_list, a);
  kith_pairs_release(&a->found);
  each_rows(a, a->n_positions, order_rows);
  note_rows(a);
  kith_join_release_index(a->j);
  return true;
}

/* Computes the distances of a block of rows of the table. */
static void measure_rows(void *argument, uint64_t block) {
  const assembly *a = argument;
  const kith_join *j = a->j;
  for (uint64_t i = block * ROWS; i < (block + 1) * ROWS && i < j->a->n; i++) {
    uint64_t at = a->offsets[i];
    kith_row row = {.ids = (uint32_t *)a->table->neighbors + at,
                    .distances = (double *)a->table->distances + at,
                    .n = a->offsets[i + 1] - at};
    kith_row_measure(&j->space, j->a, j->b, (uint32_t)i, &row);
  }
}

static kith_status finish_table(assembly *a) {
  kith_join *j = a->j;
  kith_status status = kith_join_place_rows(j, a->pool, a->begins + 1, a->offsets, a->table);
  if (!status && a->table->distances)
    each_rows(a, j->a->n, measure_rows);
  return status ? status : kith_check_cancel(j->ctx);
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
