/* The schedule within one piece of memory: see schedule.h.
 *
 * Pieces are small enough that lanes end together and that cancellation is noticed quickly, and large enough
 * that setting the cursors of a lane, once per piece, costs nothing. */
#include "schedule/schedule.h"

#include "base/clock.h"
#include "base/team.h"
#include "base/trace.h"

enum { PIECE_MIN = 128, PIECE_MAX = 1024, PIECES_PER_LANE = 128 };

static uint32_t piece_size(const kith_engine *engine, uint32_t positions) {
  if (engine->whole)
    return UINT32_MAX;
  uint32_t size = positions / (engine->lanes * PIECES_PER_LANE);
  size = size < PIECE_MIN ? PIECE_MIN : size > PIECE_MAX ? PIECE_MAX : size;
  return engine->grain ? (size + engine->grain - 1) / engine->grain * engine->grain : size;
}

/* What the lanes share. */
typedef struct queue {
  kith_context *ctx;
  kith_engine *engine;
  const kith_work *work;
  uint32_t size;          /* positions that make a piece */
  uint32_t track;         /* of the trace: the first of the lanes */
  _Atomic uint64_t taken; /* positions handed out */
  _Atomic uint64_t pairs; /* found, tested and inside: sums over the lanes */
  _Atomic uint64_t tested, inside;
  _Atomic int failed; /* the first status that was not KITH_OK */
} queue;

/* Takes the next piece; false when there is none, or no reason to go on. */
static bool take_piece(queue *q, kith_work *piece) {
  if (atomic_load(&q->failed) || kith_cancelled(q->ctx))
    return false;
  uint64_t n = q->work->end - q->work->begin;
  uint64_t at = atomic_fetch_add(&q->taken, q->size);
  if (at >= n)
    return false;
  piece->begin = q->work->begin + (uint32_t)at;
  piece->end = n - at > q->size ? piece->begin + q->size : q->work->end;
  return true;
}

static void trace_piece(const queue *q, uint64_t lane, double began, const kith_work *piece,
                        const kith_tally *tally) {
  if (!q->ctx->trace || q->engine->traces)
    return;
  kith_trace_event event = {.track = q->track + (uint32_t)lane,
                            .name = "piece",
                            .began = began,
                            .ended = kith_seconds(),
                            .queries = piece->end - piece->begin,
                            .candidates = tally->tested + tally->inside,
                            .pairs = tally->pairs};
  kith_trace_add(q->ctx, &event);
}

/* Lane 0 runs on the calling thread: it reports. */
static void run_lane(void *argument, uint64_t lane) {
  queue *q = argument;
  kith_work piece = *q->work;
  while (take_piece(q, &piece)) {
    kith_tally tally = {0};
    double began = kith_seconds();
    kith_status status = q->engine->run(q->engine, (uint32_t)lane, &piece, &tally);
    if (status)
      atomic_store(&q->failed, (int)status);
    trace_piece(q, lane, began, &piece, &tally);
    uint64_t pairs = atomic_fetch_add(&q->pairs, tally.pairs) + tally.pairs;
    atomic_fetch_add(&q->tested, tally.tested);
    atomic_fetch_add(&q->inside, tally.inside);
    double n = q->work->end - q->work->begin;
    if (lane == 0)
      kith_stage_report(q->ctx, (piece.end - q->work->begin) / n, pairs);
  }
}

kith_status kith_schedule_run(kith_context *ctx, kith_engine *engine, const kith_work *work,
                              kith_tally *tally) {
  queue q = {.ctx = ctx, .engine = engine, .work = work, .size = piece_size(engine, work->end - work->begin)};
  atomic_store(&q.pairs, tally->pairs);
  if (!engine->traces)
    q.track = kith_trace_tracks(ctx, engine->name, engine->lanes);
  kith_each(ctx, engine->lanes, run_lane, &q);
  tally->pairs = atomic_load(&q.pairs);
  tally->tested += atomic_load(&q.tested);
  tally->inside += atomic_load(&q.inside);
  if (atomic_load(&q.failed))
    return (kith_status)atomic_load(&q.failed);
  return kith_check_cancel(ctx);
}
