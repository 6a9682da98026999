/* The reference's view of spaces: where points lie, how large their differences are, when they belong. Follows
 * the text of docs/exactness.md and shares nothing with the library but the sine and cosine of degrees, which
 * the text refers to. */
#ifndef KITH_TEST_PLACES_H
#define KITH_TEST_PLACES_H

#include "kith.h"

#include <stdbool.h>

/* Vectors, lower triangular once they were turned; lengths for any dimension up to 16. */
typedef struct box {
  uint32_t dim;
  double v[16][16];
  bool skewed;
  bool turned;
  double e[3][3]; /* the axes of a turned box */
} box;

/* A set of points as they lie in their space. */
typedef struct places {
  uint64_t n;
  uint32_t dim;
  double *at;  /* n * dim */
  bool *valid; /* n */
  box box;     /* if there is one */
} places;

places places_make(const kith_points *points, const kith_join_options *options);
void places_free(places *p);

/* The size that the definition compares: of the nearest image, in a box. */
double places_size(const places *a, uint64_t i, const places *b, uint64_t k, const kith_join_options *options);

/* The limit that it is compared with, and the distance that is reported. */
double places_limit(const kith_join_options *options, uint64_t i);
double places_distance(const kith_join_options *options, double size);

#endif
