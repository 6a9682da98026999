/* The CPU engine: each operation visits the tiles of its range, and for each tile the runs of the stencil.
 *
 * Counting a set against itself, and finding its pairs, visits each unordered pair of points once: a tile meets
 * itself, and what comes after it in the index. Degrees and filling visit every ordered pair. */
#include "engine/cpu/around.h"
#include "engine/cpu/order.h"
#include "engine/cpu/row.h"
#include "engine/cpu/visit.h"

#include "base/bypass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct cpu_engine {
  kith_engine base;
  const kith_context *ctx; /* to notice cancellation */
  kith_task task;
  kith_lane *lanes;
  void *buffers;
} cpu_engine;

/* Whether the cells of a tile lie so close together that all its queries belong to each other. */
static bool belongs_together(const kith_lane *lane) {
  const kith_stencil *stencil = lane->task->stencil;
  return lane->tile_accepts &&
         stencil->steps[stencil->own].x_inside >= (int64_t)(lane->queries.x_last - lane->queries.x_first);
}

/* The pairs among the tile's own queries, in both orders and with themselves. */
static uint64_t count_within_tile(kith_visit *v) {
  kith_lane *lane = v->lane;
  uint64_t n = lane->tile.n_queries;
  if (belongs_together(lane)) {
    v->tally->inside += n * n;
    return n * n;
  }
  v->found = 0;
  kith_visit_itself(v);
  return v->found;
}

/* A set against itself, each pair of tiles once. Counting is not cut into windows of ids: every position of
 * the tile is a query. */
static void count_symmetric(kith_visit *v) {
  uint64_t within = count_within_tile(v);
  v->found = 0;
  kith_visit_behind(v);
  v->tally->pairs += within + 2 * v->found;
}

static void count_tile(kith_visit *v) {
  if (kith_lane_meets_once(v->lane->task, v->work)) {
    count_symmetric(v);
    return;
  }
  v->found = 0;
  kith_visit_all(v);
  v->tally->pairs += v->found;
}

static void degrees_tile(kith_visit *v) {
  const kith_lane *lane = v->lane;
  kith_visit_degrees(v);
  for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
    v->work->degrees[lane->queries.ids[q]] = lane->degrees[q];
    v->tally->pairs += lane->degrees[q];
  }
}

/* Points the rows at their places in the table; returns how many neighbours they have together. */
static uint64_t open_rows(kith_visit *v) {
  kith_lane *lane = v->lane;
  const kith_work *work = v->work;
  uint64_t pairs = 0;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
    const uint64_t *offset = &work->offsets[lane->queries.ids[q] - work->first_row];
    uint64_t at = offset[0] - work->offsets[0];
    lane->rows.next[q] = work->neighbors + at;
    lane->rows.d2[q] = work->distances ? work->distances + at : NULL;
    pairs += offset[1] - offset[0];
  }
  return pairs;
}

/* Kernels give sizes: turns those of the tile's rows into distances. */
static void take_distances(kith_visit *v) {
  const kith_work *work = v->work;
  const kith_space *space = v->lane->task->space;
  bool plain = space->metric == KITH_EUCLIDEAN;
  for (uint32_t q = 0; q < v->lane->tile.n_queries; q++) {
    const uint64_t *offset = &work->offsets[v->lane->queries.ids[q] - work->first_row];
    for (uint64_t i = offset[0] - work->offsets[0]; i < offset[1] - work->offsets[0]; i++)
      work->distances[i] = plain ? sqrt(work->distances[i]) : kith_space_distance(space, work->distances[i]);
  }
}

/* Rows in id order: the candidates in that order, as many at a time as can be sorted. */
static void fill_in_order(kith_visit *v) {
  kith_lane *lane = v->lane;
  kith_ordered ordered = {0};
  while (kith_order_candidates(lane, &ordered))
    for (uint32_t i = 0; i < ordered.n; i += lane->capacity) {
      uint32_t left = ordered.n - i;
      kith_order_stage(lane, ordered.items + i, left < lane->capacity ? left : lane->capacity);
      kith_visit_flush(v);
    }
}

/* The rows of the tile as they were found, put in order. */
static void order_rows(kith_visit *v) {
  const kith_work *work = v->work;
  for (uint32_t q = 0; q < v->lane->tile.n_queries; q++) {
    const uint64_t *offset = &work->offsets[v->lane->queries.ids[q] - work->first_row];
    uint64_t at = offset[0] - work->offsets[0];
    kith_row_order(v->lane->table, work->neighbors + at, work->distances ? work->distances + at : NULL,
                   offset[1] - offset[0]);
  }
}

static void fill_tile(kith_visit *v) {
  kith_lane *lane = v->lane;
  uint64_t pairs = open_rows(v);
  v->tally->pairs += pairs;
  if (pairs == 0)
    return;
  memset(lane->self, 0xFF, sizeof lane->self);
  if (lane->orders)
    fill_in_order(v);
  else
    kith_visit_all(v);
  if (lane->task->sorted && !lane->orders)
    order_rows(v);
  if (v->work->distances)
    take_distances(v);
}

static void visit_tile(kith_visit *v) {
  switch (v->operation) {
  case KITH_DO_COUNT:
    count_tile(v);
    break;
  case KITH_DO_DEGREES:
    degrees_tile(v);
    break;
  case KITH_DO_FILL:
    fill_tile(v);
    break;
  case KITH_DO_COLLECT:
    kith_collect_tile(v);
    break;
  case KITH_DO_PAIRS:
    kith_pairs_tile(v);
    break;
  }
}

/* The rows that work fills, and the neighbours in them. */
static uint64_t rows_of(const kith_task *task, const kith_work *work) {
  uint64_t n_rows = task->queries->id_end;
  return (work->end_row < n_rows ? work->end_row : n_rows) - work->first_row;
}

static uint64_t pairs_of(const kith_task *task, const kith_work *work) {
  return work->offsets[rows_of(task, work)] - work->offsets[0];
}

/* Whether candidates are put in order before they are tested: that is done once for all queries of a tile, and
 * pays where rows are long; later where a window of ids leaves a tile few of its queries. Other rows are sorted
 * when they are filled. */
static bool orders_candidates(const kith_task *task, const kith_work *work) {
  enum { LONG_ROW = 32, LONG_ROW_WINDOW = 96 };
  if (!task->sorted || work->operation != KITH_DO_FILL || task->space->lattice.n > 0)
    return false;
  uint64_t rows = rows_of(task, work);
  return pairs_of(task, work) > (rows < task->queries->id_end ? LONG_ROW_WINDOW : LONG_ROW) * rows;
}

/* Whether rows are filled past the caches. Those that are sorted afterwards are read again at once. */
static bool bypasses_caches(const kith_task *task, const kith_work *work, bool orders) {
  if (work->operation != KITH_DO_FILL || (task->sorted && !orders))
    return false;
  return kith_bypass_pays(pairs_of(task, work), rows_of(task, work));
}

static kith_status run(kith_engine *engine, uint32_t number, const kith_work *work, kith_tally *tally) {
  cpu_engine *cpu = (cpu_engine *)engine;
  kith_lane *lane = &cpu->lanes[number];
  kith_visit v = {
      .lane = lane, .lane_number = number, .work = work, .operation = work->operation, .tally = tally};
  kith_lane_begin(lane);
  bool rows = work->operation == KITH_DO_FILL || work->operation == KITH_DO_COLLECT;
  lane->lists = work->operation == KITH_DO_PAIRS;
  lane->tile.half = cpu->task.half && work->operation != KITH_DO_COUNT && !lane->lists;
  lane->tile.self = cpu->task.drop_self && rows ? lane->self : NULL;
  lane->needs_ids = rows || lane->tile.half;
  lane->orders = orders_candidates(&cpu->task, work);
  lane->rows.bypasses = bypasses_caches(&cpu->task, work, lane->orders);
  lane->may_filter = cpu->task.predicate->filter && !work->distances; /* distances take the definition anyway */
  for (uint32_t at = work->begin; at < work->end && !kith_cancelled(cpu->ctx);) {
    at = kith_lane_next_tile(lane, at, work);
    if (lane->tile.n_queries > 0)
      visit_tile(&v);
  }
  kith_bypass_end();
  return KITH_OK;
}

static void destroy(kith_engine *engine) {
  cpu_engine *cpu = (cpu_engine *)engine;
  kith_free(cpu->buffers);
  kith_free(cpu->lanes);
  kith_free(cpu);
}

/* Rows are collected at once up to a length for which memory is no concern; 0: they are not collected. */
static uint32_t choose_collect_limit(const kith_context *ctx, const kith_task *task) {
  enum { LEAST = 1 << 10, MOST = 1 << 15, PART_OF_MEMORY = 64 };
  if (!task->collects)
    return 0;
  uint64_t fits =
      kith_memory_left(&ctx->memory) / PART_OF_MEMORY / ctx->threads / (KITH_TILE_QUERIES * sizeof(uint32_t));
  uint32_t limit = fits < LEAST ? LEAST : fits > MOST ? MOST : (uint32_t)fits;
  return task->candidates->n < limit ? task->candidates->n : limit;
}

kith_status kith_engine_cpu_create(kith_context *ctx, const kith_task *task, kith_engine **out) {
  uint32_t collect_limit = choose_collect_limit(ctx, task);
  size_t lane_bytes = kith_lane_bytes(task, collect_limit);
  *out = NULL;
  cpu_engine *cpu = kith_alloc(&ctx->memory, sizeof *cpu);
  if (!cpu)
    return kith_fail_memory(ctx, sizeof *cpu, "the CPU engine");
  *cpu = (cpu_engine){.base = {.name = "cpu",
                               .lanes = ctx->threads,
                               .n_queries = task->queries->n,
                               .ids = task->queries->ids,
                               .lists_pairs = task->queries == task->candidates && !task->limits,
                               .images_last = task->space->lattice.n > 0 && !kith_around_suits(task),
                               .run = run,
                               .destroy = destroy},
                      .ctx = ctx,
                      .task = *task};
  cpu->lanes = kith_alloc(&ctx->memory, ctx->threads * sizeof(kith_lane));
  cpu->buffers = kith_alloc(&ctx->memory, ctx->threads * lane_bytes);
  if (!cpu->lanes || !cpu->buffers) {
    kith_status status =
        kith_fail_memory(ctx, ctx->threads * (sizeof(kith_lane) + lane_bytes), "the buffers of the threads");
    destroy(&cpu->base);
    return status;
  }
  for (uint32_t i = 0; i < ctx->threads; i++)
    kith_lane_make(&cpu->lanes[i], &cpu->task, collect_limit, ctx->isa, (char *)cpu->buffers + i * lane_bytes);
  *out = &cpu->base;
  return KITH_OK;
}

void kith_engine_destroy(kith_engine *engine) {
  if (engine)
    engine->destroy(engine);
}
