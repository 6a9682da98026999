/* The random numbers behind `kith gen`: Philox against its authors' known answers, the logarithm against
 * libm's, and values that stay below 1. */
#include "random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void expect(bool holds, const char *what) {
  if (holds)
    return;
  printf("failed: %s\n", what);
  failures++;
}

/* From the file kat_vectors of the Random123 distribution. */
static void test_philox(void) {
  static const struct {
    uint32_t counter[4];
    uint64_t seed;
    uint32_t answer[4];
  } known[] = {
      {{0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       UINT64_MAX,
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       UINT64_C(0x299f31d0a4093822),
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    uint32_t words[4];
    memcpy(words, known[i].counter, sizeof words);
    philox(words, known[i].seed);
    expect(memcmp(words, known[i].answer, sizeof words) == 0, "Philox gives the known answer");
  }
}

static void test_log(void) {
  expect(portable_log(1) == 0, "log 1 is 0");
  double worst = 0;
  for (int i = 1; i < 2000000; i++) {
    /* All exponents, and mantissas spread by a golden ratio. */
    double x = ldexp(1 + fmod(i * 0.6180339887498949, 1), i % 600 - 300);
    if (i % 3 == 0)
      x = 1 - i * 0x1p-24; /* where expo and gauss need it */
    double exact = log(x), unit = nextafter(fabs(exact), INFINITY) - fabs(exact);
    worst = fmax(worst, fabs(portable_log(x) - exact) / unit);
  }
  expect(worst <= 2, "log is within 2 units in the last place");
}

static void test_range(void) {
  enum { ROWS = 100000 };
  static double values[ROWS];
  cli_options options = {.n = ROWS, .dim = 1, .seed = 5, .lambda = 0.1};
  for (int kind = DATA_UNIF; kind <= DATA_EXPO; kind++) {
    generator g = generator_init((data_kind)kind, &options);
    generator_fill(&g, 0, ROWS, values);
    for (int i = 0; i < ROWS; i++)
      expect(values[i] >= 0 && (float)values[i] < 1, "values lie in [0, 1)");
  }
}

static void test_grid(void) {
  static const struct {
    uint64_t n, dim, edge;
  } known[] = {{0, 2, 1},
               {1, 2, 1},
               {2, 2, 2},
               {9, 2, 3},
               {10, 2, 4},
               {1000, 3, 10},
               {1001, 3, 11},
               {4294967295u, 2, 65536},
               {4294967295u, 1, 4294967295u},
               {5, 4096, 2}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    cli_options options = {.n = known[i].n, .dim = known[i].dim};
    expect(generator_init(DATA_LATTICE, &options).grid == known[i].edge, "the lattice's edge");
  }
}

int main(void) {
  test_philox();
  test_log();
  test_range();
  test_grid();
  printf("%s\n", failures ? "random: FAILED" : "random: passed");
  return failures != 0;
}
