/* Spaces: see space.h. */
#include "space/space.h"

#include "base/team.h"
#include "space/embed.h"
#include "space/loops.h"

#include <string.h>

static const double DEGREES = 0x1.ca5dc1a63c1f8p+5; /* in a radian */

const char *kith_metric_name(kith_metric metric) {
  static const char *const names[] = {"euclidean", "manhattan", "chebyshev", "cosine", "angular", "haversine"};
  return names[metric];
}

static kith_status check_space(kith_context *ctx, const kith_join_options *options, uint32_t dim) {
  bool haversine = options->metric == KITH_HAVERSINE;
  if ((unsigned)options->metric > KITH_HAVERSINE)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "metric has a value that has no meaning");
  if (haversine && dim != 2)
    return kith_fail(
        ctx, KITH_ERR_ARGUMENT,
        "haversine needs two columns, longitude and latitude in degrees, but there are %u: choose them", dim);
  if (options->radius != 0 && !haversine)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "a radius has a meaning for the metric haversine only, not for %s",
                     kith_metric_name(options->metric));
  if (!(options->radius >= 0 && isfinite(options->radius)))
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "the radius is %g; it must be finite and greater than 0",
                     options->radius);
  if ((options->n_box > 0) != (options->box != NULL))
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "n_box is %u, but there is %s box", options->n_box,
                     options->box ? "a" : "no");
  if (options->n_box && options->metric != KITH_EUCLIDEAN)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "a periodic box needs the metric euclidean, not %s",
                     kith_metric_name(options->metric));
  return KITH_OK;
}

kith_status kith_space_make(kith_context *ctx, const kith_join_options *options, uint32_t dim,
                            kith_space *space) {
  kith_status status = check_space(ctx, options, dim);
  if (status)
    return status;
  *space = (kith_space){.metric = options->metric, .radius = options->radius, .dim = dim};
  space->norm = options->metric == KITH_MANHATTAN   ? KITH_NORM_1
                : options->metric == KITH_CHEBYSHEV ? KITH_NORM_MAX
                                                    : KITH_NORM_2;
  if (options->metric == KITH_HAVERSINE)
    space->dim = 3;
  return options->n_box ? kith_lattice_make(ctx, options->box, options->n_box, dim, &space->lattice) : KITH_OK;
}

/* The square of the chord of an angle. */
static double chord2(double degrees) {
  if (degrees >= 180)
    return INFINITY;
  double chord = 2 * kith_sin_degrees(degrees / 2);
  return chord * chord;
}

double kith_space_limit(const kith_space *space, double eps) {
  switch (space->metric) {
  case KITH_COSINE:
    return eps >= 2 ? INFINITY : 2 * eps;
  case KITH_ANGULAR:
    return chord2(eps);
  case KITH_HAVERSINE:
    return chord2(space->radius > 0 ? eps / space->radius * DEGREES : eps);
  default:
    return kith_norm_size(space->norm, eps);
  }
}

double kith_space_distance(const kith_space *space, double size) {
  if (space->metric == KITH_COSINE)
    return size / 2;
  if (!kith_space_is_embedded(space))
    return kith_norm_distance(space->norm, size);
  double radians = 2 * asin(fmin(sqrt(size) / 2, 1));
  return radians * (space->radius > 0 ? space->radius : DEGREES);
}

/* ---- embedding ----------------------------------------------------------------------------------------- */

/* Reads a row, and puts its place in the space into x. */
static kith_row_fault embed_row(const kith_space *space, const kith_points *points, uint64_t row, double *x) {
  for (uint32_t c = 0; c < points->dim; c++)
    x[c] = kith_points_get(points, row, c);
  if (!kith_row_is_finite(x, points->dim))
    return KITH_ROW_NOT_FINITE;
  if (space->metric == KITH_HAVERSINE)
    return kith_embed_place(x);
  if (kith_space_is_embedded(space))
    return kith_embed_direction(x, points->dim);
  return kith_lattice_place(&space->lattice, x) ? KITH_ROW_FITS : KITH_ROW_LOST;
}

typedef struct embedding {
  const kith_space *space;
  const kith_points *points;
  const kith_space_loops *loops;
  double *to; /* n rows of space->dim */
  uint64_t shares;
  _Atomic uint64_t faults, first_fault; /* first: the lowest row */
} embedding;

static void note_fault(embedding *e, uint64_t row) {
  atomic_fetch_add(&e->faults, 1);
  uint64_t first = atomic_load(&e->first_fault);
  while (row < first && !atomic_compare_exchange_weak(&e->first_fault, &first, row))
    continue;
}

static void embed_one(embedding *e, uint64_t row) {
  double *x = e->to + row * e->space->dim;
  if (embed_row(e->space, e->points, row, x) == KITH_ROW_FITS)
    return;
  note_fault(e, row);
  for (uint32_t c = 0; c < e->space->dim; c++)
    x[c] = NAN;
}

static void embed_rows(embedding *e, uint64_t begin, uint64_t end) {
  for (uint64_t row = begin; row < end; row++)
    embed_one(e, row);
}

/* Reads rows as doubles, one behind the other; float rows that lie so already in a loop that becomes vector
 * code. */
static void read_rows(const kith_points *points, uint64_t begin, uint64_t end, double *to) {
  uint32_t dim = points->dim;
  int64_t size = sizeof(float);
  bool packed = points->row_stride == size * dim && (points->col_stride == size || dim == 1);
  if (points->dtype == KITH_F32 && packed) {
    const float *from = (const float *)points->data + begin * dim;
    for (uint64_t i = 0; i < (end - begin) * dim; i++)
      to[i] = (double)from[i];
    return;
  }
  for (uint64_t row = begin; row < end; row++)
    for (uint32_t c = 0; c < dim; c++)
      *to++ = kith_points_get(points, row, c);
}

/* false: x is left as it is. */
static bool wrap_if_nearby(double *x, double side) {
  bool nearby = *x >= -0.5 * side && *x <= 1.5 * side;
  double y = kith_wrap_nearby(*x, side);
  *x = nearby ? y : *x;
  return nearby;
}

/* In a box that is not turned most points stay where they are, or move by one side: only the others are looked
 * at one by one. */
static void embed_in_box(embedding *e, uint64_t begin, uint64_t end) {
  enum { BLOCK = 256 }; /* rows that are still in the cache when they are looked at */
  const kith_lattice *lattice = &e->space->lattice;
  uint32_t dim = e->space->dim;
  for (uint64_t at = begin; at < end; at += BLOCK) {
    uint64_t stop = end - at < BLOCK ? end : at + BLOCK;
    read_rows(e->points, at, stop, e->to + at * dim);
    for (uint64_t row = at; row < stop; row++) {
      double *x = e->to + row * dim;
      bool fits = lattice->n == dim || kith_row_is_finite(x, dim);
      for (uint32_t i = 0; i < lattice->n && !lattice->skewed; i++)
        fits &= wrap_if_nearby(&x[lattice->axis[i]], lattice->vector[i][i]);
      if (!fits || (lattice->skewed && !kith_lattice_holds(lattice, x)))
        embed_one(e, row);
    }
  }
}

/* The same for up to KITH_PLACES longitudes and latitudes, in vectors. */
static void embed_places(embedding *e, uint64_t begin, uint64_t end) {
  double lon[KITH_PLACES] = {0};
  double lat[KITH_PLACES] = {0};
  bool fits[KITH_PLACES];
  uint32_t n = (uint32_t)(end - begin);
  for (uint32_t i = 0; i < n; i++) {
    lon[i] = kith_points_get(e->points, begin + i, 0);
    lat[i] = kith_points_get(e->points, begin + i, 1);
    fits[i] = isfinite(lon[i]) && fabs(lat[i]) <= 90;
    lon[i] = fits[i] ? kith_turn_of(lon[i]) : 0;
    lat[i] = fits[i] ? lat[i] : 0;
  }
  double *places = e->to + begin * e->space->dim;
  e->loops->find_places(lon, lat, n, places);
  for (uint32_t i = 0; i < n; i++)
    if (!fits[i]) {
      note_fault(e, begin + i);
      places[3 * i] = places[3 * i + 1] = places[3 * i + 2] = NAN;
    }
}

static void embed_share(void *argument, uint64_t share) {
  embedding *e = argument;
  uint64_t begin = kith_share_begin(e->points->n, share, e->shares);
  uint64_t end = kith_share_begin(e->points->n, share + 1, e->shares);
  if (e->space->metric != KITH_HAVERSINE) {
    bool all_move = kith_space_is_embedded(e->space) || e->space->lattice.turned;
    (all_move ? embed_rows : embed_in_box)(e, begin, end);
    return;
  }
  for (uint64_t row = begin; row < end; row += KITH_PLACES)
    embed_places(e, row, end - row < KITH_PLACES ? end : row + KITH_PLACES);
}

const kith_space_loops *kith_space_loops_for(kith_isa_level isa) {
#if defined(__x86_64__)
  if (isa == KITH_ISA_AVX2)
    return &kith_space_loops_avx2;
  if (isa == KITH_ISA_AVX512)
    return &kith_space_loops_avx512;
#endif
  (void)isa;
  return &kith_space_loops_scalar;
}

/* Where points are, seen from the brick. */
typedef enum whereabouts { WITHIN, NEARBY, ELSEWHERE } whereabouts;

/* How far outside of the brick points may lie that readers wrap, in sides: those of a box with angles divide.
 */
static double room_outside(const kith_lattice *lattice) { return lattice->skewed ? KITH_WRAP_ROOM : 0.5; }

/* Of points whose coordinates along axis i are from low to high. */
static whereabouts locate(const kith_lattice *lattice, uint32_t i, double low, double high) {
  double side = lattice->vector[i][i];
  double room = room_outside(lattice);
  if (low < -room * side || high > (1 + room) * side)
    return ELSEWHERE;
  return low < 0 || high >= side ? NEARBY : WITHIN;
}

static whereabouts farther(whereabouts a, whereabouts b) { return a > b ? a : b; }

/* Of the first points: where some lie outside, that is soon found. */
static whereabouts locate_first(const kith_lattice *lattice, const kith_points *points) {
  enum { LOOK = 1024 };
  whereabouts found = WITHIN;
  for (uint64_t row = 0; row < points->n && row < LOOK; row++)
    for (uint32_t i = 0; i < lattice->n; i++) {
      double x = kith_points_get(points, row, lattice->axis[i]);
      found = farther(found, locate(lattice, i, x, x));
    }
  return found;
}

/* What there is to be seen of points that lie in the brick, or do once they are wrapped. */
static void note_seen(const kith_lattice *lattice, const kith_points_summary *summary, uint32_t dim,
                      kith_placed *placed) {
  memcpy(placed->seen.min, summary->min, dim * sizeof *summary->min);
  memcpy(placed->seen.max, summary->max, dim * sizeof *summary->max);
  for (uint32_t i = 0; i < lattice->n && placed->unwrapped; i++) {
    placed->seen.min[lattice->axis[i]] = 0;
    placed->seen.max[lattice->axis[i]] = lattice->vector[i][i];
  }
  placed->seen.known = true;
}

/* Leaves points of a box where they are if it can: all valid ones lie in the brick, or are wrapped by their
 * readers. False too if there is no memory to tell. */
static bool try_to_stay(kith_context *ctx, const kith_lattice *lattice, const kith_points *points,
                        bool may_wrap_later, kith_placed *placed) {
  may_wrap_later = may_wrap_later && points->dim <= KITH_MAX_AXES;
  whereabouts farthest_allowed = may_wrap_later ? NEARBY : WITHIN;
  if (lattice->turned || locate_first(lattice, points) > farthest_allowed)
    return false;
  double *min = kith_alloc(&ctx->memory, 2 * (uint64_t)points->dim * sizeof *min);
  if (!min)
    return false;
  kith_points_summary summary = {.min = min, .max = min + points->dim};
  kith_points_summarize(ctx, points, &summary);
  whereabouts found = WITHIN;
  for (uint32_t i = 0; i < lattice->n; i++)
    found = farther(found, locate(lattice, i, summary.min[lattice->axis[i]], summary.max[lattice->axis[i]]));
  bool valid = summary.invalid_rows == 0 && points->n > 0;
  placed->unwrapped = found == NEARBY && may_wrap_later && valid;
  bool stay = found == WITHIN || placed->unwrapped;
  if (stay && valid && points->dim <= KITH_MAX_AXES)
    note_seen(lattice, &summary, points->dim, placed);
  kith_free(min);
  return stay;
}

static kith_status refuse_row(kith_context *ctx, const embedding *e, const char *name) {
  unsigned long long row = atomic_load(&e->first_fault);
  unsigned long long faults = atomic_load(&e->faults);
  double *x = e->to + row * e->space->dim;
  uint32_t column = 0;
  switch (embed_row(e->space, e->points, row, x)) {
  case KITH_ROW_ZERO:
    return kith_fail(
        ctx, KITH_ERR_POINTS,
        "%s: row %llu is all zeros, which has no direction, and %s compares directions (counted from 0; "
        "invalid rows in all: %llu); remove such rows, or skip them",
        name, row, kith_metric_name(e->space->metric), faults);
  case KITH_ROW_LATITUDE:
    return kith_fail(
        ctx, KITH_ERR_POINTS,
        "%s: row %llu has the latitude %.15g, but latitudes lie between -90 and 90: are the columns longitude "
        "and latitude, in this order? (counted from 0; invalid rows in all: %llu); remove such rows, or "
        "skip them",
        name, row, kith_points_get(e->points, row, 1), faults);
  case KITH_ROW_LOST:
    return kith_fail(
        ctx, KITH_ERR_POINTS,
        "%s: row %llu lies so many boxes away that its place in the box is lost (counted from 0; invalid "
        "rows in all: %llu); remove such rows, or skip them",
        name, row, faults);
  default:
    while (column + 1 < e->points->dim && isfinite(kith_points_get(e->points, row, column)))
      column++;
    return kith_fail(
        ctx, KITH_ERR_POINTS,
        "%s: row %llu, column %u is %g (counted from 0; invalid rows in all: %llu); remove such rows, or "
        "skip them",
        name, row, column, kith_points_get(e->points, row, column), faults);
  }
}

kith_status kith_space_embed(kith_context *ctx, const kith_space *space, const kith_points *points,
                             const kith_placing *how, kith_placed *placed) {
  enum { GRAIN = 4096 };
  *placed = (kith_placed){.points = *points};
  embedding e = {.space = space,
                 .points = points,
                 .loops = kith_space_loops_for(ctx->isa),
                 .shares = kith_shares(ctx, points->n, GRAIN)};
  if (!kith_space_is_embedded(space)) {
    if (space->lattice.n == 0)
      return KITH_OK;
    if (try_to_stay(ctx, &space->lattice, points, how->may_wrap_later, placed) || kith_cancelled(ctx))
      return kith_check_cancel(ctx);
  }
  uint64_t bytes = points->n * space->dim * sizeof(double);
  e.to = placed->owned = kith_alloc(&ctx->memory, bytes);
  if (!e.to)
    return kith_fail_memory(ctx, bytes, "the points as they lie in their space");
  atomic_store(&e.first_fault, UINT64_MAX);
  kith_each_unless_cancelled(ctx, e.shares, embed_share, &e);
  if (kith_cancelled(ctx))
    return kith_check_cancel(ctx);
  placed->points = kith_points_f64(e.to, points->n, space->dim);
  placed->turned = space->lattice.turned;
  return atomic_load(&e.faults) && !how->skip_invalid ? refuse_row(ctx, &e, how->name) : KITH_OK;
}
