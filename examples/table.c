/* Builds a neighbour table and looks up the neighbours of a few points, with their distances.
 *
 * The points are a lattice of 10 x 10: point i is at (i % 10, i / 10). Within 1.5 lie the up to eight points
 * around each: four at a distance of 1, and four, on the diagonals, at the square root of 2. */
#include <kith.h>

#include <stdio.h>

enum { SIDE = 10 };

/* The neighbours of row i stand between offsets[i] and offsets[i + 1]. */
static void print_neighbours(const kith_table *table, uint64_t i) {
  printf("point %llu:", (unsigned long long)i);
  for (uint64_t k = table->offsets[i]; k < table->offsets[i + 1]; k++)
    printf(" %u (%.3f)", table->neighbors[k], table->distances[k]);
  printf("\n");
}

int main(void) {
  double xy[SIDE * SIDE][2];
  for (int i = 0; i < SIDE * SIDE; i++) {
    xy[i][0] = i % SIDE;
    xy[i][1] = i / SIDE; /* NOLINT: the row of the lattice */
  }

  kith_context *ctx;
  if (kith_context_create(NULL, &ctx) != KITH_OK)
    return 1;
  kith_points points = kith_points_f64(&xy[0][0], SIDE * SIDE, 2);
  kith_join_options options = kith_join_options_init(1.5);
  options.sorted = 1;    /* neighbours by id: the same order on every machine */
  options.distances = 1; /* else table->distances is NULL */

  kith_table *table;
  kith_status status = kith_join_table(ctx, &points, NULL, &options, &table, NULL);
  if (status)
    fprintf(stderr, "table: %s\n", kith_message(ctx));
  kith_context_destroy(ctx); /* the table outlives its context */
  if (status)
    return 1;

  printf("%llu points, %llu pairs\n", (unsigned long long)table->n_rows, (unsigned long long)table->n_pairs);
  print_neighbours(table, 0);  /* a corner: three neighbours */
  print_neighbours(table, 5);  /* an edge: five */
  print_neighbours(table, 11); /* inside: eight */
  kith_table_destroy(table);
  return 0;
}
