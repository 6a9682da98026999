/* Members that come later: whether they are needed, and how they are made. See shared_run.h. */
#include "schedule/shared_run.h"

#include "base/clock.h"
#include "base/team.h"
#include "base/trace.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

typedef struct comparison {
  const uint32_t *a, *b;
  uint64_t n, shares;
  _Atomic bool differ;
} comparison;

static void compare_share(void *argument, uint64_t share) {
  comparison *c = argument;
  uint64_t begin = kith_share_begin(c->n, share, c->shares);
  uint64_t n = kith_share_begin(c->n, share + 1, c->shares) - begin;
  if (memcmp(c->a + begin, c->b + begin, n * sizeof *c->a) != 0)
    atomic_store(&c->differ, true);
}

bool kith_shared_has_order(const hybrid *h, const kith_engine *engine) {
  enum { GRAIN = 65536 };
  comparison c = {.a = engine->ids,
                  .b = h->blocks.ids,
                  .n = engine->n_queries,
                  .shares = kith_shares(h->ctx, engine->n_queries, GRAIN)};
  if (c.n != h->base.n_queries)
    return false;
  kith_each(h->ctx, c.shares, compare_share, &c);
  return !atomic_load(&c.differ);
}

static kith_status make_member(hybrid *h, const member *m, kith_engine **engine) {
  *engine = NULL;
  kith_status status = m->public.make(m->public.user, engine);
  if (status || kith_shared_has_order(h, *engine))
    return status;
  kith_engine_destroy(*engine);
  *engine = NULL;
  return kith_fail(h->ctx, KITH_ERR_UNSUPPORTED, "the engines differ in the order of the queries");
}

static void note_arrival(hybrid *h, const member *m, double began) {
  kith_trace_event event = {.track = m->track, .name = "index", .began = began, .ended = kith_seconds()};
  kith_trace_add(h->ctx, &event);
}

/* Makes a member, which then is there, or gone. */
static kith_status bring(hybrid *h, member *m) {
  double began = kith_seconds();
  kith_engine *engine;
  kith_status status = make_member(h, m, &engine);
  pthread_mutex_lock(&h->lock);
  m->awaited = false;
  m->gone = !engine;
  m->public.engine = engine;
  m->lanes = engine ? engine->lanes : 0;
  if (status) {
    h->failed = status;
    kith_copy_message(h->ctx, m->done.failure, sizeof m->done.failure);
  }
  pthread_mutex_unlock(&h->lock);
  if (engine) {
    m->track = kith_trace_tracks(h->ctx, m->public.name, m->lanes);
    note_arrival(h, m, began);
  }
  return status;
}

/* What is made now keeps the others waiting for as long as it takes beyond the weighing; what is made later is
 * itself missing for all that it takes. With engines about as fast as each other the first is less, and half of
 * the time must go by anyway in case they are not. Who weighs blocks for that long will join them for longer,
 * so that nothing is made in vain. */
kith_status kith_shared_make_early(hybrid *h) {
  enum { PATIENCE = 2 };
  double weighs = h->members[0].public.engine->weigh_seconds;
  for (uint32_t i = 0; i < h->n_members; i++) {
    member *m = &h->members[i];
    if (m->awaited && m->public.make_seconds < PATIENCE * weighs && bring(h, m) == KITH_ERR_CANCELLED)
      return KITH_ERR_CANCELLED;
  }
  return KITH_OK;
}

/* Work a second of all that are there; 0: some have not shown theirs. */
static double find_pace(hybrid *h) {
  double sum = 0;
  bool known = true;
  pthread_mutex_lock(&h->lock);
  for (uint32_t i = 0; i < h->n_members; i++) {
    const member *m = &h->members[i];
    bool counts = !m->gone && !m->awaited;
    known = known && (!counts || kith_member_pace(m) > 0);
    sum += counts ? kith_member_pace(m) : 0;
  }
  pthread_mutex_unlock(&h->lock);
  return known ? sum : 0;
}

/* Whether a member would be there before the others are done. They show how fast they are first, for a while
 * that is short beside what the member takes. */
static bool is_needed(shared_run *r, const member *m) {
  const struct timespec pause = {.tv_nsec = 50000};
  hybrid *h = r->h;
  double enough = r->began + m->public.make_seconds / 8;
  while ((kith_seconds() < enough || find_pace(h) <= 0) && atomic_load(&r->running) > 0) {
    nanosleep(&pause, NULL);
    kith_shared_report(r);
  }
  double left = (double)kith_deque_left(&h->deque, m->public.end);
  return atomic_load(&r->running) == 0 ? !kith_deque_is_done(&h->deque)
                                       : left > find_pace(h) * m->public.make_seconds;
}

static void admit(hybrid *h, member *m) {
  bring(h, m);
  if (m->gone)
    kith_deque_leave(&h->deque, m->public.end);
}

void kith_shared_admit(shared_run *r) {
  for (uint32_t i = 0; i < r->h->n_members && !kith_cancelled(r->h->ctx); i++)
    if (r->h->members[i].awaited && is_needed(r, &r->h->members[i]))
      admit(r->h, &r->h->members[i]);
}
