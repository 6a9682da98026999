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

reference reference_join(const kith_points *a, const kith_points *b, const kith_join_options *options) {
  bool one_set = !b;
  if (one_set)
    b = a;
  reference r = {.n_rows = a->n, .offsets = calloc(a->n + 1, sizeof(uint64_t))};
  if (!r.offsets)
    abort();
  uint64_t room = 0;
  places at_a = places_make(a, options);
  places at_b = places_make(b, options);
  for (uint64_t i = 0; i < a->n; i++) {
    double limit = places_limit(options, i);
    for (uint64_t k = 0; at_a.valid[i] && k < b->n; k++) {
      if (one_set && ((i == k && !options->self_pairs) || (options->half && i >= k)))
        continue;
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

void reference_free(reference *r) {
  free(r->offsets);
  free(r->neighbors);
  free(r->distances);
  *r = (reference){0};
}
