/* Points: views of arrays that live elsewhere, and the files that they come from.
 *
 * Owns: reading a coordinate through strides and types, validation, column statistics, loaders (formats/).
 * May be included by everything to its right on the data path. */
#ifndef KITH_POINTS_POINTS_H
#define KITH_POINTS_POINTS_H

#include "base/context.h"

#include <math.h>

/* Coordinate c of point i, as double (exact for both types). */
static inline double kith_points_get(const kith_points *points, uint64_t i, uint32_t c) {
  const char *at =
      (const char *)points->data + (int64_t)i * points->row_stride + (int64_t)c * points->col_stride;
  return points->dtype == KITH_F32 ? (double)*(const float *)at : *(const double *)at;
}

/* Whether all coordinates of a point are finite. */
static inline bool kith_points_is_valid(const kith_points *points, uint64_t i) {
  for (uint32_t c = 0; c < points->dim; c++)
    if (!isfinite(kith_points_get(points, i, c)))
      return false;
  return true;
}

/* Checks the view itself: n < 2^32, dim from 1 to KITH_MAX_DIM, a known dtype, strides that hold the alignment.
 * `name` is how messages call it: a path, "a" or "b". */
kith_status kith_points_check(kith_context *ctx, const kith_points *points, const char *name);

enum { KITH_MAX_DIM = 4096 };

/* What one pass over the points finds. Row i is invalid if a coordinate is NaN or infinite. */
typedef struct kith_points_summary {
  uint64_t invalid_rows;
  uint64_t first_invalid_row; /* if invalid_rows > 0 */
  uint32_t first_invalid_col;
  /* dim entries each, over the valid rows; owned by the caller. */
  double *min, *max;
} kith_points_summary;

/* Fills the summary (min and max must have room), with all threads of ctx. With no valid row, min is +inf and
 * max is -inf. Once the call is cancelled it stops, and the summary is of no use. */
void kith_points_summarize(kith_context *ctx, const kith_points *points, kith_points_summary *summary);

#endif
