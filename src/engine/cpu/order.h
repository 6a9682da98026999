/* Rows in id order: either the candidates of a tile are put in order before they are tested, once for all its
 * queries, or, if they are too many, every row is sorted after it is filled. */
#ifndef KITH_ENGINE_CPU_ORDER_H
#define KITH_ENGINE_CPU_ORDER_H

#include "engine/cpu/lane.h"

/* Lists the candidates of the tile as items (id << 32 | position), by id, in *items. Returns how many, or
 * UINT32_MAX if they exceed KITH_SORT_CAPACITY. */
uint32_t kith_order_candidates(kith_lane *lane, const uint64_t **items);

/* Stages items[0..n), which must fit, and notes where the queries stand among them. */
void kith_order_stage(kith_lane *lane, const uint64_t *items, uint32_t n);

/* Sorts a filled row by id, its distances along with it unless NULL. In place: O(n log n). */
void kith_order_row(uint32_t *ids, double *distances, uint64_t n);

#endif
