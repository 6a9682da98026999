/* What products of panels can tell: see panel.h. */
#include "engine/cpu/panel.h"

static const double U = 0x1p-24; /* the unit roundoff of float */

/* The proof is in docs/exactness.md. In short: rounding the coordinates moves a distance by at most 2 U M, and
 * all other roundings move the sum by at most (2 dim + 10) U M^2, with M^2 = norm2. */
kith_panel_limits kith_panel_limits_make(const kith_predicate *predicate, uint32_t dim, double norm2) {
  kith_panel_limits limits = {.out = -INFINITY, .in = INFINITY};
  if (!predicate->filter || !(norm2 <= 1e36))
    return limits;
  double eps = sqrt(predicate->limit);
  double shift = 2.01 * U * sqrt(norm2);
  double band = (2.0 * dim + 10) * U * norm2 + 1e-38;
  double far = eps * (1 + 0x1p-40) + shift;
  double near = eps * (1 - 0x1p-40) - shift;
  limits.out = (float)(-(far * far / 2 + band) * (1 + 0x1p-22));
  if (near > 0 && near * near / 2 > band)
    limits.in = (float)(-(near * near / 2 - band) * (1 - 0x1p-22));
  return limits;
}
