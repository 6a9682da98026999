/* Helpers of the tests that open files: see file_support.h. */
#include "file_support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kith_context *ctx;
char folder[] = "/tmp/kith_points_XXXXXX";

kith_context *make_context(uint32_t threads, uint64_t memory) {
  kith_context_options options = kith_context_options_init();
  options.threads = threads;
  options.memory_bytes = memory;
  kith_context *made;
  assert_int_equal(kith_context_create(&options, &made), KITH_OK);
  return made;
}

const char *path_of(const char *name) {
  static char paths[2][300];
  static int turn;
  turn = !turn;
  snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
  return paths[turn];
}

const char *write_bytes(const char *name, const void *bytes, size_t n) {
  const char *path = path_of(name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
  return path;
}

const char *write_text(const char *name, const char *text) { return write_bytes(name, text, strlen(text)); }

kith_file *open_with(const char *path, const char *columns, const char *format) {
  kith_file_options options = kith_file_options_init();
  options.columns = columns;
  options.format = format;
  kith_file *file;
  kith_status status = kith_file_open(ctx, path, &options, &file);
  if (status != KITH_OK)
    fail_msg("%s: %s", path, kith_message(ctx));
  assert_string_equal(kith_message(ctx), "");
  assert_string_equal(kith_file_path(file), path);
  return file;
}

void expect_failure(const char *path, const char *columns, const char *format, kith_status expected,
                    const char *const *words) {
  kith_file_options options = kith_file_options_init();
  options.columns = columns;
  options.format = format;
  kith_file *file = (kith_file *)&options;
  uint64_t used = ctx->memory.used;
  kith_status status = kith_file_open(ctx, path, &options, &file);
  if (status != expected)
    fail_msg("%s: %s, expected %s: %s", path, kith_status_name(status), kith_status_name(expected),
             kith_message(ctx));
  assert_null(file);
  assert_int_equal(ctx->memory.used, used);
  for (; *words; words++)
    if (!strstr(kith_message(ctx), *words))
      fail_msg("'%s' is not in: %s", *words, kith_message(ctx));
}

void check_values(const kith_points *points, uint64_t n, uint32_t dim, const double *values) {
  assert_int_equal(points->n, n);
  assert_int_equal(points->dim, dim);
  for (uint64_t i = 0; i < n; i++)
    for (uint32_t c = 0; c < dim; c++) {
      double got = kith_points_get(points, i, c), expected = values[i * dim + c];
      if (memcmp(&got, &expected, sizeof got) != 0 && !(isnan(got) && isnan(expected)))
        fail_msg("row %" PRIu64 ", column %u: %.17g, expected %.17g", i, c, got, expected);
    }
}

int check_file(const char *path, const char *columns, uint64_t n, uint32_t dim, const double *values) {
  kith_file *file = open_with(path, columns, NULL);
  int mapped = kith_file_is_mapped(file);
  check_values(kith_file_points(file), n, dim, values);
  kith_file_close(file);
  assert_int_equal(ctx->memory.used, 0);
  return mapped;
}

void fail_allocations(const char *path, const char *columns, uint64_t least) {
  kith_file_options options = kith_file_options_init();
  options.columns = columns;
  for (uint64_t n = 1;; n++) {
    kith_file *file;
    kith_memory_fail_nth(n);
    kith_status status = kith_file_open(ctx, path, &options, &file);
    kith_memory_fail_nth(0);
    if (status != KITH_OK) {
      if (status != KITH_ERR_MEMORY || !strstr(kith_message(ctx), "out of memory"))
        fail_msg("%s, allocation %" PRIu64 ": %s", path, n, kith_message(ctx));
      assert_null(file);
      assert_int_equal(ctx->memory.used, 0);
      continue;
    }
    kith_file_close(file);
    assert_int_equal(ctx->memory.used, 0);
    assert_true(n > least);
    return;
  }
}

int set_up(void **state) {
  (void)state;
  if (!mkdtemp(folder))
    return 1;
  ctx = make_context(2, 256 << 20);
  return 0;
}

int tear_down(void **state) {
  (void)state;
  kith_context_destroy(ctx);
  char command[100];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command) == 0 ? 0 : 1;
}
