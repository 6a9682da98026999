/* The list of cases that every engine must answer alike. */
#ifndef KITH_TEST_CASES_H
#define KITH_TEST_CASES_H

#include "kith.h"

typedef struct test_case {
  char name[96];
  kith_points a;
  kith_points b; /* b.n is 0 and b.data NULL: one set */
  double eps;
  uint32_t index_dims; /* forced, or 0 */
  double cell_side;
  int skip_invalid;
  void *memory[2]; /* what a and b view */
} test_case;

/* Makes case i; returns 0 past the last. Release with case_free. */
int case_make(uint32_t i, test_case *c);
void case_free(test_case *c);

#endif
