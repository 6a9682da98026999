/* Images: see images.h. */
#include "engine/cpu/images.h"

#include "engine/cpu/periodic.h"
#include "engine/cpu/ties.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Puts the origin close to the moved queries of a pass; returns how far they are from it at most, and what
 * rounding adds: see docs/exactness.md. float32 coordinates stay as they are: their origin is 0. */
static double center_on_moved(kith_lane *lane) {
  uint32_t dim = lane->tile.dim;
  const kith_lattice *lattice = &lane->periodic.unfolded;
  bool is_f64 = lane->index_width > sizeof(float);
  double square = 0;
  double rounding = 0;
  for (uint32_t c = 0, i = 0; c < dim; c++) {
    double low = lane->periodic.near_box[c] + lane->periodic.shift[c];
    double high = lane->periodic.near_box[dim + c] + lane->periodic.shift[c];
    double origin = lane->origin[c] = is_f64 ? low + (high / 2 - low / 2) : 0;
    double above = fabs(high - origin);
    double below = fabs(origin - low);
    double half = above > below ? above : below;
    square += half * half;
    if (i < lattice->n && lattice->axis[i] == c) {
      rounding += lattice->vector[i][i] + fabs(lane->periodic.shift[c]);
      i++;
    }
  }
  return sqrt(square) * (1 + 0x1p-20) + 0x1p-26 * rounding + lane->index_spread + lane->periodic.fold_spread;
}

/* Coordinate c of a query as it is staged. Queries that are not near may lie anywhere along an open axis, but
 * never at infinity, where padding is: what the filter adds up must be a number. */
static float staged(const kith_lane *lane, uint32_t c, double x) {
  const double FARTHEST = 0x1p126;
  double moved = (x + lane->periodic.shift[c]) - lane->origin[c];
  moved = moved < FARTHEST ? moved : FARTHEST; /* unlike fmin, one instruction */
  return (float)(moved > -FARTHEST ? moved : -FARTHEST);
}

/* Coordinate c of all queries. */
static void read_queries(const kith_lane *lane, uint32_t c, double *values) {
  const kith_index *index = lane->task->queries;
  const uint32_t *positions = lane->queries.positions;
  const float *floats = (const float *)index->coords + c * index->stride;
  const double *doubles = (const double *)index->coords + c * index->stride;
  uint32_t n = lane->tile.n_queries;
  if (index->dtype == KITH_F32)
    for (uint32_t q = 0; q < n; q++)
      values[q] = (double)floats[positions[q]];
  else
    for (uint32_t q = 0; q < n; q++)
      values[q] = doubles[positions[q]];
}

/* The queries, moved, as floats. */
static void stage_moved(kith_lane *lane) {
  for (uint32_t c = 0; c < lane->tile.dim; c++) {
    double values[KITH_TILE_QUERIES];
    float *to = (float *)lane->query_coords + c * (size_t)KITH_TILE_QUERIES;
    read_queries(lane, c, values);
    for (uint32_t q = 0; q < lane->tile.n_queries; q++)
      to[q] = staged(lane, c, values[q]);
  }
}

/* All queries of a tile, as bits. It has one, but analysers do not know that. */
static uint64_t all_queries(const kith_lane *lane) {
  return UINT64_MAX >> ((KITH_TILE_QUERIES - lane->tile.n_queries) % 64);
}

/* The queries of a tile that may have candidates in an image, as bits, axis by axis. A walk through the images
 * comes back to the same shifts along an axis, one forwards and one backwards: the last of each is remembered.
 */
typedef struct near_queries {
  struct {
    double by;
    uint64_t bits;
  } known[KITH_MAX_AXES][2];
} near_queries;

/* Those that, moved along axis i, come within reach of the brick, and a little more. */
static uint64_t near_along(const kith_lane *lane, uint32_t i, double by) {
  const kith_lattice *lattice = &lane->periodic.unfolded;
  double side = lattice->vector[i][i];
  double reach = lane->predicate.reach * (1 + 0x1p-20) + 0x1p-20 * side;
  uint64_t bits = 0;
  double values[KITH_TILE_QUERIES];
  read_queries(lane, lattice->axis[i], values);
  for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
    double x = values[q] + by;
    bits |= (uint64_t)((x >= -reach) & (x <= side + reach)) << q;
  }
  return bits;
}

static uint64_t near_in_image(const kith_lane *lane, const kith_shift *shift, near_queries *near) {
  uint64_t bits = all_queries(lane);
  for (uint32_t i = 0; i < lane->periodic.unfolded.n; i++) {
    if (shift->by[i] == 0)
      continue;
    int slot = shift->by[i] > 0;
    if (near->known[i][slot].by != shift->by[i]) {
      near->known[i][slot].by = shift->by[i];
      near->known[i][slot].bits = near_along(lane, i, shift->by[i]);
    }
    bits &= near->known[i][slot].bits;
  }
  return bits;
}

/* The box around the queries of a pass, in the coordinates of the index. */
static void bound_near(kith_lane *lane, uint64_t near) {
  uint32_t dim = lane->tile.dim;
  for (uint32_t c = 0; c < dim; c++) {
    double low = INFINITY;
    double high = -INFINITY;
    for (uint64_t left = near; left; left &= left - 1) {
      uint32_t q = (uint32_t)__builtin_ctzll(left);
      double x = kith_index_coordinate(lane->task->queries, c, lane->queries.positions[q]);
      low = x < low ? x : low;
      high = x > high ? x : high;
    }
    lane->periodic.near_box[c] = low;
    lane->periodic.near_box[dim + c] = high;
  }
}

/* The same as it is staged, to sieve by: staging keeps the order of coordinates. */
static void sieve_by_near(kith_lane *lane) {
  uint32_t dim = lane->tile.dim;
  for (uint32_t c = 0; c < dim; c++) {
    lane->sieve.low[c] = staged(lane, c, lane->periodic.near_box[c]);
    lane->sieve.high[c] = staged(lane, c, lane->periodic.near_box[dim + c]);
  }
}

/* Makes the tile ready to meet the images of candidates under lane->periodic.turned: all of its queries, though
 * only those in the near box have any within reach. */
static void stage_image(kith_lane *lane) {
  lane->filter =
      lane->may_filter && kith_predicate_narrow(&lane->predicate, lane->tile.dim, center_on_moved(lane));
  assert(lane->filter || lane->index_spread == 0); /* rounded coordinates are for the filter only */
  if (lane->periodic.ties)
    kith_ties_widen_band(lane);
  lane->width = lane->filter ? sizeof(float) : lane->index_width;
  lane->tile.truth = lane->filter ? &lane->truth : NULL;
  lane->tile.image = &lane->periodic.image;
  lane->tile.n_candidates = 0;
  lane->needs_positions = lane->filter || lane->periodic.ties || lane->lists;
  if (lane->filter)
    stage_moved(lane);
  else
    kith_lane_stage_queries(lane);
  kith_lane_choose_sieve(lane);
}

/* The box that says which candidates are looked up, along folded axes. */
static void open_near_box(kith_lane *lane) {
  const kith_folds *folds = &lane->periodic.image.folds;
  double *near_box = lane->periodic.near_box;
  for (uint32_t i = 0; i < folds->n; i++) {
    near_box[folds->axis[i]] = 0;
    near_box[lane->tile.dim + folds->axis[i]] = folds->side[i];
  }
}

/* Turns to an image, for some of the queries. The near box has three readers, one after the other: staging,
 * whose origin is its middle; the sieve, for which it is wider by what rounding in the index may have moved;
 * and the search for candidates, which wants all of a folded axis. */
static void turn_to(kith_lane *lane, const kith_shift *shift, uint64_t near) {
  kith_periodic *periodic = &lane->periodic;
  const kith_lattice *lattice = &periodic->unfolded;
  periodic->turned = *shift;
  memset(periodic->shift, 0, lane->tile.dim * sizeof *periodic->shift);
  for (uint32_t i = 0; i < lattice->n; i++)
    periodic->shift[lattice->axis[i]] = shift->by[i];
  if (near == all_queries(lane))
    memcpy(periodic->near_box, lane->box, 2 * (size_t)lane->tile.dim * sizeof *lane->box);
  else
    bound_near(lane, near);
  stage_image(lane);
  kith_lane_widen_near_box(lane);
  if (lane->sieves)
    sieve_by_near(lane);
  kith_periodic_cut_folds(lane);
  open_near_box(lane);
}

void kith_images_each(kith_lane *lane, bool positive, void (*meet)(void *user), void *user) {
  const kith_lattice *lattice = &lane->periodic.unfolded;
  uint32_t dim = lane->tile.dim;
  kith_lane_find_box(lane);
  kith_differences differences = {.reach = lane->predicate.reach};
  bool interior = true;
  for (uint32_t i = 0; i < lattice->n; i++) {
    double low = lane->box[lattice->axis[i]];
    double high = lane->box[dim + lattice->axis[i]];
    differences.low[i] = low - lattice->vector[i][i];
    differences.high[i] = high;
    interior = interior && kith_lattice_is_interior(lattice, i, low, high, lane->predicate.reach);
  }
  if (interior)
    return;
  kith_shift_walk walk;
  near_queries known = {0};
  bool more = kith_shift_first(lattice, &differences, &walk);
  for (; more; more = kith_shift_next(lattice, &differences, &walk)) {
    int sign = kith_shift_sign(lattice, &walk.shift);
    if (sign == 0 || (positive && sign < 0))
      continue;
    uint64_t near = near_in_image(lane, &walk.shift, &known);
    if (near == 0)
      continue;
    turn_to(lane, &walk.shift, near);
    meet(user);
  }
}
