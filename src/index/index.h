/* The index: points in the order of their cells, and the directory of the cells that hold any.
 *
 * positions   points in key order; equal keys keep the input order, so ids ascend within a cell
 * cells       the non-empty ones: their x and the position of their first point
 * rows        the non-empty ones: their number and their first cell
 * crowds      the cells with KITH_CROWD points and more: their positions and the box around their points
 * Coordinates are stored one array per dimension, in input order of the dimensions and, unless they are
 * `rounded`, without loss: kernels stream them, and the definition of a distance can be evaluated from them
 * exactly.
 *
 * Memory: dim * sizeof(type) + 4 bytes a point, 8 a cell, 12 a row, 16 * dim + 8 a crowd; while building 8
 * bytes a point more for the sort (16 if a point is smaller than 8 bytes). Time: O(n) radix passes. May include
 * grid, space, points, base. */
#ifndef KITH_INDEX_INDEX_H
#define KITH_INDEX_INDEX_H

#include "index/grid.h"
#include "points/points.h"
#include "space/lattice.h"

/* Points that make a cell a crowd: so many that testing each of them against each would be felt. */
enum { KITH_CROWD = 1024 };

typedef struct kith_crowd {
  uint32_t begin, end; /* positions */
} kith_crowd;

typedef struct kith_index {
  const kith_grid *grid;
  kith_dtype dtype;
  uint32_t dim;
  uint32_t n;      /* points indexed: the valid ones */
  uint64_t id_end; /* ids are below this */
  uint64_t stride; /* between the coordinate arrays, in values; beyond n they are readable */
  void *coords;    /* dim arrays of `stride` values */
  uint32_t *ids;   /* input row of each position; NULL if built for counting (kith_index_build_values) */
  uint32_t n_cells;
  uint32_t *cell_x;     /* n_cells */
  uint32_t *cell_start; /* n_cells + 1 */
  uint32_t n_rows;
  uint64_t *row_number;          /* n_rows */
  uint32_t *row_cell;            /* n_rows + 1: first cell of the row */
  const kith_points *rounded;    /* whose coordinates are rounded here; NULL: those here are exact; */
  const kith_lattice *wrap_into; /* likewise, after they were wrapped into its brick; NULL: they were not */
  double spread;                 /* of the rounded ones: no point is farther from the origin */
  uint32_t n_crowds;
  kith_crowd *crowds; /* n_crowds, ascending */
  double *crowd_box;  /* low[dim], high[dim] of each crowd */
} kith_index;

/* Values readable beyond the last point of each coordinate array, and beyond ids. */
enum { KITH_INDEX_SLACK = 64 };

/* Builds the index over the valid rows of points, with coordinates of the given type: that of the points, or
 * KITH_F64. */
kith_status kith_index_build(kith_context *ctx, const kith_points *points, const kith_grid *grid,
                             uint64_t invalid_rows, kith_dtype dtype, kith_index *index);

/* How an index is to be built, beside the points and their grid. Coordinates are of the type of the points, or
 * KITH_F64; or KITH_F32 and rounded, for float64 points, and for those that are wrapped on the way. */
typedef struct kith_index_plan {
  uint64_t invalid_rows;
  kith_dtype dtype;
  double spread;                 /* of rounded ones: no point is farther from the origin */
  const kith_lattice *wrap_into; /* its brick, if all are valid and not far outside; NULL: they lie there */
} kith_index_plan;

kith_status kith_index_build_planned(kith_context *ctx, const kith_points *points, const kith_grid *grid,
                                     const kith_index_plan *plan, kith_index *index);

/* The same for counting float32 points in one dimension: without ids, in half the memory. */
kith_status kith_index_build_values(kith_context *ctx, const kith_points *points, const kith_grid *grid,
                                    uint64_t invalid_rows, kith_index *index);

/* For an index that is brought here from elsewhere: room for its arrays, if grid, dtype, dim, n, id_end,
 * n_cells and n_rows are set; then, once they are filled, what follows from them. After a failure nothing is
 * left. */
kith_status kith_index_allocate(kith_context *ctx, kith_index *index);
kith_status kith_index_complete(kith_context *ctx, kith_index *index);

void kith_index_destroy(kith_index *index);

/* Coordinate c of a position. */
static inline double kith_index_coordinate(const kith_index *index, uint32_t c, uint32_t position) {
  size_t at = c * index->stride + position;
  return index->dtype == KITH_F32 ? (double)((const float *)index->coords)[at]
                                  : ((const double *)index->coords)[at];
}

/* The last cell that starts at or before position p, and the last row that starts at or before a cell. */
uint32_t kith_index_cell_at(const kith_index *index, uint32_t position);
uint32_t kith_index_row_at(const kith_index *index, uint32_t cell);

#endif
