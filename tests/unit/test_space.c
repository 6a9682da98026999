/* Tests of the space: sine and cosine, norms and their bands, lattices, embedding. */
#include "base/context.h"
#include "base/cpu.h"
#include "space/degrees.h"
#include "space/loops.h"
#include "space/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

static uint64_t next(uint64_t *state) {
  *state += UINT64_C(0x9E3779B97F4A7C15);
  uint64_t x = *state;
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

static double unit(uint64_t *state) { return (double)(next(state) >> 11) * 0x1p-53; }

/* ---- degrees ---- */

/* In units in the last place of the true value. */
static double error_of(double got, long double truth) {
  double near = (double)truth;
  double ulp = nextafter(fabs(near), INFINITY) - fabs(near);
  return fabs((double)((got - truth) / (long double)ulp));
}

static void test_degrees_are_accurate(void **state) {
  (void)state;
  if (LDBL_MANT_DIG < 64)
    return; /* nothing to compare with */
  const long double radian = 3.14159265358979323846264338327950288L / 180;
  uint64_t rng = 1;
  for (int i = 0; i < 300000; i++) {
    static const double widths[] = {90, 90, 10, 1e-3, 1e-20};
    double x = (unit(&rng) - 0.5) * widths[i % 5];
    assert_true(error_of(kith_sin_degrees(x), sinl((long double)x * radian)) < 0.9);
    assert_true(error_of(kith_cos_degrees(x), cosl((long double)x * radian)) < 0.9);
  }
}

static void test_degrees_turn(void **state) {
  (void)state;
  uint64_t rng = 2;
  for (int i = 0; i < 100000; i++) {
    double x = (double)(next(&rng) % (90 << 20)) * 0x1p-20; /* so that sums below are exact */
    assert_true(kith_sin_degrees(-x) == -kith_sin_degrees(x));
    assert_true(kith_cos_degrees(-x) == kith_cos_degrees(x));
    assert_true(kith_sin_degrees(x + 3600) == kith_sin_degrees(x));
    assert_true(kith_sin_degrees(x + 180) == -kith_sin_degrees(x));
    assert_true(kith_cos_degrees(x + 270) == kith_sin_degrees(x));
    assert_true(kith_sin_degrees(180 - x) == kith_sin_degrees(x));
  }
  assert_true(kith_sin_degrees(30) == 0.5 && kith_cos_degrees(60) == 0.5 && kith_cos_degrees(120) == -0.5);
  assert_true(kith_cos_degrees(90) == 0 && kith_sin_degrees(180) == 0 && kith_sin_degrees(90) == 1);
  assert_true(kith_cos_degrees(-180) == -1 && kith_sin_degrees(1e300) == kith_sin_degrees(fmod(1e300, 360)));
}

/* ---- norms ---- */

enum { MAX_DIM = 48 };

static double size_of(kith_norm norm, uint32_t dim, const double *a, const double *b) {
  double size = 0;
  for (uint32_t c = 0; c < dim; c++)
    size = kith_norm_add(norm, size, a[c] - b[c]);
  return size;
}

/* The filter as kernels compute it. */
static float filter_of(const kith_predicate *p, uint32_t dim, const float *a, const float *b) {
  float s = p->norm == KITH_NORM_MAX ? 0 : p->minus_limit;
  for (uint32_t c = 0; c < dim; c++) {
    float t = a[c] - b[c];
    s = p->norm == KITH_NORM_2 ? fmaf(t, t, s) : p->norm == KITH_NORM_1 ? s + fabsf(t) : fmaxf(s, fabsf(t));
  }
  return p->norm == KITH_NORM_MAX ? s + p->minus_limit : s;
}

/* Pairs at eps within a few units in the last place, as float32 and as float64 that is narrowed beside an
 * origin. */
static void test_norm_bands(void **state) {
  (void)state;
  uint64_t rng = 3;
  uint64_t undecided = 0;
  uint64_t filtered = 0;
  for (uint32_t round = 0; round < 200000; round++) {
    kith_norm norm = (kith_norm)(round % 3);
    bool narrow = round % 2;
    uint32_t dim = 1 + (uint32_t)(next(&rng) % MAX_DIM);
    double scale = pow(10, 16 * unit(&rng) - 8);
    double offset = pow(10, 4 * unit(&rng)) * scale;
    double a[MAX_DIM], b[MAX_DIM], near[MAX_DIM] = {0};
    float fa[MAX_DIM], fb[MAX_DIM];
    double zero[MAX_DIM] = {0};
    for (uint32_t c = 0; c < dim; c++) {
      a[c] = offset + scale * unit(&rng);
      b[c] = a[c] + scale * (unit(&rng) - 0.5);
      double o = narrow ? a[c] + scale * 3 * (unit(&rng) - 0.5) : 0;
      if (!narrow) {
        a[c] = (float)a[c];
        b[c] = (float)b[c];
      }
      near[c] = a[c] - o;
      fa[c] = (float)(a[c] - o);
      fb[c] = (float)(b[c] - o);
    }
    double size = size_of(norm, dim, a, b);
    double limit = size * (1 + (unit(&rng) - 0.5) * pow(2, -16 - 20 * unit(&rng)));
    kith_predicate p = kith_predicate_of(norm, limit, dim);
    double h = kith_norm_distance(norm, size_of(norm, dim, near, zero)) * (1 + 0x1p-20);
    if (!p.filter || (narrow && !kith_predicate_narrow(&p, dim, h)))
      continue;
    filtered++;
    float s = filter_of(&p, dim, fa, fb);
    assert_false(s < -p.band && !(size <= limit));
    assert_false(s > p.band && size <= limit);
    undecided += s >= -p.band && s <= p.band;
  }
  assert_true(filtered > 150000 && undecided > 10000 && undecided < filtered);
}

/* ---- lattices ---- */

static kith_context *open_context(void) {
  kith_context *ctx;
  assert_int_equal(kith_context_create(NULL, &ctx), KITH_OK);
  return ctx;
}

typedef struct found_shifts {
  uint32_t n;
  kith_shift shifts[400];
} found_shifts;

static found_shifts find_shifts(const kith_lattice *lattice, const kith_differences *d) {
  found_shifts found = {0};
  kith_shift_walk walk;
  for (bool more = kith_shift_first(lattice, d, &walk); more; more = kith_shift_next(lattice, d, &walk)) {
    assert_true(found.n < 400);
    found.shifts[found.n++] = walk.shift;
  }
  return found;
}

static bool holds(const found_shifts *found, int x, int y, int z) {
  for (uint32_t i = 0; i < found->n; i++)
    if (found->shifts[i].turns[0] == x && found->shifts[i].turns[1] == y && found->shifts[i].turns[2] == z)
      return true;
  return false;
}

/* Every shift that brings a difference within reach is found, each once. */
static void test_lattice_shifts(void **state) {
  (void)state;
  kith_context *ctx = open_context();
  const double box[] = {1, 1.1, 0.9, 70, 80, 110};
  kith_lattice lattice;
  assert_int_equal(kith_lattice_make(ctx, box, 6, 3, &lattice), KITH_OK);
  uint64_t rng = 4;
  for (int round = 0; round < 2000; round++) {
    kith_differences d = {.reach = lattice.height / 2};
    for (int c = 0; c < 3; c++)
      d.low[c] = d.high[c] = (2 * unit(&rng) - 1) * lattice.vector[c][c];
    found_shifts found = find_shifts(&lattice, &d);
    for (uint32_t i = 0; i < found.n; i++)
      for (uint32_t k = 0; k < i; k++)
        assert_true(memcmp(&found.shifts[i], &found.shifts[k], sizeof(kith_shift)) != 0);
    for (int x = -3; x <= 3; x++)
      for (int y = -3; y <= 3; y++)
        for (int z = -3; z <= 3; z++) {
          double tz = d.low[2] + z * lattice.vector[2][2];
          double ty = d.low[1] + z * lattice.vector[2][1] + y * lattice.vector[1][1];
          double tx = d.low[0] + z * lattice.vector[2][0] + y * lattice.vector[1][0] + x * lattice.vector[0][0];
          if (fabs(tx) <= d.reach && fabs(ty) <= d.reach && fabs(tz) <= d.reach)
            assert_true(holds(&found, x, y, z));
        }
  }
  kith_context_destroy(ctx);
}

static void test_lattice_wraps(void **state) {
  (void)state;
  kith_context *ctx = open_context();
  const double box[] = {3, 0, 0, 1.4, 2, 0, -1.2, 0.9, 1};
  kith_lattice lattice;
  assert_int_equal(kith_lattice_make(ctx, box, 9, 3, &lattice), KITH_OK);
  uint64_t rng = 5;
  for (int round = 0; round < 100000; round++) {
    double far = pow(10, 8 * unit(&rng) - 4);
    double x[3], again[3];
    for (int c = 0; c < 3; c++)
      x[c] = round % 7 == c ? -1e-20 : (2 * unit(&rng) - 1) * far;
    assert_true(kith_lattice_wrap(&lattice, x));
    for (int c = 0; c < 3; c++)
      assert_true(x[c] >= 0 && x[c] < lattice.vector[c][c]);
    memcpy(again, x, sizeof x);
    assert_true(kith_lattice_wrap(&lattice, again) && memcmp(again, x, sizeof x) == 0);
  }
  double lost[3] = {1e300, 0, 0};
  assert_false(kith_lattice_wrap(&lattice, lost));
  kith_context_destroy(ctx);
}

/* A coordinate on a face of the brick or of another one, about as near to it as numbers are, or anywhere. */
static double around_brick(double side, uint64_t *rng) {
  double face = side * floor(7 * unit(rng) - 3);
  double kind = unit(rng);
  double far = unit(rng) < 0.1 ? 1e5 : 3;
  return kind < 0.1 ? face : kind < 0.4 ? face + (unit(rng) - 0.5) * 0x1p-50 : (2 * unit(rng) - 1) * far * side;
}

/* Columns are wrapped like points, with every instruction set that there is. */
static void test_lattice_wraps_columns(void **state) {
  (void)state;
  enum { N = 1000 };
  static const double BOXES[][9] = {{3, 0, 0, 1.4, 2, 0, -1.2, 0.9, 1.1},
                                    {1, 0, 0, 0.5, 0.8, 0, 0, 0, 0.7},
                                    {1, 0, 0, 0, 0, 0, 0.4, 0, 0.8},
                                    {0.3, 0, 0, 0, 0.1, 0, 0, 0, 0.7}};
  kith_context *ctx = open_context();
  uint64_t rng = 11;
  for (size_t b = 0; b < sizeof BOXES / sizeof *BOXES; b++) {
    kith_lattice lattice;
    assert_int_equal(kith_lattice_make(ctx, BOXES[b], 9, 3, &lattice), KITH_OK);
    double values[3][N];
    double want[3][N];
    for (int p = 0; p < N; p++) {
      double x[3] = {7, 7, 7};
      for (uint32_t i = 0; i < lattice.n; i++)
        x[lattice.axis[i]] = around_brick(lattice.vector[i][i], &rng);
      for (int c = 0; c < 3; c++)
        values[c][p] = x[c];
      assert_true(kith_lattice_wrap(&lattice, x));
      for (int c = 0; c < 3; c++)
        want[c][p] = x[c];
    }
    for (int isa = KITH_ISA_SCALAR; isa <= (int)kith_cpu_best_isa(); isa++) {
      double wrapped[3][N];
      memcpy(wrapped, values, sizeof wrapped);
      double *columns[3] = {wrapped[0], wrapped[1], wrapped[2]};
      kith_space_loops_for((kith_isa_level)isa)->wrap_columns(&lattice, columns, N);
      assert_memory_equal(wrapped, want, sizeof want);
    }
  }
  kith_context_destroy(ctx);
}

static void test_lattice_heights(void **state) {
  (void)state;
  kith_context *ctx = open_context();
  kith_lattice lattice;
  assert_int_equal(kith_lattice_make(ctx, (double[]){4, 0, 6}, 3, 3, &lattice), KITH_OK);
  assert_true(lattice.n == 2 && lattice.height == 4 && lattice.axis[1] == 2 && !lattice.skewed);
  assert_int_equal(kith_lattice_make(ctx, (double[]){1, 1, 5, 90, 90, 60}, 6, 3, &lattice), KITH_OK);
  assert_true(fabs(lattice.height - sqrt(0.75)) < 1e-15 && lattice.vector[1][0] == 0.5);
  assert_int_equal(kith_lattice_make(ctx, (double[]){2, 3, 4, 90, 90, 90}, 6, 3, &lattice), KITH_OK);
  assert_true(lattice.n == 3 && !lattice.skewed && lattice.height == 2);
  /* Half of the box is where a pair may have two images; well below there is no doubt. */
  assert_true(kith_lattice_doubt(&lattice, 0.99) > 0.99 && kith_lattice_doubt(&lattice, 1) < 1);
  assert_true(kith_lattice_doubt(&lattice, 1) > 0.999999);
  kith_context_destroy(ctx);
}

/* Whether two places in the box are one, up to rounding; those next to opposite faces are. */
static bool is_same_place(const kith_lattice *lattice, const double *a, const double *b) {
  kith_differences d = {.reach = 1e-9};
  for (int c = 0; c < 3; c++)
    d.low[c] = d.high[c] = a[c] - b[c];
  return find_shifts(lattice, &d).n == 1;
}

/* Boxes of any vectors, some of them zero: points that are images of each other have one place, and keep their
 * distances. */
static void test_lattices_turn(void **state) {
  (void)state;
  kith_context *ctx = open_context();
  uint64_t rng = 5;
  for (int round = 0; round < 2000; round++) {
    double v[3][3];
    for (int i = 0; i < 9; i++)
      v[i / 3][i % 3] = round & 1 << i / 3 ? 0 : 20 * unit(&rng) - 10;
    kith_lattice lattice;
    kith_status status = kith_lattice_make(ctx, v[0], 9, 3, &lattice);
    assert_true(status == KITH_OK && lattice.turned == ((round & 7) != 7));
    if (lattice.n == 0 || lattice.height < 1e-3)
      continue;
    double x[3], image[3], near[3];
    for (int c = 0; c < 3; c++) {
      x[c] = 40 * unit(&rng) - 20;
      image[c] = x[c] + v[0][c] - 2 * v[1][c] + 3 * v[2][c];
      near[c] = x[c] + 1e-3 * unit(&rng);
    }
    double apart = sqrt(pow(x[0] - near[0], 2) + pow(x[1] - near[1], 2) + pow(x[2] - near[2], 2));
    double turned[2][3];
    memcpy(turned[0], x, sizeof x);
    memcpy(turned[1], near, sizeof near);
    assert_true(kith_lattice_turn(&lattice, turned[0]) && kith_lattice_turn(&lattice, turned[1]));
    double still = sqrt(pow(turned[0][0] - turned[1][0], 2) + pow(turned[0][1] - turned[1][1], 2) +
                        pow(turned[0][2] - turned[1][2], 2));
    assert_true(fabs(apart - still) < 1e-13);
    assert_true(kith_lattice_place(&lattice, x) && kith_lattice_place(&lattice, image));
    assert_true(is_same_place(&lattice, x, image));
  }
  kith_lattice lattice;
  assert_int_equal(kith_lattice_make(ctx, (double[]){1, 1, 0, 2, 2, 0, 0, 0, 1}, 9, 3, &lattice),
                   KITH_ERR_ARGUMENT);
  assert_int_equal(kith_lattice_make(ctx, (double[]){0, 1e151, 0, 1, 0, 0, 0, 0, 1}, 9, 3, &lattice),
                   KITH_ERR_ARGUMENT);
  assert_int_equal(kith_lattice_make(ctx, (double[]){0, 1e150, 0, 1, 0, 0, 0, 0, 0}, 9, 3, &lattice), KITH_OK);
  double lost[3] = {1, DBL_MAX, 1};
  assert_false(kith_lattice_place(&lattice, lost));
  kith_context_destroy(ctx);
}

/* ---- embedding ---- */

/* A coordinate in or around a side, at the places where something changes more often than not. */
static double around(double side, uint64_t *rng) {
  const double places[] = {0,     -0.0,       -1e-20, -4.9e-324,  -0.5 * side,
                           -side, 0.5 * side, side,   1.5 * side, 2 * side};
  double x = places[(int)(10 * unit(rng))];
  int kind = (int)(4 * unit(rng));
  if (kind == 0)
    return (8 * unit(rng) - 4) * side;
  return kind == 1 ? nextafter(x, -INFINITY) : kind == 2 ? nextafter(x, INFINITY) : x;
}

/* What was seen on the way is what a look at the points finds. */
static void check_seen(kith_context *ctx, const kith_placed *placed, bool known) {
  const kith_seen *seen = &placed->seen;
  double min[3];
  double max[3];
  kith_points_summary summary = {.min = min, .max = max};
  kith_points_summarize(ctx, &placed->points, &summary);
  assert_int_equal(seen->known, known);
  for (int c = 0; seen->known && c < 3; c++) {
    assert_true(memcmp(&seen->min[c], &min[c], sizeof *min) == 0);
    assert_true(memcmp(&seen->max[c], &max[c], sizeof *max) == 0);
  }
}

/* Points find their places in a box as the definition moves them, one by one. */
static void test_boxes_wrap(void **state) {
  enum { N = 20000 };
  (void)state;
  static const double boxes[][3] = {{1.5, 0.7, 1000}, {1, 0, 3}, {1e-3, 1e100, 1}};
  static double rows[N][3];
  kith_context *ctx = open_context();
  uint64_t rng = 11;
  for (int b = 0; b < 3; b++) {
    kith_join_options options = kith_join_options_init(1e-4);
    options.box = boxes[b];
    options.n_box = 3;
    for (int i = 0; i < N; i++)
      for (int c = 0; c < 3; c++)
        rows[i][c] = around(boxes[b][c] > 0 ? boxes[b][c] : 1, &rng);
    kith_space space;
    assert_int_equal(kith_space_make(ctx, &options, 3, &space), KITH_OK);
    kith_points points = kith_points_f64(rows[0], N, 3);
    kith_placing how = {.name = "a"};
    kith_placed placed;
    assert_int_equal(kith_space_embed(ctx, &space, &points, &how, &placed), KITH_OK);
    assert_non_null(placed.owned);
    check_seen(ctx, &placed, false); /* they were moved */
    for (int i = 0; i < N; i++) {
      assert_true(kith_lattice_wrap(&space.lattice, rows[i]));
      for (int c = 0; c < 3; c++) /* zeros may differ in sign, which no distance sees */
        assert_true(rows[i][c] == ((const double *)placed.points.data)[3 * i + c]);
    }
    kith_free(placed.owned);
    assert_int_equal(kith_space_embed(ctx, &space, &points, &how, &placed), KITH_OK);
    assert_null(placed.owned); /* rows are in the box by now */
    check_seen(ctx, &placed, true);
    rows[N - 1][0] = NAN;
    how.skip_invalid = true;
    assert_int_equal(kith_space_embed(ctx, &space, &points, &how, &placed), KITH_OK);
    check_seen(ctx, &placed, false);
    kith_free(placed.owned);
  }
  kith_context_destroy(ctx);
}

/* Points not far outside of a box may stay there, for readers to wrap as the definition does; others may not.
 */
static void test_points_wrap_later(void **state) {
  enum { N = 20000 };
  (void)state;
  static const double box[] = {1.5, 0.7, 1000};
  static double rows[N][3];
  kith_context *ctx = open_context();
  kith_join_options options = kith_join_options_init(1e-4);
  options.box = box;
  options.n_box = 3;
  kith_space space;
  assert_int_equal(kith_space_make(ctx, &options, 3, &space), KITH_OK);
  uint64_t rng = 12;
  for (int i = 0; i < N; i++)
    for (int c = 0; c < 3; c++)
      do
        rows[i][c] = around(box[c], &rng);
      while (rows[i][c] < -0.5 * box[c] || rows[i][c] > 1.5 * box[c]);
  kith_points points = kith_points_f64(rows[0], N, 3);
  kith_placing how = {.name = "a", .may_wrap_later = true};
  kith_placed placed;
  assert_int_equal(kith_space_embed(ctx, &space, &points, &how, &placed), KITH_OK);
  assert_true(placed.unwrapped && !placed.owned && placed.points.data == points.data && placed.seen.known);
  for (int i = 0; i < N; i++) {
    double x[3];
    memcpy(x, rows[i], sizeof x);
    assert_true(kith_lattice_wrap(&space.lattice, x));
    for (int c = 0; c < 3; c++) {
      assert_true(x[c] == kith_wrap_nearby(rows[i][c], box[c]));
      assert_true(x[c] >= placed.seen.min[c] && x[c] <= placed.seen.max[c]);
    }
  }
  const double kept = rows[N - 1][2];
  const double lost[] = {nextafter(1500, INFINITY), nextafter(-500, -INFINITY), NAN};
  for (int i = 0; i < 3; i++) { /* too far away, or nowhere */
    rows[N - 1][2] = lost[i];
    how.skip_invalid = true;
    assert_int_equal(kith_space_embed(ctx, &space, &points, &how, &placed), KITH_OK);
    assert_true(!placed.unwrapped && placed.owned);
    kith_free(placed.owned);
  }
  rows[N - 1][2] = kept;
  options.box = (const double[]){1.5, 0.7, 0}; /* an open axis is left alone */
  assert_int_equal(kith_space_make(ctx, &options, 3, &space), KITH_OK);
  assert_int_equal(kith_space_embed(ctx, &space, &points, &how, &placed), KITH_OK);
  assert_true(placed.unwrapped && !placed.owned && placed.seen.min[2] < 0 && placed.seen.max[2] > 1000);
  assert_true(kith_wrap_nearby(-3, kith_lattice_side(&space.lattice, 2)) == -3);
  options.box = (const double[]){1.5, 0.7, 1000, 90, 90, 60}; /* with angles they may be farther away */
  options.n_box = 6;
  rows[N - 1][2] = -1000 * KITH_WRAP_ROOM;
  assert_int_equal(kith_space_make(ctx, &options, 3, &space), KITH_OK);
  assert_int_equal(kith_space_embed(ctx, &space, &points, &how, &placed), KITH_OK);
  assert_true(placed.unwrapped && !placed.owned && placed.seen.min[2] == 0 && placed.seen.max[2] == 1000);
  rows[N - 1][2] *= 1.001;
  assert_int_equal(kith_space_embed(ctx, &space, &points, &how, &placed), KITH_OK);
  assert_true(!placed.unwrapped && placed.owned);
  kith_free(placed.owned);
  kith_context_destroy(ctx);
}

/* The n-th allocation fails, for every n: a status, and nothing is leaked. */
static void test_embedding_fails(void **state) {
  (void)state;
  kith_context *ctx = open_context();
  double xy[] = {1, 2, 3, 4, -5, 6, 0.5, 0.25};
  double radii[] = {1, 2, 3, 0};
  kith_points points = kith_points_f64(xy, 4, 2);
  for (int kind = 0; kind < 4; kind++) {
    kith_join_options options = kith_join_options_init(0.5);
    options.metric = kind == 0 ? KITH_COSINE : kind == 1 ? KITH_HAVERSINE : KITH_EUCLIDEAN;
    options.box = kind == 2 ? (double[]){4, 4} : NULL;
    options.n_box = kind == 2 ? 2 : 0;
    options.eps_of = kind == 3 ? radii : NULL;
    uint64_t pairs = 0;
    kith_status status = KITH_ERR_MEMORY;
    for (uint64_t n = 1; n <= 60; n++) {
      kith_memory_fail_nth(n);
      status = kith_join_count(ctx, &points, NULL, &options, &pairs, NULL);
      kith_memory_fail_nth(0);
      assert_true(status == KITH_OK || status == KITH_ERR_MEMORY || status == KITH_ERR_BUDGET);
      assert_int_equal(atomic_load(&ctx->memory.used), 0);
    }
    assert_int_equal(status, KITH_OK);
  }
  kith_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_degrees_are_accurate),
      cmocka_unit_test(test_degrees_turn),
      cmocka_unit_test(test_norm_bands),
      cmocka_unit_test(test_lattice_shifts),
      cmocka_unit_test(test_lattice_wraps_columns),
      cmocka_unit_test(test_lattice_wraps),
      cmocka_unit_test(test_lattice_heights),
      cmocka_unit_test(test_lattices_turn),
      cmocka_unit_test(test_boxes_wrap),
      cmocka_unit_test(test_points_wrap_later),
      cmocka_unit_test(test_embedding_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
