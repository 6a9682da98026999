/* Several engines on one join: see hybrid.h. */
#include "schedule/shared_run.h"

#include "base/clock.h"
#include "base/team.h"
#include "base/trace.h"
#include "schedule/blocks.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- a run ----------------------------------------------------------------------------------------------- */

enum { MAX_WORKERS = 4 * KITH_MAX_MEMBERS };

typedef struct worker {
  shared_run *run;
  member *member;
  uint32_t lane;
  pthread_t thread;
} worker;

static void *work_alone(void *argument) {
  worker *w = argument;
  w->run->run_lane(w->run, w->member, w->lane, false);
  atomic_fetch_sub(&w->run->running, 1);
  return NULL;
}

static void leave_for_lack_of_a_thread(hybrid *h, member *m) {
  pthread_mutex_lock(&h->lock);
  m->gone = true;
  h->failed = kith_fail(h->ctx, KITH_ERR_MEMORY, "the system refused a thread");
  kith_copy_message(h->ctx, m->done.failure, sizeof m->done.failure);
  pthread_mutex_unlock(&h->lock);
  kith_deque_leave(&h->deque, m->public.end);
}

/* Threads for the lanes of a member, as many as the system grants. */
static uint32_t start_lanes(shared_run *r, member *m, worker *workers) {
  uint32_t n = 0;
  for (; n < m->lanes; n++) {
    workers[n] = (worker){.run = r, .member = m, .lane = n};
    atomic_fetch_add(&r->running, 1);
    if (pthread_create(&workers[n].thread, NULL, work_alone, &workers[n]) == 0)
      continue;
    atomic_fetch_sub(&r->running, 1);
    break;
  }
  if (n == 0)
    leave_for_lack_of_a_thread(r->h, m);
  return n;
}

/* Members that take blocks have threads of their own. Returns how many there are. */
static uint32_t start_workers(shared_run *r, worker *workers) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->h->n_members; i++) {
    member *m = &r->h->members[i];
    if (!m->gone && m->manner == TAKES_BLOCKS)
      n += start_lanes(r, m, workers + n);
  }
  return n;
}

/* Where all members have threads of their own, the caller's reports. */
static void watch_workers(shared_run *r) {
  struct timespec pause = {.tv_nsec = 200000};
  while (atomic_load(&r->running) > 0) {
    nanosleep(&pause, NULL);
    kith_shared_report(r);
  }
}

/* The others share the threads of the context: item i is a lane of one of them. */
static void work_item(void *argument, uint64_t item) {
  shared_run *r = argument;
  uint32_t lane = (uint32_t)item;
  for (uint32_t i = 0; i < r->h->n_members; i++) {
    member *m = &r->h->members[i];
    if (m->manner == TAKES_BLOCKS)
      continue;
    if (lane < m->lanes) {
      r->run_lane(r, m, lane, item == 0);
      return;
    }
    lane -= m->lanes;
  }
}

static uint32_t count_items(const hybrid *h) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < h->n_members; i++)
    n += h->members[i].manner == TAKES_BLOCKS ? 0 : h->members[i].lanes;
  return n;
}

typedef struct pair_count {
  hybrid *h;
  const kith_work *work;
} pair_count;

/* deque->pairs[e + 1]: those of entry e alone. */
static void count_pairs(void *argument, uint64_t e) {
  const pair_count *c = argument;
  const kith_blocks *blocks = &c->h->blocks;
  const kith_work *work = c->work;
  uint32_t block = c->h->deque.blocks[e];
  uint64_t pairs = 0;
  for (uint32_t p = blocks->begin[block]; p < blocks->begin[block + 1]; p++) {
    uint64_t id = blocks->ids[p];
    bool wanted = id >= work->first_row && id < work->end_row;
    const uint64_t *offset = work->offsets + (wanted ? id - work->first_row : 0);
    pairs += wanted ? offset[1] - offset[0] : 0;
  }
  c->h->deque.pairs[e + 1] = pairs;
}

/* The pairs of every entry's rows, where they are known: rows are to be filled. */
static void sum_pairs(hybrid *h, const kith_work *work) {
  kith_deque *deque = &h->deque;
  pair_count c = {.h = h, .work = work};
  memset(deque->pairs, 0, (deque->n + UINT64_C(1)) * sizeof *deque->pairs);
  if (work->offsets)
    kith_each(h->ctx, deque->n, count_pairs, &c);
  for (uint32_t e = 0; e < deque->n; e++)
    deque->pairs[e + 1] += deque->pairs[e];
}

/* How far apart the two ends were done, as a part of the whole; if both had something to do. */
static void note_imbalance(shared_run *r, double now) {
  hybrid *h = r->h;
  double ended[2] = {0, 0};
  for (uint32_t i = 0; i < h->n_members; i++) {
    const member *m = &h->members[i];
    if (m->ended > r->began)
      ended[m->public.end] = fmax(ended[m->public.end], m->ended);
  }
  if (ended[0] > 0 && ended[1] > 0)
    h->imbalance += fabs(ended[0] - ended[1]);
  h->seconds += now - r->began;
}

static void run_lanes(shared_run *r) {
  worker workers[MAX_WORKERS];
  uint32_t n = start_workers(r, workers);
  kith_shared_admit(r);
  if (count_items(r->h) > 0)
    kith_each(r->h->ctx, count_items(r->h), work_item, r);
  else
    watch_workers(r);
  for (uint32_t i = 0; i < n; i++)
    pthread_join(workers[i].thread, NULL);
}

/* Whether somebody is awaited who could finish what the others have left. */
static bool has_reserve(hybrid *h) {
  bool awaited = false;
  for (uint32_t i = 0; i < h->n_members; i++)
    awaited = awaited || h->members[i].awaited;
  return awaited && !kith_deque_is_done(&h->deque) && !kith_cancelled(h->ctx);
}

void kith_shared_run_lanes(shared_run *r) {
  do
    run_lanes(r);
  while (has_reserve(r->h));
}

static void open_deque(shared_run *r, int64_t cut) {
  hybrid *h = r->h;
  uint32_t active[2] = {0, 0};
  for (uint32_t i = 0; i < h->n_members; i++)
    active[h->members[i].public.end] += h->members[i].gone ? 0 : 1;
  kith_deque_open(&h->deque, cut, active);
  sum_pairs(h, r->work);
}

static kith_status run(kith_engine *engine, uint32_t lane, const kith_work *whole, kith_tally *tally) {
  hybrid *h = (hybrid *)engine;
  (void)lane;
  kith_work work = *whole;
  work.one_sided = h->one_sided;
  work.run = ++h->runs;
  shared_run r = {.h = h, .work = &work, .began = kith_seconds()};
  open_deque(&r, kith_shared_find_cut(&r));
  r.run_lane = kith_shared_work_lane;
  kith_shared_run_lanes(&r);
  note_imbalance(&r, kith_seconds());
  kith_shared_add_tally(tally, &r.tally);
  if (kith_cancelled(h->ctx))
    return kith_check_cancel(h->ctx);
  if (kith_deque_is_done(&h->deque)) {
    h->ctx->message[0] = '\0'; /* of a member that failed, which the report tells */
    return KITH_OK;
  }
  char last[512];
  snprintf(last, sizeof last, "%s", kith_message(h->ctx));
  return kith_fail(h->ctx, h->failed, "all engines have failed; the last one: %s", last);
}

/* Where the rows begin: the degrees, added up. */
static kith_status offsets(kith_engine *engine, uint64_t *out, kith_tally *tally) {
  hybrid *h = (hybrid *)engine;
  kith_work work = {.operation = KITH_DO_DEGREES, .end = engine->n_queries, .end_row = UINT64_MAX};
  work.degrees = out + 1;
  memset(out, 0, (h->n_rows + 1) * sizeof *out);
  kith_status status = run(engine, 0, &work, tally);
  for (uint64_t i = 1; i <= h->n_rows && !status; i++)
    out[i] += out[i - 1];
  return status;
}

/* ---- making it ------------------------------------------------------------------------------------------- */

static manner manner_of(const hybrid *h, const kith_engine *engine) {
  if (engine->cut)
    return TAKES_BLOCKS;
  return kith_shared_has_order(h, engine) ? TAKES_RANGES : TAKES_LISTS;
}

/* The threads of the context go to the members that need them. The others wait for GPUs, and sleep meanwhile.
 */
static uint32_t lanes_of(const member *m) {
  const kith_engine *engine = m->public.engine;
  if (m->manner != TAKES_BLOCKS)
    return engine->lanes;
  uint32_t most = MAX_WORKERS / KITH_MAX_MEMBERS;
  uint32_t lanes = engine->block_lanes > 1 ? engine->block_lanes : 1;
  return lanes < most ? lanes : most;
}

/* GPUs of one kind cut the same blocks from the same points. */
static kith_status cut_the_same(hybrid *h, member *m) {
  kith_engine *engine = m->public.engine;
  const kith_blocks *blocks = &h->blocks;
  kith_status status = engine->cut(engine, &m->blocks);
  if (status)
    return status;
  bool same = m->blocks.n == blocks->n &&
              memcmp(m->blocks.begin, blocks->begin, (blocks->n + UINT64_C(1)) * sizeof *blocks->begin) == 0 &&
              memcmp(m->blocks.ids, blocks->ids, engine->n_queries * sizeof *blocks->ids) == 0;
  return same ? KITH_OK
              : kith_fail(h->ctx, KITH_ERR_UNSUPPORTED,
                          "the GPUs see different plans, so they cannot share a join: choose GPUs of one kind");
}

static kith_status prepare_member(hybrid *h, member *m) {
  if (m->awaited || m->gone || m->lanes > 0) /* made later, in vain, or ready */
    return KITH_OK;
  m->lanes = lanes_of(m);
  m->track = kith_trace_tracks(h->ctx, m->public.name, m->lanes);
  if (m->manner == TAKES_BLOCKS && m != h->members)
    return cut_the_same(h, m);
  if (m->manner != TAKES_LISTS)
    return KITH_OK;
  return kith_blocks_map(h->ctx, &h->blocks, m->public.engine, h->n_rows, &m->list);
}

static void destroy(kith_engine *engine) {
  hybrid *h = (hybrid *)engine;
  for (uint32_t i = 0; i < h->n_members; i++) {
    kith_engine_destroy(h->members[i].public.engine);
    kith_free(h->members[i].list);
    kith_blocks_release(&h->members[i].blocks);
  }
  if (h->has_deque)
    kith_deque_release(&h->deque);
  kith_blocks_release(&h->blocks);
  pthread_mutex_destroy(&h->lock);
  kith_free(h);
}

static kith_status find_manners(hybrid *h) {
  for (uint32_t i = 0; i < h->n_members; i++) {
    member *m = &h->members[i];
    m->max_work = INFINITY;
    memcpy(m->done.name, m->public.name, sizeof m->done.name);
    m->awaited = !m->public.engine;
    if (!m->awaited && m->public.engine->n_queries != h->base.n_queries)
      return kith_fail(h->ctx, KITH_ERR_UNSUPPORTED, "the engines differ in the queries that they see");
    m->manner = m->awaited ? TAKES_RANGES : manner_of(h, m->public.engine);
    h->one_sided = h->one_sided || m->manner == TAKES_LISTS;
  }
  return KITH_OK;
}

static kith_status prepare(hybrid *h) {
  kith_engine *owner = h->members[0].public.engine;
  kith_status status = owner->cut(owner, &h->blocks);
  if (status || (status = find_manners(h)) || (status = kith_shared_make_early(h)))
    return status;
  if (owner->weigh && (status = owner->weigh(owner, &h->blocks)))
    return status;
  if ((status = kith_deque_make(h->ctx, &h->blocks, &h->deque)))
    return status;
  h->has_deque = true;
  for (uint32_t i = 0; i < h->n_members && !status; i++)
    status = prepare_member(h, &h->members[i]);
  return status;
}

kith_status kith_engine_hybrid_create(kith_context *ctx, const kith_hybrid_spec *spec, kith_engine **out) {
  hybrid *h = kith_alloc(&ctx->memory, sizeof *h);
  *out = NULL;
  if (!h) {
    for (uint32_t i = 0; i < spec->n_members; i++)
      kith_engine_destroy(spec->members[i].engine);
    return kith_fail_memory(ctx, sizeof *h, "the engine");
  }
  *h = (hybrid){.base = {.name = "hybrid",
                         .lanes = 1,
                         .n_queries = spec->members[0].engine->n_queries,
                         .whole = true,
                         .traces = true,
                         .run = run,
                         .offsets = offsets,
                         .destroy = destroy},
                .ctx = ctx,
                .partition = spec->partition,
                .n_members = spec->n_members,
                .n_rows = spec->n_rows,
                .one_sided = spec->one_sided,
                .share = kith_hybrid_share(spec)};
  pthread_mutex_init(&h->lock, NULL);
  for (uint32_t i = 0; i < spec->n_members; i++)
    h->members[i].public = spec->members[i];
  kith_status status = prepare(h);
  if (status)
    destroy(&h->base);
  else
    *out = &h->base;
  return status;
}

double kith_hybrid_share(const kith_hybrid_spec *spec) {
  double rates[2] = {0, 0};
  bool known = true;
  for (uint32_t i = 0; i < spec->n_members; i++) {
    rates[spec->members[i].end] += spec->members[i].rate;
    known = known && spec->members[i].rate > 0;
  }
  return known ? rates[KITH_HEAVY_END] / (rates[KITH_HEAVY_END] + rates[KITH_LIGHT_END]) : 0.5;
}

void kith_hybrid_describe(const kith_engine *engine, kith_join_report *report) {
  const hybrid *h = (const hybrid *)engine;
  for (uint32_t i = 0; i < h->n_members && report->n_engines < KITH_MAX_ENGINES; i++) {
    report->engines[report->n_engines++] = h->members[i].done;
  }
  report->imbalance = h->seconds > 0 ? h->imbalance / h->seconds : 0;
}
