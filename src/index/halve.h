/* An order of points in which consecutive ones are close: the set is halved along the dimension of largest
 * spread, and so are its halves, down to groups of a given size. (What a kd-tree does, without the tree.)
 *
 * Every group but the last has exactly `group` points. Time O(n log n). May include base. */
#ifndef KITH_INDEX_HALVE_H
#define KITH_INDEX_HALVE_H

#include "base/context.h"

/* order[i] becomes the number of the i-th point. Coordinate d of point i is values[d * stride + i]. The result
 * is the same whatever the number of threads. */
kith_status kith_halve(kith_context *ctx, const float *values, uint64_t stride, uint32_t n_dims, uint32_t n,
                       uint32_t group, uint32_t *order);

#endif
