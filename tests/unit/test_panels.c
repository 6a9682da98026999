/* Halving, sketches, and joining all with all when memory runs out. */
#include "base/memory.h"
#include "engine/cpu/panel.h"
#include "index/halve.h"
#include "index/marks.h"
#include "index/sketch.h"

#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static float unit(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (float)(*state >> 40) * 0x1p-24F;
}

/* Every number once, groups of the first half below the second half in some dimension, the same on all threads.
 */
static void halving_orders_all_points(void **state) {
  (void)state;
  enum { N = 1000, DIMS = 3 };
  static float values[DIMS * N];
  uint64_t rng = 1;
  for (uint32_t i = 0; i < DIMS * N; i++)
    values[i] = i % 7 == 0 ? 0.5F : unit(&rng) * (float)(1 + i / N); /* with ties */
  static uint32_t orders[2][N];
  for (uint32_t t = 0; t < 2; t++) {
    kith_context *ctx = open_context(1 + 3 * t);
    assert_int_equal(kith_halve(ctx, values, N, DIMS, N, 48, orders[t]), KITH_OK);
    kith_context_destroy(ctx);
  }
  assert_memory_equal(orders[0], orders[1], sizeof orders[0]);
  static uint32_t seen[N];
  for (uint32_t i = 0; i < N; i++)
    seen[orders[0][i]]++;
  for (uint32_t i = 0; i < N; i++)
    assert_int_equal(seen[i], 1);
  /* Dimension 2 is widest, so the whole is halved along it, at 10 of 21 groups. */
  float most = -INFINITY;
  float least = INFINITY;
  for (uint32_t i = 0; i < N; i++) {
    float x = values[2 * N + orders[0][i]];
    if (i < 480)
      most = x > most ? x : most;
    else
      least = x < least ? x : least;
  }
  assert_true(most <= least);
}

static void few_points_need_no_halving(void **state) {
  (void)state;
  float values[4] = {3, 1, 2, 0};
  uint32_t order[4];
  kith_context *ctx = open_context(1);
  for (uint32_t n = 0; n <= 4; n++)
    assert_int_equal(kith_halve(ctx, values, 4, 1, n, 4, order), KITH_OK);
  assert_int_equal(kith_halve(ctx, values, 4, 1, 4, 1, order), KITH_OK);
  uint32_t wanted[4] = {3, 1, 2, 0};
  assert_memory_equal(order, wanted, sizeof order);
  kith_context_destroy(ctx);
}

/* No sketch moves two points apart. */
static void sketches_do_not_stretch(void **state) {
  (void)state;
  enum { N = 200, DIM = 20 };
  static float data[N * DIM];
  uint64_t rng = 5;
  for (uint32_t i = 0; i < N * DIM; i++)
    data[i] = unit(&rng);
  kith_points points = {
      .data = data, .n = N, .dim = DIM, .dtype = KITH_F32, .row_stride = DIM * 4, .col_stride = 4};
  double low[DIM] = {0};
  double high[DIM];
  uint32_t columns[DIM];
  for (uint32_t c = 0; c < DIM; c++) {
    high[c] = 1;
    columns[c] = (c * 7) % DIM;
  }
  for (uint32_t split = 0; split <= 8; split++)
    for (uint32_t groups = 0; groups <= 1 + (split == 0) * 3; groups++) {
      kith_sketch sketch = {
          .dim = DIM, .columns = columns, .low = low, .high = high, .split = split, .groups = groups};
      for (uint32_t i = 1; i < N; i++) {
        float a[KITH_SKETCH_DIMS];
        float b[KITH_SKETCH_DIMS];
        kith_sketch_point(&sketch, &points, i - 1, a, 1);
        kith_sketch_point(&sketch, &points, i, b, 1);
        double d2 = 0;
        for (uint32_t c = 0; c < DIM; c++)
          d2 += pow((double)data[(i - 1) * DIM + c] - (double)data[i * DIM + c], 2);
        float s2 = 0;
        for (uint32_t d = 0; d < kith_sketch_dims(&sketch); d++)
          s2 += (a[d] - b[d]) * (a[d] - b[d]);
        kith_predicate predicate = kith_predicate_make(sqrt(d2), DIM);
        assert_true(s2 <= kith_sketch_reach(&sketch, &predicate));
      }
    }
}

/* The sum or the maximum of the differences of the marks of two points in one panel. */
static int64_t mark_size(const kith_panels *panels, uint32_t i, uint32_t j) {
  const kith_packing *packing = panels->packing;
  int64_t size = 0;
  for (uint32_t c = 0; c < packing->dim; c++) {
    const uint8_t *group = panels->marks + (size_t)(c / KITH_MARK_COLUMNS) * KITH_MARK_COLUMNS * KITH_PANEL;
    int64_t t = abs((int)group[i * KITH_MARK_COLUMNS + c % KITH_MARK_COLUMNS] -
                    (int)group[j * KITH_MARK_COLUMNS + c % KITH_MARK_COLUMNS]);
    size = packing->norm == KITH_NORM_1 ? size + t : t > size ? t : size;
  }
  return size;
}

/* Marks of two points whose distance is eps never reject them, whether coordinates are cut off or not. */
static void marks_do_not_stretch(void **state) {
  (void)state;
  enum { N = KITH_PANEL, DIM = 20 };
  static float data[N * DIM];
  uint64_t rng = 7;
  for (uint32_t i = 0; i < N * DIM; i++)
    data[i] = unit(&rng) * (i % 7 == 0 ? 100 : 1);
  kith_points points = {
      .data = data, .n = N, .dim = DIM, .dtype = KITH_F32, .row_stride = DIM * 4, .col_stride = 4};
  double low[DIM] = {0};
  double high[DIM];
  uint32_t columns[DIM];
  uint32_t ids[KITH_PANEL];
  for (uint32_t c = 0; c < DIM; c++) {
    high[c] = 100;
    columns[c] = (c * 7) % DIM;
  }
  for (uint32_t i = 0; i < N; i++)
    ids[i] = i;
  kith_context *ctx = open_context(1);
  for (uint32_t i = 1; i < N; i++)
    for (kith_norm norm = KITH_NORM_1; norm <= KITH_NORM_MAX; norm++) {
      double size = 0;
      for (uint32_t c = 0; c < DIM; c++)
        size = kith_norm_add(norm, size, (double)data[(i - 1) * DIM + c] - (double)data[i * DIM + c]);
      kith_predicate predicate = kith_predicate_of(norm, size, DIM);
      double centre[2 * DIM] = {0};
      kith_packing packing = {.norm = norm, .dim = DIM, .columns = columns, .centre = centre};
      kith_panels panels = {.packing = &packing, .n = N, .n_panels = 1, .ids = ids};
      kith_marks_choose(&packing, &predicate, &points, low, high);
      assert_int_equal(kith_marks_pack(ctx, &points, &panels), KITH_OK);
      kith_mark_limits limits = kith_mark_limits_make(&predicate, &packing);
      assert_true(mark_size(&panels, i - 1, i) <= limits.out);
      panels.ids = NULL;
      kith_panels_destroy(&panels);
    }
  kith_context_destroy(ctx);
}

/* Whichever allocation fails: a message, no leak, and the next call is right. */
static void failing_allocations_are_reported(void **state) {
  (void)state;
  enum { N = 300, DIM = 24 };
  static float data[N * DIM];
  uint64_t rng = 9;
  for (uint32_t i = 0; i < N * DIM; i++)
    data[i] = unit(&rng);
  kith_points points = {
      .data = data, .n = N, .dim = DIM, .dtype = KITH_F32, .row_stride = DIM * 4, .col_stride = 4};
  kith_context *ctx = open_context(2);
  kith_join_options options = kith_join_options_init(1.2);
  options.brute = 1;
  options.index_dims = 2;
  options.distances = 1;
  kith_table *table = NULL;
  assert_int_equal(kith_join_table(ctx, &points, NULL, &options, &table, NULL), KITH_OK);
  uint64_t pairs = table->n_pairs;
  kith_table_destroy(table);
  kith_status status = KITH_ERR_MEMORY;
  uint32_t failures = 0;
  for (uint64_t n = 1; n < 200; n++) {
    kith_memory_fail_nth(n);
    status = kith_join_table(ctx, &points, NULL, &options, &table, NULL);
    kith_memory_fail_nth(0);
    if (status) {
      failures++;
      assert_true(status == KITH_ERR_MEMORY || status == KITH_ERR_BUDGET);
      assert_true(*kith_message(ctx) != '\0');
      assert_null(table);
    } else {
      assert_int_equal(table->n_pairs, pairs);
      kith_table_destroy(table);
    }
  }
  assert_true(failures > 20);
  assert_int_equal(status, KITH_OK);
  kith_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(halving_orders_all_points),        cmocka_unit_test(few_points_need_no_halving),
      cmocka_unit_test(sketches_do_not_stretch),          cmocka_unit_test(marks_do_not_stretch),
      cmocka_unit_test(failing_allocations_are_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
