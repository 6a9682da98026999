/* Every request to the system fails once: blocks of memory, maps, files, threads.
 *
 * Every case of a long list runs again and again, from a new context on, while its first request is refused,
 * then its second, and so on, until there are no more. Each time it must end with the right answer all the same
 * (fewer threads, a slower way) or with an honest status and a sentence; nothing may be left in the folder of
 * the output; the context must give the right answer afterwards; and all that the library was given must have
 * come back when the context is gone. Prints "N passed, N failed". */
#include "properties/support.h"
#include "refusals.h"
#include "scratch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- sets of points ---- */

typedef enum set_name { PLANE, PLANE_TOO, SPACE, PLACES, WIDE, CROWD, MANY, BROKEN, N_SETS } set_name;

static cloud sets[N_SETS];
static double radii[150];

static void make_sets(void) {
  sets[PLANE] = cloud_random(150, 2, KITH_F32, 1);
  sets[PLANE_TOO] = cloud_random(80, 2, KITH_F64, 2);
  sets[SPACE] = cloud_random(150, 3, KITH_F64, 3);
  sets[PLACES] = cloud_random(150, 2, KITH_F64, 4); /* longitudes and latitudes within a degree */
  sets[WIDE] = cloud_random(120, 40, KITH_F32, 5);
  sets[CROWD] = cloud_new(400, 2, KITH_F32); /* at one place */
  sets[MANY] = cloud_random(20000, 2, KITH_F32, 6);
  sets[BROKEN] = cloud_random(150, 2, KITH_F32, 7);
  cloud_set(&sets[BROKEN], 70, 1, (double)NAN);
  for (size_t i = 0; i < sizeof radii / sizeof *radii; i++)
    radii[i] = (double)(i % 7) / 50;
}

/* ---- cases ---- */

typedef enum call { COUNT, DEGREES, TABLE, STREAM, WRITE, PLAN, STATS, OPEN } call;

typedef struct test_case {
  const char *name;
  call call;
  set_name a, b; /* b is PLANE where there is one set */
  kith_join_options options;
  kith_what what;
  const char *path;    /* to write or to open */
  const char *columns; /* to open */
} test_case;

static const double BOX[3] = {1, 1, 1}, TILTED[6] = {1, 1, 1, 80, 90, 70};

static const test_case CASES[] = {
    {"count", COUNT, PLANE, .options = {.eps = 0.1}},
    {"count of two sets", COUNT, PLANE, PLANE_TOO, .options = {.eps = 0.1}},
    {"count of many", COUNT, MANY, .options = {.eps = 0.01}},
    {"count of a crowd", COUNT, CROWD, .options = {.eps = 0.01}},
    {"count in 40 dimensions", COUNT, WIDE, .options = {.eps = 2.2}},
    {"count of all with all", COUNT, PLANE, .options = {.eps = 0.1, .brute = 1}},
    {"count in a box", COUNT, SPACE, .options = {.eps = 0.1, .box = BOX, .n_box = 3}},
    {"count in a tilted box", COUNT, SPACE, .options = {.eps = 0.1, .box = TILTED, .n_box = 6}},
    {"count, manhattan", COUNT, PLANE, .options = {.eps = 0.1, .metric = KITH_MANHATTAN}},
    {"count, chebyshev", COUNT, PLANE, .options = {.eps = 0.1, .metric = KITH_CHEBYSHEV}},
    {"count, cosine", COUNT, SPACE, PLANE, .options = {.eps = 0.1, .metric = KITH_COSINE, .skip_invalid = 1}},
    {"count, angular", COUNT, WIDE, .options = {.eps = 30, .metric = KITH_ANGULAR}},
    {"count, haversine", COUNT, PLACES, .options = {.eps = 9, .metric = KITH_HAVERSINE, .radius = 6371}},
    {"count, radii", COUNT, PLANE, .options = {.eps_of = radii}},
    {"count, invalid rows", COUNT, BROKEN, .options = {.eps = 0.1, .skip_invalid = 1}},
    {"degrees", DEGREES, PLANE, .options = {.eps = 0.1}},
    {"degrees of all with all", DEGREES, WIDE, .options = {.eps = 2.2, .brute = 1}},
    {"table", TABLE, PLANE, .options = {.eps = 0.1}},
    {"table of few pairs", TABLE, MANY, .options = {.eps = 0.001}},
    {"table of two sets", TABLE, PLANE, PLANE_TOO, .options = {.eps = 0.1, .sorted = 1}},
    {"table, half", TABLE, PLANE, .options = {.eps = 0.1, .half = 1, .distances = 1}},
    {"table, with itself", TABLE, PLANE, .options = {.eps = 0.1, .self_pairs = 1}},
    {"table in 40 dimensions", TABLE, WIDE, .options = {.eps = 2.2, .distances = 1}},
    {"table, haversine", TABLE, PLACES, .options = {.eps = 0.1, .metric = KITH_HAVERSINE, .distances = 1}},
    {"table in a tilted box", TABLE, SPACE, .options = {.eps = 0.1, .box = TILTED, .n_box = 6, .distances = 1}},
    {"stream", STREAM, PLANE, .options = {.eps = 0.1, .batch_rows = 20}},
    {"stream of few pairs", STREAM, MANY, .options = {.eps = 0.001}},
    {"stream of all with all", STREAM, WIDE, .options = {.eps = 2.2, .distances = 1, .batch_rows = 50}},
    {"degrees.npy", WRITE, PLANE, .options = {.eps = 0.1}, .what = KITH_DEGREES, .path = "out/d.npy"},
    {"neighbors.npz", WRITE, PLANE, .options = {.eps = 0.1}, .what = KITH_NEIGHBORS, .path = "out/n.npz"},
    {"neighbors.npz with distances", WRITE, PLANE, .options = {.eps = 0.1, .distances = 1, .batch_rows = 20},
     .what = KITH_NEIGHBORS, .path = "out/n.npz"},
    {"pairs.npy", WRITE, PLANE, .options = {.eps = 0.1}, .what = KITH_PAIRS, .path = "out/p.npy"},
    {"pairs.csv", WRITE, PLANE, PLANE_TOO, .options = {.eps = 0.1, .distances = 1}, .what = KITH_PAIRS,
     .path = "out/p.csv"},
    {"pairs.tsv", WRITE, PLANE, .options = {.eps = 0.1, .half = 1}, .what = KITH_PAIRS, .path = "out/p.tsv"},
    {"pairs.txt", WRITE, WIDE, .options = {.eps = 2.2}, .what = KITH_PAIRS, .path = "out/p.txt"},
    {"plan of a count", PLAN, PLANE, .options = {.eps = 0.1}},
    {"plan of a table", PLAN, WIDE, .options = {.eps = 2.2}, .what = KITH_NEIGHBORS},
    {"statistics", STATS, .a = BROKEN},
    {"open csv", OPEN, .path = KITH_TEST_FILES "/points.csv", .columns = "ra,dec"},
    {"open npy", OPEN, .path = KITH_TEST_FILES "/points.npy"},
    {"open npy of other bytes", OPEN, .path = KITH_TEST_FILES "/swapped.npy"},
    {"open fbin", OPEN, .path = KITH_TEST_FILES "/points.fbin"},
    {"open gro", OPEN, .path = KITH_TEST_FILES "/points.gro[1]"},
    {"open xyz", OPEN, .path = KITH_TEST_FILES "/points.xyz[-1]"},
    {"open hdf5", OPEN, .path = KITH_TEST_FILES "/points.h5:/positions"},
    {"open a group of hdf5", OPEN, .path = KITH_TEST_FILES "/points.h5:/stars"},
    {"open fits", OPEN, .path = KITH_TEST_FILES "/points.fits[STARS]", .columns = "ra,pos"},
    {"open standard input", OPEN, .path = "-", .columns = "1,2"},
};
enum { N_CASES = sizeof CASES / sizeof *CASES };

/* ---- running one ---- */

typedef struct outcome {
  kith_status status;
  uint64_t answer; /* a digest of all that was found */
} outcome;

/* The same for the same pairs in any order. */
static void add_row(uint64_t *answer, uint64_t row, const uint32_t *ids, const double *distances, uint64_t n) {
  for (uint64_t k = 0; k < n; k++) {
    double distance = distances ? distances[k] : 0;
    uint64_t pair = digest_bytes(row, &ids[k], sizeof ids[k]);
    *answer += digest_bytes(pair, &distance, sizeof distance);
  }
}

static int add_batch(void *answer, const kith_batch *batch) {
  for (uint64_t r = 0; r < batch->n_rows; r++) {
    uint64_t at = batch->offsets[r];
    add_row(answer, batch->first_row + r, batch->neighbors + at,
            batch->distances ? batch->distances + at : NULL, batch->offsets[r + 1] - at);
  }
  return 0;
}

static outcome run_table(kith_context *ctx, const test_case *c, const kith_points *b) {
  kith_table *table;
  outcome o = {.status = kith_join_table(ctx, &sets[c->a].points, b, &c->options, &table, NULL)};
  CHECK(!o.status == !!table, "%s: a table comes with success, and only then", c->name);
  if (table)
    add_batch(&o.answer, &(kith_batch){.n_rows = table->n_rows,
                                       .offsets = table->offsets,
                                       .neighbors = table->neighbors,
                                       .distances = table->distances});
  kith_table_destroy(table);
  return o;
}

static outcome run_write(kith_context *ctx, const test_case *c, const kith_points *b) {
  outcome o = {.status = kith_join_write(ctx, &sets[c->a].points, b, &c->options, c->what, c->path, NULL)};
  CHECK(scratch_entries() == (o.status == KITH_OK), "%s: a file comes with success, and only then", c->name);
  o.answer = digest_file(c->path);
  scratch_sweep();
  return o;
}

static outcome run_stats(kith_context *ctx, const kith_points *points) {
  kith_column_stats stats[64] = {{0}};
  uint64_t invalid = 0;
  outcome o = {.status = kith_points_stats(ctx, points, stats, &invalid)};
  o.answer = digest_bytes(invalid, stats, sizeof stats);
  return o;
}

static outcome run_open(kith_context *ctx, const test_case *c) {
  kith_file_options options = kith_file_options_init();
  options.columns = c->columns;
  kith_file *file;
  lseek(STDIN_FILENO, 0, SEEK_SET);
  outcome o = {.status = kith_file_open(ctx, c->path, &options, &file)};
  CHECK(!o.status == !!file, "%s: a file comes with success, and only then", c->name);
  if (file)
    o = run_stats(ctx, kith_file_points(file));
  kith_file_close(file);
  return o;
}

static outcome run(kith_context *ctx, const test_case *c) {
  static uint64_t degrees[512];
  const kith_points *a = &sets[c->a].points, *b = c->b == PLANE ? NULL : &sets[c->b].points;
  kith_plan plan = kith_plan_init();
  outcome o = {0};
  switch (c->call) {
  case COUNT:
    o.status = kith_join_count(ctx, a, b, &c->options, &o.answer, NULL);
    return o;
  case DEGREES:
    o.status = kith_join_degrees(ctx, a, b, &c->options, degrees, NULL);
    o.answer = digest_bytes(0, degrees, a->n * sizeof *degrees);
    return o;
  case TABLE:
    return run_table(ctx, c, b);
  case STREAM:
    o.status = kith_join_stream(ctx, a, b, &c->options, add_batch, &o.answer, NULL);
    return o;
  case WRITE:
    return run_write(ctx, c, b);
  case PLAN:
    o.status = kith_plan_join(ctx, a, b, &c->options, c->what, 0, &plan);
    o.answer = plan.n_candidates; /* estimates depend on the time there was */
    return o;
  case STATS:
    return run_stats(ctx, a);
  case OPEN:
    return run_open(ctx, c);
  }
  return o;
}

/* ---- every request in turn ---- */

static kith_context *make_context(void) {
  kith_context_options options = kith_context_options_init();
  options.threads = 2;
  options.memory_bytes = 64 << 20;
  options.engine = "cpu";
  kith_context *ctx;
  kith_status status = kith_context_create(&options, &ctx);
  CHECK(status == (ctx ? KITH_OK : KITH_ERR_MEMORY), "a context comes with success, and only then");
  return ctx;
}

static void check_outcome(kith_context *ctx, const test_case *c, outcome o, uint64_t right, unsigned n) {
  if (o.status == KITH_OK)
    CHECK(o.answer == right, "%s, request %u refused: a wrong answer", c->name, n);
  else
    CHECK((o.status == KITH_ERR_MEMORY || o.status == KITH_ERR_IO) && *kith_message(ctx),
          "%s, request %u refused: %s \"%s\"", c->name, n, kith_status_name(o.status), kith_message(ctx));
}

/* From the context on, with request n refused; false once there was no request n. */
static bool refuse_one(const test_case *c, uint64_t right, unsigned n) {
  holdings before = holdings_now();
  refuse_nth(n);
  kith_context *ctx = make_context();
  outcome o = ctx ? run(ctx, c) : (outcome){0};
  bool refused = has_refused();
  refuse_nth(0);
  if (ctx) {
    check_outcome(ctx, c, o, right, n);
    o = run(ctx, c);
    CHECK(o.status == KITH_OK && o.answer == right, "%s, after request %u was refused: %s \"%s\"", c->name, n,
          kith_status_name(o.status), kith_message(ctx));
  }
  kith_context_destroy(ctx);
  CHECK(holdings_equal(before, holdings_now()), "%s, request %u refused: something was not given back", c->name,
        n);
  return refused;
}

static void check_case(const test_case *c) {
  enum { MOST = 2000 };
  kith_context *ctx = make_context();
  outcome good = run(ctx, c);
  CHECK(good.status == KITH_OK && good.answer, "%s: %s", c->name, kith_message(ctx));
  kith_context_destroy(ctx);
  unsigned n = 1;
  while (n < MOST && refuse_one(c, good.answer, n))
    n++;
  CHECK(n > 2 && n < MOST, "%s: %u requests", c->name, n);
}

/* A reader that this build lacks has nothing to refuse. */
static bool is_built(const test_case *c) {
  const char *formats = kith_file_formats();
  return c->call != OPEN || !((strstr(c->path, ".h5") && !strstr(formats, "hdf5")) ||
                              (strstr(c->path, ".fits") && !strstr(formats, "fits")));
}

int main(void) {
  if (!freopen(KITH_TEST_FILES "/points.csv", "r", stdin))
    return 1;
  scratch_enter();
  make_sets();
  for (int i = 0; i < N_CASES; i++) {
    test_case c = CASES[i];
    c.options.struct_size = sizeof c.options;
    c.options.sorted |= c.call == WRITE; /* the bytes are compared */
    if (is_built(&c))
      check_case(&c);
  }
  for (int i = 0; i < N_SETS; i++)
    cloud_free(&sets[i]);
  scratch_leave();
  printf("%u passed, %u failed\n", checks_passed, checks_failed);
  return checks_failed != 0;
}
