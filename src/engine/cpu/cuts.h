/* Cuts: how the filter meets candidates in whichever image is nearest. A periodic axis is a circle. Where no
 * query is near some point of it, it is cut open there: queries and candidates that lie behind the cut are
 * lowered by a side, and differences along it are those of plain coordinates.
 *
 * One cut is enough for a tile that leaves, with its reach, a part of the side free: then candidates are
 * lowered when they are staged. Otherwise each four queries have a cut, and candidates are lowered when they
 * are met: any four points leave a gap of a quarter of a circle, or a wider one, which is enough for a reach of
 * up to an eighth. For longer ones every query has a cut of its own, opposite of it. */
#ifndef KITH_ENGINE_CPU_CUTS_H
#define KITH_ENGINE_CPU_CUTS_H

#include "engine/cpu/lane.h"

/* How far the filter's queries are from their origin along the axes that are cut, and what rounding adds to
 * that: the band is made for it (docs/exactness.md). At most kith_folds_spread of them. */
double kith_cuts_spread(const kith_lane *lane, const kith_folds *for_tile, const kith_folds *for_fours);

/* Whether one cut is enough for a tile between two coordinates. */
bool kith_cuts_one(const kith_lane *lane, double low, double high, double side);

/* Cuts axes for the staged tile, or for each four of its queries. The sieve, which lowers candidates, is made
 * if there is none. */
void kith_cuts_lay(kith_lane *lane, const kith_folds *for_tile, const kith_folds *for_fours);

#endif
