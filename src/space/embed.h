/* Unit vectors: where the rows of embedded metrics lie (space.h). One row, for the CPU and for a GPU alike:
 * operations that round alike everywhere, none of them fused, in this order.
 *
 * Includes nothing but degrees.h. */
#ifndef KITH_SPACE_EMBED_H
#define KITH_SPACE_EMBED_H

#include "space/degrees.h"

/* What may be wrong with a row. */
typedef enum kith_row_fault {
  KITH_ROW_FITS,
  KITH_ROW_NOT_FINITE,
  KITH_ROW_ZERO,     /* has no direction */
  KITH_ROW_LATITUDE, /* beyond the poles */
  KITH_ROW_LOST      /* too many boxes away */
} kith_row_fault;

static inline KITH_DEVICE bool kith_row_is_finite(const double *x, uint32_t dim) {
  bool finite = true;
  for (uint32_t c = 0; c < dim; c++)
    finite &= isfinite(x[c]) != 0;
  return finite;
}

/* The direction of finite values, in their place. */
static inline KITH_DEVICE kith_row_fault kith_embed_direction(double *x, uint32_t dim) {
  double largest = 0;
  for (uint32_t c = 0; c < dim; c++)
    largest = fmax(largest, fabs(x[c]));
  if (largest == 0)
    return KITH_ROW_ZERO;
  /* A power of two changes no digit, but keeps squares from overflowing and underflowing. */
  int exponent = ilogb(largest);
  if (exponent < -1000) { /* the power itself would overflow */
    for (uint32_t c = 0; c < dim; c++)
      x[c] = scalbn(x[c], -exponent - 1000);
    exponent = -1000;
  }
  double scale = scalbn(1.0, -exponent);
  double sum = 0;
  for (uint32_t c = 0; c < dim; c++) {
    x[c] *= scale;
    sum += x[c] * x[c];
  }
  double norm = sqrt(sum);
  for (uint32_t c = 0; c < dim; c++)
    x[c] /= norm;
  return KITH_ROW_FITS;
}

/* The place on the sphere of a longitude and a latitude, x[0] and x[1], both finite; x[2] is there, too. */
static inline KITH_DEVICE kith_row_fault kith_embed_place(double *x) {
  double lon = x[0];
  double lat = x[1];
  if (!(fabs(lat) <= 90))
    return KITH_ROW_LATITUDE;
  kith_sine_cosine along = kith_sine_cosine_degrees(lon);
  kith_sine_cosine up = kith_sine_cosine_degrees(lat);
  x[0] = up.cosine * along.cosine;
  x[1] = up.cosine * along.sine;
  x[2] = up.sine;
  return KITH_ROW_FITS;
}

#endif
