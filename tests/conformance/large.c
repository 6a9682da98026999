/* Joins that are too large for the reference: what small ones never come to on a GPU. They are compared with
 * the CPU, which the reference has been compared with. */
#include "cases.h"
#include "ops/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 200000, DIM = 3, THREADS = 3 };
static const double EPS = 0.02;

static float *make_values(void) {
  float *values = malloc(sizeof(float) * N * DIM);
  uint64_t state = 1;
  for (uint64_t i = 0; values && i < (uint64_t)N * DIM; i++) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    values[i] = (float)(state >> 40) * 0x1p-24F;
  }
  return values;
}

/* device_memory: that it may use; 0: all. */
static kith_context *open_engine(const char *engine, uint64_t device_memory) {
  kith_context_options options = kith_context_options_init();
  options.engine = engine;
  options.threads = THREADS;
  options.device_memory_bytes = device_memory;
  kith_context *ctx;
  if (kith_context_create(&options, &ctx) == KITH_OK)
    return ctx;
  kith_context_destroy(ctx);
  return NULL;
}

static kith_table *make_table(const char *engine, uint64_t device_memory, const kith_points *points,
                              const kith_join_options *options, kith_join_report *report) {
  kith_context *ctx = open_engine(engine, device_memory);
  kith_table *table = NULL;
  *report = kith_join_report_init();
  if (ctx && kith_join_table(ctx, points, NULL, options, &table, report) != KITH_OK)
    fprintf(stderr, "%s: %s\n", engine, kith_message(ctx));
  kith_context_destroy(ctx);
  return table;
}

static bool is_same(const kith_table *a, const kith_table *b) {
  return a && b && a->n_pairs == b->n_pairs &&
         memcmp(a->offsets, b->offsets, (a->n_rows + 1) * sizeof *a->offsets) == 0 &&
         memcmp(a->neighbors, b->neighbors, a->n_pairs * sizeof *a->neighbors) == 0;
}

/* Whether an engine makes the same sorted table as the CPU. */
static bool makes_same_table(const char *engine, uint64_t device_memory, const kith_points *points,
                             kith_join_options options, kith_join_report *report) {
  kith_join_report other;
  options.sorted = 1;
  kith_table *expected = make_table("cpu", 0, points, &options, &other);
  kith_table *found = make_table(engine, device_memory, points, &options, report);
  bool same = is_same(expected, found);
  kith_table_destroy(expected);
  kith_table_destroy(found);
  return same;
}

static bool grid_wraps(const kith_points *points, const kith_join_options *options) {
  kith_context *ctx = open_engine("cuda", 0);
  kith_join j;
  bool wraps = ctx && kith_join_prepare(&j, ctx, points, NULL, options) == KITH_OK && j.gpu.grid.wraps[0];
  if (ctx)
    kith_join_release(&j, KITH_OK, NULL);
  kith_context_destroy(ctx);
  return wraps;
}

bool large_box_is_right(void) {
  static const double box[DIM] = {1, 1, 1};
  float *values = make_values();
  kith_points points = kith_points_f32(values, N, DIM);
  kith_join_options options = kith_join_options_init(EPS);
  options.box = box;
  options.n_box = DIM;
  kith_join_report report;
  bool right =
      values && grid_wraps(&points, &options) && makes_same_table("cuda", 0, &points, options, &report);
  free(values);
  return right;
}

/* The CPU comes when the GPU has begun; in builds with faults that is slow, so that there is something left. */
bool large_sharing_is_right(void) {
  static const char *const fault = "cuda:slow";
  float *values = make_values();
  kith_points points = kith_points_f32(values, N, DIM);
  kith_join_report report = kith_join_report_init();
  setenv("KITH_FAULT", fault, 1);
  bool slows = kith_fault_slows("cuda");
  bool right = values && makes_same_table("hybrid", 0, &points, kith_join_options_init(EPS), &report);
  unsetenv("KITH_FAULT");
  free(values);
  bool shares = report.n_engines == 2 && report.engines[1].queries > 0 && !report.engines[1].failure[0];
  if (right && slows && !shares)
    fprintf(stderr, "the CPU did not come: %s\n", report.n_engines == 2 ? report.engines[1].failure : "");
  return right && (shares || !slows);
}

/* Clusters of several densities. */
static float *make_clusters(uint64_t n, uint32_t dim) {
  float *values = calloc(n * dim, sizeof(float));
  uint64_t state = dim;
  for (uint64_t i = 0; values && i < n * dim; i++) {
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    double u = (double)(state >> 40) * 0x1p-24;
    uint64_t cluster = i / dim % 17;
    values[i] = (float)(u * (0.1 + 0.05 * (double)cluster) + (double)(cluster * (i % dim + 3) % 7));
  }
  return values;
}

typedef struct tiles_case {
  uint32_t dim;
  kith_metric metric;
  double eps;
} tiles_case;

static bool tiles_are_right(const tiles_case *c, uint64_t memory) {
  enum { POINTS = 12000 };
  float *values = make_clusters(POINTS, c->dim);
  kith_points points = kith_points_f32(values, POINTS, c->dim);
  kith_join_options options = kith_join_options_init(c->eps);
  options.metric = c->metric;
  options.brute = 1;
  kith_join_report report = kith_join_report_init();
  bool right = values && makes_same_table("cuda", memory, &points, options, &report) && report.pairs > POINTS &&
               strcmp(report.algorithm, "brute") == 0;
  if (!right)
    fprintf(stderr, "%u dimensions, metric %d: %llu pairs, %s\n", c->dim, c->metric,
            (unsigned long long)report.pairs, report.algorithm ? report.algorithm : "");
  free(values);
  return right;
}

/* More than one segment of tiles, so that stages are used again; once with so little memory that the list does
 * not hold all pairs. */
bool large_tiles_are_right(void) {
  static const tiles_case CASES[] = {{16, KITH_MANHATTAN, 2.4},   {16, KITH_CHEBYSHEV, 0.33},
                                     {16, KITH_EUCLIDEAN, 0.75},  {24, KITH_MANHATTAN, 4},
                                     {33, KITH_MANHATTAN, 6},     {64, KITH_CHEBYSHEV, 0.42},
                                     {64, KITH_EUCLIDEAN, 1.9},   {64, KITH_MANHATTAN, 12},
                                     {100, KITH_CHEBYSHEV, 0.44}, {100, KITH_MANHATTAN, 19}};
  const uint64_t little = 24 << 20;
  bool right = true;
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    right &= tiles_are_right(&CASES[i], 0);
    right &= tiles_are_right(&CASES[i], little);
  }
  return right;
}
