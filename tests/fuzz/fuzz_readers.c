/* Feeds arbitrary bytes to the readers of files.
 *
 * The first byte chooses the format, file or pipe, the columns, and for frames which one; the rest is the file.
 * From NAMES on the file is one of tests/files, in every format there is, and the rest names the columns (a
 * line) and the part of the file. From LIBRARIES on the rest is a file that HDF5 or CFITSIO reads, where a
 * fault may be theirs: give ASAN_OPTIONS=allocator_may_return_null=1, for CFITSIO asks for what a header
 * promises. Whatever it holds, opening must end with a status and, if it failed, a message; the points of a
 * file that did open must all be readable. */
#include "fuzz.h"
#include "points/points.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  FUZZ_BUDGET = 64 << 20, /* so small that no header makes the process swallow the machine */
  PIPE_BYTES = 64 * 1024,
  NAMES = 200,
  LIBRARIES = 240,
};

static kith_context *fuzz_context(void) {
  static kith_context *ctx;
  kith_context_options options = kith_context_options_init();
  options.threads = 1;
  options.memory_bytes = FUZZ_BUDGET;
  if (!ctx && kith_context_create(&options, &ctx) != KITH_OK)
    abort();
  return ctx;
}

static int file_of_bytes(const uint8_t *bytes, size_t n) {
  int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
    abort();
  return fd;
}

/* The reading end of a pipe that holds the bytes, as many as a pipe takes at once. */
static int pipe_of_bytes(const uint8_t *bytes, size_t n) {
  int ends[2];
  n = n < PIPE_BYTES ? n : PIPE_BYTES;
  if (pipe(ends) != 0 || write(ends[1], bytes, n) != (ssize_t)n)
    abort();
  close(ends[1]);
  return ends[0];
}

static void touch_points(kith_context *ctx, const kith_file *file) {
  static kith_column_stats stats[KITH_MAX_DIM];
  uint64_t invalid;
  const kith_points *points = kith_file_points(file);
  if (kith_points_stats(ctx, points, stats, &invalid) != KITH_OK || invalid > points->n)
    abort();
  for (uint32_t c = 0; c <= points->dim; c++)
    kith_file_column(file, c);
  double box[9];
  for (int i = kith_file_box(file, box) - 1; i >= 0; i--)
    if (!isfinite(box[i]))
      abort();
}

static void open_file(const char *path, const kith_file_options *options) {
  kith_context *ctx = fuzz_context();
  kith_file *file;
  if (kith_file_open(ctx, path, options, &file) == KITH_OK)
    touch_points(ctx, file);
  else if (file || !*kith_message(ctx))
    abort();
  kith_file_close(file);
  if (kith_memory_left(&ctx->memory) != FUZZ_BUDGET)
    abort();
}

/* A file of these bytes. */
static void open_bytes(unsigned choice, const uint8_t *bytes, size_t n) {
  static const char *const FORMATS[] = {"npy", "text", "fbin", "text"}, *const FRAMES[] = {"gro", "xyz"};
  static const char *const BY_LIBRARY[] = {"hdf5", "fits"};
  static const char *const PARTS[] = {"", "[1]", "[-1]", "[-2]"};
  static const char *const COLUMNS[] = {NULL, "1", "2,0,1", "ra,dec", "x,0"};
  kith_file_options options = kith_file_options_init();
  unsigned kind = choice / 20; /* 0: the formats without parts */
  options.format = choice >= LIBRARIES ? BY_LIBRARY[choice % 2]
                   : kind > 0          ? FRAMES[choice % 2]
                                       : FORMATS[choice % 4];
  options.columns = COLUMNS[choice / 4 % 5];
  bool is_pipe = kind == 0 && choice % 4 == 3;
  int fd = is_pipe ? pipe_of_bytes(bytes, n) : file_of_bytes(bytes, n);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d%s", fd, kind > 0 ? PARTS[kind % 4] : "");
  open_file(path, &options);
  close(fd);
}

/* A good file, with columns and a part of these names. */
static void open_names(unsigned choice, const uint8_t *bytes, size_t n) {
  static const char *const FILES[] = {"points.csv", "swapped.npy", "points.fbin", "points.gro",
                                      "points.xyz", "points.h5",   "points.fits"};
  char *text = strndup((const char *)bytes, n), *path = NULL;
  if (!text)
    abort();
  char *line_end = text + strcspn(text, "\n"), *part = *line_end ? line_end + 1 : line_end;
  *line_end = '\0';
  if (asprintf(&path, "%s/%s%s", KITH_FUZZ_FILES, FILES[choice % (sizeof FILES / sizeof *FILES)], part) < 0)
    abort();
  kith_file_options options = kith_file_options_init();
  options.columns = *text ? text : NULL;
  open_file(path, &options);
  free(path);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  if (n > 0 && (bytes[0] < NAMES || bytes[0] >= LIBRARIES))
    open_bytes(bytes[0], bytes + 1, n - 1);
  else if (n > 0)
    open_names(bytes[0] - NAMES, bytes + 1, n - 1);
  return 0;
}
