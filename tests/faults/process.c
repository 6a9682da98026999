/* The command as a process: see process.h. */
#include "process.h"

#include "scratch.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_SECONDS = 20, MOST_WORDS = 32 };

#define JOIN "join points.npy --eps 0.05 -q --what "

const writer WRITERS[] = {
    {JOIN "degrees -o out/degrees.npy", "out/degrees.npy"},
    {JOIN "neighbors -o out/near.npz", "out/near.npz"},
    {JOIN "neighbors --distances --batch-rows 700 -o out/near.npz", "out/near.npz"},
    {JOIN "pairs -o out/pairs.npy", "out/pairs.npy"},
    {JOIN "pairs --distances -o out/pairs.npy", "out/pairs.npy"},
    {JOIN "pairs -o out/pairs.csv", "out/pairs.csv"},
    {JOIN "pairs --distances -o out/pairs.tsv", "out/pairs.tsv"},
    {JOIN "pairs --half --batch-rows 700 -o out/pairs.txt", "out/pairs.txt"},
    {JOIN "pairs", NULL},
    {JOIN "pairs --distances -o -", NULL},
    {"gen unif --n 50k -o out/points.npy", "out/points.npy"},
    {"gen gauss --n 50k --dim 3 -o out/points.fbin", "out/points.fbin"},
    {"gen expo --n 20k -o out/points.csv", "out/points.csv"},
};
const int N_WRITERS = sizeof WRITERS / sizeof *WRITERS;

static const char *program;
static const char OLDER[] = "what was there before";

void process_prepare(const char *kith, unsigned n_points) {
  static char path[4096];
  char arguments[64];
  sigset_t child;
  if (!realpath(kith, path))
    exit(1);
  program = path;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL); /* process_wait() waits for it */
  scratch_enter();
  snprintf(arguments, sizeof arguments, "gen unif --n %u --dim 2 -o points.npy", n_points);
  if (process_wait(process_start(&(writer){arguments, NULL}, NULL)).code != 0)
    exit(1);
}

static void redirect(const char *path, int fd) {
  int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (to < 0 || dup2(to, fd) < 0 || close(to) != 0)
    _exit(127);
}

static void become(const writer *w, char *const *environment) {
  char *words[MOST_WORDS] = {"kith"}, *rest = strdup(w->arguments);
  for (int n = 1; rest && n < MOST_WORDS - 1; n++)
    words[n] = strsep(&rest, " ");
  redirect("stdout", STDOUT_FILENO);
  redirect("stderr", STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  for (; environment && *environment; environment++)
    putenv(*environment);
  execv(program, words);
  _exit(127);
}

pid_t process_start(const writer *w, char *const *environment) {
  pid_t pid = fork();
  if (pid == 0)
    become(w, environment);
  return pid;
}

static void read_message(char *message, size_t size) {
  FILE *file = fopen("stderr", "r");
  size_t n = file ? fread(message, 1, size - 1, file) : 0;
  message[n] = '\0';
  if (file)
    fclose(file);
}

ending process_wait(pid_t pid) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ending end = {0};
  if (sigtimedwait(&child, NULL, &(struct timespec){.tv_sec = PATIENCE_SECONDS}) < 0) {
    end.hung = true;
    kill(pid, SIGKILL);
    sigwaitinfo(&child, NULL);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  read_message(end.message, sizeof end.message);
  return end;
}

uint64_t process_result(const writer *w) { return digest_file(w->output ? w->output : "stdout"); }

void process_put_older(const writer *w) {
  scratch_sweep();
  if (w->output)
    scratch_write(w->output, OLDER, sizeof OLDER);
}

bool process_left_older(const writer *w) {
  static uint64_t older;
  if (!older) {
    scratch_write("older", OLDER, sizeof OLDER);
    older = digest_file("older");
  }
  return w->output ? process_made(w, older) : scratch_entries() == 0;
}

bool process_made(const writer *w, uint64_t digest) {
  return process_result(w) == digest && scratch_entries() == (w->output != NULL);
}
