/* Records: see record.h. */
#include "sink/record.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES = 64 };

typedef struct frame {
  uint64_t kind, bytes, checksum;
} frame;

static frame frame_of(const kith_record *record) {
  return (frame){.kind = record->kind,
                 .bytes = record->bytes,
                 .checksum = kith_hash(record->data, record->bytes, record->kind)};
}

static int write_all(int fd, const void *data, uint64_t bytes) {
  for (const char *from = data; bytes > 0;) {
    ssize_t done = write(fd, from, bytes);
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return done < 0 ? errno : EIO;
    from += done;
    bytes -= (uint64_t)done;
  }
  return 0;
}

static bool read_all(int fd, void *data, uint64_t bytes) {
  for (char *to = data; bytes > 0;) {
    ssize_t done = read(fd, to, bytes);
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return false;
    to += done;
    bytes -= (uint64_t)done;
  }
  return true;
}

/* Writes the file and forces it to the disk. */
static int write_file(int folder, const char *name, const kith_record *record) {
  frame head = frame_of(record);
  int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0)
    return errno;
  int error = write_all(fd, &head, sizeof head);
  if (!error)
    error = write_all(fd, record->data, record->bytes);
  if (!error && fdatasync(fd) != 0)
    error = errno;
  if (close(fd) != 0 && !error && errno != EINTR)
    error = errno;
  return error;
}

static void name_fresh(char fresh[NAME_BYTES], const char *name) {
  snprintf(fresh, NAME_BYTES, "%s.new", name);
}

void kith_record_remove(int folder, const char *name) {
  char fresh[NAME_BYTES];
  name_fresh(fresh, name);
  unlinkat(folder, fresh, 0);
  unlinkat(folder, name, 0);
}

int kith_record_write(int folder, const char *name, const kith_record *record) {
  char fresh[NAME_BYTES];
  name_fresh(fresh, name);
  int error = write_file(folder, fresh, record);
  if (!error && renameat(folder, fresh, folder, name) != 0)
    error = errno;
  if (error)
    unlinkat(folder, fresh, 0);
  return error ? error : kith_sync_folder(folder);
}

kith_record_found kith_record_read(int folder, const char *name, const kith_record *record) {
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return errno == ENOENT ? KITH_RECORD_NONE : KITH_RECORD_DAMAGED;
  frame head;
  struct stat info;
  bool whole = fstat(fd, &info) == 0 && (uint64_t)info.st_size == sizeof head + record->bytes &&
               read_all(fd, &head, sizeof head) && head.kind == record->kind && head.bytes == record->bytes &&
               read_all(fd, record->data, record->bytes) && head.checksum == frame_of(record).checksum;
  close(fd);
  return whole ? KITH_RECORD_WHOLE : KITH_RECORD_DAMAGED;
}

int kith_sync_folder(int folder) {
  int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* `folder` may be a mere place (O_PATH) */
  if (fd < 0)
    return errno;
  int error = fsync(fd) == 0 || errno == EINVAL ? 0 : errno; /* EINVAL: this file system has no such thing */
  close(fd);
  return error;
}
