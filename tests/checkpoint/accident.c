/* Accidents on purpose: preloaded into a program, ends or disturbs it at a chosen system call that changes
 * files.
 *
 *   ACCIDENT_AT=N    at the N-th such call; 0 or none: never, but the number of calls is told
 *   ACCIDENT=kill    the process is killed; half of what was to be written is
 *   ACCIDENT=power   the same, and what was written to files of results since their last fdatasync is spoilt
 *   ACCIDENT=fail    the call fails, as on a full disk, and the process goes on
 *   ACCIDENT_LOG=F   where the number of calls is written at the end */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

/* What was written by pwrite and is not on the disk yet. Only one thread writes at a time. */
enum { MAX_WRITES = 4096 };
static struct {
  int fd;
  off_t at;
  size_t bytes;
} unsynced[MAX_WRITES];
static int n_unsynced;

static bool wants(const char *kind) {
  const char *accident = getenv("ACCIDENT");
  return accident && strcmp(accident, kind) == 0;
}

static void spoil(void) {
  static char garbage[1 << 20];
  memset(garbage, 0xAA, sizeof garbage);
  for (int i = 0; i < n_unsynced; i++)
    (void)!NEXT(pwrite)(unsynced[i].fd, garbage,
                        unsynced[i].bytes < sizeof garbage ? unsynced[i].bytes : sizeof garbage,
                        unsynced[i].at);
}

static void end(void) {
  if (wants("power"))
    spoil();
  kill(getpid(), SIGKILL);
  for (;;)
    pause();
}

/* Counts the call; true if the accident happens in it. */
static bool happens(void) {
  const char *at = getenv("ACCIDENT_AT");
  long number = atomic_fetch_add(&calls, 1) + 1;
  return at && number == atol(at);
}

/* For calls that are not made at all. */
static bool fails(void) {
  if (!happens())
    return false;
  if (!wants("fail"))
    end();
  errno = ENOSPC;
  return true;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) {
  if (n_unsynced < MAX_WRITES) {
    unsynced[n_unsynced].fd = fd;
    unsynced[n_unsynced].at = at;
    unsynced[n_unsynced++].bytes = bytes;
  }
  if (!happens())
    return NEXT(pwrite)(fd, data, bytes, at);
  if (!wants("fail")) {
    (void)!NEXT(pwrite)(fd, data, bytes / 2, at);
    end();
  }
  errno = ENOSPC;
  return -1;
}

ssize_t write(int fd, const void *data, size_t bytes) {
  if (fd <= 2 || !happens())
    return NEXT(write)(fd, data, bytes);
  if (!wants("fail")) {
    (void)!NEXT(write)(fd, data, bytes / 2);
    end();
  }
  errno = ENOSPC;
  return -1;
}

int fdatasync(int fd) {
  if (fails())
    return -1;
  int kept = 0;
  for (int i = 0; i < n_unsynced; i++)
    if (unsynced[i].fd != fd)
      unsynced[kept++] = unsynced[i];
  n_unsynced = kept;
  return NEXT(fdatasync)(fd);
}

int fsync(int fd) { return fails() ? -1 : NEXT(fsync)(fd); }
int ftruncate(int fd, off_t bytes) { return fails() ? -1 : NEXT(ftruncate)(fd, bytes); }
int renameat(int from, const char *old, int to, const char *name) {
  return fails() ? -1 : NEXT(renameat)(from, old, to, name);
}
int unlinkat(int folder, const char *name, int flags) {
  return fails() ? -1 : NEXT(unlinkat)(folder, name, flags);
}
int mkdir(const char *path, mode_t mode) { return fails() ? -1 : NEXT(mkdir)(path, mode); }
int rmdir(const char *path) { return fails() ? -1 : NEXT(rmdir)(path); }

__attribute__((destructor)) static void tell(void) {
  const char *log = getenv("ACCIDENT_LOG");
  FILE *out = log ? fopen(log, "w") : NULL;
  if (!out)
    return;
  fprintf(out, "%ld\n", atomic_load(&calls));
  fclose(out);
}
