/* The join: the public calls of sections 3 and 4 of kith.h, each a short walk along the data path. */
#include "ops/join.h"

#include "base/clock.h"
#include "sink/output.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- run ----------------------------------------------------------------------------------------------- */

kith_status kith_join_run(kith_join *j, const kith_work *work) {
  double began = kith_seconds();
  kith_status status = kith_schedule_run(j->ctx, j->engine, work, &j->tally);
  j->report.seconds_join += kith_seconds() - began;
  return status;
}

/* The same as kith_join_pairs_of_estimate, to the last pair. */
static uint64_t pairs_of_count(const kith_join *j, uint64_t counted) {
  uint64_t self = kith_join_drops_self(j) ? j->engine->n_queries : 0;
  return j->options.half ? (counted - self) / 2 : counted - self;
}

static kith_status count_pairs(kith_join *j, uint64_t *pairs) {
  kith_stage_begin(j->ctx, "join", 0.95);
  kith_work work = kith_join_work(j, KITH_DO_COUNT);
  kith_status status = kith_join_run(j, &work);
  if (!status)
    *pairs = pairs_of_count(j, j->tally.pairs);
  return status;
}

/* degrees[id] for every row; skipped rows have none. */
static kith_status find_degrees(kith_join *j, uint64_t *degrees, double span) {
  memset(degrees, 0, j->a->n * sizeof *degrees);
  kith_stage_begin(j->ctx, "count", span);
  kith_work work = kith_join_work(j, KITH_DO_DEGREES);
  work.degrees = degrees;
  kith_status status = kith_join_run(j, &work);
  j->report.pairs = j->tally.pairs;
  return status;
}

/* With a radius per point, the pairs i < j are not half of all pairs: they must be told apart. */
static kith_status count_by_degrees(kith_join *j, uint64_t *pairs) {
  uint64_t bytes = j->a->n * sizeof(uint64_t);
  uint64_t *degrees = kith_alloc(&j->ctx->memory, bytes);
  if (!degrees)
    return kith_fail_memory(j->ctx, bytes, "one count per point");
  kith_status status = find_degrees(j, degrees, 0.95);
  *pairs = j->report.pairs;
  kith_free(degrees);
  return status;
}

kith_status kith_join_count(kith_context *ctx, const kith_points *a, const kith_points *b,
                            const kith_join_options *options, uint64_t *pairs, kith_join_report *report) {
  if (!pairs)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "there is no place for the count: pairs is NULL");
  kith_join j;
  kith_status status = kith_join_prepare_for(KITH_AIM_TOTAL, &j, ctx, a, b, options);
  if (status)
    return kith_join_release(&j, status, report);
  if (j.limits && j.options.half)
    status = count_by_degrees(&j, pairs);
  else
    status = count_pairs(&j, pairs);
  if (!status) {
    j.report.pairs = *pairs;
    j.report.batches = 1;
  }
  return kith_join_release(&j, status, report);
}

kith_status kith_join_degrees(kith_context *ctx, const kith_points *a, const kith_points *b,
                              const kith_join_options *options, uint64_t *degrees, kith_join_report *report) {
  if (!degrees)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "there is no place for the counts: degrees is NULL");
  kith_join j;
  kith_status status = kith_join_prepare_for(KITH_AIM_DEGREES, &j, ctx, a, b, options);
  if (!status)
    status = find_degrees(&j, degrees, 0.95);
  j.report.batches = 1;
  return kith_join_release(&j, status, report);
}

/* The offsets, by an engine that makes them itself. */
static kith_status ask_for_offsets(kith_join *j, uint64_t *offsets) {
  double began = kith_seconds();
  kith_stage_begin(j->ctx, "count", KITH_COUNT_SPAN);
  kith_status status = j->engine->offsets(j->engine, offsets, &j->tally);
  j->report.pairs = j->tally.pairs;
  j->report.seconds_join += kith_seconds() - began;
  j->tally.pairs = 0;
  return status;
}

/* offsets[n + 1] of the table: degrees, summed in place. */
static kith_status find_offsets(kith_join *j, uint64_t *offsets) {
  if (j->engine->offsets)
    return ask_for_offsets(j, offsets);
  kith_status status =
      j->checkpoint ? kith_join_recorded_degrees(j, offsets) : find_degrees(j, offsets + 1, KITH_COUNT_SPAN);
  offsets[0] = 0;
  for (uint64_t i = 1; i <= j->a->n; i++)
    offsets[i] += offsets[i - 1];
  j->tally.pairs = 0;
  return status;
}

/* ---- table --------------------------------------------------------------------------------------------- */

static kith_status refuse_table(kith_join *j, double pairs, const char *how) {
  double bytes = pairs * kith_join_pair_bytes(j) + 8 * (double)j->a->n;
  return kith_fail(
      j->ctx, KITH_ERR_BUDGET,
      "the neighbour table would hold %s%.4g pairs in %.1f GiB, but only %.1f GiB of memory are free; write "
      "it to a file or stream it, ask for counts, or choose a smaller eps",
      how, pairs, bytes / (1 << 30), (double)kith_system_memory_free() / (1 << 30));
}

/* Refuses a table that surely will not fit, before looking for its pairs. */
static kith_status check_table_fits(kith_join *j, const kith_estimate *estimate) {
  double least = kith_join_pairs_of_estimate(j, estimate->pairs - 3 * estimate->error);
  if (least * kith_join_pair_bytes(j) <= kith_room_for_table())
    return KITH_OK;
  return refuse_table(j, kith_join_pairs_of_estimate(j, estimate->pairs), "about ");
}

kith_status kith_join_allocate_table(kith_join *j, kith_table *table, uint64_t pairs) {
  if ((double)pairs * kith_join_pair_bytes(j) > kith_room_for_table())
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
                     (double)pairs * kith_join_pair_bytes(j) / (1 << 20));
  return KITH_OK;
}

/* Counts, then fills: needs no memory but the table's. */
static kith_status fill_table(kith_join *j, kith_table *table, uint64_t *offsets) {
  kith_status status = find_offsets(j, offsets);
  if (status || (status = kith_join_allocate_table(j, table, offsets[j->a->n])))
    return status;
  kith_work work = kith_join_work(j, KITH_DO_FILL);
  work.offsets = offsets;
  work.neighbors = (uint32_t *)table->neighbors;
  work.distances = (double *)table->distances;
  kith_stage_begin(j->ctx, "join", 0.8);
  return kith_join_run(j, &work);
}

/* Of a join that is shared, a GPU has seen a sample when it made its plan: a small one, of 64 queries, which
 * may have missed some neighbours of everybody. */
static kith_status estimate_pairs(kith_join *j, kith_estimate *estimate) {
  if (!j->shared)
    return kith_estimate_run(j->ctx, j->engine, estimate);
  double n = j->engine->n_queries;
  *estimate = (kith_estimate){.pairs = n * j->gpu.neighbors, .tested = n * j->gpu.candidates};
  if (j->one_set)
    estimate->tested /= 2; /* as pairs of one set are met once, and counted twice */
  estimate->error = estimate->pairs / 4 + 8 * n;
  return KITH_OK;
}

static kith_status make_table(kith_join *j, kith_table *table) {
  uint64_t *offsets = kith_alloc_result(&j->ctx->memory, (j->a->n + 1) * sizeof(uint64_t));
  table->offsets = offsets;
  if (!offsets)
    return kith_fail(j->ctx, KITH_ERR_MEMORY, "out of memory for the offsets of %llu rows",
                     (unsigned long long)j->a->n);
  if (j->engine->offsets && !j->shared) /* counting is quick: no need to estimate first */
    return fill_table(j, table, offsets);
  kith_estimate estimate;
  kith_status status = estimate_pairs(j, &estimate);
  if (!status && !j->shared) /* where a table that does not fit is found out soon enough */
    status = check_table_fits(j, &estimate);
  if (status)
    return status;
  bool done;
  status = kith_join_go(j, kith_join_way_to_table(j, &estimate), table, offsets, &done);
  if (status || done)
    return status;
  j->tally = (kith_tally){0};
  return fill_table(j, table, offsets);
}

static kith_status make_device_table(kith_join *j, kith_table *table) {
  double began = kith_seconds();
  kith_status status = kith_engine_cuda_table(j->engine, table, &j->tally);
  j->report.pairs = table->n_pairs;
  j->report.seconds_join = kith_seconds() - began;
  return status;
}

/* Lets a finished table outlive the context. */
static kith_table *detach_table(kith_table *table) {
  kith_release_result(table);
  if (table->device)
    return table;
  kith_release_result((void *)table->offsets);
  kith_release_result((void *)table->neighbors);
  kith_release_result((void *)table->distances);
  return table;
}

kith_status kith_join_table(kith_context *ctx, const kith_points *a, const kith_points *b,
                            const kith_join_options *options, kith_table **out, kith_join_report *report) {
  if (!out)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "there is no place for the table: out is NULL");
  kith_join j;
  kith_table *table = NULL;
  *out = NULL;
  kith_status status = kith_join_prepare(&j, ctx, a, b, options);
  if (status)
    return kith_join_release(&j, status, report);
  table = kith_alloc_result(&ctx->memory, sizeof *table);
  if (!table)
    return kith_join_release(&j, kith_fail(ctx, KITH_ERR_MEMORY, "out of memory"), report);
  *table = (kith_table){0};
  j.report.batches = 1;
  status = j.options.on_device ? make_device_table(&j, table) : make_table(&j, table);
  status = kith_join_release(&j, status, report);
  if (status)
    kith_table_destroy(table);
  else
    *out = detach_table(table);
  return status;
}

void kith_table_destroy(kith_table *table) {
  if (!table)
    return;
  if (table->device) {
    kith_cuda_free(table->device - 1, table->offsets);
    kith_cuda_free(table->device - 1, table->neighbors);
    kith_cuda_free(table->device - 1, table->distances);
    kith_free(table);
    return;
  }
  kith_free((void *)table->offsets);
  kith_free((void *)table->neighbors);
  kith_free((void *)table->distances);
  kith_free(table);
}

/* ---- stream -------------------------------------------------------------------------------------------- */

static kith_shape table_shape(const kith_join *j, uint64_t pairs) {
  return (kith_shape){
      .n_rows = j->a->n, .n_cols = j->b->n, .n_pairs = pairs, .distances = j->options.distances};
}

/* Whether so much work may be lost if the process is killed. */
static bool is_worth_recording(const kith_join *j, double seconds) {
  return j->checkpoint && (kith_checkpoint_rows(j->checkpoint) > 0 || seconds > j->options.checkpoint_seconds);
}

/* Few neighbours: the whole table is made, within the budget, and given to the sink at once. *done is false if
 * they are not so few. */
static kith_status stream_at_once(kith_join *j, kith_sink *sink, uint64_t *offsets, bool *done) {
  if (j->engine->offsets) /* it looks for pairs twice as fast as it could move them */
    return KITH_OK;
  kith_estimate estimate;
  kith_status status = kith_estimate_run(j->ctx, j->engine, &estimate);
  if (status)
    return status;
  uint64_t rows = j->options.batch_rows;
  if ((rows > 0 && rows < j->a->n) || is_worth_recording(j, estimate.seconds))
    return KITH_OK;
  kith_table table = {0};
  status = kith_join_go(j, kith_join_way_to_stream(j, &estimate), &table, offsets, done);
  if (!status && *done) {
    kith_shape shape = table_shape(j, table.n_pairs);
    kith_batch batch = {
        .n_rows = j->a->n, .offsets = offsets, .neighbors = table.neighbors, .distances = table.distances};
    double began = kith_seconds();
    if (!(status = sink->begin(sink, &shape)) && !(status = sink->take(sink, &batch)))
      status = sink->finish(sink);
    j->report.seconds_write = kith_seconds() - began;
    j->report.batches = 1;
  }
  kith_free((void *)table.neighbors);
  kith_free((void *)table.distances);
  return status;
}

/* Lets the stream begin where the sink stands, and its batches be as short as records are to be frequent. */
static void resume_stream(kith_join *j, kith_stream *stream) {
  stream->batch_seconds = j->options.checkpoint_seconds;
  stream->first_row = j->report.resumed_rows = kith_checkpoint_rows(j->checkpoint);
  j->tally.pairs = j->report.resumed_pairs = kith_checkpoint_pairs(j->checkpoint);
}

/* The general case: count, then fill in windows of rows. */
static kith_status stream_windows(kith_join *j, kith_sink *sink, uint64_t *offsets) {
  kith_status status = find_offsets(j, offsets);
  if (status)
    return status;
  kith_shape shape = table_shape(j, offsets[j->a->n]);
  kith_stream stream = {.engine = j->engine,
                        .sink = sink,
                        .work = kith_join_work(j, KITH_DO_FILL),
                        .offsets = offsets,
                        .n_rows = j->a->n,
                        .batch_rows = j->options.batch_rows,
                        .distances = j->options.distances};
  kith_stream_report streamed = {0};
  j->report.pairs = shape.n_pairs;
  double began = kith_seconds();
  status = sink->begin(sink, &shape);
  if (j->checkpoint)
    resume_stream(j, &stream);
  if (!status)
    status = kith_schedule_stream(j->ctx, &stream, &j->tally, &streamed);
  j->report.batches = streamed.batches;
  j->report.seconds_write = streamed.sink_seconds;
  j->report.seconds_join += kith_seconds() - began - streamed.sink_seconds;
  return status;
}

static kith_status stream_to(kith_join *j, kith_sink *sink) {
  uint64_t bytes = (j->a->n + 1) * sizeof(uint64_t);
  uint64_t *offsets = kith_alloc(&j->ctx->memory, bytes);
  if (!offsets)
    return kith_fail_memory(j->ctx, bytes, "the offsets of the rows");
  bool done = false;
  kith_status status = stream_at_once(j, sink, offsets, &done);
  if (!status && !done) {
    j->tally = (kith_tally){0};
    status = stream_windows(j, sink, offsets);
  }
  kith_free(offsets);
  return status;
}

/* Runs a join into a sink, which is destroyed in the end. */
static kith_status join_into(kith_context *ctx, const kith_points *a, const kith_points *b,
                             const kith_join_options *options, kith_sink *sink, kith_join_report *report) {
  kith_join j;
  kith_status status = kith_join_prepare(&j, ctx, a, b, options);
  if (!status)
    status = stream_to(&j, sink);
  kith_sink_destroy(sink);
  return kith_join_release(&j, status, report);
}

kith_status kith_join_stream(kith_context *ctx, const kith_points *a, const kith_points *b,
                             const kith_join_options *options, kith_batch_fn take, void *user,
                             kith_join_report *report) {
  kith_status status = kith_call_begin(ctx);
  if (status)
    return status;
  if (!take)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "there is nothing to give the batches to: take is NULL");
  kith_sink *sink;
  status = kith_sink_callback(ctx, take, user, &sink);
  return status ? status : join_into(ctx, a, b, options, sink, report);
}

static kith_status write_degrees(kith_context *ctx, const kith_points *a, const kith_points *b,
                                 const kith_join_options *options, const char *path, kith_join_report *report) {
  kith_join j;
  kith_status status = kith_join_prepare_for(KITH_AIM_DEGREES, &j, ctx, a, b, options);
  if (status)
    return kith_join_release(&j, status, report);
  uint64_t bytes = a->n * sizeof(uint64_t);
  uint64_t *degrees = kith_alloc(&ctx->memory, bytes);
  if (!degrees)
    return kith_join_release(&j, kith_fail_memory(ctx, bytes, "one count per point"), report);
  status = find_degrees(&j, degrees, 0.9);
  double began = kith_seconds();
  if (!status)
    status = kith_write_counts(ctx, path, degrees, a->n);
  j.report.seconds_write = kith_seconds() - began;
  j.report.batches = 1;
  kith_free(degrees);
  return kith_join_release(&j, status, report);
}

/* The folder for the record of a join, or NULL. Options of an older program end before it. */
static const char *checkpoint_of(const kith_join_options *options) {
  bool has = options && options->struct_size >= offsetof(kith_join_options, checkpoint_seconds);
  return has ? options->checkpoint : NULL;
}

static kith_status check_recording(kith_context *ctx, kith_what what, const char *path) {
  if (what == KITH_DEGREES)
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "a checkpoint is for neighbors and pairs: degrees are not written in batches");
  if (kith_output_is_device(path))
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "a checkpoint needs a file that can be continued: '%s' is none",
                     path);
  return KITH_OK;
}

/* Adds to the message of a failure that nothing is lost. */
static void say_what_stays(kith_context *ctx, const char *folder) {
  size_t used = strlen(ctx->message);
  snprintf(ctx->message + used, sizeof ctx->message - used,
           "; what is done stays recorded in %s, and doing the same again goes on from there", folder);
}

/* The same for a join that is recorded. */
static kith_status join_recorded(kith_context *ctx, const kith_recording *recording,
                                 const kith_join_options *options, kith_sink *file, kith_join_report *report) {
  kith_join j;
  kith_checkpoint *checkpoint = recording->checkpoint;
  kith_sink *sink = NULL;
  kith_status status = kith_join_prepare(&j, ctx, recording->a, recording->b, options);
  if (!status)
    status = kith_join_record(&j, recording);
  if (!status)
    status = kith_sink_checkpoint(checkpoint, file, &sink);
  if (!status)
    status = stream_to(&j, sink);
  kith_sink_destroy(sink ? sink : file);
  if (status && kith_checkpoint_is_live(checkpoint))
    say_what_stays(ctx, options->checkpoint);
  j.report.checkpoint_damaged = kith_checkpoint_was_damaged(checkpoint);
  return kith_join_release(&j, status, report);
}

static kith_status write_recorded(kith_context *ctx, kith_recording *recording,
                                  const kith_join_options *options, kith_sink *file, kith_join_report *report) {
  kith_status status = kith_checkpoint_open(ctx, options->checkpoint, &recording->checkpoint);
  if (!status)
    status = join_recorded(ctx, recording, options, file, report);
  else
    kith_sink_destroy(file);
  kith_checkpoint_close(recording->checkpoint);
  return status;
}

kith_status kith_join_write(kith_context *ctx, const kith_points *a, const kith_points *b,
                            const kith_join_options *options, kith_what what, const char *path,
                            kith_join_report *report) {
  kith_status status = kith_call_begin(ctx);
  if (!status)
    status = kith_check_output(ctx, what, path);
  if (!status && checkpoint_of(options))
    status = check_recording(ctx, what, path);
  if (status)
    return status;
  if (what == KITH_DEGREES)
    return write_degrees(ctx, a, b, options, path, report);
  kith_sink *sink;
  status = kith_sink_file(ctx, what, path, &sink);
  if (status)
    return status;
  kith_recording recording = {.a = a, .b = b, .what = what, .path = path};
  if (checkpoint_of(options))
    return write_recorded(ctx, &recording, options, sink, report);
  return join_into(ctx, a, b, options, sink, report);
}
