/* Tests of the reader of HDF5, on files that the library itself writes. */
#include "file_support.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Writing ------------------------------------------------------------------------------------------ */

static hid_t create(const char *name) {
  hid_t file = H5Fcreate(path_of(name), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(file >= 0);
  return file;
}

/* A dataset as it is to be written. */
typedef struct data_case {
  hid_t stored, given; /* types in the file and in memory */
  int n_axes;
  hsize_t size[3];
  const void *values;
  hsize_t chunk_rows; /* 0: contiguous; else chunked and deflated */
} data_case;

static void write_data(hid_t place, const char *name, data_case c) {
  hid_t space = c.n_axes ? H5Screate_simple(c.n_axes, c.size, NULL) : H5Screate(H5S_SCALAR);
  hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
  hsize_t chunk[3] = {c.chunk_rows, c.size[1], c.size[2]};
  if (c.chunk_rows)
    assert_true(H5Pset_chunk(plist, c.n_axes, chunk) >= 0 && H5Pset_shuffle(plist) >= 0 &&
                H5Pset_deflate(plist, 4) >= 0);
  hid_t data = H5Dcreate2(place, name, c.stored, space, H5P_DEFAULT, plist, H5P_DEFAULT);
  assert_true(data >= 0);
  if (c.values)
    assert_true(H5Dwrite(data, c.given, H5S_ALL, H5S_ALL, H5P_DEFAULT, c.values) >= 0);
  H5Dclose(data);
  H5Pclose(plist);
  H5Sclose(space);
}

static const float F[6] = {1, 2.5f, -3, 4, 5, 6};
static const double D[6] = {1, 2.5, -3, 4, 5, 6};

/* One file for most of the tests:
 * /f32 (2, 3) big-endian; /deep/f64 (3, 2); /one (6); /long (3) int64, not exact; /text; /cube (1, 2, 3);
 * /half; /columns/{x, y, z, name, short, pairs}; /records */
typedef struct record {
  int32_t id;
  float x;
  char name[8];
  double y;
  float v[2][2];
} record;

static hid_t record_type(void) {
  hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(record)), text = H5Tcopy(H5T_C_S1);
  hsize_t axes[2] = {2, 2};
  H5Tset_size(text, 8);
  hid_t array = H5Tarray_create2(H5T_NATIVE_FLOAT, 2, axes);
  H5Tinsert(type, "id", offsetof(record, id), H5T_NATIVE_INT32);
  H5Tinsert(type, "x", offsetof(record, x), H5T_NATIVE_FLOAT);
  H5Tinsert(type, "name", offsetof(record, name), text);
  H5Tinsert(type, "y", offsetof(record, y), H5T_NATIVE_DOUBLE);
  H5Tinsert(type, "v", offsetof(record, v), array);
  H5Tclose(text);
  H5Tclose(array);
  return type;
}

static void write_columns(hid_t file) {
  static const double X[4] = {1, 2, 3, 4};
  static const float Y[4] = {5, 6, 7, 8};
  static const uint8_t Z[4] = {9, 10, 11, 255};
  hid_t group = H5Gcreate2(file, "columns", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), text = H5Tcopy(H5T_C_S1);
  write_data(group, "x", (data_case){H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, {4}, X, 2});
  write_data(group, "y", (data_case){H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 1, {4}, Y, 0});
  write_data(group, "z", (data_case){H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, {4}, Z, 0});
  write_data(group, "short", (data_case){H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, {3}, X, 0});
  write_data(group, "pairs", (data_case){H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, {2, 2}, X, 0});
  write_data(group, "name", (data_case){text, text, 1, {4}, "abcd", 0});
  H5Tclose(text);
  H5Gclose(group);
}

static void write_mixed(void) {
  static const int64_t LONG[3] = {1, -2, 9007199254740993};
  static const record RECORDS[2] = {{7, 1.5f, "a", -2.5, {{1, 2}, {3, 4}}},
                                    {8, 3.5f, "b", 4.5, {{5, 6}, {7, 8}}}};
  hid_t file = create("mixed.h5"), text = H5Tcopy(H5T_C_S1), records = record_type();
  hid_t deep = H5Gcreate2(file, "deep", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  write_data(file, "f32", (data_case){H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, 2, {2, 3}, F, 0});
  write_data(deep, "f64", (data_case){H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, {3, 2}, D, 2});
  write_data(file, "one", (data_case){H5T_STD_I32BE, H5T_NATIVE_FLOAT, 1, {6}, F, 0});
  write_data(file, "long", (data_case){H5T_STD_I64LE, H5T_NATIVE_INT64, 1, {3}, LONG, 0});
  write_data(file, "cube", (data_case){H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 3, {1, 2, 3}, F, 0});
  write_data(file, "scalar", (data_case){H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 0, {0}, F, 0});
  write_data(file, "empty", (data_case){H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {0, 3}, NULL, 0});
  write_data(file, "wide", (data_case){H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {1, 5000}, NULL, 0});
  write_data(file, "none", (data_case){H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {3, 0}, NULL, 0});
  write_data(file, "huge", (data_case){H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {INT64_C(1) << 33, 1000}, NULL, 1});
  write_data(file, "text", (data_case){text, text, 1, {2}, "ab", 0});
  write_data(file, "records", (data_case){records, records, 1, {2}, RECORDS, 0});
  write_columns(file);
  H5Lcreate_soft("/deep/f64", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/nowhere", file, "broken", H5P_DEFAULT, H5P_DEFAULT);
  H5Tcommit2(file, "type", records, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Tclose(text);
  H5Tclose(records);
  H5Gclose(deep);
  H5Fclose(file);
}

/* ---- Datasets ----------------------------------------------------------------------------------------- */

static void check_dtype(const char *path, const char *columns, kith_dtype dtype) {
  kith_file *file = open_with(path, columns, NULL);
  assert_int_equal(kith_file_points(file)->dtype, dtype);
  assert_false(kith_file_is_mapped(file));
  kith_file_close(file);
}

static void test_arrays(void **state) {
  (void)state;
  write_mixed();
  check_file(path_of("mixed.h5:/f32"), NULL, 2, 3, D);
  check_dtype(path_of("mixed.h5:/f32"), NULL, KITH_F32);
  check_file(path_of("mixed.h5:/f32"), "2,0", 2, 2, (double[]){-3, 1, 6, 4});
  check_file(path_of("mixed.h5:/deep/f64"), NULL, 3, 2, D);
  check_file(path_of("mixed.h5:/soft"), NULL, 3, 2, D);
  check_dtype(path_of("mixed.h5:/deep/f64"), NULL, KITH_F64);
  check_file(path_of("mixed.h5:/one"), NULL, 6, 1, (double[]){1, 2, -3, 4, 5, 6});
  check_dtype(path_of("mixed.h5:/one"), NULL, KITH_F64);
  check_file(path_of("mixed.h5:/empty"), NULL, 0, 3, NULL);
  expect_failure(path_of("mixed.h5:/long"), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("mixed.h5:/long: row 2, column 0 holds 9007199254740993"));
  expect_failure(path_of("mixed.h5:/cube"), NULL, NULL, KITH_ERR_FORMAT, WORDS("/cube", "3 axes"));
  expect_failure(path_of("mixed.h5:/scalar"), NULL, NULL, KITH_ERR_FORMAT, WORDS("0 axes"));
  expect_failure(path_of("mixed.h5:/none"), NULL, NULL, KITH_ERR_FORMAT, WORDS("no columns"));
  expect_failure(path_of("mixed.h5:/wide"), NULL, NULL, KITH_ERR_ARGUMENT,
                 WORDS("5000 columns", "at most 4096"));
  expect_failure(path_of("mixed.h5:/text"), NULL, NULL, KITH_ERR_FORMAT, WORDS("/text", "holds text"));
  expect_failure(path_of("mixed.h5:/type"), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("neither a dataset nor a group"));
  expect_failure(path_of("mixed.h5:/huge"), NULL, NULL, KITH_ERR_BUDGET, WORDS("mixed.h5:/huge needs"));
  expect_failure(path_of("mixed.h5:/f32"), "x", NULL, KITH_ERR_ARGUMENT, WORDS("no names", "0 to 2"));
}

/* Every type of number against the same numbers, in both byte orders. */
static void test_types(void **state) {
  (void)state;
  const struct {
    hid_t type;
    kith_dtype dtype;
  } TYPES[] = {{H5T_STD_I8LE, KITH_F32},   {H5T_STD_U8BE, KITH_F32},  {H5T_STD_I16BE, KITH_F32},
               {H5T_STD_U16LE, KITH_F32},  {H5T_STD_I32LE, KITH_F64}, {H5T_STD_U32BE, KITH_F64},
               {H5T_STD_I64BE, KITH_F64},  {H5T_STD_U64LE, KITH_F64}, {H5T_IEEE_F32BE, KITH_F32},
               {H5T_IEEE_F64BE, KITH_F64}, {H5T_NATIVE_INT, KITH_F64}};
  static const double WHOLE[6] = {1, 2, 3, 4, 100, 127};
  for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
    hid_t file = create("t.hdf5");
    write_data(file, "data", (data_case){TYPES[i].type, H5T_NATIVE_DOUBLE, 2, {3, 2}, WHOLE, i % 2});
    H5Fclose(file);
    check_file(path_of("t.hdf5"), NULL, 3, 2, WHOLE);
    check_dtype(path_of("t.hdf5"), NULL, TYPES[i].dtype);
  }
}

/* More rows than a piece, contiguous and in chunks small and large: the values of the same array as npy. */
static void test_pieces(void **state) {
  (void)state;
  enum { ROWS = 700000, DIM = 3 };
  static const hsize_t CHUNKS[] = {0, 1000, 300007, ROWS};
  float *values = malloc(ROWS * DIM * sizeof *values);
  assert_non_null(values);
  for (int i = 0; i < ROWS * DIM; i++)
    values[i] = (float)(i % 9973) * 0.25f;
  for (size_t i = 0; i < sizeof CHUNKS / sizeof *CHUNKS; i++) {
    hid_t file = create("big.h5");
    write_data(file, "p", (data_case){H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {ROWS, DIM}, values, CHUNKS[i]});
    H5Fclose(file);
    kith_file *opened = open_with(path_of("big.h5"), NULL, NULL);
    assert_int_equal(kith_file_points(opened)->n, ROWS);
    assert_memory_equal(kith_file_points(opened)->data, values, ROWS * DIM * sizeof *values);
    kith_file_close(opened);
  }
  kith_context *big = ctx;
  ctx = make_context(1, 6 << 20);
  expect_failure(path_of("big.h5"), NULL, NULL, KITH_ERR_BUDGET, WORDS("big.h5 needs", "6 MiB"));
  kith_context_destroy(ctx);
  ctx = big;
  kith_cancel(ctx);
  expect_failure(path_of("big.h5"), NULL, NULL, KITH_ERR_CANCELLED, WORDS("cancelled"));
  free(values);
}

/* ---- Columns ------------------------------------------------------------------------------------------ */

static void test_records(void **state) {
  (void)state;
  const char *path = path_of("mixed.h5:/records");
  check_file(path, "y,x", 2, 2, (double[]){-2.5, 1.5, 4.5, 3.5});
  check_dtype(path, "y,x", KITH_F64);
  check_dtype(path, "x,v", KITH_F32);
  check_file(path, "1,id", 2, 2, (double[]){1.5, 7, 3.5, 8});
  kith_file *file = open_with(path, "v,x", NULL);
  check_values(kith_file_points(file), 2, 5, (double[]){1, 2, 3, 4, 1.5, 5, 6, 7, 8, 3.5});
  assert_string_equal(kith_file_column(file, 3), "v[3]");
  assert_string_equal(kith_file_column(file, 4), "x");
  kith_file_close(file);
  expect_failure(path, NULL, NULL, KITH_ERR_ARGUMENT, WORDS("'name' holds text", "from: id, x, y, v"));
  expect_failure(path, "x,name", NULL, KITH_ERR_ARGUMENT,
                 WORDS("'name' holds text", "numbers are: id, x, y, v"));
  expect_failure(path, "w", NULL, KITH_ERR_ARGUMENT, WORDS("no column 'w'", "id, x, name, y, v"));
}

static void test_groups(void **state) {
  (void)state;
  const char *path = path_of("mixed.h5:/columns");
  check_file(path, "x,y,z", 4, 3, (double[]){1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 255});
  check_dtype(path, "x,y", KITH_F64);
  check_dtype(path, "z,y", KITH_F32);
  kith_file *file = open_with(path, "z,x", NULL);
  assert_string_equal(kith_file_column(file, 0), "z");
  kith_file_close(file);
  expect_failure(path, "x,short", NULL, KITH_ERR_FORMAT, WORDS("'short' has 3 rows, but 'x' has 4"));
  expect_failure(path, "x,pairs", NULL, KITH_ERR_ARGUMENT, WORDS("'pairs' holds an array of other"));
  expect_failure(path, "name", NULL, KITH_ERR_ARGUMENT, WORDS("'name' holds text"));
  expect_failure(path, NULL, NULL, KITH_ERR_ARGUMENT, WORDS("'name' holds text", "short, x, y, z"));
  expect_failure(path_of("mixed.h5:/"), "broken", NULL, KITH_ERR_ARGUMENT, WORDS("'broken'", "broken link"));
  check_file(path_of("mixed.h5:/"), "one", 6, 1, (double[]){1, 2, -3, 4, 5, 6});
  check_file(path_of("mixed.h5"), "one", 6, 1, (double[]){1, 2, -3, 4, 5, 6});
}

/* ---- Files -------------------------------------------------------------------------------------------- */

static void test_choice(void **state) {
  (void)state;
  expect_failure(
      path_of("mixed.h5"), NULL, NULL, KITH_ERR_ARGUMENT,
      WORDS("mixed.h5: there are several datasets; choose one, as in", "/columns/x", "/deep/f64", "/records"));
  expect_failure(path_of("mixed.h5:/f33"), NULL, NULL, KITH_ERR_ARGUMENT,
                 WORDS("mixed.h5: there is no '/f33' in it", "/f32"));
  expect_failure(path_of("mixed.h5:/f32/x"), NULL, NULL, KITH_ERR_ARGUMENT,
                 WORDS("there is no '/f32/x' in it"));
  hid_t file = create("nothing.h5"), text = H5Tcopy(H5T_C_S1);
  write_data(file, "text", (data_case){text, text, 1, {2}, "ab", 0});
  H5Tclose(text);
  H5Fclose(file);
  expect_failure(path_of("nothing.h5"), NULL, NULL, KITH_ERR_FORMAT, WORDS("nothing.h5: there is no dataset"));
  H5Fclose(create("group.h5"));
  expect_failure(path_of("group.h5:/"), NULL, NULL, KITH_ERR_FORMAT, WORDS("there is no column"));
}

/* A message without a word on standard error is the job of the reader; the caller's printing comes back. */
static herr_t no_printing(hid_t stack, void *count) {
  (void)stack;
  ++*(int *)count;
  return 0;
}

static void test_damaged(void **state) {
  (void)state;
  int printed = 0;
  H5Eset_auto2(H5E_DEFAULT, no_printing, &printed);
  expect_failure(write_text("d.h5", "hello"), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("d.h5: HDF5 cannot open the file", "signature"));
  char bytes[4000];
  FILE *file = fopen(path_of("mixed.h5"), "rb");
  assert_non_null(file);
  assert_int_equal(fread(bytes, 1, sizeof bytes, file), sizeof bytes);
  fclose(file);
  expect_failure(write_bytes("cut.h5", bytes, sizeof bytes), NULL, NULL, KITH_ERR_FORMAT,
                 WORDS("cut.h5: HDF5 cannot open the file: truncated file"));
  assert_int_equal(printed, 0);
  H5E_auto2_t print;
  void *argument;
  H5Eget_auto2(H5E_DEFAULT, &print, &argument);
  assert_true(print == no_printing && argument == &printed);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* What is open in the library after a reader is a leak. */
static void test_nothing_stays_open(void **state) {
  (void)state;
  assert_int_equal(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL), 0);
}

static void test_allocations(void **state) {
  (void)state;
  fail_allocations(path_of("mixed.h5:/f32"), NULL, 4);
  fail_allocations(path_of("mixed.h5:/records"), "y,v", 8);
  fail_allocations(path_of("mixed.h5:/columns"), "x,y", 8);
  fail_allocations(path_of("t.hdf5"), NULL, 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_arrays),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_pieces),
      cmocka_unit_test(test_records),
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_choice),
      cmocka_unit_test(test_damaged),
      cmocka_unit_test(test_allocations),
      cmocka_unit_test(test_nothing_stays_open),
  };
  return cmocka_run_group_tests_name("hdf5", tests, set_up, tear_down);
}
