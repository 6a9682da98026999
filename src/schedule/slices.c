/* Slices of the deque: how large they are, and what becomes of them. See shared_run.h. */
#include "schedule/shared_run.h"

#include "base/clock.h"
#include "base/trace.h"

#include <time.h>

/* ---- how much to take ------------------------------------------------------------------------------------ */

/* A slice is at least so much work, if there is: launching and waiting cost a GPU as much as that, and
 * less would leave it idle. The CPU is content with a block. */
static const double LEAST_OF_GPU = 4e6;

/* Nor has it more pairs, if there are several blocks: it makes its rows in memory of its own. */
static const uint64_t PAIRS_OF_GPU = 1 << 27;

/* Work a second that a member has shown, or was said to do; 0: nobody knows. */
static double rate_of(const member *m) {
  double shown = kith_member_pace(m);
  return shown > 0 ? shown : m->public.rate;
}

/* A slice is so much of a member's fair part of what is left, a lane: the rest is for when more is known. To a
 * thread of the CPU small slices cost nothing. */
static const double PART_OF_GPU = 1.0 / 2;
static const double PART_OF_CPU = 1.0 / 8;

static kith_appetite find_appetite(hybrid *h, const member *m) {
  enum { UNKNOWN_PART = 32 };
  bool gpu = m->manner == TAKES_BLOCKS;
  double left = (double)kith_deque_left(&h->deque, m->public.end);
  pthread_mutex_lock(&h->lock);
  double sum = 0;
  bool known = true;
  bool awaits = false;
  for (uint32_t i = 0; i < h->n_members; i++) {
    const member *other = &h->members[i];
    bool counts = !other->gone && !other->awaited && (!h->deque.cut || other->public.end == m->public.end);
    sum += counts ? rate_of(other) : 0;
    known = known && (!counts || rate_of(other) > 0);
    awaits = awaits || other->awaited;
  }
  known = known && sum > 0;
  sum *= awaits ? 2 : 1; /* who comes later may be as fast as all who are there */
  double part = known ? rate_of(m) / sum * (gpu ? PART_OF_GPU : PART_OF_CPU) : 1.0 / UNKNOWN_PART;
  if (m->done.batches < m->lanes) /* what it was said to do may not be so */
    part /= 8;
  double most = m->max_work;
  double wanted = left * part / m->lanes;
  pthread_mutex_unlock(&h->lock);
  if (gpu && wanted < LEAST_OF_GPU)
    wanted = LEAST_OF_GPU;
  return (kith_appetite){.work = wanted < most ? wanted : most, .pairs = gpu ? PAIRS_OF_GPU : UINT64_MAX};
}

/* ---- a slice --------------------------------------------------------------------------------------------- */

kith_status kith_shared_run_block(const hybrid *h, const member *m, uint32_t lane, kith_work *work,
                                  uint32_t entry, kith_tally *tally) {
  uint32_t block = h->deque.blocks[entry];
  work->list = m->manner == TAKES_LISTS ? m->list : NULL;
  work->begin = h->blocks.begin[block];
  work->end = h->blocks.begin[block + 1];
  return m->public.engine->run(m->public.engine, lane, work, tally);
}

static kith_status run_slice(const hybrid *h, const member *m, uint32_t lane, const kith_work *whole,
                             kith_slice slice, kith_tally *tally) {
  kith_work work = *whole;
  if (m->manner == TAKES_BLOCKS) {
    work.blocks = h->deque.blocks + slice.begin;
    work.n_blocks = slice.end - slice.begin;
    return m->public.engine->run(m->public.engine, lane, &work, tally);
  }
  kith_status status = KITH_OK;
  for (uint32_t e = slice.begin; e < slice.end && !status && !kith_cancelled(h->ctx); e++)
    status = kith_shared_run_block(h, m, lane, &work, e, tally);
  return status;
}

void kith_shared_add_tally(kith_tally *sum, const kith_tally *tally) {
  sum->pairs += tally->pairs;
  sum->tested += tally->tested;
  sum->inside += tally->inside;
}

static void note_slice(shared_run *r, member *m, uint32_t lane, kith_slice slice, double began,
                       const kith_tally *tally) {
  const kith_deque *deque = &r->h->deque;
  double now = kith_seconds();
  kith_trace_event event = {.track = m->track + lane,
                            .name = "batch",
                            .began = began,
                            .ended = now,
                            .queries = deque->queries[slice.end] - deque->queries[slice.begin],
                            .candidates = deque->candidates[slice.end] - deque->candidates[slice.begin],
                            .pairs = tally->pairs};
  kith_trace_add(r->h->ctx, &event);
  pthread_mutex_lock(&r->h->lock);
  m->done.batches++;
  m->done.queries += event.queries;
  m->done.candidates += event.candidates;
  m->done.pairs += tally->pairs;
  m->work += (double)(deque->work[slice.end] - deque->work[slice.begin]);
  m->done.busy_seconds += (now - began) / m->lanes;
  m->max_work *= 2;
  m->ended = now;
  kith_shared_add_tally(&r->tally, tally);
  pthread_mutex_unlock(&r->h->lock);
}

/* Whether a member may go on after a failure: with smaller slices, if it was for lack of memory. */
static bool may_go_on(const hybrid *h, member *m, kith_status status, kith_slice slice) {
  bool memory = status == KITH_ERR_BUDGET || status == KITH_ERR_MEMORY;
  if (!memory || slice.end - slice.begin < 2)
    return false;
  m->max_work = (double)(h->deque.work[slice.end] - h->deque.work[slice.begin]) / 2;
  return true;
}

/* A slice was not done: gives it back. Returns whether the member goes on. */
static bool settle_failure(hybrid *h, member *m, kith_status status, kith_slice slice) {
  pthread_mutex_lock(&h->lock);
  bool goes_on = may_go_on(h, m, status, slice);
  bool leaves = !goes_on && !m->gone;
  if (leaves) {
    m->gone = true;
    h->failed = status;
    kith_copy_message(h->ctx, m->done.failure, sizeof m->done.failure);
  }
  pthread_mutex_unlock(&h->lock);
  if (leaves)
    kith_deque_leave(&h->deque, m->public.end);
  kith_deque_give_back(&h->deque, slice);
  return goes_on;
}

static kith_status try_slice(shared_run *r, member *m, uint32_t lane, kith_slice slice, kith_tally *tally) {
  pthread_mutex_lock(&r->h->lock);
  uint64_t number = ++m->slices;
  pthread_mutex_unlock(&r->h->lock);
  if (kith_fault_wanted(m->public.name, number))
    return kith_fail(r->h->ctx, KITH_ERR_UNSUPPORTED, "a fault was asked for at batch %llu",
                     (unsigned long long)number);
  if (kith_fault_slows(m->public.name)) {
    const struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
  }
  return run_slice(r->h, m, lane, r->work, slice, tally);
}

void kith_shared_report(const shared_run *r) {
  hybrid *h = r->h;
  double left = (double)kith_deque_left(&h->deque, KITH_HEAVY_END);
  if (h->deque.cut)
    left += (double)kith_deque_left(&h->deque, KITH_LIGHT_END);
  pthread_mutex_lock(&h->lock);
  uint64_t pairs = r->tally.pairs;
  pthread_mutex_unlock(&h->lock);
  kith_stage_report(h->ctx, 1 - left / ((double)h->deque.work[h->deque.n] + 1), pairs);
}

static bool is_gone(hybrid *h, const member *m) {
  pthread_mutex_lock(&h->lock);
  bool gone = m->gone;
  pthread_mutex_unlock(&h->lock);
  return gone;
}

void kith_shared_work_lane(shared_run *r, member *m, uint32_t lane, bool reports) {
  hybrid *h = r->h;
  kith_slice slice;
  while (!is_gone(h, m) && kith_deque_take(&h->deque, m->public.end, find_appetite(h, m), &slice)) {
    kith_tally tally = {0};
    double began = kith_seconds();
    kith_status status = try_slice(r, m, lane, slice, &tally);
    if (kith_cancelled(h->ctx)) {
      kith_deque_stop(&h->deque);
      kith_deque_give_back(&h->deque, slice);
      return;
    }
    if (status && !settle_failure(h, m, status, slice))
      return;
    if (status)
      continue;
    note_slice(r, m, lane, slice, began, &tally);
    kith_deque_done(&h->deque);
    if (reports)
      kith_shared_report(r);
  }
}
