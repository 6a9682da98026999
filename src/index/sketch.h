/* Sketches: points in a few dimensions, in which no two are farther apart than in all of them.
 *
 * The first k dimensions of a sketch are columns of the points, those of largest variance (REORDER). One more
 * (SORTIDU's un-indexed dimension, but for all of them at once) is the distance from a corner of the box around
 * all points, in the columns that remain: by the triangle inequality it differs by at most the distance of two
 * points in those columns. So |S(a) - S(b)| <= |a - b|, up to rounding (kith_sketch_reach2).
 *
 * May include points, space, base. */
#ifndef KITH_INDEX_SKETCH_H
#define KITH_INDEX_SKETCH_H

#include "points/points.h"
#include "space/predicate.h"

enum { KITH_SKETCH_DIMS = 9 };

typedef struct kith_sketch {
  uint32_t dim;             /* of the points */
  const uint32_t *columns;  /* dim: in the order in which they are taken */
  const double *low, *high; /* the box around all points, per column of the input */
  uint32_t split;           /* columns that have a dimension of their own, at most 8 */
  bool rest;                /* the others share one more */
} kith_sketch;

static inline uint32_t kith_sketch_dims(const kith_sketch *sketch) {
  return sketch->split + (sketch->rest && sketch->split < sketch->dim ? 1 : 0);
}

/* The sketch of one row: coordinate d to out[d * stride]. */
void kith_sketch_point(const kith_sketch *sketch, const kith_points *points, uint64_t row, float *out,
                       uint64_t stride);

/* Squared distances of sketches, computed in float, are at most this for pairs that belong. */
float kith_sketch_reach2(const kith_sketch *sketch, const kith_predicate *predicate);

#endif
