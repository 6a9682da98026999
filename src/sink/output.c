/* Output files: see output.h.
 *
 * Invariants: `temporary` is not empty exactly while a file of that name exists and is ours to rename. The
 * folder is held open, so that a change of the working directory between open and commit does no harm.
 * Cancellation is looked at before every system call that writes, but never spent here: that belongs to the
 * thread that made the call. */
#include "sink/output.h"

#include "base/hash.h"
#include "sink/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { MOST_LINKS = 40, NAME_ATTEMPTS = 100, POLL_MILLISECONDS = 50 };

struct kith_output {
  kith_context *ctx;
  int fd;
  int folder; /* of the target; -1 if written in place */
  bool seekable;
  bool may_block; /* a pipe, socket or terminal: its reader sets the pace */
  bool is_stdout;
  bool is_kept, is_continued;
  kith_kept kept;
  uint64_t expected, written;
  char target[NAME_MAX + 1]; /* names within the folder */
  char temporary[NAME_MAX + 1];
  char path[]; /* as given */
};

typedef struct location {
  char folder[PATH_MAX];
  char name[NAME_MAX + 1];
} location;

static bool names_stdout(const char *path) {
  return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
}

static const char *shown(const char *path) { return names_stdout(path) ? "standard output" : path; }

bool kith_output_is_device(const char *path) {
  struct stat info;
  if (names_stdout(path))
    return true;
  return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* Replaces `path` by what the symbolic link `path` contains; false if the result is too long. */
static bool apply_link(char path[PATH_MAX], const char *link) {
  char *slash = strrchr(path, '/');
  size_t keep = link[0] != '/' && slash ? (size_t)(slash - path) + 1 : 0;
  size_t length = strlen(link);
  if (keep + length >= PATH_MAX)
    return false;
  memcpy(path + keep, link, length + 1);
  return true;
}

/* Follows links by hand, since realpath() fails on a link to a file that does not exist yet. */
static int follow_links(const char *path, char resolved[PATH_MAX]) {
  if (strlen(path) >= PATH_MAX)
    return ENAMETOOLONG;
  strcpy(resolved, path);
  for (int hop = 0; hop < MOST_LINKS; hop++) {
    char link[PATH_MAX];
    ssize_t length = readlink(resolved, link, sizeof link - 1);
    if (length < 0)
      return 0;
    link[length] = '\0';
    if (!apply_link(resolved, link))
      return ENAMETOOLONG;
  }
  return ELOOP;
}

/* Finds the folder and the name of the regular file that `path` stands for. */
static kith_status locate(kith_context *ctx, const char *path, location *place) {
  int error = follow_links(path, place->folder);
  if (error)
    return kith_fail(ctx, KITH_ERR_IO, "%s: %s", path, strerror(error));
  char *slash = strrchr(place->folder, '/');
  const char *name = slash ? slash + 1 : place->folder;
  size_t length = strlen(name);
  if (length == 0)
    return kith_fail(ctx, KITH_ERR_IO, "%s: names a folder, not a file", path);
  if (length > NAME_MAX)
    return kith_fail(ctx, KITH_ERR_IO, "%s: %s", path, strerror(ENAMETOOLONG));
  memcpy(place->name, name, length + 1);
  if (!slash)
    strcpy(place->folder, ".");
  else
    slash[slash == place->folder] = '\0';
  return KITH_OK;
}

static kith_status check_folder(kith_context *ctx, const char *path, const char *folder) {
  struct stat info;
  if (stat(folder, &info) != 0 && errno == ENOENT)
    return kith_fail(ctx, KITH_ERR_IO, "%s: the folder %s does not exist", path, folder);
  if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
    return kith_fail(ctx, KITH_ERR_IO, "%s: the folder %s is not writable: %s", path, folder, strerror(errno));
  if (!S_ISDIR(info.st_mode))
    return kith_fail(ctx, KITH_ERR_IO, "%s: %s is not a folder", path, folder);
  return KITH_OK;
}

static kith_status refuse_pipe(kith_context *ctx, const char *path) {
  return kith_fail(
      ctx, KITH_ERR_IO,
      "%s: a pipe or terminal cannot take this format, which is written at several places at once; "
      "give the name of a file",
      shown(path));
}

kith_status kith_output_check(kith_context *ctx, const char *path, kith_access access) {
  if (names_stdout(path))
    return access == KITH_ANYWHERE ? refuse_pipe(ctx, path) : KITH_OK;
  struct stat info;
  bool exists = stat(path, &info) == 0;
  if (exists && access == KITH_ANYWHERE && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)))
    return refuse_pipe(ctx, path);
  if (exists && S_ISDIR(info.st_mode))
    return kith_fail(ctx, KITH_ERR_IO, "%s: is a folder, not a file", path);
  /* Renaming could replace a write-protected file, but whoever protected it did not mean that. */
  if (exists && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
    return kith_fail(ctx, KITH_ERR_IO, "%s: exists and is not writable: %s", path, strerror(errno));
  if (exists && !S_ISREG(info.st_mode))
    return KITH_OK;
  location place;
  kith_status status = locate(ctx, path, &place);
  return status ? status : check_folder(ctx, path, place.folder);
}

kith_status kith_output_create(kith_context *ctx, const char *path, kith_output **out) {
  size_t length = strlen(path) + 1;
  kith_output *output = *out = kith_alloc(&ctx->memory, sizeof *output + length);
  if (!output)
    return kith_fail_memory(ctx, sizeof *output + length, "the output file");
  *output = (kith_output){.ctx = ctx, .fd = -1, .folder = -1};
  memcpy(output->path, path, length);
  return KITH_OK;
}

static kith_status fail_cancelled(kith_output *output) {
  return kith_fail(output->ctx, KITH_ERR_CANCELLED, "cancelled while writing %s", shown(output->path));
}

static void note_kind(kith_output *output) {
  struct stat info;
  bool regular = fstat(output->fd, &info) == 0 && S_ISREG(info.st_mode);
  output->may_block = !regular;
  output->seekable = !output->is_stdout && lseek(output->fd, 0, SEEK_CUR) >= 0;
}

static void open_standard(kith_output *output) {
  output->is_stdout = true;
  output->fd = STDOUT_FILENO;
  note_kind(output);
}

/* A named pipe may have no reader yet: open it without blocking, again and again, so that the wait can be
 * cancelled. */
static kith_status open_in_place(kith_output *output) {
  for (;;) {
    if (kith_cancelled(output->ctx))
      return fail_cancelled(output);
    output->fd = open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat info;
    bool no_reader =
        output->fd < 0 && errno == ENXIO && stat(output->path, &info) == 0 && S_ISFIFO(info.st_mode);
    if (no_reader)
      nanosleep(&(struct timespec){.tv_nsec = POLL_MILLISECONDS * 1000000L}, NULL);
    else if (output->fd >= 0 || errno != EINTR)
      break;
  }
  if (output->fd < 0)
    return kith_fail(output->ctx, KITH_ERR_IO, "%s: cannot be opened for writing: %s", output->path,
                     strerror(errno));
  note_kind(output);
  return KITH_OK;
}

/* ".name.XXXXXX.part", the name shortened where it would grow too long. */
static void name_temporary(kith_output *output, uint64_t number) {
  static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz234567";
  char letters[7] = {0};
  for (size_t i = 0; i + 1 < sizeof letters; i++, number /= 32)
    letters[i] = LETTERS[number % 32];
  snprintf(output->temporary, sizeof output->temporary, ".%.200s.%s.part", output->target, letters);
}

static bool name_at_random(kith_output *output) {
  uint64_t random;
  if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
    return false;
  name_temporary(output, random);
  return true;
}

/* Gives the file the permissions of the one that it will replace, and the owner where the system allows that.
 * Where it does not allow the group, the new group gets no more than everybody: it is not the one that the
 * permissions were meant for. Failures are not worth a word: the file is private then. */
static void inherit_permissions(int fd, const struct stat *old) {
  mode_t mode = old->st_mode & 0777;
  if (fchown(fd, old->st_uid, old->st_gid) != 0 && fchown(fd, (uid_t)-1, old->st_gid) != 0)
    mode = (mode & 0707) | ((mode & 0007) << 3);
  (void)!fchmod(fd, mode);
}

/* Not mkstemp(): its files are private, and a file under a new name is to have the permissions of any. */
static int create_temporary(kith_output *output) {
  struct stat old;
  bool replaces = fstatat(output->folder, output->target, &old, 0) == 0;
  int error = EEXIST;
  for (int attempt = 0; attempt < NAME_ATTEMPTS && (error == EEXIST || error == EINTR); attempt++) {
    if (name_at_random(output)) {
      output->fd = openat(output->folder, output->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                          replaces ? 0600 : 0666);
      if (output->fd >= 0 && replaces)
        inherit_permissions(output->fd, &old);
      if (output->fd >= 0)
        return 0;
    }
    error = errno;
  }
  output->temporary[0] = '\0';
  return error;
}

/* Goes on from what is known of the kept file, or from its beginning. */
static int continue_kept(kith_output *output, const struct stat *info) {
  const kith_kept *kept = &output->kept;
  output->is_continued =
      kept->inode > 0 && (uint64_t)info->st_ino == kept->inode && (uint64_t)info->st_size >= kept->bytes;
  output->written = output->is_continued ? kept->bytes : 0;
  return ftruncate(output->fd, (off_t)output->written) == 0 ? 0 : errno;
}

/* Whether a file is ours: our own, or already that of the owner of the file that it will replace. */
static bool is_ours(const struct stat *info, const struct stat *old) {
  return info->st_uid == geteuid() || (old && geteuid() == 0 && info->st_uid == old->st_uid);
}

/* The name is no secret, so whatever has it must be a file of our own, and nobody else may be at work on it. */
static int open_kept(kith_output *output) {
  struct stat old, info;
  bool replaces = fstatat(output->folder, output->target, &old, 0) == 0;
  name_temporary(output, output->kept.tag);
  output->fd = openat(output->folder, output->temporary, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                      replaces ? 0600 : 0666);
  if (output->fd < 0)
    return errno;
  if (flock(output->fd, LOCK_EX | LOCK_NB) != 0)
    return errno;
  if (fstat(output->fd, &info) != 0)
    return errno;
  if (!S_ISREG(info.st_mode) || !is_ours(&info, replaces ? &old : NULL) || info.st_nlink != 1)
    return EPERM;
  if (replaces)
    inherit_permissions(output->fd, &old);
  return continue_kept(output, &info);
}

static kith_status find_target(kith_output *output, location *place) {
  kith_status status = locate(output->ctx, output->path, place);
  if (status)
    return status;
  strcpy(output->target, place->name);
  output->folder = (int)TEMP_FAILURE_RETRY(open(place->folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
  return KITH_OK;
}

static kith_status open_temporary(kith_output *output) {
  location place;
  kith_status status = find_target(output, &place);
  if (status)
    return status;
  int error = output->folder < 0 ? errno : output->is_kept ? open_kept(output) : create_temporary(output);
  if (error == EWOULDBLOCK)
    return kith_fail(output->ctx, KITH_ERR_IO, "%s: another process is writing it, by the same join",
                     output->path);
  if (error)
    return kith_fail(output->ctx, KITH_ERR_IO, "%s: cannot create a file in the folder %s: %s", output->path,
                     place.folder, strerror(error));
  output->seekable = true;
  return KITH_OK;
}

void kith_output_keep(kith_output *output, const kith_kept *kept) {
  output->is_kept = true;
  output->kept = *kept;
}

bool kith_output_is_continued(const kith_output *output) { return output->is_continued; }

bool kith_output_is_in_place(const kith_output *output) {
  struct stat info;
  return output->kept.inode > 0 && stat(output->path, &info) == 0 && S_ISREG(info.st_mode) &&
         (uint64_t)info.st_ino == output->kept.inode && (uint64_t)info.st_size >= output->kept.bytes;
}

kith_status kith_output_identify(kith_context *ctx, const char *path, uint64_t *identity) {
  location place;
  kith_status status = locate(ctx, path, &place);
  if (status)
    return status;
  char *folder = realpath(place.folder, NULL);
  if (!folder)
    return kith_fail(ctx, KITH_ERR_IO, "%s: %s", path, strerror(errno));
  *identity = kith_hash(place.name, strlen(place.name), kith_hash(folder, strlen(folder), 0));
  free(folder);
  return KITH_OK;
}

kith_status kith_output_open(kith_output *output, kith_access access, uint64_t expected_bytes) {
  output->expected = expected_bytes;
  kith_status status = kith_output_check(output->ctx, output->path, access);
  if (status)
    return status;
  if (!kith_output_is_device(output->path))
    return open_temporary(output);
  if (!names_stdout(output->path))
    status = open_in_place(output);
  else
    open_standard(output);
  if (!status && access == KITH_ANYWHERE && !output->seekable)
    return refuse_pipe(output->ctx, output->path);
  return status;
}

static const char *show_bytes(uint64_t bytes, char text[32]) {
  if (bytes < 1 << 20)
    snprintf(text, 32, "%u byte%s", (unsigned)bytes, bytes == 1 ? "" : "s");
  else
    snprintf(text, 32, "%.1f MiB", (double)bytes / (1 << 20));
  return text;
}

static kith_status fail_write(kith_output *output, int error) {
  char written[32], expected[32];
  show_bytes(output->written, written);
  if (error == EPIPE)
    return kith_fail(output->ctx, KITH_ERR_IO, "%s: the reader closed the pipe (after %s)", shown(output->path),
                     written);
  if (output->expected == 0)
    return kith_fail(output->ctx, KITH_ERR_IO, "%s: %s (wrote %s)", shown(output->path), strerror(error),
                     written);
  return kith_fail(output->ctx, KITH_ERR_IO, "%s: %s (wrote %s of %s)", shown(output->path), strerror(error),
                   written, show_bytes(output->expected, expected));
}

/* One system call's worth. A pipe that polls writable takes PIPE_BUF bytes without blocking; larger writes
 * might block where neither cancellation nor a signal to another thread would reach them. */
static ssize_t write_some(kith_output *output, uint64_t at, const void *data, uint64_t bytes) {
  if (output->may_block) {
    struct pollfd wait = {.fd = output->fd, .events = POLLOUT};
    int ready = poll(&wait, 1, POLL_MILLISECONDS);
    if (ready <= 0) {
      errno = ready == 0 ? EAGAIN : errno;
      return -1;
    }
    bytes = bytes < PIPE_BUF ? bytes : PIPE_BUF;
  }
  return output->seekable ? pwrite(output->fd, data, bytes, (off_t)at) : write(output->fd, data, bytes);
}

kith_status kith_output_write_at(kith_output *output, uint64_t at, const void *data, uint64_t bytes) {
  const char *from = data;
  while (bytes > 0) {
    if (kith_cancelled(output->ctx))
      return fail_cancelled(output);
    ssize_t done = write_some(output, at, from, bytes);
    if (done < 0 && errno != EINTR && errno != EAGAIN)
      return fail_write(output, errno);
    if (done == 0) /* never by POSIX; must not become an endless loop */
      return fail_write(output, EIO);
    if (done < 0)
      continue;
    from += done;
    at += (uint64_t)done;
    bytes -= (uint64_t)done;
    output->written += (uint64_t)done;
  }
  return KITH_OK;
}

kith_status kith_output_sync(kith_output *output, kith_kept *kept) {
  struct stat info;
  if (fdatasync(output->fd) != 0 || fstat(output->fd, &info) != 0)
    return fail_write(output, errno);
  kept->inode = info.st_ino;
  kept->bytes = (uint64_t)info.st_size;
  int error = kith_sync_folder(output->folder);
  return error ? fail_write(output, error) : KITH_OK;
}

kith_status kith_output_commit(kith_output *output) {
  int fd = output->fd;
  if (output->is_kept && fdatasync(fd) != 0)
    return fail_write(output, errno);
  output->fd = -1;
  /* Some file systems report a failed write only here. EINTR still closes on Linux. */
  if (!output->is_stdout && close(fd) != 0 && errno != EINTR)
    return fail_write(output, errno);
  if (output->temporary[0] == '\0')
    return KITH_OK;
  if (TEMP_FAILURE_RETRY(renameat(output->folder, output->temporary, output->folder, output->target)) != 0)
    return kith_fail(output->ctx, KITH_ERR_IO, "%s: the finished file cannot take its name: %s", output->path,
                     strerror(errno));
  output->temporary[0] = '\0';
  int error = output->is_kept ? kith_sync_folder(output->folder) : 0;
  return error ? fail_write(output, error) : KITH_OK;
}

void kith_output_destroy(kith_output *output) {
  if (!output)
    return;
  if (output->fd >= 0 && !output->is_stdout)
    close(output->fd);
  if (output->temporary[0] != '\0' && !output->is_kept)
    unlinkat(output->folder, output->temporary, 0);
  if (output->folder >= 0)
    close(output->folder);
  kith_free(output);
}

kith_status kith_appender_open(kith_appender *appender, kith_output *output, uint64_t at, bool with_crc) {
  *appender = (kith_appender){.output = output, .at = at, .with_crc = with_crc};
  appender->buffer = kith_alloc(&output->ctx->memory, KITH_APPENDER_BYTES);
  return appender->buffer ? KITH_OK : kith_fail_memory(output->ctx, KITH_APPENDER_BYTES, "an output buffer");
}

void kith_appender_close(kith_appender *appender) {
  kith_free(appender->buffer);
  appender->buffer = NULL;
}

/* At most a buffer at a time, so that the checksum and the write find the bytes in the cache. */
static kith_status write_chunk(kith_appender *appender, const void *data, size_t bytes) {
  if (appender->with_crc)
    appender->crc = (uint32_t)crc32_z(appender->crc, data, bytes);
  kith_status status = kith_output_write_at(appender->output, appender->at, data, bytes);
  appender->at += bytes;
  return status;
}

kith_status kith_appender_flush(kith_appender *appender) {
  size_t bytes = appender->filled;
  appender->filled = 0;
  return bytes ? write_chunk(appender, appender->buffer, bytes) : KITH_OK;
}

kith_status kith_appender_append(kith_appender *appender, const void *data, uint64_t bytes) {
  const char *from = data;
  if (bytes > KITH_APPENDER_BYTES - appender->filled) {
    kith_status status = kith_appender_flush(appender);
    for (; !status && bytes >= KITH_APPENDER_BYTES; from += KITH_APPENDER_BYTES, bytes -= KITH_APPENDER_BYTES)
      status = write_chunk(appender, from, KITH_APPENDER_BYTES);
    if (status)
      return status;
  }
  if (bytes > 0)
    memcpy(kith_appender_end(appender), from, bytes);
  appender->filled += bytes;
  return KITH_OK;
}
