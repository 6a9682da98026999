/* How a lane walks the rows of a grid (index/grid.h): its tiles are of one row of cells each, and their runs
 * are found by cursors, one for each row around it that holds points. Tiles move along the rows and rows
 * ascend, so that cursors only move forward, by short searches. */
#ifndef KITH_ENGINE_CPU_GRID_H
#define KITH_ENGINE_CPU_GRID_H

#include "engine/cpu/lane.h"

/* Steps of the stencil that lead to adjacent rows, which are looked for together. */
typedef struct kith_step_group {
  int64_t row; /* the difference of row numbers of the first step */
  uint32_t first, n;
  uint32_t at; /* where its rows begin among those of the candidates */
} kith_step_group;

/* A row that a step leads to, and where the runs of the last tile were in it. */
typedef struct kith_cursor {
  uint32_t step;
  uint32_t cell; /* those before it are behind the tiles */
  uint32_t cell_end;
  uint32_t last; /* where the last tile's run ended */
} kith_cursor;

typedef struct kith_grid_walk {
  kith_step_group *groups;
  uint32_t n_groups;
  uint32_t own_group; /* begins with the tile's own row: where pairs are met once, those before are left out */
  kith_cursor *cursors; /* in ascending order of rows; lane->n_runs of them */
  uint32_t row;         /* the query row that they are set for; UINT32_MAX: none */
  uint32_t cell;        /* the query cell where the last tile ended, if there is a row */
  bool row_accepts;     /* in that row and those around it pairs may be accepted untested: all cells are even */
} kith_grid_walk;

/* The walk of a lane over a stencil, in so many bytes that are the caller's. */
size_t kith_grid_walk_bytes(const kith_stencil *stencil);
void kith_grid_walk_make(kith_grid_walk *walk, const kith_stencil *stencil, char *buffer);

/* Takes the queries of the next tile, as kith_lane_next_tile does. */
uint32_t kith_grid_next_tile(kith_lane *lane, uint32_t at, const kith_work *work);

/* Its run number r: in the row of a cursor. */
kith_run kith_grid_tile_run(kith_lane *lane, uint32_t r);

#endif
