/* Somebody loses patience at a random moment: signals.c KITH RUNS.
 *
 * Joins that write files, in every way there is, get SIGINT or SIGTERM at a moment between their start and a
 * little after their end. Each must end soon: with the whole file and exit code 0, or with the older file as it
 * was and exit code 130 or 143; and with nothing else in the folder. Prints "N passed, N failed". */
#include "process.h"
#include "properties/support.h"
#include "scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_WRITERS = 32, N_POINTS = 12000 };

typedef struct usual {
  uint64_t result;
  double seconds;
} usual;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static usual run_undisturbed(const writer *w) {
  double began = now();
  ending end = process_wait(process_start(w, NULL));
  CHECK(end.code == 0, "kith %s: %s", w->arguments, end.message);
  return (usual){.result = process_result(w), .seconds = now() - began};
}

static void run_disturbed(const writer *w, const usual *u, int number, double after) {
  process_put_older(w);
  pid_t pid = process_start(w, NULL);
  long wait = (long)(after * 1e9);
  nanosleep(&(struct timespec){.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000}, NULL);
  double began = now();
  kill(pid, number);
  ending end = process_wait(pid);
  CHECK(!end.hung && now() - began < 5, "kith %s, signal %d after %g s: took %g s", w->arguments, number, after,
        now() - began);
  bool stopped = end.code == 128 + number;
  CHECK(stopped || end.code == 0, "kith %s, signal %d after %g s: exit code %d: %s", w->arguments, number,
        after, end.code, end.message);
  bool right = stopped ? process_left_older(w) : process_made(w, u->result);
  CHECK(right, "kith %s, signal %d after %g s, exit code %d: wrong files are left", w->arguments, number, after,
        end.code);
}

int main(int argc, char **argv) {
  if (argc < 3 || N_WRITERS > MOST_WRITERS)
    return 2;
  usual undisturbed[MOST_WRITERS] = {{0}};
  process_prepare(argv[1], N_POINTS);
  for (int i = 0; i < N_WRITERS; i++)
    undisturbed[i] = run_undisturbed(&WRITERS[i]);
  uint64_t seed = (uint64_t)(now() * 1e9);
  printf("seed %llu\n", (unsigned long long)seed);
  for (int run = 0; run < atoi(argv[2]); run++) {
    int i = run % N_WRITERS;
    double after = 1.2 * undisturbed[i].seconds * random_unit(&seed);
    run_disturbed(&WRITERS[i], &undisturbed[i], random_below(&seed, 2) ? SIGINT : SIGTERM, after);
  }
  scratch_leave();
  printf("%u passed, %u failed\n", checks_passed, checks_failed);
  return checks_failed != 0;
}
