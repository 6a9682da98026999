/* Output files: all of it, or nothing.
 *
 * Owns: the file descriptor, the temporary name, every system call that writes a result. Only sinks include it,
 * and the command for the points it makes (cli/points_file.h).
 *
 * A regular file is written as ".name.XXXXXX.part" in the folder of its target and renamed over the target by
 * commit, so that a reader never sees half a file and a failure leaves an older file as it was. It takes over
 * the permissions of the older file. Symbolic links are followed first. Devices and pipes are written in place,
 * and "-" (or /dev/stdout) is standard output.
 *
 * An output that is kept has a temporary name that the next process knows too. It stays when the work fails, or
 * the process ends, and is continued from where it was last forced to the disk.
 *
 * An appender fills a region of the file from front to back through a buffer. Several may fill several regions
 * at once if the output was opened for that; otherwise there is one appender, and it starts at 0. */
#ifndef KITH_SINK_OUTPUT_H
#define KITH_SINK_OUTPUT_H

#include "base/context.h"

#include <stddef.h>

typedef struct kith_output kith_output;

/* Makes an output of that name; the disk is not touched. */
kith_status kith_output_create(kith_context *ctx, const char *path, kith_output **out);

/* How an output will be written. Pipes and standard output take only one appender, from front to back. */
typedef enum kith_access { KITH_IN_ORDER, KITH_ANYWHERE } kith_access;

/* Whether `path` could be opened: its folder exists and is writable, it is not a folder, and it is not a pipe
 * where the access asks for more. */
kith_status kith_output_check(kith_context *ctx, const char *path, kith_access access);

/* Checks and opens it. expected_bytes is the final size for messages, or 0 if it is not known. */
kith_status kith_output_open(kith_output *output, kith_access access, uint64_t expected_bytes);

/* Writes at a place; in order, `at` must be where the last write ended. */
kith_status kith_output_write_at(kith_output *output, uint64_t at, const void *data, uint64_t bytes);

/* Closes the file and gives it its name. */
kith_status kith_output_commit(kith_output *output);

/* Before it is opened: keeps it. The tag is one that no other work has; inode and bytes are what is known of
 * the file from before, or 0. */
typedef struct kith_kept {
  uint64_t tag;
  uint64_t inode; /* of the file; 0: there is none */
  uint64_t bytes; /* its size; what comes behind is cut off */
} kith_kept;
void kith_output_keep(kith_output *output, const kith_kept *kept);

/* Once it is open: whether what was known of it holds. If not, or nothing was known, it is empty. */
bool kith_output_is_continued(const kith_output *output);

/* Before it is opened: whether the kept file has its final name already, and so is complete. */
bool kith_output_is_in_place(const kith_output *output);

/* Forces what was written to the disk, and tells what is to be known of it: all of `kept` but the tag. */
kith_status kith_output_sync(kith_output *output, kith_kept *kept);

/* A number for the regular file that `path` leads to, the same from every working directory. */
kith_status kith_output_identify(kith_context *ctx, const char *path, uint64_t *identity);

/* Releases the output; what was not committed is removed unless it is kept. NULL is legal. */
void kith_output_destroy(kith_output *output);

/* True if something is at `path` that is not a regular file: it has no ending that tells a format. */
bool kith_output_is_device(const char *path);

/* A buffer of 256 KiB stays in the second-level cache between filling, checksum and write. */
enum { KITH_APPENDER_BYTES = 256 << 10 };

typedef struct kith_appender {
  kith_output *output;
  unsigned char *buffer; /* KITH_APPENDER_BYTES, aligned to 64 */
  size_t filled;
  uint64_t at;   /* where the buffer goes in the file */
  bool with_crc; /* keep the CRC-32 of everything appended */
  uint32_t crc;
} kith_appender;

kith_status kith_appender_open(kith_appender *appender, kith_output *output, uint64_t at, bool with_crc);
kith_status kith_appender_append(kith_appender *appender, const void *data, uint64_t bytes);
kith_status kith_appender_flush(kith_appender *appender);
void kith_appender_close(kith_appender *appender); /* without flushing; legal on one that is all zero */

/* Makes room for `bytes` (at most KITH_APPENDER_BYTES) at kith_appender_end(); add to `filled` what is used. */
static inline kith_status kith_appender_reserve(kith_appender *appender, size_t bytes) {
  return KITH_APPENDER_BYTES - appender->filled >= bytes ? KITH_OK : kith_appender_flush(appender);
}

static inline unsigned char *kith_appender_end(const kith_appender *appender) {
  return appender->buffer + appender->filled;
}

#endif
