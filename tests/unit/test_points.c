/* Tests of points/: views, summaries, statistics, and the readers of npy, text and fbin files. */
#include "file_support.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Helpers ------------------------------------------------------------------------------------------ */

/* An npy file of a version, with its header text as given (padded as numpy does unless `pad` is 0). */
typedef struct npy_case {
  int version;
  const char *dict;
  const void *data;
  size_t data_bytes;
  int pad;
} npy_case;

static const char *write_npy(const char *name, npy_case c) {
  char bytes[4096];
  int major = c.version ? c.version : 1;
  size_t length_bytes = major == 1 ? 2 : 4, at = 8 + length_bytes, length = strlen(c.dict);
  memcpy(bytes, "\x93NUMPY", 6);
  bytes[6] = (char)major;
  bytes[7] = 0;
  memcpy(bytes + at, c.dict, length);
  if (c.pad != 0)
    while ((at + length + 1) % 64 != 0)
      bytes[at + length++] = ' ';
  bytes[at + length++] = '\n';
  uint32_t written = (uint32_t)length;
  memcpy(bytes + 8, &written, length_bytes);
  if (c.data_bytes > 0)
    memcpy(bytes + at + length, c.data, c.data_bytes);
  return write_bytes(name, bytes, at + length + c.data_bytes);
}

/* ---- Views -------------------------------------------------------------------------------------------- */

static void test_views(void **state) {
  (void)state;
  float f[6] = {1, 2, 3, 4, 5, 6};
  double d[6] = {1, 2, 3, 4, 5, 6};
  kith_points a = kith_points_f32(f, 2, 3), b = kith_points_f64(d, 3, 2);
  assert_int_equal(a.row_stride, 12);
  assert_int_equal(b.row_stride, 16);
  assert_true(kith_points_get(&a, 1, 0) == 4 && kith_points_get(&b, 1, 1) == 4);
  assert_int_equal(kith_points_check(ctx, &a, "a"), KITH_OK);
  assert_int_equal(kith_points_check(ctx, &b, "b"), KITH_OK);
  kith_points backwards = {f + 5, 2, 3, KITH_F32, -12, -4, 0};
  assert_int_equal(kith_points_check(ctx, &backwards, "a"), KITH_OK);
  assert_true(kith_points_get(&backwards, 1, 2) == 1);
}

static void refuse_view(kith_points points, const char *words) {
  assert_int_equal(kith_points_check(ctx, &points, "stars"), KITH_ERR_ARGUMENT);
  assert_non_null(strstr(kith_message(ctx), "stars: "));
  if (!strstr(kith_message(ctx), words))
    fail_msg("'%s' is not in: %s", words, kith_message(ctx));
}

static void test_views_refused(void **state) {
  (void)state;
  double d[8] = {0};
  kith_points good = kith_points_f64(d, 2, 2), p = good;
  assert_int_equal(kith_points_check(ctx, NULL, "b"), KITH_ERR_ARGUMENT);
  p.n = UINT64_C(1) << 32;
  refuse_view(p, "2^32 - 1");
  p.n = UINT32_MAX; /* the largest legal number of rows, one row seen over and over */
  p.row_stride = 0;
  assert_int_equal(kith_points_check(ctx, &p, "a"), KITH_OK);
  p = good, p.dim = 0;
  refuse_view(p, "from 1 to 4096");
  p = good, p.dim = 4097;
  refuse_view(p, "from 1 to 4096");
  p = good, p.dtype = (kith_dtype)7;
  refuse_view(p, "dtype 7");
  p = good, p.data = NULL;
  refuse_view(p, "NULL");
  p = good, p.data = (const char *)d + 4;
  refuse_view(p, "aligned");
  p = good, p.row_stride = 12;
  refuse_view(p, "aligned");
  p = good, p.col_stride = -4;
  refuse_view(p, "aligned");
  p = good, p.n = UINT32_MAX, p.row_stride = INT64_MAX - 7;
  refuse_view(p, "address space");
  p = good, p.n = 1, p.row_stride = 3; /* never used */
  assert_int_equal(kith_points_check(ctx, &p, "a"), KITH_OK);
  p = (kith_points){NULL, 0, 2, KITH_F32, 0, 0, 0};
  assert_int_equal(kith_points_check(ctx, &p, "a"), KITH_OK);
}

/* ---- Summaries and statistics ------------------------------------------------------------------------- */

typedef enum layout { ROWS, COLUMNS, PADDED, BACKWARDS, N_LAYOUTS } layout;

/* A view, in some layout, of n x dim values computed from i and c; *store must be freed. */
static kith_points make_points(kith_dtype dtype, layout how, uint64_t n, uint32_t dim, void **store) {
  int64_t size = dtype == KITH_F32 ? 4 : 8, pad = how == PADDED ? 3 : 0;
  int64_t row = size * (dim + pad), column = size;
  if (how == COLUMNS)
    row = size, column = size * (int64_t)n;
  char *data = *store = calloc(n * (dim + (uint64_t)pad) + 1, (size_t)size);
  assert_non_null(data);
  if (how == BACKWARDS) {
    data += (int64_t)(n ? n - 1 : 0) * row + (int64_t)(dim - 1) * column;
    row = -row, column = -column;
  }
  for (uint64_t i = 0; i < n; i++)
    for (uint32_t c = 0; c < dim; c++) {
      double value = (double)((i * 7919 + c * 104729) % 1000003) - 500000 + c;
      char *at = data + (int64_t)i * row + (int64_t)c * column;
      if (dtype == KITH_F32)
        *(float *)at = (float)value;
      else
        *(double *)at = value;
    }
  return (kith_points){data, n, dim, dtype, row, column, 0};
}

static void poke(const kith_points *p, uint64_t i, uint32_t c, double value) {
  char *at = (char *)(uintptr_t)p->data + (int64_t)i * p->row_stride + (int64_t)c * p->col_stride;
  if (p->dtype == KITH_F32)
    *(float *)at = (float)value;
  else
    *(double *)at = value;
}

/* Compares summary and statistics with the plain loops. */
static void check_summary(kith_context *with, const kith_points *p) {
  static double min[KITH_MAX_DIM], max[KITH_MAX_DIM];
  static kith_column_stats stats[KITH_MAX_DIM];
  kith_points_summary got = {.min = min, .max = max};
  kith_points_summarize(with, p, &got);
  uint64_t invalid = 0, first_row = 0, reported;
  uint32_t first_col = 0;
  static char bad[300000];
  for (uint64_t i = 0; i < p->n; i++) {
    bad[i] = 0;
    for (uint32_t c = 0; c < p->dim && !bad[i]; c++)
      if (!isfinite(kith_points_get(p, i, c))) {
        bad[i] = 1;
        first_row = invalid++ ? first_row : i;
        first_col = invalid == 1 ? c : first_col;
      }
  }
  assert_int_equal(got.invalid_rows, invalid);
  assert_int_equal(got.first_invalid_row, first_row);
  assert_int_equal(got.first_invalid_col, first_col);
  assert_int_equal(kith_points_stats(with, p, stats, &reported), KITH_OK);
  assert_int_equal(reported, invalid);
  for (uint32_t c = 0; c < p->dim; c++) {
    double low = INFINITY, high = -INFINITY, sum = 0, squares = 0, count = (double)(p->n - invalid);
    for (uint64_t i = 0; i < p->n; i++)
      if (!bad[i]) {
        double x = kith_points_get(p, i, c);
        low = fmin(low, x), high = fmax(high, x), sum += x, squares += x * x;
      }
    assert_true(min[c] == low && max[c] == high && stats[c].min == low && stats[c].max == high);
    assert_false(signbit(min[c]) && min[c] == 0);
    if (count == 0) {
      assert_true(isnan(stats[c].mean) && isnan(stats[c].variance));
      continue;
    }
    double mean = sum / count, variance = squares / count - mean * mean;
    assert_true(fabs(stats[c].mean - mean) <= 1e-9 * (1 + fabs(mean)));
    assert_true(fabs(stats[c].variance - variance) <= 1e-9 * (1 + squares / count));
  }
}

static void test_summary(void **state) {
  (void)state;
  static const uint64_t SHAPES[][2] = {{0, 2},     {1, 1},     {1, 2},    {7, 3},     {100, 18}, {65536, 1},
                                       {65537, 1}, {40000, 2}, {9999, 7}, {2000, 31}, {700, 64}, {130, 4096}};
  kith_context *three = make_context(3, 0);
  for (size_t s = 0; s < sizeof SHAPES / sizeof *SHAPES; s++)
    for (int dtype = KITH_F32; dtype <= KITH_F64; dtype++)
      for (layout how = ROWS; how < N_LAYOUTS; how++) {
        void *store;
        uint64_t n = SHAPES[s][0];
        kith_points p = make_points((kith_dtype)dtype, how, n, (uint32_t)SHAPES[s][1], &store);
        check_summary(three, &p);
        if (n > 0) {
          poke(&p, n - 1, p.dim - 1, NAN);
          check_summary(three, &p);
          poke(&p, n / 2, p.dim / 2, -INFINITY);
          poke(&p, n / 3, 0, INFINITY);
          check_summary(ctx, &p);
        }
        free(store);
      }
  kith_context_destroy(three);
}

static void test_stats_need_no_order(void **state) {
  (void)state;
  void *store;
  kith_points p = make_points(KITH_F64, ROWS, 50001, 3, &store);
  kith_column_stats one[3], many[3];
  assert_int_equal(kith_points_stats(ctx, &p, one, NULL), KITH_OK);
  for (uint32_t threads = 2; threads < 9; threads += 3) {
    kith_context *other = make_context(threads, 0);
    assert_int_equal(kith_points_stats(other, &p, many, NULL), KITH_OK);
    assert_memory_equal(one, many, sizeof one);
    kith_context_destroy(other);
  }
  free(store);
}

static void test_stats_far_from_origin(void **state) {
  (void)state;
  enum { N = 100000 };
  double *x = malloc(N * 2 * sizeof *x);
  assert_non_null(x);
  for (int i = 0; i < N; i++) {
    x[2 * i] = 1e9 + (i % 2 ? 0.25 : -0.25);
    x[2 * i + 1] = 0.1;
  }
  kith_points p = kith_points_f64(x, N, 2);
  kith_column_stats stats[2];
  assert_int_equal(kith_points_stats(ctx, &p, stats, NULL), KITH_OK);
  assert_true(fabs(stats[0].mean - 1e9) < 1e-6 && fabs(stats[0].variance - 0.0625) < 1e-9);
  assert_true(stats[1].mean == 0.1 && stats[1].variance == 0);
  uint64_t invalid = 9;
  assert_int_equal(kith_points_stats(ctx, &p, NULL, &invalid), KITH_OK);
  assert_int_equal(invalid, 0);
  kith_memory_fail_nth(1);
  assert_int_equal(kith_points_stats(ctx, &p, stats, NULL), KITH_ERR_MEMORY);
  p.dim = 0;
  assert_int_equal(kith_points_stats(ctx, &p, stats, NULL), KITH_ERR_ARGUMENT);
  free(x);
}

static void test_cancel(void **state) {
  (void)state;
  double x[2] = {1, 2};
  kith_points p = kith_points_f64(x, 1, 2);
  kith_column_stats stats[2];
  kith_cancel(ctx);
  assert_int_equal(kith_points_stats(ctx, &p, stats, NULL), KITH_ERR_CANCELLED);
  assert_int_equal(kith_points_stats(ctx, &p, stats, NULL), KITH_OK);
  const char *path = write_text("cancel.csv", "1,2\n");
  kith_cancel(ctx);
  expect_failure(path, NULL, NULL, KITH_ERR_CANCELLED, WORDS("cancelled"));
  check_file(path, NULL, 1, 2, x);
}

/* ---- Files in general --------------------------------------------------------------------------------- */

static void test_files_refused(void **state) {
  (void)state;
  kith_file *file;
  assert_int_equal(kith_file_open(ctx, NULL, NULL, &file), KITH_ERR_ARGUMENT);
  assert_int_equal(kith_file_open(ctx, "x.csv", NULL, NULL), KITH_ERR_ARGUMENT);
  expect_failure(path_of("missing.npy"), NULL, NULL, KITH_ERR_IO, WORDS("missing.npy: there is no such file"));
  expect_failure(folder, NULL, "npy", KITH_ERR_IO, WORDS(folder, "directory"));
  expect_failure("", NULL, NULL, KITH_ERR_IO, WORDS("no such file"));
  static const char *const EMPTY[] = {"e.npy", "e.csv", "e.tsv", "e.txt", "e.fbin"};
  for (int i = 0; i < 5; i++)
    expect_failure(write_bytes(EMPTY[i], "", 0), NULL, NULL, KITH_ERR_FORMAT, WORDS(EMPTY[i], "empty"));
  const char *path = write_text("points.dat", "1 2\n");
  expect_failure(path, NULL, NULL, KITH_ERR_ARGUMENT, WORDS("points.dat", ".npy .csv .tsv .txt .fbin"));
  expect_failure(path, NULL, "hdf", KITH_ERR_ARGUMENT,
                 WORDS("'hdf'", "npy, text, fbin, gro, xyz, hdf5 or fits"));
  kith_file_close(open_with(path, NULL, "text"));
  if (geteuid() != 0) {
    path = write_text("secret.csv", "1,2\n");
    assert_int_equal(chmod(path, 0), 0);
    expect_failure(path, NULL, NULL, KITH_ERR_IO, WORDS("secret.csv", "Permission denied"));
  }
  expect_failure("-", NULL, "npy", KITH_ERR_IO, WORDS("standard input", "pipe"));
  kith_file_close(NULL);
}

static void test_ending_in_any_case(void **state) {
  (void)state;
  check_file(write_text("UPPER.CSV", "1,2\n"), NULL, 1, 2, (double[]){1, 2});
  check_file(write_text("dots.in.name.csv", "1,2\n"), NULL, 1, 2, (double[]){1, 2});
}

static void test_short_options(void **state) {
  (void)state;
  const char *path = write_text("short.csv", "1,2\n");
  kith_file_options options = {
      .struct_size = offsetof(kith_file_options, format), .columns = "1", .format = "no"};
  kith_file *file;
  assert_int_equal(kith_file_open(ctx, path, &options, &file), KITH_OK);
  check_values(kith_file_points(file), 1, 1, (double[]){2});
  kith_file_close(file);
  assert_int_equal(kith_file_open(ctx, path, NULL, &file), KITH_OK);
  kith_file_close(file);
}

/* ---- npy ---------------------------------------------------------------------------------------------- */

static const float F[6] = {1, 2.5f, -3, 4, 5, 6};
static const double F_AS_DOUBLE[6] = {1, 2.5, -3, 4, 5, 6};

static void test_npy_orders_and_versions(void **state) {
  (void)state;
  static const double BY_COLUMN[6] = {1, 4, 2.5, 5, -3, 6};
  for (int version = 1; version <= 3; version++) {
    const char *path = write_npy(
        "c.npy", (npy_case){version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", F, 24, 1});
    assert_true(check_file(path, NULL, 2, 3, F_AS_DOUBLE));
    path = write_npy(
        "f.npy", (npy_case){version, "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", F, 24, 1});
    assert_true(check_file(path, NULL, 3, 2, BY_COLUMN));
  }
  assert_true(
      check_file(write_npy("d.npy", (npy_case){1, "{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }",
                                               F_AS_DOUBLE, 48, 1}),
                 NULL, 6, 1, F_AS_DOUBLE));
}

static void test_npy_header_forms(void **state) {
  (void)state;
  static const char *const DICTS[] = {
      "{\"shape\":(2,3),\"descr\":\"<f4\",\"fortran_order\":False}",
      "  {\n'fortran_order' :\tFalse , 'shape': ( 2 , 3 , ) , 'descr' : '=f4' , } ",
      "{'descr': '|f4', 'fortran_order': False, 'shape': (2L, 3L)}",
      "{'descr': 'f4', 'shape': (2, 3), 'fortran_order': False}",
  };
  for (size_t i = 0; i < sizeof DICTS / sizeof *DICTS; i++)
    check_file(write_npy("h.npy", (npy_case){1, DICTS[i], F, 24, 1}), NULL, 2, 3, F_AS_DOUBLE);
  static const char *const DAMAGED[] = {
      "",
      "{",
      "{}",
      "[]",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}",
      "{'descr': '<f4, 'fortran_order': False, 'shape': (2, 3)}",
      "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': 6}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 99999999999999999999999)}",
  };
  for (size_t i = 0; i < sizeof DAMAGED / sizeof *DAMAGED; i++)
    expect_failure(write_npy("damaged.npy", (npy_case){1, DAMAGED[i], F, 24, 1}), NULL, NULL, KITH_ERR_FORMAT,
                   WORDS("damaged.npy: ", "header is damaged"));
}

static void test_npy_misaligned_and_trailing(void **state) {
  (void)state;
  const char *dict = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }";
  char data[48 + 5] = {0};
  memcpy(data, F_AS_DOUBLE, 48);
  char spaced[128];
  for (int spaces = 0; spaces < 8; spaces++) { /* every offset of the data modulo 8 */
    snprintf(spaced, sizeof spaced, "%s%*s", dict, spaces, "");
    size_t offset = 10 + strlen(spaced) + 1;
    int mapped =
        check_file(write_npy("m.npy", (npy_case){1, spaced, data, sizeof data, 0}), NULL, 3, 2, F_AS_DOUBLE);
    assert_int_equal(mapped, offset % 8 == 0);
  }
}

static void test_npy_integers(void **state) {
  (void)state;
  static const struct {
    const char *descr;
    const void *data;
    size_t bytes;
    kith_dtype dtype;
    double values[2];
  } CASES[] = {
      {"|i1", "\x80\x7f", 2, KITH_F32, {-128, 127}},
      {"|u1", "\x80\xff", 2, KITH_F32, {128, 255}},
      {"|b1", "\x00\x01", 2, KITH_F32, {0, 1}},
      {"<i2", "\x00\x80\xff\x7f", 4, KITH_F32, {-32768, 32767}},
      {">i2", "\x80\x00\x7f\xff", 4, KITH_F32, {-32768, 32767}},
      {"<u2", "\x00\x80\xff\xff", 4, KITH_F32, {32768, 65535}},
      {"<i4", "\x00\x00\x00\x80\xff\xff\xff\x7f", 8, KITH_F64, {-2147483648.0, 2147483647}},
      {">u4", "\x80\x00\x00\x00\xff\xff\xff\xff", 8, KITH_F64, {2147483648.0, 4294967295.0}},
      {"<i8",
       "\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x20\x00",
       16,
       KITH_F64,
       {-0x1p63, 0x1p53}},
      {">u8",
       "\xff\xff\xff\xff\xff\xff\xf8\x00\x00\x00\x00\x00\x00\x00\x00\x07",
       16,
       KITH_F64,
       {0x1p64 - 2048, 7}},
      {">f4", "\x3f\x80\x00\x00\xc0\x00\x00\x00", 8, KITH_F32, {1, -2}},
      {">f8", "\x3f\xf0\x00\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00", 16, KITH_F64, {1, -2}},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    char dict[100];
    snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (1, 2), }", CASES[i].descr);
    const char *path = write_npy("i.npy", (npy_case){1, dict, CASES[i].data, CASES[i].bytes, 1});
    kith_file *file = open_with(path, NULL, NULL);
    assert_int_equal(kith_file_points(file)->dtype, CASES[i].dtype);
    assert_false(kith_file_is_mapped(file));
    check_values(kith_file_points(file), 1, 2, CASES[i].values);
    kith_file_close(file);
  }
}

static void test_npy_inexact(void **state) {
  (void)state;
  int64_t i8[6] = {1, 2, 3, -9007199254740993, 5, 9007199254740993};
  uint64_t u8[2] = {UINT64_MAX, 1};
  const char *dict = "{'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }";
  const char *path = write_npy("i8.npy", (npy_case){1, dict, i8, sizeof i8, 1});
  expect_failure(path, NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("i8.npy: row 1, column 1 holds -9007199254740993", "float64"));
  assert_false(check_file(path, "0", 3, 1, (double[]){1, 3, 5})); /* what is not chosen does not matter */
  dict = "{'descr': '<u8', 'fortran_order': False, 'shape': (1, 2), }";
  path = write_npy("u8.npy", (npy_case){1, dict, u8, sizeof u8, 1});
  expect_failure(path, NULL, NULL, KITH_ERR_FORMAT, WORDS("row 0, column 0 holds 18446744073709551615"));
}

static void test_npy_types_refused(void **state) {
  (void)state;
  static const char *const TYPES[][2] = {
      {"'<f2'", "float16"},     {"'<c8'", "complex"}, {"'|O'", "Python object"}, {"'<U5'", "string"},
      {"'|S5'", "byte string"}, {"'|V8'", "raw"},     {"'<M8[ns]'", "datetime"}, {"'<f16'", "extended"},
      {"'\x01zz'", "?zz"},      {"''", "unknown"},    {"'<'", "unknown"},        {"'<i3'", "unknown"}};
  char dict[100], data[64] = {0};
  for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
    snprintf(dict, sizeof dict, "{'descr': %s, 'fortran_order': False, 'shape': (1, 2), }", TYPES[i][0]);
    expect_failure(write_npy("t.npy", (npy_case){1, dict, data, sizeof data, 1}), NULL, NULL, KITH_ERR_FORMAT,
                   WORDS("t.npy: ", TYPES[i][1], "astype"));
  }
  const char *structured = "{'descr': [('x', '<f4'), ('y', '<f4')], 'fortran_order': False, 'shape': (8,), }";
  expect_failure(write_npy("s.npy", (npy_case){1, structured, data, sizeof data, 1}), NULL, NULL,
                 KITH_ERR_FORMAT, WORDS("s.npy: ", "structured_to_unstructured"));
}

static void test_npy_sizes(void **state) {
  (void)state;
  static const struct {
    const char *shape, *order, *words;
  } CASES[] = {
      {"(1000, 2)", "False", "promises 1000 x 2 float32 values (8000 bytes), but the file holds only 512"},
      {"(1152921504606846976, 2)", "False", "more than any file can hold"},
      {"(4294967296, 4294967296)", "True", "more than any file can hold"},
      {"(0, 9223372036854775808)", "False", "more than any file can hold"},
      {"(9223372036854775807, 0)", "True", "more than any file can hold"},
      {"(3, 0)", "False", "no columns"},
      {"()", "False", "0 axes"},
      {"(2, 2, 2)", "False", "3 axes"},
      {"(0, 5000)", "False", "at most 4096"},
  };
  char data[512] = {0}, dict[200];
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': %s, 'shape': %s, }", CASES[i].order,
             CASES[i].shape);
    kith_status status = strstr(CASES[i].words, "at most") ? KITH_ERR_ARGUMENT : KITH_ERR_FORMAT;
    expect_failure(write_npy("x.npy", (npy_case){1, dict, data, sizeof data, 1}), NULL, NULL, status,
                   WORDS("x.npy: ", CASES[i].words));
  }
  const char *empty = "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }";
  check_file(write_npy("n0.npy", (npy_case){1, empty, NULL, 0, 1}), NULL, 0, 3, NULL);
  check_file(write_npy("n0.npy", (npy_case){1, empty, NULL, 0, 1}), "2,0,1", 0, 3, NULL);
  empty = "{'descr': '<i2', 'fortran_order': True, 'shape': (0,), }";
  check_file(write_npy("n0.npy", (npy_case){1, empty, NULL, 0, 1}), NULL, 0, 1, NULL);
  /* 2^32 rows are refused even where the file could hold them. */
  const char *path = write_npy(
      "big.npy", (npy_case){1, "{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296,)}", NULL, 0, 1});
  if (truncate(path, INT64_C(4294967296) + 4096) == 0)
    expect_failure(path, NULL, NULL, KITH_ERR_BUDGET, WORDS("big.npy"));
  unlink(path);
  path = write_npy(
      "big.npy", (npy_case){1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,)}", NULL, 0, 1});
  if (truncate(path, INT64_C(4294967296) * 4 + 4096) == 0)
    expect_failure(path, NULL, NULL, KITH_ERR_ARGUMENT, WORDS("big.npy", "2^32 - 1"));
  unlink(path);
}

static void test_npy_damaged_start(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t n;
    const char *words;
  } CASES[] = {
      {"\x93NUMPY", 6, "not an npy file"},
      {"hello, world", 12, "not an npy file"},
      {"\x93NUMPY\x04\x00\x10\x00", 10, "version 4.0"},
      {"\x93NUMPY\x01\x00\x10", 9, "ends within its header"},
      {"\x93NUMPY\x02\x00\x10\x00", 10, "ends within"},
      {"\x93NUMPY\x01\x00\xff\xff{}", 12, "claims 65535 bytes"},
      {"\x93NUMPY\x03\x00\xff\xff\xff\xff{}", 14, "claims 4294967295 bytes"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
    expect_failure(write_bytes("s.npy", CASES[i].bytes, CASES[i].n), NULL, NULL, KITH_ERR_FORMAT,
                   WORDS("s.npy: ", CASES[i].words));
}

static void test_npy_columns(void **state) {
  (void)state;
  float wide[2][5] = {{0, 1, 2, 3, 4}, {10, 11, 12, 13, 14}};
  const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 5), }";
  const char *path = write_npy("w.npy", (npy_case){1, dict, wide, sizeof wide, 1});
  assert_true(check_file(path, "1", 2, 1, (double[]){1, 11}));
  assert_true(check_file(path, " 0 , 2,4 ", 2, 3, (double[]){0, 2, 4, 10, 12, 14}));
  assert_true(check_file(path, "4,3", 2, 2, (double[]){4, 3, 14, 13}));
  assert_false(check_file(path, "0,1,3", 2, 3, (double[]){0, 1, 3, 10, 11, 13}));
  expect_failure(path, "0,5", NULL, KITH_ERR_ARGUMENT, WORDS("w.npy: there is no column 5", "0 to 4"));
  expect_failure(path, "99999999999999999999999999", NULL, KITH_ERR_ARGUMENT, WORDS("0 to 4"));
  expect_failure(path, "1,2,1", NULL, KITH_ERR_ARGUMENT, WORDS("'1,2,1'", "column 1 is there twice"));
  expect_failure(path, "ra", NULL, KITH_ERR_ARGUMENT, WORDS("'ra'", "no names", "0 to 4"));
  expect_failure(path, "-1", NULL, KITH_ERR_ARGUMENT, WORDS("'-1'"));
  static const char *const EMPTY[] = {"", " ", ",", "1,", ",1", "1,,2"};
  for (int i = 0; i < 6; i++)
    expect_failure(path, EMPTY[i], NULL, KITH_ERR_ARGUMENT, WORDS("a column is empty"));
  dict = "{'descr': '<f4', 'fortran_order': True, 'shape': (5, 2), }";
  path = write_npy("wf.npy", (npy_case){1, dict, wide, sizeof wide, 1});
  assert_true(check_file(path, "1,0", 5, 2, (double[]){10, 0, 11, 1, 12, 2, 13, 3, 14, 4}));
}

/* ---- fbin --------------------------------------------------------------------------------------------- */

static void test_fbin(void **state) {
  (void)state;
  struct {
    uint32_t n, dim;
    float values[6];
  } data = {2, 3, {1, 2.5f, -3, 4, 5, 6}};
  const char *path = write_bytes("x.fbin", &data, sizeof data);
  assert_true(check_file(path, NULL, 2, 3, F_AS_DOUBLE));
  assert_true(check_file(path, "2,0", 2, 2, (double[]){-3, 1, 6, 4}));
  assert_false(check_file(path, "0,2,1", 2, 3, (double[]){1, -3, 2.5, 4, 6, 5}));
  expect_failure(write_bytes("x.fbin", &data, sizeof data - 1), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("x.fbin: ", "promises 2 x 3", "23 bytes"));
  expect_failure(write_bytes("x.fbin", &data, sizeof data - 4), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("cut short"));
  expect_failure(write_bytes("x.fbin", &data, 7), NULL, NULL, KITH_ERR_FORMAT, WORDS("8 bytes", "only 7"));
  data.dim = 2;
  expect_failure(write_bytes("x.fbin", &data, sizeof data), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("is it an fbin file"));
  data.n = data.dim = UINT32_MAX;
  expect_failure(write_bytes("x.fbin", &data, sizeof data), NULL, NULL, KITH_ERR_FORMAT, WORDS("promises"));
  data.n = 5, data.dim = 0;
  expect_failure(write_bytes("x.fbin", &data, 8), NULL, NULL, KITH_ERR_FORMAT, WORDS("no columns"));
  data.n = 0, data.dim = 5;
  check_file(write_bytes("x.fbin", &data, 8), NULL, 0, 5, NULL);
}

/* ---- Text --------------------------------------------------------------------------------------------- */

static void test_text_forms(void **state) {
  (void)state;
  static const double TWO_ROWS[4] = {1, 2.5, -3, 4e5};
  static const char *const FORMS[][2] = {
      {"a.csv", "1,2.5\n-3,4e5\n"},
      {"b.csv", "1,2.5\r\n-3,4e5\r\n"},
      {"c.csv", "1,2.5\n-3,4e5"},
      {"d.csv", "\n  \n# comment\n1 , 2.5\n\t\n#1,2,3\n -3,\t4e5 \n\n"},
      {"e.csv", "\"1\",\"2.5\"\n-3,4E+05\n"},
      {"f.csv", "\xEF\xBB\xBFx,y\n+1.,2.50\n-3.000,.4e+6\n"},
      {"g.csv", "\"x, the first\",\"the \"\"second\"\"\"\n1,2.5\n-3,4e5\n"},
      {"h.tsv", "1\t2.5\n-3\t 4e5\n"},
      {"i.tsv", "right ascension\tdec\n1\t2.5\r\n-3\t4e5\n"},
      {"j.txt", "1 2.5\n-3 4e5\n"},
      {"k.txt", "  1\t 2.5  \n-3    4e5\r\n"},
      {"l.txt", "1,2.5\n-3,4e5\n"},
      {"m.txt", "x y\n1 2.5\n-3 4e5\n"},
      {"n.txt", "# x y\n1.000000000000000000e+00 2.500000000000000000e+00\n-3.0e0 4e5\n"},
      {"o.txt", "x, y\n1, 2.5\n-3, 4e5\n"},
      {"p.csv", "1;2.5\n-3;4e5\n"},
      {"q.txt", "x; y\n1; 2.5\n-3; 4e5\n"},
  };
  for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
    assert_false(check_file(write_text(FORMS[i][0], FORMS[i][1]), NULL, 2, 2, TWO_ROWS));
  check_file(write_text("one.txt", "7"), NULL, 1, 1, (double[]){7});
  check_file(write_text("odd.csv", "nan,inf,-Inf,+INFINITY,NaN,-nan\n"), NULL, 1, 6,
             (double[]){NAN, INFINITY, -INFINITY, INFINITY, NAN, NAN});
  check_file(write_text("zero.csv", "0,-0,0.0,-0e5,0000000000000000000000\n"), NULL, 1, 5,
             (double[]){0, -0.0, 0, -0.0, 0});
}

static void check_names(const char *path, const char *columns, const char *const *names, uint32_t n) {
  kith_file *file = open_with(path, columns, NULL);
  assert_int_equal(kith_file_points(file)->dim, n);
  for (uint32_t c = 0; c < n; c++) {
    const char *name = kith_file_column(file, c);
    if (!names[c])
      assert_null(name);
    else if (!name || strcmp(name, names[c]) != 0)
      fail_msg("%s: column %u is '%s', expected '%s'", path, c, name ? name : "NULL", names[c]);
  }
  assert_null(kith_file_column(file, n));
  kith_file_close(file);
}

static void test_text_names(void **state) {
  (void)state;
  check_names(write_text("a.csv", "ra,dec\n1,2\n"), NULL, WORDS("ra", "dec"), 2);
  check_names(write_text("b.csv", "ra,,dec\n1,2,3\n"), NULL, WORDS("ra", NULL, "dec"), 3);
  check_names(write_text("c.csv", "\" ra \",\"say \"\"dec\"\"\"\n1,2\n"), NULL, WORDS(" ra ", "say \"dec\""),
              2);
  check_names(write_text("d.txt", "# text of three words\n# x y\n1 2\n"), NULL, WORDS("x", "y"), 2);
  check_names(write_text("e.csv", "#ra, dec\n1,2\n"), NULL, WORDS("ra", "dec"), 2);
  check_names(write_text("f.csv", "# a comment\n1,2\n"), NULL, WORDS(NULL, NULL), 2);
  check_names(write_text("g.csv", "# 5,6\n1,2\n"), NULL, WORDS(NULL, NULL), 2);
  check_names(write_text("h.csv", "# x,y\nra,dec\n1,2\n"), NULL, WORDS("ra", "dec"), 2);
  check_names(write_text("i.csv", "id,ra,dec\nM31,1,2\n"), "2,1", WORDS("dec", "ra"), 2);
  check_names(write_text("j.csv", "1,2\n"), NULL, WORDS(NULL, NULL), 2);
  check_names(write_text("k.csv", ",0,1\n0,1,2\n"), "1,2", WORDS("0", "1"), 2);
  check_file(write_text("k.csv", ",0,1\n0,1,2\n"), "1,2", 1, 2, (double[]){1, 2});
  check_file(write_text("k.csv", ",0,2\n7,1,2\n"), "1,2", 2, 2, (double[]){0, 2, 1, 2});
  expect_failure(write_text("l.csv", ",x,y\n0,1,2\n"), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("column 0 has no name"));
}

static void test_text_columns(void **state) {
  (void)state;
  const char *path = write_text("s.csv", "id,ra,dec,mag,ra\nM31,1,2,,7\n\"M,32\",3,4,x,8\n");
  check_file(path, "dec,1", 2, 2, (double[]){2, 1, 4, 3});
  check_file(path, "4,2", 2, 2, (double[]){7, 2, 8, 4});
  expect_failure(path, "dec,z", NULL, KITH_ERR_ARGUMENT,
                 WORDS("s.csv", "no column 'z'", "id, ra, dec, mag, ra"));
  expect_failure(path, "ra", NULL, KITH_ERR_ARGUMENT,
                 WORDS("columns 1 and 4 are both called 'ra'", "by number"));
  expect_failure(path, "5", NULL, KITH_ERR_ARGUMENT, WORDS("0 to 4"));
  expect_failure(path, "dec,2", NULL, KITH_ERR_ARGUMENT, WORDS("column 2 is there twice"));
  expect_failure(path, NULL, NULL, KITH_ERR_FORMAT, WORDS("s.csv, line 2, column 0 id: 'M31' is not a number"));
  expect_failure(path, "mag", NULL, KITH_ERR_FORMAT, WORDS("line 2, column 3 mag", "empty"));
  path = write_text("nohead.csv", "M31,1,2\nM32,3,4\n"); /* the first line is data for the columns chosen */
  check_file(path, "1,2", 2, 2, (double[]){1, 2, 3, 4});
  path = write_text("plain.csv", "1,2\n");
  expect_failure(path, "x", NULL, KITH_ERR_ARGUMENT, WORDS("no names", "0 to 1"));
  path = write_text("savetxt.csv", "# id,ra,dec\nM31,1,2\nM32,3,4\n");
  check_file(path, "ra,dec", 2, 2, (double[]){1, 2, 3, 4});
  expect_failure(path, "x", NULL, KITH_ERR_ARGUMENT, WORDS("'x'"));
  path = write_text("savetxt.txt", "# ra dec\n1 2\n");
  expect_failure(path, "x", NULL, KITH_ERR_ARGUMENT, WORDS("'x'", "ra, dec"));
}

static void test_text_refused(void **state) {
  (void)state;
  static const struct {
    const char *name, *text, *words[2];
  } CASES[] = {
      {"r.csv",
       "1,2\n\n# c\n3\n",
       {"r.csv, line 4: there is no column 1", "1 field where the first line has 2"}},
      {"r.csv", "1,2\n3,4,5\n", {"r.csv, line 2: unexpected column 2", "3 fields"}},
      {"r.csv", "1,2\n3,4,\n", {"line 2", "3 fields"}},
      {"r.txt", "1 2\n3 4 5\n", {"line 2", "3 fields"}},
      {"r.csv", "1,2\n3,4x\n", {"r.csv, line 2, column 1: '4x' is not a number", ""}},
      {"r.csv", "x,y\n1,2\n3,0x10\n", {"line 3, column 1 y: '0x10' is not a number", ""}},
      {"r.csv", "1,2\n3,\n", {"line 2, column 1: the field is empty", ""}},
      {"r.csv", "1,,3\n1,2,3\n", {"line 1, column 1: the field is empty", ""}},
      {"r.csv", "1,2\n3,1e\n", {"'1e'", ""}},
      {"r.csv", "1,2\n3,.\n", {"'.'", ""}},
      {"r.csv", "1,2\n3,-\n", {"'-'", ""}},
      {"r.csv", "1,2\n3,--1\n", {"'--1'", ""}},
      {"r.csv", "1,2\n3,1 2\n", {"'1 2'", ""}},
      {"r.csv", "1,2\n3,nan(1)\n", {"'nan(1)'", ""}},
      {"r.csv", "1,2\n3,\"4\n", {"'\"4'", ""}},
      {"r.csv", "1,2\n3,\x01\x80zz\n", {"'??zz'", ""}},
      {"r.csv",
       "1,2\n3,this field is far too long to be shown in a message\n",
       {"'this field is far too long to be...'", ""}},
      {"r.tsv", "1\t2\n3\t\n", {"line 2, column 1: the field is empty", ""}},
      {"r.csv", "\n# nothing\n\n", {"r.csv: there is no line of numbers", ""}},
      {"r.csv", "ra,dec\n", {"r.csv: there is no line of numbers", ""}},
      {"r.csv", "1,2\n3;4,5\n", {"'3;4' is not a number", ""}},
      {"r.csv", "x;y\n1;2,5\n", {"'2,5' is not a number (decimals take a point, not a comma)", ""}},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
    expect_failure(write_text(CASES[i].name, CASES[i].text), NULL, NULL, KITH_ERR_FORMAT,
                   WORDS(CASES[i].words[0], CASES[i].words[1]));
}

static void test_text_wide(void **state) {
  (void)state;
  enum { FIELDS = 5000 };
  char *text = malloc(FIELDS * 2 + 1);
  assert_non_null(text);
  for (int i = 0; i < FIELDS; i++)
    memcpy(text + 2 * i, i + 1 < FIELDS ? "1," : "2\n", 2);
  const char *path = write_bytes("wide.csv", text, FIELDS * 2);
  expect_failure(path, NULL, NULL, KITH_ERR_ARGUMENT, WORDS("5000 columns", "at most 4096"));
  check_file(path, "4999,0", 1, 2, (double[]){2, 1});
  free(text);
}

/* Every value must come out as strtod gives it, in a locale with decimal commas too. */
static void test_text_numbers(void **state) {
  (void)state;
  enum { N = 40000 };
  char *text = malloc(N * 64), *at = text;
  double *values = malloc(N * sizeof *values);
  assert_true(text && values);
  uint64_t random = 88172645463325252u;
  for (int i = 0; i < N; i++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    double x;
    memcpy(&x, &random, sizeof x);
    double unit = (double)(random >> 11) * 0x1p-53;
    int length = i % 8 == 0   ? sprintf(at, "%.17g", isfinite(x) ? x : 0.1)
                 : i % 8 == 1 ? sprintf(at, "%.18e", unit * 360 - 180)
                 : i % 8 == 2 ? sprintf(at, "%.6f", unit * 1000)
                 : i % 8 == 3 ? sprintf(at, "%.17g", unit)
                 : i % 8 == 4 ? sprintf(at, "%" PRIu64 "e%d", random, (int)(random % 70) - 35)
                 : i % 8 == 5 ? sprintf(at, "-%.25f", unit)
                 : i % 8 == 6
                     ? sprintf(at, "0.000000000000000%" PRIu64, random >> 20)
                     : sprintf(at, "%" PRIu64 ".%05u", random >> (random % 60), (unsigned)(random % 100000));
    values[i] = strtod(at, NULL);
    at += length;
    *at++ = '\n';
  }
  const char *path = write_bytes("numbers.txt", text, (size_t)(at - text));
  check_file(path, NULL, N, 1, values);
  static const char *const COMMAS[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
  for (size_t i = 0; i < sizeof COMMAS / sizeof *COMMAS && !setlocale(LC_ALL, COMMAS[i]); i++) {
  }
  check_file(path, NULL, N, 1, values);
  setlocale(LC_ALL, "C");
  free(text);
  free(values);
}

static void test_text_number_edges(void **state) {
  (void)state;
  static const char *const TEXTS[] = {"9007199254740993",
                                      "9007199254740992.5",
                                      "9007199254740993.0000000000000000000001",
                                      "1e22",
                                      "1e23",
                                      "1e27",
                                      "123456789012345678e5",
                                      "9999999999999999999",
                                      "9999999999999999999e27",
                                      "9999999999999999999e-27",
                                      "18446744073709551615",
                                      "18446744073709551616",
                                      "1e-27",
                                      "1e-28",
                                      "5e-324",
                                      "2e-324",
                                      "1.7976931348623157e308",
                                      "1e309",
                                      "-1e-400",
                                      "0.1e1",
                                      "0e99999999999",
                                      "1e-99999999999",
                                      "000000000000000000000000000001.5",
                                      "2.2250738585072011e-308",
                                      "8.5e-1",
                                      "0.500000000000000166533453693773481063544750213623046875",
                                      "1.00000000000000011102230246251565404236316680908203125",
                                      "1.00000000000000011102230246251565404236316680908203124"};
  for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
    double expected = strtod(TEXTS[i], NULL);
    check_file(write_text("edge.txt", TEXTS[i]), NULL, 1, 1, &expected);
  }
  char zeros[1500];
  memset(zeros, '0', sizeof zeros);
  memcpy(zeros, "1\n0.", 4);
  memcpy(zeros + sizeof zeros - 6, "1e1494", 6);
  expect_failure(write_bytes("long.txt", zeros, sizeof zeros), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("is not a number"));
}

/* ---- Standard input and memory ------------------------------------------------------------------------ */

/* Runs body with standard input from the file, by way of a pipe if a child can feed one. */
static kith_status open_stdin(const char *path, kith_file **file) {
  char command[400];
  snprintf(command, sizeof command, "cat '%s'", path);
  FILE *pipe = popen(command, "r");
  assert_non_null(pipe);
  int saved = dup(0);
  assert_int_equal(dup2(fileno(pipe), 0), 0);
  kith_status status = kith_file_open(ctx, "-", NULL, file);
  dup2(saved, 0);
  close(saved);
  pclose(pipe);
  return status;
}

static const char *write_table(const char *name, int rows) {
  const char *path = path_of(name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "# made for a test\nx,y,z\n");
  for (int i = 0; i < rows; i++)
    fprintf(file, "%d,%d.5,-%d\n", i, i, 2 * i);
  fclose(file);
  return path;
}

static void check_table(const kith_file *file, uint64_t rows) {
  const kith_points *points = kith_file_points(file);
  assert_int_equal(points->n, rows);
  assert_int_equal(points->dim, 3);
  for (uint64_t i = 0; i < rows; i++)
    assert_true(kith_points_get(points, i, 0) == (double)i &&
                kith_points_get(points, i, 1) == (double)i + 0.5 &&
                kith_points_get(points, i, 2) == -2.0 * (double)i);
}

static void test_stdin(void **state) {
  (void)state;
  enum { ROWS_MADE = 150000 }; /* more than one chunk, and room grown several times */
  kith_file *file;
  assert_int_equal(open_stdin(write_table("table.csv", ROWS_MADE), &file), KITH_OK);
  check_table(file, ROWS_MADE);
  assert_string_equal(kith_file_path(file), "-");
  assert_string_equal(kith_file_column(file, 1), "y");
  assert_false(kith_file_is_mapped(file));
  kith_file_close(file);
  assert_int_equal(open_stdin(write_text("bad.csv", "1,2\n3,x"), &file), KITH_ERR_FORMAT);
  assert_non_null(strstr(kith_message(ctx), "standard input, line 2, column 1: 'x'"));
  assert_int_equal(open_stdin(write_text("nothing.csv", ""), &file), KITH_ERR_FORMAT);
  assert_non_null(strstr(kith_message(ctx), "standard input: there is no line of numbers"));
  char *line = malloc(3 << 20); /* one line longer than a chunk */
  assert_non_null(line);
  memset(line, ' ', 3 << 20);
  line[0] = '1', line[(3 << 20) - 1] = '2';
  assert_int_equal(open_stdin(write_bytes("long.txt", line, 3 << 20), &file), KITH_OK);
  check_values(kith_file_points(file), 1, 2, (double[]){1, 2});
  kith_file_close(file);
  free(line);
  assert_int_equal(ctx->memory.used, 0);
}

static void test_budget(void **state) {
  (void)state;
  const char *path = write_table("table.csv", 150000); /* 3.6 MB of values */
  kith_context *big = ctx;
  ctx = make_context(1, 3 << 20);
  expect_failure(path, NULL, NULL, KITH_ERR_BUDGET, WORDS("table.csv needs", "memory budget of 3 MiB"));
  kith_file *file;
  assert_int_equal(open_stdin(path, &file), KITH_ERR_BUDGET);
  assert_null(file);
  assert_int_equal(ctx->memory.used, 0);
  kith_file_close(open_with(path, "y", NULL));
  kith_context_destroy(ctx);
  ctx = big;
  file = open_with(path, NULL, NULL);
  check_table(file, 150000);
  assert_true(kith_peak_bytes(ctx) < 4000000); /* allocated once, not grown */
  kith_file_close(file);
}

/* Fails the first allocation, then the second, and so on, until the file opens. */
static void fail_every_allocation(const char *path, const char *columns, int from_stdin, uint64_t least) {
  kith_file_options options = kith_file_options_init();
  options.columns = columns;
  uint64_t n = 1;
  for (;; n++) {
    kith_file *file;
    kith_memory_fail_nth(n);
    kith_status status = from_stdin ? open_stdin(path, &file) : kith_file_open(ctx, path, &options, &file);
    kith_memory_fail_nth(0);
    if (status == KITH_OK) {
      kith_file_close(file);
      assert_int_equal(ctx->memory.used, 0);
      break;
    }
    assert_int_equal(status, KITH_ERR_MEMORY);
    assert_non_null(strstr(kith_message(ctx), "out of memory"));
    assert_null(file);
    assert_int_equal(ctx->memory.used, 0);
  }
  assert_true(n > least);
}

static void test_allocation_failures(void **state) {
  (void)state;
  const char *native = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  const char *swapped = "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }";
  fail_every_allocation(write_npy("a.npy", (npy_case){1, native, F, 24, 1}), NULL, 0, 1);
  fail_every_allocation(write_npy("b.npy", (npy_case){1, swapped, F, 24, 1}), NULL, 0, 2);
  fail_every_allocation(write_text("c.csv", "# a\n# x,y\n1,2\n"), "y,x", 0, 6);
  fail_every_allocation(write_text("d.csv", "# x,y\nra,dec\n1,2\n"), "dec", 0, 5);
  fail_every_allocation(write_table("e.csv", 50000), NULL, 1, 8);
}

/* ---- The program -------------------------------------------------------------------------------------- */

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_views),
      cmocka_unit_test(test_views_refused),
      cmocka_unit_test(test_summary),
      cmocka_unit_test(test_stats_need_no_order),
      cmocka_unit_test(test_stats_far_from_origin),
      cmocka_unit_test(test_cancel),
      cmocka_unit_test(test_files_refused),
      cmocka_unit_test(test_ending_in_any_case),
      cmocka_unit_test(test_short_options),
      cmocka_unit_test(test_npy_orders_and_versions),
      cmocka_unit_test(test_npy_header_forms),
      cmocka_unit_test(test_npy_misaligned_and_trailing),
      cmocka_unit_test(test_npy_integers),
      cmocka_unit_test(test_npy_inexact),
      cmocka_unit_test(test_npy_types_refused),
      cmocka_unit_test(test_npy_sizes),
      cmocka_unit_test(test_npy_damaged_start),
      cmocka_unit_test(test_npy_columns),
      cmocka_unit_test(test_fbin),
      cmocka_unit_test(test_text_forms),
      cmocka_unit_test(test_text_names),
      cmocka_unit_test(test_text_columns),
      cmocka_unit_test(test_text_refused),
      cmocka_unit_test(test_text_wide),
      cmocka_unit_test(test_text_numbers),
      cmocka_unit_test(test_text_number_edges),
      cmocka_unit_test(test_stdin),
      cmocka_unit_test(test_budget),
      cmocka_unit_test(test_allocation_failures),
  };
  return cmocka_run_group_tests_name("points", tests, set_up, tear_down);
}
