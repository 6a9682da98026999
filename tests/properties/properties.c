/* Properties that every join has, whatever the data: see answers.c for what the answers must satisfy, limits.c
 * for what happens when memory, patience or luck run out, boxes.c for those of periodic boxes, crowds.c for
 * work that must not grow with the square of a crowd. Uses kith.h alone, but for the switch that makes
 * allocations fail. Prints "N passed, N failed".
 */
#include "support.h"

#include <stdio.h>

int main(void) {
  test_answers();
  test_random_joins();
  test_pairs_at_eps();
  test_boxes();
  test_extremes();
  test_radii();
  test_large_tables();
  test_sparse_tables();
  test_no_context();
  test_cancel();
  test_failing_allocations();
  test_budgets();
  test_large_stream();
  test_crowds();
  printf("%u passed, %u failed\n", checks_passed, checks_failed);
  return checks_failed != 0;
}
