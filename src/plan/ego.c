/* Grid, or epsilon grid order? See plan.h. */
#include "plan/plan.h"

#include "plan/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The share of the pairs of sampled points that lie within `width` of each other in sampled dimension j: what
 * cutting that dimension leaves. */
static double share_left(const kith_sample *sample, uint32_t j, double width) {
  enum { POINTS = 1024 };
  double values[POINTS];
  uint32_t n = sample->n_points < POINTS ? sample->n_points : POINTS;
  for (uint32_t i = 0; i < n; i++)
    values[i] = kith_sample_point(sample, (uint32_t)((uint64_t)i * sample->n_points / n), j);
  qsort(values, n, sizeof *values, compare_doubles);
  uint64_t pairs = 0;
  for (uint32_t i = 0, begin = 0; i < n; i++) {
    while (values[i] - values[begin] > width)
      begin++;
    pairs += i - begin;
  }
  return n > 1 ? (double)pairs / (0.5 * n * (n - 1)) : 1;
}

/* Lists the sampled dimensions, the most selective first; among equals, that of larger variance. */
static void rank_dimensions(const kith_question *question, const kith_sample *sample, uint32_t *dims) {
  double shares[KITH_GRID_DIMS] = {0};
  for (uint32_t j = 0; j < sample->n_dims; j++) {
    double share = question->no_reorder ? 1 : share_left(sample, j, 1.5 * question->predicate->reach);
    uint32_t at = j;
    for (; at > 0 && shares[at - 1] > share; at--) {
      shares[at] = shares[at - 1];
      dims[at] = dims[at - 1];
    }
    shares[at] = share;
    dims[at] = sample->dims[j];
  }
}

kith_status kith_choose_ego(kith_context *ctx, const kith_question *question, kith_ego_choice *choice) {
  kith_sample sample;
  *choice = (kith_ego_choice){0};
  kith_status status =
      kith_sample_take(ctx, question->queries, question->candidates, !question->no_reorder, &sample);
  if (status)
    return status;
  choice->n_dims = sample.n_dims;
  rank_dimensions(question, &sample, choice->dims);
  kith_sample_destroy(&sample);
  return KITH_OK;
}
