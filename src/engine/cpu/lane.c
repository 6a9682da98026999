/* Lanes: tiles, runs and staging. See lane.h. */
#include "engine/cpu/lane.h"

#include "engine/cpu/ego.h"
#include "engine/cpu/images.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* A tile crosses into the next cell only while it holds fewer queries than this: a longer tile spreads the
 * cost of finding its runs, a wider one looks at more candidates than its queries need. */
enum { ENOUGH_QUERIES = 16, ENOUGH_SORTED = 40 }; /* more where candidates must be sorted for every tile */

/* Nor does it cross a wider gap than about this many cells: a neighbouring row may be crowded there. */
enum { FAR_CELLS = 8 };

/* Sieving candidates pays with so many queries to test each of them, in so many dimensions. */
enum { SIEVE_QUERIES = 8, SIEVE_DIMS = 2 };

uint32_t kith_lane_capacity(uint32_t dim) {
  size_t fit = (24 << 10) / (dim * sizeof(float)) / KITH_CANDIDATE_ALIGN * KITH_CANDIDATE_ALIGN;
  return (uint32_t)(fit < 64 ? 64 : fit > 2048 ? 2048 : fit);
}

/* The first i in [begin, end) with values[i] >= bound, or end: gallops from begin, since it is near. */
#define DEFINE_GALLOP(NAME, TYPE)                                                                              \
  static uint32_t NAME(const TYPE *values, uint32_t begin, uint32_t end, uint64_t bound) {                     \
    uint32_t step = 1;                                                                                         \
    while (end - begin > step && values[begin + step] < bound) {                                               \
      begin += step;                                                                                           \
      step *= 2;                                                                                               \
    }                                                                                                          \
    uint32_t high = end - begin > step ? begin + step : end;                                                   \
    while (begin < high) {                                                                                     \
      uint32_t middle = begin + (high - begin) / 2;                                                            \
      if (values[middle] < bound)                                                                              \
        begin = middle + 1;                                                                                    \
      else                                                                                                     \
        high = middle;                                                                                         \
    }                                                                                                          \
    return begin;                                                                                              \
  }
DEFINE_GALLOP(gallop_cells, uint32_t)
DEFINE_GALLOP(gallop_rows, uint64_t)

/* Sets the cursors for a query row. Rows are visited in ascending order within a piece of work, so each
 * cursor only moves forward. */
static void enter_row(kith_lane *lane, uint32_t row) {
  const kith_index *candidates = lane->task->candidates;
  const kith_stencil *stencil = lane->task->stencil;
  bool fresh = lane->row == UINT32_MAX || lane->row > row;
  int64_t number = (int64_t)lane->task->queries->row_number[row];
  for (uint32_t s = 0; s < stencil->n_steps; s++) {
    kith_cursor *cursor = &lane->cursors[s];
    int64_t sought = number + stencil->steps[s].row;
    if (fresh)
      cursor->row = 0;
    cursor->cell = cursor->cell_end = cursor->last = 0;
    if (sought < 0)
      continue;
    cursor->row = gallop_rows(candidates->row_number, cursor->row, candidates->n_rows, (uint64_t)sought);
    if (cursor->row < candidates->n_rows && candidates->row_number[cursor->row] == (uint64_t)sought) {
      cursor->cell = cursor->last = candidates->row_cell[cursor->row];
      cursor->cell_end = candidates->row_cell[cursor->row + 1];
    }
  }
  lane->row = row;
  lane->row_accepts = kith_grid_row_is_even(candidates->grid, (uint64_t)number);
}

/* Finds the box around the tile's queries, and puts the origin in its middle; returns their largest distance
 * from it, in the norm, or more. */
static double center_on_queries(kith_lane *lane) {
  const kith_index *index = lane->task->queries;
  double size = 0;
  for (uint32_t c = 0; c < index->dim; c++) {
    const double *column = (const double *)index->coords + c * index->stride;
    double min = INFINITY;
    double max = -INFINITY;
    for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
      double x = column[lane->queries.positions[q]];
      min = x < min ? x : min;
      max = x > max ? x : max;
    }
    lane->box[c] = min;
    lane->box[index->dim + c] = max;
    double origin = lane->origin[c] = min + (max / 2 - min / 2);
    double half = fmax(max - origin, origin - min); /* the origin is rounded */
    size = kith_norm_add(lane->predicate.norm, size, half);
  }
  lane->box_known = true;
  return kith_norm_distance(lane->predicate.norm, size) * (1 + 0x1p-20);
}

/* Every query has a limit of its own: the filter works with the largest of the tile, whose band holds for
 * smaller ones too; pairs are accepted untested within the smallest. */
static void take_limits(kith_lane *lane) {
  const kith_task *task = lane->task;
  double most = 0;
  double least = INFINITY;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
    double limit = lane->limits[q] = task->limits[lane->queries.ids[q]];
    lane->starts[q] = (float)-limit;
    most = limit > most ? limit : most;
    least = limit < least ? limit : least;
  }
  lane->predicate = kith_predicate_of(task->predicate->norm, most, lane->tile.dim);
  lane->least = least;
  lane->tile_accepts = lane->tile_accepts && least >= task->predicate->limit;
}

/* Decides how the tile is tested, and in what width it is staged. */
static void choose_test(kith_lane *lane) {
  lane->predicate = *lane->task->predicate;
  lane->least = lane->predicate.limit;
  if (lane->task->limits)
    take_limits(lane);
  lane->filter = lane->may_filter && lane->predicate.filter;
  lane->width = lane->index_width;
  lane->tile.truth = NULL;
  lane->tile.image = NULL;
  bool is_f64 = lane->index_width > sizeof(float);
  if (lane->filter && (is_f64 || lane->spread + lane->fold_spread > 0)) {
    double spread = lane->spread + lane->fold_spread + (is_f64 ? center_on_queries(lane) : 0);
    lane->filter = kith_predicate_narrow(&lane->predicate, lane->tile.dim, spread);
    if (lane->filter)
      lane->width = sizeof(float);
    lane->tile.truth = lane->filter ? &lane->truth : NULL;
  }
  assert(lane->filter || lane->spread == 0); /* rounded coordinates are for the filter only */
  kith_images_turn_home(lane);
  lane->needs_positions = lane->tile.truth || lane->ties;
}

/* Copies arrays of coordinates from an index to a buffer, narrower if the tile is. */
static void copy_coordinates(const kith_lane *lane, const kith_index *index, uint32_t begin, uint32_t end,
                             kith_copy copy) {
  copy.from = (const char *)index->coords + begin * lane->index_width;
  copy.from_stride = index->stride * lane->index_width;
  copy.bytes = (end - begin) * lane->index_width;
  copy.arrays = index->dim;
  if (kith_lane_is_narrow(lane))
    lane->table->narrow(&copy, lane->origin);
  else
    lane->table->copy(&copy);
}

/* Copies the coordinates of the tile's queries: all together if they are neighbours in the index. */
void kith_lane_stage_queries(kith_lane *lane) {
  const kith_index *index = lane->task->queries;
  const kith_query_tile *queries = &lane->queries;
  uint32_t n = lane->tile.n_queries;
  kith_copy copy = {.to = lane->query_coords, .to_stride = KITH_TILE_QUERIES * lane->width};
  if (n == queries->end - queries->begin) {
    copy_coordinates(lane, index, queries->begin, queries->end, copy);
    return;
  }
  for (uint32_t c = 0; c < index->dim; c++)
    for (uint32_t q = 0; q < n; q++) {
      const char *from =
          (const char *)index->coords + (c * index->stride + queries->positions[q]) * lane->index_width;
      char *to = copy.to + c * copy.to_stride + q * lane->width;
      if (kith_lane_is_narrow(lane))
        *(float *)(void *)to = (float)(*(const double *)(const void *)from - lane->origin[c]);
      else
        memcpy(to, from, lane->width);
    }
}

/* Decides whether to sieve candidates, and finds the box to sieve by.
 *
 * Let a be a query and b a candidate that belong together, as staged, and y the point of the box nearest to b:
 * then |b_c - y_c| <= |b_c - a_c| in every dimension, as a lies in the box. The sieve computes the size of b -
 * y in float like the filter does that of b - a, and without the limit in the sum. So what is shown for the
 * filter (docs/exactness.md) holds here: rounding lifts the sum to at most limit + band. A second band pays for
 * rounding the limit itself. */
void kith_lane_choose_sieve(kith_lane *lane) {
  uint32_t n = lane->tile.n_queries;
  lane->sieves = lane->filter && lane->tile.dim >= SIEVE_DIMS && n >= SIEVE_QUERIES;
  if (!lane->sieves)
    return;
  for (uint32_t c = 0; c < lane->tile.dim; c++)
    lane->table->bounds((const float *)lane->query_coords + c * (size_t)KITH_TILE_QUERIES, n,
                        &lane->sieve.low[c], &lane->sieve.high[c]);
  kith_images_open_sieve(lane);
  lane->sieve.limit = (float)(lane->predicate.limit + 2 * (double)lane->predicate.band);
}

/* Finds the cell of a position, setting the cursors if it begins a new row. */
static void enter_cell(kith_lane *lane, uint32_t position) {
  const kith_index *index = lane->task->queries;
  if (lane->row == UINT32_MAX || position < index->cell_start[lane->cell])
    lane->cell = kith_index_cell_at(index, position);
  lane->cell = gallop_cells(index->cell_start, lane->cell, index->n_cells, (uint64_t)position + 1);
  lane->cell -= index->cell_start[lane->cell] > position;
  if (lane->row == UINT32_MAX || lane->cell < index->row_cell[lane->row] ||
      lane->cell >= index->row_cell[lane->row + 1])
    enter_row(lane, kith_index_row_at(index, lane->cell));
}

/* Whether a tile of so many queries stops short of the cell at x. */
static bool is_tile_enough(const kith_lane *lane, uint32_t n, uint32_t x) {
  uint32_t enough = lane->orders ? ENOUGH_SORTED : ENOUGH_QUERIES;
  uint32_t far = FAR_CELLS + 4 * lane->task->queries->grid->reach[0];
  return n >= enough || x - lane->queries.x_last > far;
}

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Takes the positions of one cell from `position` on, those with ids in the window; returns where it stopped.
 */
static uint32_t take_queries(kith_lane *lane, uint32_t position, uint32_t end, const kith_work *work) {
  kith_query_tile *queries = &lane->queries;
  const uint32_t *ids = lane->task->queries->ids;
  uint32_t n = lane->tile.n_queries;
  for (; position < end && n < KITH_TILE_QUERIES; position++) {
    queries->positions[n] = position;
    queries->ids[n] = ids[position];
    n += ids[position] >= work->first_row && ids[position] < work->end_row;
  }
  lane->tile.n_queries = n;
  return position;
}

/* Takes all positions from the tile's begin to `end`. An index for counting has no ids. */
static void take_all(kith_lane *lane, uint32_t end) {
  kith_query_tile *queries = &lane->queries;
  uint32_t n = lane->tile.n_queries = end - queries->begin;
  const uint32_t *ids = lane->task->queries->ids;
  for (uint32_t q = 0; q < n; q++)
    queries->positions[q] = queries->begin + q;
  if (ids)
    memcpy(queries->ids, ids + queries->begin, n * sizeof *ids);
}

/* A tile of the positions from `position` on. */
static uint32_t cut_range(kith_lane *lane, uint32_t position, const kith_work *work) {
  const kith_index *index = lane->task->queries;
  kith_query_tile *queries = &lane->queries;
  bool all = work->end_row == UINT64_MAX;
  uint32_t row_end = index->row_cell[lane->row + 1];
  uint32_t taken = 0;
  queries->begin = position;
  for (uint32_t cell = lane->cell; cell < row_end && position < work->end; cell++) {
    uint32_t x = index->cell_x[cell];
    if (taken > 0 && is_tile_enough(lane, taken, x))
      break;
    uint32_t end = min_u32(index->cell_start[cell + 1], work->end);
    position = all ? min_u32(end, queries->begin + KITH_TILE_QUERIES) : take_queries(lane, position, end, work);
    uint32_t now = all ? position - queries->begin : lane->tile.n_queries;
    if (now == taken)
      continue;
    if (taken == 0)
      queries->x_first = x;
    queries->x_last = x;
    taken = now;
  }
  queries->end = position;
  if (all)
    take_all(lane, position);
  return position;
}

/* A tile of the listed positions from entry `at` on. */
static uint32_t cut_listed(kith_lane *lane, uint32_t at, const kith_work *work) {
  const kith_index *index = lane->task->queries;
  kith_query_tile *queries = &lane->queries;
  uint32_t row_end = index->row_cell[lane->row + 1];
  uint32_t cell = lane->cell;
  uint32_t n = 0;
  queries->begin = work->list[at];
  for (; at < work->end && n < KITH_TILE_QUERIES; at++) {
    uint32_t position = work->list[at];
    cell = gallop_cells(index->cell_start, cell, index->n_cells, (uint64_t)position + 1);
    cell -= index->cell_start[cell] > position;
    uint32_t x = index->cell_x[cell];
    if (cell >= row_end || (n > 0 && x > queries->x_last && is_tile_enough(lane, n, x)))
      break;
    uint32_t id = queries->ids[n] = index->ids[position];
    queries->positions[n] = position;
    queries->end = position + 1;
    queries->x_first = n == 0 ? x : queries->x_first;
    queries->x_last = x;
    n += id >= work->first_row && id < work->end_row;
  }
  lane->tile.n_queries = n;
  return at;
}

/* The next tile of a grid: of one row of cells. */
static uint32_t cut_from_row(kith_lane *lane, uint32_t at, const kith_work *work) {
  const kith_index *index = lane->task->queries;
  kith_query_tile *queries = &lane->queries;
  enter_cell(lane, work->list ? work->list[at] : at);
  lane->tile.n_queries = 0;
  queries->x_first = queries->x_last = 0;
  at = work->list ? cut_listed(lane, at, work) : cut_range(lane, at, work);
  lane->tile_accepts = lane->row_accepts && kith_grid_is_even(index->grid, 0, queries->x_first) &&
                       kith_grid_is_even(index->grid, 0, queries->x_last);
  return at;
}

uint32_t kith_lane_next_tile(kith_lane *lane, uint32_t at, const kith_work *work) {
  at = lane->ego ? kith_ego_next_tile(lane, at, work) : cut_from_row(lane, at, work);
  kith_lane_open_tile(lane);
  return at;
}

void kith_lane_open_tile(kith_lane *lane) {
  lane->tile.n_candidates = 0;
  lane->box_known = false;
  choose_test(lane);
  kith_lane_stage_queries(lane);
  kith_lane_choose_sieve(lane);
}

static kith_run run_of_step(kith_lane *lane, uint32_t s) {
  const kith_index *candidates = lane->task->candidates;
  const kith_step *step = &lane->task->stencil->steps[s];
  const kith_query_tile *queries = &lane->queries;
  kith_cursor *cursor = &lane->cursors[s];
  if (cursor->cell == cursor->cell_end)
    return (kith_run){0};
  bool own_reach = lane->task->limits; /* that of the tile: the next one may reach back farther */
  int64_t x_reach = own_reach
                        ? kith_step_x_reach(candidates->grid, step, lane->predicate.norm, lane->predicate.reach)
                        : step->x_reach;
  if (x_reach < 0)
    return (kith_run){0};
  uint64_t low = queries->x_first > x_reach ? queries->x_first - (uint64_t)x_reach : 0;
  uint64_t high = (uint64_t)queries->x_last + (uint64_t)x_reach;
  const uint32_t *x = candidates->cell_x;
  uint32_t first = gallop_cells(x, cursor->cell, cursor->cell_end, low);
  uint32_t last = gallop_cells(x, cursor->last, cursor->cell_end, high + 1);
  if (!own_reach) {
    cursor->cell = first;
    cursor->last = last;
  }
  kith_run run = {.begin = candidates->cell_start[first], .end = candidates->cell_start[last]};
  run.inside_begin = run.inside_end = run.end;
  if (step->x_inside < 0 || !lane->tile_accepts)
    return run;
  int64_t inside_low = (int64_t)queries->x_last - step->x_inside;
  int64_t inside_high = (int64_t)queries->x_first + step->x_inside;
  const kith_grid *grid = candidates->grid;
  if (grid->tails[0]) {
    inside_low = (int64_t)fmax((double)inside_low, ceil(grid->before[0]));
    inside_high = (int64_t)fmin((double)inside_high, floor(grid->before[0] + grid->even[0]) - 1);
  }
  if (inside_low <= inside_high) {
    uint32_t from = gallop_cells(x, first, last, inside_low > 0 ? (uint64_t)inside_low : 0);
    uint32_t to = gallop_cells(x, from, last, (uint64_t)inside_high + 1);
    run.inside_begin = candidates->cell_start[from];
    run.inside_end = candidates->cell_start[to];
    run.inside_cells = to - from;
  }
  return run;
}

kith_run kith_lane_run(kith_lane *lane, uint32_t r) {
  return lane->ego ? kith_ego_tile_run(lane, r) : run_of_step(lane, r);
}

/* The box around the queries of the tile, in the coordinates of the index. */
void kith_lane_find_box(kith_lane *lane) {
  const kith_index *index = lane->task->queries;
  if (lane->box_known)
    return;
  lane->box_known = true;
  if (lane->sieves && lane->index_width == sizeof(float)) { /* staged as they are, and their box is known */
    for (uint32_t c = 0; c < index->dim; c++) {
      lane->box[c] = lane->sieve.low[c];
      lane->box[index->dim + c] = lane->sieve.high[c];
    }
    return;
  }
  const uint32_t *positions = lane->queries.positions;
  for (uint32_t c = 0; c < index->dim; c++) {
    const float *floats = (const float *)index->coords + c * index->stride;
    const double *doubles = (const double *)index->coords + c * index->stride;
    double low = INFINITY;
    double high = -INFINITY;
    for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
      double x = index->dtype == KITH_F32 ? (double)floats[positions[q]] : doubles[positions[q]];
      low = x < low ? x : low;
      high = x > high ? x : high;
    }
    lane->box[c] = low;
    lane->box[index->dim + c] = high;
  }
}

/* Whether all points of two boxes belong together. The largest difference in each dimension goes through the
 * operations of the definition, in its order. Rounding is monotone, so no pair has a larger size: this needs no
 * margin, and is right for eps = 0 too. Where coordinates are rounded in the index, differences may be larger
 * by `rounding`. */
static bool boxes_belong(const double *a, const double *b, const kith_lane *lane) {
  uint32_t dim = lane->tile.dim;
  double rounding = 0x1p-22 * lane->spread;
  double far = 0;
  for (uint32_t c = 0; c < dim; c++)
    far = kith_norm_add(lane->predicate.norm, far, fmax(a[dim + c] - b[c], b[dim + c] - a[c]) + rounding);
  return far <= lane->least;
}

bool kith_lane_crowd(kith_lane *lane, uint32_t begin, uint32_t end, kith_crowd *crowd) {
  const kith_index *index = lane->task->candidates;
  if (index->n_crowds == 0 || end - begin < KITH_CROWD || lane->ties)
    return false;
  uint32_t low = 0; /* the first crowd that ends behind begin */
  uint32_t high = index->n_crowds;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (index->crowds[middle].end <= begin)
      low = middle + 1;
    else
      high = middle;
  }
  kith_lane_find_box(lane);
  for (; low < index->n_crowds && index->crowds[low].begin < end; low++)
    if (boxes_belong(lane->box, index->crowd_box + (size_t)low * 2 * index->dim, lane)) {
      *crowd = index->crowds[low];
      crowd->begin = crowd->begin < begin ? begin : crowd->begin;
      crowd->end = crowd->end > end ? end : crowd->end;
      return true;
    }
  return false;
}

void kith_lane_stage(kith_lane *lane, uint32_t begin, uint32_t end) {
  const kith_index *index = lane->task->candidates;
  kith_tile *tile = &lane->tile;
  kith_copy copy = {.to = (char *)lane->candidate_coords + tile->n_candidates * lane->width,
                    .to_stride = tile->stride * lane->width};
  copy_coordinates(lane, index, begin, end, copy);
  if (lane->needs_positions)
    lane->table->number(lane->candidate_positions + tile->n_candidates, begin, end - begin);
  if (lane->needs_ids) {
    copy = (kith_copy){.to = (char *)(lane->candidate_ids + tile->n_candidates),
                       .from = (const char *)(index->ids + begin),
                       .bytes = (end - begin) * sizeof(uint32_t),
                       .arrays = 1};
    lane->table->copy(&copy);
  }
  tile->n_candidates += end - begin;
}

void kith_lane_sieve(kith_lane *lane, uint32_t begin, uint32_t end) {
  const kith_index *index = lane->task->candidates;
  uint32_t staged = lane->tile.n_candidates;
  kith_sieve *sieve = &lane->sieve;
  sieve->from = (const char *)index->coords + begin * lane->index_width;
  sieve->n = end - begin;
  sieve->to = (float *)lane->candidate_coords + staged;
  sieve->ids = lane->needs_ids ? index->ids + begin : NULL;
  sieve->ids_to = lane->candidate_ids + staged;
  sieve->position = begin;
  sieve->positions_to = lane->needs_positions || lane->orders ? lane->candidate_positions + staged : NULL;
  lane->tile.n_candidates = staged + lane->exact_kernels->sieve(sieve, lane->tile.dim);
}

/* Always a whole vector of padding, wherever the last candidate is: there is room, and the loops unroll. */
void kith_lane_seal(kith_lane *lane) {
  const kith_tile *tile = &lane->tile;
  for (uint32_t c = 0; c < tile->dim; c++) {
    size_t at = c * (size_t)tile->stride + tile->n_candidates;
    if (lane->width == sizeof(float))
      for (uint32_t i = 0; i < KITH_CANDIDATE_ALIGN; i++)
        ((float *)lane->candidate_coords)[at + i] = INFINITY;
    else
      for (uint32_t i = 0; i < KITH_CANDIDATE_ALIGN; i++)
        ((double *)lane->candidate_coords)[at + i] = INFINITY;
  }
}
