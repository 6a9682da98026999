/* The reference: see reference.h. Reads the points through its own eyes, not the library's. */
#include "reference.h"

#include "places.h"

#include <math.h>
#include <stdlib.h>

static void append(reference *r, uint64_t *room, uint32_t id, double distance) {
  if (r->n_pairs == *room) {
    *room = 2 * *room + 1024;
    r->neighbors = realloc(r->neighbors, *room * sizeof *r->neighbors);
    r->distances = realloc(r->distances, *room * sizeof *r->distances);
    if (!r->neighbors || !r->distances)
      abort();
  }
  r->neighbors[r->n_pairs] = id;
  r->distances[r->n_pairs++] = distance;
}

static reference begin(uint64_t n_rows) {
  reference r = {.n_rows = n_rows, .offsets = calloc(n_rows + 1, sizeof(uint64_t))};
  if (!r.offsets)
    abort();
  return r;
}

reference reference_of_all(const kith_points *a, const kith_points *b, const kith_join_options *options) {
  reference r = begin(a->n);
  uint64_t room = 0;
  places at_a = places_make(a, options);
  places at_b = places_make(b, options);
  for (uint64_t i = 0; i < a->n; i++) {
    double limit = places_limit(options, i);
    for (uint64_t k = 0; at_a.valid[i] && k < b->n; k++) {
      double size = at_b.valid[k] ? places_size(&at_a, i, &at_b, k, options) : NAN;
      if (size <= limit)
        append(&r, &room, (uint32_t)k, places_distance(options, size));
    }
    r.offsets[i + 1] = r.n_pairs;
  }
  places_free(&at_a);
  places_free(&at_b);
  return r;
}

reference reference_select(const reference *all, const kith_join_options *options) {
  reference r = begin(all->n_rows);
  uint64_t room = 0;
  for (uint64_t i = 0; i < all->n_rows; i++) {
    for (uint64_t at = all->offsets[i]; at < all->offsets[i + 1]; at++) {
      uint32_t k = all->neighbors[at];
      if (options->half ? i < k : i != k || options->self_pairs)
        append(&r, &room, k, all->distances[at]);
    }
    r.offsets[i + 1] = r.n_pairs;
  }
  return r;
}

reference reference_join(const kith_points *a, const kith_points *b, const kith_join_options *options) {
  reference all = reference_of_all(a, b ? b : a, options);
  if (b)
    return all;
  reference r = reference_select(&all, options);
  reference_free(&all);
  return r;
}

void reference_free(reference *r) {
  free(r->offsets);
  free(r->neighbors);
  free(r->distances);
  *r = (reference){0};
}
