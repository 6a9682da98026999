/* The epsilon grid order and its blocks against the promises of index/ego.h; work over lists of queries, in
 * that order and in a grid's. */
#include "fixture.h"

#include "ops/join.h"

#include <stdlib.h>
#include <string.h>

enum { N = 3000, MAX_DIM = 9 };

/* Points of which some are far outside (heavy tails), or on a lattice of steps of eps (ties). */
typedef struct setting {
  uint32_t dim;
  double eps;
  enum { SPREAD, TAILS, TIES } shape;
} setting;
static const setting SETTINGS[] = {{1, 0.001, SPREAD}, {2, 0.02, SPREAD}, {3, 0.1, TAILS},   {4, 0.125, TIES},
                                   {6, 0.25, SPREAD},  {9, 0.3, TAILS},   {2, 1e-300, TIES}, {3, 1e6, SPREAD}};
enum { N_SETTINGS = sizeof SETTINGS / sizeof *SETTINGS };

static void fill(double *values, const setting *s) {
  uint64_t rng = s->dim;
  for (uint32_t i = 0; i < N * s->dim; i++) {
    double u = random_unit(&rng);
    values[i] = s->shape == TAILS ? tan(3.1 * (u - 0.5)) : s->shape == TIES ? (int)(8 * u) * 0.125 : u;
  }
}

/* In place: engines point into the join. */
static void prepare(kith_join *j, const kith_points *points, kith_join_options options,
                    kith_algorithm algorithm) {
  options.algorithm = algorithm;
  assert_int_equal(kith_join_prepare(j, ctx, points, NULL, &options), KITH_OK);
  assert_int_equal(j->in_ego_order, algorithm == KITH_ALGORITHM_EGO);
}

static uint32_t cell_at(const kith_index *index, uint32_t j, uint32_t position) {
  size_t at = index->grid->dims[j] * index->stride + position;
  return kith_grid_cell(index->grid, j, ((const double *)index->coords)[at]);
}

/* ---- the order ---- */

static void check_order(const kith_index *index) {
  for (uint32_t p = 1; p < index->n; p++) {
    uint32_t j = index->grid->k;
    while (j > 0 && cell_at(index, j - 1, p - 1) == cell_at(index, j - 1, p))
      j--;
    if (j > 0)
      assert_true(cell_at(index, j - 1, p - 1) < cell_at(index, j - 1, p));
    else
      assert_true(index->ids[p - 1] < index->ids[p]);
  }
}

static void check_blocks(const kith_index *index, const kith_ego *ego) {
  assert_int_equal(ego->starts[0], 0);
  assert_int_equal(ego->starts[ego->n_blocks], index->n);
  for (uint32_t block = 0; block < ego->n_blocks; block++) {
    assert_true(ego->starts[block] < ego->starts[block + 1]);
    for (uint32_t p = ego->starts[block]; p < ego->starts[block + 1]; p++) {
      assert_int_equal(kith_ego_block_at(ego, p), block);
      for (uint32_t j = 0; j < index->grid->k; j++)
        assert_in_range(cell_at(index, j, p), ego->boxes[block].low[j], ego->boxes[block].high[j]);
    }
  }
}

/* Whether any two points of two ranges of positions are within eps. */
static bool holds_pair(const kith_index *index, const uint32_t a[2], const uint32_t b[2], double eps) {
  const double *coords = index->coords;
  for (uint32_t p = a[0]; p < a[1]; p++)
    for (uint32_t q = b[0]; q < b[1]; q++) {
      double d2 = 0;
      for (uint32_t c = 0; c < index->dim; c++) {
        double t = coords[c * index->stride + p] - coords[c * index->stride + q];
        d2 += t * t;
      }
      if (d2 <= eps * eps)
        return true;
    }
  return false;
}

static kith_ego_sequence random_sequence(const kith_ego *ego, uint64_t *rng, uint32_t positions[2]) {
  uint32_t first = random_below(rng, ego->n_blocks);
  uint32_t n = 1 + random_below(rng, 4);
  uint32_t end = first + n < ego->n_blocks ? first + n : ego->n_blocks;
  positions[0] = ego->starts[first];
  positions[1] = ego->starts[end];
  return (kith_ego_sequence){&ego->boxes[first], &ego->boxes[end - 1]};
}

/* Sequences that are said not to meet hold no pair. */
static void check_meetings(const kith_index *index, const kith_ego *ego, double eps) {
  uint64_t rng = index->dim;
  for (int i = 0; i < 300; i++) {
    uint32_t a[2], b[2];
    kith_ego_sequence first = random_sequence(ego, &rng, a);
    kith_ego_sequence second = random_sequence(ego, &rng, b);
    uint32_t dims = index->grid->k;
    if (!kith_ego_may_meet(index->grid, first, second, &dims))
      assert_false(holds_pair(index, a, b, eps));
  }
}

static void orders_points(void **state) {
  (void)state;
  static double values[N * MAX_DIM];
  for (int s = 0; s < N_SETTINGS; s++) {
    fill(values, &SETTINGS[s]);
    kith_points points = kith_points_f64(values, N, SETTINGS[s].dim);
    kith_join j;
    prepare(&j, &points, kith_join_options_init(SETTINGS[s].eps), KITH_ALGORITHM_EGO);
    check_order(&j.index_b);
    check_blocks(&j.index_b, &j.ego);
    check_meetings(&j.index_b, &j.ego, SETTINGS[s].eps);
    assert_int_equal(kith_join_release(&j, KITH_OK, NULL), KITH_OK);
  }
}

/* ---- the choice ---- */

/* Left to the plan, points of two dimensions have a grid; of eight that crowd in a corner, this order. */
static void chooses_order(void **state) {
  (void)state;
  enum { MANY = 100000 };
  float *values = malloc(sizeof *values * 8 * MANY);
  assert_non_null(values);
  uint64_t rng = 1;
  for (uint32_t i = 0; i < 8 * MANY; i++)
    values[i] = (float)(-log(1 - random_unit(&rng)) / 40);
  for (uint32_t dim = 2; dim <= 8; dim += 6) {
    kith_points points = kith_points_f32(values, MANY, dim);
    kith_join_options options = kith_join_options_init(dim == 2 ? 0.001 : 0.015);
    kith_join j;
    assert_int_equal(kith_join_prepare(&j, ctx, &points, NULL, &options), KITH_OK);
    assert_int_equal(j.in_ego_order, dim == 8);
    assert_int_equal(kith_join_release(&j, KITH_OK, NULL), KITH_OK);
  }
  free(values);
}

/* ---- lists ---- */

/* What a join is to find, by the definition: every row in full, by id. */
typedef struct answer {
  uint64_t offsets[N + 1];
  uint32_t *neighbors;
} answer;

static void find_answer(answer *want, const double *values, const setting *s, bool half) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < N; i++) {
    want->offsets[i] = n;
    for (uint32_t k = half ? i + 1 : 0; k < N; k++) {
      double d2 = 0;
      for (uint32_t c = 0; c < s->dim; c++) {
        double t = values[i * s->dim + c] - values[k * s->dim + c];
        d2 += t * t;
      }
      if (k != i && d2 <= s->eps * s->eps)
        want->neighbors[n++] = k;
    }
  }
  want->offsets[N] = n;
}

/* Runs work on a list, in pieces of any size. */
static kith_tally run_listed(kith_engine *engine, kith_work work, uint32_t n, uint64_t *rng) {
  kith_tally tally = {0};
  for (uint32_t at = 0; at < n; at = work.end) {
    work.begin = at;
    work.end = n - at > 1 ? at + 1 + random_below(rng, n - at) : n;
    assert_int_equal(engine->run(engine, 0, &work, &tally), KITH_OK);
  }
  return tally;
}

/* Every ordered pair of the listed queries is counted, (i, i) too, whatever the symmetry. */
static void check_count(kith_engine *engine, const answer *all, const uint32_t *list, uint32_t n,
                        uint64_t *rng) {
  uint64_t want = n;
  for (uint32_t i = 0; i < n; i++)
    want += all->offsets[engine->ids[list[i]] + 1] - all->offsets[engine->ids[list[i]]];
  kith_work work = {.operation = KITH_DO_COUNT, .list = list, .end_row = UINT64_MAX};
  assert_int_equal(run_listed(engine, work, n, rng).pairs, want);
}

/* Degrees of the listed queries, and of no others. */
static void check_degrees(kith_engine *engine, const answer *want, const uint32_t *list, uint32_t n,
                          uint64_t *rng) {
  static uint64_t degrees[N];
  memset(degrees, 0xFF, sizeof degrees);
  kith_work work = {.operation = KITH_DO_DEGREES, .list = list, .end_row = UINT64_MAX, .degrees = degrees};
  run_listed(engine, work, n, rng);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t id = engine->ids[list[i]];
    assert_int_equal(degrees[id], want->offsets[id + 1] - want->offsets[id]);
    degrees[id] = UINT64_MAX;
  }
  for (uint32_t id = 0; id < N; id++)
    assert_true(degrees[id] == UINT64_MAX);
}

/* Rows of the listed queries in a window of ids, and of no others. */
static void check_rows(kith_engine *engine, const answer *want, const uint32_t *list, uint32_t n,
                       uint64_t *rng) {
  uint64_t first = random_below(rng, N / 2);
  uint64_t end = first + 1 + random_below(rng, N / 2);
  uint64_t pairs = want->offsets[end] - want->offsets[first];
  uint32_t *neighbors = malloc((pairs + 1) * sizeof *neighbors);
  assert_non_null(neighbors);
  memset(neighbors, 0xFF, pairs * sizeof *neighbors);
  kith_work work = {.operation = KITH_DO_FILL,
                    .list = list,
                    .first_row = first,
                    .end_row = end,
                    .offsets = want->offsets + first,
                    .neighbors = neighbors};
  run_listed(engine, work, n, rng);
  uint64_t listed = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t id = engine->ids[list[i]];
    if (id < first || id >= end)
      continue;
    uint64_t length = want->offsets[id + 1] - want->offsets[id];
    assert_memory_equal(neighbors + (want->offsets[id] - want->offsets[first]),
                        want->neighbors + want->offsets[id], length * sizeof *neighbors);
    listed += length;
  }
  for (uint64_t i = 0; i < pairs; i++)
    listed += neighbors[i] == UINT32_MAX;
  assert_int_equal(listed, pairs);
  free(neighbors);
}

static uint32_t random_list(uint32_t *list, double share, uint64_t *rng) {
  uint32_t n = 0;
  for (uint32_t p = 0; p < N; p++)
    if (random_unit(rng) < share)
      list[n++] = p;
  return n;
}

static void check_lists(const kith_points *points, const setting *s, bool half, kith_algorithm algorithm) {
  static const double SHARES[] = {1, 0.6, 0.05, 0.001};
  static uint32_t list[N];
  answer *all = malloc(sizeof *all);
  answer *want = malloc(sizeof *want);
  assert_true(all && want);
  all->neighbors = malloc((size_t)N * N * sizeof(uint32_t));
  want->neighbors = malloc((size_t)N * N * sizeof(uint32_t));
  assert_true(all->neighbors && want->neighbors);
  find_answer(all, points->data, s, false);
  find_answer(want, points->data, s, half);
  kith_join_options options = kith_join_options_init(s->eps);
  options.half = half;
  options.sorted = 1;
  kith_join j;
  prepare(&j, points, options, algorithm);
  uint64_t rng = s->dim;
  for (size_t i = 0; i < sizeof SHARES / sizeof *SHARES; i++) {
    uint32_t n = random_list(list, SHARES[i], &rng);
    check_count(j.engine, all, list, n, &rng);
    check_degrees(j.engine, want, list, n, &rng);
    check_rows(j.engine, want, list, n, &rng);
  }
  assert_int_equal(kith_join_release(&j, KITH_OK, NULL), KITH_OK);
  free(all->neighbors);
  free(want->neighbors);
  free(all);
  free(want);
}

static void runs_lists(void **state) {
  (void)state;
  static double values[N * MAX_DIM];
  for (int s = 0; s < N_SETTINGS - 1; s++) {
    fill(values, &SETTINGS[s]);
    kith_points points = kith_points_f64(values, N, SETTINGS[s].dim);
    for (int half = 0; half < 2; half++) {
      check_lists(&points, &SETTINGS[s], half, KITH_ALGORITHM_GRID);
      check_lists(&points, &SETTINGS[s], half, KITH_ALGORITHM_EGO);
    }
  }
}

/* Columns of points, near and far by turns along the order: queries in many columns make a tile with more runs
 * than it can list. */
enum { COLUMNS = 1600, COLUMN_POINTS = 240, COLUMN_QUERIES = 40 };

static void fill_columns(double *values) {
  uint64_t rng = 1;
  for (uint32_t i = 0; i < COLUMNS * COLUMN_POINTS; i++) {
    values[2 * i] = i / COLUMN_POINTS + 0.5 * random_unit(&rng);
    values[2 * i + 1] = (i % 2 ? 20 : 0) + 0.5 * random_unit(&rng);
  }
}

static uint64_t count_around(const double *values, uint32_t id, double eps) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < COLUMNS * COLUMN_POINTS; i++) {
    double x = values[2 * i] - values[2 * id];
    double y = values[2 * i + 1] - values[2 * id + 1];
    n += x * x + y * y <= eps * eps;
  }
  return n;
}

static void merges_runs(void **state) {
  (void)state;
  uint32_t list[COLUMN_QUERIES];
  double *values = malloc(sizeof *values * 2 * COLUMNS * COLUMN_POINTS);
  assert_non_null(values);
  fill_columns(values);
  kith_points points = kith_points_f64(values, COLUMNS * COLUMN_POINTS, 2);
  kith_join j;
  prepare(&j, &points, kith_join_options_init(1), KITH_ALGORITHM_EGO);
  uint64_t want = 0;
  for (uint32_t i = 0; i < COLUMN_QUERIES; i++) {
    list[i] = i * (COLUMNS * COLUMN_POINTS / COLUMN_QUERIES);
    while (values[2 * j.engine->ids[list[i]] + 1] > 1)
      list[i]++;
    want += count_around(values, j.engine->ids[list[i]], 1);
  }
  kith_work work = {.operation = KITH_DO_COUNT, .list = list, .end = COLUMN_QUERIES, .end_row = UINT64_MAX};
  kith_tally tally = {0};
  assert_int_equal(j.engine->run(j.engine, 0, &work, &tally), KITH_OK);
  assert_int_equal(tally.pairs, want);
  assert_int_equal(kith_join_release(&j, KITH_OK, NULL), KITH_OK);
  free(values);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(orders_points, setup, teardown),
      cmocka_unit_test_setup_teardown(chooses_order, setup, teardown),
      cmocka_unit_test_setup_teardown(runs_lists, setup, teardown),
      cmocka_unit_test_setup_teardown(merges_runs, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
