/* Places: see places.h. */
#include "places.h"

#include "space/degrees.h"

#include <math.h>
#include <stdlib.h>

static double coordinate(const kith_points *p, uint64_t i, uint32_t c) {
  const char *at = (const char *)p->data + (int64_t)i * p->row_stride + (int64_t)c * p->col_stride;
  return p->dtype == KITH_F32 ? (double)*(const float *)at : *(const double *)at;
}

/* ---- boxes ---- */

static void shorten(box *b, int i, int j) {
  double k = b->v[j][j] > 0 ? ceil(b->v[i][j] / b->v[j][j] - 0.5) : 0;
  for (int c = 0; c <= j; c++)
    if (k != 0)
      b->v[i][c] = b->v[i][c] - k * b->v[j][c];
}

static double product(const double *a, const double *b) { return (a[0] * b[0] + a[1] * b[1]) + a[2] * b[2]; }

/* What is left of r beside the axes in `set`, and its length. */
static double beside(const box *b, unsigned set, double *r) {
  for (int k = 0; k < 6; k++)
    if (set >> k % 3 & 1) {
      double s = product(r, b->e[k % 3]);
      for (int c = 0; c < 3; c++)
        r[c] = r[c] - s * b->e[k % 3][c];
    }
  return sqrt(product(r, r));
}

static bool is_as_it_should_be(const double *x) {
  bool there[3] = {x[0] != 0, x[4] != 0, x[8] != 0};
  bool triangular = x[1] == 0 && x[2] == 0 && x[5] == 0 && x[0] >= 0 && x[4] >= 0 && x[8] >= 0;
  bool leans = (x[3] != 0 && !(there[0] && there[1])) || (x[6] != 0 && !(there[0] && there[2])) ||
               (x[7] != 0 && !(there[1] && there[2]));
  return triangular && !leans;
}

static void turn_box(box *b, const double *x) {
  unsigned set = 0;
  b->turned = true;
  for (int i = 0; i < 3; i++) {
    double r[3] = {x[3 * i], x[3 * i + 1], x[3 * i + 2]};
    if (r[0] == 0 && r[1] == 0 && r[2] == 0)
      continue;
    b->v[i][i] = beside(b, set, r);
    for (int c = 0; c < 3; c++)
      b->e[i][c] = r[c] / b->v[i][i];
    set |= 1U << i;
  }
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < i; j++)
      b->v[i][j] = (set >> i & 1) && (set >> j & 1) ? product(&x[3 * i], b->e[j]) : 0;
  for (int i = 0; i < 3; i++) {
    double longest = 0;
    for (int k = 0; k < 3 && !(set >> i & 1); k++) {
      double r[3] = {0, 0, 0};
      r[k] = 1;
      double length = beside(b, set, r);
      for (int c = 0; c < 3 && length > longest; c++)
        b->e[i][c] = r[c] / length;
      longest = fmax(longest, length);
    }
    set |= 1U << i;
  }
}

static bool turn(const box *b, double *x) {
  double y[3];
  for (int i = 0; i < 3; i++)
    y[i] = product(x, b->e[i]);
  for (int i = 0; i < 3; i++)
    x[i] = y[i];
  return isfinite(x[0]) && isfinite(x[1]) && isfinite(x[2]);
}

/* Nine numbers for a box of angles. */
static void find_vectors(const double *x, double *v) {
  double cos_a = kith_cos_degrees(x[3]), cos_b = kith_cos_degrees(x[4]), cos_g = kith_cos_degrees(x[5]);
  double sin_g = kith_sin_degrees(x[5]);
  double y = (cos_a - cos_b * cos_g) / sin_g;
  v[0] = x[0];
  v[3] = x[1] * cos_g;
  v[4] = x[1] * sin_g;
  v[6] = x[2] * cos_b;
  v[7] = x[2] * y;
  v[8] = x[2] * sqrt(1 - cos_b * cos_b - y * y);
}

static box make_box(const kith_join_options *options, uint32_t dim) {
  box b = {.dim = dim};
  double v[9] = {0};
  for (uint32_t c = 0; c < options->n_box && options->n_box == dim; c++)
    b.v[c][c] = options->box[c];
  if (options->n_box == dim)
    return b;
  if (options->n_box == 6)
    find_vectors(options->box, v);
  for (int i = 0; i < 9 && options->n_box == 9; i++)
    v[i] = options->box[i];
  if (!is_as_it_should_be(v))
    turn_box(&b, v);
  for (int i = 0; i < 9 && !b.turned; i++)
    b.v[i / 3][i % 3] = v[i];
  b.skewed = true;
  shorten(&b, 2, 1);
  shorten(&b, 2, 0);
  shorten(&b, 1, 0);
  return b;
}

static bool wrap(const box *b, double *x) {
  for (int i = (int)b->dim - 1; i >= 0; i--) {
    double side = b->v[i][i];
    if (side == 0)
      continue;
    double k = floor(x[i] / side);
    if (k < -0x1p52 || k > 0x1p52)
      return false;
    for (int c = 0; c <= i; c++)
      x[c] = x[c] - k * b->v[i][c];
    for (int c = 0; c <= i && x[i] >= side; c++)
      x[c] = x[c] - b->v[i][c];
    if (x[i] < 0)
      x[i] = 0;
  }
  return true;
}

/* The smallest size over the images. Along an axis without angles one of the three is nearest whatever the
 * others are, since a rounded sum does not fall where a term grows. */
static double nearest_image(const box *b, const double *t) {
  double best = 0;
  for (uint32_t c = 0; c < b->dim; c++) {
    double side = b->v[c][c];
    double s = fmin(fabs(t[c]), fmin(fabs(t[c] - side), fabs(t[c] + side)));
    best += s * s;
  }
  return best;
}

/* The same where axes meet at angles: along axis `axis` and those before it, with the shifts of later ones. */
static double nearest_skewed_image(const box *b, const double *t, int axis, const double *shift) {
  double best = INFINITY;
  if (axis < 0) {
    best = 0;
    for (int c = 0; c < 3; c++) {
      double s = t[c] + shift[c];
      best += s * s;
    }
    return best;
  }
  int most = b->v[axis][axis] != 0 ? 2 : 0;
  for (int k = -most; k <= most; k++) {
    double moved[3];
    for (int c = 0; c < 3; c++)
      moved[c] = c <= axis ? shift[c] + k * b->v[axis][c] : shift[c];
    best = fmin(best, nearest_skewed_image(b, t, axis - 1, moved));
  }
  return best;
}

/* ---- metrics ---- */

static bool direct(double *x, uint32_t dim) {
  double largest = 0;
  for (uint32_t c = 0; c < dim; c++)
    largest = fmax(largest, fabs(x[c]));
  if (largest == 0)
    return false;
  int exponent;
  frexp(largest, &exponent); /* largest = m * 2^exponent, m from 1/2 to 1 */
  double sum = 0;
  for (uint32_t c = 0; c < dim; c++) {
    x[c] = ldexp(x[c], 1 - exponent);
    sum += x[c] * x[c];
  }
  for (uint32_t c = 0; c < dim; c++)
    x[c] = x[c] / sqrt(sum);
  return true;
}

static bool place(double *x) {
  double lon = x[0];
  double lat = x[1];
  x[0] = kith_cos_degrees(lat) * kith_cos_degrees(lon);
  x[1] = kith_cos_degrees(lat) * kith_sin_degrees(lon);
  x[2] = kith_sin_degrees(lat);
  return fabs(lat) <= 90;
}

static bool locate(const kith_join_options *options, const box *b, double *x, uint32_t dim) {
  for (uint32_t c = 0; c < dim; c++)
    if (!isfinite(x[c]))
      return false;
  if (options->metric == KITH_HAVERSINE)
    return place(x);
  if (options->metric == KITH_COSINE || options->metric == KITH_ANGULAR)
    return direct(x, dim);
  return !options->n_box || ((!b->turned || turn(b, x)) && wrap(b, x));
}

places places_make(const kith_points *points, const kith_join_options *options) {
  places p = {.n = points->n, .dim = options->metric == KITH_HAVERSINE ? 3 : points->dim};
  p.at = calloc(p.n * p.dim + 1, sizeof *p.at);
  p.valid = malloc(p.n + 1);
  if (!p.at || !p.valid)
    abort();
  if (options->n_box)
    p.box = make_box(options, points->dim);
  for (uint64_t i = 0; i < p.n; i++) {
    double *x = p.at + i * p.dim;
    for (uint32_t c = 0; c < points->dim; c++)
      x[c] = coordinate(points, i, c);
    p.valid[i] = locate(options, &p.box, x, points->dim);
  }
  return p;
}

void places_free(places *p) {
  free(p->at);
  free(p->valid);
  *p = (places){0};
}

double places_size(const places *a, uint64_t i, const places *b, uint64_t k, const kith_join_options *options) {
  const double *x = a->at + i * a->dim;
  const double *y = b->at + k * a->dim;
  double sum = 0;
  double most = 0;
  if (options->metric == KITH_EUCLIDEAN && !options->n_box) {
    for (uint32_t c = 0; c < a->dim; c++)
      sum += (x[c] - y[c]) * (x[c] - y[c]);
    return sum;
  }
  if (options->n_box) {
    double t[16] = {0};
    double shift[3] = {0};
    for (uint32_t c = 0; c < a->dim; c++)
      t[c] = x[c] - y[c];
    return a->box.skewed ? nearest_skewed_image(&a->box, t, 2, shift) : nearest_image(&a->box, t);
  }
  for (uint32_t c = 0; c < a->dim; c++) {
    double t = x[c] - y[c];
    sum += options->metric == KITH_MANHATTAN ? fabs(t) : t * t;
    most = fmax(most, fabs(t));
  }
  return options->metric == KITH_CHEBYSHEV ? most : sum;
}

double places_limit(const kith_join_options *options, uint64_t i) {
  double eps = options->eps_of ? options->eps_of[i] : options->eps;
  double chord;
  switch (options->metric) {
  case KITH_MANHATTAN:
  case KITH_CHEBYSHEV:
    return eps;
  case KITH_COSINE:
    return eps >= 2 ? INFINITY : 2 * eps;
  case KITH_HAVERSINE:
    if (options->radius > 0)
      eps = eps / options->radius * (180 / 3.14159265358979323846);
    /* fall through */
  case KITH_ANGULAR:
    chord = 2 * kith_sin_degrees(eps / 2);
    return eps >= 180 ? INFINITY : chord * chord;
  default:
    return eps * eps;
  }
}

double places_distance(const kith_join_options *options, double size) {
  double angle = 2 * asin(fmin(1, sqrt(size) / 2));
  switch (options->metric) {
  case KITH_MANHATTAN:
  case KITH_CHEBYSHEV:
    return size;
  case KITH_COSINE:
    return size / 2;
  case KITH_ANGULAR:
    return angle * (180 / 3.14159265358979323846);
  case KITH_HAVERSINE:
    return angle * (options->radius > 0 ? options->radius : 180 / 3.14159265358979323846);
  default:
    return sqrt(size);
  }
}
