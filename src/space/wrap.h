/* Points of a periodic box by columns, which are wrapped into its brick many at a time. One body, compiled once
 * per instruction set: nothing is fused and nothing is reordered, so all of them give the same bits. */
#ifndef KITH_SPACE_WRAP_H
#define KITH_SPACE_WRAP_H

#include "base/context.h"
#include "space/lattice.h"

/* What kith_lattice_wrap does to each of n points that are no farther outside than KITH_WRAP_ROOM sides.
 * columns: by dimension, those that are axes. */
typedef void kith_wrap_kernel(const kith_lattice *lattice, double *const *columns, uint32_t n);

extern kith_wrap_kernel kith_wrap_scalar, kith_wrap_avx2, kith_wrap_avx512;

kith_wrap_kernel *kith_wrap_for(kith_isa_level isa);

#endif
