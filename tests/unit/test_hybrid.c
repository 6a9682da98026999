/* Engines that share a join, and stall, fail and come back. */
#include "ops/join.h"

#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- an engine that cannot be relied on ------------------------------------------------------------------ */

/* Takes blocks, as a GPU does, and lets another engine do the work. */
typedef struct flaky {
  kith_engine base;
  kith_context *ctx;
  kith_engine *inner;
  kith_blocks blocks;   /* the caller's */
  pthread_mutex_t lock; /* of what follows */
  uint64_t rng;
  uint32_t fails;  /* one batch of so many is too large for its memory; 0: none */
  uint64_t breaks; /* at this batch it fails for good; 0: never */
  uint64_t batches;
} flaky;

static kith_status cut_flaky(kith_engine *engine, kith_blocks *blocks) {
  enum { SIZE = 4 }; /* enough blocks for the samples of fixed partitions */
  flaky *f = (flaky *)engine;
  uint32_t n = (engine->n_queries + SIZE - 1) / SIZE;
  kith_status status = kith_blocks_allocate(f->ctx, n, engine->n_queries, blocks);
  if (status)
    return status;
  for (uint32_t b = 0; b < n; b++)
    blocks->begin[b] = b * SIZE;
  blocks->begin[n] = engine->n_queries;
  memcpy(blocks->ids, f->inner->ids, engine->n_queries * sizeof *blocks->ids);
  f->blocks = *blocks;
  return KITH_OK;
}

static kith_status weigh_flaky(kith_engine *engine, kith_blocks *blocks) {
  flaky *f = (flaky *)engine;
  for (uint32_t b = 0; b < blocks->n; b++)
    blocks->candidates[b] = random_bits(&f->rng) % 100000; /* any order is right */
  return KITH_OK;
}

static kith_status run_flaky(kith_engine *engine, uint32_t lane, const kith_work *work, kith_tally *tally) {
  flaky *f = (flaky *)engine;
  pthread_mutex_lock(&f->lock);
  f->batches++;
  bool stalls = random_bits(&f->rng) % 8 == 0;
  bool fails = f->fails && work->n_blocks > 1 && random_bits(&f->rng) % f->fails == 0;
  bool breaks = f->breaks && f->batches >= f->breaks;
  pthread_mutex_unlock(&f->lock);
  if (stalls) {
    struct timespec stall = {.tv_nsec = 2000000};
    nanosleep(&stall, NULL);
  }
  uint32_t n = fails || breaks ? work->n_blocks / 2 : work->n_blocks; /* with half of the work done */
  for (uint32_t i = 0; i < n; i++) {
    kith_work piece = *work;
    piece.blocks = NULL;
    piece.begin = f->blocks.begin[work->blocks[i]];
    piece.end = f->blocks.begin[work->blocks[i] + 1];
    uint32_t list[64];
    if (work->one_sided) {
      for (uint32_t p = piece.begin; p < piece.end; p++)
        list[p - piece.begin] = p;
      piece.list = list;
      piece.end -= piece.begin;
      piece.begin = 0;
    }
    kith_status status = f->inner->run(f->inner, lane, &piece, tally);
    if (status)
      return status;
  }
  if (breaks)
    return kith_fail(f->ctx, KITH_ERR_UNSUPPORTED, "it is broken");
  return fails ? kith_fail(f->ctx, KITH_ERR_BUDGET, "it has no memory") : KITH_OK;
}

static void destroy_flaky(kith_engine *engine) {
  flaky *f = (flaky *)engine;
  kith_engine_destroy(f->inner);
  pthread_mutex_destroy(&f->lock);
  free(f);
}

static kith_engine *make_flaky(kith_context *ctx, kith_engine *inner, uint64_t seed, uint32_t fails,
                               uint64_t breaks) {
  flaky *f = malloc(sizeof *f);
  assert_non_null(f);
  *f = (flaky){.base = {.name = "flaky",
                        .lanes = 1,
                        .block_lanes = inner->lanes > 1 ? 2 : 1,
                        .n_queries = inner->n_queries,
                        .whole = true,
                        .run = run_flaky,
                        .cut = cut_flaky,
                        .weigh = weigh_flaky,
                        .destroy = destroy_flaky},
               .ctx = ctx,
               .inner = inner,
               .rng = seed,
               .fails = fails,
               .breaks = breaks};
  pthread_mutex_init(&f->lock, NULL);
  return &f->base;
}

/* ---- joins ----------------------------------------------------------------------------------------------- */

enum { N = 4000 };

/* Everything that a join answers. */
typedef struct answers {
  uint64_t count;
  uint64_t offsets[N + 1];
  uint32_t *neighbors;
  double *distances;
} answers;

/* The rows as they are collected are those that are filled. */
static void assert_collected(kith_context *ctx, kith_engine *engine, const answers *expected) {
  static uint64_t degrees[N];
  uint64_t capacity = 4 * expected->offsets[N]; /* batches that fail leave gaps */
  kith_pool pool = {.ids = malloc(capacity * sizeof(uint32_t)), .capacity = capacity};
  kith_work work = {.operation = KITH_DO_COLLECT, .end = engine->n_queries, .end_row = UINT64_MAX};
  kith_tally tally = {0};
  work.degrees = degrees;
  work.pool = &pool;
  assert_int_equal(kith_schedule_run(ctx, engine, &work, &tally), KITH_OK);
  assert_false(atomic_load(&pool.overflow));
  assert_int_equal(tally.pairs, expected->offsets[N]);
  for (uint32_t i = 0; i < N; i++) {
    uint64_t length = expected->offsets[i + 1] - expected->offsets[i];
    assert_int_equal(degrees[i] & UINT32_MAX, length);
    assert_memory_equal(pool.ids + (degrees[i] >> 32), expected->neighbors + expected->offsets[i],
                        length * sizeof(uint32_t));
  }
  free(pool.ids);
}

static void ask(kith_context *ctx, kith_engine *engine, answers *out) {
  kith_tally tally = {0};
  kith_work work = {.operation = KITH_DO_COUNT, .end = engine->n_queries, .end_row = UINT64_MAX};
  assert_int_equal(kith_schedule_run(ctx, engine, &work, &tally), KITH_OK);
  out->count = tally.pairs;
  memset(out->offsets, 0, sizeof out->offsets);
  work.operation = KITH_DO_DEGREES;
  work.degrees = out->offsets + 1;
  tally = (kith_tally){0};
  assert_int_equal(kith_schedule_run(ctx, engine, &work, &tally), KITH_OK);
  for (uint32_t i = 1; i <= N; i++)
    out->offsets[i] += out->offsets[i - 1];
  assert_int_equal(tally.pairs, out->offsets[N]);
  out->neighbors = malloc(out->offsets[N] * sizeof *out->neighbors + 1);
  out->distances = malloc(out->offsets[N] * sizeof *out->distances + 1);
  work.operation = KITH_DO_FILL;
  work.degrees = NULL;
  work.offsets = out->offsets;
  work.neighbors = out->neighbors;
  work.distances = out->distances;
  tally = (kith_tally){0};
  assert_int_equal(kith_schedule_run(ctx, engine, &work, &tally), KITH_OK);
  assert_int_equal(tally.pairs, out->offsets[N]);
  assert_collected(ctx, engine, out);
}

static void release(answers *a) {
  free(a->neighbors);
  free(a->distances);
}

static void assert_same(const answers *a, const answers *b) {
  assert_int_equal(a->count, b->count);
  assert_memory_equal(a->offsets, b->offsets, sizeof a->offsets);
  assert_memory_equal(a->neighbors, b->neighbors, a->offsets[N] * sizeof *a->neighbors);
  assert_memory_equal(a->distances, b->distances, a->offsets[N] * sizeof *a->distances);
}

typedef struct setup {
  kith_context *ctx;
  float values[3 * N];
  kith_points points;
  kith_join_options options;
  kith_join joins[4]; /* whose engines are taken from them */
  uint32_t n_joins;
} setup;

static void open_setup(setup *s, uint32_t threads) {
  uint64_t rng = 3;
  s->ctx = open_context(threads);
  for (uint32_t i = 0; i < 3 * N; i++)
    s->values[i] = (float)random_unit(&rng);
  for (uint32_t i = 0; i < N; i++) /* some in one place */
    if (i % 9 == 0)
      s->values[3 * i] = s->values[3 * i + 1] = s->values[3 * i + 2] = 0.25F;
  s->points = kith_points_f32(s->values, N, 3);
  s->options = kith_join_options_init(0.08);
  s->options.sorted = 1;
  s->options.distances = 1;
  s->n_joins = 0;
}

/* An engine of the CPU; with another grid, if that is asked for. */
static kith_engine *take_engine(setup *s, uint32_t index_dims) {
  kith_join *j = &s->joins[s->n_joins++];
  kith_join_options options = s->options;
  options.index_dims = index_dims;
  assert_int_equal(kith_join_prepare(j, s->ctx, &s->points, NULL, &options), KITH_OK);
  kith_engine *engine = j->engine;
  j->engine = NULL;
  return engine;
}

static void close_setup(setup *s) {
  for (uint32_t i = 0; i < s->n_joins; i++)
    kith_join_release(&s->joins[i], KITH_OK, NULL);
  kith_context_destroy(s->ctx);
}

static kith_member member(kith_engine *engine, kith_end end, const char *name) {
  kith_member m = {.engine = engine, .end = end};
  snprintf(m.name, sizeof m.name, "%s", name);
  return m;
}

/* A member that comes later. */
typedef struct arrival {
  setup *s;
  kith_engine *engine; /* whom it brings */
  bool fails, cancels;
  int made;
} arrival;

static kith_status arrive(void *user, kith_engine **out) {
  arrival *a = user;
  a->made++;
  if (a->fails)
    return kith_fail(a->s->ctx, KITH_ERR_BUDGET, "there is no room for it");
  *out = a->engine;
  a->engine = NULL;
  if (a->cancels)
    kith_cancel(a->s->ctx);
  return kith_check_cancel(a->s->ctx);
}

/* A flaky engine in front, the CPU behind it with a grid of its own; all partitions, several seeds. */
static void answers_do_not_depend_on_who_answers(void **state) {
  (void)state;
  static setup s;
  open_setup(&s, 3);
  static answers expected;
  kith_engine *alone = take_engine(&s, 0);
  ask(s.ctx, alone, &expected);
  kith_engine_destroy(alone);
  assert_true(expected.offsets[N] > N);
  close_setup(&s);
  uint32_t broken = 0;
  for (uint64_t seed = 0; seed < 30 || (broken == 0 && seed < 300);
       seed++) { /* who breaks must get to it first */
    open_setup(&s, 1 + seed % 4);
    s.options.self_pairs = 0;
    kith_hybrid_spec spec = {.n_rows = N, .partition = (kith_partition)(seed % 3)};
    uint64_t breaks = seed % 5 == 0 ? 1 + seed / 5 : 0;
    spec.members[spec.n_members++] =
        member(make_flaky(s.ctx, take_engine(&s, 2), seed, 3, breaks), KITH_HEAVY_END, "flaky");
    uint32_t index_dims = seed % 2 ? 1 : seed % 4 ? 3 : 2; /* 2: the same order */
    arrival late = {.s = &s, .engine = take_engine(&s, index_dims)};
    bool comes_later = index_dims == 2 && spec.partition == KITH_PARTITION_DYNAMIC;
    kith_member *cpu = &spec.members[spec.n_members++];
    *cpu = member(comes_later ? NULL : late.engine, KITH_LIGHT_END, "cpu");
    cpu->make = arrive;
    cpu->user = &late;
    cpu->make_seconds = 1e-4 * (double)(seed % 5);
    kith_engine *hybrid;
    assert_int_equal(kith_engine_hybrid_create(s.ctx, &spec, &hybrid), KITH_OK);
    static answers found;
    ask(s.ctx, hybrid, &found);
    assert_same(&found, &expected);
    release(&found);
    static kith_join_report report;
    report = kith_join_report_init();
    kith_hybrid_describe(hybrid, &report);
    assert_int_equal(report.n_engines, 2);
    assert_int_equal(report.engines[0].queries + report.engines[1].queries, 4 * N);
    assert_true(breaks || !report.engines[0].failure[0]);
    broken += report.engines[0].failure[0] != 0;
    assert_true(report.imbalance >= 0 && report.imbalance <= 1);
    kith_engine_destroy(hybrid);
    if (comes_later)
      kith_engine_destroy(late.engine); /* if it did not come */
    close_setup(&s);
  }
  assert_true(broken > 0);
  release(&expected);
}

static void one_member_answers_alone(void **state) {
  (void)state;
  static setup s;
  static answers expected;
  static answers found;
  open_setup(&s, 4);
  kith_engine *alone = take_engine(&s, 0);
  ask(s.ctx, alone, &expected);
  kith_hybrid_spec spec = {.n_rows = N, .n_members = 1};
  spec.members[0] = member(make_flaky(s.ctx, alone, 1, 0, 0), KITH_LIGHT_END, "one");
  kith_engine *hybrid;
  assert_int_equal(kith_engine_hybrid_create(s.ctx, &spec, &hybrid), KITH_OK);
  ask(s.ctx, hybrid, &found);
  assert_same(&found, &expected);
  kith_engine_destroy(hybrid);
  release(&expected);
  release(&found);
  close_setup(&s);
}

static void all_engines_gone_is_an_error(void **state) {
  (void)state;
  static setup s;
  open_setup(&s, 2);
  kith_hybrid_spec spec = {.n_rows = N, .n_members = 2};
  spec.members[0] = member(make_flaky(s.ctx, take_engine(&s, 0), 1, 0, 1), KITH_HEAVY_END, "one");
  kith_engine *second = make_flaky(s.ctx, take_engine(&s, 0), 1, 0, 1);
  spec.members[1] = member(second, KITH_LIGHT_END, "two");
  kith_engine *hybrid;
  assert_int_equal(kith_engine_hybrid_create(s.ctx, &spec, &hybrid), KITH_OK);
  kith_tally tally = {0};
  kith_work work = {.operation = KITH_DO_COUNT, .end = hybrid->n_queries, .end_row = UINT64_MAX};
  assert_int_equal(kith_schedule_run(s.ctx, hybrid, &work, &tally), KITH_ERR_UNSUPPORTED);
  assert_non_null(strstr(kith_message(s.ctx), "all engines have failed"));
  assert_non_null(strstr(kith_message(s.ctx), "it is broken"));
  kith_engine_destroy(hybrid);
  close_setup(&s);
}

/* In builds with faults: as KITH_FAULT asks for. */
static void a_fault_that_is_asked_for_comes(void **state) {
  (void)state;
  static setup s;
  static answers expected;
  static answers found;
  setenv("KITH_FAULT", "one:batch=1", 1);
  if (!kith_fault_wanted("one", 1))
    skip();
  assert_false(kith_fault_wanted("one", 2));
  assert_false(kith_fault_wanted("two", 1));
  open_setup(&s, 2);
  kith_engine *cpu = take_engine(&s, 0);
  ask(s.ctx, cpu, &expected);
  kith_hybrid_spec spec = {.n_rows = N, .n_members = 2};
  spec.members[0] = member(make_flaky(s.ctx, take_engine(&s, 0), 1, 0, 0), KITH_HEAVY_END, "one");
  spec.members[1] = member(cpu, KITH_LIGHT_END, "cpu");
  kith_engine *hybrid;
  assert_int_equal(kith_engine_hybrid_create(s.ctx, &spec, &hybrid), KITH_OK);
  static kith_join_report report;
  uint64_t rounds = 0;
  do { /* until the first member was quick enough to get a batch */
    ask(s.ctx, hybrid, &found);
    assert_same(&found, &expected);
    release(&found);
    report = kith_join_report_init();
    kith_hybrid_describe(hybrid, &report);
    rounds++;
  } while (!report.engines[0].failure[0] && rounds < 100);
  assert_non_null(strstr(report.engines[0].failure, "a fault was asked for"));
  assert_int_equal(report.engines[0].queries + report.engines[1].queries, rounds * 4 * N);
  kith_engine_destroy(hybrid);
  release(&expected);
  close_setup(&s);
  unsetenv("KITH_FAULT");
}

/* ---- members that come later ----------------------------------------------------------------------------- */

typedef struct arrival_case {
  uint64_t breaks;        /* the flaky engine, at this batch; 0: never */
  double weighs, seconds; /* how long it is said to weigh blocks, and how long the CPU takes to come */
  uint32_t index_dims;    /* 2: the order of the blocks */
  bool fails;
  int made;
  const char *failure; /* of the CPU */
} arrival_case;

/* A flaky engine, and the CPU, which comes later. */
static void ask_with_arrival(arrival *a, const arrival_case *c, const answers *expected,
                             kith_join_report *report) {
  setup *s = a->s;
  kith_hybrid_spec spec = {.n_rows = N, .n_members = 2};
  spec.members[0] = member(make_flaky(s->ctx, take_engine(s, 2), 5, 0, c->breaks), KITH_LIGHT_END, "flaky");
  spec.members[0].engine->weigh_seconds = c->weighs;
  spec.members[1] = member(NULL, KITH_HEAVY_END, "cpu");
  spec.members[1].make = arrive;
  spec.members[1].user = a;
  spec.members[1].make_seconds = c->seconds;
  kith_engine *hybrid;
  static answers found;
  assert_int_equal(kith_engine_hybrid_create(s->ctx, &spec, &hybrid), KITH_OK);
  assert_int_equal(a->made, c->weighs > 0); /* before the others begin, or later */
  ask(s->ctx, hybrid, &found);
  assert_same(&found, expected);
  release(&found);
  *report = kith_join_report_init();
  kith_hybrid_describe(hybrid, report);
  assert_int_equal(report->n_engines, 2);
  assert_int_equal(report->engines[0].queries + report->engines[1].queries, 4 * N);
  kith_engine_destroy(hybrid);
  kith_engine_destroy(a->engine); /* if it was not wanted */
}

static void who_comes_later_shares(void **state) {
  (void)state;
  const double SOON = 0, NEVER = 1e9;
  static const arrival_case cases[] = {
      {.breaks = 0, .seconds = SOON, .index_dims = 2, .made = 1},
      {.breaks = 1, .seconds = SOON, .index_dims = 2, .made = 1},
      {.breaks = 1, .seconds = NEVER, .index_dims = 2, .made = 1}, /* nobody else is left */
      {.breaks = 4, .seconds = NEVER, .index_dims = 2, .made = 1},
      {.breaks = 0, .seconds = NEVER, .index_dims = 2, .made = 0},
      {.breaks = 0, .seconds = SOON, .index_dims = 1, .made = 1, .failure = "order of the queries"},
      {.breaks = 0, .seconds = SOON, .index_dims = 2, .fails = true, .made = 1, .failure = "no room for it"},
      {.breaks = 0, .weighs = NEVER, .seconds = NEVER, .index_dims = 2, .made = 1},
      {.breaks = 1, .weighs = NEVER, .seconds = NEVER, .index_dims = 2, .made = 1},
      {.weighs = 1, .seconds = SOON, .index_dims = 1, .made = 1, .failure = "order of the queries"},
      {.weighs = 1, .seconds = SOON, .index_dims = 2, .fails = true, .made = 1, .failure = "no room for it"},
  };
  static setup s;
  static answers expected;
  static kith_join_report report;
  open_setup(&s, 3);
  kith_engine *alone = take_engine(&s, 0);
  ask(s.ctx, alone, &expected);
  kith_engine_destroy(alone);
  close_setup(&s);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    open_setup(&s, 3);
    arrival a = {.s = &s, .engine = take_engine(&s, cases[i].index_dims), .fails = cases[i].fails};
    ask_with_arrival(&a, &cases[i], &expected, &report);
    assert_int_equal(a.made, cases[i].made);
    if (cases[i].failure)
      assert_non_null(strstr(report.engines[1].failure, cases[i].failure));
    else
      assert_int_equal(report.engines[1].failure[0], 0);
    if (cases[i].breaks == 1)
      assert_int_equal(report.engines[0].queries, 0);
    close_setup(&s);
  }
  release(&expected);
}

/* Somebody cancels while the CPU is made beside an engine that weighs: nothing is shared any more. */
static void cancelling_ends_an_arrival(void **state) {
  (void)state;
  static setup s;
  open_setup(&s, 3);
  arrival a = {.s = &s, .engine = take_engine(&s, 2), .cancels = true};
  kith_hybrid_spec spec = {.n_rows = N, .n_members = 2};
  spec.members[0] = member(make_flaky(s.ctx, take_engine(&s, 2), 5, 0, 0), KITH_LIGHT_END, "flaky");
  spec.members[0].engine->weigh_seconds = 1;
  spec.members[1] = member(NULL, KITH_HEAVY_END, "cpu");
  spec.members[1].make = arrive;
  spec.members[1].user = &a;
  kith_engine *hybrid;
  assert_int_equal(kith_engine_hybrid_create(s.ctx, &spec, &hybrid), KITH_ERR_CANCELLED);
  assert_null(hybrid);
  assert_int_equal(a.made, 1);
  close_setup(&s);
}

/* ---- engines that take their time ------------------------------------------------------------------------ */

/* Takes blocks, and so long for each candidate. */
typedef struct slow {
  kith_engine base;
  kith_context *ctx;
  kith_engine *inner;
  kith_blocks blocks; /* the caller's */
  double candidate_seconds;
} slow;

static kith_status cut_slow(kith_engine *engine, kith_blocks *blocks) {
  enum { SIZE = 20 };
  slow *s = (slow *)engine;
  uint32_t n = (engine->n_queries + SIZE - 1) / SIZE;
  assert_int_equal(kith_blocks_allocate(s->ctx, n, engine->n_queries, blocks), KITH_OK);
  for (uint32_t b = 0; b < n; b++) {
    blocks->begin[b] = b * SIZE;
    blocks->candidates[b] = UINT64_C(100000) * (b + 1);
  }
  blocks->begin[n] = engine->n_queries;
  memcpy(blocks->ids, s->inner->ids, engine->n_queries * sizeof *blocks->ids);
  s->blocks = *blocks;
  return KITH_OK;
}

static kith_status run_slow(kith_engine *engine, uint32_t lane, const kith_work *work, kith_tally *tally) {
  const slow *s = (const slow *)engine;
  (void)lane;
  double seconds = 0;
  for (uint32_t i = 0; i < work->n_blocks; i++)
    seconds += s->candidate_seconds * (double)s->blocks.candidates[work->blocks[i]];
  struct timespec pause = {.tv_nsec = (long)(1e9 * seconds)};
  nanosleep(&pause, NULL);
  tally->pairs++;
  return KITH_OK;
}

static void destroy_slow(kith_engine *engine) {
  kith_engine_destroy(((slow *)engine)->inner);
  free(engine);
}

static kith_engine *make_slow(setup *s, double candidate_seconds) {
  slow *made = malloc(sizeof *made);
  kith_engine *inner = take_engine(s, 2);
  assert_non_null(made);
  *made = (slow){.base = {.name = "slow",
                          .lanes = 2,
                          .block_lanes = 2,
                          .n_queries = inner->n_queries,
                          .ids = inner->ids,
                          .run = run_slow,
                          .cut = cut_slow,
                          .destroy = destroy_slow},
                 .ctx = s->ctx,
                 .inner = inner,
                 .candidate_seconds = candidate_seconds};
  return &made->base;
}

/* Of two engines, the one that is four times as fast does about four times as much. */
static void parts_follow_speeds(void **state) {
  (void)state;
  static setup s;
  static kith_join_report report;
  double part = 0;
  for (int round = 0; round < 20 && !(part > 0.65 && part < 0.95); round++) { /* the machine may be busy */
    open_setup(&s, 2);
    kith_hybrid_spec spec = {.n_rows = N, .n_members = 2};
    spec.members[0] = member(make_slow(&s, 1e-10), KITH_LIGHT_END, "fast");
    spec.members[1] = member(make_slow(&s, 4e-10), KITH_HEAVY_END, "slow");
    kith_engine *hybrid;
    assert_int_equal(kith_engine_hybrid_create(s.ctx, &spec, &hybrid), KITH_OK);
    kith_tally tally = {0};
    kith_work work = {.operation = KITH_DO_COUNT, .end = hybrid->n_queries, .end_row = UINT64_MAX};
    assert_int_equal(kith_schedule_run(s.ctx, hybrid, &work, &tally), KITH_OK);
    report = kith_join_report_init();
    kith_hybrid_describe(hybrid, &report);
    assert_int_equal(report.engines[0].queries + report.engines[1].queries, N);
    double all = (double)(report.engines[0].candidates + report.engines[1].candidates);
    part = (double)report.engines[0].candidates / all;
    kith_engine_destroy(hybrid);
    close_setup(&s);
  }
  assert_true(part > 0.65 && part < 0.95);
}

static void cancelling_ends_a_shared_join(void **state) {
  (void)state;
  static setup s;
  open_setup(&s, 2);
  kith_hybrid_spec spec = {.n_rows = N, .n_members = 2};
  spec.members[0] = member(make_flaky(s.ctx, take_engine(&s, 0), 1, 0, 0), KITH_HEAVY_END, "one");
  spec.members[1] = member(take_engine(&s, 0), KITH_LIGHT_END, "cpu");
  kith_engine *hybrid;
  assert_int_equal(kith_engine_hybrid_create(s.ctx, &spec, &hybrid), KITH_OK);
  kith_cancel(s.ctx);
  kith_tally tally = {0};
  kith_work work = {.operation = KITH_DO_COUNT, .end = hybrid->n_queries, .end_row = UINT64_MAX};
  assert_int_equal(kith_schedule_run(s.ctx, hybrid, &work, &tally), KITH_ERR_CANCELLED);
  kith_engine_destroy(hybrid);
  close_setup(&s);
}

/* Every allocation fails once: a status, and nothing is left. */
static void failing_allocations_leave_nothing(void **state) {
  (void)state;
  static setup s;
  bool made = false;
  for (uint64_t nth = 1; !made; nth++) {
    open_setup(&s, 2);
    kith_hybrid_spec spec = {.n_rows = N, .n_members = 2};
    spec.members[0] = member(make_flaky(s.ctx, take_engine(&s, 0), 1, 0, 0), KITH_HEAVY_END, "one");
    spec.members[1] = member(take_engine(&s, 1), KITH_LIGHT_END, "cpu");
    kith_engine *hybrid;
    kith_memory_fail_nth(nth);
    kith_status status = kith_engine_hybrid_create(s.ctx, &spec, &hybrid);
    kith_memory_fail_nth(0);
    made = status == KITH_OK;
    assert_true(made == (hybrid != NULL));
    assert_true(made || kith_message(s.ctx)[0]);
    kith_engine_destroy(hybrid);
    for (uint32_t i = 0; i < s.n_joins; i++)
      kith_join_release(&s.joins[i], KITH_OK, NULL);
    assert_int_equal(atomic_load(&s.ctx->memory.used), 0);
    kith_context_destroy(s.ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_do_not_depend_on_who_answers),
      cmocka_unit_test(one_member_answers_alone),
      cmocka_unit_test(all_engines_gone_is_an_error),
      cmocka_unit_test(a_fault_that_is_asked_for_comes),
      cmocka_unit_test(who_comes_later_shares),
      cmocka_unit_test(cancelling_ends_an_arrival),
      cmocka_unit_test(parts_follow_speeds),
      cmocka_unit_test(cancelling_ends_a_shared_join),
      cmocka_unit_test(failing_allocations_leave_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
