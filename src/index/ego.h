/* The epsilon grid order (EGO): points by their cells of side eps, the most selective dimension first.
 *
 * An index over a grid of such cells in as many dimensions as a key holds is that order already: keys are
 * numbers whose highest digit is the cell in dims[k - 1], so that sorting by them is the lexicographic sort.
 * What this adds are blocks: some consecutive positions each, and the box of cells around them. A block ends
 * where the order takes its largest step nearby, that is, in the highest dimension: so boxes are small.
 *
 * A sequence of blocks is bounded by the first cells of its first block and the last cells of its last one, as
 * far as the order tells: from the highest dimension down, through those in which all of the sequence lies in
 * one cell (they are inactive, in the words of Super-EGO), to the first in which it does not. Two sequences
 * hold no pair if they are further apart in such a dimension than the grid's reach.
 *
 * Memory: 2 bytes a point. May include index and base; plan and engines include it. */
#ifndef KITH_INDEX_EGO_H
#define KITH_INDEX_EGO_H

#include "index/index.h"

/* Cells, by dimension of the grid. */
typedef struct kith_ego_box {
  uint32_t low[KITH_GRID_DIMS], high[KITH_GRID_DIMS];
} kith_ego_box;

typedef struct kith_ego {
  uint32_t n_blocks;
  uint32_t *starts; /* n_blocks + 1 */
  kith_ego_box *boxes;
} kith_ego;

/* Makes the grid of the order, over as many of the listed dimensions, the most selective first, as keys hold.
 * The spec's k, dims and sides are set; its boxes must be. */
void kith_ego_grid(kith_grid *grid, kith_grid_spec *spec, const uint32_t *dims, uint32_t n_dims,
                   const kith_predicate *predicate);

/* Finds the blocks of an index over such a grid. */
kith_status kith_ego_build(kith_context *ctx, const kith_index *index, kith_ego *ego);
void kith_ego_destroy(kith_ego *ego);

/* Where to cut ascending positions: the last i in [first, end) of those with the largest step from i - 1 to i.
 * first >= 1. */
uint32_t kith_ego_cut(const kith_index *index, const uint32_t *positions, uint32_t first, uint32_t end);

/* The block that a position is in. */
uint32_t kith_ego_block_at(const kith_ego *ego, uint32_t position);

/* The box around some positions, at least one. */
void kith_ego_bound(const kith_index *index, const uint32_t *positions, uint32_t n, kith_ego_box *box);

/* Whether cells [a_low, a_high] and [b_low, b_high] of dimension j are within reach. */
static inline bool kith_ego_is_near(const kith_grid *grid, uint32_t j, const uint32_t a[2],
                                    const uint32_t b[2]) {
  return a[0] <= b[1] + grid->reach[j] && b[0] <= a[1] + grid->reach[j];
}

/* A sequence of boxes in this order. */
typedef struct kith_ego_sequence {
  const kith_ego_box *first, *last; /* the same: one box, which bounds all dimensions */
} kith_ego_sequence;

/* Whether two sequences may hold a pair. *dims: the dimensions below it are still to be looked at; those in
 * which both sequences, hence all parts of them, lie in one cell each need no second look. */
bool kith_ego_may_meet(const kith_grid *grid, kith_ego_sequence a, kith_ego_sequence b, uint32_t *dims);

#endif
