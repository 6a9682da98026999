/* The index: see index.h.
 *
 * Building: pack (32 bits of the key, id) into 64-bit items and radix-sort them; keys wider than 32 bits are
 * sorted by their lower word first, then packed again with the upper word in the order reached. Then gather
 * ids and coordinates in the sorted order and cut the directory where keys change. */
#include "index/index.h"

#include "base/team.h"
#include "index/build.h"
#include "index/sort.h"
#include "space/loops.h"

enum { LOW_WORD = 32 };

typedef struct directory_counts {
  uint32_t cells, rows;
} directory_counts;

/* Everything the stages of one build share. */
typedef struct build {
  kith_context *ctx;
  const kith_points *points;
  const kith_grid *grid;
  const kith_lattice *wrap_into;
  kith_index *index;
  bool has_invalid;
  uint64_t *items, *spare; /* n each; spare lies in the room of the coordinates if that is large enough */
  uint64_t *own_spare;     /* otherwise */
  uint32_t *counts;        /* of the sort */
  directory_counts *ends;  /* of the shares of the directory, once summed */
  uint32_t word_shift;     /* which word of the keys is being packed */
} build;

enum { BLOCK = 1024 };

/* Coordinates of the points with ids (uint32_t)items[0..n), in one column. */
#define DEFINE_READ(NAME, TYPE)                                                                                \
  static void NAME(const kith_points *points, uint32_t column, const uint64_t *items, uint32_t n,              \
                   double *values) {                                                                           \
    int64_t row_stride = points->row_stride;                                                                   \
    const char *data = (const char *)points->data + (int64_t)column * points->col_stride;                      \
    for (uint32_t i = 0; i < n; i++)                                                                           \
      values[i] = *(const TYPE *)(const void *)(data + (int64_t)(uint32_t)items[i] * row_stride);              \
  }
DEFINE_READ(read_f32, float)
DEFINE_READ(read_f64, double)

static void read_given(const build *b, uint32_t column, const uint64_t *items, uint32_t n, double *values) {
  (b->points->dtype == KITH_F32 ? read_f32 : read_f64)(b->points, column, items, n, values);
}

/* The same, wrapped into the brick if they are to be: one without angles, where columns do not need each other.
 */
static void read_column(const build *b, uint32_t column, const uint64_t *items, uint32_t n, double *values) {
  read_given(b, column, items, n, values);
  if (!b->wrap_into)
    return;
  double side = kith_lattice_side(b->wrap_into, column);
  for (uint32_t i = 0; i < n; i++)
    values[i] = kith_wrap_nearby(values[i], side);
}

/* The columns of a group, of the n <= BLOCK points of a block, while directions of it are asked for; or all of
 * points that are wrapped into a box with angles, which are three. */
typedef struct group_columns {
  uint32_t first, n; /* n is 0: none yet */
  double values[KITH_GROUP][BLOCK];
} group_columns;

/* Whether columns are wrapped into a box with angles, which takes all of them. */
static bool wraps_together(const build *b) { return b->wrap_into && b->wrap_into->skewed; }

static void read_together(const build *b, const uint64_t *items, uint32_t n, group_columns *group) {
  double *columns[KITH_GROUP];
  group->first = 0;
  group->n = b->points->dim;
  for (uint32_t c = 0; c < group->n; c++) {
    columns[c] = group->values[c];
    read_given(b, c, items, n, columns[c]);
  }
  kith_space_loops_for(b->ctx->isa)->wrap_columns(b->wrap_into, columns, n);
}

/* The columns of a direction. */
static void read_group(const build *b, const kith_direction *along, const uint64_t *items, uint32_t n,
                       group_columns *group) {
  if (group->n > 0 && along->first >= group->first && along->first < group->first + group->n)
    return;
  if (wraps_together(b)) {
    read_together(b, items, n, group);
    return;
  }
  group->first = along->first;
  group->n = along->n;
  for (uint32_t i = 0; i < along->n; i++)
    read_column(b, along->first + i, items, n, group->values[i]);
}

/* Their coordinates along grid dimension j. */
static const double *read_along(const build *b, uint32_t j, const uint64_t *items, uint32_t n,
                                group_columns *group, double *values) {
  const kith_direction *along = &b->grid->along[j];
  read_group(b, along, items, n, group);
  if (along->n == 1)
    return group->values[along->first - group->first];
  memset(values, 0, n * sizeof *values);
  for (uint32_t i = 0; i < along->n; i++) {
    double sign = along->minus >> i & 1 ? -1 : 1;
    for (uint32_t p = 0; p < n; p++)
      values[p] += sign * group->values[i][p];
  }
  return values;
}

/* Their cells in grid dimension j, n <= BLOCK. */
static void find_cells(const build *b, uint32_t j, const uint64_t *items, uint32_t n, group_columns *group,
                       uint32_t *cells) {
  const kith_grid *grid = b->grid;
  double along[BLOCK];
  const double *values = read_along(b, j, items, n, group, along);
  if (grid->tails[j]) {
    for (uint32_t i = 0; i < n; i++)
      cells[i] = kith_grid_cell(grid, j, values[i]);
    return;
  }
  /* kith_grid_cell once more, for most grids, in a loop that the compiler turns into vectors. */
  double origin = grid->origin[j];
  double inverse = grid->inverse[j];
  double last = grid->cells[j] - 1;
  for (uint32_t i = 0; i < n; i++) {
    double cell = (values[i] - origin) * inverse;
    cell = cell > 0 ? cell : 0;
    cells[i] = (uint32_t)(int32_t)(cell < last ? cell : last); /* below 2^29 */
  }
}

/* The keys of the points with ids (uint32_t)items[0..n), n <= BLOCK: one dimension after the other. */
static void find_keys(const build *b, const uint64_t *items, uint32_t n, uint64_t *keys) {
  const kith_grid *grid = b->grid;
  uint64_t rows[BLOCK] = {0};
  uint32_t cells[BLOCK];
  group_columns group;
  group.n = 0;
  for (uint32_t j = 1; j < grid->k; j++) {
    find_cells(b, j, items, n, &group, cells);
    uint64_t stride = grid->stride[j];
    for (uint32_t i = 0; i < n; i++)
      rows[i] += stride * cells[i];
  }
  find_cells(b, 0, items, n, &group, cells);
  for (uint32_t i = 0; i < n; i++)
    keys[i] = rows[i] << grid->x_bits | cells[i];
}

/* Calls fn for every block of up to BLOCK positions or points, on all threads, until the call is cancelled. */
static void each_block(build *b, kith_item_fn fn) {
  kith_each_unless_cancelled(b->ctx, (b->index->n + BLOCK - 1) / BLOCK, fn, b);
}

/* Where block number `block` begins, and how many it holds. */
static uint64_t block_begin(uint64_t block) { return block * BLOCK; }
static uint32_t block_size(const build *b, uint64_t block) {
  uint64_t left = b->index->n - block_begin(block);
  return left < BLOCK ? (uint32_t)left : BLOCK;
}

/* Lists the ids of the valid rows. Inputs with invalid rows are rare: one thread will do for them. */
static void list_valid_ids(build *b) {
  uint64_t valid = 0;
  for (uint64_t i = 0; i < b->points->n; i++)
    if (kith_points_is_valid(b->points, i))
      b->items[valid++] = i;
}

static void list_ids(void *argument, uint64_t block) {
  build *b = argument;
  uint64_t at = block_begin(block);
  for (uint32_t i = 0; i < block_size(b, block); i++)
    b->items[at + i] = at + i;
}

/* spare: (word of the key, id), for the ids of a block in the order they are in. */
static void pack_word(void *argument, uint64_t block) {
  build *b = argument;
  uint64_t at = block_begin(block);
  uint32_t size = block_size(b, block);
  uint64_t keys[BLOCK];
  find_keys(b, b->items + at, size, keys);
  for (uint32_t i = 0; i < size; i++)
    b->spare[at + i] = (keys[i] >> b->word_shift) << LOW_WORD | (uint32_t)b->items[at + i];
}

/* Sorts the ids in items, stably, by bits [shift, shift + bits) of their keys; bits <= 32. */
static void sort_by_word(build *b, uint32_t shift, uint32_t bits) {
  b->word_shift = shift;
  each_block(b, pack_word);
  if (kith_cancelled(b->ctx))
    return;
  kith_sort(b->ctx, b->spare, b->items, b->index->n, LOW_WORD, bits, b->counts);
}

static void sort_items(build *b) {
  uint32_t bits = b->grid->key_bits;
  if (b->has_invalid)
    list_valid_ids(b);
  else
    each_block(b, list_ids);
  sort_by_word(b, 0, bits < LOW_WORD ? bits : LOW_WORD);
  if (bits > LOW_WORD && !kith_cancelled(b->ctx))
    sort_by_word(b, LOW_WORD, bits - LOW_WORD);
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
DEFINE_GATHER(gather_f64_as_f32, double, float)

/* Stores one coordinate of a range of positions. */
static void put_column(const build *b, uint32_t c, const uint64_t range[2], const double *values) {
  uint64_t n = range[1] - range[0];
  uint64_t at = c * b->index->stride + range[0];
  if (b->index->dtype == KITH_F64) {
    memcpy((double *)b->index->coords + at, values, n * sizeof *values);
    return;
  }
  float *out = (float *)b->index->coords + at;
  for (uint64_t i = 0; i < n; i++)
    out[i] = (float)values[i];
}

/* Gathers what is wrapped on the way: a column, or all of them. */
static void gather_wrapped(const build *b, uint32_t c, const uint64_t range[2]) {
  double values[BLOCK];
  read_column(b, c, b->items + range[0], (uint32_t)(range[1] - range[0]), values);
  put_column(b, c, range, values);
}

static void gather_together(const build *b, const uint64_t range[2]) {
  group_columns all;
  read_together(b, b->items + range[0], (uint32_t)(range[1] - range[0]), &all);
  for (uint32_t c = 0; c < all.n; c++)
    put_column(b, c, range, all.values[c]);
}

static void gather_column(const build *b, uint32_t c, const uint64_t range[2]) {
  if (b->wrap_into)
    gather_wrapped(b, c, range);
  else if (b->points->dtype == KITH_F64 && b->index->dtype == KITH_F32)
    gather_f64_as_f32(b, c, range);
  else if (b->points->dtype == KITH_F64)
    gather_f64(b, c, range);
  else if (b->index->dtype == KITH_F64)
    gather_f32_as_f64(b, c, range);
  else
    gather_f32(b, c, range);
}

/* Gathers the ids and coordinates of a block, while the rows of the input are in cache for all columns. */
static void gather(void *argument, uint64_t block) {
  const build *b = argument;
  uint64_t range[2] = {block_begin(block), block_begin(block) + block_size(b, block)};
  for (uint64_t i = range[0]; i < range[1]; i++)
    b->index->ids[i] = (uint32_t)b->items[i];
  if (wraps_together(b)) {
    gather_together(b, range);
    return;
  }
  for (uint32_t c = 0; c < b->points->dim; c++)
    gather_column(b, c, range);
}

/* Replaces every item of a block by its full key: ids are in the index by then. */
static void unpack_keys(void *argument, uint64_t block) {
  const build *b = argument;
  uint64_t *items = b->items + block_begin(block);
  uint32_t size = block_size(b, block);
  if (b->grid->key_bits > LOW_WORD)
    find_keys(b, items, size, items);
  else
    for (uint32_t i = 0; i < size; i++)
      items[i] >>= LOW_WORD;
}

/* Puts points and keys in order. */
static void place_sorted(build *b) {
  sort_items(b);
  if (!kith_stage_report(b->ctx, 0.5, 0))
    return;
  each_block(b, gather);
  each_block(b, unpack_keys);
}

enum { SHARES = 64 }; /* that the directory is made in */

static void share_range(const build *b, uint64_t share, uint64_t range[2]) {
  range[0] = kith_share_begin(b->index->n, share, SHARES);
  range[1] = kith_share_begin(b->index->n, share + 1, SHARES);
}

/* Counts the cells and rows that begin in a share of the positions. */
static void count_directory(void *argument, uint64_t share) {
  build *b = argument;
  uint64_t range[2];
  share_range(b, share, range);
  uint32_t x_bits = b->grid->x_bits;
  uint32_t cells = 0;
  uint32_t rows = 0;
  uint64_t last = range[0] > 0 ? b->items[range[0] - 1] : ~b->items[0];
  for (uint64_t i = range[0]; i < range[1]; i++) {
    uint64_t key = b->items[i];
    cells += key != last;
    rows += key >> x_bits != last >> x_bits;
    last = key;
  }
  b->ends[share] = (directory_counts){cells, rows};
}

/* Writes the cells and rows that begin in a share. Goes backwards and stores at every point, so that the first
 * point of a cell has the last word: no branches to mispredict. */
static void write_directory(void *argument, uint64_t share) {
  const build *b = argument;
  kith_index *index = b->index;
  uint32_t x_bits = b->grid->x_bits;
  uint64_t x_mask = (UINT64_C(1) << x_bits) - 1;
  uint64_t range[2];
  share_range(b, share, range);
  uint64_t before = range[0] > 0 ? b->items[range[0] - 1] : ~b->items[0];
  uint64_t stop = range[0];
  while (stop < range[1] && b->items[stop] == before)
    stop++; /* the cell of these began in an earlier share */
  if (stop == range[1])
    return;
  uint32_t cell = b->ends[share].cells - 1;
  uint32_t row = b->ends[share].rows - 1;
  for (uint64_t i = range[1]; i-- > stop;) {
    uint64_t key = b->items[i];
    uint64_t previous = i > stop ? b->items[i - 1] : before;
    index->cell_x[cell] = (uint32_t)(key & x_mask);
    index->cell_start[cell] = (uint32_t)i;
    if (key >> x_bits != previous >> x_bits) {
      index->row_number[row] = key >> x_bits;
      index->row_cell[row] = cell;
      row--;
    }
    cell -= key != previous;
  }
}

static kith_status allocate_directory(kith_context *ctx, kith_index *index) {
  kith_memory *memory = &ctx->memory;
  uint64_t cells = index->n_cells;
  uint64_t rows = index->n_rows;
  index->cell_x = kith_alloc(memory, 4 * cells);
  index->cell_start = kith_alloc(memory, 4 * (cells + 1));
  index->row_number = kith_alloc(memory, 8 * rows);
  index->row_cell = kith_alloc(memory, 4 * (rows + 1));
  if (!index->cell_x || !index->cell_start || !index->row_number || !index->row_cell)
    return kith_fail_memory(ctx, 8 * cells + 12 * rows, "the directory of cells");
  index->cell_start[cells] = index->n;
  index->row_cell[rows] = index->n_cells;
  return KITH_OK;
}

/* Makes the directory: count, sum, write. */
static kith_status make_directory(build *b) {
  directory_counts ends[SHARES] = {{0, 0}};
  uint64_t shares = b->index->n ? SHARES : 0;
  b->ends = ends;
  kith_each(b->ctx, shares, count_directory, b);
  for (int s = 1; s < SHARES; s++) {
    ends[s].cells += ends[s - 1].cells;
    ends[s].rows += ends[s - 1].rows;
  }
  b->index->n_cells = ends[SHARES - 1].cells;
  b->index->n_rows = ends[SHARES - 1].rows;
  kith_status status = allocate_directory(b->ctx, b->index);
  if (!status)
    kith_each(b->ctx, shares, write_directory, b);
  return status;
}

static uint64_t coordinate_bytes(uint32_t dim, kith_dtype dtype, uint64_t stride) {
  return stride * dim * (dtype == KITH_F32 ? sizeof(float) : sizeof(double));
}

static kith_status allocate_points(kith_context *ctx, kith_index *index) {
  index->stride = kith_index_stride(index->n);
  uint64_t bytes = coordinate_bytes(index->dim, index->dtype, index->stride);
  index->coords = kith_alloc(&ctx->memory, bytes);
  if (!index->coords)
    return kith_fail_memory(ctx, bytes, "the sorted copy of the points");
  index->ids = kith_alloc(&ctx->memory, sizeof(uint32_t) * index->stride);
  if (!index->ids)
    return kith_fail_memory(ctx, sizeof(uint32_t) * index->stride, "the ids of the sorted points");
  return KITH_OK;
}

static kith_status allocate_sort(build *b) {
  kith_memory *memory = &b->ctx->memory;
  uint64_t bytes = sizeof(uint64_t) * b->index->n;
  uint64_t count_bytes = sizeof(uint32_t) * kith_sort_counts(b->ctx);
  bool fits = bytes <= coordinate_bytes(b->index->dim, b->index->dtype, b->index->stride);
  b->items = kith_alloc(memory, bytes);
  b->counts = kith_alloc(memory, count_bytes);
  b->own_spare = fits ? NULL : kith_alloc(memory, bytes);
  b->spare = fits ? b->index->coords : b->own_spare;
  if (!b->items || !b->counts || !b->spare)
    return kith_fail_memory(b->ctx, 2 * bytes + count_bytes, "sorting the points");
  return KITH_OK;
}

kith_status kith_index_build(kith_context *ctx, const kith_points *points, const kith_grid *grid,
                             uint64_t invalid_rows, kith_dtype dtype, kith_index *index) {
  kith_index_plan plan = {.invalid_rows = invalid_rows, .dtype = dtype};
  return kith_index_build_planned(ctx, points, grid, &plan, index);
}

kith_status kith_index_build_planned(kith_context *ctx, const kith_points *points, const kith_grid *grid,
                                     const kith_index_plan *plan, kith_index *index) {
  *index = (kith_index){.grid = grid,
                        .dtype = plan->dtype,
                        .dim = points->dim,
                        .n = (uint32_t)(points->n - plan->invalid_rows),
                        .id_end = points->n};
  if ((points->dtype == KITH_F64 || plan->wrap_into) && plan->dtype == KITH_F32) {
    index->rounded = points;
    index->wrap_into = plan->wrap_into;
    index->spread = plan->spread;
  }
  build b = {.ctx = ctx,
             .points = points,
             .grid = grid,
             .wrap_into = plan->wrap_into,
             .index = index,
             .has_invalid = plan->invalid_rows > 0};
  kith_status status;
  if ((status = allocate_points(ctx, index)) || (status = allocate_sort(&b)))
    goto done;
  place_sorted(&b);
  if (!(status = kith_check_cancel(ctx)) && !(status = make_directory(&b)))
    status = kith_index_complete(ctx, index);
done:
  kith_free(b.items);
  kith_free(b.own_spare);
  kith_free(b.counts);
  if (status)
    kith_index_destroy(index);
  return status;
}

kith_status kith_index_allocate(kith_context *ctx, kith_index *index) {
  kith_status status = allocate_points(ctx, index);
  if (!status)
    status = allocate_directory(ctx, index);
  if (status)
    kith_index_destroy(index);
  return status;
}

kith_status kith_index_complete(kith_context *ctx, kith_index *index) {
  kith_index_clear_slack(index);
  kith_status status = kith_index_bound_crowds(ctx, index);
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
  kith_free(index->crowds);
  kith_free(index->crowd_box);
  *index = (kith_index){0};
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
