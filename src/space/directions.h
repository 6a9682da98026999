/* Directions: what a grid can cut in norm 1 instead of columns.
 *
 * Along a sum of columns with any signs, such as x - y + z - w, two points are no farther apart than in norm 1.
 * Cells along such sums hold far fewer strangers than cells along columns: the box around a ball of norm 1 is
 * 24 times as large as the ball in four dimensions, that along four directions at right angles 1.5 times.
 *
 * Columns are taken in groups of four; what is left, in a group of two, then one. A group has as many
 * directions as columns: the rows of a Hadamard matrix. With y_k along them, its part of the norm is at least
 * max |y_k|, and at most max(max |y_k|, sum |y_k| / 2): equal to max |y_k| in groups of one and two
 * (docs/exactness.md).
 *
 * Includes nothing but predicate.h; everything to its right on the data path may include it. */
#ifndef KITH_SPACE_DIRECTIONS_H
#define KITH_SPACE_DIRECTIONS_H

#include "space/predicate.h"

/* Dimensions in which directions are worth their while, and in which they can be cut. */
enum { KITH_SLANT_FROM = 4, KITH_SLANT_TO = 8, KITH_GROUP = 4 };

/* Points whose coordinates add up to more than so many reaches keep their columns: rounding would matter. */
#define KITH_SLANT_REACHES 0x1p16

/* What rounding may add to differences along directions in float32, in all groups together, beside that sum:
 * two roundings, of coordinates that are relative to an origin, and so may be twice as large; at both ends. */
#define KITH_SLANT_ROUNDING 0x1p-20

typedef struct kith_direction {
  uint32_t first, n; /* columns from `first` on are added up, */
  uint32_t minus;    /* column first + i with a minus, if bit i is set */
} kith_direction;

/* The group of a column, of so many: where it begins, and how many columns it has. */
static inline KITH_DEVICE uint32_t kith_group_begin(uint32_t dim, uint32_t column) {
  uint32_t begin = column - column % KITH_GROUP;
  bool whole = dim - begin >= KITH_GROUP;
  return !whole && column - begin >= 2 ? begin + 2 : begin;
}
static inline KITH_DEVICE uint32_t kith_group_columns(uint32_t dim, uint32_t begin) {
  uint32_t left = dim - begin;
  return left >= KITH_GROUP ? KITH_GROUP : left >= 2 ? 2 : 1;
}

/* Direction d of points of dim columns; or column d itself, where those are cut. */
static inline KITH_DEVICE kith_direction kith_direction_of(uint32_t dim, uint32_t d, bool slanted) {
  kith_direction along = {.first = d, .n = 1, .minus = 0};
  if (!slanted)
    return along;
  along.first = kith_group_begin(dim, d);
  along.n = kith_group_columns(dim, along.first);
  uint32_t k = d - along.first;
  for (uint32_t i = 0; i < along.n; i++)
    along.minus |= ((i & k & 1) ^ (i & k) >> 1) << i; /* the parity of the bits that both have */
  return along;
}

/* Column number i of a direction, added to the sum of those before it. */
static inline KITH_DEVICE double kith_direction_add(const kith_direction *along, uint32_t i, double sum,
                                                    double x) {
  return along->minus >> i & 1 ? sum - x : sum + x;
}

/* What no point's coordinates add up to more than, for points of a box, if a grid should cut directions; 0: it
 * should cut columns. */
static inline double kith_slanted_of(kith_norm norm, uint32_t dim, const double *min, const double *max,
                                     double reach) {
  const double LARGE = 0x1p1000; /* sums and widths are numbers below */
  if (norm != KITH_NORM_1 || dim < KITH_SLANT_FROM || dim > KITH_SLANT_TO || !isfinite(reach))
    return 0;
  double sum = 0;
  for (uint32_t c = 0; c < dim; c++)
    sum += fmax(fabs(min[c]), fabs(max[c]));
  return sum <= KITH_SLANT_REACHES * reach && sum <= LARGE ? sum : 0;
}

/* From boxes along the columns, one along the directions. */
static inline void kith_direction_bounds(const kith_direction *along, const double *min, const double *max,
                                         double *low, double *high) {
  *low = *high = 0;
  for (uint32_t i = 0; i < along->n; i++) {
    bool minus = along->minus >> i & 1;
    uint32_t c = along->first + i;
    *low += minus ? -max[c] : min[c];
    *high += minus ? -min[c] : max[c];
  }
}

#endif
