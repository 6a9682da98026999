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
 * May include base and predicate.h. */
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

/* A vector of the lattice: how many of each of its vectors, and their sum along each axis, added up from the
 * last vector to the first. */
typedef struct kith_shift {
  int32_t turns[KITH_MAX_AXES];
  double by[KITH_MAX_AXES];
} kith_shift;

/* Differences between points, an interval along each axis, and how far from 0 they may be once they are
 * shifted. */
typedef struct kith_differences {
  double low[KITH_MAX_AXES], high[KITH_MAX_AXES];
  double reach;
} kith_differences;

typedef void (*kith_shift_fn)(void *user, const kith_shift *shift);

/* Calls fn for every shift, 0 included, that brings some of the differences within reach along every axis; and
 * perhaps for a few that just fail to. In the order of the turns, those of the last axis first. */
void kith_lattice_each(const kith_lattice *lattice, const kith_differences *differences, kith_shift_fn fn,
                       void *user);

/* 0 for the shift 0, else the sign of its last turns that are not 0: of a shift and its opposite, one is
 * positive. */
int kith_shift_sign(const kith_lattice *lattice, const kith_shift *shift);

/* Whether a shift comes before another. A shift and its opposite are equal in this order, so that pairs that
 * are equally near in two images have the same one in front seen from either point. */
bool kith_shift_before(const kith_lattice *lattice, const kith_shift *a, const kith_shift *b);

/* The size up to which a pair within the limit has no second image within it. Where this is not less than the
 * limit, as for every eps that is not all but half of the height, none has. */
double kith_lattice_doubt(const kith_lattice *lattice, double limit);

#endif
