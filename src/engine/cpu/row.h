/* Rows of the neighbour table that are put in order once all their neighbours are known, and the definition of
 * a size, from the points themselves.
 *
 * May include kernels, points, space. The engine and the operations include it. */
#ifndef KITH_ENGINE_CPU_ROW_H
#define KITH_ENGINE_CPU_ROW_H

#include "engine/cpu/kernels.h"
#include "space/space.h"

/* The size of the definition, of row i of a and row j of b. */
double kith_definition(kith_norm norm, const kith_points *a, uint64_t i, const kith_points *b, uint64_t j);

/* Sorts the different ids of a row, and what belongs to them unless d2 is NULL. */
void kith_row_order(const kith_kernel_table *table, uint32_t *ids, double *d2, uint64_t n);

typedef struct kith_row {
  uint32_t *ids;
  double *distances; /* NULL: not wanted */
  uint64_t n;
} kith_row;

/* Computes the distances of the row of point `id` of a, to points of b in open space, if they are wanted. */
void kith_row_measure(const kith_space *space, const kith_points *a, const kith_points *b, uint32_t id,
                      const kith_row *row);

#endif
