/* Lattices: see lattice.h. */
#include "space/lattice.h"

#include "base/context.h"
#include "space/degrees.h"

#include <string.h>

static kith_status refuse(kith_context *ctx, const char *why) {
  return kith_fail(ctx, KITH_ERR_ARGUMENT, "the box %s", why);
}

/* Squares of longer and of shorter ones would overflow or vanish. */
static bool is_length(double length) { return length >= 1e-140 && length <= 1e150; }
static const char NO_LENGTH[] = "has a length beyond 1e150 or below 1e-140";

/* A box of lengths: an axis for each that is not 0. */
static kith_status make_straight(kith_context *ctx, const double *lengths, uint32_t dim,
                                 kith_lattice *lattice) {
  lattice->height = INFINITY;
  for (uint32_t c = 0; c < dim; c++) {
    double length = lengths[c];
    if (length == 0)
      continue;
    if (!is_length(length))
      return refuse(ctx, NO_LENGTH);
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

/* ---- turning ---- */

static bool is_zero(const double v[3]) { return v[0] == 0 && v[1] == 0 && v[2] == 0; }

static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/* Whether vectors are lower triangular, each of them zero, and its axis open, or with a positive length along
 * its axis and none along an open one. */
static bool is_triangular(double v[3][3]) {
  bool ok = v[0][1] == 0 && v[0][2] == 0 && v[1][2] == 0;
  for (int i = 0; i < 3; i++) {
    ok = ok && (v[i][i] > 0 || is_zero(v[i]));
    for (int j = 0; j < i; j++)
      ok = ok && (v[i][j] == 0 || v[j][j] > 0);
  }
  return ok;
}

/* Takes away from r what it has along the axes that are known, and tells what length is left. Twice: the first
 * time leaves what rounding does. */
static double remove_axes(double r[3], double axes[3][3], const bool known[3]) {
  for (int round = 0; round < 2; round++)
    for (int j = 0; j < 3; j++) {
      double along = known[j] ? dot(r, axes[j]) : 0;
      for (int c = 0; c < 3 && known[j]; c++)
        r[c] -= along * axes[j][c];
    }
  return sqrt(dot(r, r));
}

static void set_axis(double axis[3], const double r[3], double length) {
  for (int c = 0; c < 3; c++)
    axis[c] = r[c] / length;
}

/* An axis for a vector of zeros, at right angles to those that are known: from x, y or z, whichever has most
 * left. */
static void complete_axis(double axes[3][3], const bool known[3], int i) {
  double longest = 0;
  for (int c = 0; c < 3; c++) {
    double r[3] = {c == 0, c == 1, c == 2};
    double length = remove_axes(r, axes, known);
    if (length > longest)
      set_axis(axes[i], r, length);
    longest = fmax(longest, length);
  }
}

/* Turns three vectors so that they are lower triangular: the first leads along the first axis, and so on. */
static kith_status turn_vectors(kith_context *ctx, double v[3][3], kith_lattice *lattice) {
  static const double FLATTEST = 1e-9; /* of a vector: less lies in the plane of the others */
  double lengths[3] = {0, 0, 0};
  bool known[3] = {false, false, false};
  for (int i = 0; i < 3; i++) {
    double r[3] = {v[i][0], v[i][1], v[i][2]};
    double whole = sqrt(dot(r, r));
    if (is_zero(r))
      continue;
    if (!is_length(whole))
      return refuse(ctx, NO_LENGTH);
    lengths[i] = remove_axes(r, lattice->turn, known);
    if (!(lengths[i] > FLATTEST * whole))
      return refuse(ctx, "has no volume: one of its vectors lies in the line or plane of the others");
    set_axis(lattice->turn[i], r, lengths[i]);
    known[i] = true;
  }
  for (int i = 0; i < 3; i++)
    if (!known[i]) {
      complete_axis(lattice->turn, known, i);
      known[i] = true;
    }
  for (int i = 0; i < 3; i++) {
    double from[3] = {v[i][0], v[i][1], v[i][2]};
    for (int j = 0; j < 3; j++)
      v[i][j] = j > i || lengths[j] == 0 ? 0 : j == i ? lengths[i] : dot(from, lattice->turn[j]);
  }
  lattice->turned = true;
  return KITH_OK;
}

/* Three vectors, row by row, as a lattice. */
static kith_status make_vectors(kith_context *ctx, double v[3][3], kith_lattice *lattice) {
  kith_status status = is_triangular(v) ? KITH_OK : turn_vectors(ctx, v, lattice);
  if (status)
    return status;
  bool straight = v[1][0] == 0 && v[2][0] == 0 && v[2][1] == 0;
  if (straight)
    return make_straight(ctx, (double[]){v[0][0], v[1][1], v[2][2]}, 3, lattice);
  reduce(v, 2, 1);
  reduce(v, 2, 0);
  reduce(v, 1, 0);
  for (uint32_t i = 0; i < 3; i++) {
    if (v[i][i] == 0)
      continue;
    if (!is_length(v[i][i]))
      return refuse(ctx, NO_LENGTH);
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
