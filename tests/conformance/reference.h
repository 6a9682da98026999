/* The reference: every pair by the definition, in a plain double loop. Slow, and obviously right. */
#ifndef KITH_TEST_REFERENCE_H
#define KITH_TEST_REFERENCE_H

#include "kith.h"

#include <stdbool.h>

/* The whole neighbour table, rows by id. */
typedef struct reference {
  uint64_t n_rows, n_pairs;
  uint64_t *offsets;
  uint32_t *neighbors;
  double *distances;
} reference;

reference reference_join(const kith_points *a, const kith_points *b, const kith_join_options *options);
void reference_free(reference *r);

#endif
