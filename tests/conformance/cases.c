/* The list of cases: shapes of data x dimensions x types x eps, chosen to hurt. */
#include "cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const SHAPE_NAMES[] = {[UNIFORM] = "uniform",
                                          [EXPO] = "expo",
                                          [LATTICE] = "lattice",
                                          [EQUAL] = "equal",
                                          [DUPLICATES] = "duplicates",
                                          [COLLINEAR] = "line",
                                          [OUTLIER] = "outlier",
                                          [OUTLIERS] = "outliers",
                                          [PARETO] = "pareto",
                                          [FAR] = "far",
                                          [VERY_FAR] = "very far",
                                          [TINY] = "tiny",
                                          [HUGE_VALUES] = "huge",
                                          [CLUSTERS] = "clusters",
                                          [FLAT] = "flat",
                                          [INVALID] = "invalid",
                                          [LATE] = "late",
                                          [FACES] = "faces",
                                          [MIXED_SIGN] = "signs",
                                          [DIRECTIONS] = "directions",
                                          [HUGE_RAYS] = "huge rays",
                                          [PLACES] = "places",
                                          [POLES] = "poles",
                                          [WIDE] = "wide"};

const char *shape_name(shape s) { return SHAPE_NAMES[s]; }

static uint64_t next(uint64_t *state) {
  *state += UINT64_C(0x9E3779B97F4A7C15);
  uint64_t x = *state;
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

static double unit(uint64_t *state) { return (double)(next(state) >> 11) * 0x1p-53; }

static double shifted(shape s, uint64_t i, uint32_t c, double u, uint64_t *rng) {
  switch (s) {
  case EXPO:
    return -log(1 - u) / 40;
  case LATTICE:
    return (double)(int)(u * 12) * 0.125;
  case EQUAL:
    return 0.7;
  case DUPLICATES:
    return (double)(int)(u * 3) / 3;
  case OUTLIER:
    return i == 5 ? 1e12 : u;
  case OUTLIERS:
    return tan(3.14159 * (u - 0.5));
  case PARETO:
    return pow(1 - u, -6);
  case FAR:
    return 1e6 + u;
  case VERY_FAR:
    return 1e12 + u * 0.01;
  case CLUSTERS:
    return (double)(next(rng) % 4) * 1000 + u * 0.01;
  case FLAT:
    return c == 1 ? u * 1e4 : u * 1e-3;
  case MIXED_SIGN:
    return u < 0.1 ? (u < 0.05 ? 0.0 : -0.0) : 2 * u - 1;
  case FACES:
    return 0.001 * (c == 0 ? (int)(u * 1000) : (int)(u * 40) - 20);
  case LATE:
    return i > 1400 && u > 0.995 ? INFINITY : u;
  case INVALID:
    return u < 0.002 ? NAN : u > 0.998 ? (u > 0.999 ? INFINITY : -INFINITY) : u;
  default:
    return u;
  }
}

/* Vectors: their length goes by row. */
static double ray(shape s, kith_dtype dtype, uint64_t i, double u) {
  static const double lengths[] = {1, 1e-3, 1e6, 1};
  if (s == DIRECTIONS)
    return i % 17 == 3 ? 0 : (2 * u - 1) * lengths[i % 4];
  double large = dtype == KITH_F32 ? 1e38 : 1e307;
  double small = dtype == KITH_F32 ? 1e-40 : 1e-315;
  return (2 * u - 1) * (i % 3 == 0 ? large : i % 3 == 1 ? small : 1e19);
}

/* Longitude, latitude. */
static double place(shape s, uint64_t i, uint32_t c, double u) {
  if (c == 0)
    return i % 5 == 0 ? 1080 * u - 540 : i % 5 == 1 ? 179.9 + 0.2 * u : 360 * u - 180;
  if (s == POLES)
    return i % 7 == 0 ? (i % 2 ? 90 : -90) : (i % 2 ? 1 : -1) * (90 - u * u * 3);
  return i % 11 == 0 ? 0 : 180 * u - 90;
}

static double value(shape s, kith_dtype dtype, uint64_t i, uint32_t c, uint64_t *rng) {
  double u = unit(rng);
  if (s == TINY)
    return u * (dtype == KITH_F32 ? 1e-42 : 1e-320);
  if (s == HUGE_VALUES)
    return (2 * u - 1) * (dtype == KITH_F32 ? 3e38 : 1.5e308);
  if (s == DIRECTIONS || s == HUGE_RAYS)
    return ray(s, dtype, i, u);
  if (s == PLACES || s == POLES)
    return place(s, i, c, u);
  if (s == WIDE)
    return 4 * u - 2;
  if (s == COLLINEAR)
    return (double)(i * 37 % 1000) * 0.001;
  return shifted(s, i, c, u, rng);
}

kith_points make_points(shape s, uint64_t n, uint32_t dim, kith_dtype dtype, int layout, uint64_t seed,
                        void **memory) {
  size_t width = dtype == KITH_F32 ? 4 : 8;
  size_t columns = layout == 2 ? dim + 3 : dim;
  *memory = calloc(n * columns + 1, width);
  if (!*memory)
    abort();
  kith_points p = {.data = *memory, .n = n, .dim = dim, .dtype = dtype};
  p.row_stride = (int64_t)(layout == 1 ? width : columns * width);
  p.col_stride = (int64_t)(layout == 1 ? n * width : width);
  for (uint64_t i = 0; i < n; i++)
    for (uint32_t c = 0; c < dim; c++) {
      double x = value(s, dtype, i, c, &seed);
      char *at = (char *)*memory + (int64_t)i * p.row_stride + (int64_t)c * p.col_stride;
      if (dtype == KITH_F32)
        *(float *)at = (float)x;
      else
        *(double *)at = x;
    }
  return p;
}

typedef struct row {
  shape s;
  uint64_t n;
  uint32_t dim;
  double eps;
  uint64_t n_b; /* 0: one set */
  uint32_t index_dims;
  double cell_side;
  kith_dtype only; /* 0: both types */
} row;

static const row ROWS[] = {
    /* dimensions */
    {UNIFORM, 900, 1, 0.01, 0, 0, 0, 0},
    {UNIFORM, 1200, 2, 0.05, 0, 0, 0, 0},
    {UNIFORM, 1200, 3, 0.1, 0, 0, 0, 0},
    {UNIFORM, 900, 4, 0.2, 0, 0, 0, 0},
    {UNIFORM, 700, 5, 0.3, 0, 0, 0, 0},
    {UNIFORM, 700, 6, 0.4, 0, 0, 0, 0},
    {UNIFORM, 500, 7, 0.5, 0, 0, 0, 0},
    {UNIFORM, 500, 8, 0.6, 0, 0, 0, 0},
    {UNIFORM, 400, 9, 0.7, 0, 0, 0, 0},
    {UNIFORM, 300, 33, 2.0, 0, 0, 0, 0},
    {UNIFORM, 60, 257, 6.4, 0, 0, 0, 0},
    {EXPO, 1500, 2, 0.004, 0, 0, 0, 0},
    {EXPO, 1500, 3, 0.02, 0, 0, 0, 0},
    {EXPO, 900, 6, 0.06, 0, 0, 0, 0},
    /* ties at eps */
    {LATTICE, 1200, 1, 0.125, 0, 0, 0, 0},
    {LATTICE, 1500, 2, 0.125, 0, 0, 0, 0},
    {LATTICE, 1500, 2, 0.625, 0, 0, 0, 0}, /* 3-4-5 */
    {LATTICE, 1500, 3, 0.375, 0, 0, 0, 0}, /* 1-2-2 */
    {LATTICE, 900, 4, 0.25, 0, 0, 0, 0},
    {LATTICE, 1000, 2, 0.1767766952966369, 0, 0, 0, 0}, /* eps^2 just off the tie */
    {LATTICE, 900, 3, 0.21650635094610965, 0, 0, 0, 0},
    /* sizes */
    {UNIFORM, 0, 2, 0.1, 0, 0, 0, 0},
    {UNIFORM, 1, 3, 0.1, 0, 0, 0, 0},
    {UNIFORM, 2, 2, 2.0, 0, 0, 0, 0},
    {UNIFORM, 17, 2, 0.3, 0, 0, 0, 0},
    {UNIFORM, 64, 2, 0.3, 0, 0, 0, 0},
    {UNIFORM, 65, 1, 0.3, 0, 0, 0, 0},
    /* eps: nothing, tiny, everything, beyond everything */
    {UNIFORM, 900, 2, 0.0, 0, 0, 0, 0},
    {DUPLICATES, 900, 2, 0.0, 0, 0, 0, 0},
    {DUPLICATES, 900, 3, 1e-9, 0, 0, 0, 0},
    {UNIFORM, 900, 2, 1e-7, 0, 0, 0, 0},
    {UNIFORM, 900, 2, 1e-200, 0, 0, 0, 0},
    {UNIFORM, 400, 3, 10, 0, 0, 0, 0},
    {UNIFORM, 400, 2, 1e30, 0, 0, 0, 0},
    {UNIFORM, 400, 2, 1e200, 0, 0, 0, 0},
    /* degenerate data */
    {EQUAL, 700, 2, 0.0, 0, 0, 0, 0},
    {EQUAL, 700, 3, 0.5, 0, 0, 0, 0},
    {COLLINEAR, 1500, 2, 0.01, 0, 0, 0, 0},
    {COLLINEAR, 1500, 3, 0.0017320508075688772, 0, 0, 0, 0},
    {OUTLIER, 1500, 2, 0.03, 0, 0, 0, 0},
    {OUTLIER, 1500, 3, 0.0001, 0, 0, 0, 0},
    {OUTLIERS, 2500, 2, 0.05, 0, 0, 0, 0},
    {OUTLIERS, 1500, 3, 1e-7, 0, 0, 0, 0},
    {PARETO, 2500, 2, 0.5, 0, 0, 0, 0},
    {PARETO, 1500, 3, 1e-6, 700, 0, 0, 0},
    {PARETO, 1500, 2, 1e9, 0, 2, 0.5, 0},
    {FAR, 1200, 2, 0.0625, 0, 0, 0, 0},
    {FAR, 1200, 3, 0.1, 0, 0, 0, 0},
    {VERY_FAR, 1200, 2, 0.001, 0, 0, 0, KITH_F64},
    {VERY_FAR, 900, 3, 0.0009765625, 0, 0, 0, KITH_F64}, /* ties: 2^-10 */
    {TINY, 700, 2, 1e-43, 0, 0, 0, 0},
    {TINY, 300, 2, 1e-160, 0, 0, 0, 0},
    {HUGE_VALUES, 700, 2, 1e37, 0, 0, 0, 0},
    {HUGE_VALUES, 700, 3, 1e15, 0, 0, 0, 0},
    {HUGE_VALUES, 300, 2, 1e154, 0, 0, 0, 0},
    {CLUSTERS, 1500, 2, 0.002, 0, 0, 0, 0},
    {CLUSTERS, 1500, 3, 0.02, 0, 0, 0, 0}, /* whole clusters within eps */
    {FLAT, 1200, 3, 5.0, 0, 0, 0, 0},
    {FLAT, 1200, 6, 1e-3, 0, 0, 0, 0},
    {MIXED_SIGN, 900, 2, 0.1, 0, 0, 0, 0},
    {INVALID, 1200, 2, 0.05, 0, 0, 0, 0},
    {INVALID, 600, 3, 0.1, 400, 0, 0, 0},
    /* two sets */
    {UNIFORM, 900, 2, 0.05, 700, 0, 0, 0},
    {UNIFORM, 1, 2, 0.3, 900, 0, 0, 0},
    {UNIFORM, 900, 3, 0.2, 1, 0, 0, 0},
    {EXPO, 900, 4, 0.05, 300, 0, 0, 0},
    {LATTICE, 600, 3, 0.25, 800, 0, 0, 0},
    {OUTLIER, 900, 2, 0.05, 900, 0, 0, 0},
    {CLUSTERS, 600, 2, 0.02, 600, 0, 0, 0},
    /* grids that the planner would not choose */
    {UNIFORM, 900, 2, 0.05, 0, 1, 0, 0},
    {UNIFORM, 900, 2, 0.05, 0, 2, 0.25, 0},
    {UNIFORM, 900, 2, 0.2, 0, 2, 0.25, 0},
    {EXPO, 1500, 2, 0.01, 0, 2, 0.25, 0},
    {EXPO, 1500, 2, 0.01, 0, 2, 0.3, 0},
    {EXPO, 1500, 3, 0.02, 0, 3, 0.5, 0},
    {LATTICE, 1500, 3, 0.375, 0, 3, 0.25, 0},
    {LATTICE, 900, 3, 0.25, 500, 2, 0.5, 0},
    {UNIFORM, 700, 3, 0.1, 0, 3, 16, 0},
    {UNIFORM, 700, 4, 0.2, 0, 4, 1, 0},
    {UNIFORM, 500, 6, 0.4, 0, 6, 1, 0},
    {UNIFORM, 500, 8, 0.6, 0, 8, 1, 0},
    {CLUSTERS, 1500, 2, 0.002, 0, 2, 0.5, 0},
    {FAR, 900, 2, 0.0625, 0, 2, 0.7, 0},
    /* enough points for several pieces of work, batches and full staging buffers */
    {EXPO, 6000, 2, 0.003, 0, 0, 0, KITH_F32},
    {EQUAL, 3000, 2, 0.1, 0, 0, 0, KITH_F32},
    {CLUSTERS, 6000, 2, 0.003, 0, 2, 1, KITH_F32},
    {LATTICE, 5000, 3, 0.25, 0, 0, 0, KITH_F64},
};
enum { N_ROWS = sizeof ROWS / sizeof *ROWS };

int case_make(uint32_t i, test_case *c) {
  if (i >= 3 * N_ROWS)
    return space_case_make(i - 3 * N_ROWS, c);
  const row *r = &ROWS[i / 3];
  int variant = (int)(i % 3); /* float32, float64, and a mix of types and layouts */
  kith_dtype dtype = variant == 1 ? KITH_F64 : KITH_F32;
  *c = (test_case){.eps = r->eps, .index_dims = r->index_dims, .cell_side = r->cell_side};
  c->skip_invalid = r->s == INVALID;
  if (variant == 2) {
    if (r->only || (r->n_b == 0 && i % 2))
      return 1; /* an empty name: nothing to do */
    dtype = i % 2 ? KITH_F32 : KITH_F64;
  }
  if (r->only && dtype != r->only)
    return 1;
  kith_dtype other = variant == 2 ? (dtype == KITH_F32 ? KITH_F64 : KITH_F32) : dtype;
  int layout = variant == 2 ? 1 + (int)(i / 3 % 2) : 0;
  c->a = make_points(r->s, r->n, r->dim, dtype, layout, i + 1, &c->memory[0]);
  if (r->n_b)
    c->b = make_points(r->s, r->n_b, r->dim, other, variant == 2 ? 2 : 0, i + 77, &c->memory[1]);
  snprintf(c->name, sizeof c->name, "%s n=%llu%s dim=%u eps=%g %s%s", SHAPE_NAMES[r->s],
           (unsigned long long)r->n, r->n_b ? " x b" : "", r->dim, r->eps, dtype == KITH_F32 ? "f32" : "f64",
           layout ? " strided" : "");
  return 1;
}

void case_free(test_case *c) {
  free(c->memory[0]);
  free(c->memory[1]);
  free(c->eps_of);
}
