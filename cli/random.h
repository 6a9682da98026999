/* Random points that are the same bytes on every machine.
 *
 * The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a
 * function of (seed, position), so a set is a prefix of every longer one of its kind and dimension. Only
 * + - * / and sqrt are used, which IEEE 754 fixes to the last bit; the logarithm is our own. The build must
 * not fuse operations (-ffp-contract=off). */
#ifndef KITH_CLI_RANDOM_H
#define KITH_CLI_RANDOM_H

#include "options.h"

typedef struct generator {
  data_kind kind;
  uint64_t seed;
  double lambda;
  uint32_t dim;
  uint64_t grid; /* lattice: points along an edge */
} generator;

/* Prepares n points, as the options ask. */
generator generator_init(data_kind kind, const cli_options *options);

/* Fills `rows` points from number `first` on (even), row by row. Values of unif and expo lie in [0, 1),
 * also once rounded to float32; the float32 set is the float64 set rounded. */
void generator_fill(const generator *g, uint64_t first, uint64_t rows, double *out);

/* The natural logarithm of a positive normal number, to within 2 units in the last place. */
double portable_log(double x);

/* One block of Philox4x32-10, in place of the counter. */
void philox(uint32_t counter[4], uint64_t seed);

#endif
