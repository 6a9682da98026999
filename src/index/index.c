/* The index: see index.h.
 *
 * Building: pack (32 bits of the key, id) into 64-bit items and radix-sort them; keys wider than 32 bits are
 * sorted by their lower word first, then packed again with the upper word in the order reached. Then gather
 * ids and coordinates in the sorted order and cut the directory where keys change. */
#include "index/index.h"

#include "index/sort.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { LOW_WORD = 32 };

/* Everything the stages of one build share. */
typedef struct build {
  kith_context *ctx;
  const kith_points *points;
  const kith_grid *grid;
  kith_index *index;
  bool has_invalid;
  uint64_t *items, *spare; /* n each */
  uint32_t *counts;        /* of the sort */
} build;

static uint64_t point_key(const kith_points *points, const kith_grid *grid, uint64_t i) {
  uint64_t row = 0;
  for (uint32_t j = 1; j < grid->k; j++)
    row += grid->stride[j] * kith_grid_cell(grid, j, kith_points_get(points, i, grid->dims[j]));
  return row << grid->x_bits | kith_grid_cell(grid, 0, kith_points_get(points, i, grid->dims[0]));
}

static bool row_is_valid(const kith_points *points, uint64_t i) {
  for (uint32_t c = 0; c < points->dim; c++)
    if (!isfinite(kith_points_get(points, i, c)))
      return false;
  return true;
}

/* Lists the ids of the valid rows. Inputs with invalid rows are rare: one thread will do for them. */
static void list_ids(build *b) {
  uint64_t n = b->points->n;
  if (!b->has_invalid) {
#pragma omp parallel for num_threads((int)b->ctx->threads) schedule(static)
    for (uint64_t i = 0; i < n; i++)
      b->items[i] = i;
    return;
  }
  uint64_t valid = 0;
  for (uint64_t i = 0; i < n; i++)
    if (row_is_valid(b->points, i))
      b->items[valid++] = i;
}

/* items: (word of the key, id), for the ids in the order they are in. */
static void pack_word(build *b, uint32_t shift) {
  uint64_t n = b->index->n;
#pragma omp parallel for num_threads((int)b->ctx->threads) schedule(static)
  for (uint64_t i = 0; i < n; i++) {
    uint64_t id = (uint32_t)b->items[i];
    b->items[i] = (point_key(b->points, b->grid, id) >> shift) << LOW_WORD | id;
  }
}

static void sort_word(build *b, uint32_t bits) {
  uint64_t *sorted = kith_sort(b->items, b->spare, b->index->n, LOW_WORD, bits, b->counts, b->ctx->threads);
  if (sorted != b->items) {
    b->spare = b->items;
    b->items = sorted;
  }
}

static void sort_items(build *b) {
  uint32_t bits = b->grid->key_bits;
  list_ids(b);
  pack_word(b, 0);
  sort_word(b, bits < LOW_WORD ? bits : LOW_WORD);
  if (bits > LOW_WORD) {
    pack_word(b, LOW_WORD);
    sort_word(b, bits - LOW_WORD);
  }
}

/* One coordinate of a range of positions, from anywhere in memory. */
#define DEFINE_GATHER(NAME, FROM, TO)                                                                          \
  static void NAME(const build *b, uint32_t c, const uint64_t range[2]) {                                      \
    int64_t row_stride = b->points->row_stride;                                                                \
    const char *column = (const char *)b->points->data + (int64_t)c * b->points->col_stride;                   \
    TO *out = (TO *)b->index->coords + c * b->index->stride;                                                   \
    for (uint64_t i = range[0]; i < range[1]; i++)                                                             \
      out[i] = (TO) * (const FROM *)(column + (int64_t)(uint32_t)b->items[i] * row_stride);                    \
  }
DEFINE_GATHER(gather_f32, float, float)
DEFINE_GATHER(gather_f32_as_f64, float, double)
DEFINE_GATHER(gather_f64, double, double)

static void gather_column(const build *b, uint32_t c, const uint64_t range[2]) {
  if (b->points->dtype == KITH_F64)
    gather_f64(b, c, range);
  else if (b->index->dtype == KITH_F64)
    gather_f32_as_f64(b, c, range);
  else
    gather_f32(b, c, range);
}

/* Gathers ids and coordinates; blocks keep the rows of the input in cache for all their columns. */
static void gather(const build *b) {
  enum { BLOCK = 256 };
  uint64_t n = b->index->n;
#pragma omp parallel for num_threads((int)b->ctx->threads) schedule(static)
  for (uint64_t block = 0; block < n; block += BLOCK) {
    uint64_t range[2] = {block, block + BLOCK < n ? block + BLOCK : n};
    for (uint64_t i = range[0]; i < range[1]; i++)
      b->index->ids[i] = (uint32_t)b->items[i];
    for (uint32_t c = 0; c < b->points->dim; c++)
      gather_column(b, c, range);
  }
}

/* Replaces every item by its full key: ids are in the index now. */
static void unpack_keys(const build *b) {
  uint64_t n = b->index->n;
  bool whole = b->grid->key_bits <= LOW_WORD;
#pragma omp parallel for num_threads((int)b->ctx->threads) schedule(static)
  for (uint64_t i = 0; i < n; i++)
    b->items[i] = whole ? b->items[i] >> LOW_WORD : point_key(b->points, b->grid, (uint32_t)b->items[i]);
}

typedef struct directory_counts {
  uint32_t cells, rows;
} directory_counts;

/* Counts the cells and rows that begin in a range of positions; with write set, stores them from `at` on. */
static directory_counts scan_directory(const build *b, const uint64_t range[2], directory_counts at,
                                       bool write) {
  kith_index *index = b->index;
  uint32_t x_bits = b->grid->x_bits;
  uint64_t last = range[0] > 0 ? b->items[range[0] - 1] : UINT64_MAX;
  for (uint64_t i = range[0]; i < range[1]; i++) {
    uint64_t key = b->items[i];
    if (key == last)
      continue;
    if (last == UINT64_MAX || key >> x_bits != last >> x_bits) {
      if (write) {
        index->row_number[at.rows] = key >> x_bits;
        index->row_cell[at.rows] = at.cells;
      }
      at.rows++;
    }
    if (write) {
      index->cell_x[at.cells] = (uint32_t)(key & ((UINT64_C(1) << x_bits) - 1));
      index->cell_start[at.cells] = (uint32_t)i;
    }
    at.cells++;
    last = key;
  }
  return at;
}

static kith_status allocate_directory(build *b, directory_counts total) {
  kith_index *index = b->index;
  kith_memory *memory = &b->ctx->memory;
  index->n_cells = total.cells;
  index->n_rows = total.rows;
  uint64_t bytes = 8 * (uint64_t)total.cells + 12 * (uint64_t)total.rows;
  index->cell_x = kith_alloc(memory, 4 * (uint64_t)total.cells);
  index->cell_start = kith_alloc(memory, 4 * ((uint64_t)total.cells + 1));
  index->row_number = kith_alloc(memory, 8 * (uint64_t)total.rows);
  index->row_cell = kith_alloc(memory, 4 * ((uint64_t)total.rows + 1));
  if (!index->cell_x || !index->cell_start || !index->row_number || !index->row_cell)
    return kith_fail_memory(b->ctx, bytes, "the directory of cells");
  index->cell_start[total.cells] = index->n;
  index->row_cell[total.rows] = total.cells;
  return KITH_OK;
}

/* Cuts the directory in shares of positions: count, sum, write. */
static kith_status make_directory(build *b) {
  enum { SHARES = 64 };
  directory_counts start[SHARES + 1] = {{0, 0}};
  uint64_t n = b->index->n;
#pragma omp parallel for num_threads((int)b->ctx->threads) schedule(static)
  for (int s = 0; s < SHARES; s++) {
    uint64_t range[2] = {n * (uint64_t)s / SHARES, n * (uint64_t)(s + 1) / SHARES};
    start[s + 1] = scan_directory(b, range, (directory_counts){0, 0}, false);
  }
  for (int s = 0; s < SHARES; s++) {
    start[s + 1].cells += start[s].cells;
    start[s + 1].rows += start[s].rows;
  }
  kith_status status = allocate_directory(b, start[SHARES]);
  if (status)
    return status;
#pragma omp parallel for num_threads((int)b->ctx->threads) schedule(static)
  for (int s = 0; s < SHARES; s++) {
    uint64_t range[2] = {n * (uint64_t)s / SHARES, n * (uint64_t)(s + 1) / SHARES};
    scan_directory(b, range, start[s], true);
  }
  return KITH_OK;
}

static uint64_t coordinate_bytes(uint32_t dim, kith_dtype dtype, uint64_t stride) {
  return stride * dim * (dtype == KITH_F32 ? sizeof(float) : sizeof(double));
}

/* Allocates the sorted copy; what lies beyond the last point is cleared, since kernels may load it. */
static kith_status allocate_points(build *b) {
  kith_index *index = b->index;
  uint64_t bytes = coordinate_bytes(index->dim, index->dtype, index->stride);
  index->coords = kith_alloc(&b->ctx->memory, bytes);
  if (!index->coords)
    return kith_fail_memory(b->ctx, bytes, "the sorted copy of the points");
  index->ids = kith_alloc(&b->ctx->memory, 4 * index->stride);
  if (!index->ids)
    return kith_fail_memory(b->ctx, 4 * index->stride, "the ids of the sorted points");
  uint64_t width = index->dtype == KITH_F32 ? 4 : 8;
  for (uint32_t c = 0; c < index->dim; c++)
    memset((char *)index->coords + (c * index->stride + index->n) * width, 0,
           (index->stride - index->n) * width);
  memset(index->ids + index->n, 0, 4 * (index->stride - index->n));
  return KITH_OK;
}

static kith_status allocate_sort(build *b) {
  uint64_t bytes = 8 * (uint64_t)b->index->n;
  uint64_t count_bytes = 4 * kith_sort_counts(b->ctx->threads);
  b->items = kith_alloc(&b->ctx->memory, bytes);
  b->spare = kith_alloc(&b->ctx->memory, bytes);
  b->counts = kith_alloc(&b->ctx->memory, count_bytes);
  if (!b->items || !b->spare || !b->counts)
    return kith_fail_memory(b->ctx, 2 * bytes + count_bytes, "sorting the points");
  return KITH_OK;
}

kith_status kith_index_build(kith_context *ctx, const kith_points *points, const kith_grid *grid,
                             uint64_t invalid_rows, kith_dtype dtype, kith_index *index) {
  *index =
      (kith_index){.grid = grid, .dtype = dtype, .dim = points->dim, .n = (uint32_t)(points->n - invalid_rows)};
  index->stride = ((uint64_t)index->n + 15) / 16 * 16 + KITH_INDEX_SLACK;
  build b = {.ctx = ctx, .points = points, .grid = grid, .index = index, .has_invalid = invalid_rows > 0};
  kith_status status = allocate_sort(&b);
  if (status)
    goto done;
  sort_items(&b);
  kith_free(b.spare);
  b.spare = NULL;
  if (!kith_stage_report(ctx, 0.5, 0)) {
    status = kith_check_cancel(ctx);
    goto done;
  }
  if ((status = allocate_points(&b)))
    goto done;
  gather(&b);
  unpack_keys(&b);
  status = make_directory(&b);
done:
  kith_free(b.items);
  kith_free(b.spare);
  kith_free(b.counts);
  if (status)
    kith_index_destroy(index);
  return status;
}

void kith_index_destroy(kith_index *index) {
  kith_free(index->coords);
  kith_free(index->ids);
  kith_free(index->cell_x);
  kith_free(index->cell_start);
  kith_free(index->row_number);
  kith_free(index->row_cell);
  *index = (kith_index){0};
}

uint64_t kith_index_bytes(const kith_points *points, kith_dtype dtype) {
  uint64_t n = points->n;
  uint64_t kept = coordinate_bytes(points->dim, dtype, n + KITH_INDEX_SLACK) + 4 * n;
  uint64_t sorting = 16 * n;
  uint64_t directory = kept + 8 * n + 20 * n;
  return sorting > directory ? sorting : directory;
}

/* The last i with starts[i] <= value, for ascending starts[0..n) with starts[0] <= value. */
static uint32_t last_at_or_before(const uint32_t *starts, uint32_t n, uint32_t value) {
  uint32_t low = 0;
  uint32_t high = n;
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    if (starts[middle] <= value)
      low = middle;
    else
      high = middle;
  }
  return low;
}

uint32_t kith_index_cell_at(const kith_index *index, uint32_t position) {
  return last_at_or_before(index->cell_start, index->n_cells, position);
}

uint32_t kith_index_row_at(const kith_index *index, uint32_t cell) {
  return last_at_or_before(index->row_cell, index->n_rows, cell);
}
