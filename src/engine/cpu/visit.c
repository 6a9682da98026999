/* A tile and its candidates: see visit.h. */
#include "engine/cpu/visit.h"

#include "engine/cpu/box_runs.h"
#include "engine/cpu/grid.h"
#include "engine/cpu/images.h"

#include "base/bypass.h"

#include <string.h>

/* Shorter runs of sure neighbours are tested like the others: emptying the buffers for them costs more. */
enum { INSIDE_FROM = 48 };

/* Adds the pairs of the staged tile to degrees[], whatever it takes. */
static void settle_staged(const kith_lane *lane, uint32_t *degrees) {
  if (lane->filter)
    lane->filter_kernels->settled(&lane->tile, &lane->predicate, degrees);
  else if (lane->tile.image)
    lane->image_kernels->degrees(&lane->tile, degrees);
  else
    lane->exact_kernels->degrees_exact(&lane->tile, degrees);
}

static void count_staged(kith_visit *v) {
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

static void degrees_staged(kith_visit *v) {
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

static void fill_staged(kith_visit *v) {
  kith_lane *lane = v->lane;
  if (lane->filter)
    lane->filter_kernels->fill(&lane->tile, &lane->predicate, &lane->rows);
  else if (lane->tile.image)
    lane->image_kernels->fill(&lane->tile, &lane->rows);
  else
    lane->exact_kernels->fill_exact(&lane->tile, &lane->rows);
  memset(lane->self, 0xFF, sizeof lane->self);
}

void kith_visit_flush(kith_visit *v) {
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
  if (v->operation == KITH_DO_COLLECT || v->operation == KITH_DO_PAIRS)
    kith_collect_look(v);
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
static void stage_positions(kith_visit *v, uint32_t begin, uint32_t end, staging how) {
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
      kith_visit_flush(v);
  }
}

static uint32_t clamp_u32(uint32_t x, uint32_t low, uint32_t high) {
  return x < low ? low : x > high ? high : x;
}

/* In the row of the queries themselves these must be found among the candidates, if they are to be left out:
 * there, nothing is dropped. */
static void test_positions(kith_visit *v, uint32_t begin, uint32_t end, bool own_row) {
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
static void accept_for(kith_visit *v, uint32_t q, uint32_t begin, uint32_t end) {
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
static void accept_half(kith_visit *v, uint32_t begin, uint32_t end) {
  const kith_lane *lane = v->lane;
  const kith_index *index = lane->task->candidates;
  for (uint32_t cell = kith_index_cell_at(index, begin); begin < end; cell++) {
    uint32_t stop = index->cell_start[cell + 1] < end ? index->cell_start[cell + 1] : end;
    for (uint32_t q = 0; q < lane->tile.n_queries; q++)
      accept_for(v, q, first_above(index->ids, begin, stop, lane->queries.ids[q]), stop);
    begin = stop;
  }
}

static void accept_positions(kith_visit *v, uint32_t begin, uint32_t end) {
  kith_lane *lane = v->lane;
  uint32_t n = lane->tile.n_queries;
  if (v->operation == KITH_DO_COUNT) {
    v->tally->inside += (uint64_t)n * (end - begin);
    v->found += (uint64_t)n * (end - begin);
    return;
  }
  if (v->operation != KITH_DO_DEGREES)
    kith_visit_flush(v); /* rows are in index order: what is staged comes first */
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
static bool is_worth_accepting(const kith_visit *v, uint32_t points, uint32_t cells) {
  bool to_buffers = v->operation == KITH_DO_COLLECT || v->operation == KITH_DO_PAIRS;
  if (v->work->distances || to_buffers)
    return false;
  return points >= (v->lane->tile.half ? INSIDE_FROM * (uint64_t)cells : INSIDE_FROM);
}

/* Meets positions of which none is known to be inside: only crowded cells are looked at once more. */
static void meet_positions(kith_visit *v, uint32_t begin, uint32_t end, bool own_row) {
  kith_crowd crowd;
  while (kith_lane_crowd(v->lane, begin, end, &crowd) && is_worth_accepting(v, crowd.end - crowd.begin, 1)) {
    test_positions(v, begin, crowd.begin, own_row);
    accept_positions(v, crowd.begin, crowd.end);
    begin = crowd.end;
  }
  test_positions(v, begin, end, own_row);
}

/* Meets the candidates of a run, except those before position `from`. */
static void meet_run(kith_visit *v, kith_run run, uint32_t from, bool own_row) {
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
  kith_visit *v = user;
  kith_box_runs runs;
  kith_run run;
  kith_box_runs_begin(v->lane, 0, &runs);
  while (kith_box_runs_next(v->lane, &runs, &run))
    test_positions(v, run.begin, run.end, false);
  kith_visit_flush(v);
}

/* In a periodic box: what the tile has not met yet, since it is near only in an image. */
static void meet_images(kith_visit *v, bool positive) {
  if (v->lane->task->space->lattice.n > 0)
    kith_images_each(v->lane, positive, meet_image, v);
}

/* The runs of a tile, in ascending order: those of its row, or those that reach around a periodic box, from a
 * row of the index on. */
typedef struct tile_runs {
  uint32_t next;
  kith_box_runs around;
} tile_runs;

static void begin_runs(const kith_lane *lane, uint32_t first_row, tile_runs *runs) {
  runs->next = 0;
  if (lane->periodic.around)
    kith_box_runs_begin(lane, first_row, &runs->around);
}

static bool next_run(kith_lane *lane, tile_runs *runs, kith_run *run) {
  if (lane->periodic.around)
    return kith_box_runs_next(lane, &runs->around, run);
  if (runs->next == lane->n_runs)
    return false;
  *run = kith_lane_run(lane, runs->next++);
  return true;
}

void kith_visit_all(kith_visit *v) {
  const kith_query_tile *queries = &v->lane->queries;
  tile_runs runs;
  kith_run run;
  begin_runs(v->lane, 0, &runs);
  while (next_run(v->lane, &runs, &run))
    meet_run(v, run, 0, run.begin < queries->end && queries->begin < run.end);
  kith_visit_flush(v);
  meet_images(v, false);
}

void kith_visit_itself(kith_visit *v) {
  test_positions(v, v->lane->queries.begin, v->lane->queries.end, false);
  kith_visit_flush(v);
}

void kith_visit_behind(kith_visit *v) {
  tile_runs runs;
  kith_run run;
  begin_runs(v->lane, v->lane->periodic.around ? v->lane->grid->row : 0, &runs);
  while (next_run(v->lane, &runs, &run))
    meet_run(v, run, v->lane->queries.end, false);
  kith_visit_flush(v);
  meet_images(v, true);
}

void kith_visit_degrees(kith_visit *v) {
  kith_lane *lane = v->lane;
  memset(lane->degrees, 0, sizeof lane->degrees);
  kith_visit_all(v);
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    lane->degrees[q] -= lane->task->drop_self && !lane->tile.half ? 1 : 0;
}
