/* The epsilon grid order: see ego.h. */
#include "index/ego.h"

#include "base/team.h"

void kith_ego_grid(kith_grid *grid, kith_grid_spec *spec, const uint32_t *dims, uint32_t n_dims,
                   const kith_predicate *predicate) {
  spec->row_side = spec->x_side = 1;
  for (uint32_t k = n_dims < KITH_GRID_DIMS ? n_dims : KITH_GRID_DIMS; k > 0; k--) {
    spec->k = k;
    for (uint32_t j = 0; j < k; j++)
      spec->dims[k - 1 - j] = dims[j];
    kith_grid_make(grid, spec, predicate);
    if (grid->k == k)
      return;
  }
}

static double coordinate(const kith_index *index, uint32_t c, uint32_t position) {
  size_t at = c * index->stride + position;
  return index->dtype == KITH_F32 ? (double)((const float *)index->coords)[at]
                                  : ((const double *)index->coords)[at];
}

void kith_ego_bound(const kith_index *index, const uint32_t *positions, uint32_t n, kith_ego_box *box) {
  const kith_grid *grid = index->grid;
  for (uint32_t j = 0; j < grid->k; j++) {
    uint32_t low = UINT32_MAX;
    uint32_t high = 0;
    for (uint32_t i = 0; i < n; i++) {
      uint32_t cell = kith_grid_cell(grid, j, coordinate(index, grid->dims[j], positions[i]));
      low = cell < low ? cell : low;
      high = cell > high ? cell : high;
    }
    box->low[j] = low;
    box->high[j] = high;
  }
}

typedef struct bounding {
  const kith_index *index;
  kith_ego *ego;
} bounding;

static void bound_block(void *argument, uint64_t block) {
  const bounding *b = argument;
  uint32_t begin = (uint32_t)block * KITH_EGO_BLOCK;
  uint32_t n = b->index->n - begin < KITH_EGO_BLOCK ? b->index->n - begin : KITH_EGO_BLOCK;
  uint32_t positions[KITH_EGO_BLOCK];
  for (uint32_t i = 0; i < n; i++)
    positions[i] = begin + i;
  kith_ego_bound(b->index, positions, n, &b->ego->boxes[block]);
}

kith_status kith_ego_build(kith_context *ctx, const kith_index *index, kith_ego *ego) {
  ego->n_blocks = index->n / KITH_EGO_BLOCK + (index->n % KITH_EGO_BLOCK > 0);
  uint64_t bytes = ego->n_blocks * sizeof *ego->boxes;
  ego->boxes = kith_alloc(&ctx->memory, bytes);
  if (!ego->boxes)
    return kith_fail_memory(ctx, bytes, "the blocks of the order");
  bounding b = {.index = index, .ego = ego};
  kith_each_unless_cancelled(ctx, ego->n_blocks, bound_block, &b);
  return kith_check_cancel(ctx);
}

void kith_ego_destroy(kith_ego *ego) {
  kith_free(ego->boxes);
  *ego = (kith_ego){0};
}

/* Whether a sequence that is bounded in dimension j is bounded in the next one, too. */
static bool is_bounded_below(kith_ego_sequence s, const uint32_t cells[2]) {
  return s.first == s.last || cells[0] == cells[1];
}

bool kith_ego_may_meet(const kith_grid *grid, kith_ego_sequence a, kith_ego_sequence b, uint32_t *dims) {
  bool inactive = true; /* in all dimensions from j up, both */
  for (uint32_t j = *dims; j-- > 0;) {
    uint32_t in_a[2] = {a.first->low[j], a.last->high[j]};
    uint32_t in_b[2] = {b.first->low[j], b.last->high[j]};
    if (!kith_ego_is_near(grid, j, in_a, in_b))
      return false;
    inactive = inactive && in_a[0] == in_a[1] && in_b[0] == in_b[1];
    if (inactive)
      *dims = j;
    if (!is_bounded_below(a, in_a) || !is_bounded_below(b, in_b))
      return true;
  }
  return true;
}
