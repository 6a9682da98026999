/* Tests of the reader of FITS tables, on files that CFITSIO itself writes. */
#include "file_support.h"

#include <fitsio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Writing ------------------------------------------------------------------------------------------ */

static fitsfile *create(const char *name) {
  int status = 0;
  fitsfile *fits;
  const char *path = path_of(name);
  unlink(path);
  assert_int_equal(fits_create_diskfile(&fits, path, &status), 0);
  return fits;
}

static void finish(fitsfile *fits) {
  int status = 0;
  assert_int_equal(fits_close_file(fits, &status), 0);
}

/* Begins a table; what follows in `names` and `forms` are its columns. */
static void begin_table(fitsfile *fits, const char *extension, int n, const char *const *names,
                        const char *const *forms) {
  int status = 0;
  fits_create_tbl(fits, BINARY_TBL, 0, n, (char **)(uintptr_t)names, (char **)(uintptr_t)forms, NULL,
                  extension ? extension : NULL, &status);
  assert_int_equal(status, 0);
}

static void fill(fitsfile *fits, int type, int column, LONGLONG n, const void *values) {
  int status = 0;
  fits_write_col(fits, type, column, 1, 1, n, (void *)(uintptr_t)values, &status);
  assert_int_equal(status, 0);
}

static void set_key(fitsfile *fits, const char *key, double value) {
  int status = 0, whole = (int)value;
  bool is_whole = value == whole; /* TNULL must be */
  fits_update_key(fits, is_whole ? TINT : TDOUBLE, key, is_whole ? (void *)&whole : (void *)&value, NULL,
                  &status);
  fits_set_hdustruc(fits, &status);
  assert_int_equal(status, 0);
}

static const float RA[3] = {1.5f, 2.5f, NAN};
static const double DEC[3] = {-1, -2.25, 89};

/* The second extension holds every kind of column, the first two, the third none of numbers. */
static void write_catalogue(void) {
  static const char *const STARS[] = {"RA", "DEC"}, *const STAR_FORMS[] = {"1E", "1D"};
  static const char *const ALL[] = {"name", "ra", "pos", "n",    "flag",  "bits", "c",
                                    "list", "u",  "mag", "long", "ulong", "b"};
  static const char *const FORMS[] = {"8A",     "1E", "3E", "1J", "1L", "8X", "1C",
                                      "1PE(5)", "1V", "1I", "1K", "1W", "1B"};
  static const char *const WORDS_ONLY[] = {"name"}, *const WORD_FORMS[] = {"8A"};
  static const char *const TEXTS[] = {"M31", "M32", "M33"};
  static const float POS[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  static const int N[3] = {10, -999, 30};
  static const short MAG[3] = {100, 200, -1};
  static const unsigned U[3] = {0, 4294967295u, 7};
  static const LONGLONG LONG[3] = {1, INT64_C(-9007199254740992), 3};
  static const ULONGLONG ULONG[3] = {1, UINT64_C(9007199254740993), 3};
  static const unsigned char B[3] = {0, 128, 255};
  fitsfile *fits = create("cat.fits");
  begin_table(fits, "STARS", 2, STARS, STAR_FORMS);
  fill(fits, TFLOAT, 1, 3, RA);
  fill(fits, TDOUBLE, 2, 3, DEC);
  begin_table(fits, "ALL", 13, ALL, FORMS);
  set_key(fits, "TNULL4", -999);
  set_key(fits, "TNULL10", -1);
  fill(fits, TSTRING, 1, 3, TEXTS);
  fill(fits, TFLOAT, 2, 3, RA);
  fill(fits, TFLOAT, 3, 9, POS);
  fill(fits, TINT, 4, 3, N);
  fill(fits, TUINT, 9, 3, U);
  fill(fits, TSHORT, 10, 3, MAG);
  set_key(fits, "TSCAL10", 0.25);
  set_key(fits, "TZERO10", -5);
  fill(fits, TLONGLONG, 11, 3, LONG);
  fill(fits, TULONGLONG, 12, 3, ULONG);
  fill(fits, TBYTE, 13, 3, B);
  begin_table(fits, NULL, 1, WORDS_ONLY, WORD_FORMS);
  fill(fits, TSTRING, 1, 3, TEXTS);
  finish(fits);
}

/* ---- Tables ------------------------------------------------------------------------------------------- */

static const double STARS[6] = {1.5, -1, 2.5, -2.25, NAN, 89};

static void check_dtype(const char *path, const char *columns, kith_dtype dtype) {
  kith_file *file = open_with(path, columns, NULL);
  assert_int_equal(kith_file_points(file)->dtype, dtype);
  assert_false(kith_file_is_mapped(file));
  kith_file_close(file);
}

static void test_tables(void **state) {
  (void)state;
  write_catalogue();
  check_file(path_of("cat.fits"), NULL, 3, 2, STARS);
  check_file(path_of("cat.fits[1]"), "ra,dec", 3, 2, STARS);
  check_file(path_of("cat.fits[STARS]"), "Ra,1", 3, 2, STARS);
  check_file(path_of("cat.fits[stars]"), "dec", 3, 1, DEC);
  check_dtype(path_of("cat.fits"), NULL, KITH_F64);
  check_dtype(path_of("cat.fits"), "RA", KITH_F32);
  kith_file *file = open_with(path_of("cat.fits"), "dec,ra", NULL);
  assert_string_equal(kith_file_column(file, 0), "DEC");
  kith_file_close(file);
  expect_failure(path_of("cat.fits[0]"), NULL, NULL, KITH_ERR_ARGUMENT,
                 WORDS("cat.fits[0]: extension 0 is not a binary table", "[1] STARS, [2] ALL, [3]"));
  expect_failure(path_of("cat.fits[4]"), NULL, NULL, KITH_ERR_ARGUMENT,
                 WORDS("there is no extension 4", "[2] ALL"));
  expect_failure(path_of("cat.fits[99999999999999999999]"), NULL, NULL, KITH_ERR_ARGUMENT,
                 WORDS("no extension 9999"));
  expect_failure(path_of("cat.fits[GALAXIES]"), NULL, NULL, KITH_ERR_ARGUMENT,
                 WORDS("no binary table 'GALAXIES'", "[1] STARS"));
  expect_failure(path_of("cat.fits[]"), NULL, NULL, KITH_ERR_ARGUMENT, WORDS("no binary table ''"));
  expect_failure(path_of("cat.fits[3]"), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("no column holds plain numbers", "text"));
  expect_failure(path_of("cat.fits"), "ra,RA", NULL, KITH_ERR_ARGUMENT, WORDS("there twice"));
}

static void test_columns(void **state) {
  (void)state;
  const char *path = path_of("cat.fits[2]");
  check_file(path, "n", 3, 1, (double[]){10, NAN, 30});
  check_file(path, "mag", 3, 1, (double[]){20, 45, NAN});
  check_file(path, "u", 3, 1, (double[]){0, 4294967295.0, 7});
  check_file(path, "long", 3, 1, (double[]){1, -9007199254740992, 3});
  check_file(path, "b", 3, 1, (double[]){0, 128, 255});
  check_dtype(path, "b", KITH_F64);
  check_dtype(path, "pos,ra", KITH_F32);
  kith_file *file = open_with(path, "ra,pos", NULL);
  check_values(kith_file_points(file), 3, 4, (double[]){1.5, 1, 2, 3, 2.5, 4, 5, 6, NAN, 7, 8, 9});
  assert_string_equal(kith_file_column(file, 0), "ra");
  assert_string_equal(kith_file_column(file, 3), "pos[2]");
  kith_file_close(file);
  expect_failure(path, "ulong", NULL, KITH_ERR_FORMAT, WORDS("row 1, column ulong holds 9007199254740993"));
  expect_failure(path, NULL, NULL, KITH_ERR_ARGUMENT,
                 WORDS("'name' holds text", "from: ra, pos, n, u, mag, long, ulong, b"));
  static const char *const REFUSED[][2] = {{"name", "text"},
                                           {"flag", "truth values"},
                                           {"bits", "bits"},
                                           {"c", "complex"},
                                           {"list", "varying length"}};
  for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++)
    expect_failure(path, REFUSED[i][0], NULL, KITH_ERR_ARGUMENT, WORDS(REFUSED[i][0], REFUSED[i][1]));
  expect_failure(path, "radec", NULL, KITH_ERR_ARGUMENT, WORDS("no column 'radec'", "name, ra, pos"));
}

/* More rows than a piece: the values of the same array. */
static void test_pieces(void **state) {
  (void)state;
  enum { ROWS = 300000 };
  static const char *const NAMES[] = {"pos", "w"}, *const FORMS[] = {"2E", "1E"};
  float *pos = malloc(2 * ROWS * sizeof *pos), *w = malloc(ROWS * sizeof *w);
  assert_true(pos && w);
  for (int i = 0; i < ROWS; i++)
    pos[2 * i] = (float)i, pos[2 * i + 1] = -(float)i, w[i] = (float)(i % 100);
  fitsfile *fits = create("big.fits");
  begin_table(fits, "P", 2, NAMES, FORMS);
  fill(fits, TFLOAT, 1, 2 * ROWS, pos);
  fill(fits, TFLOAT, 2, ROWS, w);
  finish(fits);
  kith_file *file = open_with(path_of("big.fits"), NULL, NULL);
  const float *data = kith_file_points(file)->data;
  assert_int_equal(kith_file_points(file)->n, ROWS);
  for (int i = 0; i < ROWS; i++)
    assert_true(data[3 * i] == pos[2 * i] && data[3 * i + 1] == pos[2 * i + 1] && data[3 * i + 2] == w[i]);
  kith_file_close(file);
  free(pos);
  free(w);
  kith_context *big = ctx;
  ctx = make_context(1, 3 << 20);
  expect_failure(path_of("big.fits"), NULL, NULL, KITH_ERR_BUDGET, WORDS("big.fits needs", "3 MiB"));
  kith_context_destroy(ctx);
  ctx = big;
  kith_cancel(ctx);
  expect_failure(path_of("big.fits"), NULL, NULL, KITH_ERR_CANCELLED, WORDS("cancelled"));
}

/* ---- Files -------------------------------------------------------------------------------------------- */

static void test_no_tables(void **state) {
  (void)state;
  int status = 0;
  fitsfile *fits = create("image.fits");
  LONGLONG axes[2] = {3, 4};
  fits_create_imgll(fits, FLOAT_IMG, 2, axes, &status);
  assert_int_equal(status, 0);
  finish(fits);
  expect_failure(path_of("image.fits"), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("image.fits: there is no binary table"));
  static const char *const NAMES[] = {"x"}, *const FORMS[] = {"1E"};
  fits = create("rows.fits");
  begin_table(fits, NULL, 1, NAMES, FORMS);
  finish(fits);
  check_file(path_of("rows.fits"), NULL, 0, 1, NULL);
}

static void test_damaged(void **state) {
  (void)state;
  static char bytes[1 << 20];
  FILE *file = fopen(path_of("cat.fits"), "rb");
  assert_non_null(file);
  size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  expect_failure(write_text("d.fits", "hello"), NULL, NULL, KITH_ERR_FORMAT, WORDS("d.fits: not a FITS file"));
  expect_failure(write_bytes("d.fits", "\x1f\x8b\x08", 3), NULL, NULL, KITH_ERR_FORMAT, WORDS("gunzip"));
  /* Cut anywhere: a message, or the first table where it is whole. */
  for (size_t length = 2880; length < n; length += 720) {
    kith_file *opened;
    kith_status status = kith_file_open(ctx, write_bytes("cut.fits", bytes, length), NULL, &opened);
    assert_true(status == KITH_OK ? length > 2 * 2880 : status == KITH_ERR_FORMAT && *kith_message(ctx));
    kith_file_close(opened);
    assert_int_equal(ctx->memory.used, 0);
  }
  /* A name for which CFITSIO has no room. */
  char *name = memmem(bytes + 2880, n - 2880, "TTYPE1  =", 9);
  char card[80];
  assert_non_null(name);
  memcpy(card, name, sizeof card);
  memset(name + 10, 'x', 70);
  expect_failure(write_bytes("name.fits", bytes, n), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("name.fits: the header of extension 1 is damaged: the value of TTYPE1"));
  memcpy(name, card, sizeof card);
  /* Rows that are not there. */
  char *rows = memmem(bytes + 2880, n - 2880, "NAXIS2  =                    3", 30);
  assert_non_null(rows);
  memcpy(rows, "NAXIS2  =         400000000000", 30);
  expect_failure(write_bytes("lie.fits", bytes, n), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("lie.fits: the header promises 400000000000 rows of 12 bytes"));
  memcpy(rows, "NAXIS2  = 9000000000000000000 ", 30);
  expect_failure(write_bytes("lie.fits", bytes, n), NULL, NULL, KITH_ERR_FORMAT, WORDS("lie.fits: "));
}

static void test_allocations(void **state) {
  (void)state;
  fail_allocations(path_of("cat.fits"), NULL, 7);
  fail_allocations(path_of("cat.fits[2]"), "ra,pos", 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tables),    cmocka_unit_test(test_columns), cmocka_unit_test(test_pieces),
      cmocka_unit_test(test_no_tables), cmocka_unit_test(test_damaged), cmocka_unit_test(test_allocations),
  };
  return cmocka_run_group_tests_name("fits", tests, set_up, tear_down);
}
