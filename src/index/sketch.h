/* Sketches: points in a few dimensions, in which no two are farther apart than in all of them.
 *
 * The first dimensions of a sketch are columns of the points, those of largest variance (REORDER). The columns
 * that remain are dealt out to a few groups, and each group has one more dimension: the distance, in its
 * columns and in the norm, from a corner of the box around all points. (That is SORTIDU's un-indexed dimension,
 * but made of many.) By the triangle inequality it differs by at most the distance of two points in those
 * columns, so that |S(a) - S(b)| <= |a - b|, up to rounding (kith_sketch_reach). Distances from a corner vary
 * more than single columns do, and so tell more points apart.
 *
 * May include kith.h and space. Included by the CUDA engine, too. */
#ifndef KITH_INDEX_SKETCH_H
#define KITH_INDEX_SKETCH_H

#include "kith.h"
#include "space/predicate.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KITH_SKETCH_DIMS = 9 };

typedef struct kith_sketch {
  kith_norm norm;
  uint32_t dim;             /* of the points */
  const uint32_t *columns;  /* dim: in the order in which they are taken */
  const double *low, *high; /* the box around all points, per column of the input */
  uint32_t split;           /* columns that have a dimension of their own, at most 8 */
  uint32_t groups;          /* the others share so many more */
} kith_sketch;

static inline uint32_t kith_sketch_dims(const kith_sketch *sketch) {
  uint32_t others = sketch->dim - sketch->split;
  return sketch->split + (sketch->groups < others ? sketch->groups : others);
}

/* The sketch of one row: coordinate d to out[d * stride]. */
void kith_sketch_point(const kith_sketch *sketch, const kith_points *points, uint64_t row, float *out,
                       uint64_t stride);

/* A box around sketches: dimension d at [d * stride]. */
typedef struct kith_sketch_box {
  const float *low, *high;
  uint64_t stride;
} kith_sketch_box;

/* The size of the gap between two boxes in the norm (norm 2: squared), in float. */
static inline KITH_DEVICE float kith_sketch_gap(kith_norm norm, kith_sketch_box a, kith_sketch_box b,
                                                uint32_t dims) {
  float sum = 0;
  for (uint32_t d = 0; d < dims; d++) {
    float gap = fmaxf(a.low[d * a.stride] - b.high[d * b.stride], b.low[d * b.stride] - a.high[d * a.stride]);
    gap = fmaxf(gap, 0);
    sum = norm == KITH_NORM_2 ? sum + gap * gap : norm == KITH_NORM_1 ? sum + gap : fmaxf(sum, gap);
  }
  return sum;
}

/* Sizes of gaps between sketches, computed in float, are at most this for pairs that belong. */
float kith_sketch_reach(const kith_sketch *sketch, const kith_predicate *predicate);

#ifdef __cplusplus
}
#endif
#endif
