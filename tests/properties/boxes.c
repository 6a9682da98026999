/* Boxes without angles, of two to a hundred eps, in which tiles meet what is near them around the box: the
 * answers are those of a plain loop that folds differences. */
#include "support.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_DIMS = 9 };

typedef struct boxed {
  cloud a, b;    /* b: of no points if a is joined with itself */
  double *radii; /* of the points of a; NULL: all have eps */
  double box[MOST_DIMS];
  double eps;
} boxed;

/* ---- the plain loop ---- */

static double folded(double t, double side) {
  t = fabs(t);
  return side > 0 && side - t < t ? side - t : t;
}

/* Coordinate d of a point, in the box. */
static double placed(const boxed *j, const cloud *c, uint64_t i, uint32_t d) {
  double x = cloud_get(c, i, d);
  double side = j->box[d];
  if (side == 0 || (x >= 0 && x < side))
    return x;
  x -= floor(x / side) * side;
  x -= x >= side ? side : 0;
  return x < 0 ? 0 : x;
}

static bool belongs(const boxed *j, const cloud *b, uint64_t p, uint64_t q) {
  double radius = j->radii ? j->radii[p] : j->eps;
  double size = 0;
  for (uint32_t d = 0; d < j->a.points.dim; d++) {
    double t = folded(placed(j, &j->a, p, d) - placed(j, b, q, d), j->box[d]);
    size += t * t;
  }
  return size <= radius * radius;
}

/* Whether a table by id holds what the plain loop finds. */
static bool is_right(const boxed *j, const cloud *b, const kith_table *table) {
  bool same = table->n_rows == j->a.points.n;
  uint64_t at = 0;
  for (uint64_t p = 0; same && p < table->n_rows; p++) {
    same = table->offsets[p] == at;
    for (uint64_t q = 0; same && q < b->points.n; q++)
      if ((b != &j->a || p != q) && belongs(j, b, p, q))
        same = at < table->n_pairs && table->neighbors[at++] == q;
  }
  return same && at == table->n_pairs;
}

/* ---- points ---- */

/* In the box, or in [0, 1) along open axes; or where it is. */
static void put(cloud *c, const double *box, uint64_t i, uint32_t d, double x, bool wraps) {
  double side = box[d] > 0 ? box[d] : 1;
  x -= wraps ? floor(x / side) * side : 0;
  cloud_set(c, i, d, x);
  double lower = side * (1 - 0x1p-23);
  if (wraps && cloud_get(c, i, d) >= side)
    cloud_set(c, i, d, lower);
}

/* Half of them anywhere, or near the faces; each of the others as far from one of those as eps, up to the last
 * digits. */
static cloud random_points(const boxed *j, uint64_t n, uint32_t dim, kith_dtype dtype, uint64_t *rng) {
  cloud c = cloud_new(n, dim, dtype);
  bool wraps = random_below(rng, 4) > 0;
  for (uint64_t i = 0; i < n; i++) {
    bool near_face = random_below(rng, 3) == 0;
    double direction[MOST_DIMS];
    double square = 0;
    for (uint32_t d = 0; d < dim; d++) {
      direction[d] = random_below(rng, 3) ? random_unit(rng) - 0.5 : 0;
      square += direction[d] * direction[d];
    }
    double length = j->eps * (1 + 0x1p-24 * ((double)random_below(rng, 5) - 2)) / sqrt(square + 0x1p-200);
    for (uint32_t d = 0; d < dim; d++) {
      double side = j->box[d] > 0 ? j->box[d] : 1;
      double anywhere = near_face ? j->eps * (random_unit(rng) - 0.5) : side * random_unit(rng);
      bool follows = i % 2 && square > 0;
      put(&c, j->box, i, d, follows ? cloud_get(&c, i - 1, d) + length * direction[d] : anywhere, wraps);
    }
  }
  return c;
}

/* Sides of few eps, at and around those where an eighth of a side, or half of it, is eps. */
static double random_side(double eps, uint64_t *rng) {
  static const double RATIOS[] = {2.001, 2.01, 2.5, 3,  4,  5,  7.9, 8,    8.06, 8.1, 9,
                                  10,    10,   12,  16, 24, 40, 80,  95.9, 96.1, 100};
  double ratio = RATIOS[random_below(rng, sizeof RATIOS / sizeof *RATIOS)];
  double side = eps * ratio * (random_below(rng, 2) ? 1 + 0.01 * random_unit(rng) : 1);
  return random_below(rng, 2) ? (double)(float)side : side;
}

static boxed random_boxed(unsigned number, uint64_t *rng) {
  boxed j = {.eps = 0.01 + random_unit(rng)};
  uint32_t dim = 1 + (uint32_t)random_below(rng, number % 5 ? 6 : 9);
  for (uint32_t d = 0, periodic = 0; d < dim; d++) {
    bool open = periodic == 8 || random_below(rng, 5) == 0;
    j.box[d] = open && d > 0 ? 0 : random_side(j.eps, rng);
    periodic += j.box[d] > 0;
  }
  kith_dtype dtype = number % 2 ? KITH_F64 : KITH_F32;
  uint64_t n = number % 40 == 0 ? 4000 : 100 + random_below(rng, 400);
  j.a = random_points(&j, n, dim, dtype, rng);
  j.b = random_points(&j, number % 4 == 3 ? 200 : 0, dim, dtype, rng);
  if (number % 5 != 2)
    return j;
  j.radii = malloc(n * sizeof *j.radii);
  for (uint64_t i = 0; j.radii && i < n; i++) /* small ones in boxes of many of them */
    j.radii[i] = j.eps * (random_below(rng, 8) ? pow(10, -3 * random_unit(rng)) : 1);
  return j;
}

/* ---- joins ---- */

static void check_boxed(kith_context *ctx, const boxed *j, kith_join_options options, unsigned number) {
  const cloud *b = j->b.points.n > 0 ? &j->b : &j->a;
  const kith_points *second = j->b.points.n > 0 ? &j->b.points : NULL;
  kith_table *table = table_of(ctx, &j->a.points, second, options);
  uint64_t pairs = 0;
  CHECK(is_right(j, b, table), "box %u: table (dim %u, n %" PRIu64 ", eps %.17g, k %u, isa %s)", number,
        j->a.points.dim, j->a.points.n, j->eps, options.index_dims, kith_isa(ctx));
  CHECK(kith_join_count(ctx, &j->a.points, second, &options, &pairs, NULL) == KITH_OK &&
            pairs == table->n_pairs,
        "box %u: count", number);
  options.distances = 1;
  kith_table *measured = table_of(ctx, &j->a.points, second, options);
  CHECK(is_right(j, b, measured), "box %u: distances", number);
  options.distances = 0;
  options.half = !second;
  CHECK(kith_join_count(ctx, &j->a.points, second, &options, &pairs, NULL) == KITH_OK &&
            (j->radii || pairs == table->n_pairs / (second ? 1 : 2)),
        "box %u: half", number);
  kith_table_destroy(table);
  kith_table_destroy(measured);
}

void test_boxes(void) {
  enum { BOXES = 600 };
  static const char *const ISAS[] = {"scalar", "avx2", "avx512"};
  kith_context *contexts[3];
  for (uint32_t m = 0; m < 3; m++)
    contexts[m] = context_new(ISAS[m], m + 1, 64 << 20);
  for (unsigned number = 0; number < BOXES; number++) {
    uint64_t rng = number;
    boxed j = random_boxed(number, &rng);
    uint32_t dim = j.a.points.dim;
    kith_join_options options = kith_join_options_init(j.eps);
    options.eps_of = j.radii;
    options.box = j.box;
    options.n_box = dim;
    options.index_dims = random_below(&rng, 2) ? 0 : 1 + (uint32_t)random_below(&rng, dim < 4 ? dim : 4);
    options.cell_side = random_below(&rng, 4) ? 0 : 0.5;
    kith_context *ctx = contexts[number % 3] ? contexts[number % 3] : contexts[0];
    check_boxed(ctx, &j, options, number);
    cloud_free(&j.a);
    cloud_free(&j.b);
    free(j.radii);
  }
  for (int m = 0; m < 3; m++)
    kith_context_destroy(contexts[m]);
}
