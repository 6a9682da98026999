/* The grid: how space is cut into cells, and which cells can hold neighbours of which.
 *
 * The grid cuts k of the dimensions. Cells that differ only in the first of them, dims[0], form a row; their
 * linear numbers (keys) are consecutive: key = row << x_bits | x. A point's neighbours lie in a fixed list of
 * rows around its own, the stencil, and in each of them in an interval of x: a run. The number of cells in
 * the other dimensions is padded by their reach, so that adding a stencil step to a row number never lands in
 * a wrong row, and no two steps have the same number.
 *
 * Invariant: |a - b| <= predicate.reach in dimension d implies that the cell coordinates of a and b differ
 * by at most reach[d]. Cell coordinates are rounded once per operation and stay below 2^29, which costs at
 * most 2^-20 of a cell; sides are 2^-16 wider than the reach asks for. Outside the box that is cut evenly,
 * cells widen with the distance from it (numbers grow with its logarithm), so that far outliers and heavy tails
 * need few cells. That never pulls cells apart, so the invariant holds there too.
 *
 * Along an axis of a periodic box the grid may wrap around: a whole number of cells is the period, and behind
 * the last one comes the first. The invariant then holds for images: cell numbers of a and of the image of b,
 * whose cells go on beyond the box. No image farther than one period away is reached. Where the reach is a
 * whole part of the period, or nearly so, sides may be a little narrower, if no two float32 numbers tell the
 * difference.
 *
 * In norm 1 the dimensions of a grid may be directions in place of columns (space/directions.h). The invariant
 * then holds for pairs within the reach in that norm.
 *
 * May include space; CUDA code includes it too. */
#ifndef KITH_INDEX_GRID_H
#define KITH_INDEX_GRID_H

#include "space/directions.h"

enum { KITH_GRID_DIMS = 8, KITH_STENCIL_MAX = 2187, KITH_KEY_BITS = 62 };

typedef struct kith_grid {
  uint32_t k;                    /* dimensions cut, at least 1 */
  uint32_t dims[KITH_GRID_DIMS]; /* which */
  kith_direction along[KITH_GRID_DIMS];
  double slanted; /* not 0: they are directions, and no point's coordinates add up to more; 0: columns */
  double origin[KITH_GRID_DIMS];
  double side[KITH_GRID_DIMS];
  double inverse[KITH_GRID_DIMS]; /* 1 / side; 0 where there is one cell */
  double even[KITH_GRID_DIMS];    /* cells of equal side, a real number */
  double before[KITH_GRID_DIMS];  /* cells before those, likewise */
  bool tails[KITH_GRID_DIMS];     /* points lie outside the even cells */
  bool wraps[KITH_GRID_DIMS];     /* the cells are one period, from 0 on */
  uint32_t cells[KITH_GRID_DIMS];
  uint32_t reach[KITH_GRID_DIMS];
  uint64_t stride[KITH_GRID_DIMS]; /* of the row number; stride[0] is unused */
  uint32_t x_bits;
  uint32_t key_bits;
} kith_grid;

/* A row to look at, relative to the row of the query. */
typedef struct kith_step {
  int64_t row;                    /* difference of the row numbers, */
  int16_t offset[KITH_GRID_DIMS]; /* and of the cells in each dimension but the first */
  uint32_t x_reach;               /* candidates: |x - x'| <= x_reach */
  int32_t x_inside; /* |x - x'| <= x_inside: every pair of even cells belongs, untested; -1: none */
} kith_step;

/* Steps in ascending order of row. */
typedef struct kith_stencil {
  uint32_t n_steps;
  uint32_t own; /* the step with row 0 */
  kith_step steps[KITH_STENCIL_MAX];
} kith_stencil;

/* What the grid is made from: which dimensions to cut, and how. */
typedef struct kith_grid_spec {
  uint32_t k;
  uint32_t dims[KITH_GRID_DIMS];
  double row_side;          /* side of the cells in dims[1..], in units of the predicate's reach */
  double x_side;            /* in dims[0], likewise */
  double slanted;           /* as in the grid: dimensions are directions */
  const double *low, *high; /* the box to cut evenly, per dimension */
  const double *min, *max;  /* the box of all points, likewise */
  const double *period;     /* likewise, 0: no wrapping around; NULL: nowhere */
  bool floats;              /* points have float32 coordinates, and lie within their periods */
  uint32_t dim;             /* columns, and so directions */
} kith_grid_spec;

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a grid. Drops trailing dimensions whose cells would not fit in KITH_KEY_BITS. */
void kith_grid_make(kith_grid *grid, const kith_grid_spec *spec, const kith_predicate *predicate);

/* Lists the steps; fails (false) if there are more than KITH_STENCIL_MAX. */
bool kith_stencil_make(kith_stencil *stencil, const kith_grid *grid, const kith_grid_spec *spec,
                       const kith_predicate *predicate);

/* How many cells along the row the candidates of a step may lie from a query, at most, if none is farther than
 * `reach`; -1: there are none. */
int64_t kith_step_x_reach(const kith_grid *grid, const kith_step *step, kith_norm norm, double reach);

#ifdef __cplusplus
}
#endif

/* The number of cells from the first to a coordinate in units of cells from the low end of the even ones. The
 * slope is 1 among the even cells and less outside. */
static inline KITH_DEVICE double kith_grid_bend(double x, double even) {
  double scale = even > 1 ? even : 1;
  if (x < 0)
    return -scale * log1p(-x / scale);
  return x > even ? even + scale * log1p((x - even) / scale) : x;
}

/* The cell of a coordinate along grid dimension j. */
static inline KITH_DEVICE uint32_t kith_grid_cell(const kith_grid *grid, uint32_t j, double value) {
  double cell = (value - grid->origin[j]) * grid->inverse[j];
  if (grid->tails[j])
    cell = kith_grid_bend(cell, grid->even[j]) + grid->before[j];
  double last = grid->cells[j] - 1;
  return (uint32_t)(cell > 0 ? (cell < last ? cell : last) : 0);
}

/* The side of cells, but for those along a row, which have one of their own. */
static inline double kith_grid_row_side(const kith_grid *grid) {
  return grid->k > 1 ? grid->side[1] : grid->side[0];
}

/* The grid dimension that cuts a column, or k if none does. */
static inline uint32_t kith_grid_dimension(const kith_grid *grid, uint32_t column) {
  uint32_t j = 0;
  while (j < grid->k && grid->dims[j] != column)
    j++;
  return j;
}

/* The numbers that dimension j has in those of the rows, padding included; where it wraps around one more,
 * since the reach may be all its cells. */
static inline KITH_DEVICE uint64_t kith_grid_extent(const kith_grid *grid, uint32_t j) {
  return (uint64_t)grid->cells[j] + grid->reach[j] + (grid->wraps[j] ? 1 : 0);
}

/* The cell of a row in grid dimension j, which is not the first. */
static inline KITH_DEVICE uint32_t kith_grid_row_cell(const kith_grid *grid, uint32_t j, uint64_t row) {
  return (uint32_t)(row / grid->stride[j] % kith_grid_extent(grid, j));
}

/* Whether a cell in grid dimension j is one of the even ones: its points differ by at most its side there. */
static inline KITH_DEVICE bool kith_grid_is_even(const kith_grid *grid, uint32_t j, int64_t cell) {
  if (!grid->tails[j])
    return true;
  return (double)cell >= grid->before[j] && (double)cell + 1 <= grid->before[j] + grid->even[j];
}

/* Whether all cells of a row and of the rows that its stencil reaches are even across the rows. */
static inline KITH_DEVICE bool kith_grid_row_is_even(const kith_grid *grid, uint64_t number) {
  for (uint32_t j = grid->k - 1; j >= 1; j--) {
    int64_t cell = (int64_t)(number / grid->stride[j]);
    number %= grid->stride[j];
    int64_t first = cell > grid->reach[j] ? cell - grid->reach[j] : 0;
    int64_t last = cell + grid->reach[j] < grid->cells[j] ? cell + grid->reach[j] : grid->cells[j] - 1;
    if (!kith_grid_is_even(grid, j, first) || !kith_grid_is_even(grid, j, last))
      return false;
  }
  return true;
}

#endif
