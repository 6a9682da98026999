/* The schedule within one piece of memory: see schedule.h.
 *
 * Pieces are small enough that lanes end together and that cancellation is noticed quickly, and large enough
 * that setting the cursors of a lane, once per piece, costs nothing. */
#include "schedule/schedule.h"

#include <omp.h>

enum { PIECE_MIN = 256, PIECE_MAX = 4096, PIECES_PER_LANE = 64 };

static uint32_t piece_size(uint32_t positions, uint32_t lanes) {
  uint32_t size = positions / (lanes * PIECES_PER_LANE);
  return size < PIECE_MIN ? PIECE_MIN : size > PIECE_MAX ? PIECE_MAX : size;
}

typedef struct queue {
  uint32_t begin, end, size; /* positions, and how many make a piece */
  _Atomic uint64_t taken;    /* positions handed out */
  _Atomic uint64_t pairs;    /* found, for progress */
  _Atomic int failed;        /* the first status that was not KITH_OK */
} queue;

/* Takes the next piece; false when there is none, or no reason to go on. */
static bool take_piece(queue *q, kith_work *piece) {
  if (atomic_load(&q->failed))
    return false;
  uint64_t at = atomic_fetch_add(&q->taken, q->size);
  if (at >= q->end - q->begin)
    return false;
  piece->begin = q->begin + (uint32_t)at;
  piece->end = q->end - piece->begin > q->size ? piece->begin + q->size : q->end;
  return true;
}

static void run_lane(kith_context *ctx, kith_engine *engine, uint32_t lane, const kith_work *work, queue *q,
                     kith_tally *tally) {
  kith_work piece = *work;
  while (!kith_cancelled(ctx) && take_piece(q, &piece)) {
    uint64_t before = tally->pairs;
    kith_status status = engine->run(engine, lane, &piece, tally);
    if (status)
      atomic_store(&q->failed, (int)status);
    uint64_t pairs = atomic_fetch_add(&q->pairs, tally->pairs - before);
    if (lane == 0)
      kith_stage_report(ctx, (double)(piece.end - q->begin) / (double)(q->end - q->begin), pairs);
  }
}

kith_status kith_schedule_run(kith_context *ctx, kith_engine *engine, const kith_work *work,
                              kith_tally *tally) {
  queue q = {
      .begin = work->begin, .end = work->end, .size = piece_size(work->end - work->begin, engine->lanes)};
  atomic_store(&q.pairs, tally->pairs);
  uint64_t pairs = 0;
  uint64_t tested = 0;
  uint64_t inside = 0;
#pragma omp parallel num_threads((int)engine->lanes) reduction(+ : pairs, tested, inside)
  {
    kith_tally mine = {0};
    run_lane(ctx, engine, (uint32_t)omp_get_thread_num(), work, &q, &mine);
    pairs += mine.pairs;
    tested += mine.tested;
    inside += mine.inside;
  }
  tally->pairs += pairs;
  tally->tested += tested;
  tally->inside += inside;
  if (atomic_load(&q.failed))
    return (kith_status)atomic_load(&q.failed);
  return kith_check_cancel(ctx);
}
