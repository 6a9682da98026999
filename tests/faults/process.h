/* The command as a process of its own: every way in which it writes a file, and what becomes of it. */
#ifndef KITH_TESTS_PROCESS_H
#define KITH_TESTS_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A way to write: the arguments behind "kith", and the file that they make; NULL: standard output. */
typedef struct writer {
  const char *arguments;
  const char *output;
} writer;

extern const writer WRITERS[];
extern const int N_WRITERS;

/* The command to test, and points.npy in the scratch folder for it to join. */
void process_prepare(const char *kith, unsigned n_points);

/* Starts it. Its standard output goes to "stdout", its messages to "stderr", in the scratch folder. The words
 * of `environment` are NAME=VALUE with NULL behind the last, or there are none: NULL. */
pid_t process_start(const writer *w, char *const *environment);

typedef struct ending {
  int code; /* 128 + the signal for one that a signal ended, as shells have it */
  bool hung;
  char message[512]; /* what it said on standard error */
} ending;

/* Waits for the end; a process that does not end is killed, and has hung. */
ending process_wait(pid_t pid);

/* A digest of what it wrote. */
uint64_t process_result(const writer *w);

/* Puts an older file where the output goes, and tells whether that, and nothing else, is in the folder. */
void process_put_older(const writer *w);
bool process_left_older(const writer *w);

/* Whether nothing is in the folder but a file that has this digest. */
bool process_made(const writer *w, uint64_t digest);

#endif
