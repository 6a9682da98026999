/* Several engines on one join: see hybrid.h. */
#include "schedule/hybrid.h"

#include "base/clock.h"
#include "base/team.h"
#include "base/trace.h"
#include "schedule/blocks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How a member is told what to do. */
typedef enum manner {
  TAKES_BLOCKS, /* by their numbers, many at once */
  TAKES_RANGES, /* its positions are those of the blocks */
  TAKES_LISTS,  /* its positions are others: `list` has them, block by block, ascending in each */
} manner;

/* What a member did at one end of the deque. */
typedef struct pace {
  uint64_t slices;
  double work, seconds;
} pace;

typedef struct member {
  kith_member public;
  manner manner;
  uint32_t *list;
  kith_blocks blocks; /* its own cut, the same as the first member's */
  uint32_t lanes;
  uint32_t track; /* of the trace: the first of `lanes` */
  /* Under the lock of the hybrid engine: */
  double max_work; /* of a slice: halved when memory did not suffice, doubled when it did */
  uint64_t slices; /* begun */
  kith_engine_report done;
  double work;   /* done, as the deque has it */
  pace paces[2]; /* at each end */
  double ended;  /* when its last slice was done */
  bool gone;
} member;

typedef struct hybrid {
  kith_engine base;
  kith_context *ctx;
  kith_partition partition;
  member members[KITH_MAX_MEMBERS];
  uint32_t n_members;
  double share; /* of the heavy end in a fixed partition, where there is no sample */
  uint64_t n_rows;
  bool one_sided; /* members have different orders, so a pair has no first query that all agree on */
  kith_blocks blocks;
  kith_deque deque;
  bool has_deque;
  pthread_mutex_t lock;
  uint64_t runs;             /* begun */
  kith_status failed;        /* of the last member that left */
  double imbalance, seconds; /* sums over the runs */
} hybrid;

/* Entries, here and there in the deque, that are run before a fixed partition is chosen: each by one member, in
 * turns. They are run again afterwards, by whoever gets them. */
enum { SAMPLES = 256 };
typedef struct sample {
  uint32_t n;
  uint32_t entries[SAMPLES];
  _Atomic uint32_t next[KITH_MAX_MEMBERS]; /* of the entries of each member */
  double seconds[KITH_MAX_MEMBERS];
  double entry_seconds[SAMPLES]; /* of a lane, where entries are run one by one */
  bool failed[KITH_MAX_MEMBERS];
} sample;

/* One run of the deque. */
typedef struct shared_run {
  hybrid *h;
  const kith_work *work;
  void (*run_lane)(struct shared_run *r, member *m, uint32_t lane, bool reports);
  double began;
  kith_tally tally;
  _Atomic uint32_t running; /* members with a thread of their own that are not done */
  sample sample;
} shared_run;

/* ---- where to take --------------------------------------------------------------------------------------- */

static kith_end opposite(kith_end end) { return end == KITH_HEAVY_END ? KITH_LIGHT_END : KITH_HEAVY_END; }

/* How the members of an end take to heavy blocks. */
typedef struct liking {
  bool known;   /* all of them, if there are any, have seen both ends */
  double ratio; /* of their speed there to that with light blocks */
} liking;

static liking find_liking(const hybrid *h, kith_end end) {
  double rates[2] = {0, 0};
  for (uint32_t i = 0; i < h->n_members; i++) {
    const member *m = &h->members[i];
    if (m->gone || m->public.end != end)
      continue;
    for (int e = 0; e < 2; e++) {
      if (m->paces[e].slices < m->lanes)
        return (liking){.known = false};
      rates[e] += m->paces[e].work / m->paces[e].seconds;
    }
  }
  return (liking){.known = true,
                  .ratio = rates[KITH_LIGHT_END] > 0 ? rates[KITH_HEAVY_END] / rates[KITH_LIGHT_END] : 0};
}

/* Whether everybody is to try both ends before heavy blocks go to one of them for good. */
static bool is_trying(const hybrid *h) {
  return !h->deque.cut && !(find_liking(h, KITH_HEAVY_END).known && find_liking(h, KITH_LIGHT_END).known);
}

/* The end to take from: a member's own at first, then the other one, to see. When all have seen both, heavy
 * blocks go to those who gain more by them: where the CPU spends its time on finding few candidates, it is the
 * CPU. With a fixed partition everybody keeps to his end. */
static kith_end choose_end(hybrid *h, const member *m) {
  kith_end own = m->public.end;
  pthread_mutex_lock(&h->lock);
  bool tries = m->paces[own].slices >= m->lanes && m->paces[opposite(own)].slices < m->lanes;
  bool swapped = !is_trying(h) && find_liking(h, KITH_LIGHT_END).ratio > find_liking(h, KITH_HEAVY_END).ratio;
  pthread_mutex_unlock(&h->lock);
  return !h->deque.cut && (tries || swapped) ? opposite(own) : own;
}

/* ---- how much to take ------------------------------------------------------------------------------------ */

/* A slice is at least so much work, if there is: launching and waiting cost a GPU as much as that, and
 * less would leave it idle. The CPU is content with a block. */
static const double LEAST_OF_GPU = 4e6;

/* Nor has it more pairs, if there are several blocks: it makes its rows in memory of its own. */
static const uint64_t PAIRS_OF_GPU = 1 << 27;

/* Work a second that a member has shown, or was said to do; 0: nobody knows. */
static double rate_of(const member *m) {
  double busy = m->done.busy_seconds;
  return busy > 0 ? m->work / busy : m->public.rate;
}

/* Of what is left, half of a member's fair part, a lane: the other half is for when more is known. */
static kith_appetite find_appetite(hybrid *h, const member *m) {
  enum { UNKNOWN_PART = 32 };
  double left = (double)kith_deque_left(&h->deque, m->public.end);
  pthread_mutex_lock(&h->lock);
  double sum = 0;
  bool known = true;
  for (uint32_t i = 0; i < h->n_members; i++) {
    const member *other = &h->members[i];
    bool counts = !other->gone && (!h->deque.cut || other->public.end == m->public.end);
    sum += counts ? rate_of(other) : 0;
    known = known && (!counts || rate_of(other) > 0);
  }
  known = known && sum > 0;
  double part = known ? rate_of(m) / sum / 2 : 1.0 / UNKNOWN_PART;
  if (m->done.batches < m->lanes || is_trying(h)) /* what it was said to do may not be so */
    part /= 8;
  double most = m->max_work;
  double wanted = left * part / m->lanes;
  pthread_mutex_unlock(&h->lock);
  if (m->manner == TAKES_BLOCKS && wanted < LEAST_OF_GPU)
    wanted = LEAST_OF_GPU;
  return (kith_appetite){.work = wanted < most ? wanted : most,
                         .pairs = m->manner == TAKES_BLOCKS ? PAIRS_OF_GPU : UINT64_MAX};
}

/* ---- a slice --------------------------------------------------------------------------------------------- */

static kith_status run_block(const hybrid *h, const member *m, uint32_t lane, kith_work *work, uint32_t entry,
                             kith_tally *tally) {
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
    status = run_block(h, m, lane, &work, e, tally);
  return status;
}

static void add_tally(kith_tally *sum, const kith_tally *tally) {
  sum->pairs += tally->pairs;
  sum->tested += tally->tested;
  sum->inside += tally->inside;
}

/* A slice as it was taken. */
typedef struct taking {
  kith_slice slice;
  kith_end end;
  double began;
} taking;

static void note_slice(shared_run *r, member *m, uint32_t lane, const taking *taken, const kith_tally *tally) {
  kith_slice slice = taken->slice;
  double began = taken->began;
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
  double work = (double)(deque->work[slice.end] - deque->work[slice.begin]);
  m->work += work;
  m->done.busy_seconds += (now - began) / m->lanes;
  pace *p = &m->paces[taken->end];
  p->slices++;
  p->work += work;
  p->seconds += (now - began) / m->lanes;
  m->max_work *= 2;
  m->ended = now;
  add_tally(&r->tally, tally);
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
  return run_slice(r->h, m, lane, r->work, slice, tally);
}

static void report_progress(const shared_run *r) {
  hybrid *h = r->h;
  double left = (double)kith_deque_left(&h->deque, KITH_HEAVY_END);
  if (h->deque.cut)
    left += (double)kith_deque_left(&h->deque, KITH_LIGHT_END);
  pthread_mutex_lock(&h->lock);
  uint64_t pairs = r->tally.pairs;
  pthread_mutex_unlock(&h->lock);
  kith_stage_report(h->ctx, 1 - left / ((double)h->deque.work[h->deque.n] + 1), pairs);
}

static bool has_left(hybrid *h, const member *m) {
  pthread_mutex_lock(&h->lock);
  bool gone = m->gone;
  pthread_mutex_unlock(&h->lock);
  return gone;
}

/* One lane of a member, until there is nothing left to take. */
static void work_lane(shared_run *r, member *m, uint32_t lane, bool reports) {
  hybrid *h = r->h;
  taking taken = {.end = choose_end(h, m)};
  while (!has_left(h, m) && kith_deque_take(&h->deque, taken.end, find_appetite(h, m), &taken.slice)) {
    kith_tally tally = {0};
    taken.began = kith_seconds();
    kith_status status = try_slice(r, m, lane, taken.slice, &tally);
    if (kith_cancelled(h->ctx)) {
      kith_deque_stop(&h->deque);
      kith_deque_give_back(&h->deque, taken.slice);
      return;
    }
    if (status && !settle_failure(h, m, status, taken.slice))
      return;
    if (status)
      continue;
    note_slice(r, m, lane, &taken, &tally);
    kith_deque_done(&h->deque);
    taken.end = choose_end(h, m);
    if (reports)
      report_progress(r);
  }
}

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
  m->gone = true;
  h->failed = kith_fail(h->ctx, KITH_ERR_MEMORY, "the system refused a thread");
  kith_copy_message(h->ctx, m->done.failure, sizeof m->done.failure);
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
    report_progress(r);
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

/* Lets all lanes of all members do what the run is about, and waits for them. */
static void run_lanes(shared_run *r) {
  worker workers[MAX_WORKERS];
  uint32_t n = start_workers(r, workers);
  if (count_items(r->h) > 0)
    kith_each(r->h->ctx, count_items(r->h), work_item, r);
  else
    watch_workers(r);
  for (uint32_t i = 0; i < n; i++)
    pthread_join(workers[i].thread, NULL);
}

/* ---- a sample, to choose a fixed partition by -------------------------------------------------------------
 */

static void take_sample(const kith_deque *deque, sample *s) {
  enum { ENTRIES_PER_SAMPLE = 32 };
  s->n = deque->n / ENTRIES_PER_SAMPLE < SAMPLES ? deque->n / ENTRIES_PER_SAMPLE : SAMPLES;
  for (uint32_t i = 0; i < s->n; i++)
    s->entries[i] = (uint32_t)((2 * i + 1) * (uint64_t)deque->n / (2 * s->n));
}

/* A GPU has all its entries at once, on its first lane. */
static kith_status run_sample_at_once(shared_run *r, member *m, uint32_t number, uint32_t lane,
                                      kith_tally *tally) {
  const sample *s = &r->sample;
  if (lane > 0)
    return KITH_OK;
  uint32_t blocks[SAMPLES];
  kith_work work = *r->work;
  work.blocks = blocks;
  for (uint32_t i = number; i < s->n; i += r->h->n_members)
    blocks[work.n_blocks++] = r->h->deque.blocks[s->entries[i]];
  return m->public.engine->run(m->public.engine, 0, &work, tally);
}

static kith_status run_sample_entries(shared_run *r, member *m, uint32_t number, uint32_t lane,
                                      kith_tally *tally) {
  sample *s = &r->sample;
  kith_work work = *r->work;
  kith_status status = KITH_OK;
  uint32_t i;
  while (!status && (i = number + atomic_fetch_add(&s->next[number], 1) * r->h->n_members) < s->n) {
    double began = kith_seconds();
    status = run_block(r->h, m, lane, &work, s->entries[i], tally);
    s->entry_seconds[i] = kith_seconds() - began;
  }
  return status;
}

/* A member that fails here will fail again where that is dealt with. */
static void run_sample(shared_run *r, member *m, uint32_t lane, bool reports) {
  (void)reports;
  uint32_t number = (uint32_t)(m - r->h->members);
  kith_tally tally = {0};
  double began = kith_seconds();
  kith_status status = m->manner == TAKES_BLOCKS ? run_sample_at_once(r, m, number, lane, &tally)
                                                 : run_sample_entries(r, m, number, lane, &tally);
  pthread_mutex_lock(&r->h->lock);
  r->sample.seconds[number] += (kith_seconds() - began) / (m->manner == TAKES_BLOCKS ? 1 : m->lanes);
  r->sample.failed[number] = r->sample.failed[number] || status;
  pthread_mutex_unlock(&r->h->lock);
}

static double sampled_work(const shared_run *r, uint32_t number) {
  const kith_deque *deque = &r->h->deque;
  double work = 0;
  for (uint32_t i = number; i < r->sample.n; i += r->h->n_members)
    work += (double)(deque->work[r->sample.entries[i] + 1] - deque->work[r->sample.entries[i]]);
  return work;
}

/* The part of the heavy end, by how fast everybody did the sample. */
static double find_share(shared_run *r) {
  hybrid *h = r->h;
  sample *s = &r->sample;
  take_sample(&h->deque, s);
  if (s->n < 8 * h->n_members)
    return h->share;
  r->run_lane = run_sample;
  run_lanes(r);
  kith_hybrid_spec spec = {0};
  for (uint32_t i = 0; i < h->n_members; i++)
    if (!h->members[i].gone && !s->failed[i])
      spec.members[spec.n_members++] =
          (kith_member){.end = h->members[i].public.end, .rate = sampled_work(r, i) / s->seconds[i]};
  return kith_hybrid_share(&spec);
}

/* Seconds that the light end would take for the entries from the i-th sample on, going by those of them that it
 * has run. */
static double light_seconds(const shared_run *r, uint32_t i) {
  const hybrid *h = r->h;
  double seconds = 0;
  uint32_t seen = 0;
  uint32_t lanes = 0;
  for (uint32_t k = 0; k < h->n_members; k++)
    lanes += h->members[k].manner == TAKES_BLOCKS ? 0 : h->members[k].lanes;
  for (uint32_t k = i; k < r->sample.n; k++) {
    seconds += r->sample.entry_seconds[k];
    seen += r->sample.entry_seconds[k] > 0;
  }
  return seen > 0 ? seconds / seen / lanes * (double)(h->deque.n - r->sample.entries[i]) : 0;
}

/* Where the deque is to be cut, so that by the sample both ends take equally long: the heavy one for the work
 * before, at its pace in the whole sample; the light one for the entries behind, as it took for such. */
static uint32_t find_cut(const shared_run *r, double share) {
  const kith_deque *deque = &r->h->deque;
  const sample *s = &r->sample;
  double light = s->n > 0 ? light_seconds(r, 0) : 0;
  if (light <= 0 || share <= 0)
    return kith_deque_find(deque, deque->work, share);
  double heavy = light * (1 - share) / share;
  uint32_t i = 0;
  while (i < s->n &&
         heavy * (double)deque->work[s->entries[i]] / (double)deque->work[deque->n] < light_seconds(r, i))
    i++;
  return i < s->n ? s->entries[i] : deque->n;
}

static void open_deque(shared_run *r, double share) {
  hybrid *h = r->h;
  uint32_t active[2] = {0, 0};
  for (uint32_t i = 0; i < h->n_members; i++)
    active[h->members[i].public.end] += h->members[i].gone ? 0 : 1;
  int64_t cut = -1;
  if (h->partition == KITH_PARTITION_QUERIES)
    cut = kith_deque_find(&h->deque, h->deque.queries, share);
  else if (h->partition == KITH_PARTITION_CANDIDATES)
    cut = find_cut(r, share);
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
  double share = h->partition == KITH_PARTITION_DYNAMIC ? h->share : find_share(&r);
  open_deque(&r, share);
  r.run_lane = work_lane;
  run_lanes(&r);
  note_imbalance(&r, kith_seconds());
  add_tally(tally, &r.tally);
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
  bool same = memcmp(engine->ids, h->blocks.ids, engine->n_queries * sizeof *engine->ids) == 0;
  return same ? TAKES_RANGES : TAKES_LISTS;
}

/* The threads of the context go to the members that need them. The others wait for GPUs, and sleep meanwhile.
 */
static uint32_t lanes_of(const member *m) {
  const kith_engine *engine = m->public.engine;
  if (m->manner != TAKES_BLOCKS)
    return engine->lanes;
  uint32_t most = MAX_WORKERS / KITH_MAX_MEMBERS;
  return engine->block_lanes < most ? engine->block_lanes : most;
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
  m->lanes = lanes_of(m);
  m->max_work = INFINITY;
  memcpy(m->done.name, m->public.name, sizeof m->done.name);
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

static kith_status prepare(hybrid *h) {
  kith_engine *owner = h->members[0].public.engine;
  kith_status status = owner->cut(owner, &h->blocks);
  if (status || (status = kith_deque_make(h->ctx, &h->blocks, &h->deque)))
    return status;
  h->has_deque = true;
  for (uint32_t i = 0; i < h->n_members; i++) {
    if (h->members[i].public.engine->n_queries != owner->n_queries)
      return kith_fail(h->ctx, KITH_ERR_UNSUPPORTED, "the engines differ in the queries that they see");
    h->members[i].manner = manner_of(h, h->members[i].public.engine);
    h->one_sided = h->one_sided || h->members[i].manner == TAKES_LISTS;
  }
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
