/* A disk that fails: loaded before a program's libraries (LD_PRELOAD), spoils one call that makes an output.
 *
 * Counted are the calls on files opened for writing and on standard output. FAULT_CALL says which of them is to
 * go wrong (from 1), FAULT_KIND how, and FAULT_REPORT is a descriptor that gets a byte when it has.
 *
 *   short    half of the bytes are written; only calls that write are counted
 *   eintr    a signal came first; a close has closed all the same, as it does on Linux
 *   enospc   no space is left; nothing is done, but a close has closed
 *   eio      the same with an error of the device */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_FILES = 1024 };

static atomic_bool is_output[MOST_FILES] = {[STDOUT_FILENO] = true};
static _Atomic long calls;

static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

static bool is_short(void) { return strcmp(setting("FAULT_KIND"), "short") == 0; }

/* Whether this call is the one. */
static bool is_due(void) {
  if (atomic_fetch_add(&calls, 1) + 1 != atol(setting("FAULT_CALL")))
    return false;
  syscall(SYS_write, atoi(setting("FAULT_REPORT")), "!", 1);
  return true;
}

static int fail(void) {
  const char *kind = setting("FAULT_KIND");
  errno = strcmp(kind, "eintr") == 0 ? EINTR : strcmp(kind, "enospc") == 0 ? ENOSPC : EIO;
  return -1;
}

static bool is_counted(int fd) { return fd >= 0 && fd < MOST_FILES && is_output[fd]; }

/* A call that does not write: true if it is to fail. */
static bool spoils(int fd) { return is_counted(fd) && !is_short() && is_due(); }

/* A call that writes: the bytes that it may write, or -1. */
static ssize_t allowed(int fd, size_t bytes) {
  if (!is_counted(fd) || !is_due())
    return (ssize_t)bytes;
  return is_short() ? (ssize_t)(bytes + 1) / 2 : fail();
}

static bool opens_output(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_PATH) != 0; }

static int opened(int fd, int flags) {
  if (fd >= 0 && fd < MOST_FILES)
    is_output[fd] = (flags & O_ACCMODE) != O_RDONLY;
  return fd;
}

static int open_at(int folder, const char *path, int flags, mode_t mode) {
  if (opens_output(flags) && !is_short() && is_due())
    return fail();
  return opened((int)syscall(SYS_openat, folder, path, flags, mode), flags);
}

static mode_t mode_of(int flags, va_list arguments) { return flags & O_CREAT ? va_arg(arguments, mode_t) : 0; }

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(folder, path, flags, mode);
}

ssize_t write(int fd, const void *data, size_t bytes) {
  ssize_t n = allowed(fd, bytes);
  return n < 0 ? n : syscall(SYS_write, fd, data, n);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) {
  ssize_t n = allowed(fd, bytes);
  return n < 0 ? n : syscall(SYS_pwrite64, fd, data, n, at);
}

/* A short one writes the first piece alone. */
ssize_t writev(int fd, const struct iovec *pieces, int n_pieces) {
  if (!is_counted(fd) || !is_due())
    return syscall(SYS_writev, fd, pieces, n_pieces);
  return is_short() ? syscall(SYS_writev, fd, pieces, 1) : fail();
}

int fsync(int fd) { return spoils(fd) ? fail() : (int)syscall(SYS_fsync, fd); }

int fdatasync(int fd) { return spoils(fd) ? fail() : (int)syscall(SYS_fdatasync, fd); }

int ftruncate(int fd, off_t bytes) { return spoils(fd) ? fail() : (int)syscall(SYS_ftruncate, fd, bytes); }

int fallocate(int fd, int mode, off_t at, off_t bytes) {
  return spoils(fd) ? fail() : (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}

int close(int fd) {
  bool spoiled = spoils(fd);
  if (fd >= 0 && fd < MOST_FILES)
    is_output[fd] = false;
  int result = (int)syscall(SYS_close, fd);
  return spoiled ? fail() : result;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  if (!is_short() && is_due())
    return fail();
  return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }
