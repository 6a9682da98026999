/* Ties: where eps is so close to half of a periodic box that rounding could find a pair within it in two
 * images. Then it belongs in the nearer one, or in the one that comes first (lattice.h): nothing is accepted
 * without asking which that is. */
#ifndef KITH_ENGINE_CPU_TIES_H
#define KITH_ENGINE_CPU_TIES_H

#include "engine/cpu/lane.h"

/* Whether no other image of a pair is nearer, and no equally near one comes first: kith_image.is_nearest. */
bool kith_ties_is_nearest(const kith_image *image, uint32_t q, uint32_t j, double size);

/* Sets up a tile for ties. */
void kith_ties_expect(kith_lane *lane);

/* Makes the filter accept only what no second image can belong to. Where that would leave too much undecided,
 * there is no filter. */
void kith_ties_widen_band(kith_lane *lane);

#endif
