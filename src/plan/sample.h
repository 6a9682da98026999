/* A sample of two sets of points: a few queries, some thousand candidates, in the dimensions of largest
 * variance. The same for the same input. Dimensions are columns, or directions (space/directions.h). */
#ifndef KITH_PLAN_SAMPLE_H
#define KITH_PLAN_SAMPLE_H

#include "index/grid.h"
#include "points/points.h"
#include "space/lattice.h"

enum { KITH_SAMPLE_QUERIES = 64 }; /* at most */

typedef struct kith_sample {
  uint32_t n_dims;
  uint32_t dims[KITH_GRID_DIMS]; /* by falling variance among the candidates */
  kith_direction along[KITH_GRID_DIMS];
  uint32_t n_points, n_queries;
  double *points;  /* [n_dims][n_points] */
  double *queries; /* [n_dims][n_queries] */
} kith_sample;

static inline double kith_sample_point(const kith_sample *sample, uint32_t p, uint32_t j) {
  return sample->points[(size_t)j * sample->n_points + p];
}

static inline double kith_sample_query(const kith_sample *sample, uint32_t q, uint32_t j) {
  return sample->queries[(size_t)j * sample->n_queries + q];
}

/* The row drawn from stratum i of `strata`, for n >= strata. */
uint64_t kith_sample_row(uint64_t i, uint64_t strata, uint64_t n);

/* For qsort. */
int kith_compare_doubles(const void *a, const void *b);

/* Orders all columns by falling variance (or leaves them as they are), and finds the middle of each: the median
 * of some rows, which far outliers do not move. Both arrays have room for points->dim. */
kith_status kith_sample_columns(kith_context *ctx, const kith_points *points, bool reorder, uint32_t *columns,
                                double *middle);

/* Which dimensions to sample. */
typedef struct kith_sample_dims {
  bool reorder; /* those of largest variance; otherwise the first ones */
  bool slanted; /* of the directions */
} kith_sample_dims;

kith_status kith_sample_take(kith_context *ctx, const kith_points *queries, const kith_points *points,
                             kith_sample_dims which, kith_sample *sample);

/* Wraps a sample of points that are not far outside of a box. (Its dimensions were ranked by where points lay
 * before: a crowd across a face looked wide, then.) */
void kith_sample_wrap(kith_sample *sample, const kith_lattice *lattice);

void kith_sample_destroy(kith_sample *sample);

/* The lower and upper quartile of sampled dimension j, from some hundred points. */
void kith_sample_quartiles(const kith_sample *sample, uint32_t j, double quartiles[2]);

#endif
