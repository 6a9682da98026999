/* Views of points: checks, one-pass summaries, statistics. See points.h and section 2 of kith.h.
 *
 * kith_points_summarize runs over every input of every join, so it must go at the speed of memory. It works
 * in blocks of rows. A block is folded without a branch per value: minimum, maximum, and the bits of x - x,
 * which are all zero exactly if x is finite. Only a block that holds an invalid value is walked row by row.
 * Minimum and maximum do not depend on the order (zeros are made positive), so neither does the result.
 *
 * kith_points_stats cuts the rows into parts that depend on n and dim alone and merges them in order, so its
 * sums are the same for every number of threads. Within a part, tiles of rows are centred on their own mean
 * before they are squared (two passes, in cache) and merged after Chan, Golub and LeVeque; the variance of
 * data far from the origin keeps its digits. O(n dim) time; summaries need no memory beyond the stack. */
#include "points/points.h"

#include "base/team.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

kith_points kith_points_f32(const float *data, uint64_t n, uint32_t dim) {
  return (kith_points){.data = data,
                       .n = n,
                       .dim = dim,
                       .dtype = KITH_F32,
                       .row_stride = (int64_t)dim * (int64_t)sizeof(float),
                       .col_stride = sizeof(float)};
}

kith_points kith_points_f64(const double *data, uint64_t n, uint32_t dim) {
  return (kith_points){.data = data,
                       .n = n,
                       .dim = dim,
                       .dtype = KITH_F64,
                       .row_stride = (int64_t)dim * (int64_t)sizeof(double),
                       .col_stride = sizeof(double)};
}

static int64_t value_bytes(const kith_points *points) { return points->dtype == KITH_F32 ? 4 : 8; }

/* ---- The view itself ---------------------------------------------------------------------------------- */

/* Strides along an axis with fewer than two entries are never used, and may hold anything. */
static kith_status check_strides(kith_context *ctx, const kith_points *points, const char *name) {
  int64_t size = value_bytes(points);
  int64_t rows = points->n > 1 ? points->row_stride : 0;
  int64_t columns = points->dim > 1 ? points->col_stride : 0;
  if ((intptr_t)points->data % size != 0 || rows % size != 0 || columns % size != 0)
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "%s: values are not aligned; the address and both strides must be multiples of %d bytes",
                     name, (int)size);
  int64_t down, across, last;
  if (__builtin_mul_overflow((int64_t)points->n - 1, rows, &down) ||
      __builtin_mul_overflow((int64_t)points->dim - 1, columns, &across) ||
      __builtin_add_overflow(down, across, &last))
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "%s: the strides reach beyond the address space; give them in bytes", name);
  return KITH_OK;
}

kith_status kith_points_check(kith_context *ctx, const kith_points *points, const char *name) {
  if (!points)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "%s: no points were given; pass the address of a kith_points",
                     name);
  if (points->dtype != KITH_F32 && points->dtype != KITH_F64)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "%s: unknown dtype %d; use KITH_F32 or KITH_F64", name,
                     (int)points->dtype);
  if (points->dim < 1 || points->dim > KITH_MAX_DIM)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "%s: %u dimensions; give from 1 to %d", name, points->dim,
                     KITH_MAX_DIM);
  if (points->n > UINT32_MAX)
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "%s: %llu points; a set holds at most 2^32 - 1, so split it into several", name,
                     (unsigned long long)points->n);
  if (points->n == 0)
    return KITH_OK;
  if (!points->data)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "%s: the data pointer is NULL, yet n is %llu", name,
                     (unsigned long long)points->n);
  return check_strides(ctx, points, name);
}

/* ---- Summary: minimum, maximum, invalid rows ---------------------------------------------------------- */

enum {
  FOLD_LANES = 32,          /* values folded side by side, at least: enough to hide latencies */
  UNROLL = 4,               /* rows of lanes folded at once, to spare loads and stores of the lanes */
  BLOCK_VALUES = 64 * 1024, /* values in a block, about: the reduction of the lanes must not count */
  BLOCK_ROWS_LEAST = 64,
  BLOCK_ROWS_COLUMNWISE = 4096, /* at least so many where a column is folded at a time */
  TILE_VALUES = KITH_MAX_DIM,   /* a tile is on the stack, and in the first-level cache */
};

/* What a thread has seen so far. */
typedef struct partial {
  double min[KITH_MAX_DIM], max[KITH_MAX_DIM];
  uint64_t invalid_rows;
  uint64_t first_invalid_row;
} partial;

static void keep_lower(double *min, double value) { *min = value < *min ? value : *min; }

static void keep_higher(double *max, double value) { *max = value > *max ? value : *max; }

#define FOLD_TYPE float
#define FOLD_BITS uint32_t
#define FOLD_NAME(name) name##_f32
#include "points/fold_body.h"

#define FOLD_TYPE double
#define FOLD_BITS uint64_t
#define FOLD_NAME(name) name##_f64
#include "points/fold_body.h"

static bool fold(const kith_points *points, const char *at, uint64_t count, uint32_t dim, double *min,
                 double *max) {
  return points->dtype == KITH_F32 ? fold_f32((const float *)at, count, dim, min, max)
                                   : fold_f64((const double *)at, count, dim, min, max);
}

/* The first invalid column of a row, or dim if the row is valid. */
static uint32_t invalid_column(const kith_points *points, uint64_t row) {
  uint32_t c = 0;
  while (c < points->dim && isfinite(kith_points_get(points, row, c)))
    c++;
  return c;
}

static void walk_rows(const kith_points *points, uint64_t begin, uint64_t end, partial *seen) {
  for (uint64_t row = begin; row < end; row++) {
    if (invalid_column(points, row) < points->dim) {
      seen->invalid_rows++;
      if (row < seen->first_invalid_row)
        seen->first_invalid_row = row;
      continue;
    }
    for (uint32_t c = 0; c < points->dim; c++) {
      double value = kith_points_get(points, row, c);
      keep_lower(&seen->min[c], value);
      keep_higher(&seen->max[c], value);
    }
  }
}

/* Folds rows of any strides by way of a tile of consecutive values. */
static bool fold_strided(const kith_points *points, uint64_t begin, uint64_t end, double *min, double *max) {
  double tile[TILE_VALUES];
  uint32_t dim = points->dim, tile_rows = TILE_VALUES / dim;
  for (uint64_t row = begin; row < end; row += tile_rows) {
    uint32_t n = end - row < tile_rows ? (uint32_t)(end - row) : tile_rows;
    for (uint32_t r = 0; r < n; r++)
      for (uint32_t c = 0; c < dim; c++)
        tile[r * dim + c] = kith_points_get(points, row + r, c);
    if (!fold_f64(tile, (uint64_t)n * dim, dim, min, max))
      return false;
  }
  return true;
}

/* Folds the rows [begin, end) if all are valid. Returns false if not; then nothing has been added. */
static bool fold_rows(const kith_points *points, uint64_t begin, uint64_t end, partial *seen) {
  uint32_t dim = points->dim;
  int64_t size = value_bytes(points);
  const char *data = (const char *)points->data + (int64_t)begin * points->row_stride;
  double min[KITH_MAX_DIM], max[KITH_MAX_DIM];
  for (uint32_t c = 0; c < dim; c++) {
    min[c] = INFINITY;
    max[c] = -INFINITY;
  }
  bool valid = true;
  if (points->row_stride == size * dim && (points->col_stride == size || dim == 1))
    valid = fold(points, data, (end - begin) * dim, dim, min, max);
  else if (points->row_stride == size)
    for (uint32_t c = 0; valid && c < dim; c++)
      valid = fold(points, data + (int64_t)c * points->col_stride, end - begin, 1, &min[c], &max[c]);
  else
    valid = fold_strided(points, begin, end, min, max);
  if (!valid)
    return false;
  for (uint32_t c = 0; c < dim; c++) {
    keep_lower(&seen->min[c], min[c]);
    keep_higher(&seen->max[c], max[c]);
  }
  return true;
}

static void partial_begin(partial *seen, uint32_t dim) {
  seen->invalid_rows = 0;
  seen->first_invalid_row = UINT64_MAX;
  for (uint32_t c = 0; c < dim; c++) {
    seen->min[c] = INFINITY;
    seen->max[c] = -INFINITY;
  }
}

static void partial_merge(const partial *seen, uint32_t dim, kith_points_summary *summary) {
  summary->invalid_rows += seen->invalid_rows;
  if (seen->first_invalid_row < summary->first_invalid_row)
    summary->first_invalid_row = seen->first_invalid_row;
  for (uint32_t c = 0; c < dim; c++) {
    keep_lower(&summary->min[c], seen->min[c]);
    keep_higher(&summary->max[c], seen->max[c]);
  }
}

/* A pass over the points, shared by the threads. */
typedef struct summary_pass {
  const kith_context *ctx;
  const kith_points *points;
  kith_points_summary *summary;
  uint64_t block_rows, n_blocks, shares;
  pthread_mutex_t lock; /* of the summary */
} summary_pass;

/* Looks at one share of the blocks, then adds what it saw. */
static void summarize_share(void *argument, uint64_t share) {
  summary_pass *pass = argument;
  const kith_points *points = pass->points;
  partial seen;
  partial_begin(&seen, points->dim);
  uint64_t last = kith_share_begin(pass->n_blocks, share + 1, pass->shares);
  for (uint64_t block = kith_share_begin(pass->n_blocks, share, pass->shares); block < last; block++) {
    if (kith_cancelled(pass->ctx))
      return;
    uint64_t begin = block * pass->block_rows;
    uint64_t end = points->n - begin < pass->block_rows ? points->n : begin + pass->block_rows;
    if (!fold_rows(points, begin, end, &seen))
      walk_rows(points, begin, end, &seen);
  }
  pthread_mutex_lock(&pass->lock);
  partial_merge(&seen, points->dim, pass->summary);
  pthread_mutex_unlock(&pass->lock);
}

void kith_points_summarize(kith_context *ctx, const kith_points *points, kith_points_summary *summary) {
  uint32_t dim = points->dim;
  uint32_t least = points->row_stride == value_bytes(points) ? BLOCK_ROWS_COLUMNWISE : BLOCK_ROWS_LEAST;
  uint64_t block_rows = BLOCK_VALUES / dim > least ? BLOCK_VALUES / dim : least;
  *summary = (kith_points_summary){.first_invalid_row = UINT64_MAX, .min = summary->min, .max = summary->max};
  for (uint32_t c = 0; c < dim; c++) {
    summary->min[c] = INFINITY;
    summary->max[c] = -INFINITY;
  }
  summary_pass pass = {.ctx = ctx,
                       .points = points,
                       .summary = summary,
                       .block_rows = block_rows,
                       .n_blocks = (points->n + block_rows - 1) / block_rows,
                       .lock = PTHREAD_MUTEX_INITIALIZER};
  pass.shares = kith_shares(ctx, pass.n_blocks, 1);
  kith_each(ctx, pass.shares, summarize_share, &pass);
  /* Which of -0.0 and 0.0 comes out depends on the order of the rows; adding 0.0 makes both 0.0. */
  for (uint32_t c = 0; c < dim; c++) {
    summary->min[c] += 0.0;
    summary->max[c] += 0.0;
  }
  if (summary->invalid_rows == 0)
    summary->first_invalid_row = 0;
  else
    summary->first_invalid_col = invalid_column(points, summary->first_invalid_row);
}

/* ---- Statistics: mean and variance -------------------------------------------------------------------- */

enum {
  MOMENT_VALUES = 64 * 1024, /* bounds the memory for all parts together to about 1 MiB */
  PARTS_MOST = 256,
};

/* Count, mean and sum of squared deviations of some rows; mean and squares have dim entries. */
typedef struct moments {
  uint64_t count;
  double *mean, *squares;
} moments;

static uint64_t count_parts(uint32_t dim) {
  return MOMENT_VALUES / dim < PARTS_MOST ? MOMENT_VALUES / dim : PARTS_MOST;
}

/* Adds rows with the given moments to `sum`. */
static void moments_merge(moments *sum, const moments *rows, uint32_t dim) {
  if (rows->count == 0)
    return;
  double total = (double)(sum->count + rows->count);
  double share = (double)rows->count / total, cross = (double)sum->count * share;
  for (uint32_t c = 0; c < dim; c++) {
    double delta = rows->mean[c] - sum->mean[c];
    sum->mean[c] += delta * share;
    sum->squares[c] += rows->squares[c] + delta * delta * cross;
  }
  sum->count += rows->count;
}

/* The moments of `count` rows that follow each other. The sums run over differences to the first row, so
 * that a constant column has exactly its value as the mean, and no variance. */
static void moments_of_tile(const double *tile, uint64_t count, uint32_t dim, moments *out) {
  for (uint32_t c = 0; c < dim; c++)
    out->mean[c] = out->squares[c] = 0;
  for (uint64_t row = 0; row < count; row++)
    for (uint32_t c = 0; c < dim; c++)
      out->mean[c] += tile[row * dim + c] - tile[c];
  for (uint32_t c = 0; c < dim; c++)
    out->mean[c] = tile[c] + out->mean[c] / (double)count;
  for (uint64_t row = 0; row < count; row++)
    for (uint32_t c = 0; c < dim; c++) {
      double delta = tile[row * dim + c] - out->mean[c];
      out->squares[c] += delta * delta;
    }
  out->count = count;
}

/* Copies the valid rows from *row on into the tile until it is full; returns how many. */
static uint64_t fill_tile(const kith_points *points, uint64_t *row, uint64_t end, double *tile) {
  uint64_t count = 0, room = TILE_VALUES / points->dim;
  for (; *row < end && count < room; (*row)++) {
    bool valid = true;
    double *to = tile + count * points->dim;
    for (uint32_t c = 0; c < points->dim; c++) {
      to[c] = kith_points_get(points, *row, c);
      valid = valid && isfinite(to[c]);
    }
    count += valid;
  }
  return count;
}

static void moments_of_rows(const kith_points *points, uint64_t begin, uint64_t end, moments *out) {
  double tile[TILE_VALUES], mean[KITH_MAX_DIM], squares[KITH_MAX_DIM];
  moments of_tile = {.mean = mean, .squares = squares};
  for (uint64_t row = begin; row < end;) {
    uint64_t count = fill_tile(points, &row, end, tile);
    if (count == 0)
      continue;
    moments_of_tile(tile, count, points->dim, &of_tile);
    moments_merge(out, &of_tile, points->dim);
  }
}

/* The parts that the moments are computed in: always the same ones, so that the sums do not depend on the
 * threads. Part p has its mean at store + 2 * p * dim, its squares behind it. */
typedef struct moments_pass {
  const kith_context *ctx;
  const kith_points *points;
  double *store;
  uint64_t n_parts;
  uint64_t *counts;
} moments_pass;

static void moments_of_part(void *argument, uint64_t part) {
  const moments_pass *pass = argument;
  uint64_t n = pass->points->n;
  uint32_t dim = pass->points->dim;
  moments of_part = {.mean = pass->store + part * 2 * dim, .squares = pass->store + (part * 2 + 1) * dim};
  if (!kith_cancelled(pass->ctx))
    moments_of_rows(pass->points, n * part / pass->n_parts, n * (part + 1) / pass->n_parts, &of_part);
  pass->counts[part] = of_part.count;
}

/* Computes the moments of the parts, then merges them in order into the first. */
static moments moments_of_points(kith_context *ctx, const kith_points *points, double *store) {
  uint32_t dim = points->dim;
  uint64_t n_parts = count_parts(dim), counts[PARTS_MOST];
  memset(store, 0, n_parts * 2 * dim * sizeof(double));
  moments_pass pass = {.ctx = ctx, .points = points, .store = store, .n_parts = n_parts, .counts = counts};
  kith_each(ctx, n_parts, moments_of_part, &pass);
  moments sum = {.count = counts[0], .mean = store, .squares = store + dim};
  for (uint64_t part = 1; part < n_parts; part++) {
    moments of_part = {
        .count = counts[part], .mean = store + part * 2 * dim, .squares = store + (part * 2 + 1) * dim};
    moments_merge(&sum, &of_part, dim);
  }
  return sum;
}

kith_status kith_points_stats(kith_context *ctx, const kith_points *points, kith_column_stats *stats,
                              uint64_t *invalid_rows) {
  kith_status status = kith_call_begin(ctx);
  if (!status)
    status = kith_points_check(ctx, points, "points");
  if (!status && points->device)
    status = kith_fail(ctx, KITH_ERR_ARGUMENT, "points: statistics are made of points in host memory only");
  if (status)
    return status;
  uint32_t dim = points->dim;
  uint64_t bytes = (1 + count_parts(dim)) * 2 * dim * sizeof(double);
  double *store = kith_alloc(&ctx->memory, bytes);
  if (!store)
    return kith_fail_memory(ctx, bytes, "the statistics of the points");
  kith_points_summary summary = {.min = store, .max = store + dim};
  kith_points_summarize(ctx, points, &summary);
  if (invalid_rows)
    *invalid_rows = summary.invalid_rows;
  if (stats) {
    moments all = moments_of_points(ctx, points, store + 2 * (uint64_t)dim);
    for (uint32_t c = 0; c < dim; c++)
      stats[c] = (kith_column_stats){.min = summary.min[c],
                                     .max = summary.max[c],
                                     .mean = all.count ? all.mean[c] : NAN,
                                     .variance = all.count ? all.squares[c] / (double)all.count : NAN};
  }
  status = kith_check_cancel(ctx);
  kith_free(store);
  return kith_call_end(ctx, status);
}
