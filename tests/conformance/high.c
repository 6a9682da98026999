/* Conformance in many dimensions: every way of joining them (grid, panels in the order of the input, panels in
 * the order of some columns), with each of its techniques on and off, in every norm and on every instruction
 * set, or on a GPU, compared for equality with the reference. eps is the distance of some pair, so that ties
 * are met everywhere. */
#include "gpu.h"
#include "kith.h"
#include "reference.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum shape {
  UNIFORM,
  EXPO,
  DECAY,    /* columns of falling variance, the first ones hidden at the end */
  LATTICE,  /* many ties exactly at eps */
  FAR,      /* far from the origin, and float32 has few digits left */
  CONSTANT, /* most columns constant */
  ONE_HUGE, /* one column dwarfs the others */
  HUGE_ALL, /* norms beyond 1e18, and products that overflow float32 */
  TINY,     /* denormal coordinates (float32) */
  CLUSTERS, /* eps is small beside the norms: products have no digits left */
  OUTLIER,  /* one point far away */
  INVALID,  /* some rows are NaN */
  WIDE,     /* many columns far wider than eps, so that marks are cut off */
  STEPS,    /* multiples of a small number: differences of whole marks */
  OVERFLOW, /* differences and sums beyond the range of the input's type */
  EDGE,     /* a first column whose distances from its least value are at the end of float's range */
  N_SHAPES
} shape;
static const char *const NAMES[] = {"uniform",  "expo",     "decay",    "lattice",  "far",     "constant",
                                    "one huge", "huge all", "tiny",     "clusters", "outlier", "invalid",
                                    "wide",     "steps",    "overflow", "edge"};

static const uint32_t DIMS[] = {1, 2, 3, 7, 16, 24, 33, 64, 257, 1024};
typedef struct machine {
  const char *engine, *isa;
  uint32_t threads;
  uint64_t device_memory;
} machine;
static const machine MACHINES[] = {{.engine = "cpu", .isa = "scalar", .threads = 1},
                                   {.engine = "cpu", .isa = "avx2", .threads = 3},
                                   {.engine = "cpu", .isa = "avx512", .threads = 2},
                                   {.engine = "cuda", .threads = 4},
                                   {.engine = "cuda", .threads = 1, .device_memory = 3 << 20}};
enum { N_MACHINES = sizeof MACHINES / sizeof *MACHINES, N_DIMS = sizeof DIMS / sizeof *DIMS };

static unsigned passed, failed, skipped;

static uint64_t next(uint64_t *state) {
  *state += UINT64_C(0x9E3779B97F4A7C15);
  uint64_t x = *state;
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

static double value(shape s, uint64_t i, uint32_t c, uint32_t dim, uint64_t *rng) {
  double u = (double)(next(rng) >> 11) * 0x1p-53;
  switch (s) {
  case EXPO:
    return -log(1 - u) / 40;
  case DECAY:
    return u * exp(-0.2 * (dim - 1 - c));
  case LATTICE:
    return (double)(int)(u * 3) * 0.125;
  case FAR:
    return 1e4 + u;
  case CONSTANT:
    return c % 5 == 2 ? u : 42.5;
  case ONE_HUGE:
    return c == dim / 2 ? u * 1e7 : u;
  case HUGE_ALL:
    return (2 * u - 1) * 1e22;
  case TINY:
    return u * 1e-42;
  case CLUSTERS:
    return (double)(i % 5) * 1000 + u * 0.01;
  case OUTLIER:
    return i == 7 ? 1e30 : i == 8 ? 1e12 : u;
  case WIDE:
    return c % 3 == 0 ? u * 1e5 : i % 4 == 0 ? (double)(i % 9) : u * 1e-3;
  case STEPS:
    return (double)(int)(u * 60) / 60 * 0.125;
  case OVERFLOW:
    return (i % 3 == 0 ? 3e38 : 1e3) * (2 * u - 1);
  case EDGE:
    return c > 0 ? u : i == 7 ? -(double)FLT_MAX : 0x1p103 + (u - 0.5) * 0x1p98;
  case INVALID:
    return i % 41 == 3 && c == dim / 3 ? NAN : u;
  default:
    return u;
  }
}

static kith_points make_points(shape s, uint64_t n, uint32_t dim, kith_dtype dtype, uint64_t seed) {
  size_t width = dtype == KITH_F32 ? sizeof(float) : sizeof(double);
  char *data = malloc(n * dim * width + 1);
  if (!data)
    abort();
  for (uint64_t i = 0; i < n; i++)
    for (uint32_t c = 0; c < dim; c++) {
      double x = value(s, i, c, dim, &seed);
      if (dtype == KITH_F32)
        ((float *)(void *)data)[i * dim + c] = (float)x;
      else
        ((double *)(void *)data)[i * dim + c] = x;
    }
  return (kith_points){.data = data,
                       .n = n,
                       .dim = dim,
                       .dtype = dtype,
                       .row_stride = (int64_t)(dim * width),
                       .col_stride = (int64_t)width};
}

static double get(const kith_points *p, uint64_t i, uint32_t c) {
  return p->dtype == KITH_F32 ? (double)((const float *)p->data)[i * p->dim + c]
                              : ((const double *)p->data)[i * p->dim + c];
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The distance of some pair, such that about one pair in twenty is as close. */
static double choose_eps(kith_metric metric, const kith_points *a, const kith_points *b) {
  double found[400];
  uint32_t n = 0;
  for (uint64_t k = 0; k < 400; k++) {
    uint64_t i = k * 7 % a->n;
    uint64_t j = k * 13 % b->n;
    double size = 0;
    for (uint32_t c = 0; c < a->dim; c++) {
      double t = fabs(get(a, i, c) - get(b, j, c));
      size = metric == KITH_EUCLIDEAN ? size + t * t : metric == KITH_MANHATTAN ? size + t : fmax(size, t);
    }
    if (isfinite(size) && size > 0)
      found[n++] = metric == KITH_EUCLIDEAN ? sqrt(size) : size;
  }
  qsort(found, n, sizeof *found, compare_doubles);
  return n ? found[n / 20] : 0.5;
}

typedef struct subject {
  char name[160];
  const kith_points *a, *b;
  kith_join_options opt;
  const reference *want;
  kith_context *ctx;
  const char *where;
} subject;

static void check(const subject *s, bool ok, const char *what) {
  passed += ok;
  failed += !ok;
  if (!ok && failed <= 20)
    fprintf(stderr, "FAILED %s, %s: %s (%s)\n", s->name, s->where, what, kith_message(s->ctx));
}

static void check_count(const subject *s) {
  uint64_t pairs = 0;
  check(s, kith_join_count(s->ctx, s->a, s->b, &s->opt, &pairs, NULL) == KITH_OK && pairs == s->want->n_pairs,
        "count");
}

static void check_degrees(const subject *s) {
  uint64_t *degrees = calloc(s->a->n + 1, sizeof *degrees);
  bool ok = degrees && kith_join_degrees(s->ctx, s->a, s->b, &s->opt, degrees, NULL) == KITH_OK;
  for (uint64_t i = 0; ok && i < s->a->n; i++)
    ok = degrees[i] == s->want->offsets[i + 1] - s->want->offsets[i];
  check(s, ok, "degrees");
  free(degrees);
}

static void check_table(const subject *s) {
  kith_table *table = NULL;
  kith_join_options opt = s->opt;
  opt.sorted = opt.distances = 1;
  const reference *want = s->want;
  bool ok = kith_join_table(s->ctx, s->a, s->b, &opt, &table, NULL) == KITH_OK &&
            table->n_pairs == want->n_pairs &&
            memcmp(table->offsets, want->offsets, (want->n_rows + 1) * sizeof(uint64_t)) == 0;
  if (ok && want->n_pairs)
    ok = memcmp(table->neighbors, want->neighbors, want->n_pairs * sizeof(uint32_t)) == 0 &&
         memcmp(table->distances, want->distances, want->n_pairs * sizeof(double)) == 0;
  check(s, ok, "table");
  kith_table_destroy(table);
}

typedef struct stream {
  const reference *want;
  uint64_t rows;
  bool ok;
} stream;

static int take(void *user, const kith_batch *batch) {
  stream *s = user;
  const reference *want = s->want;
  s->ok = s->ok && batch->first_row == s->rows && s->rows + batch->n_rows <= want->n_rows;
  for (uint64_t r = 0; s->ok && r < batch->n_rows; r++) {
    uint64_t at = want->offsets[s->rows + r];
    uint64_t n = batch->offsets[r + 1] - batch->offsets[r];
    s->ok = n == want->offsets[s->rows + r + 1] - at &&
            (n == 0 || (memcmp(batch->neighbors + batch->offsets[r], want->neighbors + at, n * 4) == 0 &&
                        memcmp(batch->distances + batch->offsets[r], want->distances + at, n * 8) == 0));
  }
  s->rows += batch->n_rows;
  return !s->ok;
}

static void check_stream(const subject *s, uint64_t batch_rows) {
  stream all = {.want = s->want, .ok = true};
  kith_join_options opt = s->opt;
  opt.sorted = opt.distances = 1;
  opt.batch_rows = batch_rows;
  bool ok = kith_join_stream(s->ctx, s->a, s->b, &opt, take, &all, NULL) == KITH_OK;
  check(s, ok && all.ok && all.rows == s->want->n_rows, batch_rows ? "stream in windows" : "stream");
}

/* The techniques: all on, all off, and for panels one of them off. */
static void check_techniques(subject *s, uint32_t which) {
  static const uint32_t OFF[] = {0, 7, 1, 2, 4};
  for (uint32_t i = 0; i < (s->opt.brute ? 5 : 2); i++) {
    uint32_t off = OFF[i];
    s->opt.no_reorder = off & 1;
    s->opt.no_sortidu = off >> 1 & 1;
    s->opt.no_shortc = off >> 2 & 1;
    check_count(s);
    switch ((which + off) % 4) {
    case 0:
      check_table(s);
      break;
    case 1:
      check_degrees(s);
      break;
    case 2:
      check_stream(s, 0);
      break;
    default:
      check_stream(s, 19);
    }
  }
}

/* Every way to index: automatic, so many columns in a grid or in panels, all with all. */
static void check_ways(subject *s) {
  static const uint32_t COLUMNS[] = {0, 1, 3, 8};
  const char *base = strdup(s->name);
  uint32_t which = 0;
  for (int brute = 0; base && brute < 2; brute++)
    for (uint32_t k = 0; k < 4; k++) {
      if (COLUMNS[k] > s->a->dim)
        continue;
      s->opt.brute = brute;
      s->opt.index_dims = COLUMNS[k];
      snprintf(s->name, sizeof s->name, "%s, brute %d, index_dims %u", base, brute, COLUMNS[k]);
      check_techniques(s, which++);
    }
  free((void *)base);
}

static void check_options(kith_context **machines, const char *name, const kith_points *a, const kith_points *b,
                          const kith_join_options *opt) {
  reference want = reference_join(a, b, opt);
  for (int m = 0; m < N_MACHINES; m++) {
    subject s = {.a = a, .b = b, .opt = *opt, .want = &want, .ctx = machines[m]};
    s.where = MACHINES[m].isa ? MACHINES[m].isa : MACHINES[m].engine;
    snprintf(s.name, sizeof s.name, "%s", name);
    if (machines[m])
      check_ways(&s);
  }
  reference_free(&want);
}

static void check_shape(kith_context **machines, shape s, uint32_t dim, uint32_t number, kith_metric metric) {
  uint64_t n = dim > 100 ? 70 : dim > 20 ? 150 : 230;
  kith_dtype dtype = number % 2 ? KITH_F64 : KITH_F32;
  kith_points a = make_points(s, n, dim, dtype, number + 1);
  kith_points b = make_points(s, n / 2 + 3, dim, number % 4 < 2 ? KITH_F32 : KITH_F64, number + 99);
  bool two = number % 3 == 2;
  kith_join_options opt = kith_join_options_init(choose_eps(metric, &a, two ? &b : &a));
  opt.metric = metric;
  opt.skip_invalid = s == INVALID;
  opt.half = !two && number % 3 == 1;
  opt.self_pairs = !two && number % 5 == 0 && !opt.half;
  char name[96];
  static const char *const METRICS[] = {"euclidean", "manhattan", "chebyshev"};
  snprintf(name, sizeof name, "%s %s dim %u %s%s%s%s eps %g", METRICS[metric], NAMES[s], dim,
           dtype == KITH_F32 ? "f32" : "f64", two ? " x b" : "", opt.half ? " half" : "",
           opt.self_pairs ? " self" : "", opt.eps);
  check_options(machines, name, &a, two ? &b : NULL, &opt);
  free((void *)a.data);
  free((void *)b.data);
}

/* Those of an engine. */
static void make_machines(const char *engine, kith_context **machines) {
  for (int m = 0; m < N_MACHINES; m++) {
    if (strcmp(engine, MACHINES[m].engine) != 0)
      continue;
    kith_context_options options = kith_context_options_init();
    options.engine = MACHINES[m].engine;
    options.isa = MACHINES[m].isa;
    options.threads = MACHINES[m].threads;
    options.device_memory_bytes = MACHINES[m].device_memory;
    if (kith_context_create(&options, &machines[m]) != KITH_OK) {
      kith_context_destroy(machines[m]);
      machines[m] = NULL;
      skipped++;
    }
  }
}

/* conformance_high [cpu|cuda [EVERY [FIRST]]]: 77 means that there is no GPU. EVERY: only every so many shapes,
 * for tools that are slow. */
int main(int argc, char **argv) {
  const char *engine = argc > 1 ? argv[1] : "cpu";
  uint32_t every = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
  uint32_t first = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
  if (strcmp(engine, "cuda") == 0 && !has_gpu())
    return 77;
  kith_context *machines[N_MACHINES] = {NULL};
  make_machines(engine, machines);
  uint32_t number = 0;
  for (uint32_t d = 0; d < N_DIMS; d++)
    for (int s = 0; s < N_SHAPES; s++, number++)
      if (number % every == first) { /* the Euclidean metric and one of the two others, or both */
        bool both = strcmp(engine, "cuda") == 0 && DIMS[d] <= 64;
        bool odd = (number / every + d) % 2;
        check_shape(machines, (shape)s, DIMS[d], number, KITH_EUCLIDEAN);
        if (both || odd)
          check_shape(machines, (shape)s, DIMS[d], number, KITH_MANHATTAN);
        if (both || !odd)
          check_shape(machines, (shape)s, DIMS[d], number, KITH_CHEBYSHEV);
      }
  for (int m = 0; m < N_MACHINES; m++)
    kith_context_destroy(machines[m]);
  printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
  return failed != 0;
}
