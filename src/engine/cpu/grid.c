/* Walking the rows of a grid: see grid.h. */
#include "engine/cpu/grid.h"

#include "engine/cpu/search.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* A tile crosses into the next cell only while it holds fewer queries than this: a longer tile spreads the
 * cost of finding its runs, a wider one looks at more candidates than its queries need. Those cost more where
 * rows are filled, and less where candidates must be sorted for every tile. */
enum { ENOUGH_QUERIES = 24, ENOUGH_ROWS = 16, ENOUGH_SORTED = 40 };

/* Nor does it cross a wider gap than about this many cells: a neighbouring row may be crowded there. */
enum { FAR_CELLS = 8 };

/* ---- rows ------------------------------------------------------------------------------------------------ */

size_t kith_grid_walk_bytes(const kith_stencil *stencil) {
  return stencil->n_steps * (sizeof(kith_step_group) + sizeof(kith_cursor));
}

void kith_grid_walk_make(kith_grid_walk *walk, const kith_stencil *stencil, char *buffer) {
  *walk = (kith_grid_walk){.groups = (kith_step_group *)buffer, .row = UINT32_MAX};
  walk->cursors = (kith_cursor *)(walk->groups + stencil->n_steps);
  for (uint32_t s = 0; s < stencil->n_steps; s++) {
    int64_t row = stencil->steps[s].row;
    kith_step_group *group = walk->groups + walk->n_groups;
    assert(s == 0 || row > stencil->steps[s - 1].row);
    if (s > 0 && s != stencil->own && row == stencil->steps[s - 1].row + 1) {
      group[-1].n++;
      continue;
    }
    if (s == stencil->own)
      walk->own_group = walk->n_groups;
    *group = (kith_step_group){.row = row, .first = s, .n = 1};
    walk->n_groups++;
  }
}

/* Sets cursors for those rows of a group that hold candidates. The first has the number `first`, below 0 if
 * there is none. */
static void set_cursors(kith_lane *lane, const kith_step_group *group, int64_t first) {
  const kith_index *candidates = lane->task->candidates;
  for (uint32_t r = group->at; r < candidates->n_rows; r++) {
    int64_t i = (int64_t)candidates->row_number[r] - first;
    if (i >= group->n)
      break;
    uint32_t cell = candidates->row_cell[r];
    lane->grid->cursors[lane->n_runs++] = (kith_cursor){.step = group->first + (uint32_t)i,
                                                        .cell = cell,
                                                        .cell_end = candidates->row_cell[r + 1],
                                                        .last = cell};
  }
}

/* Finds the rows around a query row: all of them, or from its own on, where every pair is met once. Groups are
 * in ascending order, and so are the query rows of a piece of work: the rows of a group are at or after those
 * of the last query row, and at first at or after those of the group before. */
static void enter_row(kith_lane *lane, uint32_t row, bool once) {
  kith_grid_walk *walk = lane->grid;
  const kith_index *candidates = lane->task->candidates;
  bool fresh = walk->row == UINT32_MAX || walk->row > row;
  int64_t number = (int64_t)lane->task->queries->row_number[row];
  uint32_t at = 0;
  lane->n_runs = 0;
  for (uint32_t g = once ? walk->own_group : 0; g < walk->n_groups; g++) {
    kith_step_group *group = &walk->groups[g];
    int64_t first = number + group->row;
    uint64_t sought = first > 0 ? (uint64_t)first : 0;
    at = group->at = gallop_row(candidates->row_number, fresh ? at : group->at, candidates->n_rows, sought);
    set_cursors(lane, group, first);
  }
  walk->row = row;
  walk->row_accepts = kith_grid_row_is_even(candidates->grid, (uint64_t)number);
}

/* ---- tiles ----------------------------------------------------------------------------------------------- */

/* Finds the cell of a position, setting the cursors if it begins a new row. */
static void enter_cell(kith_lane *lane, uint32_t position, bool once) {
  const kith_index *index = lane->task->queries;
  kith_grid_walk *walk = lane->grid;
  if (walk->row == UINT32_MAX || position < index->cell_start[walk->cell])
    walk->cell = kith_index_cell_at(index, position);
  walk->cell = gallop_cell(index->cell_start, walk->cell, index->n_cells, (uint64_t)position + 1);
  walk->cell -= index->cell_start[walk->cell] > position;
  if (walk->row == UINT32_MAX || walk->cell < index->row_cell[walk->row] ||
      walk->cell >= index->row_cell[walk->row + 1])
    enter_row(lane, kith_index_row_at(index, walk->cell), once);
}

/* Whether a tile of so many queries stops short of the cell at x. */
static bool is_tile_enough(const kith_lane *lane, uint32_t n, uint32_t x) {
  uint32_t enough = lane->orders ? ENOUGH_SORTED : lane->needs_ids ? ENOUGH_ROWS : ENOUGH_QUERIES;
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
  uint32_t row_end = index->row_cell[lane->grid->row + 1];
  uint32_t taken = 0;
  queries->begin = position;
  for (uint32_t cell = lane->grid->cell; cell < row_end && position < work->end; cell++) {
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
  uint32_t row_end = index->row_cell[lane->grid->row + 1];
  uint32_t cell = lane->grid->cell;
  uint32_t n = 0;
  queries->begin = work->list[at];
  for (; at < work->end && n < KITH_TILE_QUERIES; at++) {
    uint32_t position = work->list[at];
    cell = gallop_cell(index->cell_start, cell, index->n_cells, (uint64_t)position + 1);
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

uint32_t kith_grid_next_tile(kith_lane *lane, uint32_t at, const kith_work *work) {
  const kith_index *index = lane->task->queries;
  kith_query_tile *queries = &lane->queries;
  enter_cell(lane, work->list ? work->list[at] : at, kith_lane_meets_once(lane->task, work));
  lane->tile.n_queries = 0;
  queries->x_first = queries->x_last = 0;
  at = work->list ? cut_listed(lane, at, work) : cut_range(lane, at, work);
  lane->tile_accepts = lane->grid->row_accepts && kith_grid_is_even(index->grid, 0, queries->x_first) &&
                       kith_grid_is_even(index->grid, 0, queries->x_last);
  return at;
}

/* ---- runs ------------------------------------------------------------------------------------------------ */

kith_run kith_grid_tile_run(kith_lane *lane, uint32_t r) {
  const kith_index *candidates = lane->task->candidates;
  kith_cursor *cursor = &lane->grid->cursors[r];
  const kith_step *step = &lane->task->stencil->steps[cursor->step];
  const kith_query_tile *queries = &lane->queries;
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
  uint32_t first = gallop_cell(x, cursor->cell, cursor->cell_end, low);
  uint32_t last = gallop_cell(x, cursor->last, cursor->cell_end, high + 1);
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
    uint32_t from = gallop_cell(x, first, last, inside_low > 0 ? (uint64_t)inside_low : 0);
    uint32_t to = gallop_cell(x, from, last, (uint64_t)inside_high + 1);
    run.inside_begin = candidates->cell_start[from];
    run.inside_end = candidates->cell_start[to];
    run.inside_cells = to - from;
  }
  return run;
}
