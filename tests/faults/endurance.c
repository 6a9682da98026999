/* Many small joins in one process: endurance.c JOINS MEBIBYTES.
 *
 * Half of the joins share a context, half get a new one every hundred. Every call of the library takes its
 * turn. After a while of warming up, neither the resident memory (beyond so many MiB), nor the number of
 * threads, nor that of open files may grow; and the answers stay the same. Prints "N passed, N failed". */
#include "properties/support.h"
#include "scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N_POINTS = 24, N_CALLS = 6, JOINS_PER_CONTEXT = 100, WARM = 2000, WRITES_EVERY = 20 };

static cloud points;

/* ---- what the process uses ---- */

typedef struct usage {
  long resident_bytes, threads, files;
} usage;

static long count_entries(const char *path) {
  long n = 0;
  DIR *dir = opendir(path);
  while (dir && readdir(dir))
    n++;
  if (dir)
    closedir(dir);
  return n;
}

static long resident_bytes(void) {
  long pages = -1;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1)
    abort();
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

/* A thread that was joined may be listed for a while: it is waited for, a second at most. */
static long count_threads(void) {
  const struct timespec pause = {.tv_nsec = 10000000};
  enum { ALONE = 3, TRIES = 100 }; /* with . and .. */
  long n = count_entries("/proc/self/task");
  for (int i = 0; n > ALONE && i < TRIES; i++) {
    nanosleep(&pause, NULL);
    n = count_entries("/proc/self/task");
  }
  return n;
}

static usage usage_now(void) {
  return (usage){
      .resident_bytes = resident_bytes(), .threads = count_threads(), .files = count_entries("/proc/self/fd")};
}

/* ---- one call after the other ---- */

static int count_batch(void *pairs, const kith_batch *batch) {
  *(uint64_t *)pairs += batch->offsets[batch->n_rows];
  return 0;
}

static uint64_t count_table(kith_context *ctx, const kith_join_options *options) {
  kith_table *table;
  if (kith_join_table(ctx, &points.points, NULL, options, &table, NULL) != KITH_OK)
    return 0;
  uint64_t pairs = table->n_pairs;
  kith_table_destroy(table);
  return pairs;
}

static uint64_t count_written(kith_context *ctx, const kith_join_options *options, kith_what what,
                              const char *path) {
  kith_join_report report = kith_join_report_init();
  kith_status status = kith_join_write(ctx, &points.points, NULL, options, what, path, &report);
  unlink(path);
  return status == KITH_OK ? report.pairs : 0;
}

/* The number of pairs, found by the i-th call; writing comes rarely, for it takes long. */
static uint64_t count_pairs(kith_context *ctx, uint64_t i) {
  kith_join_options options = kith_join_options_init(0.3);
  uint64_t pairs = 0, degrees[N_POINTS];
  bool writes = i % WRITES_EVERY == 0;
  options.brute = i % 7 == 0;
  switch (writes ? N_CALLS - 1 - (i / WRITES_EVERY) % 2 : i % (N_CALLS - 2)) {
  case 0:
    kith_join_count(ctx, &points.points, NULL, &options, &pairs, NULL);
    return pairs;
  case 1:
    kith_join_degrees(ctx, &points.points, NULL, &options, degrees, NULL);
    for (int k = 0; k < N_POINTS; k++)
      pairs += degrees[k];
    return pairs;
  case 2:
    return count_table(ctx, &options);
  case 3:
    kith_join_stream(ctx, &points.points, NULL, &options, count_batch, &pairs, NULL);
    return pairs;
  case 4:
    return count_written(ctx, &options, KITH_NEIGHBORS, "out/near.npz");
  default:
    return count_written(ctx, &options, KITH_DEGREES, "out/degrees.npy");
  }
}

/* ---- many ---- */

/* Runs joins; a new context after every `per_context` of them. */
static void run_joins(uint64_t joins, uint64_t per_context, uint64_t right) {
  uint64_t wrong = 0;
  kith_context *ctx = NULL;
  for (uint64_t i = 0; i < joins; i++) {
    if (i % per_context == 0) {
      kith_context_destroy(ctx);
      ctx = context_new(NULL, 2, 64 << 20);
    }
    wrong += count_pairs(ctx, i) != right;
  }
  kith_context_destroy(ctx);
  CHECK(wrong == 0, "%llu of %llu joins failed or were wrong", (unsigned long long)wrong,
        (unsigned long long)joins);
}

static void check_growth(usage before, usage after, long slack_bytes) {
  CHECK(after.resident_bytes - before.resident_bytes <= slack_bytes, "%ld KiB of memory have become %ld",
        before.resident_bytes >> 10, after.resident_bytes >> 10);
  CHECK(after.threads == before.threads, "%ld threads have become %ld", before.threads, after.threads);
  CHECK(after.files == before.files, "%ld open files have become %ld", before.files, after.files);
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  uint64_t joins = strtoull(argv[1], NULL, 10) / 2;
  long slack_bytes = atol(argv[2]) << 20;
  scratch_enter();
  points = cloud_random(N_POINTS, 2, KITH_F32, 1);
  kith_context *ctx = context_new(NULL, 2, 64 << 20);
  uint64_t right = count_pairs(ctx, 1);
  kith_context_destroy(ctx);
  CHECK(right > 0, "there are no pairs");
  run_joins(WARM, JOINS_PER_CONTEXT, right);
  usage before = usage_now();
  run_joins(joins, joins, right);
  check_growth(before, usage_now(), slack_bytes);
  run_joins(joins, JOINS_PER_CONTEXT, right);
  check_growth(before, usage_now(), slack_bytes);
  cloud_free(&points);
  scratch_leave();
  printf("%u passed, %u failed\n", checks_passed, checks_failed);
  return checks_failed != 0;
}
