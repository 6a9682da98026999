/* Rows in id order: the candidates of a tile are put in that order before they are tested, once for all its
 * queries. If they are too many to be sorted at once, they come in windows of ids. */
#ifndef KITH_ENGINE_CPU_ORDER_H
#define KITH_ENGINE_CPU_ORDER_H

#include "engine/cpu/lane.h"

/* Candidates of the tile with ids in [begin, end), by id. */
typedef struct kith_ordered {
  uint64_t begin, end;
  const uint64_t *items; /* id << 32 | position */
  uint32_t n;
} kith_ordered;

/* Moves on to the next window of ids (from {0}, to the first one); false when there are no more. */
bool kith_order_candidates(kith_lane *lane, kith_ordered *ordered);

/* Stages items[0..n), which must fit, and notes where the queries stand among them. */
void kith_order_stage(kith_lane *lane, const uint64_t *items, uint32_t n);

#endif
