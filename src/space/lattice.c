/* Lattices: see lattice.h. */
#include "space/lattice.h"

#include "base/context.h"
#include "space/degrees.h"

#include <string.h>

static kith_status refuse(kith_context *ctx, const char *why) {
  return kith_fail(ctx, KITH_ERR_ARGUMENT, "the box %s", why);
}

/* Squares of longer and of shorter ones would overflow or vanish. */
static const double LONGEST = 1e150;
static const double SHORTEST = 1e-140;

/* A box of lengths: an axis for each that is not 0. */
static kith_status make_straight(kith_context *ctx, const double *lengths, uint32_t dim,
                                 kith_lattice *lattice) {
  lattice->height = INFINITY;
  for (uint32_t c = 0; c < dim; c++) {
    double length = lengths[c];
    if (length == 0)
      continue;
    if (length > LONGEST || length < SHORTEST)
      return refuse(ctx, "has a length beyond 1e150 or below 1e-140");
    if (lattice->n == KITH_MAX_AXES)
      return refuse(ctx, "is periodic along more than 8 axes: give 0 for those that are to be open");
    lattice->axis[lattice->n] = c;
    lattice->vector[lattice->n][lattice->n] = length;
    lattice->n++;
    lattice->height = fmin(lattice->height, length);
  }
  return KITH_OK;
}

/* Takes whole vectors j away from vector i, until its component along axis j is at most half of theirs. */
static void reduce(double v[3][3], int i, int j) {
  double turns = v[j][j] > 0 ? ceil(v[i][j] / v[j][j] - 0.5) : 0;
  for (int c = 0; c <= j && turns != 0; c++)
    v[i][c] -= turns * v[j][c];
}

/* The smallest distance between opposite faces, of two or three vectors. Ratios of lengths, so that no product
 * of them overflows. */
static double skewed_height(const kith_lattice *lattice) {
  const double(*v)[KITH_MAX_AXES] = lattice->vector;
  bool three = lattice->n == 3;
  double b_x = v[1][0] / v[1][1];
  double c_x = three ? v[2][0] / v[2][2] : 0;
  double c_y = three ? v[2][1] / v[2][2] : 0;
  double height_a = v[0][0] / hypot(hypot(1, b_x), b_x * c_y - c_x);
  double height_b = v[1][1] / hypot(1, c_y);
  return fmin(fmin(height_a, height_b), three ? v[2][2] : INFINITY);
}

/* Checks vector i of three: it is zero, and its axis open, or it leads along its axis, and leans along no open
 * one. */
static kith_status check_vector(kith_context *ctx, double v[3][3], int i) {
  bool leans = v[i][0] != 0 && i > 0 && v[0][0] == 0;
  leans = leans || (v[i][1] != 0 && i > 1 && v[1][1] == 0);
  bool is_zero = v[i][0] == 0 && v[i][1] == 0 && v[i][2] == 0;
  if (!is_zero && !(v[i][i] > 0))
    return refuse(ctx, "has no volume: vectors with angles must have positive lengths x, y and z along the "
                       "axes, or be zero where an axis is open");
  if (leans)
    return refuse(ctx, "has a vector with a component along an axis that is open");
  return KITH_OK;
}

/* Three vectors, row by row, as a lattice. */
static kith_status make_vectors(kith_context *ctx, double v[3][3], kith_lattice *lattice) {
  if (v[0][1] != 0 || v[0][2] != 0 || v[1][2] != 0)
    return refuse(ctx,
                  "has vectors that are not lower triangular: turn it so that the first lies along x and the "
                  "second in the plane of x and y, and the points with it");
  bool straight = v[1][0] == 0 && v[2][0] == 0 && v[2][1] == 0;
  if (straight)
    return make_straight(ctx, (double[]){v[0][0], v[1][1], v[2][2]}, 3, lattice);
  kith_status status = KITH_OK;
  for (int i = 0; i < 3 && !status; i++)
    status = check_vector(ctx, v, i);
  if (status)
    return status;
  reduce(v, 2, 1);
  reduce(v, 2, 0);
  reduce(v, 1, 0);
  for (uint32_t i = 0; i < 3; i++) {
    if (v[i][i] == 0)
      continue;
    if (v[i][i] > LONGEST || v[i][i] < SHORTEST)
      return refuse(ctx, "has a length beyond 1e150 or below 1e-140");
    lattice->axis[lattice->n] = i;
    for (uint32_t c = 0; c <= lattice->n; c++)
      lattice->vector[lattice->n][c] = v[i][lattice->axis[c]];
    lattice->n++;
  }
  lattice->skewed = v[1][0] != 0 || v[2][0] != 0 || v[2][1] != 0;
  lattice->height = skewed_height(lattice);
  return KITH_OK;
}

/* Lengths and angles, as crystallographers give them: alpha between b and c, beta a and c, gamma a and b. */
static kith_status make_angles(kith_context *ctx, const double *box, kith_lattice *lattice) {
  for (int i = 3; i < 6; i++)
    if (!(box[i] > 0 && box[i] < 180))
      return kith_fail(ctx, KITH_ERR_ARGUMENT,
                       "the box has an angle of %g: angles are in degrees, above 0 and below 180", box[i]);
  double cos_alpha = kith_cos_degrees(box[3]);
  double cos_beta = kith_cos_degrees(box[4]);
  double cos_gamma = kith_cos_degrees(box[5]);
  double sin_gamma = kith_sin_degrees(box[5]);
  double c_y = (cos_alpha - cos_beta * cos_gamma) / sin_gamma;
  double c_z = 1 - cos_beta * cos_beta - c_y * c_y;
  if (!(c_z > 0))
    return refuse(ctx, "has angles that no three vectors have: each must be less than the other two together, "
                       "and all three less "
                       "than 360 degrees");
  double v[3][3] = {{box[0], 0, 0},
                    {box[1] * cos_gamma, box[1] * sin_gamma, 0},
                    {box[2] * cos_beta, box[2] * c_y, box[2] * sqrt(c_z)}};
  return make_vectors(ctx, v, lattice);
}

kith_status kith_lattice_make(kith_context *ctx, const double *box, uint32_t n, uint32_t dim,
                              kith_lattice *lattice) {
  *lattice = (kith_lattice){0};
  for (uint32_t i = 0; i < n; i++)
    if (!isfinite(box[i]))
      return refuse(ctx, "has a value that is NaN or infinite");
  bool vectors = dim == 3 && n == 9;
  for (uint32_t i = 0; i < n && !vectors; i++)
    if (box[i] < 0)
      return refuse(ctx, dim == 3 && n == 6 && i >= 3 ? "has a negative angle"
                                                      : "has a negative length; 0 means an open axis");
  if (n == dim)
    return make_straight(ctx, box, dim, lattice);
  if (dim == 3 && n == 6)
    return make_angles(ctx, box, lattice);
  if (!vectors)
    return kith_fail(
        ctx, KITH_ERR_ARGUMENT,
        "the box has %u value%s, but the points have %u dimension%s: give a length for each, or in 3 "
        "dimensions three lengths and three angles (6 values), or three vectors (9)",
        n, n == 1 ? "" : "s", dim, dim == 1 ? "" : "s");
  for (int i = 0; i < 3; i++)
    if (box[4 * i] < 0)
      return refuse(ctx, "has a vector that points backwards along its own axis");
  double v[3][3];
  memcpy(v, box, sizeof v);
  return make_vectors(ctx, v, lattice);
}

double kith_lattice_doubt(const kith_lattice *lattice, double limit) {
  double widths = 0;
  for (uint32_t i = 0; i < lattice->n; i++)
    widths += lattice->vector[i][i];
  /* Two images of a pair are at least the height apart. Their computed distances are off by rounding: by some
   * 2^-50 of the brick's widths, and relatively by less than 2^-40 for any dimension. */
  double sure = lattice->height * (1 - 0x1p-40) - sqrt(limit) * (1 + 0x1p-39) - 0x1p-46 * widths;
  return sure > 0 ? sure * sure * (1 - 0x1p-39) : -1;
}
