/* Sampling: see sample.h. One point is drawn from each of equal strata of the input, at a place given by a
 * hash of the stratum's number. Rows with NaN or infinity are passed over. */
#include "plan/sample.h"

#include "space/loops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  POINTS = 8192,
  FEW_POINTS = 1024,
  QUERIES = KITH_SAMPLE_QUERIES,
  MIN_QUERIES = 8,
  VARIANCE_POINTS = 512,
  MIDDLE_POINTS = 65
};

static uint64_t hash(uint64_t x) {
  x += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

uint64_t kith_sample_row(uint64_t i, uint64_t strata, uint64_t n) {
  uint64_t begin = (uint64_t)((double)i / (double)strata * (double)n);
  uint64_t end = (uint64_t)((double)(i + 1) / (double)strata * (double)n);
  if (end > n)
    end = n;
  return end > begin + 1 ? begin + hash(i ^ (strata << 32)) % (end - begin) : begin;
}

/* Some rows of the points, to look at all of their columns. */
typedef struct few_rows {
  const kith_points *points;
  uint64_t rows[VARIANCE_POINTS];
  uint32_t n;
} few_rows;

static few_rows draw_few(const kith_points *points, uint32_t wanted) {
  few_rows few = {.points = points, .n = (uint32_t)(points->n < wanted ? points->n : wanted)};
  for (uint32_t i = 0; i < few.n; i++)
    few.rows[i] = kith_sample_row(i, few.n, points->n);
  return few;
}

/* The coordinate of a row along a direction. */
static double value_along(const kith_points *points, uint64_t row, const kith_direction *along) {
  double value = kith_points_get(points, row, along->first);
  for (uint32_t i = 1; i < along->n; i++)
    value = kith_direction_add(along, i, value, kith_points_get(points, row, along->first + i));
  return value;
}

/* The finite values along a direction; returns how many. */
static uint32_t read_values(const few_rows *few, const kith_direction *along, double *values) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < few->n; i++) {
    values[n] = value_along(few->points, few->rows[i], along);
    n += isfinite(values[n]) != 0;
  }
  return n;
}

/* Their variance, scaled so that it does not overflow. */
static double variance_along(const few_rows *few, kith_direction along) {
  double values[VARIANCE_POINTS];
  uint32_t n = read_values(few, &along, values);
  double mean = 0;
  double sum2 = 0;
  for (uint32_t i = 0; i < n; i++)
    mean += values[i] * 0x1p-512;
  mean /= n > 0 ? n : 1;
  for (uint32_t i = 0; i < n; i++) {
    double delta = values[i] * 0x1p-512 - mean;
    sum2 += delta * 0x1p512 * delta;
  }
  return sum2 / (n > 0 ? n : 1);
}

/* Keeps the KITH_GRID_DIMS dimensions of largest variance, by insertion. */
static void rank_dimensions(const kith_points *points, bool slanted, kith_sample *sample) {
  double kept[KITH_GRID_DIMS + 1];
  uint32_t dims[KITH_GRID_DIMS + 1];
  uint32_t n = 0;
  few_rows few = draw_few(points, VARIANCE_POINTS);
  for (uint32_t c = 0; c < points->dim; c++) {
    double variance = variance_along(&few, kith_direction_of(points->dim, c, slanted));
    uint32_t at = n < KITH_GRID_DIMS ? n++ : KITH_GRID_DIMS;
    for (; at > 0 && variance > kept[at - 1]; at--) {
      kept[at] = kept[at - 1];
      dims[at] = dims[at - 1];
    }
    kept[at] = variance;
    dims[at] = c;
  }
  sample->n_dims = n;
  memcpy(sample->dims, dims, n * sizeof *dims);
}

/* Draws up to `wanted` rows into out[n_dims][wanted], then closes ranks; returns how many were valid. */
static uint32_t draw_rows(const kith_points *points, const kith_sample *sample, uint32_t wanted, double *out) {
  uint64_t strata = points->n < wanted ? points->n : wanted;
  uint32_t n = 0;
  for (uint64_t i = 0; i < strata; i++) {
    uint64_t row = kith_sample_row(i, strata, points->n);
    if (!kith_points_is_valid(points, row))
      continue;
    for (uint32_t j = 0; j < sample->n_dims; j++)
      out[(size_t)j * wanted + n] = value_along(points, row, &sample->along[j]);
    n++;
  }
  for (uint32_t j = 1; j < sample->n_dims && n < wanted; j++)
    memmove(out + (size_t)j * n, out + (size_t)j * wanted, n * sizeof *out);
  return n;
}

/* As the input has them, for experiments (REORDER switched off). */
static void take_first_dimensions(const kith_points *points, kith_sample *sample) {
  sample->n_dims = points->dim < KITH_GRID_DIMS ? points->dim : KITH_GRID_DIMS;
  for (uint32_t j = 0; j < sample->n_dims; j++)
    sample->dims[j] = j;
}

/* A small join is over soon: it deserves a small plan. */
static uint32_t points_for(uint64_t n) {
  uint64_t some = n / 8;
  return some < FEW_POINTS ? FEW_POINTS : some < POINTS ? (uint32_t)some : POINTS;
}

kith_status kith_sample_take(kith_context *ctx, const kith_points *queries, const kith_points *points,
                             kith_sample_dims which, kith_sample *sample) {
  *sample = (kith_sample){0};
  uint32_t most = points_for(points->n);
  if (which.reorder)
    rank_dimensions(points, which.slanted, sample);
  else
    take_first_dimensions(points, sample);
  for (uint32_t j = 0; j < sample->n_dims; j++)
    sample->along[j] = kith_direction_of(points->dim, sample->dims[j], which.slanted);
  uint64_t bytes = (most + QUERIES) * sizeof(double) * sample->n_dims;
  sample->points = kith_alloc(&ctx->memory, bytes);
  if (!sample->points)
    return kith_fail_memory(ctx, bytes, "a sample of the points");
  sample->queries = sample->points + (size_t)most * sample->n_dims;
  sample->n_points = draw_rows(points, sample, most, sample->points);
  uint32_t wanted = sample->n_points * QUERIES / POINTS;
  sample->n_queries = draw_rows(queries, sample, wanted < MIN_QUERIES ? MIN_QUERIES : wanted, sample->queries);
  return KITH_OK;
}

static void wrap_values(double *values, uint32_t n, double side) {
  for (uint32_t i = 0; i < n; i++)
    values[i] = kith_wrap_nearby(values[i], side);
}

/* A sample has all columns of points in a box. */
static void wrap_columns(const kith_sample *sample, const kith_lattice *lattice, double *values, uint32_t n) {
  double *columns[KITH_GRID_DIMS];
  for (size_t j = 0; j < sample->n_dims; j++)
    columns[sample->dims[j]] = values + j * n;
  kith_space_loops_scalar.wrap_columns(lattice, columns, n);
}

void kith_sample_wrap(kith_sample *sample, const kith_lattice *lattice) {
  if (lattice->skewed) {
    wrap_columns(sample, lattice, sample->points, sample->n_points);
    wrap_columns(sample, lattice, sample->queries, sample->n_queries);
    return;
  }
  for (size_t j = 0; j < sample->n_dims; j++) {
    double side = kith_lattice_side(lattice, sample->dims[j]);
    wrap_values(sample->points + j * sample->n_points, sample->n_points, side);
    wrap_values(sample->queries + j * sample->n_queries, sample->n_queries, side);
  }
}

void kith_sample_destroy(kith_sample *sample) {
  kith_free(sample->points);
  *sample = (kith_sample){0};
}

int kith_compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

/* A column and its variance. */
typedef struct ranked {
  double variance;
  uint32_t column;
} ranked;

static int compare_ranked(const void *a, const void *b) {
  const ranked *x = a;
  const ranked *y = b;
  int by_variance = (x->variance < y->variance) - (x->variance > y->variance);
  return by_variance ? by_variance : (x->column > y->column) - (x->column < y->column);
}

static double column_middle(const few_rows *few, uint32_t c) {
  double values[MIDDLE_POINTS];
  kith_direction column = kith_direction_of(few->points->dim, c, false);
  uint32_t n = read_values(few, &column, values);
  qsort(values, n, sizeof *values, kith_compare_doubles);
  return n ? values[n / 2] : 0;
}

kith_status kith_sample_columns(kith_context *ctx, const kith_points *points, bool reorder, uint32_t *columns,
                                double *middle) {
  uint32_t dim = points->dim;
  ranked *order = kith_alloc(&ctx->memory, dim * sizeof *order);
  if (!order)
    return kith_fail_memory(ctx, dim * sizeof *order, "planning");
  few_rows few = draw_few(points, VARIANCE_POINTS);
  few_rows fewer = draw_few(points, MIDDLE_POINTS);
  for (uint32_t c = 0; c < dim; c++) {
    order[c] =
        (ranked){.variance = reorder ? variance_along(&few, kith_direction_of(dim, c, false)) : 0, .column = c};
    middle[c] = column_middle(&fewer, c);
  }
  qsort(order, dim, sizeof *order, compare_ranked);
  for (uint32_t c = 0; c < dim; c++)
    columns[c] = order[c].column;
  kith_free(order);
  return KITH_OK;
}

void kith_sample_quartiles(const kith_sample *sample, uint32_t j, double quartiles[2]) {
  double values[VARIANCE_POINTS];
  uint32_t n = sample->n_points < VARIANCE_POINTS ? sample->n_points : VARIANCE_POINTS;
  for (uint32_t i = 0; i < n; i++)
    values[i] = kith_sample_point(sample, (uint32_t)((uint64_t)i * sample->n_points / n), j);
  qsort(values, n, sizeof *values, kith_compare_doubles);
  quartiles[0] = n ? values[n / 4] : 0;
  quartiles[1] = n ? values[n - 1 - n / 4] : 0;
}
