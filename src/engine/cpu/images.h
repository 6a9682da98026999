/* Images, one after the other: a tile is tested against the candidates as they are, as without a box, and then
 * once more for every vector of the lattice that brings images of candidates within reach of its queries.
 * Nothing is copied or indexed twice: the queries are moved instead, and the candidates near them looked up in
 * the grid. Few tiles meet any images at all: those close to the faces of the brick.
 *
 * In such a pass the staged queries are q + s, in float relative to an origin close to them, for the filter;
 * what it leaves in doubt, and everything where it is not used, is settled with t = (q - b) + s from the
 * coordinates of the index. Only the queries that come within reach of the brick count in a pass: they alone
 * say which candidates are looked up, and without any there is no pass. */
#ifndef KITH_ENGINE_CPU_IMAGES_H
#define KITH_ENGINE_CPU_IMAGES_H

#include "engine/cpu/lane.h"

/* Calls meet for every image that a tile needs, with its queries staged; positive: only one of a vector and its
 * opposite, for counting a set against itself. The tile as it was is lost. */
void kith_images_each(kith_lane *lane, bool positive, void (*meet)(void *user), void *user);

#endif
