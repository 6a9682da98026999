/* Properties of the answers: symmetry, permutation, monotonicity, splitting, translation, consistency of the
 * calls with each other, and the same bytes whatever runs them. */
#include "support.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A set and an eps with some dozen neighbours a point, in each dimension. */
typedef struct setting {
  uint64_t n;
  uint32_t dim;
  kith_dtype dtype;
  double eps;
} setting;

static const setting SETTINGS[] = {
    {400, 1, KITH_F32, 1.0 / 64}, {500, 2, KITH_F32, 5.0 / 64}, {500, 2, KITH_F64, 0.1},
    {500, 3, KITH_F32, 0.2},      {400, 5, KITH_F64, 0.4},      {300, 9, KITH_F32, 0.8},
    {300, 2, KITH_F32, 0.0},      {200, 3, KITH_F64, 9.0},
};
enum { N_SETTINGS = sizeof SETTINGS / sizeof *SETTINGS };

static cloud cloud_for(const setting *s) { return cloud_random(s->n, s->dim, s->dtype, s->n + s->dim); }

static void check_symmetry(kith_context *ctx, const cloud *a, double eps) {
  kith_table *table = table_of(ctx, &a->points, NULL, kith_join_options_init(eps));
  bool symmetric = true, irreflexive = true;
  for (uint64_t i = 0; i < table->n_rows; i++)
    for (uint64_t k = table->offsets[i]; k < table->offsets[i + 1]; k++) {
      symmetric &= row_holds(table, table->neighbors[k], (uint32_t)i);
      irreflexive &= table->neighbors[k] != i;
    }
  CHECK(symmetric && irreflexive, "symmetry, dim %u eps %g", a->points.dim, eps);
  kith_table_destroy(table);
}

/* Point order[i] of the original is point i of the permuted set. */
static void check_permutation(kith_context *ctx, const cloud *a, double eps) {
  uint64_t n = a->points.n, state = 7;
  uint64_t *order = malloc((n + 1) * sizeof *order);
  if (!order)
    abort();
  for (uint64_t i = 0; i < n; i++)
    order[i] = i;
  for (uint64_t i = n; i > 1; i--) {
    uint64_t k = random_below(&state, i), swapped = order[k];
    order[k] = order[i - 1];
    order[i - 1] = swapped;
  }
  cloud b = cloud_pick(a, order, n);
  kith_table *was = table_of(ctx, &a->points, NULL, kith_join_options_init(eps));
  kith_table *is = table_of(ctx, &b.points, NULL, kith_join_options_init(eps));
  bool same = was->n_pairs == is->n_pairs;
  for (uint64_t i = 0; same && i < n; i++)
    for (uint64_t k = is->offsets[i]; k < is->offsets[i + 1]; k++)
      same &= row_holds(was, order[i], (uint32_t)order[is->neighbors[k]]);
  CHECK(same, "permutation, dim %u eps %g", a->points.dim, eps);
  kith_table_destroy(was);
  kith_table_destroy(is);
  cloud_free(&b);
  free(order);
}

static void check_monotonicity(kith_context *ctx, const cloud *a) {
  static const double EPS[] = {0, 0x1p-6, 0.03, 0x1.8p-4, 0.11, 0.3, 1, 7};
  kith_table *smaller = table_of(ctx, &a->points, NULL, kith_join_options_init(EPS[0]));
  for (size_t e = 1; e < sizeof EPS / sizeof *EPS; e++) {
    kith_table *larger = table_of(ctx, &a->points, NULL, kith_join_options_init(EPS[e]));
    bool held = true;
    for (uint64_t i = 0; i < smaller->n_rows; i++)
      for (uint64_t k = smaller->offsets[i]; k < smaller->offsets[i + 1]; k++)
        held &= row_holds(larger, i, smaller->neighbors[k]);
    CHECK(held, "eps %g leaves out pairs of eps %g, dim %u", EPS[e], EPS[e - 1], a->points.dim);
    kith_table_destroy(smaller);
    smaller = larger;
  }
  uint64_t n = a->points.n;
  CHECK(smaller->n_pairs == n * (n - 1), "eps 7 holds every pair");
  kith_table_destroy(smaller);
}

/* Rows [begin, end) of a set, as a view. */
static kith_points part_of(const kith_points *a, uint64_t begin, uint64_t end) {
  kith_points part = *a;
  part.data = (const char *)a->data + (int64_t)begin * a->row_stride;
  part.n = end - begin;
  return part;
}

/* The join of a set is made of those of its halves, with themselves and with each other. */
static void check_split(kith_context *ctx, const cloud *a, double eps) {
  uint64_t n = a->points.n, cut = n / 3;
  kith_points halves[2] = {part_of(&a->points, 0, cut), part_of(&a->points, cut, n)};
  uint64_t begin[3] = {0, cut, n};
  kith_table *whole = table_of(ctx, &a->points, NULL, kith_join_options_init(eps));
  kith_table *parts[2][2];
  for (int x = 0; x < 2; x++)
    for (int y = 0; y < 2; y++)
      parts[x][y] = table_of(ctx, &halves[x], x == y ? NULL : &halves[y], kith_join_options_init(eps));
  bool same = true;
  for (int x = 0; x < 2; x++)
    for (uint64_t i = begin[x]; i < begin[x + 1]; i++) {
      uint64_t at = whole->offsets[i], row = i - begin[x];
      same &= row_length(whole, i) == row_length(parts[x][0], row) + row_length(parts[x][1], row);
      for (int y = 0; same && y < 2; y++) /* ids of the first half come first */
        for (uint64_t k = parts[x][y]->offsets[row]; k < parts[x][y]->offsets[row + 1]; k++)
          same &= whole->neighbors[at++] == parts[x][y]->neighbors[k] + begin[y];
    }
  CHECK(same, "split, dim %u eps %g", a->points.dim, eps);
  for (int p = 0; p < 4; p++)
    kith_table_destroy(parts[p / 2][p % 2]);
  kith_table_destroy(whole);
}

/* Coordinates are multiples of 1/64, so these offsets move them without rounding. */
static void check_translation(kith_context *ctx, const cloud *a, double eps) {
  static const double OFFSETS[] = {-0.5, 1024, -65536};
  kith_table *was = table_of(ctx, &a->points, NULL, kith_join_options_init(eps));
  for (size_t o = 0; o < sizeof OFFSETS / sizeof *OFFSETS; o++) {
    cloud b = cloud_new(a->points.n, a->points.dim, a->points.dtype);
    for (uint64_t i = 0; i < a->points.n; i++)
      for (uint32_t c = 0; c < a->points.dim; c++)
        cloud_set(&b, i, c, cloud_get(a, i, c) + OFFSETS[o] * (c % 2 ? 1 : -2));
    kith_table *is = table_of(ctx, &b.points, NULL, kith_join_options_init(eps));
    CHECK(same_table(was, is), "translation by %g, dim %u eps %g", OFFSETS[o], a->points.dim, eps);
    kith_table_destroy(is);
    cloud_free(&b);
  }
  kith_table_destroy(was);
}

/* Joining a set with a copy of itself is joining it with itself, the points included. The copy may even be
 * the same view: only NULL means one set. */
static void check_two_sets(kith_context *ctx, const cloud *a, double eps) {
  kith_join_options options = kith_join_options_init(eps);
  kith_points copy = a->points;
  kith_table *two = table_of(ctx, &a->points, &copy, options);
  kith_table *twice = table_of(ctx, &a->points, &a->points, options);
  options.self_pairs = 1;
  kith_table *one = table_of(ctx, &a->points, NULL, options);
  CHECK(same_table(one, two), "a copy as the second set, dim %u eps %g", a->points.dim, eps);
  CHECK(same_table(one, twice), "the same view as the second set, dim %u eps %g", a->points.dim, eps);
  kith_table_destroy(one);
  kith_table_destroy(two);
  kith_table_destroy(twice);
}

/* Count, degrees, half and report tell the same story as the table. */
static void check_consistency(kith_context *ctx, const cloud *a, double eps) {
  uint64_t n = a->points.n, pairs = 0, half_pairs = 0;
  uint64_t *degrees = malloc((n + 1) * sizeof *degrees);
  kith_join_options options = kith_join_options_init(eps);
  kith_join_report report = kith_join_report_init();
  kith_table *table = table_of(ctx, &a->points, NULL, options);
  CHECK(kith_join_count(ctx, &a->points, NULL, &options, &pairs, &report) == KITH_OK, "count");
  CHECK(pairs == table->n_pairs && report.pairs == pairs && report.peak_bytes == kith_peak_bytes(ctx),
        "count is the size of the table, dim %u eps %g", a->points.dim, eps);
  CHECK(degrees && kith_join_degrees(ctx, &a->points, NULL, &options, degrees, &report) == KITH_OK, "degrees");
  bool lengths = report.pairs == pairs;
  for (uint64_t i = 0; i < n; i++)
    lengths &= degrees[i] == row_length(table, i);
  CHECK(lengths, "degrees are the lengths of the rows, dim %u eps %g", a->points.dim, eps);
  options.half = 1;
  kith_table *half = table_of(ctx, &a->points, NULL, options);
  bool ordered = 2 * half->n_pairs == pairs;
  for (uint64_t i = 0; i < n; i++)
    for (uint64_t k = half->offsets[i]; k < half->offsets[i + 1]; k++)
      ordered &= half->neighbors[k] > i && row_holds(table, i, half->neighbors[k]);
  CHECK(ordered, "half is i < j of all, dim %u eps %g", a->points.dim, eps);
  CHECK(kith_join_count(ctx, &a->points, NULL, &options, &half_pairs, NULL) == KITH_OK &&
            2 * half_pairs == pairs,
        "half of the count, dim %u eps %g", a->points.dim, eps);
  kith_table_destroy(half);
  kith_table_destroy(table);
  free(degrees);
}

/* The table of one machine, rows in index order. */
static kith_table *unsorted_table(const char *isa, uint32_t threads, const cloud *a, double eps,
                                  int distances) {
  kith_context *ctx = context_new(isa, threads, 64 << 20);
  if (!ctx)
    return NULL;
  kith_join_options options = kith_join_options_init(eps);
  options.distances = distances;
  kith_table *table;
  CHECK(kith_join_table(ctx, &a->points, NULL, &options, &table, NULL) == KITH_OK, "table on %s x %u",
        kith_isa(ctx), threads);
  kith_context_destroy(ctx);
  return table;
}

static void check_same_bytes(const cloud *a, double eps) {
  static const struct {
    const char *isa;
    uint32_t threads;
  } MACHINES[] = {{"scalar", 2}, {"avx2", 1}, {"avx2", 4}, {"avx512", 1}, {"avx512", 3}, {NULL, 7}};
  for (int distances = 0; distances < 2; distances++) {
    kith_table *first = unsorted_table("scalar", 1, a, eps, distances);
    for (size_t m = 0; m < sizeof MACHINES / sizeof *MACHINES; m++) {
      kith_table *other = unsorted_table(MACHINES[m].isa, MACHINES[m].threads, a, eps, distances);
      if (first && other)
        CHECK(same_table(first, other), "bytes on %s x %u, dim %u eps %g",
              MACHINES[m].isa ? MACHINES[m].isa : "best", MACHINES[m].threads, a->points.dim, eps);
      kith_table_destroy(other);
    }
    kith_table_destroy(first);
  }
}

static void check_streams(kith_context *ctx, const cloud *a, double eps) {
  const uint64_t BATCHES[] = {1, 2, 7, 64, a->points.n - 1, a->points.n, 1 << 20, 0};
  kith_join_options options = kith_join_options_init(eps);
  options.distances = 1;
  kith_table *table;
  CHECK(kith_join_table(ctx, &a->points, NULL, &options, &table, NULL) == KITH_OK, "table");
  for (size_t b = 0; b < sizeof BATCHES / sizeof *BATCHES; b++) {
    collected all = {0};
    kith_join_report report = kith_join_report_init();
    options.batch_rows = BATCHES[b];
    kith_status status = kith_join_stream(ctx, &a->points, NULL, &options, collect_batch, &all, &report);
    kith_table streamed = collected_table(&all);
    CHECK(status == KITH_OK && !all.broken && same_table(table, &streamed),
          "stream of %llu rows, dim %u eps %g", (unsigned long long)BATCHES[b], a->points.dim, eps);
    CHECK(!BATCHES[b] || all.largest_batch <= BATCHES[b], "batches of at most %llu rows",
          (unsigned long long)BATCHES[b]);
    CHECK(report.batches == all.batches && report.pairs == all.n_pairs, "report of a stream");
    collected_free(&all);
  }
  kith_table_destroy(table);
}

/* eps * eps overflows, and so may distances: then every pair belongs, however far the points are apart. */
static void check_everything(kith_context *ctx) {
  static const double EPS[] = {1e155, 1e160, 1e200, 1.7e308};
  static const double SCALES[] = {1, 1e153, 1e300, 8e307, 1.7e308};
  for (uint64_t n = 1; n <= 130; n += 43)
    for (int e = 0; e < 4; e++)
      for (int s = 0; s < 5; s++)
        for (int distances = 0; distances < 2; distances++) {
          cloud a = cloud_random(n, 2, KITH_F64, n);
          for (uint64_t i = 0; i < 2 * n; i++)
            cloud_set(&a, i / 2, (uint32_t)(i % 2),
                      (2 * cloud_get(&a, i / 2, (uint32_t)(i % 2)) - 1) * SCALES[s]);
          kith_join_options options = kith_join_options_init(EPS[e]);
          options.distances = distances;
          reference want = reference_join(&a.points, NULL, &options);
          kith_table *table = table_of(ctx, &a.points, NULL, options);
          uint64_t pairs = 0;
          kith_status status = kith_join_count(ctx, &a.points, NULL, &options, &pairs, NULL);
          CHECK(equals_reference(table, &want) && !status && pairs == want.n_pairs,
                "every pair: n %llu, eps %g, values up to %g", (unsigned long long)n, EPS[e], SCALES[s]);
          kith_table_destroy(table);
          reference_free(&want);
          cloud_free(&a);
        }
}

void test_answers(void) {
  kith_context *ctx = context_new(NULL, 2, 64 << 20);
  for (int s = 0; s < N_SETTINGS; s++) {
    cloud a = cloud_for(&SETTINGS[s]);
    double eps = SETTINGS[s].eps;
    check_symmetry(ctx, &a, eps);
    check_permutation(ctx, &a, eps);
    check_monotonicity(ctx, &a);
    check_split(ctx, &a, eps);
    check_translation(ctx, &a, eps);
    check_two_sets(ctx, &a, eps);
    check_consistency(ctx, &a, eps);
    check_same_bytes(&a, eps);
    check_streams(ctx, &a, eps);
    cloud_free(&a);
  }
  check_everything(ctx);
  kith_context_destroy(ctx);
}

/* ---- random joins against the plain double loop ---- */

/* Values of one scale: spread, or on a coarse lattice so that ties are common. */
static void fill_random(cloud *c, double scale, uint64_t *rng) {
  double levels = random_below(rng, 2) ? 0 : (double)(2 + random_below(rng, 20));
  double shift = random_below(rng, 3) ? 0 : 100 * random_unit(rng);
  for (uint64_t i = 0; i < c->points.n; i++)
    for (uint32_t d = 0; d < c->points.dim; d++) {
      double u = random_unit(rng);
      cloud_set(c, i, d, scale * (shift + (levels > 0 ? floor(u * levels) / levels : u)));
    }
}

/* The same values in another layout: columns first, rows with gaps, or backwards in both directions. */
static cloud relayout(cloud *c, uint64_t layout) {
  const kith_points *p = &c->points;
  int64_t width = p->dtype == KITH_F32 ? 4 : 8, n = (int64_t)p->n, dim = p->dim;
  cloud out = {.points = *p, .memory = calloc((size_t)((n + 1) * (dim + 3)), 8)};
  if (!out.memory)
    abort();
  char *data = out.memory;
  if (layout == 1) {
    out.points.row_stride = width;
    out.points.col_stride = width * n;
  } else if (layout == 2) {
    out.points.row_stride = width * (dim + 3);
  } else if (layout == 3) {
    out.points.row_stride = -width * dim;
    out.points.col_stride = -width;
    data += n > 0 ? width * (n * dim - 1) : 0;
  }
  out.points.data = data;
  for (uint64_t i = 0; i < p->n; i++)
    for (uint32_t d = 0; d < p->dim; d++)
      cloud_set(&out, i, d, cloud_get(c, i, d));
  cloud_free(c);
  return out;
}

static cloud random_cloud(uint32_t dim, double scale, uint64_t *rng) {
  cloud c = cloud_new(random_below(rng, 401) >> random_below(rng, 4), dim,
                      random_below(rng, 2) ? KITH_F32 : KITH_F64);
  fill_random(&c, scale, rng);
  return relayout(&c, random_below(rng, 4));
}

/* An eps that matters: the distance of some pair, so that it is a tie, or near one. */
static double random_eps(const cloud *a, const cloud *b, double scale, uint64_t *rng) {
  if (a->points.n == 0 || b->points.n == 0 || random_below(rng, 8) == 0)
    return scale * random_unit(rng);
  uint64_t i = random_below(rng, a->points.n), k = random_below(rng, b->points.n);
  double d2 = 0;
  for (uint32_t d = 0; d < a->points.dim; d++) {
    double t = cloud_get(a, i, d) - cloud_get(b, k, d);
    d2 += t * t;
  }
  return sqrt(d2) * (random_below(rng, 2) ? 1 : random_unit(rng));
}

static kith_join_options random_options(double eps, const cloud *a, bool one_set, uint64_t *rng) {
  kith_join_options options = kith_join_options_init(eps);
  uint64_t kind = one_set ? random_below(rng, 3) : 0;
  options.self_pairs = kind == 1;
  options.half = kind == 2;
  options.distances = (int)random_below(rng, 2);
  options.batch_rows = random_below(rng, 2) ? 1 + random_below(rng, 100) : 0;
  uint32_t most = a->points.dim < 8 ? a->points.dim : 8;
  options.index_dims = random_below(rng, 3) ? 0 : 1 + (uint32_t)random_below(rng, most);
  options.cell_side = random_below(rng, 3) ? 0 : 0.25 * pow(256, random_unit(rng));
  if (random_below(rng, 3) == 0) {
    options.algorithm = KITH_ALGORITHM_EGO;
    options.index_dims = 0;
    options.cell_side = 0;
  }
  return options;
}

static void check_join(kith_context *ctx, const cloud *a, const cloud *b, kith_join_options options,
                       unsigned number) {
  const kith_points *second = b == a ? NULL : &b->points;
  reference want = reference_join(&a->points, second, &options);
  uint64_t pairs = 0;
  kith_table *table = table_of(ctx, &a->points, second, options);
  CHECK(equals_reference(table, &want), "random join %u: table (dim %u, n %llu, eps %.17g, isa %s)", number,
        a->points.dim, (unsigned long long)a->points.n, options.eps, kith_isa(ctx));
  CHECK(kith_join_count(ctx, &a->points, second, &options, &pairs, NULL) == KITH_OK && pairs == want.n_pairs,
        "random join %u: count", number);
  collected all = {0};
  options.sorted = 1;
  kith_status status = kith_join_stream(ctx, &a->points, second, &options, collect_batch, &all, NULL);
  kith_table streamed = collected_table(&all);
  if (!options.distances)
    streamed.distances = NULL;
  CHECK(status == KITH_OK && equals_reference(&streamed, &want), "random join %u: stream", number);
  collected_free(&all);
  kith_table_destroy(table);
  reference_free(&want);
}

void test_random_joins(void) {
  enum { JOINS = 300 };
  static const char *const ISAS[] = {"scalar", "avx2", "avx512"};
  kith_context *contexts[3];
  for (uint32_t m = 0; m < 3; m++)
    contexts[m] = context_new(ISAS[m], m + 1, 64 << 20);
  for (unsigned number = 0; number < JOINS; number++) {
    uint64_t rng = number;
    double scale = pow(10, (double)random_below(&rng, 61) - 30);
    uint32_t dim = 1 + (uint32_t)random_below(&rng, 10);
    cloud a = random_cloud(dim, scale, &rng);
    cloud other = random_cloud(dim, scale, &rng);
    const cloud *b = random_below(&rng, 3) ? &a : &other;
    kith_join_options options = random_options(random_eps(&a, b, scale, &rng), &a, b == &a, &rng);
    kith_context *ctx = contexts[number % 3] ? contexts[number % 3] : contexts[0];
    check_join(ctx, &a, b, options, number);
    cloud_free(&a);
    cloud_free(&other);
  }
  for (int m = 0; m < 3; m++)
    kith_context_destroy(contexts[m]);
}

/* A coordinate: close to the faces of a box of side 1, on either side of them, or anywhere in it. */
static double place(double eps, uint64_t *rng) {
  if (random_below(rng, 2))
    return random_unit(rng);
  return (double)random_below(rng, 2) + eps * (random_unit(rng) - 0.5);
}

/* Every second point is as far from the one before as eps, up to the last digits, in some direction. */
static void fill_partners(cloud *c, double eps, uint64_t *rng) {
  uint32_t dim = c->points.dim;
  for (uint64_t i = 0; i < c->points.n; i++) {
    double direction[8];
    double square = 0;
    for (uint32_t d = 0; d < dim; d++) {
      direction[d] = random_unit(rng) - 0.5;
      square += direction[d] * direction[d];
    }
    double length = eps * (1 + 0x1p-52 * ((double)random_below(rng, 9) - 4)) / sqrt(square);
    for (uint32_t d = 0; d < dim; d++)
      cloud_set(c, i, d, i % 2 ? cloud_get(c, i - 1, d) + length * direction[d] : place(eps, rng));
  }
}

/* Two points at eps across a face, one of them just behind the border of a cell of eps / 4. The first point is
 * where cells begin; the last ones make the other dimension the wider one, so that borders are those of rows.
 * Cells are those of coordinates as they are, while queries may be rounded in the index. */
static cloud cloud_at_border(double eps, uint64_t *rng) {
  cloud c = cloud_new(9, 2, KITH_F64);
  uint32_t d = (uint32_t)random_below(rng, 2);
  double at = eps / 4 * (1 + 0x1p-16) * (double)(1 + random_below(rng, 3)) + random_unit(rng) * 0x1p-25;
  double along = 0.1 + 0.8 * random_unit(rng);
  cloud_set(&c, 1, d, at);
  cloud_set(&c, 1, 1 - d, along);
  cloud_set(&c, 2, d, at - eps * (1 - 0x1p-50 * (double)random_below(rng, 8)) + 1);
  cloud_set(&c, 2, 1 - d, along);
  for (uint64_t i = 3; i < 9; i++) {
    cloud_set(&c, i, d, 0.5);
    cloud_set(&c, i, 1 - d, (double)(i % 2) * 0.99);
  }
  return c;
}

static void check_borders(kith_context *ctx) {
  static const double box[] = {1, 1};
  for (unsigned number = 0; number < 300; number++) {
    uint64_t rng = number;
    double eps = 1 / (4 + 40 * random_unit(&rng));
    cloud c = cloud_at_border(eps, &rng);
    kith_join_options options = kith_join_options_init(eps);
    options.cell_side = 0.25;
    options.index_dims = 2;
    options.box = box;
    options.n_box = 2;
    check_join(ctx, &c, &c, options, number);
    cloud_free(&c);
  }
}

/* What float32 cannot tell, where coordinates are rounded to it. */
void test_pairs_at_eps(void) {
  static const double box[] = {1, 1, 1, 1, 1, 1, 1, 1};
  kith_context *ctx = context_new(NULL, 2, 64 << 20);
  for (unsigned number = 0; number < 126; number++) {
    uint64_t rng = number;
    cloud c = cloud_new(300, 2 + number % 7, KITH_F64);
    double eps = 0.3 * pow(1000, -random_unit(&rng));
    if (number % 4 == 1) /* about where coordinates are rounded no more */
      eps = 1 / (150 + 250 * random_unit(&rng));
    fill_partners(&c, eps, &rng);
    kith_join_options options = kith_join_options_init(eps);
    options.index_dims = number % 3 ? 0 : 1;
    if (number % 2 && c.points.dim <= 4) { /* the reference goes through all images */
      options.box = box;
      options.n_box = c.points.dim;
    }
    check_join(ctx, &c, &c, options, number);
    cloud_free(&c);
  }
  check_borders(ctx);
  kith_context_destroy(ctx);
}

/* ---- numbers at the ends of their range ---- */

static void check_with_all(const cloud *c, kith_join_options options, unsigned number) {
  static const char *const ISAS[] = {"scalar", "avx2", "avx512"};
  for (int m = 0; m < 3; m++) {
    kith_context *ctx = context_new(ISAS[m], 1, 64 << 20);
    if (ctx)
      check_join(ctx, c, c, options, number);
    kith_context_destroy(ctx);
  }
}

/* A point lies beyond the range of float32, along an axis that is open. */
static void check_far_point(unsigned number) {
  static const double box[] = {0, 1, 1, 1};
  uint64_t rng = number;
  uint32_t dim = 2 + (uint32_t)random_below(&rng, 3);
  cloud c = cloud_new(2 + random_below(&rng, 6), dim, KITH_F64);
  for (uint64_t i = 0; i < c.points.n; i++)
    for (uint32_t d = 0; d < dim; d++)
      cloud_set(&c, i, d, random_unit(&rng));
  cloud_set(&c, 0, 0, (random_below(&rng, 4) ? 1 : -1) * (random_below(&rng, 2) ? 1e39 : 1e200));
  double eps = random_below(&rng, 4) ? 0.05 + 0.4 * random_unit(&rng) : 0.5;
  kith_join_options options = kith_join_options_init(eps);
  options.box = box;
  options.n_box = dim;
  options.index_dims = random_below(&rng, 3) ? 0 : 1 + (uint32_t)random_below(&rng, dim);
  check_with_all(&c, options, number);
  cloud_free(&c);
}

/* Boxes with angles, of sides whose products have no place in a double. */
static void check_skewed_sizes(double size) {
  double box[] = {0.3 * size, 0, 0, 0.1 * size, size, 0, 0.02 * size, 0.3 * size, size};
  uint64_t rng = 1;
  cloud c = cloud_new(60, 3, KITH_F64);
  for (uint64_t i = 0; i < c.points.n; i++)
    for (uint32_t d = 0; d < 3; d++)
      cloud_set(&c, i, d, size * random_unit(&rng));
  kith_join_options options = kith_join_options_init(0.14 * size);
  options.box = box;
  options.n_box = 9;
  check_with_all(&c, options, 0);
  kith_context *ctx = context_new(NULL, 1, 64 << 20);
  uint64_t pairs;
  options.eps = 0.16 * size;
  CHECK(kith_join_count(ctx, &c.points, NULL, &options, &pairs, NULL) == KITH_ERR_ARGUMENT,
        "more than half of the height of a box of size %g", size);
  kith_context_destroy(ctx);
  cloud_free(&c);
}

/* Points so far apart that their differences overflow, and others, on both sides of where that begins, that are
 * neighbours. */
static void check_wide_sets(kith_metric metric, kith_algorithm algorithm) {
  double edge = DBL_MAX - 1e308;
  cloud c = cloud_new(40, 1, KITH_F64);
  for (uint64_t i = 0; i < c.points.n; i++)
    cloud_set(&c, i, 0, -1e308 + (double)i * 1e302);
  cloud_set(&c, 37, 0, 1.5e308);
  cloud_set(&c, 38, 0, edge - 3e299);
  cloud_set(&c, 39, 0, edge + 3e299);
  kith_join_options options = kith_join_options_init(1e300);
  options.metric = metric;
  options.algorithm = algorithm;
  check_with_all(&c, options, 0);
  cloud_free(&c);
}

void test_extremes(void) {
  for (unsigned number = 0; number < 300; number++)
    check_far_point(number);
  for (int power = -120; power <= 120; power += 30)
    check_skewed_sizes(pow(10, power));
  for (int metric = KITH_MANHATTAN; metric <= KITH_CHEBYSHEV; metric++)
    for (int algorithm = KITH_ALGORITHM_AUTO; algorithm <= KITH_ALGORITHM_EGO; algorithm++)
      check_wide_sets((kith_metric)metric, (kith_algorithm)algorithm);
}

/* ---- radii of their own ---- */

/* Most are small, a few are as large as the set: cells are made for the many. */
void test_radii(void) {
  static const double box[] = {1, 1, 1};
  for (unsigned number = 0; number < 40; number++) {
    uint64_t rng = number;
    cloud c = cloud_new(1500, 1 + number % 4, number % 2 ? KITH_F64 : KITH_F32);
    double *radii = malloc(c.points.n * sizeof *radii);
    if (!radii)
      abort();
    for (uint64_t i = 0; i < c.points.n; i++) {
      for (uint32_t d = 0; d < c.points.dim; d++)
        cloud_set(&c, i, d, random_unit(&rng));
      radii[i] = fmin(0.002 * pow(random_unit(&rng) + 1e-9, number % 3 ? -0.7 : -0.2), 0.49);
    }
    radii[random_below(&rng, c.points.n)] = number % 5 ? 0.49 : 0;
    kith_join_options options = kith_join_options_init(0);
    options.eps_of = radii;
    options.metric = number % 7 == 3 ? KITH_MANHATTAN : number % 7 == 5 ? KITH_CHEBYSHEV : KITH_EUCLIDEAN;
    if (options.metric == KITH_EUCLIDEAN && c.points.dim <= 3 && number % 4 < 2) {
      options.box = box;
      options.n_box = c.points.dim;
    }
    kith_context *ctx = context_new(NULL, 1 + number % 3, 64 << 20);
    check_join(ctx, &c, &c, options, number);
    kith_context_destroy(ctx);
    free(radii);
    cloud_free(&c);
  }
}

/* ---- large tables ---- */

/* Whether the rows of x, in any order, are those of y. */
static bool same_neighbors(const kith_table *x, const kith_table *y) {
  uint32_t *row_of = calloc(x->n_rows, sizeof *row_of); /* the last that has a neighbour, counted from 1 */
  bool same = row_of && x->n_pairs == y->n_pairs;
  for (uint64_t i = 0; same && i < x->n_rows; i++) {
    same = row_length(x, i) == row_length(y, i);
    for (uint64_t k = x->offsets[i]; same && k < x->offsets[i + 1]; k++) {
      uint32_t id = x->neighbors[k];
      same = id < x->n_rows && row_of[id] <= i; /* once */
      row_of[same ? id : 0] = (uint32_t)i + 1;
    }
    for (uint64_t k = y->offsets[i]; same && k < y->offsets[i + 1]; k++)
      same = row_of[y->neighbors[k]] == i + 1;
  }
  free(row_of);
  return same;
}

/* So many neighbours that rows are written past the caches, as they are found and by id; not so if there are
 * distances, which are written by other code. */
static void check_large_table(const char *isa, uint64_t n, uint32_t dim, double eps) {
  kith_context *ctx = context_new(isa, 2, UINT64_C(1) << 30);
  if (!ctx)
    return;
  uint64_t rng = 7;
  cloud c = cloud_new(n, dim, KITH_F32);
  for (uint64_t i = 0; i < n; i++)
    for (uint32_t d = 0; d < dim; d++)
      cloud_set(&c, i, d, random_unit(&rng));
  kith_join_options options = kith_join_options_init(eps);
  kith_table *found;
  if (kith_join_table(ctx, &c.points, NULL, &options, &found, NULL) != KITH_OK)
    abort();
  kith_table *by_id = table_of(ctx, &c.points, NULL, options);
  options.distances = 1;
  kith_table *with_distances = table_of(ctx, &c.points, NULL, options);
  CHECK(found->n_pairs * sizeof *found->neighbors >= 64 << 20, "%" PRIu64 " pairs are few", found->n_pairs);
  CHECK(same_neighbors(found, with_distances), "rows as they are found, %u dimensions", dim);
  CHECK(same_neighbors(by_id, with_distances), "rows by id, %u dimensions", dim);
  kith_table_destroy(found);
  kith_table_destroy(by_id);
  kith_table_destroy(with_distances);
  cloud_free(&c);
  kith_context_destroy(ctx);
}

void test_large_tables(void) {
  check_large_table("scalar", 4800, 2, 0.8);
  check_large_table("avx2", 4800, 2, 0.8);
  check_large_table("avx512", 4800, 2, 0.8);
  check_large_table(NULL, 12000, 3, 0.35);
  check_large_table(NULL, 60000, 6, 0.36); /* many tests a pair: rows are collected */
}

/* Few neighbours, and many tests for each: a table meets every pair once, a stream of batches both ways. Rows
 * are the same, byte for byte. */
static void check_sparse_table(kith_context *ctx, const cloud *a, kith_join_options options) {
  kith_table *table;
  collected all = {0};
  kith_join_report report = kith_join_report_init();
  if (kith_join_table(ctx, &a->points, NULL, &options, &table, &report) != KITH_OK)
    abort();
  options.batch_rows = a->points.n / 5;
  kith_status status = kith_join_stream(ctx, &a->points, NULL, &options, collect_batch, &all, NULL);
  kith_table streamed = collected_table(&all);
  streamed.distances = options.distances ? streamed.distances : NULL;
  CHECK(report.pairs > 0 && report.tested > 100 * report.pairs, "%" PRIu64 " tests are few", report.tested);
  CHECK(status == KITH_OK && !all.broken && same_table(table, &streamed),
        "sparse table, metric %d, algorithm %d, half %d, box %u", (int)options.metric, (int)options.algorithm,
        options.half, options.n_box);
  collected_free(&all);
  kith_table_destroy(table);
}

void test_sparse_tables(void) {
  static const double BOX[6] = {1, 1, 1, 1, 1, 1};
  static const double EPS[] = {[KITH_EUCLIDEAN] = 0.18, [KITH_MANHATTAN] = 0.34, [KITH_CHEBYSHEV] = 0.12};
  kith_context *ctx = context_new(NULL, 3, UINT64_C(1) << 30);
  for (int kind = 0; kind < 12; kind++) {
    uint64_t rng = (uint64_t)kind;
    cloud c = cloud_new(4000, 6, kind % 2 ? KITH_F64 : KITH_F32);
    for (uint64_t i = 0; i < c.points.n; i++)
      for (uint32_t d = 0; d < 6; d++)
        cloud_set(&c, i, d, random_unit(&rng));
    kith_metric metric = (kith_metric)(kind % 3);
    kith_join_options options = kith_join_options_init(EPS[metric]);
    options.metric = metric;
    options.half = kind / 3 == 1;
    options.distances = kind / 3 == 2;
    options.algorithm = kind / 3 == 3 ? KITH_ALGORITHM_EGO : KITH_ALGORITHM_GRID;
    check_sparse_table(ctx, &c, options);
    options.sorted = 1;
    check_sparse_table(ctx, &c, options);
    if (metric == KITH_EUCLIDEAN && options.algorithm == KITH_ALGORITHM_GRID) {
      options.box = BOX;
      options.n_box = 6;
      options.sorted = kind % 2;
      check_sparse_table(ctx, &c, options);
    }
    cloud_free(&c);
  }
  kith_context_destroy(ctx);
}
