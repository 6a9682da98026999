/* Runs near a box: see box_runs.h. */
#include "engine/cpu/box_runs.h"

#include "engine/cpu/search.h"

#include <math.h>

/* ---- cells ---- */

/* The cells of what lies between two coordinates. Cells rise with coordinates, so those of points between two
 * of them lie between theirs. Where cells are bent the logarithm is trusted to one cell. */
static kith_cell_span cells_between(const kith_grid *grid, uint32_t j, double low, double high) {
  kith_cell_span span = {kith_grid_cell(grid, j, low), kith_grid_cell(grid, j, high)};
  if (grid->tails[j]) {
    span.first -= span.first > 0;
    span.last += span.last + 1 < grid->cells[j];
  }
  return span;
}

/* The period of an axis around which the box may reach; 0: none. */
static double period_of(const kith_lane *lane, uint32_t c) {
  return lane->periodic.around ? kith_lattice_side(&lane->task->space->lattice, c) : 0;
}

/* Sets the cells of what lies between two coordinates of which one or both are beyond the faces of a period: of
 * two spans, where they do not touch. */
static void set_spans_around(const kith_grid *grid, uint32_t j, double low, double high, double period,
                             kith_box_runs *runs) {
  bool below = low < 0;
  bool above = high >= period;
  kith_cell_span left = cells_between(grid, j, 0, below ? high : high - period);
  kith_cell_span right = cells_between(grid, j, below ? low + period : low, period);
  left.first = 0;
  right.last = grid->cells[j] - 1;
  bool apart = left.last + 1 < right.first && !(below && above);
  runs->n_spans[j] = apart ? 2 : 1;
  runs->spans[j][0] = apart ? left : (kith_cell_span){0, right.last};
  runs->spans[j][1] = right;
}

/* Sets the cells within reach along grid dimension j. */
static void set_spans(const kith_lane *lane, uint32_t j, kith_box_runs *runs) {
  const kith_grid *grid = lane->task->candidates->grid;
  uint32_t c = grid->dims[j];
  double period = period_of(lane, c);
  double low = lane->periodic.near_box[c] + lane->periodic.shift[c];
  double high = lane->periodic.near_box[lane->tile.dim + c] + lane->periodic.shift[c];
  double reach =
      lane->predicate.reach + 0x1p-46 * (fabs(low) + fabs(high) + fabs(lane->periodic.shift[c]) + period);
  low -= reach;
  high += reach;
  if (period > 0 && (low < 0 || high >= period)) {
    set_spans_around(grid, j, low, high, period, runs);
    return;
  }
  runs->n_spans[j] = 1;
  runs->spans[j][0] = cells_between(grid, j, low, high);
}

/* ---- rows ---- */

/* Finds the rows whose cells are runs->at in dimensions 2 and more, and in the span of dimension 1. They come
 * after all that were found before. */
static void find_rows(const kith_lane *lane, kith_box_runs *runs) {
  const kith_index *index = lane->task->candidates;
  const kith_grid *grid = index->grid;
  uint64_t number = 0;
  for (uint32_t j = 2; j < grid->k; j++)
    number += grid->stride[j] * runs->at[j];
  runs->end = number + 1;
  if (grid->k > 1) {
    const kith_cell_span *span = &runs->spans[1][runs->span[1]];
    runs->end = number + span->last + 1; /* stride[1] is 1 */
    number += span->first;
  }
  runs->row = gallop_row(index->row_number, runs->row, index->n_rows, number);
}

/* Moves on to the next span of dimension j; false, and to the first one, after the last. */
static bool next_span(kith_box_runs *runs, uint32_t j) {
  bool more = runs->span[j] + 1 < runs->n_spans[j];
  runs->span[j] = more ? runs->span[j] + 1 : 0;
  return more;
}

/* The same for its cells. */
static bool next_cell(kith_box_runs *runs, uint32_t j) {
  if (runs->at[j] < runs->spans[j][runs->span[j]].last) {
    runs->at[j]++;
    return true;
  }
  bool more = next_span(runs, j);
  runs->at[j] = runs->spans[j][runs->span[j]].first;
  return more;
}

/* Moves on to the next rows, in ascending order. */
static void next_rows(const kith_lane *lane, kith_box_runs *runs) {
  uint32_t k = lane->task->candidates->grid->k;
  bool more = k > 1 && next_span(runs, 1);
  for (uint32_t j = 2; j < k && !more; j++)
    more = next_cell(runs, j);
  runs->over = !more;
  if (more)
    find_rows(lane, runs);
}

/* ---- runs ---- */

/* The first of the cells [begin, end) of a row that is `x` or behind it. No two have the same x, so that it is
 * at most as many cells on as x is. */
static uint32_t cell_of_row(const uint32_t *cell_x, uint32_t begin, uint32_t end, uint64_t x) {
  if (begin == end || x <= cell_x[begin])
    return begin;
  uint64_t away = x - cell_x[begin];
  uint32_t most = away < end - begin ? begin + (uint32_t)away : end;
  return cell_x[most - 1] < x ? most : first_cell(cell_x, begin, most, x);
}

/* The next run of a row and a span; false when there are no more. */
static bool find_run(const kith_lane *lane, kith_box_runs *runs, kith_run *run) {
  const kith_index *index = lane->task->candidates;
  while (!runs->over && (runs->row == index->n_rows || index->row_number[runs->row] >= runs->end))
    next_rows(lane, runs);
  if (runs->over)
    return false;
  const kith_cell_span *span = &runs->spans[0][runs->span[0]];
  uint32_t begin = index->row_cell[runs->row];
  uint32_t end = index->row_cell[runs->row + 1];
  begin = cell_of_row(index->cell_x, begin, end, span->first);
  end = cell_of_row(index->cell_x, begin, end, (uint64_t)span->last + 1);
  *run = (kith_run){.begin = index->cell_start[begin], .end = index->cell_start[end]};
  if (!next_span(runs, 0))
    runs->row++;
  return true;
}

void kith_box_runs_begin(const kith_lane *lane, uint32_t first_row, kith_box_runs *runs) {
  const kith_index *index = lane->task->candidates;
  *runs = (kith_box_runs){.row = first_row, .over = index->n == 0};
  for (uint32_t j = 0; j < index->grid->k; j++) {
    set_spans(lane, j, runs);
    runs->at[j] = runs->spans[j][0].first;
  }
  find_rows(lane, runs);
}

bool kith_box_runs_next(const kith_lane *lane, kith_box_runs *runs, kith_run *run) {
  *run = runs->next;
  runs->next = (kith_run){0};
  kith_run more;
  while (find_run(lane, runs, &more)) {
    if (more.begin == more.end)
      continue;
    if (run->begin == run->end) {
      *run = more;
    } else if (run->end == more.begin) {
      run->end = more.end;
    } else {
      runs->next = more;
      break;
    }
  }
  return run->begin < run->end;
}
