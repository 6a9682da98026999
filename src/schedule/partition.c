/* Fixed partitions of the deque, by a sample of its entries: see shared_run.h. */
#include "schedule/shared_run.h"

#include "base/clock.h"

#include <math.h>

static void take_sample(const kith_deque *deque, sample *s) {
  enum { ENTRIES_PER_SAMPLE = 32 };
  s->n = deque->n / ENTRIES_PER_SAMPLE < SAMPLES ? deque->n / ENTRIES_PER_SAMPLE : SAMPLES;
  for (uint32_t i = 0; i < s->n; i++)
    s->entries[i] = (uint32_t)((2 * i + 1) * (uint64_t)deque->n / (2 * s->n));
}

/* ---- running it ------------------------------------------------------------------------------------------ */

/* Samples [begin, end) as far as they are a member's, all at once. */
static kith_status run_samples(shared_run *r, const member *m, uint32_t begin, uint32_t end,
                               kith_tally *tally) {
  uint32_t number = (uint32_t)(m - r->h->members);
  uint32_t blocks[SAMPLES];
  kith_work work = *r->work;
  work.blocks = blocks;
  for (uint32_t i = begin; i < end; i++)
    if (i % r->h->n_members == number)
      blocks[work.n_blocks++] = r->h->deque.blocks[r->sample.entries[i]];
  return m->public.engine->run(m->public.engine, 0, &work, tally);
}

/* The same, timed. */
static kith_status time_samples(shared_run *r, const member *m, uint32_t begin, uint32_t end, kith_tally *tally,
                                double *seconds) {
  double began = kith_seconds();
  kith_status status = run_samples(r, m, begin, end, tally);
  *seconds = kith_seconds() - began;
  return status;
}

/* A GPU has all its entries at once, the heavy half and the light one, on its first lane; before that a light
 * one alone, twice: so that everything is there that is made only once, and to see what any batch costs. The
 * batches of the join are so large, and so many, that they hardly feel it. */
static kith_status run_sample_at_once(shared_run *r, const member *m, uint32_t lane, kith_tally *tally) {
  sample *s = &r->sample;
  double *half_seconds = s->half_seconds[m - r->h->members];
  uint32_t light = s->n - r->h->n_members;
  uint32_t middle = s->n / 2;
  double any_batch = 0;
  kith_status status = lane == 0 ? run_samples(r, m, light, s->n, tally) : KITH_OK;
  if (lane > 0 || status || (status = time_samples(r, m, light, s->n, tally, &any_batch)))
    return status;
  for (uint32_t half = 0; half < 2 && !status; half++) {
    double seconds;
    status = time_samples(r, m, half ? middle : 0, half ? s->n : middle, tally, &seconds);
    half_seconds[half] = fmax(seconds - any_batch, seconds / 8);
  }
  return status;
}

/* Threads run the entries next to the sample's first: cores are slower when all of them work, which takes a
 * while to begin. */
static kith_status run_sample_entries(shared_run *r, member *m, uint32_t number, uint32_t lane,
                                      kith_tally *tally) {
  sample *s = &r->sample;
  kith_work work = *r->work;
  kith_status status = KITH_OK;
  uint32_t own = (s->n - number + r->h->n_members - 1) / r->h->n_members;
  uint32_t turn;
  while (!status && (turn = atomic_fetch_add(&s->next[number], 1)) < 2 * own) {
    bool counts = turn >= own;
    uint32_t i = number + turn % own * r->h->n_members;
    double began = kith_seconds();
    status = kith_shared_run_block(r->h, m, lane, &work, s->entries[i] + (counts ? 0 : 1), tally);
    if (counts)
      s->entry_seconds[i] = kith_seconds() - began;
  }
  return status;
}

/* A member that fails here will fail again where that is dealt with. */
static void run_sample(shared_run *r, member *m, uint32_t lane, bool reports) {
  (void)reports;
  uint32_t number = (uint32_t)(m - r->h->members);
  kith_tally tally = {0};
  kith_status status = m->manner == TAKES_BLOCKS ? run_sample_at_once(r, m, lane, &tally)
                                                 : run_sample_entries(r, m, number, lane, &tally);
  pthread_mutex_lock(&r->h->lock);
  r->sample.failed[number] = r->sample.failed[number] || status;
  pthread_mutex_unlock(&r->h->lock);
}

/* ---- what it tells --------------------------------------------------------------------------------------- */

/* The work of a member's samples in [begin, end). */
static double sampled_work(const shared_run *r, uint32_t number, uint32_t begin, uint32_t end) {
  const kith_deque *deque = &r->h->deque;
  double work = 0;
  for (uint32_t i = begin; i < end; i++)
    if (i % r->h->n_members == number)
      work += (double)(deque->work[r->sample.entries[i] + 1] - deque->work[r->sample.entries[i]]);
  return work;
}

static bool took_part(const shared_run *r, uint32_t number) {
  return !r->h->members[number].gone && !r->sample.failed[number];
}

/* Seconds that a member took for its part of the sample. */
static double sampled_seconds(const shared_run *r, uint32_t number) {
  const sample *s = &r->sample;
  if (r->h->members[number].manner == TAKES_BLOCKS)
    return s->half_seconds[number][0] + s->half_seconds[number][1];
  double seconds = 0;
  for (uint32_t i = number; i < s->n; i += r->h->n_members)
    seconds += s->entry_seconds[i];
  return seconds / r->h->members[number].lanes;
}

/* The part of the heavy end, by how fast everybody did the sample. */
static double find_share(const shared_run *r) {
  const sample *s = &r->sample;
  kith_hybrid_spec spec = {0};
  for (uint32_t i = 0; i < r->h->n_members; i++)
    if (took_part(r, i))
      spec.members[spec.n_members++] = (kith_member){
          .end = r->h->members[i].public.end, .rate = sampled_work(r, i, 0, s->n) / sampled_seconds(r, i)};
  return kith_hybrid_share(&spec);
}

/* Work a second of all that take blocks, in the heavy half and in the light one. */
static double half_rate(const shared_run *r, uint32_t half) {
  const sample *s = &r->sample;
  uint32_t middle = s->n / 2;
  double rate = 0;
  for (uint32_t i = 0; i < r->h->n_members; i++)
    if (took_part(r, i) && s->half_seconds[i][half] > 0)
      rate += sampled_work(r, i, half ? middle : 0, half ? s->n : middle) / s->half_seconds[i][half];
  return rate;
}

/* Seconds that the heavy end would take for the entries before the i-th sample. */
static double heavy_seconds(const shared_run *r, uint32_t i, const double rates[2]) {
  const kith_deque *deque = &r->h->deque;
  uint32_t half = r->sample.n / 2;
  double middle = (double)deque->work[r->sample.entries[half]];
  double work = (double)deque->work[r->sample.entries[i]];
  return work < middle ? work / rates[0] : middle / rates[0] + (work - middle) / rates[1];
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

/* So that by the sample both ends take equally long. */
static uint32_t find_candidates_cut(const shared_run *r) {
  const kith_deque *deque = &r->h->deque;
  const sample *s = &r->sample;
  double rates[2] = {half_rate(r, 0), half_rate(r, 1)};
  if (!(rates[0] > 0 && rates[1] > 0 && light_seconds(r, 0) > 0))
    return kith_deque_find(deque, deque->work, find_share(r));
  uint32_t i = 0;
  while (i < s->n && heavy_seconds(r, i, rates) < light_seconds(r, i))
    i++;
  return i < s->n ? s->entries[i] : deque->n;
}

int64_t kith_shared_find_cut(shared_run *r) {
  hybrid *h = r->h;
  kith_deque *deque = &h->deque;
  if (h->partition == KITH_PARTITION_DYNAMIC)
    return -1;
  bool by_queries = h->partition == KITH_PARTITION_QUERIES;
  take_sample(deque, &r->sample);
  if (r->sample.n < 8 * h->n_members) /* too few: by what is known of the engines */
    return kith_deque_find(deque, by_queries ? deque->queries : deque->work, h->share);
  r->run_lane = run_sample;
  kith_shared_run_lanes(r);
  return by_queries ? kith_deque_find(deque, deque->queries, find_share(r)) : find_candidates_cut(r);
}
