/* The CPU engine: each operation visits the tiles of its range, and for each tile the runs of the stencil.
 *
 * Counting a set against itself visits each unordered pair of points once: a tile meets itself, and what
 * comes after it in the index. Degrees and filling visit every ordered pair.
 * Candidates are staged until the buffers are full or the tile's runs are over, then a kernel sees them all.
 * Runs that lie wholly within eps are counted or copied without a test where that pays. */
#include "engine/cpu/images.h"
#include "engine/cpu/lane.h"
#include "engine/cpu/order.h"

#include "base/bypass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Shorter runs of sure neighbours are tested like the others: emptying the buffers for them costs more. */
enum { INSIDE_FROM = 48 };

typedef struct cpu_engine {
  kith_engine base;
  const kith_context *ctx; /* to notice cancellation */
  kith_task task;
  kith_lane *lanes;
  void *buffers;
} cpu_engine;

/* What an operation does with a sealed tile. */
typedef struct visit {
  kith_lane *lane;
  const kith_work *work;
  kith_operation operation; /* that of the work; KITH_DO_COLLECT counts and fills tiles with long rows */
  kith_tally *tally;
  uint64_t found; /* pairs in the staged tiles since it was last cleared: KITH_DO_COUNT */
  bool too_long;  /* a row of the tile, or of the last one, outgrows the lane's buffers: KITH_DO_COLLECT */
} visit;

/* Adds the pairs of the staged tile to degrees[], whatever it takes. */
static void settle_staged(const kith_lane *lane, uint32_t *degrees) {
  if (lane->filter)
    lane->filter_kernels->settled(&lane->tile, &lane->predicate, degrees);
  else if (lane->tile.image)
    lane->image_kernels->degrees(&lane->tile, degrees);
  else
    lane->exact_kernels->degrees_exact(&lane->tile, degrees);
}

static void count_staged(visit *v) {
  kith_lane *lane = v->lane;
  uint64_t pairs = 0;
  if (lane->filter && lane->filter_kernels->count(&lane->tile, &lane->predicate, &pairs)) {
    v->found += pairs;
    return;
  }
  uint32_t degrees[KITH_TILE_QUERIES] = {0};
  settle_staged(lane, degrees);
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    v->found += degrees[q];
}

static void degrees_staged(visit *v) {
  kith_lane *lane = v->lane;
  uint32_t degrees[KITH_TILE_QUERIES] = {0};
  bool sure =
      lane->filter && !lane->tile.half && lane->filter_kernels->degrees(&lane->tile, &lane->predicate, degrees);
  if (!sure) {
    memset(degrees, 0, sizeof degrees);
    settle_staged(lane, degrees);
  }
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    lane->degrees[q] += degrees[q];
}

static void fill_staged(visit *v) {
  kith_lane *lane = v->lane;
  if (lane->filter)
    lane->filter_kernels->fill(&lane->tile, &lane->predicate, &lane->rows);
  else if (lane->tile.image)
    lane->image_kernels->fill(&lane->tile, &lane->rows);
  else
    lane->exact_kernels->fill_exact(&lane->tile, &lane->rows);
  memset(lane->self, 0xFF, sizeof lane->self);
}

static uint32_t *collected_row(const kith_lane *lane, uint32_t q) {
  return lane->collected + q * ((size_t)lane->collect_limit + lane->capacity);
}

/* A row may grow by `capacity` at every kernel: one that is already longer is given up. */
static void check_collected(visit *v) {
  kith_lane *lane = v->lane;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    if (lane->rows.next[q] - collected_row(lane, q) > lane->collect_limit) {
      v->too_long = true;
      lane->rows.next[q] = collected_row(lane, q);
    }
}

/* Gives what is staged to the kernel of the operation, and empties the buffers. */
static void flush(visit *v) {
  kith_tile *tile = &v->lane->tile;
  if (tile->n_candidates == 0)
    return;
  kith_lane_seal(v->lane);
  tile->stop = v->lane->task->no_shortc ? INFINITY : v->lane->predicate.band;
  v->tally->tested += (uint64_t)tile->n_queries * tile->n_candidates;
  if (v->operation == KITH_DO_COUNT)
    count_staged(v);
  else if (v->operation == KITH_DO_DEGREES)
    degrees_staged(v);
  else
    fill_staged(v);
  if (v->operation == KITH_DO_COLLECT)
    check_collected(v);
  tile->n_candidates = 0;
}

/* Notes where the queries themselves stand among the candidates being staged. */
static void mark_self(kith_lane *lane, uint32_t begin, uint32_t end) {
  if (!lane->tile.self)
    return;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
    uint32_t position = lane->queries.positions[q];
    if (position >= begin && position < end)
      lane->self[q] = lane->tile.n_candidates + (position - begin);
  }
}

typedef enum staging { STAGE_ALL, STAGE_NEAR, STAGE_QUERIES } staging;

/* Stages positions [begin, end), or those near the tile's queries, and lets the kernel see them whenever the
 * buffers are full. */
static void stage_positions(visit *v, uint32_t begin, uint32_t end, staging how) {
  kith_lane *lane = v->lane;
  while (begin < end) {
    uint32_t room = lane->capacity - lane->tile.n_candidates;
    uint32_t stop = end - begin < room ? end : begin + room;
    if (how == STAGE_QUERIES)
      mark_self(lane, begin, stop);
    if (how == STAGE_NEAR)
      kith_lane_sieve(lane, begin, stop);
    else
      kith_lane_stage(lane, begin, stop);
    begin = stop;
    if (lane->tile.n_candidates == lane->capacity)
      flush(v);
  }
}

static uint32_t clamp_u32(uint32_t x, uint32_t low, uint32_t high) {
  return x < low ? low : x > high ? high : x;
}

/* In the row of the queries themselves these must be found among the candidates, if they are to be left out:
 * there, nothing is dropped. */
static void test_positions(visit *v, uint32_t begin, uint32_t end, bool own_row) {
  const kith_lane *lane = v->lane;
  bool mark = own_row && lane->tile.self;
  if (!lane->sieves || !mark) {
    stage_positions(v, begin, end, mark ? STAGE_QUERIES : lane->sieves ? STAGE_NEAR : STAGE_ALL);
    return;
  }
  uint32_t first = clamp_u32(lane->queries.begin, begin, end);
  uint32_t last = clamp_u32(lane->queries.end, begin, end);
  stage_positions(v, begin, first, STAGE_NEAR);
  stage_positions(v, first, last, STAGE_QUERIES);
  stage_positions(v, last, end, STAGE_NEAR);
}

/* Appends positions [begin, end) to the row of query q. */
static void append_ids(kith_lane *lane, uint32_t q, uint32_t begin, uint32_t end) {
  const uint32_t *ids = lane->task->candidates->ids + begin;
  kith_copy_row(lane->rows.next[q], ids, (end - begin) * sizeof *ids, lane->rows.bypasses);
  lane->rows.next[q] += end - begin;
}

/* Gives positions [begin, end) to query q, all neighbours. */
static void accept_for(visit *v, uint32_t q, uint32_t begin, uint32_t end) {
  v->tally->inside += end - begin;
  if (v->operation == KITH_DO_DEGREES)
    v->lane->degrees[q] += end - begin;
  else
    append_ids(v->lane, q, begin, end);
}

/* The first of ascending ids[begin..end) above `id`. */
static uint32_t first_above(const uint32_t *ids, uint32_t begin, uint32_t end, uint32_t id) {
  while (begin < end) {
    uint32_t middle = begin + (end - begin) / 2;
    if (ids[middle] <= id)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

/* Half: of each cell only the ids above the query's, which are its end, since ids ascend in it. */
static void accept_half(visit *v, uint32_t begin, uint32_t end) {
  const kith_lane *lane = v->lane;
  const kith_index *index = lane->task->candidates;
  for (uint32_t cell = kith_index_cell_at(index, begin); begin < end; cell++) {
    uint32_t stop = index->cell_start[cell + 1] < end ? index->cell_start[cell + 1] : end;
    for (uint32_t q = 0; q < lane->tile.n_queries; q++)
      accept_for(v, q, first_above(index->ids, begin, stop, lane->queries.ids[q]), stop);
    begin = stop;
  }
}

static void accept_positions(visit *v, uint32_t begin, uint32_t end) {
  kith_lane *lane = v->lane;
  uint32_t n = lane->tile.n_queries;
  if (v->operation == KITH_DO_COUNT) {
    v->tally->inside += (uint64_t)n * (end - begin);
    v->found += (uint64_t)n * (end - begin);
    return;
  }
  if (v->operation != KITH_DO_DEGREES)
    flush(v); /* rows are in index order: what is staged comes first */
  if (lane->tile.half) {
    accept_half(v, begin, end);
    return;
  }
  for (uint32_t q = 0; q < n; q++) {
    uint32_t self = lane->queries.positions[q];
    bool own = lane->tile.self && self >= begin && self < end;
    accept_for(v, q, begin, own ? self : end);
    if (own)
      accept_for(v, q, self + 1, end);
  }
}

/* Whether so many points in so many cells are worth accepting untested. Half looks for the query's id in every
 * cell, so cells must be worth that. */
static bool is_worth_accepting(const visit *v, uint32_t points, uint32_t cells) {
  if (v->work->distances || v->operation == KITH_DO_COLLECT)
    return false;
  return points >= (v->lane->tile.half ? INSIDE_FROM * (uint64_t)cells : INSIDE_FROM);
}

/* Meets positions of which none is known to be inside: only crowded cells are looked at once more. */
static void meet_positions(visit *v, uint32_t begin, uint32_t end, bool own_row) {
  kith_crowd crowd;
  while (kith_lane_crowd(v->lane, begin, end, &crowd) && is_worth_accepting(v, crowd.end - crowd.begin, 1)) {
    test_positions(v, begin, crowd.begin, own_row);
    accept_positions(v, crowd.begin, crowd.end);
    begin = crowd.end;
  }
  test_positions(v, begin, end, own_row);
}

/* Meets the candidates of a run, except those before position `from`. */
static void meet_run(visit *v, kith_run run, uint32_t from, bool own_row) {
  if (run.end <= from)
    return;
  if (run.begin < from)
    run.begin = from;
  if (run.inside_begin < run.begin)
    run.inside_begin = run.begin;
  if (run.inside_begin >= run.inside_end ||
      !is_worth_accepting(v, run.inside_end - run.inside_begin, run.inside_cells)) {
    meet_positions(v, run.begin, run.end, own_row);
    return;
  }
  meet_positions(v, run.begin, run.inside_begin, own_row);
  accept_positions(v, run.inside_begin, run.inside_end);
  meet_positions(v, run.inside_end, run.end, own_row);
}

/* Meets the candidates near the moved queries of the tile. */
static void meet_image(void *user) {
  visit *v = user;
  kith_image_runs runs;
  kith_run run;
  kith_image_runs_begin(v->lane, &runs);
  while (kith_image_runs_next(v->lane, &runs, &run))
    test_positions(v, run.begin, run.end, false);
  flush(v);
}

/* In a periodic box: what the tile has not met yet, since it is near only in an image. */
static void meet_images(visit *v, bool positive) {
  if (v->lane->task->space->lattice.n > 0)
    kith_images_each(v->lane, positive, meet_image, v);
}

static void meet_all_runs(visit *v) {
  const kith_query_tile *queries = &v->lane->queries;
  for (uint32_t r = 0; r < v->lane->n_runs; r++) {
    kith_run run = kith_lane_run(v->lane, r);
    meet_run(v, run, 0, run.begin < queries->end && queries->begin < run.end);
  }
  flush(v);
  meet_images(v, false);
}

/* Whether the cells of a tile lie so close together that all its queries belong to each other. */
static bool belongs_together(const kith_lane *lane) {
  const kith_stencil *stencil = lane->task->stencil;
  return lane->tile_accepts &&
         stencil->steps[stencil->own].x_inside >= (int64_t)(lane->queries.x_last - lane->queries.x_first);
}

/* The pairs among the tile's own queries, in both orders and with themselves. */
static uint64_t count_within_tile(visit *v) {
  kith_lane *lane = v->lane;
  const kith_query_tile *queries = &lane->queries;
  uint64_t n = lane->tile.n_queries;
  if (belongs_together(lane)) {
    v->tally->inside += n * n;
    return n * n;
  }
  v->found = 0;
  test_positions(v, queries->begin, queries->end, false);
  flush(v);
  return v->found;
}

/* A set against itself, each pair of tiles once. Counting is not cut into windows of ids: every position of
 * the tile is a query. */
static void count_symmetric(visit *v) {
  uint64_t within = count_within_tile(v);
  v->found = 0;
  for (uint32_t r = 0; r < v->lane->n_runs; r++)
    meet_run(v, kith_lane_run(v->lane, r), v->lane->queries.end, false);
  flush(v);
  meet_images(v, true);
  v->tally->pairs += within + 2 * v->found;
}

static void count_tile(visit *v) {
  if (kith_lane_meets_once(v->lane->task, v->work)) {
    count_symmetric(v);
    return;
  }
  v->found = 0;
  meet_all_runs(v);
  v->tally->pairs += v->found;
}

/* The neighbours of the tile's queries: lane->degrees. */
static void count_rows(visit *v) {
  kith_lane *lane = v->lane;
  memset(lane->degrees, 0, sizeof lane->degrees);
  meet_all_runs(v);
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    lane->degrees[q] -= lane->task->drop_self && !lane->tile.half ? 1 : 0;
}

static void degrees_tile(visit *v) {
  const kith_lane *lane = v->lane;
  count_rows(v);
  for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
    v->work->degrees[lane->queries.ids[q]] = lane->degrees[q];
    v->tally->pairs += lane->degrees[q];
  }
}

/* Points the rows at their places in the table; returns how many neighbours they have together. */
static uint64_t open_rows(visit *v) {
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
static void take_distances(visit *v) {
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
static void fill_in_order(visit *v) {
  kith_lane *lane = v->lane;
  kith_ordered ordered = {0};
  while (kith_order_candidates(lane, &ordered))
    for (uint32_t i = 0; i < ordered.n; i += lane->capacity) {
      uint32_t left = ordered.n - i;
      kith_order_stage(lane, ordered.items + i, left < lane->capacity ? left : lane->capacity);
      flush(v);
    }
}

/* The rows of the tile as they were found, put in order. */
static void order_rows(visit *v) {
  const kith_work *work = v->work;
  for (uint32_t q = 0; q < v->lane->tile.n_queries; q++) {
    const uint64_t *offset = &work->offsets[v->lane->queries.ids[q] - work->first_row];
    uint64_t at = offset[0] - work->offsets[0];
    kith_order_row(v->lane, work->neighbors + at, work->distances ? work->distances + at : NULL,
                   offset[1] - offset[0]);
  }
}

static void fill_tile(visit *v) {
  kith_lane *lane = v->lane;
  uint64_t pairs = open_rows(v);
  v->tally->pairs += pairs;
  if (pairs == 0)
    return;
  memset(lane->self, 0xFF, sizeof lane->self);
  if (lane->orders)
    fill_in_order(v);
  else
    meet_all_runs(v);
  if (lane->task->sorted && !lane->orders)
    order_rows(v);
  if (v->work->distances)
    take_distances(v);
}

/* Takes room for the tile's rows from the pool, and notes where they begin; false: there is none left. */
static bool reserve_rows(visit *v, const uint32_t *lengths, uint64_t *begin) {
  kith_lane *lane = v->lane;
  uint64_t pairs = 0;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    pairs += lengths[q];
  *begin = kith_pool_reserve(v->work->pool, pairs);
  if (*begin == KITH_NO_ROOM)
    return false;
  uint64_t at = *begin;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
    v->work->degrees[lane->queries.ids[q]] = at << 32 | lengths[q];
    at += lengths[q];
  }
  v->tally->pairs += pairs;
  return true;
}

static void order_collected(visit *v, uint32_t *row, uint32_t length) {
  if (v->lane->task->sorted)
    kith_order_row(v->lane, row, NULL, length);
}

/* The lengths of the tile's rows: lane->degrees. Of a tile that may have met its candidates already. */
static void count_collected(visit *v) {
  kith_lane *lane = v->lane;
  const uint32_t *self = lane->tile.self;
  kith_lane_open_tile(lane);
  lane->tile.self = NULL;
  v->operation = KITH_DO_DEGREES;
  count_rows(v);
  v->operation = KITH_DO_COLLECT;
  lane->tile.self = self;
}

/* Fills rows of these lengths, one behind the other. */
static void fill_collected(visit *v, uint32_t *row) {
  kith_lane *lane = v->lane;
  kith_lane_open_tile(lane);
  uint32_t *next = row;
  for (uint32_t q = 0; q < lane->tile.n_queries; next += lane->degrees[q++])
    lane->rows.next[q] = next;
  memset(lane->self, 0xFF, sizeof lane->self);
  v->operation = KITH_DO_FILL;
  meet_all_runs(v);
  v->operation = KITH_DO_COLLECT;
  for (uint32_t q = 0; q < lane->tile.n_queries; row += lane->degrees[q++])
    order_collected(v, row, lane->degrees[q]);
}

/* A tile with long rows, or after one: counts them, then fills them where they belong in the pool. */
static void collect_long_rows(visit *v) {
  kith_lane *lane = v->lane;
  count_collected(v);
  v->too_long = false;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    v->too_long = v->too_long || lane->degrees[q] > lane->collect_limit;
  uint64_t at;
  if (reserve_rows(v, lane->degrees, &at))
    fill_collected(v, v->work->pool->ids + at);
}

/* Looks for rows in the lane's buffers, then moves them to the pool. */
static void collect_short_rows(visit *v) {
  kith_lane *lane = v->lane;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    lane->rows.next[q] = collected_row(lane, q);
  memset(lane->self, 0xFF, sizeof lane->self);
  meet_all_runs(v);
  if (v->too_long)
    return;
  uint32_t lengths[KITH_TILE_QUERIES] = {0};
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    lengths[q] = (uint32_t)(lane->rows.next[q] - collected_row(lane, q));
  const kith_pool *pool = v->work->pool;
  bool bypasses = kith_bypass_pays(pool->capacity, lane->task->queries->id_end);
  uint64_t at;
  if (!reserve_rows(v, lengths, &at))
    return;
  for (uint32_t q = 0; q < lane->tile.n_queries; at += lengths[q++]) {
    order_collected(v, collected_row(lane, q), lengths[q]);
    kith_copy_row(pool->ids + at, collected_row(lane, q), lengths[q] * sizeof *pool->ids, bypasses);
  }
}

static void collect_tile(visit *v) {
  if (atomic_load(&v->work->pool->overflow))
    return;
  memset(v->lane->rows.d2, 0, sizeof v->lane->rows.d2);
  if (!v->too_long)
    collect_short_rows(v);
  if (v->too_long)
    collect_long_rows(v);
}

static void visit_tile(visit *v) {
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
    collect_tile(v);
    break;
  case KITH_DO_PAIRS: /* another engine's */
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
  visit v = {.lane = lane, .work = work, .operation = work->operation, .tally = tally};
  kith_lane_begin(lane);
  bool rows = work->operation == KITH_DO_FILL || work->operation == KITH_DO_COLLECT;
  lane->tile.half = cpu->task.half && work->operation != KITH_DO_COUNT;
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
