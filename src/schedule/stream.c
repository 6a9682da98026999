/* Streaming: windows of rows, filled into one of two buffers while the sink takes the other.
 *
 * A window is a range of ids whose rows fit a buffer together. Every window walks the whole query index and
 * picks its queries, so rows come out in the order of the input whatever the order of the index. */
#include "base/clock.h"
#include "schedule/schedule.h"

#include <pthread.h>

/* A batch is an eighth of the table, but neither tiny nor huge: two of them then add little to the memory that
 * the table itself would take, and the sink starts early. */
enum { BUFFERS = 2, BATCH_SHARE = 8, MIN_ROWS = 1 << 16, MIN_PAIRS = 1 << 18, MAX_PAIRS = 1 << 25 };

typedef struct buffer {
  uint64_t *offsets; /* of the batch, from 0 */
  uint32_t *neighbors;
  double *distances;
  kith_batch batch;
  bool full; /* filled, not yet taken by the sink */
} buffer;

/* Shared by the filling side (the caller's thread) and the sink's thread. */
typedef struct pipeline {
  kith_sink *sink;
  buffer buffers[BUFFERS];
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool over;          /* nothing more will be filled */
  kith_status status; /* of the sink */
} pipeline;

static uint64_t pair_bytes(bool distances) { return sizeof(uint32_t) + (distances ? sizeof(double) : 0); }

uint64_t kith_stream_pairs_per_batch(const kith_context *ctx, uint64_t pairs, uint64_t longest_row,
                                     bool distances) {
  /* A quarter of what is left for each buffer leaves half for the sink and the offsets of the batches. */
  uint64_t fit = kith_memory_left(&ctx->memory) / 4 / pair_bytes(distances);
  uint64_t wanted = pairs / BATCH_SHARE;
  if (wanted < MIN_PAIRS)
    wanted = pairs < MIN_PAIRS ? pairs : MIN_PAIRS;
  if (wanted > MAX_PAIRS)
    wanted = MAX_PAIRS;
  if (wanted < longest_row)
    wanted = longest_row;
  if (wanted > fit)
    wanted = fit;
  return wanted < longest_row ? 0 : wanted;
}

static uint64_t rows_per_batch(const kith_stream *stream) {
  uint64_t rows = stream->n_rows / BATCH_SHARE;
  if (rows < MIN_ROWS)
    rows = stream->n_rows < MIN_ROWS ? stream->n_rows : MIN_ROWS;
  return stream->batch_rows && stream->batch_rows < rows ? stream->batch_rows : rows;
}

/* The sink's thread: takes full buffers in turn until there are no more. */
static void *drain(void *argument) {
  pipeline *p = argument;
  for (uint32_t turn = 0;; turn = (turn + 1) % BUFFERS) {
    buffer *b = &p->buffers[turn];
    pthread_mutex_lock(&p->lock);
    while (!b->full && !p->over)
      pthread_cond_wait(&p->changed, &p->lock);
    bool take = b->full;
    bool healthy = p->status == KITH_OK;
    pthread_mutex_unlock(&p->lock);
    if (!take)
      return NULL;
    kith_status status = healthy ? p->sink->take(p->sink, &b->batch) : KITH_OK;
    pthread_mutex_lock(&p->lock);
    if (healthy)
      p->status = status;
    b->full = false;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
  }
}

/* Waits until a buffer is free; false if the sink has failed. */
static bool wait_for_buffer(pipeline *p, const buffer *b, double *waited) {
  double began = kith_seconds();
  pthread_mutex_lock(&p->lock);
  while (b->full)
    pthread_cond_wait(&p->changed, &p->lock);
  bool healthy = p->status == KITH_OK;
  pthread_mutex_unlock(&p->lock);
  *waited += kith_seconds() - began;
  return healthy;
}

static void hand_over(pipeline *p, buffer *b) {
  pthread_mutex_lock(&p->lock);
  b->full = true;
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
}

/* The end of the window that begins at `first`. */
static uint64_t window_end(const kith_stream *stream, uint64_t first, uint64_t max_pairs, uint64_t max_rows) {
  uint64_t end = first + 1;
  while (end < stream->n_rows && end - first < max_rows &&
         stream->offsets[end + 1] - stream->offsets[first] <= max_pairs)
    end++;
  return end;
}

/* The share of the call's progress that so many rows are. */
static double span_of(const kith_stream *stream, uint64_t rows) {
  return stream->n_rows ? 0.8 * (double)rows / (double)stream->n_rows : 0;
}

static kith_status fill_window(kith_context *ctx, const kith_stream *stream, buffer *b, uint64_t first,
                               uint64_t end, kith_tally *tally) {
  const uint64_t *offsets = stream->offsets + first;
  for (uint64_t r = 0; r <= end - first; r++)
    b->offsets[r] = offsets[r] - offsets[0];
  b->batch = (kith_batch){.first_row = first,
                          .n_rows = end - first,
                          .offsets = b->offsets,
                          .neighbors = b->neighbors,
                          .distances = b->distances};
  kith_work work = stream->work;
  work.first_row = first;
  work.end_row = end;
  work.offsets = b->offsets;
  work.neighbors = b->neighbors;
  work.distances = b->distances;
  kith_stage_begin(ctx, "join", span_of(stream, end - first));
  if (b->offsets[end - first] == 0)
    return kith_check_cancel(ctx);
  return kith_schedule_run(ctx, stream->engine, &work, tally);
}

/* The rows of the next window, where batches are to be short: as many as would take as long as they may, from
 * what the last window took. Not fewer than a share of all, though, since every window walks the whole index,
 * and finds few queries next to each other: a 64th each costs up to 40 % more than an eighth, a 256th more than
 * twice. */
static uint64_t next_rows(const kith_stream *stream, uint64_t rows, double seconds) {
  enum { LEAST_SHARE = 64 };
  uint64_t most = rows_per_batch(stream), least = stream->n_rows / LEAST_SHARE + 1;
  double wanted = (double)rows * stream->batch_seconds / (seconds + 1e-6);
  if (stream->batch_seconds <= 0 || wanted > (double)most || least > most)
    return most;
  return wanted < (double)least ? least : (uint64_t)wanted;
}

/* Fills window after window. */
static kith_status produce(kith_context *ctx, const kith_stream *stream, pipeline *p, uint64_t max_pairs,
                           kith_tally *tally, kith_stream_report *report) {
  uint64_t max_rows = next_rows(stream, 0, 0);
  uint32_t turn = 0;
  for (uint64_t first = stream->first_row; first < stream->n_rows; turn = (turn + 1) % BUFFERS) {
    buffer *b = &p->buffers[turn];
    uint64_t end = window_end(stream, first, max_pairs, max_rows);
    if (!wait_for_buffer(p, b, &report->sink_seconds))
      return KITH_OK; /* the sink's status tells */
    double began = kith_seconds();
    kith_status status = fill_window(ctx, stream, b, first, end, tally);
    if (status)
      return status;
    hand_over(p, b);
    max_rows = next_rows(stream, end - first, kith_seconds() - began);
    report->batches++;
    first = end;
  }
  return KITH_OK;
}

static kith_status allocate_buffers(kith_context *ctx, const kith_stream *stream, pipeline *p,
                                    uint64_t max_pairs) {
  uint64_t rows = rows_per_batch(stream);
  for (int i = 0; i < BUFFERS; i++) {
    buffer *b = &p->buffers[i];
    b->offsets = kith_alloc(&ctx->memory, (rows + 1) * sizeof(uint64_t));
    b->neighbors = kith_alloc(&ctx->memory, max_pairs * sizeof(uint32_t));
    if (stream->distances)
      b->distances = kith_alloc(&ctx->memory, max_pairs * sizeof(double));
    if (!b->offsets || !b->neighbors || (stream->distances && !b->distances))
      return kith_fail_memory(ctx, BUFFERS * (max_pairs * pair_bytes(stream->distances) + rows * 8),
                              "buffers for the result");
  }
  return KITH_OK;
}

static uint64_t longest_row(const kith_stream *stream) {
  uint64_t longest = 0;
  for (uint64_t i = 0; i < stream->n_rows; i++) {
    uint64_t length = stream->offsets[i + 1] - stream->offsets[i];
    longest = length > longest ? length : longest;
  }
  return longest;
}

static kith_status run_pipeline(kith_context *ctx, const kith_stream *stream, pipeline *p, uint64_t max_pairs,
                                kith_tally *tally, kith_stream_report *report) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, drain, p) != 0)
    return kith_fail(ctx, KITH_ERR_MEMORY, "the system refused a thread for writing");
  kith_status status = produce(ctx, stream, p, max_pairs, tally, report);
  pthread_mutex_lock(&p->lock);
  p->over = true;
  if (status && !p->status)
    p->status = status; /* what is still waiting is not worth writing */
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
  double began = kith_seconds();
  pthread_join(thread, NULL);
  status = p->status;
  if (!status)
    status = stream->sink->finish(stream->sink);
  report->sink_seconds += kith_seconds() - began;
  return status;
}

kith_status kith_schedule_stream(kith_context *ctx, const kith_stream *stream, kith_tally *tally,
                                 kith_stream_report *report) {
  uint64_t longest = longest_row(stream);
  uint64_t max_pairs =
      kith_stream_pairs_per_batch(ctx, stream->offsets[stream->n_rows], longest, stream->distances);
  if (max_pairs < longest)
    return kith_fail(
        ctx, KITH_ERR_BUDGET,
        "one row has %llu neighbours, which the memory left (%.1f MiB) cannot hold; allow more memory",
        (unsigned long long)longest, (double)kith_memory_left(&ctx->memory) / (1 << 20));
  pipeline p = {.sink = stream->sink, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  kith_stage_resume(ctx, "join", span_of(stream, stream->first_row));
  kith_status status = allocate_buffers(ctx, stream, &p, max_pairs);
  if (!status)
    status = run_pipeline(ctx, stream, &p, max_pairs, tally, report);
  for (int i = 0; i < BUFFERS; i++) {
    kith_free(p.buffers[i].offsets);
    kith_free(p.buffers[i].neighbors);
    kith_free(p.buffers[i].distances);
  }
  return status;
}
