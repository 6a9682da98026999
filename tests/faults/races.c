/* Several threads at once, for the thread sanitizer: races.c RUNS.
 *
 * Calls that write are cancelled from another thread at a random moment, so that lanes, sink and caller stop at
 * the same time; and two contexts work side by side. Each call must end with the whole file and the right
 * number of pairs, or with KITH_ERR_CANCELLED and nothing. Prints "N passed, N failed". */
#include "properties/support.h"
#include "scratch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { N_POINTS = 6000 };

static const double EPS = 0.1;
static cloud points;
static uint64_t right;    /* number of pairs */
static uint64_t duration; /* of a call that writes, in microseconds */

/* ---- cancelled while writing ---- */

typedef struct output {
  kith_what what;
  const char *path;
  int distances;
} output;

static const output OUTPUTS[] = {{KITH_NEIGHBORS, "out/near.npz", 0},
                                 {KITH_PAIRS, "out/pairs.npy", 1},
                                 {KITH_PAIRS, "out/pairs.csv", 1},
                                 {KITH_NEIGHBORS, "out/near.npz", 1},
                                 {KITH_DEGREES, "out/degrees.npy", 0}};
enum { N_OUTPUTS = sizeof OUTPUTS / sizeof *OUTPUTS };

typedef struct canceller {
  kith_context *ctx;
  long microseconds;
} canceller;

static void *cancel_later(void *argument) {
  const canceller *c = argument;
  nanosleep(&(struct timespec){.tv_nsec = c->microseconds * 1000}, NULL);
  kith_cancel(c->ctx);
  return NULL;
}

static kith_status write_output(kith_context *ctx, const output *o, uint64_t *pairs) {
  kith_join_options options = kith_join_options_init(EPS);
  options.distances = o->distances;
  options.batch_rows = 1000;
  kith_join_report report = kith_join_report_init();
  kith_status status = kith_join_write(ctx, &points.points, NULL, &options, o->what, o->path, &report);
  *pairs = report.pairs;
  return status;
}

static void run_undisturbed(kith_context *ctx) {
  struct timespec began, ended;
  clock_gettime(CLOCK_MONOTONIC, &began);
  CHECK(write_output(ctx, &OUTPUTS[0], &right) == KITH_OK && right > 0, "undisturbed: %s", kith_message(ctx));
  clock_gettime(CLOCK_MONOTONIC, &ended);
  int64_t nanoseconds = (ended.tv_sec - began.tv_sec) * INT64_C(1000000000) + (ended.tv_nsec - began.tv_nsec);
  duration = (uint64_t)nanoseconds / 1000;
  scratch_sweep();
}

/* The request may come when the call is over: it then stops the next one. */
static void spend_request(kith_context *ctx) {
  kith_column_stats stats[2];
  kith_join_options options = kith_join_options_init(EPS);
  uint64_t pairs;
  kith_points_stats(ctx, &points.points, stats, NULL);
  kith_join_count(ctx, &points.points, NULL, &options, &pairs, NULL);
  CHECK(kith_join_count(ctx, &points.points, NULL, &options, &pairs, NULL) == KITH_OK && pairs == right,
        "a count after one that was cancelled: %s", kith_message(ctx));
}

static void cancel_one(kith_context *ctx, const output *o, long microseconds) {
  canceller c = {.ctx = ctx, .microseconds = microseconds};
  pthread_t thread;
  uint64_t pairs;
  if (pthread_create(&thread, NULL, cancel_later, &c) != 0)
    abort();
  kith_status status = write_output(ctx, o, &pairs);
  CHECK(status == KITH_OK ? pairs == right : status == KITH_ERR_CANCELLED && *kith_message(ctx),
        "%s cancelled after %ld us: %s, %s", o->path, microseconds, kith_status_name(status),
        kith_message(ctx));
  CHECK(scratch_entries() == (status == KITH_OK), "%s cancelled after %ld us: wrong files are left", o->path,
        microseconds);
  pthread_join(thread, NULL);
  scratch_sweep();
  spend_request(ctx);
}

/* ---- cancelled while the sink waits for the reader of a pipe and the lanes work ---- */

static int open_pipe(void) {
  int pipe = mkfifo("pipe.csv", 0600) == 0 ? open("pipe.csv", O_RDWR | O_NONBLOCK) : -1;
  if (pipe < 0)
    abort();
  return pipe;
}

static void check_blocked(kith_context *ctx, int runs, uint64_t *seed) {
  const output blocked = {KITH_PAIRS, "pipe.csv", 1};
  int pipe = open_pipe();
  for (int run = 0; run < runs; run++) {
    cancel_one(ctx, &blocked, (long)random_below(seed, duration));
    for (char bytes[1 << 12]; read(pipe, bytes, sizeof bytes) > 0;) {
    }
  }
  close(pipe);
}

/* ---- side by side ---- */

static void *count_again(void *argument) {
  (void)argument;
  kith_context *ctx = context_new(NULL, 2, 64 << 20);
  kith_join_options options = kith_join_options_init(EPS);
  kith_table *table;
  uint64_t pairs = 0, *wrong = calloc(1, sizeof *wrong);
  for (int run = 0; wrong && run < 4; run++) {
    *wrong += kith_join_count(ctx, &points.points, NULL, &options, &pairs, NULL) != KITH_OK || pairs != right;
    *wrong += kith_join_table(ctx, &points.points, NULL, &options, &table, NULL) != KITH_OK;
    kith_table_destroy(table);
  }
  kith_context_destroy(ctx);
  return wrong;
}

static void check_side_by_side(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    if (pthread_create(&threads[i], NULL, count_again, NULL) != 0)
      abort();
  for (int i = 0; i < 2; i++) {
    void *wrong = NULL;
    pthread_join(threads[i], &wrong);
    CHECK(wrong && *(uint64_t *)wrong == 0, "two contexts side by side");
    free(wrong);
  }
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  scratch_enter();
  points = cloud_random(N_POINTS, 2, KITH_F32, 1);
  kith_context *ctx = context_new(NULL, 2, 64 << 20);
  run_undisturbed(ctx);
  uint64_t seed = (uint64_t)time(NULL);
  printf("seed %llu\n", (unsigned long long)seed);
  for (int run = 0; run < atoi(argv[1]); run++)
    cancel_one(ctx, &OUTPUTS[run % N_OUTPUTS], (long)random_below(&seed, 2 * duration));
  check_blocked(ctx, atoi(argv[1]), &seed);
  kith_context_destroy(ctx);
  check_side_by_side();
  cloud_free(&points);
  scratch_leave();
  printf("%u passed, %u failed\n", checks_passed, checks_failed);
  return checks_failed != 0;
}
