/* The reference: see reference.h. Reads the points through its own eyes, not the library's. */
#include "reference.h"

#include <math.h>
#include <stdlib.h>

static double coordinate(const kith_points *p, uint64_t i, uint32_t c) {
  const char *at = (const char *)p->data + (int64_t)i * p->row_stride + (int64_t)c * p->col_stride;
  return p->dtype == KITH_F32 ? (double)*(const float *)at : *(const double *)at;
}

/* valid[i]: whether all coordinates of point i are finite. */
static bool *find_valid(const kith_points *p) {
  bool *valid = malloc(p->n + 1);
  if (!valid)
    abort();
  for (uint64_t i = 0; i < p->n; i++) {
    valid[i] = true;
    for (uint32_t c = 0; c < p->dim; c++)
      valid[i] &= isfinite(coordinate(p, i, c)) != 0;
  }
  return valid;
}

static double squared_distance(const kith_points *a, uint64_t i, const kith_points *b, uint64_t k) {
  double d2 = 0;
  for (uint32_t c = 0; c < a->dim; c++) {
    double t = coordinate(a, i, c) - coordinate(b, k, c);
    d2 += t * t;
  }
  return d2;
}

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
  double eps2 = options->eps * options->eps;
  bool *valid_a = find_valid(a);
  bool *valid_b = find_valid(b);
  for (uint64_t i = 0; i < a->n; i++) {
    for (uint64_t k = 0; valid_a[i] && k < b->n; k++) {
      if (one_set && ((i == k && !options->self_pairs) || (options->half && i >= k)))
        continue;
      double d2 = squared_distance(a, i, b, k);
      if (valid_b[k] && d2 <= eps2)
        append(&r, &room, (uint32_t)k, sqrt(d2));
    }
    r.offsets[i + 1] = r.n_pairs;
  }
  free(valid_a);
  free(valid_b);
  return r;
}

void reference_free(reference *r) {
  free(r->offsets);
  free(r->neighbors);
  free(r->distances);
  *r = (reference){0};
}
