/* The grid: see grid.h. */
#include "index/grid.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double SLACK = 1 + 0x1p-16;
static const double MAX_CELLS = 0x1p29;   /* per dimension: keeps rounding below 2^-20 of a cell */
static const double MIN_SIDE = 0x1p-1000; /* 1 / side must not overflow */

static uint32_t bits_for(uint64_t values) {
  uint32_t bits = 0;
  while (bits < 64 && (UINT64_C(1) << bits) < values)
    bits++;
  return bits;
}

/* Cells before, among and after the even ones, for a side. */
typedef struct cell_counts {
  double before, even, after;
} cell_counts;

static cell_counts count_cells(const kith_grid_spec *spec, uint32_t d, double side) {
  cell_counts counts = {.even = (spec->high[d] - spec->low[d]) / side};
  double left = fmin((spec->low[d] - spec->min[d]) / side, DBL_MAX);
  double right = fmin((spec->max[d] - spec->high[d]) / side, DBL_MAX);
  counts.before = left > 0 ? -kith_grid_bend(-left, counts.even) : 0;
  counts.after = right > 0 ? kith_grid_bend(counts.even + right, counts.even) - counts.even : 0;
  return counts;
}

static uint32_t reach_in_cells(double reach, double side) {
  return (uint32_t)fmin(ceil(reach / side + 0x1p-19), MAX_CELLS);
}

static void set_period(kith_grid *grid, uint32_t j, double period, double cells) {
  grid->origin[j] = 0;
  grid->side[j] = period / cells;
  grid->inverse[j] = cells / period;
  grid->even[j] = cells;
  grid->wraps[j] = true;
  grid->cells[j] = (uint32_t)cells;
}

/* The least float32 number in cell 1, 2, ... or in a later one. */
static float first_in_cell(const kith_grid *grid, uint32_t j, uint32_t cell) {
  float x = (float)(cell * grid->side[j]);
  while (kith_grid_cell(grid, j, (double)x) >= cell)
    x = nextafterf(x, -INFINITY);
  while (kith_grid_cell(grid, j, (double)x) < cell)
    x = nextafterf(x, INFINITY);
  return x;
}

/* The largest float32 number before a cell; before the one behind the last, that is before the period, which
 * may lie between two float32 numbers. */
static double last_before(const kith_grid *grid, uint32_t j, uint32_t cell, double period) {
  float next = cell < grid->cells[j] ? first_in_cell(grid, j, cell) : (float)period;
  if (cell == grid->cells[j] && (double)next < period)
    return next;
  return nextafterf(next, -INFINITY);
}

/* Whether float32 numbers within `reach`, and their images, are at most reach[j] cells apart: the last ones
 * before a cell are too far away from the first ones that are farther. */
static bool keeps_floats_near(const kith_grid *grid, uint32_t j, double period, double reach) {
  for (uint32_t cell = 1; cell <= grid->cells[j]; cell++) {
    uint32_t far = cell + grid->reach[j];
    bool beyond = far >= grid->cells[j];
    uint32_t place = beyond ? far - grid->cells[j] : far;
    double first = (place > 0 ? first_in_cell(grid, j, place) : 0) + (beyond ? period : 0);
    if (!(first - last_before(grid, j, cell, period) > reach + 0x1p-50 * period))
      return false;
  }
  return true;
}

/* Cuts a period into cells of at least `side`, or into one; into one more if float32 numbers allow it. */
static void cut_period(kith_grid *grid, uint32_t j, const kith_grid_spec *spec, double side, double reach) {
  enum { FEW = 64 }; /* cells, for one more to matter */
  double period = spec->period[spec->dims[j]];
  double cells = fmin(fmax(floor(period / side), 1), MAX_CELLS - 2);
  set_period(grid, j, period, cells);
  grid->reach[j] = reach_in_cells(reach, grid->side[j]);
  bool may_have_more = spec->floats && cells < FEW && grid->reach[j] < cells;
  if (!may_have_more)
    return;
  set_period(grid, j, period, cells + 1);
  if (!keeps_floats_near(grid, j, period, reach))
    set_period(grid, j, period, cells);
}

/* Cuts grid dimension j into cells of about `side`; wider ones if there would be too many to number. */
static void cut_dimension(kith_grid *grid, uint32_t j, const kith_grid_spec *spec, double side, double reach) {
  uint32_t d = spec->dims[j];
  double extent = spec->max[d] - spec->min[d];
  side = fmax(side, MIN_SIDE);
  grid->dims[j] = d;
  grid->along[j] = kith_direction_of(spec->dim, d, spec->slanted > 0);
  if (spec->period && spec->period[d] > 0) {
    cut_period(grid, j, spec, side, reach);
    return;
  }
  grid->origin[j] = spec->low[d];
  /* The box may be narrow and the points so far apart all the same that their distance in cells is no number.
   */
  if (extent < side || !isfinite(extent) || !isfinite(side)) {
    grid->side[j] = extent;
    grid->inverse[j] = 0;
    grid->cells[j] = 1;
    grid->reach[j] = 0;
    return;
  }
  cell_counts counts = count_cells(spec, d, side);
  while (counts.before + counts.even + counts.after > MAX_CELLS - 2) {
    side *= fmax(2, counts.even / MAX_CELLS);
    counts = count_cells(spec, d, side);
  }
  grid->side[j] = side;
  grid->inverse[j] = 1 / side;
  grid->even[j] = counts.even;
  grid->before[j] = counts.before;
  grid->tails[j] = counts.before > 0 || counts.after > 0;
  grid->cells[j] = (uint32_t)(counts.before + counts.even + counts.after) + 1;
  uint32_t reach_cells = reach_in_cells(reach, side);
  grid->reach[j] = reach_cells < grid->cells[j] - 1 ? reach_cells : grid->cells[j] - 1;
}

/* Numbers rows and cells; returns false if the keys need more than KITH_KEY_BITS. */
static bool number_cells(kith_grid *grid) {
  uint64_t rows = 1;
  grid->x_bits = bits_for(grid->cells[0]);
  for (uint32_t j = 1; j < grid->k; j++) {
    grid->stride[j] = rows;
    uint64_t extent = kith_grid_extent(grid, j);
    if (rows > (UINT64_C(1) << KITH_KEY_BITS) / extent)
      return false;
    rows *= extent;
  }
  grid->key_bits = grid->x_bits + bits_for(rows);
  return grid->key_bits <= KITH_KEY_BITS;
}

void kith_grid_make(kith_grid *grid, const kith_grid_spec *spec, const kith_predicate *predicate) {
  memset(grid, 0, sizeof *grid);
  double reach = predicate->reach;
  for (uint32_t j = 0; j < spec->k; j++)
    cut_dimension(grid, j, spec, reach * SLACK * (j == 0 ? spec->x_side : spec->row_side), reach);
  grid->k = spec->k;
  grid->slanted = spec->slanted;
  while (!number_cells(grid))
    grid->k--;
}

/* The size of the box in the dimensions that are not cut. */
static double uncut_size(const kith_grid *grid, const kith_grid_spec *spec, kith_norm norm) {
  double size = 0;
  for (uint32_t d = 0; d < spec->dim; d++) {
    bool cut = false;
    for (uint32_t j = 0; j < grid->k; j++)
      cut |= grid->dims[j] == d;
    double width = cut ? 0 : spec->max[d] - spec->min[d];
    size = kith_norm_add(norm, size, width);
  }
  return size;
}

/* How far apart points may be in one more dimension, for a size of at most `whole` with `used` in the others;
 * negative: no distance is small enough. */
static double distance_left(kith_norm norm, double whole, double used) {
  if (!(used <= whole))
    return -1;
  return kith_norm_distance(norm, norm == KITH_NORM_MAX ? whole : whole - used);
}

/* How near and how far apart two points may be along grid dimension j, if so many steps are between their
 * cells. */
static double least_apart(const kith_grid *grid, uint32_t j, int32_t steps) {
  double apart = abs(steps);
  return apart > 1 ? (apart - 1) * grid->side[j] / SLACK : 0;
}
static double most_apart(const kith_grid *grid, uint32_t j, int32_t steps) {
  return (abs(steps) + 1) * grid->side[j] * SLACK;
}

/* The least size of pairs whose cells are so many steps apart in every dimension but the first. */
static double nearest_size(const kith_grid *grid, kith_norm norm, const int16_t *offset) {
  double nearest = 0;
  for (uint32_t j = 1; j < grid->k; j++)
    nearest = kith_norm_add(norm, nearest, least_apart(grid, j, offset[j]));
  return nearest;
}

/* ---- directions ---- */

/* Differences along all directions but the grid's first, by the first column of their group. */
typedef struct group_differences {
  double largest[KITH_SLANT_TO], sum[KITH_SLANT_TO];
} group_differences;

static void add_difference(group_differences *groups, const kith_direction *along, double apart) {
  groups->largest[along->first] = fmax(groups->largest[along->first], apart);
  groups->sum[along->first] += apart;
}

/* What is left of a size for the group of the first direction, if other groups have the least size that goes
 * with their differences, or the most; negative: nothing. */
static double left_for_first(const kith_grid *grid, const group_differences *groups, double whole, bool most) {
  uint32_t first = grid->along[0].first;
  for (uint32_t g = 0; g < KITH_SLANT_TO; g++)
    if (g != first)
      whole -= most ? fmax(groups->largest[g], groups->sum[g] / 2) : groups->largest[g];
  return groups->largest[first] <= whole ? whole : -1;
}

/* How far apart pairs of a step may be along the first direction, with a size of at most `whole`. */
static double reach_along_first(const kith_grid *grid, const int16_t *offset, double whole) {
  group_differences groups = {0};
  for (uint32_t j = 1; j < grid->k; j++)
    add_difference(&groups, &grid->along[j], least_apart(grid, j, offset[j]));
  return left_for_first(grid, &groups, whole, false);
}

/* How far apart they may be there for all of them to be of a size of at most `whole`. */
static double sure_along_first(const kith_grid *grid, const kith_grid_spec *spec, const int16_t *offset,
                               double whole) {
  group_differences groups = {0};
  for (uint32_t d = 0; d < spec->dim; d++) {
    uint32_t j = 0;
    while (j < grid->k && grid->dims[j] != d)
      j++;
    kith_direction along = kith_direction_of(spec->dim, d, true);
    if (j > 0)
      add_difference(&groups, &along,
                     j < grid->k ? most_apart(grid, j, offset[j]) : spec->max[d] - spec->min[d]);
  }
  double left = left_for_first(grid, &groups, whole, true);
  return fmin(left, 2 * left - groups.sum[grid->along[0].first]);
}

/* ---- steps ---- */

int64_t kith_step_x_reach(const kith_grid *grid, const kith_step *step, kith_norm norm, double reach) {
  double whole = kith_norm_size(norm, reach) * SLACK;
  double x_near = grid->slanted > 0 ? reach_along_first(grid, step->offset, whole)
                                    : distance_left(norm, whole, nearest_size(grid, norm, step->offset));
  if (x_near < 0)
    return -1;
  double x_reach = x_near * SLACK * grid->inverse[0] + 1;
  return x_reach < grid->reach[0] ? (int64_t)x_reach : grid->reach[0];
}

/* Sizes that bound the pairs of a step: of those that surely belong, of what dimensions that are not cut may
 * add to them; and the distance of those that may belong. */
typedef struct step_bounds {
  const kith_grid_spec *spec;
  kith_norm norm;
  double inside, uncut, reach;
} step_bounds;

/* How far apart pairs of a step may be in the first dimension for all of them to belong; negative: some do not
 * anyway. */
static double find_sure_distance(const kith_grid *grid, const kith_step *step, const step_bounds *bounds) {
  if (grid->slanted > 0)
    return sure_along_first(grid, bounds->spec, step->offset, bounds->inside);
  double farthest = bounds->uncut;
  for (uint32_t j = 1; j < grid->k; j++)
    farthest = kith_norm_add(bounds->norm, farthest, most_apart(grid, j, step->offset[j]));
  return distance_left(bounds->norm, bounds->inside, farthest);
}

/* The step to the row at the given cell offsets (offset[0] is unused). Returns false if no pair can belong. */
static bool make_step(kith_step *step, const kith_grid *grid, const int32_t *offset,
                      const step_bounds *bounds) {
  step->row = 0;
  for (uint32_t j = 1; j < grid->k; j++) {
    step->row += offset[j] * (int64_t)grid->stride[j];
    step->offset[j] = (int16_t)offset[j];
  }
  int64_t x_reach = kith_step_x_reach(grid, step, bounds->norm, bounds->reach);
  if (x_reach < 0)
    return false;
  step->x_reach = (uint32_t)x_reach;
  double x_far = find_sure_distance(grid, step, bounds) / SLACK;
  if (grid->cells[0] == 1)
    step->x_inside = x_far >= grid->side[0] ? 0 : -1;
  else
    step->x_inside = x_far >= grid->side[0] ? (int32_t)fmin(x_far * grid->inverse[0], 0x1p30) - 1 : -1;
  return true;
}

/* Advances offset[] to the next combination, dimension 1 fastest; false after the last. */
static bool next_offset(const kith_grid *grid, int32_t *offset) {
  for (uint32_t j = 1; j < grid->k; j++) {
    if (offset[j] < (int32_t)grid->reach[j]) {
      offset[j]++;
      return true;
    }
    offset[j] = -(int32_t)grid->reach[j];
  }
  return false;
}

bool kith_stencil_make(kith_stencil *stencil, const kith_grid *grid, const kith_grid_spec *spec,
                       const kith_predicate *predicate) {
  int32_t offset[KITH_GRID_DIMS] = {0};
  for (uint32_t j = 1; j < grid->k; j++) {
    if (grid->reach[j] > KITH_STENCIL_MAX / 2) /* as many steps along this dimension alone */
      return false;
    offset[j] = -(int32_t)grid->reach[j];
  }
  /* 1 - 2^-20 keeps the promise of "inside" safe from the rounding of sizes. */
  step_bounds bounds = {.spec = spec,
                        .norm = predicate->norm,
                        .inside = predicate->limit * (1 - 0x1p-20),
                        .uncut = uncut_size(grid, spec, predicate->norm),
                        .reach = predicate->reach};
  stencil->n_steps = 0;
  do {
    kith_step step = {0};
    if (!make_step(&step, grid, offset, &bounds))
      continue;
    if (predicate->everything)
      step.x_inside = INT32_MAX;
    if (stencil->n_steps == KITH_STENCIL_MAX)
      return false;
    if (step.row == 0)
      stencil->own = stencil->n_steps;
    stencil->steps[stencil->n_steps++] = step;
  } while (next_offset(grid, offset));
  return true;
}
