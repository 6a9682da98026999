/* An index for counting float32 points in one dimension: the sorted coordinates and nothing else.
 *
 * Counting needs no ids, and a coordinate tells its cell; so the coordinates themselves are sorted, as 32-bit
 * keys of the same order, least significant digit first. Memory while building: 8 bytes a point and the
 * directory, where items of key and id would take 24. O(n) passes. */
#include "base/team.h"
#include "index/build.h"

enum { BLOCK = 4096, DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* Everything the stages of one build share. */
typedef struct build {
  const kith_points *points;
  kith_index *index;
  uint32_t *keys;  /* n, in the room of the coordinates */
  uint32_t *spare; /* n: the other side of a pass; then the cells */
  uint32_t *from, *to;
  uint32_t shift; /* of the digit being sorted by */
  uint64_t shares;
  uint32_t *counts; /* [share][digit] */
  uint32_t *starts; /* of the shares: the number of their first cell, once summed */
} build;

/* A number of the same order as the float: negative ones have all bits turned, others the sign. */
static uint32_t key_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

static float value_of(uint32_t key) {
  uint32_t bits = key >> 31 ? key ^ UINT32_C(1) << 31 : ~key;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void share_range(const build *b, uint64_t share, uint64_t range[2]) {
  range[0] = kith_share_begin(b->index->n, share, b->shares);
  range[1] = kith_share_begin(b->index->n, share + 1, b->shares);
}

static void list_keys(void *argument, uint64_t share) {
  const build *b = argument;
  uint64_t range[2];
  share_range(b, share, range);
  for (uint64_t i = range[0]; i < range[1]; i++)
    b->keys[i] = key_of((float)kith_points_get(b->points, i, 0));
}

/* Inputs with invalid rows are rare: one thread will do for them. */
static void list_valid_keys(const build *b) {
  uint64_t valid = 0;
  for (uint64_t i = 0; i < b->points->n; i++)
    if (kith_points_is_valid(b->points, i))
      b->keys[valid++] = key_of((float)kith_points_get(b->points, i, 0));
}

static void count_share(void *argument, uint64_t share) {
  const build *b = argument;
  uint32_t *counts = b->counts + share * DIGITS;
  uint64_t range[2];
  share_range(b, share, range);
  memset(counts, 0, DIGITS * sizeof *counts);
  for (uint64_t i = range[0]; i < range[1]; i++)
    counts[(b->from[i] >> b->shift) % DIGITS]++;
}

static void scatter_share(void *argument, uint64_t share) {
  const build *b = argument;
  uint32_t *places = b->counts + share * DIGITS;
  uint64_t range[2];
  share_range(b, share, range);
  for (uint64_t i = range[0]; i < range[1]; i++)
    b->to[places[(b->from[i] >> b->shift) % DIGITS]++] = b->from[i];
}

/* Turns the counts of (share, digit) into places; false if all keys have the same digit. */
static bool sum_counts(const build *b) {
  uint32_t sum = 0;
  bool differ = false;
  for (uint32_t digit = 0; digit < DIGITS; digit++) {
    uint32_t before = sum;
    for (uint64_t s = 0; s < b->shares; s++) {
      uint32_t count = b->counts[s * DIGITS + digit];
      b->counts[s * DIGITS + digit] = sum;
      sum += count;
    }
    differ |= sum > before && sum - before < b->index->n;
  }
  return differ;
}

static void sort_keys(kith_context *ctx, build *b) {
  b->from = b->keys;
  b->to = b->spare;
  for (b->shift = 0; b->shift < 32 && !kith_cancelled(ctx); b->shift += DIGIT_BITS) {
    kith_each(ctx, b->shares, count_share, b);
    if (!sum_counts(b))
      continue;
    kith_each(ctx, b->shares, scatter_share, b);
    uint32_t *sorted = b->to;
    b->to = b->from;
    b->from = sorted;
  }
  if (b->from != b->keys)
    memcpy(b->keys, b->from, b->index->n * sizeof *b->keys);
}

/* Turns the keys of a share back into coordinates, and finds their cells. */
static void find_cells(void *argument, uint64_t share) {
  const build *b = argument;
  const kith_grid *grid = b->index->grid;
  float *values = b->index->coords;
  uint64_t range[2];
  share_range(b, share, range);
  for (uint64_t i = range[0]; i < range[1]; i++) {
    float value = value_of(b->keys[i]);
    values[i] = value;
    b->spare[i] = kith_grid_cell(grid, 0, value);
  }
}

/* Whether position i begins a cell. */
static bool begins_cell(const build *b, uint64_t i) { return i == 0 || b->spare[i] != b->spare[i - 1]; }

static void count_cells(void *argument, uint64_t share) {
  const build *b = argument;
  uint64_t range[2];
  share_range(b, share, range);
  uint32_t cells = 0;
  for (uint64_t i = range[0]; i < range[1]; i++)
    cells += begins_cell(b, i);
  b->starts[share] = cells;
}

static void write_cells(void *argument, uint64_t share) {
  const build *b = argument;
  uint64_t range[2];
  share_range(b, share, range);
  uint32_t cell = b->starts[share];
  for (uint64_t i = range[0]; i < range[1]; i++) {
    if (!begins_cell(b, i))
      continue;
    b->index->cell_x[cell] = b->spare[i];
    b->index->cell_start[cell++] = (uint32_t)i;
  }
}

/* One row: it has all cells. */
static kith_status make_directory(kith_context *ctx, build *b) {
  kith_index *index = b->index;
  kith_each(ctx, b->shares, find_cells, b);
  kith_each(ctx, b->shares, count_cells, b);
  uint32_t cells = 0;
  for (uint64_t s = 0; s < b->shares; s++) {
    uint32_t count = b->starts[s];
    b->starts[s] = cells;
    cells += count;
  }
  index->n_cells = cells;
  index->n_rows = cells > 0;
  index->cell_x = kith_alloc(&ctx->memory, 4 * (uint64_t)cells);
  index->cell_start = kith_alloc(&ctx->memory, 4 * ((uint64_t)cells + 1));
  index->row_number = kith_alloc(&ctx->memory, 8);
  index->row_cell = kith_alloc(&ctx->memory, 8);
  if (!index->cell_x || !index->cell_start || !index->row_number || !index->row_cell)
    return kith_fail_memory(ctx, 8 * (uint64_t)cells, "the directory of cells");
  kith_each(ctx, b->shares, write_cells, b);
  index->cell_start[cells] = index->n;
  index->row_number[0] = 0;
  index->row_cell[0] = 0;
  index->row_cell[index->n_rows] = cells;
  return KITH_OK;
}

kith_status kith_index_build_values(kith_context *ctx, const kith_points *points, const kith_grid *grid,
                                    uint64_t invalid_rows, kith_index *index) {
  *index = (kith_index){.grid = grid,
                        .dtype = KITH_F32,
                        .dim = 1,
                        .n = (uint32_t)(points->n - invalid_rows),
                        .id_end = points->n};
  index->stride = kith_index_stride(index->n);
  build b = {.points = points, .index = index, .shares = kith_shares(ctx, index->n, BLOCK)};
  uint64_t bytes = index->stride * sizeof(float) + index->n * sizeof(uint32_t);
  uint64_t count_bytes = (b.shares + 1) * DIGITS * sizeof(uint32_t);
  kith_status status = KITH_OK;
  index->coords = kith_alloc(&ctx->memory, index->stride * sizeof(float));
  b.spare = kith_alloc(&ctx->memory, index->n * sizeof(uint32_t));
  b.counts = kith_alloc(&ctx->memory, count_bytes);
  if (!index->coords || !b.spare || !b.counts) {
    status = kith_fail_memory(ctx, bytes + count_bytes, "the sorted points");
    goto done;
  }
  b.keys = index->coords;
  b.starts = b.counts;
  if (invalid_rows > 0)
    list_valid_keys(&b);
  else
    kith_each(ctx, b.shares, list_keys, &b);
  sort_keys(ctx, &b);
  kith_stage_report(ctx, 0.5, 0);
  if ((status = kith_check_cancel(ctx)))
    goto done;
  kith_index_clear_slack(index);
  if (!(status = make_directory(ctx, &b)))
    status = kith_index_bound_crowds(ctx, index);
done:
  kith_free(b.spare);
  kith_free(b.counts);
  if (status)
    kith_index_destroy(index);
  return status;
}
