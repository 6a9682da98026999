/* Wrapping points by columns, for loops_body.h. */
enum { TOGETHER = 256 }; /* points that are wrapped at once */

/* Moves points [at, at + n) by whole vectors i. */
static void move_columns(const kith_lattice *lattice, uint32_t i, const double *turns, double *const *columns,
                         uint32_t at, uint32_t n) {
  for (uint32_t c = 0; c <= i; c++) {
    double component = lattice->vector[i][c];
    double *x = columns[lattice->axis[c]] + at;
    for (uint32_t p = 0; p < n && component != 0; p++)
      x[p] = kith_add_product(x[p], -turns[p], component);
  }
}

/* For numbers that are not too large. Unlike floor, it has operations that every processor has for vectors:
 * numbers of this size are whole, and x is rounded to the nearest. */
static inline double floor_of(double x) {
  const double WHOLE = 0x1.8p52;
  double nearest = (x + WHOLE) - WHOLE;
  return nearest - (nearest > x ? 1 : 0);
}

/* Whether some of n coordinates lie outside of a side. */
static bool are_outside(const double *x, uint32_t n, double side) {
  int64_t outside = 0; /* as wide as the coordinates, for vectors */
  for (uint32_t p = 0; p < n; p++)
    outside += (x[p] < 0 ? INT64_C(1) : 0) + (x[p] >= side ? INT64_C(1) : 0);
  return outside > 0;
}

/* As kith_lattice_wrap does it, to the last bit. */
static void wrap_along(const kith_lattice *lattice, uint32_t i, double *const *columns, uint32_t at,
                       uint32_t n) {
  double turns[TOGETHER];
  double side = lattice->vector[i][i];
  double *own = columns[lattice->axis[i]] + at;
  if (!are_outside(own, n, side))
    return;
  for (uint32_t p = 0; p < n; p++)
    turns[p] = floor_of(own[p] / side);
  move_columns(lattice, i, turns, columns, at, n);
  if (!are_outside(own, n, side))
    return;
  for (uint32_t p = 0; p < n; p++) /* by rounding */
    turns[p] = own[p] >= side ? 1 : 0;
  move_columns(lattice, i, turns, columns, at, n);
  for (uint32_t p = 0; p < n; p++)
    own[p] = own[p] < 0 ? 0 : own[p];
}

static void wrap_columns(const kith_lattice *lattice, double *const *columns, uint32_t n) {
  for (uint32_t at = 0; at < n; at += TOGETHER)
    for (uint32_t i = lattice->n; i-- > 0;)
      wrap_along(lattice, i, columns, at, n - at < TOGETHER ? n - at : TOGETHER);
}
