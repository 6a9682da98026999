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

/* b: NULL for one set. */
reference reference_join(const kith_points *a, const kith_points *b, const kith_join_options *options);

/* The same in two steps, for a set that is asked several times: all of its pairs, (i, i) and both orders
 * included; and those that the options half and self_pairs leave. */
reference reference_of_all(const kith_points *a, const kith_points *b, const kith_join_options *options);
reference reference_select(const reference *all, const kith_join_options *options);
void reference_free(reference *r);

#endif
