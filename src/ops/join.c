/* The join: the public calls of sections 3 to 5 of kith.h, each a short walk along the data path.
 *
 *   prepare   check -> look at the points -> choose the grid -> index -> engine
 *   then      count | degrees | table | stream | plan */
#include "base/clock.h"
#include "plan/estimate.h"
#include "plan/plan.h"
#include "schedule/schedule.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything about one join between prepare() and release(). */
typedef struct join {
  kith_context *ctx;
  kith_join_options options;
  const kith_points *a;
  const kith_points *b; /* a itself when a set is joined with itself */
  bool one_set;
  kith_predicate predicate;
  double *box; /* min[dim], max[dim] of both sets, then of b alone */
  uint64_t invalid[2];
  kith_choice choice;
  kith_grid grid;
  kith_stencil *stencil;
  kith_index index_a, index_b; /* index_a is unused when a set is joined with itself */
  kith_task task;
  kith_engine *engine;
  kith_tally tally;
  kith_join_report report;
} join;

static bool with_itself(const join *j) { return j->one_set; }

kith_join_options kith_join_options_init(double eps) {
  return (kith_join_options){.struct_size = sizeof(kith_join_options), .eps = eps};
}

kith_join_report kith_join_report_init(void) {
  return (kith_join_report){.struct_size = sizeof(kith_join_report)};
}

kith_plan kith_plan_init(void) { return (kith_plan){.struct_size = sizeof(kith_plan)}; }

/* ---- prepare ------------------------------------------------------------------------------------------- */

static kith_status check_options(join *j, const kith_join_options *options) {
  kith_context *ctx = j->ctx;
  kith_join_options *opt = &j->options;
  if (!options || options->struct_size < offsetof(kith_join_options, self_pairs))
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "the options are not set up: begin with kith_join_options_init(eps)");
  *opt = kith_join_options_init(0);
  memcpy(opt, options, options->struct_size < sizeof *opt ? options->struct_size : sizeof *opt);
  if (!isfinite(opt->eps) || opt->eps < 0)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "eps is %g; it must be a finite number, 0 or greater", opt->eps);
  if (opt->half && opt->self_pairs)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "half keeps only i < j, so it cannot go with self pairs");
  if ((opt->half || opt->self_pairs) && !with_itself(j))
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "half and self pairs have a meaning for one set only, not for two");
  if (opt->index_dims > KITH_GRID_DIMS || opt->index_dims > j->a->dim)
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "index_dims is %u; it must be at most %u, and at most the dimension", opt->index_dims,
                     KITH_GRID_DIMS);
  if (opt->cell_side != 0 && !(opt->cell_side >= 0.25 && opt->cell_side <= 64))
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "cell_side is %g; it must lie between 0.25 and 64",
                     opt->cell_side);
  return KITH_OK;
}

static kith_status check_points(join *j) {
  kith_status status = kith_points_check(j->ctx, j->a, "a");
  if (!status && !with_itself(j))
    status = kith_points_check(j->ctx, j->b, "b");
  if (!status && j->a->dim != j->b->dim)
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT, "the sets differ in dimension: a has %u columns, b has %u",
                     j->a->dim, j->b->dim);
  return status;
}

/* Finds the box of one set and refuses invalid rows unless they are to be skipped. */
static kith_status look_at(join *j, const kith_points *points, const char *name, double *min, double *max,
                           uint64_t *invalid) {
  kith_points_summary summary = {.min = min, .max = max};
  kith_points_summarize(j->ctx, points, &summary);
  *invalid = summary.invalid_rows;
  if (summary.invalid_rows == 0 || j->options.skip_invalid)
    return KITH_OK;
  return kith_fail(
      j->ctx, KITH_ERR_POINTS,
      "%s: row %llu, column %u is %g (counted from 0; invalid rows in all: %llu); remove such rows, or "
      "skip them",
      name, (unsigned long long)summary.first_invalid_row, summary.first_invalid_col,
      kith_points_get(points, summary.first_invalid_row, summary.first_invalid_col),
      (unsigned long long)summary.invalid_rows);
}

static kith_status look_at_points(join *j) {
  uint32_t dim = j->a->dim;
  j->box = kith_alloc(&j->ctx->memory, 4 * (uint64_t)dim * sizeof(double));
  if (!j->box)
    return kith_fail_memory(j->ctx, 4 * (uint64_t)dim * sizeof(double), "the box around the points");
  double *min = j->box;
  double *max = min + dim;
  kith_status status = look_at(j, j->a, "a", min, max, &j->invalid[0]);
  if (!status && !with_itself(j)) {
    double *min_b = max + dim;
    double *max_b = min_b + dim;
    status = look_at(j, j->b, "b", min_b, max_b, &j->invalid[1]);
    for (uint32_t c = 0; c < dim; c++) {
      min[c] = fmin(min[c], min_b[c]);
      max[c] = fmax(max[c], max_b[c]);
    }
  }
  for (uint32_t c = 0; c < dim; c++)
    if (!(min[c] <= max[c])) /* no valid row at all */
      min[c] = max[c] = 0;
  return status;
}

static kith_status choose(join *j) {
  kith_question question = {.queries = j->a,
                            .candidates = j->b,
                            .predicate = &j->predicate,
                            .min = j->box,
                            .max = j->box + j->a->dim,
                            .index_dims = j->options.index_dims,
                            .row_side = j->options.cell_side};
  kith_status status = kith_choose_grid(j->ctx, &question, &j->choice);
  if (status)
    return status;
  j->stencil = kith_alloc(&j->ctx->memory, sizeof *j->stencil);
  if (!j->stencil)
    return kith_fail_memory(j->ctx, sizeof *j->stencil, "the stencil");
  kith_grid_make(&j->grid, &j->choice.spec, &j->predicate);
  while (!kith_stencil_make(j->stencil, &j->grid, &j->choice.spec, &j->predicate)) {
    j->choice.spec.k--;
    kith_grid_make(&j->grid, &j->choice.spec, &j->predicate);
  }
  return KITH_OK;
}

static kith_dtype index_dtype(const join *j) {
  return j->a->dtype == KITH_F32 && j->b->dtype == KITH_F32 ? KITH_F32 : KITH_F64;
}

static kith_status build_indexes(join *j) {
  kith_dtype dtype = index_dtype(j);
  kith_stage_begin(j->ctx, "index", 0.05);
  if (with_itself(j))
    return kith_index_build(j->ctx, j->a, &j->grid, j->invalid[0], dtype, &j->index_b);
  kith_status status = kith_index_build(j->ctx, j->a, &j->grid, j->invalid[0], dtype, &j->index_a);
  return status ? status : kith_index_build(j->ctx, j->b, &j->grid, j->invalid[1], dtype, &j->index_b);
}

static kith_status create_engine(join *j) {
  j->task = (kith_task){.predicate = &j->predicate,
                        .stencil = j->stencil,
                        .queries = with_itself(j) ? &j->index_b : &j->index_a,
                        .candidates = &j->index_b,
                        .half = j->options.half,
                        .sorted = j->options.sorted,
                        .drop_self = with_itself(j) && !j->options.self_pairs};
  return kith_engine_cpu_create(j->ctx, &j->task, &j->engine);
}

static kith_status prepare(join *j, kith_context *ctx, const kith_points *a, const kith_points *b,
                           const kith_join_options *options) {
  *j = (join){.ctx = ctx, .a = a, .b = b ? b : a, .one_set = !b, .report = kith_join_report_init()};
  kith_call_begin(ctx);
  kith_status status = check_points(j);
  if (!status)
    status = check_options(j, options);
  if (status)
    return status;
  j->predicate = kith_predicate_make(j->options.eps, a->dim);
  double began = kith_seconds();
  if ((status = look_at_points(j)) || (status = choose(j)))
    return status;
  double planned = kith_seconds();
  if ((status = build_indexes(j)) || (status = create_engine(j)))
    return status;
  j->report.seconds_plan = planned - began;
  j->report.seconds_index = kith_seconds() - planned;
  j->report.cells = j->index_b.n_cells;
  return kith_check_cancel(ctx);
}

/* The index is not needed any more: makes room for the result. */
static void release_index(join *j) {
  kith_engine_destroy(j->engine);
  j->engine = NULL;
  kith_index_destroy(&j->index_a);
  kith_index_destroy(&j->index_b);
}

/* Releases everything and, on success, hands the report to the caller. */
static kith_status release(join *j, kith_status status, kith_join_report *report) {
  kith_join_report *mine = &j->report;
  mine->tested = j->tally.tested;
  mine->inside = j->tally.inside;
  mine->invalid_rows = j->invalid[0] + j->invalid[1];
  mine->index_dims = j->grid.k;
  mine->cell_side = j->grid.k > 1 ? j->grid.side[1] : j->grid.side[0];
  mine->peak_bytes = kith_peak_bytes(j->ctx);
  if (report && !status) {
    size_t size = report->struct_size < sizeof *mine ? report->struct_size : sizeof *mine;
    mine->struct_size = size;
    memcpy(report, mine, size);
  }
  release_index(j);
  kith_free(j->stencil);
  kith_free(j->choice.box);
  kith_free(j->box);
  if (status == KITH_ERR_CANCELLED)
    atomic_store(&j->ctx->cancel, false);
  return status;
}

/* ---- run ----------------------------------------------------------------------------------------------- */

static kith_work all_queries(const join *j, kith_operation operation) {
  return (kith_work){.operation = operation, .end = j->task.queries->n, .end_row = UINT64_MAX};
}

static kith_status run(join *j, const kith_work *work) {
  double began = kith_seconds();
  kith_status status = kith_schedule_run(j->ctx, j->engine, work, &j->tally);
  j->report.seconds_join += kith_seconds() - began;
  return status;
}

/* The pairs in the result, from what KITH_DO_COUNT counts: both orders, and every point with itself. */
static uint64_t pairs_of_count(const join *j, uint64_t counted) {
  uint64_t self = j->task.drop_self ? j->task.queries->n : 0;
  return j->options.half ? (counted - self) / 2 : counted - self;
}

kith_status kith_join_count(kith_context *ctx, const kith_points *a, const kith_points *b,
                            const kith_join_options *options, uint64_t *pairs, kith_join_report *report) {
  join j;
  kith_status status = prepare(&j, ctx, a, b, options);
  if (status)
    return release(&j, status, report);
  kith_stage_begin(ctx, "join", 0.95);
  kith_work work = all_queries(&j, KITH_DO_COUNT);
  if (!(status = run(&j, &work))) {
    *pairs = pairs_of_count(&j, j.tally.pairs);
    j.report.pairs = *pairs;
    j.report.batches = 1;
  }
  return release(&j, status, report);
}

/* degrees[id] for every row; skipped rows have none. */
static kith_status find_degrees(join *j, uint64_t *degrees, double span) {
  memset(degrees, 0, j->a->n * sizeof *degrees);
  kith_stage_begin(j->ctx, "count", span);
  kith_work work = all_queries(j, KITH_DO_DEGREES);
  work.degrees = degrees;
  kith_status status = run(j, &work);
  j->report.pairs = j->tally.pairs;
  return status;
}

kith_status kith_join_degrees(kith_context *ctx, const kith_points *a, const kith_points *b,
                              const kith_join_options *options, uint64_t *degrees, kith_join_report *report) {
  join j;
  kith_status status = prepare(&j, ctx, a, b, options);
  if (!status)
    status = find_degrees(&j, degrees, 0.95);
  j.report.batches = 1;
  return release(&j, status, report);
}

/* offsets[n + 1] of the table: degrees, summed in place. */
static kith_status find_offsets(join *j, uint64_t *offsets) {
  offsets[0] = 0;
  kith_status status = find_degrees(j, offsets + 1, 0.15);
  for (uint64_t i = 1; i <= j->a->n; i++)
    offsets[i] += offsets[i - 1];
  j->tally.pairs = 0;
  return status;
}

/* ---- table --------------------------------------------------------------------------------------------- */

static double pair_bytes(const join *j) { return j->options.distances ? 12 : 4; }

static double pairs_of_estimate(const join *j, double counted) {
  double self = j->task.drop_self ? j->task.queries->n : 0;
  return fmax(j->options.half ? (counted - self) / 2 : counted - self, 0);
}

static kith_status refuse_table(join *j, double pairs, const char *how) {
  double bytes = pairs * pair_bytes(j) + 8 * (double)j->a->n;
  return kith_fail(
      j->ctx, KITH_ERR_BUDGET,
      "the neighbour table would hold %s%.4g pairs in %.1f GiB, but only %.1f GiB of memory are free; write "
      "it to a file or stream it, ask for counts, or choose a smaller eps",
      how, pairs, bytes / (1 << 30), (double)kith_system_memory_free() / (1 << 30));
}

/* Refuses a table that surely will not fit, before looking for its pairs. */
static kith_status check_table_fits(join *j, const kith_estimate *estimate) {
  double least = pairs_of_estimate(j, estimate->pairs - 3 * estimate->error);
  if (least * pair_bytes(j) <= (double)kith_system_memory_free())
    return KITH_OK;
  return refuse_table(j, pairs_of_estimate(j, estimate->pairs), "about ");
}

static kith_status allocate_table(join *j, kith_table *table, uint64_t pairs) {
  if ((double)pairs * pair_bytes(j) > (double)kith_system_memory_free())
    return refuse_table(j, (double)pairs, "");
  kith_memory *memory = &j->ctx->memory;
  table->n_rows = j->a->n;
  table->n_pairs = pairs;
  table->neighbors = kith_alloc_result(memory, pairs * sizeof(uint32_t));
  if (j->options.distances)
    table->distances = kith_alloc_result(memory, pairs * sizeof(double));
  if (!table->neighbors || (j->options.distances && !table->distances))
    return kith_fail(j->ctx, KITH_ERR_MEMORY,
                     "out of memory: the system refused %.1f MiB for the neighbour table",
                     (double)pairs * pair_bytes(j) / (1 << 20));
  return KITH_OK;
}

/* Counts, then fills: needs no memory but the table's. */
static kith_status fill_table(join *j, kith_table *table, uint64_t *offsets) {
  kith_status status = find_offsets(j, offsets);
  if (status || (status = allocate_table(j, table, offsets[j->a->n])))
    return status;
  kith_work work = all_queries(j, KITH_DO_FILL);
  work.offsets = offsets;
  work.neighbors = (uint32_t *)table->neighbors;
  work.distances = (double *)table->distances;
  kith_stage_begin(j->ctx, "join", 0.8);
  return run(j, &work);
}

/* Moves collected rows to their places: offsets[1..] holds (place in the pool << 32 | degree). */
static void place_rows(const join *j, const kith_pool *pool, uint32_t *neighbors, uint64_t *offsets) {
  offsets[0] = 0;
  for (uint64_t i = 0; i < j->a->n; i++) {
    uint64_t place = offsets[i + 1] >> 32;
    uint64_t degree = offsets[i + 1] & UINT32_MAX;
    memcpy(neighbors + offsets[i], pool->ids + place, degree * sizeof *neighbors);
    offsets[i + 1] = offsets[i] + degree;
  }
}

/* Looks for the pairs once, collecting them in a pool of the given capacity. *done is false if they did not
 * fit after all. */
static kith_status collect_table(join *j, kith_table *table, uint64_t *offsets, uint64_t capacity, bool *done) {
  kith_pool pool = {.ids = kith_alloc(&j->ctx->memory, capacity * sizeof(uint32_t)), .capacity = capacity};
  if (!pool.ids)
    return KITH_OK; /* no room to be quick: count and fill */
  memset(offsets, 0, (j->a->n + 1) * sizeof *offsets);
  kith_work work = all_queries(j, KITH_DO_COLLECT);
  work.degrees = offsets + 1;
  work.pool = &pool;
  kith_stage_begin(j->ctx, "join", 0.95);
  kith_status status = run(j, &work);
  *done = !status && !atomic_load(&pool.overflow);
  if (*done)
    release_index(j);
  if (*done && !(status = allocate_table(j, table, atomic_load(&pool.used)))) {
    place_rows(j, &pool, (uint32_t *)table->neighbors, offsets);
    j->report.pairs = table->n_pairs;
  }
  kith_free(pool.ids);
  return status;
}

/* The pool for collecting, or 0: only where neighbours are few, so that the pool is small beside the points. */
static uint64_t pool_capacity(const join *j, const kith_estimate *estimate) {
  double likely = pairs_of_estimate(j, estimate->pairs + 4 * estimate->error) + 4096;
  double capacity = 1.1 * likely;
  bool few = likely < 2 * (double)j->a->n && capacity < UINT32_MAX;
  return few && !j->options.distances ? (uint64_t)capacity : 0;
}

static kith_status make_table(join *j, kith_table *table) {
  uint64_t *offsets = kith_alloc_result(&j->ctx->memory, (j->a->n + 1) * sizeof(uint64_t));
  table->offsets = offsets;
  if (!offsets)
    return kith_fail(j->ctx, KITH_ERR_MEMORY, "out of memory for the offsets of %llu rows",
                     (unsigned long long)j->a->n);
  kith_estimate estimate;
  kith_status status = kith_estimate_run(j->ctx, j->engine, &j->task, &estimate);
  if (status || (status = check_table_fits(j, &estimate)))
    return status;
  uint64_t capacity = pool_capacity(j, &estimate);
  bool done = false;
  if (capacity)
    status = collect_table(j, table, offsets, capacity, &done);
  if (status || done)
    return status;
  j->tally = (kith_tally){0};
  return fill_table(j, table, offsets);
}

kith_status kith_join_table(kith_context *ctx, const kith_points *a, const kith_points *b,
                            const kith_join_options *options, kith_table **out, kith_join_report *report) {
  join j;
  *out = NULL;
  kith_table *table = NULL;
  kith_status status = prepare(&j, ctx, a, b, options);
  if (!status && !(table = kith_alloc_result(&ctx->memory, sizeof *table)))
    status = kith_fail(ctx, KITH_ERR_MEMORY, "out of memory");
  if (!status) {
    *table = (kith_table){0};
    status = make_table(&j, table);
    j.report.batches = 1;
  }
  status = release(&j, status, report);
  if (status) {
    kith_table_destroy(table);
    return status;
  }
  kith_release_result((void *)table->offsets);
  kith_release_result((void *)table->neighbors);
  kith_release_result((void *)table->distances);
  kith_release_result(table);
  *out = table;
  return KITH_OK;
}

void kith_table_destroy(kith_table *table) {
  if (!table)
    return;
  kith_free((void *)table->offsets);
  kith_free((void *)table->neighbors);
  kith_free((void *)table->distances);
  kith_free(table);
}

/* ---- stream -------------------------------------------------------------------------------------------- */

static kith_status stream_to(join *j, kith_sink *sink) {
  uint64_t bytes = (j->a->n + 1) * sizeof(uint64_t);
  uint64_t *offsets = kith_alloc(&j->ctx->memory, bytes);
  if (!offsets)
    return kith_fail_memory(j->ctx, bytes, "the offsets of the rows");
  kith_status status = find_offsets(j, offsets);
  kith_shape shape = {
      .n_rows = j->a->n, .n_cols = j->b->n, .n_pairs = offsets[j->a->n], .distances = j->options.distances};
  kith_stream stream = {.engine = j->engine,
                        .sink = sink,
                        .work = all_queries(j, KITH_DO_FILL),
                        .offsets = offsets,
                        .n_rows = j->a->n,
                        .batch_rows = j->options.batch_rows,
                        .distances = j->options.distances};
  kith_stream_report streamed = {0};
  double began = kith_seconds();
  if (!status)
    status = sink->begin(sink, &shape);
  if (!status)
    status = kith_schedule_stream(j->ctx, &stream, &j->tally, &streamed);
  j->report.batches = streamed.batches;
  j->report.seconds_write = streamed.sink_seconds;
  j->report.seconds_join += kith_seconds() - began - streamed.sink_seconds;
  kith_free(offsets);
  return status;
}

/* Runs a join into a sink, which is destroyed in the end. */
static kith_status join_into(kith_context *ctx, const kith_points *a, const kith_points *b,
                             const kith_join_options *options, kith_sink *sink, kith_join_report *report) {
  join j;
  kith_status status = prepare(&j, ctx, a, b, options);
  if (!status)
    status = stream_to(&j, sink);
  kith_sink_destroy(sink);
  return release(&j, status, report);
}

kith_status kith_join_stream(kith_context *ctx, const kith_points *a, const kith_points *b,
                             const kith_join_options *options, kith_batch_fn take, void *user,
                             kith_join_report *report) {
  kith_call_begin(ctx);
  kith_sink *sink;
  kith_status status = kith_sink_callback(ctx, take, user, &sink);
  return status ? status : join_into(ctx, a, b, options, sink, report);
}

static kith_status write_degrees(kith_context *ctx, const kith_points *a, const kith_points *b,
                                 const kith_join_options *options, const char *path, kith_join_report *report) {
  join j;
  uint64_t *degrees = NULL;
  kith_status status = prepare(&j, ctx, a, b, options);
  if (!status && !(degrees = kith_alloc(&ctx->memory, a->n * sizeof *degrees)))
    status = kith_fail_memory(ctx, a->n * sizeof *degrees, "one count per point");
  if (!status)
    status = find_degrees(&j, degrees, 0.9);
  double began = kith_seconds();
  if (!status)
    status = kith_write_counts(ctx, path, degrees, a->n);
  j.report.seconds_write = kith_seconds() - began;
  j.report.batches = 1;
  kith_free(degrees);
  return release(&j, status, report);
}

kith_status kith_join_write(kith_context *ctx, const kith_points *a, const kith_points *b,
                            const kith_join_options *options, kith_what what, const char *path,
                            kith_join_report *report) {
  kith_call_begin(ctx);
  kith_status status = kith_check_output(ctx, what, path);
  if (status)
    return status;
  if (what == KITH_DEGREES)
    return write_degrees(ctx, a, b, options, path, report);
  kith_sink *sink;
  status = kith_sink_file(ctx, what, path, &sink);
  return status ? status : join_into(ctx, a, b, options, sink, report);
}

/* ---- plan ---------------------------------------------------------------------------------------------- */

static uint64_t result_bytes(const join *j, kith_what what, double pairs) {
  if (what == KITH_COUNT)
    return sizeof(uint64_t);
  if (what == KITH_DEGREES)
    return j->a->n * sizeof(uint64_t);
  if (what == KITH_PAIRS)
    return (uint64_t)(pairs * (j->options.distances ? 24 : 8));
  return (uint64_t)(pairs * pair_bytes(j)) + (j->a->n + 1) * sizeof(uint64_t);
}

/* Seconds on this machine: the sample's count, again for the fill, and the bytes written at about 1 GB/s. */
static double predict_seconds(const join *j, kith_what what, const kith_estimate *estimate, uint64_t bytes) {
  double base = j->report.seconds_plan + j->report.seconds_index;
  if (what == KITH_COUNT)
    return base + estimate->seconds;
  double passes = with_itself(j) ? 2 * estimate->seconds : estimate->seconds;
  return what == KITH_DEGREES ? base + passes : base + 2.5 * passes + (double)bytes * 1e-9;
}

static void describe_grid(const join *j, kith_plan *plan) {
  plan->n_queries = j->a->n;
  plan->n_candidates = j->b->n;
  plan->dim = j->a->dim;
  plan->index_dims = j->grid.k;
  memcpy(plan->dims, j->grid.dims, j->grid.k * sizeof *plan->dims);
  plan->cell_side = j->grid.k > 1 ? j->grid.side[1] : j->grid.side[0];
  plan->cell_width = j->grid.side[0];
  plan->cells = j->index_b.n_cells;
  plan->rows = j->index_b.n_rows;
  plan->runs = j->stencil->n_steps;
  plan->engine = j->engine->name;
  plan->isa = kith_isa(j->ctx);
  plan->threads = j->ctx->threads;
  plan->kernel = j->predicate.everything                             ? "everything"
                 : index_dtype(j) == KITH_F32 && j->predicate.filter ? "filter"
                                                                     : "double";
}

static void describe_memory(const join *j, kith_what what, int streamed, kith_plan *plan) {
  bool table = what == KITH_NEIGHBORS || what == KITH_PAIRS;
  plan->index_bytes = atomic_load(&j->ctx->memory.used);
  plan->result_bytes = result_bytes(j, what, plan->pairs);
  plan->budget_bytes = j->ctx->memory.limit;
  plan->batches = 1;
  plan->fits = 1;
  if (!table)
    return;
  plan->work_bytes = (j->a->n + 1) * sizeof(uint64_t);
  if (!streamed) {
    plan->fits = plan->result_bytes <= kith_system_memory_free();
    return;
  }
  uint64_t per_batch = kith_stream_pairs_per_batch(j->ctx, (uint64_t)plan->pairs, 1, j->options.distances);
  plan->fits = per_batch > 0;
  plan->work_bytes += 2 * per_batch * (uint64_t)pair_bytes(j);
  plan->batches = per_batch ? (uint64_t)ceil(plan->pairs / (double)per_batch) : 0;
  plan->batches += plan->batches == 0;
}

static void explain_kernel(const join *j, kith_plan *plan) {
  size_t used = strlen(plan->why);
  const char *why = "Every pair is tested by the definition in double.\n";
  if (j->predicate.everything)
    why = "eps squared exceeds every double: all pairs belong, none is tested.\n";
  else if (strcmp(plan->kernel, "filter") == 0)
    why = "Pairs are tested in float32; those within rounding of eps are settled in double.\n";
  snprintf(plan->why + used, sizeof plan->why - used, "%s", why);
}

kith_status kith_plan_join(kith_context *ctx, const kith_points *a, const kith_points *b,
                           const kith_join_options *options, kith_what what, int streamed, kith_plan *out) {
  join j;
  kith_plan plan = kith_plan_init();
  kith_estimate estimate = {0};
  kith_status status = prepare(&j, ctx, a, b, options);
  if (!status)
    status = kith_estimate_run(ctx, j.engine, &j.task, &estimate);
  if (!status) {
    describe_grid(&j, &plan);
    plan.pairs = pairs_of_estimate(&j, estimate.pairs);
    plan.pairs_error = j.options.half ? estimate.error / 2 : estimate.error;
    double passes = what == KITH_COUNT || !with_itself(&j) ? 1 : 2;
    plan.candidates = estimate.tested * passes;
    plan.inside = estimate.inside * passes;
    describe_memory(&j, what, streamed, &plan);
    plan.seconds = predict_seconds(&j, what, &estimate, plan.result_bytes);
    memcpy(plan.why, j.choice.why, sizeof plan.why);
    explain_kernel(&j, &plan);
    plan.struct_size = out->struct_size < sizeof plan ? out->struct_size : sizeof plan;
    memcpy(out, &plan, plan.struct_size);
  }
  return release(&j, status, NULL);
}
