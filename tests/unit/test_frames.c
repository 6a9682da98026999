/* Tests of names that choose a part of a file, and of the readers of frames: .gro and .xyz. */
#include "file_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Helpers ------------------------------------------------------------------------------------------ */

static void check_box(const char *path, int n, const double *box) {
  double got[9];
  kith_file *file = open_with(path, NULL, NULL);
  assert_int_equal(kith_file_box(file, got), n);
  for (int i = 0; i < n; i++)
    if (got[i] != box[i])
      fail_msg("%s: number %d of the box is %g, expected %g", path, i, got[i], box[i]);
  kith_file_close(file);
}

/* "folder/name" with something behind it; valid until the second next call. */
static const char *part_of(const char *name, const char *part) {
  char text[200];
  snprintf(text, sizeof text, "%s%s", name, part);
  return path_of(text);
}

#define GRO_1                                                                                                  \
  "Water, t= 0.0\n"                                                                                            \
  "    2\n"                                                                                                    \
  "    1WATER  OW1    1   0.126   1.624  -1.679  0.1227 -0.0580  0.0434\n"                                     \
  "99999WATERHW.2199999  10.190-100.661   1.747\n"                                                             \
  "   1.82060   2.5   3\n"
#define GRO_2                                                                                                  \
  "\n"                                                                                                         \
  "1\n"                                                                                                        \
  "    1WATER  OW1    1     0.12345     1.62400     1.67900\n"                                                 \
  " 5 6 7 0 0 1.5 0 2.5 3.5\n"
static const double GRO_VALUES[6] = {0.126, 1.624, -1.679, 10.190, -100.661, 1.747};

/* ---- Names -------------------------------------------------------------------------------------------- */

static void test_names(void **state) {
  (void)state;
  write_text("n.gro", GRO_1 GRO_2);
  check_file(path_of("n.gro"), NULL, 2, 3, GRO_VALUES);
  check_file(part_of("n.gro", "[0]"), NULL, 2, 3, GRO_VALUES);
  check_file(part_of("n.gro", "[1]"), NULL, 1, 3, (double[]){0.12345, 1.624, 1.679});
  /* A file that has the whole name wins. */
  write_text("n.gro[1].gro", GRO_1);
  check_file(path_of("n.gro[1].gro"), NULL, 2, 3, GRO_VALUES);
  write_text("n.csv[1]", "7,8\n");
  kith_file_close(open_with(path_of("n.csv[1]"), NULL, "text"));
  write_text("a:", "x");
  expect_failure(part_of("a:", "/b.gro"), NULL, NULL, KITH_ERR_IO, WORDS("Not a directory"));
  /* What leads nowhere stays whole. */
  expect_failure(path_of("missing.gro[1]"), NULL, NULL, KITH_ERR_IO,
                 WORDS("missing.gro[1]: there is no such file"));
  expect_failure("missing.h5:/x:/y", NULL, NULL, KITH_ERR_IO, WORDS("missing.h5:/x:/y: there is no such file"));
  expect_failure("[]", NULL, NULL, KITH_ERR_IO, WORDS("no such file"));
  /* Parts that a format does not have. */
  write_text("n.csv", "1,2\n");
  expect_failure(path_of("n.csv[0]"), NULL, NULL, KITH_ERR_ARGUMENT,
                 WORDS("n.csv: '[0]'", "text", "leave it out"));
  expect_failure(path_of("n.csv:/x"), NULL, NULL, KITH_ERR_ARGUMENT, WORDS("n.csv: ':/x'", "leave it out"));
  expect_failure(path_of("n.gro:/x"), NULL, NULL, KITH_ERR_ARGUMENT, WORDS("n.gro: ':/x'", "FILE[3]"));
  write_text("n.h5", "no");
  expect_failure(path_of("n.h5[0]"), NULL, NULL, KITH_ERR_ARGUMENT,
                 WORDS("n.h5: '[0]'", "FILE:/path/to/dataset"));
  write_text("n.fits", "no");
  expect_failure(path_of("n.fits:/x"), NULL, NULL, KITH_ERR_ARGUMENT, WORDS("n.fits: ':/x'", "FILE[NAME]"));
  kith_file *file = open_with(path_of("n.csv"), NULL, NULL);
  assert_int_equal(kith_file_box(file, NULL), 0);
  kith_file_close(file);
}

static void test_formats_of_the_build(void **state) {
  (void)state;
  assert_int_equal(strncmp(kith_file_formats(), "npy text fbin gro xyz", 21), 0);
  write_text("w.h5", "no HDF5");
  write_text("w.fits", "no FITS");
  if (!strstr(kith_file_formats(), "hdf5"))
    expect_failure(path_of("w.h5:/x"), NULL, NULL, KITH_ERR_UNSUPPORTED,
                   WORDS("w.h5:/x: ", "built without HDF5", "libhdf5-dev", ".npy"));
  if (!strstr(kith_file_formats(), "fits"))
    expect_failure(path_of("w.fits"), NULL, NULL, KITH_ERR_UNSUPPORTED,
                   WORDS("w.fits: ", "built without CFITSIO", "libcfitsio-dev", ".npy"));
}

static void test_frame_numbers(void **state) {
  (void)state;
  write_text("f.xyz", "1\n\nH 0 0 0\n1\nb\nH 1 0 0\n\n\n2\nc\nH 2 0 0\nH 2.5 0 0\n \n\n");
  static const struct {
    const char *part;
    uint64_t n;
    double x;
  } CASES[] = {{"", 1, 0},     {"[0]", 1, 0},  {"[1]", 1, 1},  {"[+1]", 1, 1}, {"[2]", 2, 2},
               {"[-1]", 2, 2}, {"[-2]", 1, 1}, {"[-3]", 1, 0}, {"[-0]", 1, 0}};
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    kith_file *file = open_with(part_of("f.xyz", CASES[i].part), NULL, NULL);
    assert_int_equal(kith_file_points(file)->n, CASES[i].n);
    assert_true(kith_points_get(kith_file_points(file), 0, 0) == CASES[i].x);
    kith_file_close(file);
  }
  expect_failure(path_of("f.xyz[3]"), NULL, NULL, KITH_ERR_ARGUMENT,
                 WORDS("f.xyz: there is no frame 3", "3 frames"));
  expect_failure(path_of("f.xyz[-4]"), NULL, NULL, KITH_ERR_ARGUMENT, WORDS("f.xyz: there is no frame -4"));
  expect_failure(path_of("f.xyz[999999999999999999]"), NULL, NULL, KITH_ERR_ARGUMENT, WORDS("3 frames"));
  static const char *const BAD[] = {"[]", "[x]", "[1.5]", "[--1]", "[9999999999999999999]", "[ 1]", "[1:2]"};
  for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
    expect_failure(part_of("f.xyz", BAD[i]), NULL, NULL, KITH_ERR_ARGUMENT,
                   WORDS("f.xyz: ", BAD[i], "[-1] for the last"));
}

/* ---- gro ---------------------------------------------------------------------------------------------- */

static void test_gro(void **state) {
  (void)state;
  const char *path = write_text("a.gro", GRO_1 GRO_2);
  kith_file *file = open_with(path, "z,x", NULL);
  check_values(kith_file_points(file), 2, 2, (double[]){-1.679, 0.126, 1.747, 10.190});
  assert_string_equal(kith_file_column(file, 0), "z");
  assert_int_equal(kith_file_points(file)->dtype, KITH_F64);
  assert_false(kith_file_is_mapped(file));
  kith_file_close(file);
  check_box(path_of("a.gro"), 3, (double[]){1.8206, 2.5, 3});
  check_box(path_of("a.gro[1]"), 9, (double[]){5, 0, 0, 1.5, 6, 0, 2.5, 3.5, 7});
  expect_failure(path_of("a.gro"), "vx", NULL, KITH_ERR_ARGUMENT, WORDS("no column 'vx'", "x, y, z"));
  check_box(write_text("zero.gro", "t\n0\n 0 0 0\n"), 0, NULL);
  check_file(path_of("zero.gro"), NULL, 0, 3, NULL);
  check_box(write_text("nine.gro", "t\r\n0\r\n 1 2 3 0 0 0 0 0 0\r\n"), 3, (double[]){1, 2, 3});
  check_box(write_text("noend.gro", "t\n0\n1 2 3"), 3, (double[]){1, 2, 3});
}

#define ATOM "    1WATER  OW1    1   0.126   1.624   1.679\n"

static void test_gro_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *words;
  } CASES[] = {
      {"\n \n", "there is no frame in it"},
      {"t\n", "ends at line 1, within the first lines"},
      {"t\nmany\n", "line 2: the number of atoms should be here, not 'many'; is it a gro file?"},
      {"t\n\n" ATOM, "line 2: the number of atoms should be here, not ''"},
      {"t\n-1\n", "not '-1'"},
      {"t\n1 2\n", "not '1 2'"},
      {"t\n4000000000\n" ATOM, "line 2: a frame of 4000000000 atoms is announced, but only 45 bytes follow"},
      {"t\n99999999999999999999999999\n" ATOM, "atoms is announced"},
      {"t\n2\n" ATOM, "the file ends at line 3, behind atom 1 of 2; was it cut short?"},
      {"t\n1\n" ATOM, "the file ends at line 3, within a frame"},
      {"t\n1\n    1WATER\n1 2 3\n                                     ",
       "line 3: the line of an atom needs 20"},
      {"t\n1\n    1WATER  OW1    1   0.126   1.624\n1 2 3\n",
       "line 3: x, y and z should begin at character 21"},
      {"t\n1\n    1WATER  OW1    1   0.126   1.624 1.679\n1 2 3\n", "decimal points evenly apart"},
      {"t\n2\n" ATOM "    1WATER  OW1    1   0.126   a.624   1.679\n1 2 3\n",
       "line 4: y is not a number: 'a.624'"},
      {"t\n2\n" ATOM "    1WATER  OW1    1   0.126   1.624\n1 2 3\n", "line 4: z is not a number: ''"},
      {"t\n2\n" ATOM "    1WATER  OW1    1 0 0.126   1.624   1.679\n1 2 3\n", "line 4: x, behind character 20"},
      {"t\n1\n" ATOM "1 2\n", "line 4: the box should be 3 or 9 numbers: '1 2'"},
      {"t\n1\n" ATOM "1 2 x\n", "line 4: the box should be 3 or 9 numbers"},
      {"t\n1\n" ATOM "1 2 3 4 5 6 7 8 9 10\n", "3 or 9 numbers"},
      {"t\n1\n" ATOM "1 -2 3\n", "line 4: an edge of the box is negative"},
      {"t\n1\n" ATOM "1 nan 3\n", "line 4: the box holds NaN or infinity"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
    expect_failure(write_text("r.gro", CASES[i].text), NULL, NULL, KITH_ERR_FORMAT,
                   WORDS("r.gro", CASES[i].words));
  write_text("r.gro", "t\n0\n1 1 1\nt\n5\n" ATOM);
  expect_failure(path_of("r.gro[-1]"), NULL, NULL, KITH_ERR_FORMAT, WORDS("line 5", "5 atoms"));
}

/* ---- xyz ---------------------------------------------------------------------------------------------- */

static void test_xyz(void **state) {
  (void)state;
  static const double TWO[6] = {1, -2.5, 3e2, 4, 5, 6};
  static const char *const FORMS[] = {
      "2\ncomment\nH 1 -2.5 3e2\nO 4 5 6\n",
      "  2  \r\n\r\nH\t1  -2.5\t300.0 0.1 0.2\r\n O   4 5 6\r\n",
      "\n2\n\n8 1 -2.5 3e2\n1 4 5 6",
      "2\nProperties=species:S:1:pos:R:3\nH 1 -2.5 3e2\nO 4 5 6\n",
      "2\nenergy=-1.5 Properties=pos:R:3:species:S:1 config=x\n1 -2.5 3e2 H\n4 5 6 O\n",
      "2\nProperties=\"id:I:1:v:R:2:pos:R:3:name:S:1\" E\n7 8 9 1 -2.5 3e2 H\n7 8 9 4 5 6 O\n",
      "2\nt=\"Properties=x\" a=[1, 2] b={c d} i = 3, properties = species:S:1:POS:R:3\nH 1 -2.5 3e2\nO 4 5 6\n",
  };
  for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++)
    assert_false(check_file(write_text("f.xyz", FORMS[i]), NULL, 2, 3, TWO));
  assert_false(check_file(write_text("f.extxyz", FORMS[0]), "1", 2, 1, (double[]){-2.5, 5}));
  check_file(write_text("none.xyz", "0\nempty\n"), NULL, 0, 3, NULL);
}

static void test_xyz_box(void **state) {
  (void)state;
  static const struct {
    const char *comment;
    int n;
    double box[9];
  } CASES[] = {
      {"nothing here", 0, {0}},
      {"Lattice=\"5 0 0 0 6 0 0 0 7\"", 3, {5, 6, 7}},
      {"lattice = [[5, 0, 0], [0, 6, 0], [0, 0, 7]] pbc=[T, T, T]", 3, {5, 6, 7}},
      {"Lattice={5 6 7} pbc=\"1 1 1\"", 3, {5, 6, 7}},
      {"pbc=\"T T F\" Lattice=\"5 0 0 0 6 0 0 0 7\"", 3, {5, 6, 0}},
      {"pbc=\"F F F\" Lattice=\"5 0 0 0 6 0 0 0 7\"", 0, {0}},
      {"Lattice=\"5 0 0 2.5 4.33 0 0 0 7\"", 9, {5, 0, 0, 2.5, 4.33, 0, 0, 0, 7}},
      {"Lattice=\"-5 0 0 0 6 0 0 0 7\"", 9, {-5, 0, 0, 0, 6, 0, 0, 0, 7}},
      {"Lattice=\"0 0 0 0 0 0 0 0 0\"", 0, {0}},
  };
  char text[300];
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    snprintf(text, sizeof text, "1\n%s\nH 1 2 3\n", CASES[i].comment);
    check_box(write_text("b.xyz", text), CASES[i].n, CASES[i].box);
  }
}

static void test_xyz_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *words;
  } CASES[] = {
      {"\n\n", "there is no frame in it"},
      {"3\n", "ends at line 1, within the first lines of a frame"},
      {"24 water\nO 1 2 3\n", "line 1: the number of atoms should be here, not '24 water'; is it an xyz file?"},
      {"1000\nc\nH 1 2 3\n", "line 1: a frame of 1000 atoms is announced, but only 8 bytes follow"},
      {"18446744073709551616\nc\nH 1 2 3\n", "atoms is announced"},
      {"2\nc\nH 1 2 3\n", "the file ends at line 3, behind atom 1 of 2"},
      {"1\nc\nH 1 2\n", "line 3: the line of an atom is too short"},
      {"1\nc\nH 1 2,0 3\n", "line 3: y is not a number: '2,0'"},
      {"1\nc\n1 2 3 H\n", "line 3: z is not a number: 'H'"},
      {"1\nProperties=species:S:1\nH 1 2 3\n", "line 2: Properties should hold pos:R:3"},
      {"1\nProperties=species:S:1:pos:R:2\nH 1 2 3\n", "pos:R:3"},
      {"1\nProperties=species:S:99999999999:pos:R:3\nH 1 2 3\n", "pos:R:3"},
      {"1\nProperties=\"\nH 1 2 3\n", "pos:R:3"},
      {"1\nProperties=a:S:4000000000:pos:R:3\nH 1 2 3\n", "line 3: the line of an atom is too short"},
      {"1\nLattice=\"1 2\"\nH 1 2 3\n", "line 2: Lattice should be 9 numbers, or 3 edges: '\"1 2\"'"},
      {"1\nLattice=\"1 2 x\"\nH 1 2 3\n", "9 numbers"},
      {"1\nLattice=\"1 2 inf\"\nH 1 2 3\n", "line 2: the box holds NaN or infinity"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
    expect_failure(write_text("r.xyz", CASES[i].text), NULL, NULL, KITH_ERR_FORMAT,
                   WORDS("r.xyz", CASES[i].words));
}

/* ---- Memory and cancellation -------------------------------------------------------------------------- */

static void test_allocations(void **state) {
  (void)state;
  write_text("m.gro", GRO_1 GRO_2);
  write_text("m.xyz", "1\nLattice=\"1 2 3\"\nH 1 2 3\n");
  fail_allocations(path_of("m.gro"), NULL, 3);
  fail_allocations(path_of("m.gro[-1]"), "y", 4);
  fail_allocations(path_of("m.xyz"), NULL, 3);
}

static void test_budget_and_cancel(void **state) {
  (void)state;
  enum { ATOMS = 100000 };
  char *text = malloc(ATOMS * 8 + 100), *at = text + sprintf(text, "%d\n\n", ATOMS);
  assert_non_null(text);
  for (int i = 0; i < ATOMS; i++)
    at += sprintf(at, "H 1 %d 3\n", i % 10);
  const char *path = write_bytes("big.xyz", text, (size_t)(at - text));
  free(text);
  kith_context *big = ctx;
  ctx = make_context(1, 1 << 20);
  expect_failure(path, NULL, NULL, KITH_ERR_BUDGET, WORDS("big.xyz needs", "memory budget of 1 MiB"));
  kith_file_close(open_with(path, "y", NULL));
  kith_context_destroy(ctx);
  ctx = big;
  kith_cancel(ctx);
  expect_failure(path, NULL, NULL, KITH_ERR_CANCELLED, WORDS("cancelled"));
  kith_file_close(open_with(path, NULL, NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),         cmocka_unit_test(test_formats_of_the_build),
      cmocka_unit_test(test_frame_numbers), cmocka_unit_test(test_gro),
      cmocka_unit_test(test_gro_refused),   cmocka_unit_test(test_xyz),
      cmocka_unit_test(test_xyz_box),       cmocka_unit_test(test_xyz_refused),
      cmocka_unit_test(test_allocations),   cmocka_unit_test(test_budget_and_cancel),
  };
  return cmocka_run_group_tests_name("frames", tests, set_up, tear_down);
}
