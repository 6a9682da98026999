/* The epsilon grid order: see ego.h. */
#include "index/ego.h"

#include "base/team.h"

/* Points that make a block, about, and how far from there it may be cut. */
enum { BLOCK = 96, LEEWAY = 40 };

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

static uint32_t cell_of(const kith_index *index, uint32_t j, uint32_t position) {
  return kith_grid_cell(index->grid, j, coordinate(index, index->grid->dims[j], position));
}

/* The step from one position to the next: 1 + the highest dimension in which their cells differ, or 0. */
static uint32_t step_between(const kith_index *index, uint32_t from, uint32_t to) {
  uint32_t j = index->grid->k;
  while (j > 0 && cell_of(index, j - 1, from) == cell_of(index, j - 1, to))
    j--;
  return j;
}

uint32_t kith_ego_cut(const kith_index *index, const uint32_t *positions, uint32_t first, uint32_t end) {
  uint32_t cut = first;
  uint32_t largest = 0;
  for (uint32_t i = first; i < end; i++) {
    uint32_t step = step_between(index, positions[i - 1], positions[i]);
    if (step >= largest) {
      largest = step;
      cut = i;
    }
  }
  return cut;
}

uint32_t kith_ego_block_at(const kith_ego *ego, uint32_t position) {
  uint32_t block = position / BLOCK;
  block = block < ego->n_blocks ? block : ego->n_blocks - 1;
  while (ego->starts[block] > position)
    block--;
  while (ego->starts[block + 1] <= position)
    block++;
  return block;
}

void kith_ego_bound(const kith_index *index, const uint32_t *positions, uint32_t n, kith_ego_box *box) {
  const kith_grid *grid = index->grid;
  for (uint32_t j = 0; j < grid->k; j++) {
    uint32_t low = UINT32_MAX;
    uint32_t high = 0;
    for (uint32_t i = 0; i < n; i++) {
      uint32_t cell = cell_of(index, j, positions[i]);
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

/* Where the block after this one starts: near its number times BLOCK. */
static void end_block(void *argument, uint64_t block) {
  const bounding *b = argument;
  uint32_t positions[2 * LEEWAY + 1];
  uint32_t first = (uint32_t)(block + 1) * BLOCK - LEEWAY - 1;
  uint32_t n = 0;
  for (; n < 2 * LEEWAY + 1 && first + n < b->index->n; n++)
    positions[n] = first + n;
  b->ego->starts[block + 1] = first + kith_ego_cut(b->index, positions, 1, n);
}

static void bound_block(void *argument, uint64_t block) {
  const bounding *b = argument;
  uint32_t positions[BLOCK + 2 * LEEWAY];
  uint32_t begin = b->ego->starts[block];
  uint32_t n = b->ego->starts[block + 1] - begin;
  for (uint32_t i = 0; i < n; i++)
    positions[i] = begin + i;
  kith_ego_bound(b->index, positions, n, &b->ego->boxes[block]);
}

kith_status kith_ego_build(kith_context *ctx, const kith_index *index, kith_ego *ego) {
  uint64_t n = ego->n_blocks = index->n / BLOCK + (index->n % BLOCK > 0);
  ego->starts = kith_alloc(&ctx->memory, (n + 1) * sizeof *ego->starts);
  ego->boxes = kith_alloc(&ctx->memory, n * sizeof *ego->boxes);
  if (!ego->starts || !ego->boxes)
    return kith_fail_memory(ctx, (n + 1) * (sizeof *ego->starts + sizeof *ego->boxes),
                            "the blocks of the order");
  bounding b = {.index = index, .ego = ego};
  ego->starts[0] = 0;
  ego->starts[n] = index->n;
  kith_each_unless_cancelled(ctx, n > 0 ? n - 1 : 0, end_block, &b);
  if (kith_cancelled(ctx))
    return kith_check_cancel(ctx);
  kith_each_unless_cancelled(ctx, n, bound_block, &b);
  return kith_check_cancel(ctx);
}

void kith_ego_destroy(kith_ego *ego) {
  kith_free(ego->starts);
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
