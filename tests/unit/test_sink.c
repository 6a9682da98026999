/* Sinks: every format is fed by hand-made batches and parsed back; every failure must leave the folder empty,
 * the memory released and a message behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sink/decimal.h"
#include "sink/file_sink.h"
#include "sink/sink.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <zlib.h>

/* ---- a folder, a context, a table ---- */

static kith_context *ctx;
static char folder[64];

static int setup(void **state) {
  (void)state;
  strcpy(folder, "/tmp/kith_sink_XXXXXX");
  signal(SIGPIPE, SIG_IGN);
  return kith_context_create(NULL, &ctx) != KITH_OK || !mkdtemp(folder);
}

static const char *in_folder(const char *name) {
  static char paths[4][256];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, 256, "%s/%s", folder, name);
  return path;
}

/* The number of entries; removes them if asked. */
static int n_entries(bool remove_them) {
  int n = 0;
  DIR *dir = opendir(folder);
  for (struct dirent *entry; (entry = readdir(dir));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    n++;
    if (remove_them)
      unlinkat(dirfd(dir), entry->d_name, 0);
  }
  closedir(dir);
  return n;
}

static int teardown(void **state) {
  (void)state;
  kith_memory_fail_nth(0);
  n_entries(true);
  bool leaked = ctx->memory.used != 0;
  kith_context_destroy(ctx);
  return rmdir(folder) != 0 || leaked;
}

typedef struct bytes {
  unsigned char *data;
  size_t size;
} bytes;

static bytes read_file(const char *path) {
  bytes file = {0};
  FILE *stream = fopen(path, "rb");
  assert_non_null(stream);
  fseek(stream, 0, SEEK_END);
  file.size = (size_t)ftell(stream);
  rewind(stream);
  file.data = calloc(1, file.size + 1);
  assert_int_equal(fread(file.data, 1, file.size, stream), file.size);
  fclose(stream);
  return file;
}

static void write_file(const char *path, const char *content) {
  FILE *stream = fopen(path, "wb");
  assert_non_null(stream);
  fputs(content, stream);
  fclose(stream);
}

static void assert_content(const char *path, const char *expected) {
  bytes file = read_file(path);
  assert_string_equal((char *)file.data, expected);
  free(file.data);
}

typedef struct table {
  kith_shape shape;
  uint64_t *offsets;
  uint32_t *neighbors;
  double *distances;
} table;

/* Row r has r * 7 % (2 * mean + 1) neighbours until n_pairs are used up; the last row has what is left. */
static table make_table(uint64_t n_rows, uint64_t n_cols, uint64_t n_pairs, bool distances) {
  table t = {.shape = {.n_rows = n_rows, .n_cols = n_cols, .n_pairs = n_pairs, .distances = distances}};
  t.offsets = calloc(n_rows + 1, sizeof *t.offsets);
  t.neighbors = calloc(n_pairs + 1, sizeof *t.neighbors);
  t.distances = calloc(n_pairs + 1, sizeof *t.distances);
  uint64_t mean = n_rows ? n_pairs / n_rows : 0, left = n_pairs;
  for (uint64_t r = 0; r < n_rows; r++) {
    uint64_t count = r * 7 % (2 * mean + 1);
    count = r == n_rows - 1 || count > left ? left : count;
    t.offsets[r + 1] = t.offsets[r] + count;
    left -= count;
  }
  for (uint64_t k = 0; k < n_pairs; k++) {
    t.neighbors[k] = (uint32_t)(n_cols - 1 - k * 7919 % n_cols);
    t.distances[k] = sqrt((double)k + 0.1);
  }
  return t;
}

static void free_table(table *t) {
  free(t->offsets);
  free(t->neighbors);
  free(t->distances);
}

/* Gives rows [from, to) to the sink as one batch. */
static kith_status give(kith_sink *sink, const table *t, uint64_t from, uint64_t to) {
  uint64_t *offsets = calloc(to - from + 1, sizeof *offsets), base = t->offsets[from];
  for (uint64_t r = from; r <= to; r++)
    offsets[r - from] = t->offsets[r] - base;
  kith_batch batch = {.first_row = from,
                      .n_rows = to - from,
                      .offsets = offsets,
                      .neighbors = t->neighbors + base,
                      .distances = t->shape.distances ? t->distances + base : NULL};
  kith_status status = sink->take(sink, &batch);
  free(offsets);
  return status;
}

static kith_status give_all(kith_sink *sink, const table *t, uint64_t batch_rows) {
  kith_status status = sink->begin(sink, &t->shape);
  for (uint64_t row = 0; !status && row < t->shape.n_rows; row += batch_rows) {
    uint64_t end = row + batch_rows;
    status = give(sink, t, row, end < t->shape.n_rows ? end : t->shape.n_rows);
  }
  return status;
}

static kith_status write_table(kith_what what, const char *path, const table *t, uint64_t batch_rows) {
  kith_sink *sink = NULL;
  kith_status status = kith_sink_file(ctx, what, path, &sink);
  if (!status)
    status = give_all(sink, t, batch_rows);
  if (!status)
    status = sink->finish(sink);
  kith_sink_destroy(sink);
  return status;
}

/* ---- the callback and the choice of a format ---- */

static int add_pairs(void *user, const kith_batch *batch) {
  *(uint64_t *)user += batch->offsets[batch->n_rows];
  return *(uint64_t *)user > 1000;
}

static void test_callback(void **state) {
  (void)state;
  table t = make_table(50, 50, 900, false);
  kith_sink *sink;
  uint64_t pairs = 0;
  assert_int_equal(kith_sink_callback(ctx, add_pairs, &pairs, &sink), KITH_OK);
  assert_int_equal(give_all(sink, &t, 7), KITH_OK);
  assert_int_equal(sink->finish(sink), KITH_OK);
  assert_int_equal(pairs, 900);
  pairs = 1000;
  assert_int_equal(give_all(sink, &t, 7), KITH_ERR_CANCELLED);
  assert_string_not_equal(kith_message(ctx), "");
  kith_sink_destroy(sink);
  kith_sink_destroy(NULL);
  kith_memory_fail_nth(1);
  assert_int_equal(kith_sink_callback(ctx, add_pairs, &pairs, &sink), KITH_ERR_MEMORY);
  assert_null(sink);
  free_table(&t);
}

static void expect_refusal(kith_what what, const char *path, kith_status status, const char *part) {
  ctx->message[0] = '\0';
  assert_int_equal(kith_check_output(ctx, what, path), status);
  if (!strstr(kith_message(ctx), part))
    fail_msg("'%s' lacks '%s'", kith_message(ctx), part);
}

static void test_check_output(void **state) {
  (void)state;
  assert_int_equal(kith_check_output(ctx, KITH_DEGREES, in_folder("a.npy")), KITH_OK);
  assert_int_equal(kith_check_output(ctx, KITH_NEIGHBORS, in_folder("a.NPZ")), KITH_OK);
  const char *const pairs[] = {"a.npy", "b.csv", "c.tsv", "d.txt"};
  for (int i = 0; i < 4; i++)
    assert_int_equal(kith_check_output(ctx, KITH_PAIRS, in_folder(pairs[i])), KITH_OK);
  assert_int_equal(kith_check_output(ctx, KITH_PAIRS, "-"), KITH_OK);
  assert_int_equal(kith_check_output(ctx, KITH_PAIRS, "/dev/null"), KITH_OK);
  int here = open(".", O_PATH | O_DIRECTORY);
  assert_int_equal(chdir(folder), 0);
  assert_int_equal(kith_check_output(ctx, KITH_PAIRS, "here.csv"), KITH_OK);
  assert_int_equal(fchdir(here), 0);
  close(here);
  expect_refusal(KITH_NEIGHBORS, "x.npy", KITH_ERR_ARGUMENT, "neighbors are written as .npz; got 'x.npy'");
  expect_refusal(KITH_NEIGHBORS, "-", KITH_ERR_ARGUMENT, ".npz");
  expect_refusal(KITH_DEGREES, "x.csv", KITH_ERR_ARGUMENT, ".npy");
  expect_refusal(KITH_PAIRS, "x.npz", KITH_ERR_ARGUMENT, ".tsv");
  expect_refusal(KITH_PAIRS, "x", KITH_ERR_ARGUMENT, ".tsv");
  expect_refusal(KITH_PAIRS, "a.npy/x", KITH_ERR_ARGUMENT, ".tsv");
  expect_refusal(KITH_PAIRS, "", KITH_ERR_ARGUMENT, "no name");
  expect_refusal(KITH_COUNT, "x.txt", KITH_ERR_ARGUMENT, "printed");
  expect_refusal(KITH_NEIGHBORS, "/dev/stdout", KITH_ERR_IO, "pipe");
  expect_refusal(KITH_PAIRS, in_folder("missing/x.csv"), KITH_ERR_IO, "does not exist");
  mkdir(in_folder("sub.csv"), 0777);
  expect_refusal(KITH_PAIRS, in_folder("sub.csv"), KITH_ERR_IO, "is a folder");
  rmdir(in_folder("sub.csv"));
  write_file(in_folder("plain"), "");
  expect_refusal(KITH_PAIRS, in_folder("plain/x.csv"), KITH_ERR_IO, "plain");
}

static void test_unwritable_folder(void **state) {
  (void)state;
  table t = make_table(5, 5, 8, false);
  uid_t user = geteuid();
  assert_int_equal(chmod(folder, 0555), 0);
  if (user == 0) /* root may write everywhere */
    assert_int_equal(seteuid(65534), 0);
  expect_refusal(KITH_PAIRS, in_folder("x.csv"), KITH_ERR_IO, "not writable");
  kith_status status = write_table(KITH_PAIRS, in_folder("x.csv"), &t, 5);
  assert_int_equal(seteuid(user), 0);
  assert_int_equal(status, KITH_ERR_IO);
  chmod(folder, 0755);
  assert_int_equal(n_entries(false), 0);
  free_table(&t);
}

/* ---- npy ---- */

/* Checks the header and returns the array. */
static const unsigned char *parse_npy(const unsigned char *npy, const char *descr, const char *shape) {
  char expected[128];
  snprintf(expected, sizeof expected, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
  assert_memory_equal(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
  assert_memory_equal(npy + 10, expected, strlen(expected));
  for (size_t i = 10 + strlen(expected); i < 127; i++)
    assert_int_equal(npy[i], ' ');
  assert_int_equal(npy[127], '\n');
  return npy + 128;
}

static double load(const unsigned char *array, const char *descr, uint64_t i) {
  int32_t narrow;
  int64_t wide;
  double real;
  if (strcmp(descr, "<i4") == 0)
    return memcpy(&narrow, array + 4 * i, 4), (double)narrow;
  if (strcmp(descr, "<i8") == 0)
    return memcpy(&wide, array + 8 * i, 8), (double)wide;
  return memcpy(&real, array + 8 * i, 8), real;
}

static void check_pairs_npy(const table *t, uint64_t batch_rows, const char *descr) {
  uint64_t n_cols = t->shape.distances ? 3 : 2, size = strcmp(descr, "<i4") == 0 ? 4 : 8;
  char shape[64];
  snprintf(shape, sizeof shape, "(%llu, %llu)", (unsigned long long)t->shape.n_pairs,
           (unsigned long long)n_cols);
  assert_int_equal(write_table(KITH_PAIRS, in_folder("p.npy"), t, batch_rows), KITH_OK);
  bytes file = read_file(in_folder("p.npy"));
  assert_int_equal(file.size, 128 + t->shape.n_pairs * n_cols * size);
  const unsigned char *array = parse_npy(file.data, descr, shape);
  uint64_t at = 0;
  for (uint64_t r = 0; r < t->shape.n_rows; r++)
    for (uint64_t k = t->offsets[r]; k < t->offsets[r + 1]; k++) {
      assert_true(load(array, descr, at++) == (double)r);
      assert_true(load(array, descr, at++) == (double)t->neighbors[k]);
      if (t->shape.distances)
        assert_true(load(array, descr, at++) == t->distances[k]);
    }
  free(file.data);
  assert_int_equal(n_entries(true), 1);
}

static void test_pairs_npy(void **state) {
  (void)state;
  const uint64_t pairs[] = {0, 1, 40, 100000};
  for (int i = 0; i < 4; i++)
    for (int wide = 0; wide < 2; wide++)
      for (int distances = 0; distances < 2; distances++) {
        table t = make_table(37, wide ? UINT32_MAX : 1000, pairs[i], distances);
        check_pairs_npy(&t, 1 + 9 * (uint64_t)wide, distances ? "<f8" : wide ? "<i8" : "<i4");
        free_table(&t);
      }
  table none = make_table(0, 0, 0, false);
  check_pairs_npy(&none, 1, "<i4");
  free_table(&none);
}

static void test_counts(void **state) {
  (void)state;
  enum { N = 100000 };
  uint64_t *counts = calloc(N, sizeof *counts);
  for (uint64_t i = 0; i < N; i++)
    counts[i] = i * 1000003;
  assert_int_equal(kith_write_counts(ctx, in_folder("c.npy"), counts, N), KITH_OK);
  bytes file = read_file(in_folder("c.npy"));
  assert_int_equal(file.size, 128 + N * 8);
  assert_memory_equal(parse_npy(file.data, "<i8", "(100000,)"), counts, N * 8);
  free(file.data);
  assert_int_equal(kith_write_counts(ctx, in_folder("c.npy"), counts, 0), KITH_OK);
  file = read_file(in_folder("c.npy"));
  parse_npy(file.data, "<i8", "(0,)");
  free(file.data);
  assert_int_equal(kith_write_counts(ctx, in_folder("c.csv"), counts, 1), KITH_ERR_ARGUMENT);
  assert_int_equal(kith_write_counts(ctx, "/dev/full", counts, N), KITH_ERR_IO);
  for (uint64_t n = 1; n <= 2; n++) {
    kith_memory_fail_nth(n);
    assert_int_equal(kith_write_counts(ctx, in_folder("d.npy"), counts, N), KITH_ERR_MEMORY);
  }
  assert_int_equal(n_entries(false), 1);
  free(counts);
}

/* ---- npz ---- */

static uint64_t number(const unsigned char *at, size_t size) {
  uint64_t value = 0;
  memcpy(&value, at, size);
  return value;
}

/* Takes member `which` out of a small archive, checking it against its headers. */
static bytes extract(const bytes *zip, int which, const char *name) {
  const unsigned char *end = zip->data + zip->size - 22;
  assert_int_equal(number(end, 4), 0x06054b50);
  assert_int_equal(number(end + 10, 2), 5);
  const unsigned char *central = zip->data + number(end + 16, 4);
  for (int i = 0; i < which; i++)
    central += 46 + number(central + 28, 2) + number(central + 30, 2);
  const unsigned char *local = zip->data + number(central + 42, 4);
  assert_int_equal(number(central, 4), 0x02014b50);
  assert_int_equal(number(local, 4), 0x04034b50);
  assert_memory_equal(local + 4, central + 6, 26); /* the same fields */
  assert_int_equal(number(local + 26, 2), strlen(name));
  assert_memory_equal(local + 30, name, strlen(name));
  assert_memory_equal(central + 46, name, strlen(name));
  const unsigned char *from = local + 30 + number(local + 26, 2) + number(local + 28, 2);
  bytes out = {.size = number(local + 22, 4)};
  out.data = calloc(1, out.size + 1);
  z_stream stream = {.next_in = (unsigned char *)(uintptr_t)from, .avail_in = (unsigned)number(local + 18, 4)};
  stream.next_out = out.data;
  stream.avail_out = (unsigned)out.size + 1;
  if (number(local + 8, 2) == 0) {
    assert_int_equal(number(local + 18, 4), out.size);
    memcpy(out.data, from, out.size);
  } else {
    assert_int_equal(inflateInit2(&stream, -15), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.avail_in, 0);
    assert_int_equal(stream.total_out, out.size);
    inflateEnd(&stream);
  }
  assert_int_equal(crc32_z(0, out.data, out.size), number(local + 14, 4));
  return out;
}

static void check_member(const bytes *zip, int which, const char *descr, const table *t) {
  static const char *const NAMES[] = {"format.npy", "shape.npy", "indptr.npy", "indices.npy", "data.npy"};
  uint64_t n = which == 2 ? t->shape.n_rows + 1 : t->shape.n_pairs;
  char shape[32];
  snprintf(shape, sizeof shape, "(%llu,)", (unsigned long long)n);
  bytes npy = extract(zip, which, NAMES[which]);
  const unsigned char *array = parse_npy(npy.data, descr, which == 0 ? "()" : which == 1 ? "(2,)" : shape);
  if (which == 0)
    assert_memory_equal(array, "csr", 3);
  if (which == 1)
    assert_true(number(array, 8) == t->shape.n_rows && number(array + 8, 8) == t->shape.n_cols);
  for (uint64_t i = 0; which >= 2 && i < n; i++) {
    double value = load(array, descr, i);
    if (which == 2)
      assert_true(value == (double)t->offsets[i]);
    else if (which == 3)
      assert_true(value == (double)t->neighbors[i]);
    else
      assert_true(value == (t->shape.distances ? t->distances[i] : 1));
  }
  free(npy.data);
}

static void test_table_npz(void **state) {
  (void)state;
  const uint64_t pairs[] = {0, 1, 2, 63, 64, 65, 66, 128, 129, 130, 257, 258, 259, 260, 517, 1000, 200003};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    for (int wide = 0; wide < 2; wide++) {
      bool distances = i % 2 == (size_t)wide;
      table t = make_table(1 + pairs[i] / 3, wide ? UINT32_MAX : 500, pairs[i], distances);
      const char *ids = wide ? "<i8" : "<i4";
      assert_int_equal(write_table(KITH_NEIGHBORS, in_folder("t.npz"), &t, 1 + pairs[i] / 20), KITH_OK);
      bytes zip = read_file(in_folder("t.npz"));
      const char *const descr[] = {"|S3", "<i8", ids, ids, distances ? "<f8" : "<i4"};
      for (int which = 0; which < 5; which++)
        check_member(&zip, which, descr[which], &t);
      free(zip.data);
      free_table(&t);
    }
  assert_int_equal(n_entries(false), 1);
}

/* ---- text ---- */

static const uint64_t SMALL_OFFSETS[] = {0, 2, 2, 3};
static const uint32_t SMALL_NEIGHBORS[] = {1, 4294967294, 10};
static const double SMALL_DISTANCES[] = {0.1, 1.4142135623730951, 250};

static table small_table(bool distances) {
  return (table){.shape = {.n_rows = 3, .n_cols = UINT32_MAX, .n_pairs = 3, .distances = distances},
                 .offsets = (uint64_t *)(uintptr_t)SMALL_OFFSETS,
                 .neighbors = (uint32_t *)(uintptr_t)SMALL_NEIGHBORS,
                 .distances = (double *)(uintptr_t)SMALL_DISTANCES};
}

static void test_text(void **state) {
  (void)state;
  table plain = small_table(false), with = small_table(true);
  assert_int_equal(write_table(KITH_PAIRS, in_folder("a.csv"), &plain, 2), KITH_OK);
  assert_content(in_folder("a.csv"), "i,j\n0,1\n0,4294967294\n2,10\n");
  assert_int_equal(write_table(KITH_PAIRS, in_folder("a.tsv"), &with, 1), KITH_OK);
  assert_content(in_folder("a.tsv"),
                 "i\tj\tdistance\n0\t1\t0.1\n0\t4294967294\t1.4142135623730951\n2\t10\t250\n");
  assert_int_equal(write_table(KITH_PAIRS, in_folder("a.txt"), &with, 3), KITH_OK);
  assert_content(in_folder("a.txt"), "0 1 0.1\n0 4294967294 1.4142135623730951\n2 10 250\n");
  table none = make_table(3, 3, 0, false);
  assert_int_equal(write_table(KITH_PAIRS, in_folder("a.txt"), &none, 3), KITH_OK);
  assert_content(in_folder("a.txt"), "");
  free_table(&none);
}

static void test_long_text(void **state) {
  (void)state;
  table t = make_table(1000, 123456, 60000, true);
  assert_int_equal(write_table(KITH_PAIRS, in_folder("a.csv"), &t, 17), KITH_OK);
  FILE *file = fopen(in_folder("a.csv"), "r");
  assert_int_equal(fscanf(file, "i,j,distance\n"), 0);
  for (uint64_t r = 0; r < t.shape.n_rows; r++)
    for (uint64_t k = t.offsets[r]; k < t.offsets[r + 1]; k++) {
      unsigned long row, neighbor;
      double distance;
      assert_int_equal(fscanf(file, "%lu,%lu,%lf\n", &row, &neighbor, &distance), 3);
      assert_true(row == r && neighbor == t.neighbors[k] && distance == t.distances[k]);
    }
  assert_int_equal(fgetc(file), EOF);
  fclose(file);
  free_table(&t);
}

static void test_standard_output(void **state) {
  (void)state;
  table t = small_table(false);
  fflush(stdout);
  int saved = dup(STDOUT_FILENO), file = open(in_folder("out"), O_RDWR | O_CREAT, 0600);
  dup2(file, STDOUT_FILENO);
  kith_status status = write_table(KITH_PAIRS, "-", &t, 2);
  kith_status again = write_table(KITH_PAIRS, "/dev/stdout", &t, 2); /* appends: it was never closed */
  dup2(saved, STDOUT_FILENO);
  close(file);
  close(saved);
  assert_int_equal(status, KITH_OK);
  assert_int_equal(again, KITH_OK);
  assert_content(in_folder("out"), "0,1\n0,4294967294\n2,10\n0,1\n0,4294967294\n2,10\n");
}

static void test_closed_pipe(void **state) {
  (void)state;
  table t = make_table(10, 10, 30, false);
  int ends[2], saved = dup(STDOUT_FILENO);
  assert_int_equal(pipe(ends), 0);
  close(ends[0]);
  fflush(stdout);
  dup2(ends[1], STDOUT_FILENO);
  kith_status status = write_table(KITH_PAIRS, "-", &t, 2);
  dup2(saved, STDOUT_FILENO);
  close(ends[1]);
  close(saved);
  assert_int_equal(status, KITH_ERR_IO);
  assert_non_null(strstr(kith_message(ctx), "standard output: the reader closed the pipe"));
  free_table(&t);
}

static void expect_double(double value, const char *expected) {
  char text[KITH_DECIMAL_BYTES + 1];
  *kith_decimal_double(text, value) = '\0';
  assert_string_equal(text, expected);
}

static void test_decimals(void **state) {
  (void)state;
  expect_double(0, "0");
  expect_double(1, "1");
  expect_double(100, "100");
  expect_double(999999999999999, "999999999999999");
  expect_double(1e15, "1e+15");
  expect_double(0.3, "0.3");
  expect_double(0.1 + 0.2, "0.30000000000000004");
  expect_double(0.0001, "0.0001");
  expect_double(0.00001, "1e-05");
  expect_double(1.25e-12, "1.25e-12");
  expect_double(1e-14, "1e-14");
  expect_double(1e-15, "1e-15");
  expect_double(0x1p-24, "5.960464477539063e-08"); /* the border below a power of 2 is closer */
  expect_double(9.999999999999998, "9.999999999999998");
  expect_double(5e-324, "4.94065645841247e-324");
  expect_double(INFINITY, "inf");
  uint64_t random = 88172645463325252u;
  for (int i = 0; i < 200000; i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    double value = ldexp((double)(random >> 11), (int)(random % 100) - 100);
    char text[KITH_DECIMAL_BYTES + 1], shorter[64];
    char *end = kith_decimal_double(text, value);
    assert_true(end - text < KITH_DECIMAL_BYTES);
    *end = '\0';
    assert_true(strtod(text, NULL) == value);
    snprintf(shorter, sizeof shorter, "%.15g", value);
    if (strtod(shorter, NULL) == value && value < 1e15)
      assert_string_equal(text, shorter);
  }
}

/* ---- all or nothing ---- */

typedef struct file_case {
  kith_what what;
  const char *name;
} file_case;

static const file_case CASES[] = {
    {KITH_PAIRS, "x.npy"}, {KITH_NEIGHBORS, "x.npz"}, {KITH_PAIRS, "x.csv"}, {KITH_PAIRS, "x.txt"}};
enum { N_CASES = sizeof CASES / sizeof *CASES };

static void test_destroyed_early(void **state) {
  (void)state;
  table t = make_table(100, 100, 200000, true);
  for (int c = 0; c < N_CASES; c++)
    for (int stage = 0; stage < 4; stage++) {
      kith_sink *sink;
      assert_int_equal(kith_sink_file(ctx, CASES[c].what, in_folder(CASES[c].name), &sink), KITH_OK);
      assert_int_equal(n_entries(false), 0);
      if (stage > 0)
        assert_int_equal(sink->begin(sink, &t.shape), KITH_OK);
      assert_int_equal(n_entries(false), stage > 0);
      if (stage > 1)
        assert_int_equal(give(sink, &t, 0, 60), KITH_OK);
      if (stage > 2)
        assert_int_not_equal(sink->finish(sink), KITH_OK); /* rows are missing */
      kith_sink_destroy(sink);
      assert_int_equal(n_entries(false), 0);
    }
  free_table(&t);
}

static void test_broken_promises(void **state) {
  (void)state;
  table t = make_table(100, 100, 500, false);
  for (int c = 0; c < N_CASES; c++)
    for (int breach = 0; breach < 3; breach++) {
      table promised = t;
      promised.shape.n_pairs = breach == 0 ? 499 : breach == 1 ? 501 : 500;
      kith_sink *sink;
      assert_int_equal(kith_sink_file(ctx, CASES[c].what, in_folder(CASES[c].name), &sink), KITH_OK);
      assert_int_equal(sink->begin(sink, &promised.shape), KITH_OK);
      kith_status status = breach == 2 ? give(sink, &t, 1, 100) : give(sink, &t, 0, 100);
      assert_int_equal(breach == 1 ? sink->finish(sink) : status, KITH_ERR_ARGUMENT);
      kith_sink_destroy(sink);
      assert_int_equal(n_entries(false), 0);
    }
  free_table(&t);
}

static void test_failing_allocations(void **state) {
  (void)state;
  table t = make_table(100, 100, 500, true);
  for (int c = 0; c < N_CASES; c++) {
    kith_status status = KITH_ERR_MEMORY;
    uint64_t n = 1;
    for (; status; n++) {
      assert_true(n < 20);
      kith_memory_fail_nth(n);
      status = write_table(CASES[c].what, in_folder(CASES[c].name), &t, 9);
      assert_true(status == KITH_OK || status == KITH_ERR_MEMORY);
      assert_int_equal(n_entries(false), status == KITH_OK);
      assert_int_equal(ctx->memory.used, 0);
    }
    kith_memory_fail_nth(0);
    assert_true(n > 3); /* the sink, the output and a buffer failed once each */
    n_entries(true);
  }
  free_table(&t);
}

static void test_full_device(void **state) {
  (void)state;
  table t = make_table(100, 100, 500000, true);
  for (int c = 0; c < N_CASES; c++) {
    assert_int_equal(symlink("/dev/full", in_folder(CASES[c].name)), 0);
    assert_int_equal(write_table(CASES[c].what, in_folder(CASES[c].name), &t, 9), KITH_ERR_IO);
    assert_non_null(strstr(kith_message(ctx), "No space left on device (wrote 0 bytes"));
    assert_int_equal(n_entries(true), 1);
    assert_int_equal(write_table(CASES[c].what, "/dev/full", &t, 9), KITH_ERR_IO);
    assert_int_equal(write_table(CASES[c].what, "/dev/null", &t, 9), KITH_OK);
  }
  free_table(&t);
}

static void cancel_now(int number_of_signal) {
  (void)number_of_signal;
  kith_cancel(ctx);
}

static void cancel_soon(void) {
  struct sigaction action = {.sa_handler = cancel_now, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 50000}, NULL);
}

static void test_named_pipe(void **state) {
  (void)state;
  table t = small_table(false);
  assert_int_equal(mkfifo(in_folder("p.csv"), 0600), 0);
  int reader = open(in_folder("p.csv"), O_RDWR | O_NONBLOCK);
  assert_int_equal(write_table(KITH_PAIRS, in_folder("p.csv"), &t, 9), KITH_OK);
  char text[64] = {0};
  assert_true(read(reader, text, sizeof text - 1) > 0);
  assert_string_equal(text, "i,j\n0,1\n0,4294967294\n2,10\n");
  assert_int_equal(n_entries(false), 1);
  assert_int_equal(rename(in_folder("p.csv"), in_folder("p.npz")), 0);
  assert_int_equal(write_table(KITH_NEIGHBORS, in_folder("p.npz"), &t, 9), KITH_ERR_IO);
  assert_non_null(strstr(kith_message(ctx), "pipe"));
  /* Full, or without a reader: the wait can be cancelled. */
  table large = make_table(100, 100, 100000, false);
  assert_int_equal(rename(in_folder("p.npz"), in_folder("p.csv")), 0);
  for (int has_reader = 1; has_reader >= 0; has_reader--) {
    cancel_soon();
    assert_int_equal(write_table(KITH_PAIRS, in_folder("p.csv"), &large, 9), KITH_ERR_CANCELLED);
    assert_int_equal(kith_call_end(ctx, kith_check_cancel(ctx)), KITH_ERR_CANCELLED);
    if (has_reader)
      close(reader);
  }
  free_table(&large);
}

static void test_cancelled(void **state) {
  (void)state;
  table t = make_table(100, 100, 200000, true);
  for (int c = 0; c < N_CASES; c++) {
    kith_sink *sink;
    assert_int_equal(kith_sink_file(ctx, CASES[c].what, in_folder(CASES[c].name), &sink), KITH_OK);
    assert_int_equal(sink->begin(sink, &t.shape), KITH_OK);
    kith_cancel(ctx);
    assert_int_equal(give(sink, &t, 0, 100), KITH_ERR_CANCELLED);
    assert_true(kith_cancelled(ctx)); /* the call spends the request, not the sink */
    assert_int_equal(kith_call_end(ctx, kith_check_cancel(ctx)), KITH_ERR_CANCELLED);
    kith_sink_destroy(sink);
    assert_int_equal(n_entries(false), 0);
  }
  free_table(&t);
}

static void test_existing_target(void **state) {
  (void)state;
  table t = small_table(false);
  write_file(in_folder("x.csv"), "old");
  kith_sink *sink;
  assert_int_equal(kith_sink_file(ctx, KITH_PAIRS, in_folder("x.csv"), &sink), KITH_OK);
  assert_int_equal(give_all(sink, &t, 2), KITH_OK);
  assert_content(in_folder("x.csv"), "old");
  assert_int_equal(n_entries(false), 2);
  assert_int_equal(sink->finish(sink), KITH_OK);
  kith_sink_destroy(sink);
  assert_content(in_folder("x.csv"), "i,j\n0,1\n0,4294967294\n2,10\n");
  assert_int_equal(n_entries(false), 1);
}

static void test_permissions(void **state) {
  (void)state;
  table t = small_table(false);
  mode_t saved = umask(027);
  kith_status status = write_table(KITH_PAIRS, in_folder("x.csv"), &t, 2);
  umask(saved);
  struct stat info;
  assert_int_equal(status, KITH_OK);
  assert_int_equal(stat(in_folder("x.csv"), &info), 0);
  assert_int_equal(info.st_mode & 0777, 0640);
}

/* A file that is replaced keeps its permissions, whatever the mask says; so do those that links lead to. */
static void test_permissions_kept(void **state) {
  (void)state;
  static const mode_t MODES[] = {0600, 0644, 0664, 0755, 0666, 0606};
  table t = small_table(false);
  mode_t saved = umask(027);
  assert_int_equal(symlink("x.csv", in_folder("link.csv")), 0);
  for (int i = 0; i < 12; i++) {
    const char *name = in_folder(i % 2 ? "link.csv" : "x.csv");
    mode_t mode = MODES[i / 2];
    struct stat info;
    write_file(in_folder("x.csv"), "old");
    assert_int_equal(chmod(in_folder("x.csv"), mode), 0);
    assert_int_equal(write_table(KITH_PAIRS, name, &t, 2), KITH_OK);
    assert_content(in_folder("x.csv"), "i,j\n0,1\n0,4294967294\n2,10\n");
    assert_int_equal(stat(name, &info), 0);
    assert_int_equal(info.st_mode & 07777, mode);
  }
  umask(saved);
}

/* Only root can give files away, so only root can see whether they stay with their owner. */
static void test_owner_kept(void **state) {
  (void)state;
  if (geteuid() != 0)
    skip();
  table t = small_table(false);
  write_file(in_folder("x.csv"), "old");
  assert_int_equal(chown(in_folder("x.csv"), 12345, 23456), 0);
  assert_int_equal(write_table(KITH_PAIRS, in_folder("x.csv"), &t, 2), KITH_OK);
  struct stat info;
  assert_int_equal(stat(in_folder("x.csv"), &info), 0);
  assert_int_equal(info.st_uid, 12345);
  assert_int_equal(info.st_gid, 23456);
}

static void test_symbolic_links(void **state) {
  (void)state;
  table t = small_table(false);
  write_file(in_folder("real"), "old");
  assert_int_equal(symlink("real", in_folder("link.csv")), 0);
  assert_int_equal(symlink("link.csv", in_folder("link2.csv")), 0);
  assert_int_equal(symlink("new", in_folder("dangling.csv")), 0);
  assert_int_equal(symlink("loop.csv", in_folder("loop.csv")), 0);
  assert_int_equal(write_table(KITH_PAIRS, in_folder("link2.csv"), &t, 2), KITH_OK);
  assert_content(in_folder("real"), "i,j\n0,1\n0,4294967294\n2,10\n");
  struct stat info;
  assert_int_equal(lstat(in_folder("link2.csv"), &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(lstat(in_folder("real"), &info), 0);
  assert_true(S_ISREG(info.st_mode));
  assert_int_equal(write_table(KITH_PAIRS, in_folder("dangling.csv"), &t, 2), KITH_OK);
  assert_content(in_folder("new"), "i,j\n0,1\n0,4294967294\n2,10\n");
  assert_int_equal(write_table(KITH_PAIRS, in_folder("loop.csv"), &t, 2), KITH_ERR_IO);
  assert_int_equal(n_entries(false), 6);
}

static void test_long_name(void **state) {
  (void)state;
  table t = small_table(false);
  char name[NAME_MAX + 2];
  memset(name, 'n', sizeof name);
  strcpy(name + NAME_MAX - 4, ".csv");
  char *path = malloc(2 * NAME_MAX);
  sprintf(path, "%s/%s", folder, name);
  assert_int_equal(write_table(KITH_PAIRS, path, &t, 2), KITH_OK);
  assert_content(path, "i,j\n0,1\n0,4294967294\n2,10\n");
  strcpy(name + NAME_MAX - 4, "n.csv");
  sprintf(path, "%s/%s", folder, name);
  assert_int_equal(write_table(KITH_PAIRS, path, &t, 2), KITH_ERR_IO);
  free(path);
  assert_int_equal(n_entries(false), 1);
}

#define SINK_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      SINK_TEST(test_callback),
      SINK_TEST(test_check_output),
      SINK_TEST(test_unwritable_folder),
      SINK_TEST(test_pairs_npy),
      SINK_TEST(test_counts),
      SINK_TEST(test_table_npz),
      SINK_TEST(test_text),
      SINK_TEST(test_long_text),
      SINK_TEST(test_standard_output),
      SINK_TEST(test_closed_pipe),
      SINK_TEST(test_decimals),
      SINK_TEST(test_destroyed_early),
      SINK_TEST(test_broken_promises),
      SINK_TEST(test_failing_allocations),
      SINK_TEST(test_full_device),
      SINK_TEST(test_named_pipe),
      SINK_TEST(test_cancelled),
      SINK_TEST(test_existing_target),
      SINK_TEST(test_permissions),
      SINK_TEST(test_permissions_kept),
      SINK_TEST(test_owner_kept),
      SINK_TEST(test_symbolic_links),
      SINK_TEST(test_long_name),
  };
  return cmocka_run_group_tests_name("sink", tests, NULL, NULL);
}
