/* Crowds: many points in one place. Their neighbours are too many to be tested one by one, and need not be:
 * these tests fail, or take forever, if work grows with the square of a crowd where the result does not. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the work ------------------------------------------------------------------------------------------ */

/* n points in `groups` places: i in place i % groups; the last point may be alone, elsewhere. */
typedef struct crowd {
  uint64_t n, groups;
  bool stranger;
} crowd;

/* Two neighbouring places differ by one unit in the last place of a float: far less than a cell. */
static cloud crowd_make(const crowd *c, uint32_t dim) {
  cloud a = cloud_new(c->n, dim, KITH_F32);
  for (uint64_t i = 0; i < c->n; i++)
    for (uint32_t column = 0; column < dim; column++)
      cloud_set(&a, i, column, 0.5 + (double)(i % c->groups) * 0x1p-24);
  for (uint32_t column = 0; c->stranger && column < dim; column++)
    cloud_set(&a, c->n - 1, column, 0.75);
  return a;
}

/* Neighbours of point i among those of its group, or of them with a larger id. */
static uint64_t crowd_degree(const crowd *c, uint64_t i, bool half) {
  uint64_t n = c->n - c->stranger;
  if (i >= n)
    return 0;
  uint64_t before = i / c->groups;
  uint64_t all = (n - i % c->groups + c->groups - 1) / c->groups;
  return half ? all - before - 1 : all - 1;
}

static void check_work(const kith_join_report *report, double began, const crowd *c, const char *what) {
  CHECK(report->tested < 256 * c->n && now() - began < 30, "%s of %llu points in %llu places: %llu tests, %g s",
        what, (unsigned long long)c->n, (unsigned long long)c->groups, (unsigned long long)report->tested,
        now() - began);
}

static void check_degrees(kith_context *ctx, const cloud *a, const crowd *c, double eps, bool half) {
  kith_join_options options = kith_join_options_init(eps);
  kith_join_report report = kith_join_report_init();
  uint64_t *degrees = malloc(c->n * sizeof *degrees);
  options.half = half;
  double began = now();
  kith_status status = kith_join_degrees(ctx, &a->points, NULL, &options, degrees, &report);
  check_work(&report, began, c, half ? "half degrees" : "degrees");
  bool right = degrees && !status;
  for (uint64_t i = 0; right && i < c->n; i++)
    right = degrees[i] == crowd_degree(c, i, half);
  CHECK(right, "degrees of a crowd, dim %u eps %g half %d", a->points.dim, eps, half);
  free(degrees);
}

static void check_count(kith_context *ctx, const cloud *a, const crowd *c, double eps, bool half) {
  kith_join_options options = kith_join_options_init(eps);
  kith_join_report report = kith_join_report_init();
  options.half = half;
  uint64_t pairs = 0;
  uint64_t want = 0;
  for (uint64_t i = 0; i < c->n; i++)
    want += crowd_degree(c, i, half);
  double began = now();
  kith_status status = kith_join_count(ctx, &a->points, NULL, &options, &pairs, &report);
  check_work(&report, began, c, "count");
  CHECK(!status && pairs == want, "count of a crowd, dim %u eps %g half %d", a->points.dim, eps, half);
}

static void test_work(kith_context *ctx) {
  static const crowd CROWDS[] = {{100000, 1, false}, {100001, 1, true}, {100001, 2, true}};
  static const uint32_t DIMS[] = {1, 2, 3, 8};
  static const double EPS[] = {0, 0x1p-30};
  for (int k = 0; k < 3; k++)
    for (int d = 0; d < 4; d++)
      for (int e = 0; e < 2; e++) {
        cloud a = crowd_make(&CROWDS[k], DIMS[d]);
        for (int half = 0; half < 2; half++) {
          check_degrees(ctx, &a, &CROWDS[k], EPS[e], half);
          check_count(ctx, &a, &CROWDS[k], EPS[e], half);
        }
        cloud_free(&a);
      }
}

/* ---- the answers --------------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a;
  uint32_t y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Whether the rows of a table hold the reference's ids, in any order. */
static bool same_sets(const kith_table *table, const reference *want) {
  if (table->n_pairs != want->n_pairs ||
      memcmp(table->offsets, want->offsets, (want->n_rows + 1) * sizeof *want->offsets) != 0)
    return false;
  uint32_t *ids = malloc((want->n_pairs + 1) * sizeof *ids);
  if (!ids)
    abort();
  memcpy(ids, table->neighbors, want->n_pairs * sizeof *ids);
  for (uint64_t i = 0; i < want->n_rows; i++)
    qsort(ids + want->offsets[i], want->offsets[i + 1] - want->offsets[i], sizeof *ids, compare_ids);
  bool same = memcmp(ids, want->neighbors, want->n_pairs * sizeof *ids) == 0;
  free(ids);
  return same;
}

/* Two crowds whose points spread over 1/64 in each dimension, one unit of 1/64 apart, and others around: with
 * eps a multiple of 1/64 the farthest corners are exactly eps apart, or just beyond. */
static cloud crowds_with_corners(uint32_t dim, kith_dtype dtype) {
  enum { CROWD = 1100, OTHERS = 300 };
  cloud a = cloud_random(2 * CROWD + OTHERS, dim, dtype, dim);
  uint64_t state = 5;
  for (uint64_t i = 0; i < 2 * CROWD; i++)
    for (uint32_t c = 0; c < dim; c++) {
      double steps = c == 0 ? 2.0 * (double)(i % 2) : (double)random_below(&state, 2);
      cloud_set(&a, i, c, 0.25 + steps / 64);
    }
  for (uint64_t i = 2 * CROWD; i < a.points.n; i++)
    cloud_set(&a, i, 0, 4 * cloud_get(&a, i, 0));
  return a;
}

static void check_corners(const char *isa, const cloud *a, const kith_join_options *options,
                          const reference *want) {
  kith_context *ctx = context_new(isa, 2, 256 << 20);
  if (!ctx)
    return;
  kith_table *table = NULL;
  uint64_t pairs = 0;
  kith_status status = kith_join_table(ctx, &a->points, NULL, options, &table, NULL);
  CHECK(!status && same_sets(table, want), "crowds: table on %s, dim %u eps %g half %d", kith_isa(ctx),
        a->points.dim, options->eps, options->half);
  kith_table_destroy(table);
  status = kith_join_count(ctx, &a->points, NULL, options, &pairs, NULL);
  CHECK(!status && pairs == want->n_pairs, "crowds: count on %s, dim %u eps %g half %d", kith_isa(ctx),
        a->points.dim, options->eps, options->half);
  kith_context_destroy(ctx);
}

static void test_corners(void) {
  static const double EPS[] = {0, 1.0 / 64, 2.0 / 64, 3.0 / 64};
  for (uint32_t dim = 1; dim <= 3; dim++)
    for (int e = 0; e < 4; e++) {
      cloud a = crowds_with_corners(dim, e % 2 ? KITH_F64 : KITH_F32);
      kith_join_options options = kith_join_options_init(EPS[e]);
      options.half = ((uint32_t)e + dim) % 2;
      options.cell_side = 64; /* crowds stay together */
      reference want = reference_join(&a.points, NULL, &options);
      check_corners("scalar", &a, &options, &want);
      check_corners("avx2", &a, &options, &want);
      check_corners("avx512", &a, &options, &want);
      reference_free(&want);
      cloud_free(&a);
    }
}

/* A few rows that are much longer than most: sorted, and with their distances. */
static void test_long_rows(kith_context *ctx) {
  enum { CROWD = 700, OTHERS = 16000 };
  cloud a = cloud_new(CROWD + OTHERS, 2, KITH_F32);
  uint64_t state = 11;
  for (uint64_t i = 0; i < a.points.n; i++) {
    bool in_crowd = i % (a.points.n / CROWD) == 0;
    for (uint32_t c = 0; c < 2; c++)
      cloud_set(&a, i, c, random_unit(&state) / (in_crowd ? 1024 : 1));
  }
  for (int distances = 0; distances < 2; distances++) {
    kith_join_options options = kith_join_options_init(1.0 / 512);
    options.distances = distances;
    reference want = reference_join(&a.points, NULL, &options);
    kith_table *table = table_of(ctx, &a.points, NULL, options);
    CHECK(equals_reference(table, &want), "long rows, distances %d", distances);
    kith_table_destroy(table);
    reference_free(&want);
  }
  cloud_free(&a);
}

/* A crowd around a corner of a periodic box, among others with few neighbours: rows are collected, and where
 * memory is short, those of the crowd are too long for the buffers of a thread. With distances they are counted
 * and filled. */
static void test_long_rows_in_a_box(kith_context *ctx) {
  enum { CROWD = 1100, OTHERS = 12000, DIM = 6 };
  static const double BOX[DIM] = {1, 1, 1, 1, 1, 1};
  for (int variant = 0; variant < 4; variant++) {
    cloud a = cloud_new(CROWD + OTHERS, DIM, variant / 2 ? KITH_F64 : KITH_F32);
    uint64_t state = 7;
    for (uint64_t i = 0; i < a.points.n; i++)
      for (uint32_t c = 0; c < DIM; c++) {
        double x = random_unit(&state);
        double near_corner = x / 64 < 1.0 / 128 ? x / 64 : 1 - x / 128;
        cloud_set(&a, i, c, i < CROWD ? near_corner : x);
      }
    kith_join_options options = kith_join_options_init(0.25);
    options.box = BOX;
    options.n_box = DIM;
    options.half = variant % 2;
    kith_table *once = table_of(ctx, &a.points, NULL, options);
    options.distances = 1;
    kith_table *filled = table_of(ctx, &a.points, NULL, options);
    bool same = once->n_pairs == filled->n_pairs &&
                memcmp(once->offsets, filled->offsets, (a.points.n + 1) * sizeof(uint64_t)) == 0 &&
                memcmp(once->neighbors, filled->neighbors, filled->n_pairs * sizeof(uint32_t)) == 0;
    CHECK(same, "long rows in a box, variant %d: %llu pairs collected, %llu filled", variant,
          (unsigned long long)once->n_pairs, (unsigned long long)filled->n_pairs);
    kith_table_destroy(once);
    kith_table_destroy(filled);
    cloud_free(&a);
  }
}

void test_crowds(void) {
  kith_context *ctx = context_new(NULL, 2, 256 << 20);
  test_work(ctx);
  test_long_rows(ctx);
  test_long_rows_in_a_box(ctx);
  kith_context_destroy(ctx);
  ctx = context_new(NULL, 2, 24 << 20);
  test_long_rows_in_a_box(ctx);
  kith_context_destroy(ctx);
  test_corners();
}
