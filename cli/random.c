/* Random points that are the same bytes on every machine: see random.h. */
#include "random.h"

#include <math.h>
#include <string.h>

void philox(uint32_t counter[4], uint64_t seed) {
  uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; round++) {
    uint64_t even = UINT64_C(0xD2511F53) * counter[0];
    uint64_t odd = UINT64_C(0xCD9E8D57) * counter[2];
    uint32_t second = counter[1], fourth = counter[3];
    counter[0] = (uint32_t)(odd >> 32) ^ second ^ key0;
    counter[1] = (uint32_t)odd;
    counter[2] = (uint32_t)(even >> 32) ^ fourth ^ key1;
    counter[3] = (uint32_t)even;
    key0 += UINT32_C(0x9E3779B9);
    key1 += UINT32_C(0xBB67AE85);
  }
}

/* x = 2^e * m with m in [sqrt(1/2), sqrt(2)), and log m = 2 atanh(s), s = (m - 1) / (m + 1). Since
 * |s| < 0.172, the series s + s^3/3 + s^5/5 + ... is below the last bit after 11 terms. */
double portable_log(double x) {
  static const double LN2_HIGH = 0x1.62e42fee00000p-1; /* few bits, so that e * LN2_HIGH is exact */
  static const double LN2_LOW = 0x1.a39ef35793c76p-33;
  static const double TERMS[] = {1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13,
                                 1.0 / 11, 1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3};
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  /* Adding the distance from sqrt(1/2) to 1 makes the exponent field turn over at sqrt(2), not at 2. */
  bits += UINT64_C(0x3ff0000000000000) - UINT64_C(0x3fe6a09e667f3bcd);
  int exponent = (int)(bits >> 52) - 1023;
  bits = (bits & UINT64_C(0x000fffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd);
  double m;
  memcpy(&m, &bits, sizeof m);
  double s = (m - 1) / (m + 1), square = s * s, series = 0;
  for (size_t k = 0; k < sizeof TERMS / sizeof TERMS[0]; k++)
    series = (series + TERMS[k]) * square;
  double high = exponent * LN2_HIGH, low = exponent * LN2_LOW;
  return high + (2 * s + (2 * s * series + low));
}

/* The two uniform numbers in [0, 1) of a block of two values, at the k-th attempt to draw them. */
static void draw(const generator *g, uint64_t block, uint32_t attempt, double out[2]) {
  uint32_t words[4] = {(uint32_t)block, (uint32_t)(block >> 32), attempt, 0};
  philox(words, g->seed);
  for (int i = 0; i < 2; i++) {
    uint64_t bits = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
    out[i] = (double)(bits >> 11) * 0x1p-53;
  }
}

static bool below_one(double value) { return (float)value < 1.0f; }

/* Uniform or exponential; a value that is not below 1 is drawn again. */
static void fill_bounded(const generator *g, uint64_t block, double out[2]) {
  double fresh[2];
  bool done[2] = {false, false};
  for (uint32_t attempt = 0; !done[0] || !done[1]; attempt++) {
    draw(g, block, attempt, fresh);
    for (int i = 0; i < 2; i++) {
      if (done[i])
        continue;
      out[i] = g->kind == DATA_EXPO ? (0 - portable_log(1 - fresh[i])) / g->lambda : fresh[i];
      done[i] = below_one(out[i]);
    }
  }
}

/* Marsaglia's polar method: a point in the unit disc gives two normal numbers. */
static void fill_gauss(const generator *g, uint64_t block, double out[2]) {
  double x, y, square;
  uint32_t attempt = 0;
  do {
    double fresh[2];
    draw(g, block, attempt++, fresh);
    x = 2 * fresh[0] - 1;
    y = 2 * fresh[1] - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  double scale = sqrt(-2 * portable_log(square) / square);
  out[0] = x * scale;
  out[1] = y * scale;
}

static void fill_lattice(const generator *g, uint64_t first, uint64_t rows, double *out) {
  for (uint64_t i = 0; i < rows; i++) {
    uint64_t rest = first + i;
    for (uint32_t c = g->dim; c-- > 0; rest /= g->grid)
      out[i * g->dim + c] = (double)(rest % g->grid) / (double)g->grid;
  }
}

/* The smallest m with m^dim >= n, in whole numbers: a root in floating point may be one off. */
static uint64_t grid_edge(uint64_t n, uint32_t dim) {
  uint64_t low = 1, high = n ? n : 1;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2, power = 1;
    for (uint32_t c = 0; c < dim && power < n && middle > 1; c++)
      power *= middle; /* both below 2^32 */
    if (power >= n)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

generator generator_init(data_kind kind, const cli_options *options) {
  generator g = {.kind = kind, .seed = options->seed, .lambda = options->lambda, .dim = (uint32_t)options->dim};
  g.grid = grid_edge(options->n, g.dim);
  return g;
}

void generator_fill(const generator *g, uint64_t first, uint64_t rows, double *out) {
  if (g->kind == DATA_LATTICE) {
    fill_lattice(g, first, rows, out);
    return;
  }
  uint64_t block = first * g->dim / 2, count = rows * g->dim;
  for (uint64_t i = 0; i < count; i += 2, block++) {
    double pair[2] = {0, 0};
    if (g->kind == DATA_GAUSS)
      fill_gauss(g, block, pair);
    else
      fill_bounded(g, block, pair);
    out[i] = pair[0];
    if (i + 1 < count)
      out[i + 1] = pair[1];
  }
}
