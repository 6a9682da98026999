/* A periodic box, as a lane meets it. There are three ways, and this chooses among them:
 *
 *   one pass (around.h)   each candidate is met once, in its nearest image, where the box suits that;
 *   passes (images.h)     a tile meets the candidates as they are, and then once more for every vector of the
 *                         lattice that brings images within reach, in all other boxes;
 *   folds                 along axes that the grid does not cut, in either way: there the candidates of a tile
 *                         are at hand, whatever their image. The definition folds the differences (kith_fold),
 *                         and the filter cuts the axis open (cuts.h).
 *
 * No pair belongs in two images, as any two are at least twice eps apart; but see ties.h. */
#ifndef KITH_ENGINE_CPU_PERIODIC_H
#define KITH_ENGINE_CPU_PERIODIC_H

#include "engine/cpu/lane.h"

/* Chooses how a lane meets the box of its task. */
void kith_periodic_open(kith_lane *lane);

/* Sets up a tile for the candidates as they are, once it is known how it is tested, */
void kith_periodic_turn_home(kith_lane *lane);

/* and once it is staged. */
void kith_periodic_set_up(kith_lane *lane);

/* Cuts the folded axes for the staged tile, where there are passes. */
void kith_periodic_cut_folds(kith_lane *lane);

#endif
