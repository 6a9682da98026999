/* A periodic box: a tile is tested against the candidates as they are, as without a box, and then once more for
 * every vector of the lattice that brings images of candidates within reach of its queries. Nothing is copied
 * or indexed twice: the queries are moved instead, and the candidates near them looked up in the grid. Few
 * tiles meet any images at all: those close to the faces of the brick.
 *
 * Along an axis that the grid does not cut, every tile would be close to both faces. There the candidates of a
 * tile are at hand, whatever their image, and the kernels fold the differences instead (kith_folds).
 *
 * In such a pass the staged queries are q + s, in float relative to an origin close to them, for the filter;
 * what it leaves in doubt, and everything where it is not used, is settled with t = (q - b) + s from the
 * coordinates of the index. Only the queries that come within reach of the brick count in a pass: they alone
 * say which candidates are looked up, and without any there is no pass. No pair belongs in two images, as any
 * two are at least twice eps apart; where eps is so close to half of the box that rounding could make it two,
 * the nearer one counts (lattice.h). */
#ifndef KITH_ENGINE_CPU_IMAGES_H
#define KITH_ENGINE_CPU_IMAGES_H

#include "engine/cpu/lane.h"

/* Calls meet for every image that a tile needs, with its queries staged; positive: only one of a vector and its
 * opposite, for counting a set against itself. The tile as it was is lost. */
void kith_images_each(kith_lane *lane, bool positive, void (*meet)(void *user), void *user);

/* The candidates that may be near the moved queries of the tile, as runs of positions, ascending. */
typedef struct kith_image_runs {
  uint32_t first[KITH_GRID_DIMS], last[KITH_GRID_DIMS]; /* cells, per grid dimension */
  uint32_t at[KITH_GRID_DIMS];                          /* the cells looked at, in dimensions 2 and more */
  uint32_t row;                                         /* of the index, the next to look at */
  uint64_t end;                                         /* of the row numbers with these cells */
  bool over;
} kith_image_runs;

void kith_image_runs_begin(const kith_lane *lane, kith_image_runs *runs);

/* The next run, perhaps an empty one; false when there are no more. */
bool kith_image_runs_next(const kith_lane *lane, kith_image_runs *runs, kith_run *run);

/* Sets up a tile for the candidates as they are, once it is known how it is tested. */
void kith_images_turn_home(kith_lane *lane);

/* Along axes that are folded candidates may be near wherever they are: takes the bounds off a sieve. */
void kith_images_open_sieve(kith_lane *lane);

/* Sets up a lane. */
void kith_images_open(kith_lane *lane);

#endif
