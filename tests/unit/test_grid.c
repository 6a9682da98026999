/* The grid and its stencil: no pair that belongs is missed, none that is taken untested does not belong, on
 * random and on hostile points. */
#include "support.h"

#include "index/grid.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the grid ---- */

enum { COLUMNS = 4, MAX_K = 8, MAX_POINTS = 140 };

/* A random grid with points that try its borders. */
typedef struct grid_case {
  uint32_t dim;
  double eps;
  double min[MAX_K], max[MAX_K], low[MAX_K], high[MAX_K];
  double least[MAX_K], most[MAX_K], slanted_low[MAX_K], slanted_high[MAX_K];
  kith_predicate predicate;
  kith_grid_spec spec;
  kith_grid grid;
  kith_stencil stencil;
  uint32_t n;
  double points[MAX_POINTS][MAX_K];
} grid_case;

static double random_scale(uint64_t *rng) {
  static const double SCALES[] = {1,     1,      1,     1e6,    1e-6,   1e30,   1e-30,
                                  1e150, 1e-150, 1e300, 1e-300, 4e-310, 4e-322, 5e307};
  return SCALES[random_below(rng, sizeof SCALES / sizeof *SCALES)];
}

/* The box: some widths are zero, some boxes lie far from the origin. */
static void random_box(grid_case *g, uint64_t *rng) {
  double scale = random_scale(rng);
  for (uint32_t d = 0; d < g->dim; d++) {
    double width = random_below(rng, 6) ? scale * random_unit(rng) : 0;
    double centre = scale * (2 * random_unit(rng) - 1) * (random_below(rng, 3) ? 1 : 1e5);
    if (!isfinite(centre))
      centre = scale;
    g->min[d] = centre - width / 2;
    g->max[d] = centre + width / 2;
    bool trim = random_below(rng, 4) == 0;
    g->low[d] = trim ? g->min[d] + width * 0.1 * random_unit(rng) : g->min[d];
    g->high[d] = trim ? g->max[d] - width * 0.1 * random_unit(rng) : g->max[d];
  }
  g->eps = random_below(rng, 8) ? scale * pow(10, 6 * random_unit(rng) - 5) : 0;
  if (!isfinite(g->eps))
    g->eps = scale;
}

/* The boxes along directions, and what coordinates add up to at most; points keep to the box of the columns. */
static void slant(grid_case *g) {
  for (uint32_t d = 0; d < g->dim; d++)
    g->spec.slanted += fmax(fabs(g->min[d]), fabs(g->max[d]));
  for (uint32_t d = 0; d < g->dim; d++) {
    kith_direction along = kith_direction_of(g->dim, d, true);
    kith_direction_bounds(&along, g->min, g->max, &g->least[d], &g->most[d]);
    kith_direction_bounds(&along, g->low, g->high, &g->slanted_low[d], &g->slanted_high[d]);
  }
  g->spec.min = g->least;
  g->spec.max = g->most;
  g->spec.low = g->slanted_low;
  g->spec.high = g->slanted_high;
}

static bool random_grid(grid_case *g, bool slanted, uint64_t *rng) {
  g->dim = slanted ? KITH_SLANT_FROM + random_below(rng, KITH_SLANT_TO - KITH_SLANT_FROM + 1)
                   : 1 + random_below(rng, COLUMNS);
  random_box(g, rng);
  g->predicate = slanted ? kith_predicate_of(KITH_NORM_1, g->eps, g->dim) : kith_predicate_make(g->eps, g->dim);
  static const double SIDES[] = {0.25, 1.0 / 3, 0.5, 0.7, 1, 2, 16, 64};
  g->spec = (kith_grid_spec){.k = 1 + random_below(rng, g->dim),
                             .row_side = SIDES[random_below(rng, 8)],
                             .x_side = pow(2, 13 * random_unit(rng) - 3),
                             .low = g->low,
                             .high = g->high,
                             .min = g->min,
                             .max = g->max,
                             .dim = g->dim};
  uint32_t turn = random_below(rng, g->dim);
  for (uint32_t j = 0; j < g->spec.k; j++)
    g->spec.dims[j] = (j + turn) % g->dim;
  if (slanted)
    slant(g);
  if (g->spec.slanted > KITH_SLANT_REACHES * g->predicate.reach)
    return false; /* such points keep their columns */
  kith_grid_make(&g->grid, &g->spec, &g->predicate);
  return kith_stencil_make(&g->stencil, &g->grid, &g->spec, &g->predicate);
}

static double into(double value, double low, double high) { return fmin(fmax(value, low), high); }

/* A few units in the last place up or down. */
static double nudge(double value, uint64_t *rng) {
  for (uint32_t steps = random_below(rng, 3); steps > 0; steps--)
    value = nextafter(value, random_below(rng, 2) ? INFINITY : -INFINITY);
  return value;
}

/* A coordinate on a border of the grid, within rounding; anywhere in dimensions that are not cut. */
static double border_value(const grid_case *g, uint32_t d, uint64_t *rng) {
  for (uint32_t j = 0; j < g->grid.k; j++)
    if (g->grid.dims[j] == d && g->grid.slanted == 0)
      return nudge(g->grid.origin[j] +
                       g->grid.side[j] * random_below(rng, g->grid.cells[j] < 9 ? g->grid.cells[j] : 9),
                   rng);
  return random_below(rng, 2) ? g->min[d] : g->max[d];
}

/* A value at about eps from another: where the invariant and the predicate are decided. */
static double eps_away(const grid_case *g, double from, uint64_t *rng) {
  double by = g->eps * (random_below(rng, 2) ? 1 : sqrt(random_unit(rng)));
  return nudge(random_below(rng, 2) ? from + by : from - by, rng);
}

static void hostile_points(grid_case *g, uint64_t *rng) {
  g->n = 0;
  while (g->n < MAX_POINTS) {
    double *point = g->points[g->n];
    const double *other = g->n ? g->points[random_below(rng, g->n)] : g->min;
    uint32_t kind = random_below(rng, 4);
    for (uint32_t d = 0; d < g->dim; d++) {
      double value = kind == 0   ? g->min[d] + (g->max[d] - g->min[d]) * random_unit(rng)
                     : kind == 1 ? border_value(g, d, rng)
                     : kind == 2 ? eps_away(g, other[d], rng)
                                 : (random_below(rng, 2) ? other[d] : eps_away(g, other[d], rng));
      point[d] = into(isnan(value) ? g->min[d] : value, g->min[d], g->max[d]);
    }
    g->n++;
  }
}

static double value_along(const grid_case *g, uint32_t j, const double *point) {
  const kith_direction *along = &g->grid.along[j];
  double value = 0;
  for (uint32_t i = 0; i < along->n; i++)
    value = kith_direction_add(along, i, value, point[along->first + i]);
  return value;
}

static void cells_of(const grid_case *g, const double *point, uint32_t *cells, uint64_t *row) {
  *row = 0;
  for (uint32_t j = 0; j < g->grid.k; j++) {
    cells[j] = kith_grid_cell(&g->grid, j, value_along(g, j, point));
    assert_true(cells[j] < g->grid.cells[j]);
    if (j > 0)
      *row += g->grid.stride[j] * cells[j];
  }
}

static bool belongs(const grid_case *g, const double *a, const double *b) {
  double size = 0;
  for (uint32_t d = 0; d < g->dim; d++)
    size = kith_norm_add(g->predicate.norm, size, a[d] - b[d]);
  return size <= g->predicate.limit;
}

static const kith_step *find_step(const kith_stencil *stencil, int64_t row) {
  for (uint32_t s = 0; s < stencil->n_steps; s++)
    if (stencil->steps[s].row == row)
      return &stencil->steps[s];
  return NULL;
}

/* Says which grid it was: assert_true alone would not. */
static void expect(bool ok, const grid_case *g, uint64_t seed, const char *what) {
  if (ok)
    return;
  fail_msg("grid %llu: %s (dim %u, k %u, eps %g, side %g, x side %g, box from %.17g to %.17g)",
           (unsigned long long)seed, what, g->dim, g->grid.k, g->eps, g->spec.row_side, g->spec.x_side,
           g->min[0], g->max[0]);
}

static void check_pair(const grid_case *g, uint32_t p, uint32_t q, uint64_t seed) {
  const double *a = g->points[p], *b = g->points[q];
  uint32_t cells_a[MAX_K], cells_b[MAX_K];
  uint64_t row_a, row_b;
  cells_of(g, a, cells_a, &row_a);
  cells_of(g, b, cells_b, &row_b);
  for (uint32_t j = 0; j < g->grid.k; j++) {
    uint32_t apart = cells_a[j] > cells_b[j] ? cells_a[j] - cells_b[j] : cells_b[j] - cells_a[j];
    bool within = g->grid.slanted > 0 ? belongs(g, a, b)
                                      : fabs(a[g->grid.dims[j]] - b[g->grid.dims[j]]) <= g->predicate.reach;
    if (within)
      expect(apart <= g->grid.reach[j], g, seed, "values within the reach are in cells too far apart");
  }
  const kith_step *step = find_step(&g->stencil, (int64_t)row_b - (int64_t)row_a);
  uint32_t x_apart = cells_a[0] > cells_b[0] ? cells_a[0] - cells_b[0] : cells_b[0] - cells_a[0];
  bool even = true; /* only pairs of even cells may be accepted untested */
  for (uint32_t j = 0; j < g->grid.k; j++)
    even &= kith_grid_is_even(&g->grid, j, cells_a[j]) && kith_grid_is_even(&g->grid, j, cells_b[j]);
  if (belongs(g, a, b))
    expect(step && x_apart <= step->x_reach, g, seed, "a pair within eps is outside the stencil");
  else if (step && even)
    expect((int64_t)x_apart > step->x_inside, g, seed, "a pair beyond eps is claimed to be inside");
}

static void check_stencil(const grid_case *g, uint64_t seed) {
  const kith_stencil *s = &g->stencil;
  expect(s->n_steps > 0 && s->n_steps <= KITH_STENCIL_MAX && s->steps[s->own].row == 0, g, seed, "no own row");
  for (uint32_t i = 1; i < s->n_steps; i++)
    expect(s->steps[i - 1].row < s->steps[i].row, g, seed, "steps are not ascending");
  for (uint32_t i = 0; i < s->n_steps; i++) { /* as often before as after, with the same reach */
    const kith_step *mirror = find_step(s, -s->steps[i].row);
    expect(mirror && mirror->x_reach == s->steps[i].x_reach && mirror->x_inside == s->steps[i].x_inside, g,
           seed, "steps are not symmetric");
  }
  expect(g->grid.key_bits <= KITH_KEY_BITS && g->grid.k >= 1 && g->grid.k <= g->spec.k, g, seed,
         "keys are too wide");
}

/* Returns how many could be made. */
static uint32_t try_grids(bool slanted) {
  static grid_case g;
  uint32_t made = 0;
  for (uint64_t seed = 0; seed < 600; seed++) {
    uint64_t rng = seed;
    if (!random_grid(&g, slanted, &rng))
      continue; /* too many steps: the caller then cuts fewer dimensions */
    made++;
    check_stencil(&g, seed);
    hostile_points(&g, &rng);
    for (uint32_t p = 0; p < g.n; p++)
      for (uint32_t q = 0; q <= p; q++)
        check_pair(&g, p, q, seed);
  }
  return made;
}

static void test_grid(void **state) {
  (void)state;
  assert_true(try_grids(false) > 500);
}

static void test_slanted_grid(void **state) {
  (void)state;
  assert_true(try_grids(true) > 200);
}

/* ---- a grid that wraps around a periodic box ---- */

/* A box of which some axes are periodic, with eps up to half of the shortest. */
static bool random_wrapping_grid(grid_case *g, double *period, uint64_t *rng) {
  static const double SIDES[] = {0.25, 0.5, 1, 1, 2, 16};
  double sum = 0, shortest = INFINITY;
  g->dim = 1 + random_below(rng, COLUMNS);
  for (uint32_t d = 0; d < g->dim; d++) {
    g->min[d] = g->low[d] = 0;
    g->max[d] = g->high[d] = 0.5 + random_unit(rng);
    period[d] = d == 0 || random_below(rng, 4) ? g->max[d] : 0;
    sum += period[d];
    shortest = period[d] > 0 ? fmin(shortest, period[d]) : shortest;
  }
  g->eps = shortest / 2 * (random_below(rng, 4) ? pow(10, -2 * random_unit(rng)) : 1);
  g->predicate = kith_predicate_make(g->eps, g->dim);
  g->predicate.reach += 0x1p-48 * sum;
  g->spec = (kith_grid_spec){.k = g->dim,
                             .row_side = SIDES[random_below(rng, 6)],
                             .x_side = pow(2, 6 * random_unit(rng) - 3),
                             .low = g->low,
                             .high = g->high,
                             .min = g->min,
                             .max = g->max,
                             .period = period,
                             .dim = g->dim};
  uint32_t turn = random_below(rng, g->dim);
  for (uint32_t j = 0; j < g->dim; j++)
    g->spec.dims[j] = (j + turn) % g->dim;
  kith_grid_make(&g->grid, &g->spec, &g->predicate);
  return kith_stencil_make(&g->stencil, &g->grid, &g->spec, &g->predicate);
}

static const kith_step *find_step_to(const grid_case *g, const int64_t *offset) {
  for (uint32_t s = 0; s < g->stencil.n_steps; s++) {
    bool same = true;
    for (uint32_t j = 1; j < g->grid.k; j++)
      same &= g->stencil.steps[s].offset[j] == offset[j];
    if (same)
      return &g->stencil.steps[s];
  }
  return NULL;
}

/* One image of b: turned by whole periods. */
static void check_image(const grid_case *g, const double *period, const double *a, const double *b,
                        const int *turns, uint64_t seed) {
  int64_t offset[MAX_K] = {0};
  double t[MAX_K];
  double d2 = 0;
  for (uint32_t d = 0; d < g->dim; d++) {
    t[d] = (a[d] - b[d]) - turns[d] * period[d];
    d2 += t[d] * t[d];
  }
  for (uint32_t j = 0; j < g->grid.k; j++) {
    uint32_t d = g->grid.dims[j];
    offset[j] = (int64_t)kith_grid_cell(&g->grid, j, b[d]) + turns[d] * (int64_t)g->grid.cells[j] -
                (int64_t)kith_grid_cell(&g->grid, j, a[d]);
    if (fabs(t[d]) <= g->eps)
      expect(llabs(offset[j]) <= g->grid.reach[j], g, seed, "images within eps are in cells too far apart");
  }
  const kith_step *step = find_step_to(g, offset);
  if (d2 <= g->predicate.limit)
    expect(step && llabs(offset[0]) <= step->x_reach, g, seed, "an image within eps is outside the stencil");
  else if (step)
    expect(llabs(offset[0]) > step->x_inside, g, seed, "an image beyond eps is claimed to be inside");
}

static void check_images(const grid_case *g, const double *period, const double *a, const double *b,
                         uint64_t seed) {
  int turns[MAX_K];
  for (uint32_t number = 0; number < 81; number++) {
    bool periodic = true;
    for (uint32_t d = 0, rest = number; d < MAX_K; d++, rest /= 3) {
      turns[d] = (int)(rest % 3) - 1;
      periodic &= turns[d] == 0 || (d < g->dim && period[d] > 0);
    }
    if (periodic)
      check_image(g, period, a, b, turns, seed);
  }
}

static void test_wrapping_grid(void **state) {
  (void)state;
  static grid_case g;
  uint32_t made = 0;
  for (uint64_t seed = 0; seed < 300; seed++) {
    uint64_t rng = seed;
    double period[MAX_K];
    if (!random_wrapping_grid(&g, period, &rng))
      continue;
    made++;
    check_stencil(&g, seed);
    hostile_points(&g, &rng);
    for (uint32_t p = 0; p < g.n; p++)
      for (uint32_t d = 0; d < g.dim; d++) /* a period away is the same place */
        g.points[p][d] = period[d] > 0 && g.points[p][d] >= period[d] ? 0 : g.points[p][d];
    for (uint32_t p = 0; p < g.n; p += 2)
      for (uint32_t q = 0; q < g.n; q += 3)
        check_images(&g, period, g.points[p], g.points[q], seed);
  }
  assert_true(made > 200);
}

/* Float32 numbers next to the ends of all cells of a period, in both dimensions of the points. */
static void floats_at_cells(grid_case *g, const double *period, uint64_t *rng) {
  g->n = 0;
  for (uint32_t cell = 0; cell <= g->grid.cells[1]; cell++)
    for (int step = -2; step <= 2 && g->n < MAX_POINTS; step++) {
      float x = (float)(cell * g->grid.side[1]);
      for (int i = 0; i < abs(step); i++)
        x = nextafterf(x, step < 0 ? -INFINITY : INFINITY);
      bool within = x >= 0 && (double)x < period[1];
      g->points[g->n][0] = (float)(random_unit(rng) * 1e-9);
      g->points[g->n][1] = within ? (double)x : 0;
      g->n++;
    }
}

/* Where eps is a whole part of the period, or nearly so, float32 points have cells of that side. */
static void test_wrapping_grid_of_floats(void **state) {
  (void)state;
  static grid_case g;
  uint32_t exact = 0, near = 0;
  for (uint64_t seed = 0; seed < 120; seed++) {
    uint64_t rng = seed;
    double period[MAX_K] = {0};
    double parts = 2 + random_below(&rng, 12);
    double larger = random_below(&rng, 2) ? pow(10, 4 * random_unit(&rng) - 9) : 0;
    g = (grid_case){.dim = 2, .eps = 0};
    for (uint32_t d = 0; d < 2; d++) {
      period[d] = random_below(&rng, 2) ? 1 + random_below(&rng, 20) : 0.5 + random_unit(&rng);
      g.max[d] = g.high[d] = period[d];
    }
    g.eps = period[1] / parts * (1 + larger);
    g.predicate = kith_predicate_make(g.eps, 2);
    g.predicate.reach += 0x1p-48 * (period[0] + period[1]);
    g.spec = (kith_grid_spec){.k = 2,
                              .dims = {0, 1},
                              .row_side = random_below(&rng, 3) ? 1 : 0.5,
                              .x_side = 1,
                              .low = g.low,
                              .high = g.high,
                              .min = g.min,
                              .max = g.max,
                              .period = period,
                              .floats = true,
                              .dim = 2};
    kith_grid_make(&g.grid, &g.spec, &g.predicate);
    assert_true(kith_stencil_make(&g.stencil, &g.grid, &g.spec, &g.predicate));
    bool as_wanted = g.grid.cells[1] == (uint32_t)(parts / g.spec.row_side);
    exact += larger == 0 && as_wanted;
    near += larger > 0 && as_wanted;
    floats_at_cells(&g, period, &rng);
    for (uint32_t p = 0; p < g.n; p++)
      for (uint32_t q = 0; q < g.n; q++)
        check_images(&g, period, g.points[p], g.points[q], seed);
  }
  assert_true(exact > 45 && near > 0 && near < 45);
}

/* "Inside" is worth having: dense data must find some of it, else the test above proves nothing. */
static void test_inside_exists(void **state) {
  (void)state;
  static kith_stencil stencil;
  const double min[2] = {0, 0}, max[2] = {1, 1};
  kith_predicate predicate = kith_predicate_make(0.1, 2);
  kith_grid_spec spec = {.k = 2, .dims = {0, 1}, .row_side = 0.25, .x_side = 0.125, .dim = 2};
  spec.low = spec.min = min;
  spec.high = spec.max = max;
  kith_grid grid;
  kith_grid_make(&grid, &spec, &predicate);
  assert_true(kith_stencil_make(&stencil, &grid, &spec, &predicate));
  assert_true(stencil.steps[stencil.own].x_inside >= 4);
  assert_int_equal(stencil.steps[0].x_inside, -1);
  assert_int_equal(stencil.n_steps, 9); /* 4 rows of cells either way, and the own one */
}

/* Four directions: cells across which sizes are twice their side, and what lies beside them. */
static void test_slanted_inside_exists(void **state) {
  (void)state;
  static kith_stencil stencil;
  const double min[4] = {-2, -2, -2, -2}, max[4] = {4, 4, 4, 4};
  kith_predicate predicate = kith_predicate_of(KITH_NORM_1, 0.1, 4);
  kith_grid_spec spec = {
      .k = 4, .dims = {0, 1, 2, 3}, .row_side = 0.25, .x_side = 0.125, .slanted = 4, .dim = 4};
  spec.low = spec.min = min;
  spec.high = spec.max = max;
  kith_grid grid;
  kith_grid_make(&grid, &spec, &predicate);
  assert_true(kith_stencil_make(&stencil, &grid, &spec, &predicate));
  assert_true(stencil.steps[stencil.own].x_inside >= 6);
  assert_int_equal(stencil.n_steps, 9 * 9 * 9); /* a cube: nothing of it is too far away */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_grid),
      cmocka_unit_test(test_wrapping_grid),
      cmocka_unit_test(test_wrapping_grid_of_floats),
      cmocka_unit_test(test_inside_exists),
      cmocka_unit_test(test_slanted_grid),
      cmocka_unit_test(test_slanted_inside_exists),
  };
  return cmocka_run_group_tests_name("grid", tests, NULL, NULL);
}
