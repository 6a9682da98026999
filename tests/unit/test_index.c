/* The sort, the grid, the index, the predicate, the memory budget, the threads and the choice of a grid: each
 * against the promise that its header makes, on random and on hostile data. */
#include "support.h"

#include "base/team.h"
#include "index/index.h"
#include "index/sort.h"
#include "plan/plan.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kith_context *ctx;

static int setup(void **state) {
  (void)state;
  ctx = open_context(3);
  return 0;
}

/* Every test gives back what it took. */
static int teardown(void **state) {
  (void)state;
  int leaked = kith_memory_left(&ctx->memory) != ctx->memory.limit;
  kith_context_destroy(ctx);
  return leaked;
}

/* ---- the sort ---- */

/* Which items to sort: their keys stand in bits [low, low + bits), below them the place they came from, which
 * must ascend among equal keys, and above them noise, which must not matter. */
typedef struct sort_case {
  uint64_t n;
  uint32_t low, bits;
  uint32_t distinct; /* keys; 0: as many as items */
  uint32_t narrow;   /* keys use only so many of their bits (0: all), so that one bucket holds everything */
} sort_case;

static uint64_t low_bits(uint32_t bits) { return bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX; }

static void make_items(const sort_case *s, uint64_t *items, uint64_t *keys) {
  uint64_t rng = s->n + s->bits;
  for (uint64_t i = 0; i < s->n; i++) {
    uint64_t seed = s->distinct ? random_below(&rng, s->distinct) : i;
    keys[i] = random_bits(&seed) & low_bits(s->narrow ? s->narrow : s->bits);
    uint64_t noise = s->low + s->bits < 64 ? random_bits(&rng) << (s->low + s->bits) : 0;
    items[i] = noise | keys[i] << s->low | i;
  }
}

static void check_sort(kith_context *on, const sort_case *s) {
  uint64_t n = s->n;
  uint64_t *items = malloc((n + 1) * sizeof *items), *sorted = malloc((n + 1) * sizeof *sorted);
  uint64_t *keys = malloc((n + 1) * sizeof *keys);
  uint32_t *counts = malloc(kith_sort_counts(on) * sizeof *counts);
  uint8_t *seen = calloc(n + 1, 1);
  make_items(s, items, keys);
  kith_sort(on, items, sorted, n, s->low, s->bits, counts);
  uint64_t last_key = 0, last_place = 0, wrong = 0;
  for (uint64_t i = 0; i < n; i++) {
    uint64_t place = sorted[i] & low_bits(s->low), key = sorted[i] >> s->low & low_bits(s->bits);
    assert_true(place < n);
    wrong += seen[place]++ || key != keys[place];
    wrong += i > 0 && (key < last_key || (key == last_key && place < last_place));
    last_key = key;
    last_place = place;
  }
  assert_int_equal(wrong, 0);
  free(seen);
  free(counts);
  free(keys);
  free(sorted);
  free(items);
}

static void test_sort(void **state) {
  (void)state;
  static const uint32_t BITS[] = {0, 1, 5, 10, 11, 12, 17, 22, 23, 31, 32};
  static const uint64_t SIZES[] = {0, 1, 2, 3, 24, 25, 100, 5000};
  static const uint32_t DISTINCT[] = {0, 7, 1}; /* many equal keys try the stability */
  for (uint32_t threads = 1; threads <= 9; threads += 4) {
    kith_context *on = open_context(threads);
    for (size_t b = 0; b < sizeof BITS / sizeof *BITS; b++)
      for (size_t n = 0; n < sizeof SIZES / sizeof *SIZES; n++)
        for (size_t d = 0; d < 3; d++) {
          check_sort(on, &(sort_case){SIZES[n], 32, BITS[b], DISTINCT[d], 0});
          check_sort(on, &(sort_case){SIZES[n], 13, BITS[b], DISTINCT[d], BITS[b] / 2});
        }
    check_sort(on, &(sort_case){3000, 13, 51, 0, 0}); /* up to the last bit */
    kith_context_destroy(on);
  }
}

/* Enough for buckets that all threads sort together. */
static void test_sort_large(void **state) {
  (void)state;
  for (uint32_t threads = 1; threads <= 5; threads += 2) {
    kith_context *on = open_context(threads);
    check_sort(on, &(sort_case){300000, 32, 32, 0, 0});
    check_sort(on, &(sort_case){300000, 32, 32, 0, 20});
    check_sort(on, &(sort_case){300000, 32, 32, 1000, 25});
    check_sort(on, &(sort_case){300000, 20, 30, 3, 12});
    kith_context_destroy(on);
  }
}

/* ---- the grid ---- */

enum { MAX_K = 4, MAX_POINTS = 90 };

/* A random grid with points that try its borders. */
typedef struct grid_case {
  uint32_t dim;
  double eps;
  double min[MAX_K], max[MAX_K], low[MAX_K], high[MAX_K];
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

static bool random_grid(grid_case *g, uint64_t *rng) {
  g->dim = 1 + random_below(rng, MAX_K);
  random_box(g, rng);
  g->predicate = kith_predicate_make(g->eps, g->dim);
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
    if (g->grid.dims[j] == d)
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

static void cells_of(const grid_case *g, const double *point, uint32_t *cells, uint64_t *row) {
  *row = 0;
  for (uint32_t j = 0; j < g->grid.k; j++) {
    cells[j] = kith_grid_cell(&g->grid, j, point[g->grid.dims[j]]);
    assert_true(cells[j] < g->grid.cells[j]);
    if (j > 0)
      *row += g->grid.stride[j] * cells[j];
  }
}

static bool belongs(const grid_case *g, const double *a, const double *b) {
  double d2 = 0;
  for (uint32_t d = 0; d < g->dim; d++) {
    double t = a[d] - b[d];
    d2 += t * t;
  }
  return d2 <= g->predicate.limit;
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
    if (fabs(a[g->grid.dims[j]] - b[g->grid.dims[j]]) <= g->predicate.reach)
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

static void test_grid(void **state) {
  (void)state;
  static grid_case g;
  uint32_t made = 0;
  for (uint64_t seed = 0; seed < 600; seed++) {
    uint64_t rng = seed;
    if (!random_grid(&g, &rng))
      continue; /* too many steps: the caller then cuts fewer dimensions */
    made++;
    check_stencil(&g, seed);
    hostile_points(&g, &rng);
    for (uint32_t p = 0; p < g.n; p++)
      for (uint32_t q = 0; q <= p; q++)
        check_pair(&g, p, q, seed);
  }
  assert_true(made > 500);
}

/* ---- a grid that wraps around a periodic box ---- */

/* A box of which some axes are periodic, with eps up to half of the shortest. */
static bool random_wrapping_grid(grid_case *g, double *period, uint64_t *rng) {
  static const double SIDES[] = {0.25, 0.5, 1, 1, 2, 16};
  double sum = 0, shortest = INFINITY;
  g->dim = 1 + random_below(rng, MAX_K);
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

/* ---- the index ---- */

typedef struct point_set {
  kith_points view;
  void *memory;
  double min[8], max[8];
  uint64_t invalid;
} point_set;

static point_set make_set(uint64_t n, uint32_t dim, kith_dtype dtype, bool holes, uint64_t seed) {
  point_set s = {.memory = malloc((n * dim + 1) * sizeof(double))};
  for (uint32_t c = 0; c < dim; c++) {
    s.min[c] = INFINITY;
    s.max[c] = -INFINITY;
  }
  for (uint64_t i = 0; i < n; i++) {
    bool hole = holes && random_below(&seed, 10) == 0;
    s.invalid += hole;
    for (uint32_t c = 0; c < dim; c++) {
      float value = (float)(random_unit(&seed) * random_unit(&seed));
      if (hole)
        value = c == dim - 1 ? NAN : value;
      else {
        s.min[c] = fmin(s.min[c], (double)value);
        s.max[c] = fmax(s.max[c], (double)value);
      }
      if (dtype == KITH_F32)
        ((float *)s.memory)[i * dim + c] = value;
      else
        ((double *)s.memory)[i * dim + c] = (double)value;
    }
  }
  for (uint32_t c = 0; c < dim; c++)
    if (s.min[c] > s.max[c])
      s.min[c] = s.max[c] = 0;
  s.view = dtype == KITH_F32 ? kith_points_f32(s.memory, n, dim) : kith_points_f64(s.memory, n, dim);
  return s;
}

static kith_grid make_grid(const point_set *s, uint32_t k, double eps, double side) {
  kith_predicate predicate = kith_predicate_make(eps, s->view.dim);
  kith_grid_spec spec = {.k = k, .row_side = side, .x_side = side, .dim = s->view.dim};
  for (uint32_t j = 0; j < k; j++)
    spec.dims[j] = k - 1 - j;
  spec.low = spec.min = s->min;
  spec.high = spec.max = s->max;
  kith_grid grid;
  kith_grid_make(&grid, &spec, &predicate);
  return grid;
}

static uint64_t key_of(const kith_grid *grid, const double *point) {
  uint64_t row = 0;
  for (uint32_t j = 1; j < grid->k; j++)
    row += grid->stride[j] * kith_grid_cell(grid, j, point[grid->dims[j]]);
  return row << grid->x_bits | kith_grid_cell(grid, 0, point[grid->dims[0]]);
}

static double index_value(const kith_index *index, uint32_t c, uint32_t position) {
  uint64_t at = c * index->stride + position;
  return index->dtype == KITH_F32 ? (double)((float *)index->coords)[at] : ((double *)index->coords)[at];
}

/* Positions hold every valid row once, with its coordinates. */
static void check_positions(const kith_index *index, const point_set *s) {
  assert_int_equal(index->n, s->view.n - s->invalid);
  uint8_t *seen = calloc(s->view.n + 1, 1);
  for (uint32_t p = 0; p < index->n; p++) {
    uint32_t id = index->ids[p];
    assert_true(id < s->view.n && !seen[id]);
    seen[id] = 1;
    for (uint32_t c = 0; c < index->dim; c++)
      assert_true(index_value(index, c, p) == kith_points_get(&s->view, id, c));
  }
  free(seen);
  for (uint32_t c = 0; c < index->dim; c++) /* kernels load beyond the end: it must be there, and be calm */
    for (uint64_t p = index->n; p < index->stride; p++)
      assert_true(isfinite(index_value(index, c, (uint32_t)p)));
}

static void check_cell(const kith_index *index, uint32_t row, uint32_t cell) {
  uint64_t key = index->row_number[row] << index->grid->x_bits | index->cell_x[cell];
  uint32_t begin = index->cell_start[cell], end = index->cell_start[cell + 1];
  assert_true(begin < end); /* only cells that hold something are listed */
  for (uint32_t p = begin; p < end; p++) {
    double point[8];
    for (uint32_t c = 0; c < index->dim; c++)
      point[c] = index_value(index, c, p);
    assert_int_equal(key_of(index->grid, point), key);
    assert_true(!index->ids || p == begin || index->ids[p - 1] < index->ids[p]);
    assert_int_equal(kith_index_cell_at(index, p), cell);
  }
  assert_int_equal(kith_index_row_at(index, cell), row);
}

static void check_directory(const kith_index *index) {
  assert_int_equal(index->cell_start[index->n_cells], index->n);
  assert_int_equal(index->row_cell[index->n_rows], index->n_cells);
  assert_int_equal(index->n == 0, index->n_cells == 0);
  for (uint32_t row = 0; row < index->n_rows; row++) {
    assert_true(row == 0 || index->row_number[row - 1] < index->row_number[row]);
    assert_true(index->row_cell[row] < index->row_cell[row + 1]);
    for (uint32_t cell = index->row_cell[row]; cell < index->row_cell[row + 1]; cell++) {
      assert_true(cell == index->row_cell[row] || index->cell_x[cell - 1] < index->cell_x[cell]);
      check_cell(index, row, cell);
    }
  }
}

/* An index that was brought here, array by array, is as good as the one that was built. */
static void check_brought(const point_set *s, const kith_index *built) {
  kith_index index = {.grid = built->grid,
                      .dtype = built->dtype,
                      .dim = built->dim,
                      .n = built->n,
                      .id_end = built->id_end,
                      .n_cells = built->n_cells,
                      .n_rows = built->n_rows};
  assert_int_equal(kith_index_allocate(ctx, &index), KITH_OK);
  uint64_t width = index.dtype == KITH_F32 ? sizeof(float) : sizeof(double);
  assert_int_equal(index.stride, built->stride);
  for (uint64_t c = 0; c < index.dim; c++)
    memcpy((char *)index.coords + c * index.stride * width,
           (const char *)built->coords + c * built->stride * width, index.n * width);
  memcpy(index.ids, built->ids, index.n * sizeof *index.ids);
  memcpy(index.cell_x, built->cell_x, index.n_cells * sizeof *index.cell_x);
  memcpy(index.cell_start, built->cell_start, index.n_cells * sizeof *index.cell_start);
  memcpy(index.row_number, built->row_number, index.n_rows * sizeof *index.row_number);
  memcpy(index.row_cell, built->row_cell, index.n_rows * sizeof *index.row_cell);
  assert_int_equal(kith_index_complete(ctx, &index), KITH_OK);
  check_positions(&index, s);
  check_directory(&index);
  assert_int_equal(index.n_crowds, built->n_crowds);
  kith_index_destroy(&index);
}

static void check_index(const point_set *s, const kith_grid *grid, kith_dtype dtype) {
  kith_index index;
  kith_call_begin(ctx);
  assert_int_equal(kith_index_build(ctx, &s->view, grid, s->invalid, dtype, &index), KITH_OK);
  check_positions(&index, s);
  check_directory(&index);
  check_brought(s, &index);
  kith_index_destroy(&index);
  assert_int_equal(kith_memory_left(&ctx->memory), ctx->memory.limit);
}

static void test_index(void **state) {
  (void)state;
  static const uint64_t SIZES[] = {0, 1, 2, 63, 64, 65, 1000, 3000};
  for (size_t size = 0; size < sizeof SIZES / sizeof *SIZES; size++)
    for (uint32_t dim = 1; dim <= 4; dim++)
      for (int variant = 0; variant < 4; variant++) {
        kith_dtype dtype = variant & 1 ? KITH_F64 : KITH_F32;
        point_set s = make_set(SIZES[size], dim, dtype, variant & 2, SIZES[size] + dim);
        kith_grid grid = make_grid(&s, dim, 0.05, variant & 1 ? 1 : 0.25);
        check_index(&s, &grid, dtype);
        if (dtype == KITH_F32)
          check_index(&s, &grid, KITH_F64);
        free(s.memory);
      }
}

static int compare_floats(const void *a, const void *b) {
  float x = *(const float *)a;
  float y = *(const float *)b;
  return (x > y) - (x < y);
}

/* The index for counting holds the valid values in ascending order, and takes at most three times their memory.
 */
static void test_index_of_values(void **state) {
  (void)state;
  static const uint64_t SIZES[] = {0, 1, 2, 65, 1000, 40000};
  for (size_t size = 0; size < 2 * sizeof SIZES / sizeof *SIZES; size++) {
    point_set s = make_set(SIZES[size / 2], 1, KITH_F32, size % 2, size);
    float *values = s.memory;
    for (uint64_t i = 0; i < s.view.n; i++) /* both signs, zeros of both kinds, and many equal ones */
      values[i] = i % 3 ? values[i] : i % 2 ? -values[i] : i % 4 ? -0.0F : 0.0F;
    s.min[0] = -s.max[0];
    s.invalid = 0;
    float *want = malloc((s.view.n + 1) * sizeof *want);
    uint64_t n = 0;
    for (uint64_t i = 0; i < s.view.n; i++)
      if (isfinite(values[i]))
        want[n++] = values[i];
      else
        s.invalid++;
    qsort(want, n, sizeof *want, compare_floats);
    kith_grid grid = make_grid(&s, 1, 0.001, 1);
    kith_index index;
    kith_call_begin(ctx);
    assert_int_equal(kith_index_build_values(ctx, &s.view, &grid, s.invalid, &index), KITH_OK);
    assert_int_equal(index.n, n);
    for (uint32_t p = 0; p < index.n; p++)
      assert_true(index_value(&index, 0, p) == (double)want[p]);
    check_directory(&index);
    assert_true(kith_peak_bytes(ctx) <= 12 * n + 4 * kith_sort_counts(ctx) + (8 << 10));
    kith_index_destroy(&index);
    assert_int_equal(kith_memory_left(&ctx->memory), ctx->memory.limit);
    free(want);
    free(s.memory);
  }
}

/* Every cell of KITH_CROWD points is listed, with the box around its points. */
static void test_crowds(void **state) {
  (void)state;
  for (int variant = 0; variant < 4; variant++) {
    point_set s = make_set(12000, 2, variant % 2 ? KITH_F64 : KITH_F32, false, 9);
    kith_grid grid = make_grid(&s, 2, variant < 2 ? 0.2 : 0.01, 1);
    kith_index index;
    kith_call_begin(ctx);
    assert_int_equal(kith_index_build(ctx, &s.view, &grid, 0, s.view.dtype, &index), KITH_OK);
    uint32_t n = 0;
    for (uint32_t cell = 0; cell < index.n_cells; cell++) {
      uint32_t begin = index.cell_start[cell], end = index.cell_start[cell + 1];
      if (end - begin < KITH_CROWD)
        continue;
      assert_true(n < index.n_crowds && index.crowds[n].begin == begin && index.crowds[n].end == end);
      for (uint32_t c = 0; c < 2; c++) {
        double low = INFINITY, high = -INFINITY;
        for (uint32_t p = begin; p < end; p++) {
          low = fmin(low, index_value(&index, c, p));
          high = fmax(high, index_value(&index, c, p));
        }
        assert_true(index.crowd_box[n * 4 + c] == low && index.crowd_box[n * 4 + 2 + c] == high);
      }
      n++;
    }
    assert_int_equal(n, index.n_crowds);
    assert_int_equal(n > 0, variant < 2);
    kith_index_destroy(&index);
    free(s.memory);
  }
}

static void test_wide_keys(void **state) {
  (void)state;
  point_set s = make_set(4000, 3, KITH_F32, true, 9);
  memcpy((float *)s.memory + 3 * 100, (float *)s.memory + 3 * 7, 12); /* some cells shall hold two */
  for (double eps = 1e-3; eps > 1e-12; eps /= 7) {
    kith_grid grid = make_grid(&s, 3, eps, 1);
    check_index(&s, &grid, KITH_F32);
  }
  kith_grid widest = make_grid(&s, 2, 1e-9, 1);
  assert_true(widest.k == 2 && widest.key_bits > 56);
  check_index(&s, &widest, KITH_F64);
  kith_grid dropped = make_grid(&s, 3, 1e-9, 1); /* 90 bits are too many: one dimension fewer */
  assert_true(dropped.k == 2 && dropped.key_bits <= KITH_KEY_BITS);
  free(s.memory);
}

static void test_index_memory(void **state) {
  (void)state;
  point_set s = make_set(20000, 2, KITH_F32, false, 3);
  kith_grid grid = make_grid(&s, 2, 1e-6, 1); /* nearly every point in a cell and a row of its own */
  kith_index index;
  kith_call_begin(ctx);
  assert_int_equal(kith_index_build(ctx, &s.view, &grid, 0, KITH_F32, &index), KITH_OK);
  uint64_t slack = 4 * kith_sort_counts(ctx) + (8 << 10);          /* the sort's counters, and roundings */
  uint64_t most = s.view.n * (2 * sizeof(float) + 4 + 8 + 8 + 12); /* what index.h says, per point */
  assert_true(kith_peak_bytes(ctx) <= most + slack);
  kith_index_destroy(&index);
  uint64_t failures = 0;
  for (uint64_t n = 1; n < 100; n++) { /* each of its allocations fails once */
    kith_memory_fail_nth(n);
    kith_status status = kith_index_build(ctx, &s.view, &grid, 0, KITH_F32, &index);
    kith_memory_fail_nth(0);
    kith_index_destroy(&index);
    assert_int_equal(kith_memory_left(&ctx->memory), ctx->memory.limit);
    if (status == KITH_OK)
      break;
    assert_int_equal(status, KITH_ERR_MEMORY);
    assert_true(kith_message(ctx)[0] != '\0');
    failures++;
  }
  assert_true(failures >= 7 && failures < 50);
  free(s.memory);
}

/* ---- the predicate ---- */

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

/* ---- the memory budget ---- */

static void test_memory_limits(void **state) {
  (void)state;
  kith_memory memory = {.limit = 1000};
  void *a = kith_alloc(&memory, 600);
  assert_non_null(a);
  assert_int_equal((uintptr_t)a % 64, 0);
  memset(a, 1, 600);
  assert_null(kith_alloc(&memory, 401));
  assert_null(kith_alloc(&memory, UINT64_MAX));
  assert_null(kith_alloc(&memory, UINT64_MAX - 63));
  void *b = kith_alloc(&memory, 400);
  assert_non_null(b);
  assert_int_equal(kith_memory_left(&memory), 0);
  void *nothing = kith_alloc(&memory, 0);
  assert_non_null(nothing);
  kith_free(a);
  assert_int_equal(kith_memory_left(&memory), 600);
  assert_int_equal(atomic_load(&memory.peak), 1000);
  kith_free(b);
  kith_free(nothing);
  kith_free(NULL);
  assert_int_equal(kith_memory_left(&memory), 1000);
}

static void test_memory_results(void **state) {
  (void)state;
  kith_memory memory = {.limit = 1000};
  void *result = kith_alloc_result(&memory, 5 << 20);
  assert_non_null(result);
  memset(result, 1, 5 << 20);
  assert_int_equal(kith_memory_left(&memory), 1000);    /* exempt from the budget */
  assert_int_equal(atomic_load(&memory.peak), 5 << 20); /* but seen by the peak */
  void *work = kith_alloc(&memory, 1000);
  assert_non_null(work);
  assert_int_equal(atomic_load(&memory.peak), (5 << 20) + 1000);
  kith_release_result(result);
  assert_int_equal(atomic_load(&memory.results), 0);
  kith_free(work);
  memory = (kith_memory){0}; /* the result no longer needs it */
  kith_free(result);
  kith_release_result(NULL);
  assert_int_equal(atomic_load(&memory.results), 0);
}

static void test_memory_failing(void **state) {
  (void)state;
  kith_memory memory = {.limit = 1000};
  kith_memory_fail_nth(2);
  void *a = kith_alloc(&memory, 10);
  void *b = kith_alloc_result(&memory, 10);
  void *c = kith_alloc(&memory, 10);
  assert_true(a && !b && c);
  kith_memory_fail_nth(1);
  kith_memory_fail_nth(0);
  void *d = kith_alloc(&memory, 10);
  assert_non_null(d);
  kith_free(a);
  kith_free(c);
  kith_free(d);
  assert_int_equal(kith_memory_left(&memory), 1000);
}

typedef struct contest {
  kith_memory memory;
  atomic_bool exceeded;
} contest;

static void allocate_often(void *argument, uint64_t item) {
  contest *c = argument;
  for (int i = 0; i < 1000; i++) {
    void *block = kith_alloc(&c->memory, 1 + random_below(&item, 1500));
    if (atomic_load(&c->memory.used) > c->memory.limit)
      atomic_store(&c->exceeded, true);
    kith_free(block);
  }
}

/* Many threads at once never exceed the limit, and leave nothing behind. */
static void test_memory_threads(void **state) {
  (void)state;
  kith_context *on = open_context(8);
  contest c = {.memory = {.limit = 4000}};
  kith_each(on, 24, allocate_often, &c);
  assert_false(atomic_load(&c.exceeded));
  assert_true(atomic_load(&c.memory.peak) <= 4000 && atomic_load(&c.memory.peak) > 1000);
  assert_int_equal(kith_memory_left(&c.memory), 4000);
  kith_context_destroy(on);
}

/* ---- the threads ---- */

enum { MAX_ITEMS = 1000 };

typedef struct roll {
  _Atomic uint32_t visits[MAX_ITEMS];
  pthread_t caller;
  atomic_bool stranger; /* item 0 ran on another thread */
} roll;

static void visit_item(void *argument, uint64_t item) {
  roll *r = argument;
  atomic_fetch_add(&r->visits[item], 1);
  if (item == 0 && !pthread_equal(pthread_self(), r->caller))
    atomic_store(&r->stranger, true);
}

/* Every item is visited once, call after call, by more threads than there are items or cores. */
static void test_team(void **state) {
  (void)state;
  static const uint64_t SIZES[] = {0, 1, 2, 3, 17, MAX_ITEMS};
  for (uint32_t threads = 1; threads <= 16; threads *= 2) {
    kith_context *on = open_context(threads);
    for (uint32_t round = 0; round < 300; round++) {
      static roll r;
      uint64_t n = SIZES[round % 6];
      memset(&r, 0, sizeof r);
      r.caller = pthread_self();
      kith_each(on, n, visit_item, &r);
      uint64_t wrong = atomic_load(&r.stranger);
      for (uint64_t i = 0; i < MAX_ITEMS; i++)
        wrong += atomic_load(&r.visits[i]) != (i < n);
      assert_int_equal(wrong, 0);
    }
    kith_context_destroy(on);
  }
}

typedef struct strike {
  kith_context *on;
  _Atomic uint32_t visits;
} strike;

static void cancel_third(void *argument, uint64_t item) {
  strike *s = argument;
  (void)item;
  uint32_t before = atomic_fetch_add(&s->visits, 1);
  if (before == 2)
    kith_cancel(s->on);
  while (before > 2 && !kith_cancelled(s->on)) /* the third may be slow to cancel */
    sched_yield();
}

/* Of a job that heeds cancellation, only what was begun is done; the next one does not even begin. */
static void test_team_cancelled(void **state) {
  (void)state;
  for (uint32_t threads = 1; threads <= 16; threads *= 2) {
    strike s = {.on = open_context(threads)};
    kith_each_unless_cancelled(s.on, MAX_ITEMS, cancel_third, &s);
    assert_in_range(s.visits, 3, 3 + threads);
    s.visits = 0;
    kith_each_unless_cancelled(s.on, MAX_ITEMS, cancel_third, &s);
    assert_int_equal(s.visits, 0);
    kith_each(s.on, MAX_ITEMS, cancel_third, &s);
    assert_int_equal(s.visits, MAX_ITEMS);
    kith_context_destroy(s.on);
  }
}

/* Shares cover everything, once, in order. */
static void test_shares(void **state) {
  (void)state;
  static const uint64_t SIZES[] = {0, 1, 2, 63, 64, 65, 1000, 123457, UINT32_MAX};
  for (size_t s = 0; s < sizeof SIZES / sizeof *SIZES; s++)
    for (uint64_t grain = 1; grain <= 4096; grain *= 8) {
      uint64_t n = SIZES[s], shares = kith_shares(ctx, n, grain);
      assert_true(shares >= 1 && (shares == 1 || n / shares >= grain));
      assert_int_equal(kith_share_begin(n, 0, shares), 0);
      assert_int_equal(kith_share_begin(n, shares, shares), n);
      for (uint64_t i = 0; i < shares; i++)
        assert_true(kith_share_begin(n, i, shares) <= kith_share_begin(n, i + 1, shares));
    }
}

/* ---- the choice of a grid ---- */

static kith_choice choose(const point_set *s, double eps, uint32_t index_dims, double row_side) {
  static kith_predicate predicate;
  predicate = kith_predicate_make(eps, s->view.dim);
  kith_question question = {.queries = &s->view,
                            .candidates = &s->view,
                            .predicate = &predicate,
                            .min = s->min,
                            .max = s->max,
                            .index_dims = index_dims,
                            .row_side = row_side};
  kith_choice choice;
  assert_int_equal(kith_choose_grid(ctx, &question, &choice), KITH_OK);
  const kith_grid_spec *spec = &choice.spec;
  assert_true(spec->k >= 1 && spec->k <= s->view.dim && spec->k <= KITH_GRID_DIMS);
  assert_true(spec->row_side >= 0.25 && spec->row_side <= 64 && spec->x_side > 0 && isfinite(spec->x_side));
  for (uint32_t j = 0; j < spec->k; j++) {
    uint32_t d = spec->dims[j];
    assert_true(d < s->view.dim && spec->low[d] <= spec->high[d]);
    assert_true(spec->low[d] >= s->min[d] && spec->high[d] <= s->max[d]);
    for (uint32_t other = 0; other < j; other++)
      assert_true(spec->dims[other] != d);
  }
  assert_true(choice.why[0] != '\0' && strlen(choice.why) < sizeof choice.why);
  kith_grid grid;
  static kith_stencil stencil;
  kith_grid_make(&grid, spec, &predicate);
  assert_true(kith_stencil_make(&stencil, &grid, spec, &predicate) || spec->k > 1);
  return choice;
}

static void test_choice(void **state) {
  (void)state;
  for (uint32_t dim = 1; dim <= 8; dim++) {
    point_set s = make_set(3000, dim, KITH_F32, false, dim);
    for (double eps = 1e-9; eps < 1e9; eps *= 31.6) {
      kith_choice first = choose(&s, eps, 0, 0), again = choose(&s, eps, 0, 0);
      assert_int_equal(first.spec.k, again.spec.k); /* the same input is always indexed in the same way */
      assert_true(first.spec.row_side == again.spec.row_side && first.spec.x_side == again.spec.x_side);
      kith_free(first.box);
      kith_free(again.box);
      kith_choice forced = choose(&s, eps, dim, 2);
      assert_true(forced.spec.row_side == 2 && forced.spec.k == dim);
      kith_free(forced.box);
    }
    kith_choice zero = choose(&s, 0, 0, 0);
    kith_free(zero.box);
    kith_choice infinite = choose(&s, 1.7e308, 0, 0);
    kith_free(infinite.box);
    free(s.memory);
  }
}

/* Dense 2-D data is worth cutting in both dimensions; the wide one is cut where the other is flat. */
static void test_choice_is_sensible(void **state) {
  (void)state;
  point_set s = make_set(20000, 2, KITH_F32, false, 5);
  kith_choice dense = choose(&s, 0.01, 0, 0);
  assert_int_equal(dense.spec.k, 2);
  assert_true(dense.candidates > 1 && dense.candidates < 2000);
  kith_free(dense.box);
  for (uint64_t i = 0; i < s.view.n; i++)
    ((float *)s.memory)[2 * i] = 0.5F;
  s.min[0] = s.max[0] = 0.5;
  kith_choice flat = choose(&s, 0.01, 1, 0);
  assert_int_equal(flat.spec.dims[0], 1);
  kith_free(flat.box);
  ((float *)s.memory)[3] = 1e30F; /* one far outlier must not spoil the cells of the others */
  s.max[1] = (double)1e30F;
  kith_choice trimmed = choose(&s, 1e-6, 0, 0);
  assert_true(trimmed.spec.high[1] < 2);
  kith_free(trimmed.box);
  free(s.memory);
}

static void test_choice_of_nothing(void **state) {
  (void)state;
  for (uint64_t n = 0; n <= 2; n++) {
    point_set s = make_set(n, 3, KITH_F64, false, n);
    kith_choice choice = choose(&s, 0.1, 0, 0);
    kith_free(choice.box);
    free(s.memory);
  }
  point_set s = make_set(500, 2, KITH_F32, false, 1);
  for (uint64_t i = 0; i < 1000; i++)
    ((float *)s.memory)[i] = NAN; /* nothing valid to sample */
  s.min[0] = s.min[1] = s.max[0] = s.max[1] = 0;
  kith_choice choice = choose(&s, 0.1, 0, 0);
  kith_free(choice.box);
  free(s.memory);
}

#define INDEX_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      INDEX_TEST(test_sort),
      INDEX_TEST(test_sort_large),
      INDEX_TEST(test_grid),
      INDEX_TEST(test_wrapping_grid),
      INDEX_TEST(test_inside_exists),
      INDEX_TEST(test_index),
      INDEX_TEST(test_index_of_values),
      INDEX_TEST(test_crowds),
      INDEX_TEST(test_wide_keys),
      INDEX_TEST(test_index_memory),
      INDEX_TEST(test_predicate_band),
      INDEX_TEST(test_predicate_decides),
      INDEX_TEST(test_predicate_ends),
      INDEX_TEST(test_memory_limits),
      INDEX_TEST(test_memory_results),
      INDEX_TEST(test_memory_failing),
      INDEX_TEST(test_memory_threads),
      INDEX_TEST(test_team),
      INDEX_TEST(test_team_cancelled),
      INDEX_TEST(test_shares),
      INDEX_TEST(test_choice),
      INDEX_TEST(test_choice_is_sensible),
      INDEX_TEST(test_choice_of_nothing),
  };
  return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
