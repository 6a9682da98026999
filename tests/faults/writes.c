/* Every write goes wrong once: writes.c KITH FAULTY_LIBRARY [KINDS].
 *
 * For every way to write a file, the first call that makes it is spoiled, then the second, and so on until
 * there are no more (faulty.c). Short writes and interrupted calls must be survived, with the same bytes in the
 * end. All else must end in exit code 4 and a message that names the file, with the older file under its name
 * and nothing beside it. Prints "N passed, N failed". */
#include "process.h"
#include "properties/support.h"
#include "scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_OUTPUT = 4, MOST_CALLS = 300, N_POINTS = 3000 };

typedef struct fault {
  const char *kind;
  bool survived;
} fault;

static const fault FAULTS[] = {{"enospc", false}, {"short", true}, {"eintr", true}, {"eio", false}};
enum { N_FAULTS = sizeof FAULTS / sizeof *FAULTS };

/* Runs it with call number k spoiled; *happened is false if there was no such call. */
static ending run_spoiled(const writer *w, const char *library, const char *kind, unsigned k, bool *happened) {
  int report[2];
  if (pipe(report) != 0 || fcntl(report[0], F_SETFL, O_NONBLOCK) != 0)
    exit(1);
  char preload[4200], call[32], how[32], where[32];
  snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
  snprintf(call, sizeof call, "FAULT_CALL=%u", k);
  snprintf(how, sizeof how, "FAULT_KIND=%s", kind);
  snprintf(where, sizeof where, "FAULT_REPORT=%d", report[1]);
  char leaks[] = "ASAN_OPTIONS=verify_asan_link_order=0"; /* where there is a sanitizer, it comes second */
  ending end = process_wait(process_start(w, (char *const[]){preload, call, how, where, leaks, NULL}));
  char mark;
  *happened = read(report[0], &mark, 1) == 1;
  close(report[0]);
  close(report[1]);
  return end;
}

static void check_ending(const writer *w, const fault *f, unsigned k, const ending *end, uint64_t right) {
  bool succeeds = f->survived || k == 0;
  int wanted = succeeds ? 0 : EXIT_OUTPUT;
  CHECK(end->code == wanted && !end->hung, "kith %s, %s in call %u: exit code %d: %s", w->arguments, f->kind, k,
        end->code, end->message);
  CHECK(succeeds || strstr(end->message, w->output ? w->output : "standard output"),
        "kith %s, %s in call %u: the message does not name the file: %s", w->arguments, f->kind, k,
        end->message);
  CHECK(succeeds ? process_made(w, right) : process_left_older(w),
        "kith %s, %s in call %u: wrong files are left", w->arguments, f->kind, k);
}

static void check_fault(const writer *w, const char *library, const fault *f, uint64_t right) {
  unsigned k = 1;
  for (bool happened = true; happened && k < MOST_CALLS; k++) {
    process_put_older(w);
    ending end = run_spoiled(w, library, f->kind, k, &happened);
    check_ending(w, f, happened ? k : 0, &end, right);
  }
  CHECK(k > 2 && k < MOST_CALLS, "kith %s: %u calls", w->arguments, k);
}

static void check_writer(const writer *w, const char *library, unsigned n_faults) {
  process_put_older(w);
  ending end = process_wait(process_start(w, NULL));
  CHECK(end.code == 0, "kith %s: %s", w->arguments, end.message);
  uint64_t right = process_result(w);
  for (unsigned f = 0; f < n_faults; f++)
    check_fault(w, library, &FAULTS[f], right);
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  char library[4096];
  if (!realpath(argv[2], library))
    return 2;
  unsigned n_faults = argc > 3 ? (unsigned)atoi(argv[3]) : N_FAULTS;
  process_prepare(argv[1], N_POINTS);
  for (int i = 0; i < N_WRITERS; i++)
    check_writer(&WRITERS[i], library, n_faults);
  scratch_leave();
  printf("%u passed, %u failed\n", checks_passed, checks_failed);
  return checks_failed != 0;
}
