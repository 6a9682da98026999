/* Loops over many points that become vectors. One body, compiled once per instruction set: nothing is fused and
 * nothing is reordered, so all of them give the same bits. */
#ifndef KITH_SPACE_LOOPS_H
#define KITH_SPACE_LOOPS_H

#include "base/context.h"
#include "space/lattice.h"

enum { KITH_PLACES = 256 };

typedef struct kith_space_loops {
  /* Places on the sphere from longitudes and latitudes, n <= KITH_PLACES of them: x, y, z of place i to
   * places[3 * i]. Degrees are below 360 (kith_turn_of). */
  void (*find_places)(const double *lon, const double *lat, uint32_t n, double *places);
  /* What kith_lattice_wrap does to each of n points that are no farther outside than KITH_WRAP_ROOM sides.
   * columns: by dimension, those that are axes. */
  void (*wrap_columns)(const kith_lattice *lattice, double *const *columns, uint32_t n);
} kith_space_loops;

extern const kith_space_loops kith_space_loops_scalar, kith_space_loops_avx2, kith_space_loops_avx512;

const kith_space_loops *kith_space_loops_for(kith_isa_level isa);

#endif
