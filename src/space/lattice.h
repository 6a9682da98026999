/* The lattice of a periodic box: which points are images of each other.
 *
 * A lattice has up to KITH_MAX_AXES periodic axes, each a dimension of the points, and as many vectors. They
 * are lower triangular: vector i has components along axes 0 to i only, and its own, vector[i][i], is positive.
 * So the brick [0, vector[0][0]) x [0, vector[1][1]) x ... holds exactly one image of every point: moving by
 * whole vectors, last axis first, leads into it. All points of a join are wrapped into the brick, and the grid
 * stays parallel to the axes whatever the angles of the box. A box of vectors that are not so is turned until
 * they are, and its points with it.
 *
 * Vectors are reduced: no component off the diagonal exceeds half of the brick's side there, up to rounding.
 *
 * What a join needs of it is in this header, for engines on a GPU, too. Includes nothing but predicate.h. */
#ifndef KITH_SPACE_LATTICE_H
#define KITH_SPACE_LATTICE_H

#include "space/predicate.h"

enum { KITH_MAX_AXES = 8 };

typedef struct kith_lattice {
  uint32_t n; /* periodic axes; 0: space is open */
  uint32_t axis[KITH_MAX_AXES];
  double vector[KITH_MAX_AXES][KITH_MAX_AXES];
  bool skewed;       /* some component off the diagonal is not 0 */
  double height;     /* no vector of the lattice but 0 is shorter */
  bool turned;       /* points have yet to be */
  double turn[3][3]; /* where the axes of turned points lead, each a unit vector */
} kith_lattice;

/* Makes the lattice of a box of n values for points of dim dimensions: dim lengths (0: an open axis), or in
 * three dimensions 6 values (lengths and angles in degrees) or 9 (vectors), of which those of length 0
 * likewise. KITH_ERR_ARGUMENT, and why, if that is no box. */
kith_status kith_lattice_make(kith_context *ctx, const double *box, uint32_t n, uint32_t dim,
                              kith_lattice *lattice);

/* Moves a point by a number of vectors. */
static inline KITH_DEVICE void kith_lattice_move(const kith_lattice *lattice, uint32_t i, double turns,
                                                 double *x) {
  for (uint32_t c = 0; c <= i; c++)
    x[lattice->axis[c]] = kith_add_product(x[lattice->axis[c]], -turns, lattice->vector[i][c]);
}

/* Whether a point lies in the brick along axis i: moving it there would leave it as it is, since a quotient
 * below 1 does not round to 1. */
static inline KITH_DEVICE bool kith_lattice_holds_along(const kith_lattice *lattice, uint32_t i,
                                                        const double *x) {
  double own = x[lattice->axis[i]];
  return own >= 0 && own < lattice->vector[i][i];
}

/* Whether it lies in the brick already. */
static inline KITH_DEVICE bool kith_lattice_holds(const kith_lattice *lattice, const double *x) {
  bool inside = true;
  for (uint32_t i = 0; i < lattice->n; i++)
    inside &= kith_lattice_holds_along(lattice, i, x);
  return inside;
}

/* Moves a point into the brick: part of the definition, so every operation is as docs/exactness.md tells. False
 * if the point is so many boxes away that its place in one is lost. */
static inline KITH_DEVICE bool kith_lattice_wrap(const kith_lattice *lattice, double *x) {
  for (uint32_t i = lattice->n; i-- > 0;) {
    if (kith_lattice_holds_along(lattice, i, x)) /* divisions are slow, and few axes need them */
      continue;
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

/* Turns a point. False if it is so far away that it has no place then. */
static inline KITH_DEVICE bool kith_lattice_turn(const kith_lattice *lattice, double *x) {
  double y[3];
  bool finite = true;
  for (int i = 0; i < 3; i++) {
    const double *axis = lattice->turn[i];
    y[i] = kith_add_product(kith_add_product(x[0] * axis[0], x[1], axis[1]), x[2], axis[2]);
    finite &= isfinite(y[i]) != 0;
  }
  for (int i = 0; i < 3; i++)
    x[i] = y[i];
  return finite;
}

/* Where a point lies in the box; false if its place is lost. */
static inline KITH_DEVICE bool kith_lattice_place(const kith_lattice *lattice, double *x) {
  return (!lattice->turned || kith_lattice_turn(lattice, x)) && kith_lattice_wrap(lattice, x);
}

/* The side of the brick along a dimension of the points; 0: it is open. */
static inline double kith_lattice_side(const kith_lattice *lattice, uint32_t dimension) {
  for (uint32_t i = 0; i < lattice->n; i++)
    if (lattice->axis[i] == dimension)
      return lattice->vector[i][i];
  return 0;
}

/* What wrapping does along one dimension of a box without angles, without branches and divisions, to points
 * that are not farther than half a side outside. A side of 0 leaves them where they are. */
static inline double kith_wrap_nearby(double x, double side) {
  double up = x + (x < 0 ? side : 0); /* which may be the side itself, rounded */
  double down = up - side;
  return down < 0 ? up : down;
}

/* Points no farther outside of any box than so many sides are wrapped by columns (loops.h). */
#define KITH_WRAP_ROOM 0x1p20

/* Axes of a box without angles along which differences are folded: of pairs that meet whatever their images,
 * the nearest one is found by the difference alone. */
typedef struct kith_folds {
  uint32_t n;
  uint32_t axis[KITH_MAX_AXES]; /* ascending */
  double side[KITH_MAX_AXES];   /* of the brick, along each */
} kith_folds;

/* Whether an axis may be folded. Its side may be so many reaches, since more would take the filter's digits,
 * and what half of it leaves, a 1000th, is for rounding. */
#define KITH_WIDEST_FOLD 96
#define KITH_HALF_SIDE 0.499
static inline bool kith_folds_suit(double side, double reach) {
  return reach * (1 + 0x1p-20) <= KITH_HALF_SIDE * side && side <= KITH_WIDEST_FOLD * reach;
}

/* How far the filter's queries may be from their origin along such axes, and what rounding adds to that, at
 * most (docs/exactness.md); from the sum of the squares of their sides. */
static inline double kith_folds_spread(double squares) { return 3 * sqrt(squares) * (1 + 0x1p-20); }

/* Adds axis i of the lattice, behind those that there are. */
static inline void kith_folds_add(kith_folds *folds, const kith_lattice *lattice, uint32_t i) {
  folds->axis[folds->n] = lattice->axis[i];
  folds->side[folds->n++] = lattice->vector[i][i];
}

/* The difference between points of the brick in their nearest image along an axis. That is what adding a side,
 * taking it away or leaving the difference gives, whichever is smallest: rounding is symmetric about zero. */
static inline KITH_DEVICE double kith_fold(double t, double side) {
  t = fabs(t);
  return t < side - t ? t : side - t;
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

/* A walk through the shifts that bring some of the differences within reach along every axis, 0 included; and
 * perhaps through a few that just fail to. In the order of the turns, those of the last axis first. */
typedef struct kith_shift_walk {
  kith_shift shift; /* where it is */
  int32_t last[KITH_MAX_AXES];
} kith_shift_walk;

/* Adds up the vectors of the last axes, from axis `first` on. */
static inline KITH_DEVICE void kith_shift_add_up(const kith_lattice *lattice, uint32_t first,
                                                 kith_shift *shift) {
  for (uint32_t c = 0; c < lattice->n; c++)
    shift->by[c] = 0;
  for (uint32_t i = lattice->n; i-- > first;)
    for (uint32_t c = lattice->skewed ? 0 : i; c <= i; c++)
      shift->by[c] = kith_add_product(shift->by[c], shift->turns[i], lattice->vector[i][c]);
}

/* Finds the first turns of the axes below i that go with those of the others, which move on where there are
 * none; false when they are through. Like the wheels of a counter, the last axis the slowest: of turns 0 to 1
 * along either of two axes, (0, 0), (1, 0), (0, 1), (1, 1); but the range of a wheel depends on the slower
 * ones, and may be empty: then the next slower one moves on. The margin of 2^-20 of a turn is far above what
 * rounding could do to the bounds. */
static inline KITH_DEVICE bool kith_shift_settle(const kith_lattice *lattice, const kith_differences *d,
                                                 kith_shift_walk *walk, uint32_t i) {
  while (i > 0) {
    kith_shift_add_up(lattice, i, &walk->shift);
    i--;
    double side = lattice->vector[i][i];
    double first = ceil((-d->reach - d->high[i] - walk->shift.by[i]) / side - 0x1p-20);
    double last = floor((d->reach - d->low[i] - walk->shift.by[i]) / side + 0x1p-20);
    walk->shift.turns[i] = (int32_t)first;
    walk->last[i] = (int32_t)last;
    while (walk->shift.turns[i] > walk->last[i]) {
      if (++i == lattice->n)
        return false;
      walk->shift.turns[i]++;
    }
  }
  kith_shift_add_up(lattice, 0, &walk->shift);
  return true;
}

/* Goes to the first shift; false if there is none. */
static inline KITH_DEVICE bool kith_shift_first(const kith_lattice *lattice,
                                                const kith_differences *differences, kith_shift_walk *walk) {
  for (uint32_t i = 0; i < KITH_MAX_AXES; i++) {
    walk->shift.turns[i] = walk->last[i] = 0;
    walk->shift.by[i] = 0;
  }
  return kith_shift_settle(lattice, differences, walk, lattice->n);
}

/* Goes on to the next one; false if that was the last. */
static inline KITH_DEVICE bool kith_shift_next(const kith_lattice *lattice, const kith_differences *differences,
                                               kith_shift_walk *walk) {
  uint32_t i = 0;
  while (i < lattice->n && walk->shift.turns[i] == walk->last[i])
    i++;
  if (i == lattice->n)
    return false;
  walk->shift.turns[i]++;
  return kith_shift_settle(lattice, differences, walk, i);
}

/* 0 for the shift 0, else the sign of its last turns that are not 0: of a shift and its opposite, one is
 * positive. */
static inline KITH_DEVICE int kith_shift_sign(const kith_lattice *lattice, const kith_shift *shift) {
  for (uint32_t i = lattice->n; i-- > 0;)
    if (shift->turns[i] != 0)
      return shift->turns[i] > 0 ? 1 : -1;
  return 0;
}

static inline KITH_DEVICE bool kith_shift_equals(const kith_lattice *lattice, const kith_shift *a,
                                                 const kith_shift *b) {
  for (uint32_t i = 0; i < lattice->n; i++)
    if (a->turns[i] != b->turns[i])
      return false;
  return true;
}

/* Whether a shift comes before another. A shift and its opposite are equal in this order, so that pairs that
 * are equally near in two images have the same one in front seen from either point. */
static inline KITH_DEVICE bool kith_shift_before(const kith_lattice *lattice, const kith_shift *a,
                                                 const kith_shift *b) {
  int sign_a = kith_shift_sign(lattice, a);
  int sign_b = kith_shift_sign(lattice, b);
  for (uint32_t i = lattice->n; i-- > 0;)
    if (sign_a * a->turns[i] != sign_b * b->turns[i])
      return sign_a * a->turns[i] < sign_b * b->turns[i];
  return false;
}

/* Whether points in a box [low, high] along axis i have no candidate within reach beyond the faces of the brick
 * there: so it is for most. */
static inline KITH_DEVICE bool kith_lattice_is_interior(const kith_lattice *lattice, uint32_t i, double low,
                                                        double high, double reach) {
  double side = lattice->vector[i][i];
  reach *= 1 + 0x1p-20;
  return low - 0x1p-20 * side > reach && high + 0x1p-20 * side + reach < side;
}

/* The size up to which a pair within the limit has no second image within it. Where this is not less than the
 * limit, as for every eps that is not all but half of the height, none has. */
double kith_lattice_doubt(const kith_lattice *lattice, double limit);

#endif
