/* The predicate: what the filter's band promises, on random and on hostile pairs. */
#include "support.h"

#include "space/predicate.h"

#include <math.h>
#include <string.h>

enum { MAX_DIM = 64 };

typedef struct float_pair {
  uint32_t dim;
  float a[MAX_DIM], b[MAX_DIM];
} float_pair;

static double definition(const float_pair *p) {
  double d2 = 0;
  for (uint32_t c = 0; c < p->dim; c++) {
    double t = (double)p->a[c] - (double)p->b[c];
    d2 += t * t;
  }
  return d2;
}

static float filter_sum(const float_pair *p, const kith_predicate *predicate, bool fused) {
  float sum = predicate->minus_limit;
  for (uint32_t c = 0; c < p->dim; c++) {
    float t = p->a[c] - p->b[c];
    sum = fused ? fmaf(t, t, sum) : sum + t * t;
  }
  return sum;
}

static float_pair random_pair(uint32_t dim, uint64_t *rng) {
  float_pair p = {.dim = dim};
  double scale = pow(10, 24 * random_unit(rng) - 12);
  double offset = random_below(rng, 2) ? 0 : pow(10, 4 * random_unit(rng));
  for (uint32_t c = 0; c < dim; c++) {
    p.a[c] = (float)(scale * (offset + random_unit(rng)));
    double size = random_below(rng, 3) ? 1 : pow(10, -6 * random_unit(rng));
    p.b[c] = (float)((double)p.a[c] + scale * size * (2 * random_unit(rng) - 1));
  }
  return p;
}

/* Where the filter is sure it must be right, for pairs at eps within a few units in the last place. */
static void test_predicate_band(void **state) {
  (void)state;
  uint64_t rng = 42, undecided = 0, filtered = 0;
  for (uint32_t round = 0; round < 150000; round++) {
    float_pair p = random_pair(1 + round % MAX_DIM, &rng);
    double d2 = definition(&p);
    double off = (2 * random_unit(&rng) - 1) * pow(2, -30 * random_unit(&rng));
    double eps = sqrt(d2) * (1 + (round % 3 ? off * 0x1p-18 : 0));
    kith_predicate predicate = kith_predicate_make(eps, p.dim);
    assert_true(fabs((double)p.a[0] - (double)p.b[0]) <= predicate.reach || !(d2 <= predicate.limit));
    if (!predicate.filter)
      continue;
    filtered++;
    for (int fused = 0; fused < 2; fused++) {
      float sum = filter_sum(&p, &predicate, fused);
      bool truth = d2 <= predicate.limit;
      if (sum < -predicate.band)
        assert_true(truth);
      else if (sum > predicate.band)
        assert_false(truth);
      else
        undecided++;
    }
  }
  assert_true(filtered > 100000 && undecided > 10000 && undecided < 2 * filtered);
}

/* The band must be narrow too: a pair off by ten bands is decided. */
static void test_predicate_decides(void **state) {
  (void)state;
  uint64_t rng = 43;
  for (uint32_t round = 0; round < 20000; round++) {
    float_pair p = random_pair(1 + round % MAX_DIM, &rng);
    double sign = round % 2 ? 1 : -1;
    double eps = sqrt(definition(&p)) * (1 + sign * 10 * (p.dim + 6) * 0x1p-24);
    kith_predicate predicate = kith_predicate_make(eps, p.dim);
    float sum = filter_sum(&p, &predicate, round % 4 < 2);
    if (predicate.filter)
      assert_true(sign > 0 ? sum < -predicate.band : sum > predicate.band);
  }
}

static void test_predicate_ends(void **state) {
  (void)state;
  assert_false(kith_predicate_make(0, 2).filter);
  assert_false(kith_predicate_make(1e-16, 2).filter);
  assert_false(kith_predicate_make(1e16, 2).filter);
  assert_true(kith_predicate_make(1e-14, 2).filter && kith_predicate_make(1e14, 2).filter);
  assert_true(kith_predicate_make(1e200, 2).everything && !kith_predicate_make(1e150, 2).everything);
  kith_predicate zero = kith_predicate_make(0, 1);
  double t = 0x1.6p-538; /* t * t underflows to 0, so this pair belongs at eps 0 */
  assert_true(t * t <= zero.limit && t <= zero.reach);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_predicate_band),
      cmocka_unit_test(test_predicate_decides),
      cmocka_unit_test(test_predicate_ends),
  };
  return cmocka_run_group_tests_name("predicate", tests, NULL, NULL);
}
