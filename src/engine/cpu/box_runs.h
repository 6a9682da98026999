/* The candidates in the cells near a box, as runs of positions, ascending: for tiles in a periodic box whose
 * candidates the stencil does not tell, since they are near in an image.
 *
 * The box is lane->periodic.near_box, moved by lane->periodic.shift. Where all images are met in one pass
 * (around.h) it reaches around the periodic axes: then its cells along an axis are those from the first one on
 * and those up to the last. */
#ifndef KITH_ENGINE_CPU_BOX_RUNS_H
#define KITH_ENGINE_CPU_BOX_RUNS_H

#include "engine/cpu/lane.h"

typedef struct kith_cell_span {
  uint32_t first, last;
} kith_cell_span;

typedef struct kith_box_runs {
  kith_cell_span spans[KITH_GRID_DIMS][2]; /* of cells, per grid dimension, ascending */
  uint32_t n_spans[KITH_GRID_DIMS];
  uint32_t span[KITH_GRID_DIMS]; /* the one looked at; */
  uint32_t at[KITH_GRID_DIMS];   /* and the cell of it, in dimensions 2 and more */
  uint32_t row;                  /* of the index, the next to look at */
  uint64_t end;                  /* of the row numbers with these cells */
  bool over;
  kith_run next; /* found, but not yet told; perhaps empty */
} kith_box_runs;

/* Begins with row `first_row` of the index: rows before it are left out. */
void kith_box_runs_begin(const kith_lane *lane, uint32_t first_row, kith_box_runs *runs);

/* The next run; false when there are no more. Runs that follow each other are one. */
bool kith_box_runs_next(const kith_lane *lane, kith_box_runs *runs, kith_run *run);

#endif
