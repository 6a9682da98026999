/* The lattice of a periodic box: which points are images of each other.
 *
 * A lattice has up to KITH_MAX_AXES periodic axes, each a dimension of the points, and as many vectors. They
 * are lower triangular: vector i has components along axes 0 to i only, and its own, vector[i][i], is positive.
 * So the brick [0, vector[0][0]) x [0, vector[1][1]) x ... holds exactly one image of every point: moving by
 * whole vectors, last axis first, leads into it. All points of a join are wrapped into the brick, and the grid
 * stays parallel to the axes whatever the angles of the box.
 *
 * Vectors are reduced: no component off the diagonal exceeds half of the brick's side there, up to rounding.
 *
 * Includes nothing but predicate.h (for KITH_DEVICE). */
#ifndef KITH_SPACE_LATTICE_H
#define KITH_SPACE_LATTICE_H

#include "base/context.h"
#include "space/predicate.h"

enum { KITH_MAX_AXES = 8 };

typedef struct kith_lattice {
  uint32_t n; /* periodic axes; 0: space is open */
  uint32_t axis[KITH_MAX_AXES];
  double vector[KITH_MAX_AXES][KITH_MAX_AXES];
  bool skewed;   /* some component off the diagonal is not 0 */
  double height; /* no vector of the lattice but 0 is shorter */
} kith_lattice;

/* Makes the lattice of a box of n values for points of dim dimensions: dim lengths (0: an open axis), or in
 * three dimensions 6 values (lengths and angles in degrees) or 9 (vectors). KITH_ERR_ARGUMENT, and why, if that
 * is no box. */
kith_status kith_lattice_make(kith_context *ctx, const double *box, uint32_t n, uint32_t dim,
                              kith_lattice *lattice);

/* Whether a point lies in the brick. */
static inline KITH_DEVICE bool kith_lattice_holds(const kith_lattice *lattice, const double *x) {
  for (uint32_t i = 0; i < lattice->n; i++)
    if (!(x[lattice->axis[i]] >= 0 && x[lattice->axis[i]] < lattice->vector[i][i]))
      return false;
  return true;
}

/* Moves a point by a number of vectors. */
static inline KITH_DEVICE void kith_lattice_move(const kith_lattice *lattice, uint32_t i, double turns,
                                                 double *x) {
  for (uint32_t c = 0; c <= i; c++)
    x[lattice->axis[c]] -= turns * lattice->vector[i][c];
}

/* Moves a point into the brick: part of the definition, so every operation is as docs/exactness.md tells. False
 * if the point is so many boxes away that its place in one is lost. */
static inline KITH_DEVICE bool kith_lattice_wrap(const kith_lattice *lattice, double *x) {
  for (uint32_t i = lattice->n; i-- > 0;) {
    double *own = &x[lattice->axis[i]];
    double side = lattice->vector[i][i];
    double turns = floor(*own / side);
    if (!(fabs(turns) <= 0x1p52))
      return false;
    kith_lattice_move(lattice, i, turns, x);
    if (*own >= side)
      kith_lattice_move(lattice, i, 1, x);
    if (*own < 0)
      *own = 0;
  }
  return true;
}

#endif
