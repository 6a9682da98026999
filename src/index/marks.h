/* Marks: points packed for joining all with all in the norms 1 and max.
 *
 * Those norms have no product to be turned into, as the Euclidean one has (panels.h). But their sizes are sums
 * and maxima of differences that need few digits to tell that a pair is far apart. So coordinates become whole
 * marks on a ruler, a byte each: m(x) = floor((x - low) / step), cut off at both ends. Then |m(a) - m(b)| is
 * less than |a - b| / step + 1, and a vector instruction takes 64 differences where float32 has 16: two
 * instructions for 8 columns of 8 candidates, an eighth of what differences of floats take (AVX-512).
 *
 * Marks reject, and accept where no coordinate is cut off (norm 1); the definition decides the rest. The proof
 * is in docs/exactness.md.
 *
 * Eight columns are a group: [panel][group][point][8]. Columns beyond the last are 0 for all points. */
#ifndef KITH_INDEX_MARKS_H
#define KITH_INDEX_MARKS_H

#include "index/panels.h"

enum { KITH_MARK_COLUMNS = 8 };

static inline uint32_t kith_mark_groups(const kith_packing *packing) {
  return (packing->dim + KITH_MARK_COLUMNS - 1) / KITH_MARK_COLUMNS;
}

static inline size_t kith_mark_panel_bytes(const kith_packing *packing) {
  return (size_t)kith_mark_groups(packing) * KITH_MARK_COLUMNS * KITH_PANEL;
}

/* Chooses the marks of a packing whose columns and centre are known, for points in the box [min, max] (by
 * column of the input), by what tells most pairs of a sample apart. Returns the share of those pairs that marks
 * leave in doubt: 1 where the predicate has no filter, and there are no marks. */
double kith_marks_choose(kith_packing *packing, const kith_predicate *predicate, const kith_points *points,
                         const double *min, const double *max);

/* Fills panels->marks and panels->cut. */
kith_status kith_marks_pack(kith_context *ctx, const kith_points *points, kith_panels *panels);

/* Norm 1: sums above `out` are surely not in, those up to `in` are, if nothing is cut off. Norm max: a pair
 * with a difference above `out` is surely not in. */
typedef struct kith_mark_limits {
  int64_t out, in;
} kith_mark_limits;

kith_mark_limits kith_mark_limits_make(const kith_predicate *predicate, const kith_packing *packing);

#endif
