/* The threads of a context: see team.h. */
#include "base/team.h"

#include <pthread.h>
#include <stdlib.h>

enum { SPINS = 1000 }; /* about 15 microseconds: the gap between two calls of one stage */

typedef struct job {
  kith_item_fn fn;
  void *argument;
  uint64_t n_items;
  const kith_context *stopper; /* NULL: cannot be cancelled */
} job;

struct kith_team {
  pthread_mutex_t lock;
  pthread_cond_t start; /* an offer was made, or quit */
  pthread_cond_t done;  /* nobody works any more */
  /* The job on offer. */
  job job;
  _Atomic uint64_t next;
  _Atomic uint64_t offers;  /* made so far */
  _Atomic uint32_t working; /* threads that took the present offer up */
  bool open;                /* it may still be taken up */
  bool quit;
  uint32_t n_threads;
  pthread_t threads[];
};

static void pause_briefly(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static bool is_stopped(const job *j) { return j->stopper && kith_cancelled(j->stopper); }

static void take_items(kith_team *team) {
  while (!is_stopped(&team->job)) {
    uint64_t item = atomic_fetch_add(&team->next, 1);
    if (item >= team->job.n_items)
      return;
    team->job.fn(team->job.argument, item);
  }
}

/* Waits for an offer after `seen` of them and takes it up; false: quit. */
static bool accept_offer(kith_team *team, uint64_t *seen) {
  for (int spin = 0; spin < SPINS && atomic_load(&team->offers) == *seen; spin++)
    pause_briefly();
  pthread_mutex_lock(&team->lock);
  while (!team->quit && (!team->open || atomic_load(&team->offers) == *seen))
    pthread_cond_wait(&team->start, &team->lock);
  *seen = atomic_load(&team->offers);
  bool accepted = !team->quit;
  if (accepted)
    atomic_fetch_add(&team->working, 1);
  pthread_mutex_unlock(&team->lock);
  return accepted;
}

static void *work(void *argument) {
  kith_team *team = argument;
  uint64_t seen = 0;
  while (accept_offer(team, &seen)) {
    take_items(team);
    pthread_mutex_lock(&team->lock);
    if (atomic_fetch_sub(&team->working, 1) == 1)
      pthread_cond_signal(&team->done);
    pthread_mutex_unlock(&team->lock);
  }
  return NULL;
}

/* Starts the threads; as many as the system gives. NULL if there is no memory for even that. */
static kith_team *team_create(uint32_t n_threads) {
  kith_team *team = calloc(1, sizeof *team + n_threads * sizeof(pthread_t));
  if (!team)
    return NULL;
  pthread_mutex_init(&team->lock, NULL);
  pthread_cond_init(&team->start, NULL);
  pthread_cond_init(&team->done, NULL);
  while (team->n_threads < n_threads && pthread_create(&team->threads[team->n_threads], NULL, work, team) == 0)
    team->n_threads++;
  return team;
}

void kith_team_destroy(kith_context *ctx) {
  kith_team *team = ctx->team;
  if (!team)
    return;
  pthread_mutex_lock(&team->lock);
  team->quit = true;
  pthread_cond_broadcast(&team->start);
  pthread_mutex_unlock(&team->lock);
  for (uint32_t i = 0; i < team->n_threads; i++)
    pthread_join(team->threads[i], NULL);
  pthread_cond_destroy(&team->done);
  pthread_cond_destroy(&team->start);
  pthread_mutex_destroy(&team->lock);
  free(team);
  ctx->team = NULL;
}

static void offer(kith_team *team, job j) {
  pthread_mutex_lock(&team->lock);
  team->job = j;
  atomic_store(&team->next, 1); /* item 0 is the caller's */
  atomic_fetch_add(&team->offers, 1);
  team->open = true;
  pthread_cond_broadcast(&team->start);
  pthread_mutex_unlock(&team->lock);
}

/* Closes the offer and waits for those who took it up. */
static void finish(kith_team *team) {
  pthread_mutex_lock(&team->lock);
  team->open = false;
  pthread_mutex_unlock(&team->lock);
  for (int spin = 0; spin < SPINS && atomic_load(&team->working) > 0; spin++)
    pause_briefly();
  pthread_mutex_lock(&team->lock);
  while (atomic_load(&team->working) > 0)
    pthread_cond_wait(&team->done, &team->lock);
  pthread_mutex_unlock(&team->lock);
}

static void run(kith_context *ctx, job j) {
  if (j.n_items > 1 && ctx->threads > 1 && !ctx->team)
    ctx->team = team_create(ctx->threads - 1);
  if (j.n_items <= 1 || ctx->threads <= 1 || !ctx->team) {
    for (uint64_t item = 0; item < j.n_items && !is_stopped(&j); item++)
      j.fn(j.argument, item);
    return;
  }
  offer(ctx->team, j);
  if (!is_stopped(&j))
    j.fn(j.argument, 0);
  take_items(ctx->team);
  finish(ctx->team);
}

void kith_each(kith_context *ctx, uint64_t n_items, kith_item_fn fn, void *argument) {
  run(ctx, (job){.fn = fn, .argument = argument, .n_items = n_items});
}

void kith_each_unless_cancelled(kith_context *ctx, uint64_t n_items, kith_item_fn fn, void *argument) {
  run(ctx, (job){.fn = fn, .argument = argument, .n_items = n_items, .stopper = ctx});
}

uint64_t kith_shares(const kith_context *ctx, uint64_t n, uint64_t grain) {
  enum { SHARES_PER_THREAD = 8 };
  uint64_t most = n / grain;
  uint64_t wanted = ctx->threads > 1 ? (uint64_t)ctx->threads * SHARES_PER_THREAD : 1;
  if (wanted > most)
    wanted = most;
  return wanted ? wanted : 1;
}
