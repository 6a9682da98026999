/* Every request of the command to the system fails once, as those of the library do in allocations.c.
 *
 * Commands run in this process, while their first request is refused, then their second, and so on, until there
 * are no more. Each must end as if nothing had been, or with a documented exit code, a sentence, and no file;
 * maps, files and threads must have come back. Blocks that popt and jansson gave go uncounted: a sanitizer sees
 * to them. Prints "N passed, N failed". */
#include "properties/support.h"
#include "refusals.h"
#include "scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_INPUT = 3, EXIT_MEMORY = 5, MOST_REQUESTS = 500, MOST_WORDS = 32 };

int kith_main(int argc, char **argv); /* the command's own main(), by another name */

typedef struct command {
  const char *arguments; /* behind "kith" */
  const char *output;    /* what it writes; NULL: a text on standard output that is always the same */
} command;

#define FILES KITH_TEST_FILES "/"

static const command COMMANDS[] = {
    {"join " FILES "points.csv --columns ra,dec --eps 0.5 -q", NULL},
    {"join " FILES "points.csv --columns ra,dec --eps-column r --what pairs -o out/p.csv -q", "out/p.csv"},
    {"join " FILES "swapped.npy --eps-column 0 -q", NULL},
    {"join " FILES "points.npy " FILES "swapped.npy --eps 5 --what neighbors -o out/n.npz -q", "out/n.npz"},
    {"join " FILES "points.npy --eps 1.5 --what degrees -o out/d.npy -q", "out/d.npy"},
    {"join " FILES "points.npy --eps 1.5 --what degrees -q", NULL},
    {"join " FILES "points.gro --box file --eps 0.35 -q", NULL},
    {"join " FILES "points.gro --box 3,3,3 --eps 0.35 -q", NULL},
    {"info " FILES "points.csv --columns ra,dec", NULL},
    {"gen unif --n 100 -o out/points.npy", "out/points.npy"},
    {"gen lattice --n 100 -o out/points.csv", "out/points.csv"},
};
enum { N_COMMANDS = sizeof COMMANDS / sizeof *COMMANDS };

/* ---- one command, with its standard output and error in files ---- */

static int redirect(int fd, const char *path) {
  int kept = dup(fd), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (kept < 0 || to < 0 || dup2(to, fd) < 0)
    abort();
  close(to);
  return kept;
}

static void restore(int fd, int kept) {
  dup2(kept, fd);
  close(kept);
}

typedef struct outcome {
  int code;
  uint64_t result; /* a digest */
  char message[512];
} outcome;

static void read_message(outcome *o) {
  int fd = open("stderr", O_RDONLY);
  ssize_t n = read(fd, o->message, sizeof o->message - 1);
  o->message[n > 0 ? n : 0] = '\0';
  close(fd);
}

/* Runs it with request n refused (0: none). */
static outcome run(const command *c, unsigned n) {
  char words[512], *argv[MOST_WORDS] = {"kith"}, *rest = words;
  int argc = 1;
  snprintf(words, sizeof words, "%s", c->arguments);
  while (rest && argc < MOST_WORDS - 1)
    argv[argc++] = strsep(&rest, " ");
  int out = redirect(STDOUT_FILENO, "stdout"), err = redirect(STDERR_FILENO, "stderr");
  refuse_nth(n);
  outcome o = {.code = kith_main(argc, argv)};
  fflush(stdout);
  restore(STDOUT_FILENO, out);
  restore(STDERR_FILENO, err);
  o.result = digest_file(c->output ? c->output : "stdout");
  read_message(&o);
  return o;
}

/* ---- every request in turn ---- */

/* False once there was no request n. */
static bool refuse_one(const command *c, uint64_t right, unsigned n) {
  holdings before = holdings_now();
  outcome o = run(c, n);
  bool refused = has_refused(), succeeded = o.code == 0;
  refuse_nth(0);
  holdings after = holdings_now();
  CHECK(succeeded ? o.result == right : o.code == EXIT_MEMORY || o.code == EXIT_INPUT,
        "kith %s, request %u refused: exit code %d: %s", c->arguments, n, o.code, o.message);
  CHECK(succeeded || strncmp(o.message, "kith: ", 6) == 0, "kith %s, request %u refused: no sentence: %s",
        c->arguments, n, o.message);
  CHECK(scratch_entries() == (succeeded && c->output), "kith %s, request %u refused: wrong files are left",
        c->arguments, n);
  CHECK(before.maps == after.maps && before.files == after.files && before.threads == after.threads,
        "kith %s, request %u refused: something was not given back", c->arguments, n);
  scratch_sweep();
  return refused;
}

static void check_command(const command *c) {
  outcome good = run(c, 0);
  CHECK(good.code == 0, "kith %s: %s", c->arguments, good.message);
  scratch_sweep();
  unsigned n = 1;
  while (n < MOST_REQUESTS && refuse_one(c, good.result, n))
    n++;
  CHECK(n > 2 && n < MOST_REQUESTS, "kith %s: %u requests", c->arguments, n);
}

int main(void) {
  scratch_enter();
  for (int i = 0; i < N_COMMANDS; i++)
    check_command(&COMMANDS[i]);
  scratch_leave();
  printf("%u passed, %u failed\n", checks_passed, checks_failed);
  return checks_failed != 0;
}
