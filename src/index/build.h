/* What the two ways to build an index share: index.c for every operation, values.c for counting in one
 * dimension. Included by them alone. */
#ifndef KITH_INDEX_BUILD_H
#define KITH_INDEX_BUILD_H

#include "index/index.h"

#include <string.h>

static inline uint64_t kith_index_stride(uint64_t n) { return (n + 15) / 16 * 16 + KITH_INDEX_SLACK; }

/* Clears what lies beyond the last point, since kernels may load it. */
static inline void kith_index_clear_slack(kith_index *index) {
  uint64_t width = index->dtype == KITH_F32 ? sizeof(float) : sizeof(double);
  uint64_t slack = index->stride - index->n;
  for (uint32_t c = 0; c < index->dim; c++)
    memset((char *)index->coords + (c * index->stride + index->n) * width, 0, slack * width);
  if (index->ids)
    memset(index->ids + index->n, 0, slack * sizeof(uint32_t));
}

/* Lists the crowded cells, and finds the boxes around their points. */
kith_status kith_index_bound_crowds(kith_context *ctx, kith_index *index);

#endif
