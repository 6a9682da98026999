/* Radii of their own: where every query has its own eps (kith_join_options.eps_of).
 *
 * A tile of queries looks as far as the largest radius in it. So cells are made for most radii, not for the
 * largest of all: the few that are far larger look at more of them. */
#include "ops/join.h"

#include "plan/sample.h"

#include <math.h>
#include <stdlib.h>

/* The limit of which most are not larger. */
static double typical_limit(const kith_join *j) {
  enum { SAMPLE = 1024 };
  double limits[SAMPLE];
  uint64_t n = j->a->n < SAMPLE ? j->a->n : SAMPLE;
  for (uint64_t i = 0; i < n; i++)
    limits[i] = j->limits[kith_sample_row(i, n, j->a->n)];
  qsort(limits, n, sizeof *limits, kith_compare_doubles);
  return n ? limits[n * 9 / 10] : 0;
}

kith_status kith_join_find_limits(kith_join *j) {
  const double *eps_of = j->options.eps_of;
  uint64_t n = j->a->n;
  j->limits = kith_alloc(&j->ctx->memory, n * sizeof *j->limits);
  if (!j->limits)
    return kith_fail_memory(j->ctx, n * sizeof *j->limits, "the limits of the points");
  double most = 0;
  double least = INFINITY;
  for (uint64_t i = 0; i < n; i++) {
    if (!(eps_of[i] >= 0 && isfinite(eps_of[i])))
      return kith_fail(
          j->ctx, KITH_ERR_ARGUMENT,
          "the radius of row %llu is %g (counted from 0); it must be a finite number, 0 or greater",
          (unsigned long long)i, eps_of[i]);
    j->options.eps = fmax(j->options.eps, eps_of[i]);
    j->limits[i] = kith_space_limit(&j->space, eps_of[i]);
    most = fmax(most, j->limits[i]);
    least = fmin(least, j->limits[i]);
  }
  j->predicate = kith_predicate_of(j->space.norm, most, j->space.dim);
  j->predicate.everything = j->predicate.everything && least >= most;
  j->typical = kith_predicate_of(j->space.norm, typical_limit(j), j->space.dim);
  return KITH_OK;
}

double kith_join_times_larger(const kith_join *j) {
  bool differ = j->limits && isfinite(j->predicate.reach) && j->typical.reach > 0;
  return differ ? j->predicate.reach / j->typical.reach : 1;
}

/* They may be smaller beside the largest reach than any that is planned, but not so small that a stencil has
 * too many rows. */
void kith_join_fit_cells(kith_grid_spec *spec, double times_smaller) {
  static const double MOST_ROWS = 400;
  spec->x_side /= times_smaller;
  spec->row_side /= times_smaller;
  while (spec->row_side < 1 && pow(2 * ceil(1 / spec->row_side) + 1, spec->k - 1) > MOST_ROWS)
    spec->row_side *= 1.25;
}
