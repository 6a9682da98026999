/* Ctrl-C and SIGTERM: see signals.h. A handler has no arguments of ours, hence the two globals. */
#include "signals.h"

#include "errors.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static _Atomic(kith_context *) watched;
static volatile sig_atomic_t caught;

static void stop(int number) {
  caught = number;
  kith_context *ctx = atomic_load(&watched);
  if (ctx)
    kith_cancel(ctx);
}

static void listen_to(int number) {
  /* No SA_RESTART: a read that waits for standard input has to notice. */
  struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, NULL);
}

static bool is_ignored(int number) {
  struct sigaction inherited;
  return sigaction(number, NULL, &inherited) == 0 && inherited.sa_handler == SIG_IGN;
}

void signals_install(void) {
  listen_to(SIGINT);
  listen_to(SIGTERM);
  if (!is_ignored(SIGHUP)) /* as nohup wants it */
    listen_to(SIGHUP);
  signal(SIGPIPE, SIG_IGN); /* these two: the write fails instead, and says so */
  signal(SIGXFSZ, SIG_IGN);
}

void signals_watch(kith_context *ctx) {
  atomic_store(&watched, ctx);
  if (ctx && caught) /* it came before there was anything to cancel */
    kith_cancel(ctx);
}

int signals_caught(void) { return caught; }

int signals_fail(const char *checkpoint) {
  bool terminated = caught == SIGTERM || caught == SIGHUP;
  int code = terminated ? CLI_TERMINATED : CLI_INTERRUPTED;
  const char *what = terminated ? "terminated" : "interrupted";
  if (checkpoint)
    return cli_fail(code, "%s; what is done stays recorded in %s, and the same command goes on from there",
                    what, checkpoint);
  return cli_fail(code, "%s", what);
}
