/* Images: see images.h. */
#include "engine/cpu/images.h"

#include "engine/cpu/around.h"
#include "engine/cpu/cuts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- one of two images ---- */

/* Coordinate c of a position of an index. */
static double coordinate(const kith_index *index, uint32_t c, uint32_t position) {
  size_t at = c * index->stride + position;
  return index->dtype == KITH_F32 ? (double)((const float *)index->coords)[at]
                                  : ((const double *)index->coords)[at];
}

/* The size of a pair in an image. */
static double image_size(const kith_lane *lane, uint32_t query, uint32_t candidate, const kith_shift *shift) {
  const kith_lattice *lattice = &lane->unfolded;
  double size = 0;
  for (uint32_t c = 0, i = 0; c < lane->tile.dim; c++) {
    double t = coordinate(lane->task->queries, c, query) - coordinate(lane->task->candidates, c, candidate);
    if (i < lattice->n && lattice->axis[i] == c)
      t += shift->by[i++];
    size += t * t;
  }
  return size;
}

/* Whether no other image of a pair is nearer, and no equally near one comes first. */
static bool is_nearest(const kith_image *image, uint32_t q, uint32_t j, double size) {
  const kith_lane *lane = image->owner;
  const kith_lattice *lattice = &lane->unfolded;
  uint32_t query = lane->queries.positions[q];
  uint32_t candidate = lane->candidate_positions[j];
  kith_differences differences = {.reach = lane->predicate.reach};
  for (uint32_t i = 0; i < lattice->n; i++)
    differences.low[i] = differences.high[i] = coordinate(lane->task->queries, lattice->axis[i], query) -
                                               coordinate(lane->task->candidates, lattice->axis[i], candidate);
  kith_shift_walk walk;
  bool more = kith_shift_first(lattice, &differences, &walk);
  for (; more; more = kith_shift_next(lattice, &differences, &walk)) {
    if (kith_shift_equals(lattice, &walk.shift, &lane->turned))
      continue;
    double other = image_size(lane, query, candidate, &walk.shift);
    if (other < size || (other == size && kith_shift_before(lattice, &walk.shift, &lane->turned)))
      return false;
  }
  return true;
}

/* The filter may accept only what no second image can belong to: below -band - 2 (limit - doubt) sizes are
 * below the doubt. Where that would leave too much undecided, there is no filter. */
static void widen_band(kith_lane *lane) {
  double margin = lane->predicate.limit - lane->image.doubt;
  if (!lane->filter || margin <= 0)
    return;
  if (margin > 0x1p-10 * lane->predicate.limit) {
    lane->filter = false;
    return;
  }
  lane->predicate.band = (float)((double)lane->predicate.band * (1 + 0x1p-20) + 2 * margin);
}

/* Sets up a tile for pairs that may belong in two images: none is accepted without asking. */
static void expect_ties(kith_lane *lane) {
  widen_band(lane);
  if (!lane->filter)
    lane->width = lane->index_width;
  lane->tile.truth = lane->filter ? &lane->truth : NULL;
  lane->tile_accepts = false;
}

void kith_images_turn_home(kith_lane *lane) {
  if (!lane->ties && lane->image.folds.n == 0)
    return;
  memset(&lane->turned, 0, sizeof lane->turned);
  memset(lane->shift, 0, lane->tile.dim * sizeof *lane->shift);
  lane->tile.image = &lane->image;
  if (lane->ties)
    expect_ties(lane);
}

/* ---- folds ---- */

/* Whether a tile meets its candidates along an axis whatever their image: all images at once, or no run ends
 * there, since there is one cell, or two. */
static bool can_fold(const kith_lane *lane, uint32_t axis, double side) {
  const kith_grid *grid = lane->task->candidates->grid;
  uint32_t j = kith_grid_dimension(grid, axis);
  bool meets_all = lane->one_pass || j == grid->k || grid->cells[j] <= 2;
  return meets_all && kith_folds_suit(side, lane->task->predicate->reach);
}

/* Divides the axes of a box without angles into those that are folded and those with images to turn to. */
static void choose_folds(kith_lane *lane) {
  const kith_lattice *whole = &lane->task->space->lattice;
  lane->unfolded.n = 0;
  for (uint32_t i = 0; i < whole->n; i++) {
    double side = whole->vector[i][i];
    if (can_fold(lane, whole->axis[i], side)) {
      kith_folds_add(&lane->image.folds, whole, i);
      continue;
    }
    uint32_t n = lane->unfolded.n++;
    lane->unfolded.axis[n] = whole->axis[i];
    lane->unfolded.vector[n][n] = side;
  }
  double squares = 0;
  for (uint32_t i = 0; i < lane->image.folds.n; i++)
    squares += lane->image.folds.side[i] * lane->image.folds.side[i];
  lane->fold_spread = kith_folds_spread(squares);
}

/* The box of the tile is one of staged coordinates, and wanted as they were. */
void kith_images_set_up(kith_lane *lane) {
  if (lane->image.folds.n == 0 || !lane->filter)
    return;
  kith_lane_find_box(lane);
  kith_folds none = {0};
  kith_cuts_lay(lane, &none, &lane->image.folds);
}

/* The box that says which candidates are looked up, along folded axes. */
static void open_near_box(kith_lane *lane) {
  const kith_folds *folds = &lane->image.folds;
  for (uint32_t i = 0; i < folds->n; i++) {
    lane->near_box[folds->axis[i]] = 0;
    lane->near_box[lane->tile.dim + folds->axis[i]] = folds->side[i];
  }
}

void kith_images_open(kith_lane *lane) {
  double limit = lane->task->predicate->limit;
  lane->image = (kith_image){.shift = lane->shift, .is_nearest = is_nearest, .owner = lane};
  lane->unfolded = lane->task->space->lattice;
  if (lane->unfolded.n == 0)
    return;
  lane->one_pass = kith_around_suits(lane->task);
  lane->image.doubt = kith_lattice_doubt(&lane->unfolded, limit);
  lane->ties = lane->image.doubt < limit;
  if (!lane->ties && !lane->unfolded.skewed)
    choose_folds(lane);
}

/* ---- passes ---- */

/* Puts the origin close to the moved queries of a pass; returns how far they are from it at most, and what
 * rounding adds: see docs/exactness.md. float32 coordinates stay as they are: their origin is 0. */
static double center_on_moved(kith_lane *lane) {
  uint32_t dim = lane->tile.dim;
  const kith_lattice *lattice = &lane->unfolded;
  bool is_f64 = lane->index_width > sizeof(float);
  double square = 0;
  double rounding = 0;
  for (uint32_t c = 0, i = 0; c < dim; c++) {
    double low = lane->near_box[c] + lane->shift[c];
    double high = lane->near_box[dim + c] + lane->shift[c];
    double origin = lane->origin[c] = is_f64 ? low + (high / 2 - low / 2) : 0;
    double above = fabs(high - origin);
    double below = fabs(origin - low);
    double half = above > below ? above : below;
    square += half * half;
    if (i < lattice->n && lattice->axis[i] == c) {
      rounding += lattice->vector[i][i] + fabs(lane->shift[c]);
      i++;
    }
  }
  return sqrt(square) * (1 + 0x1p-20) + 0x1p-26 * rounding + lane->spread + lane->fold_spread;
}

/* Coordinate c of a query as it is staged. Queries that are not near may lie anywhere along an open axis, but
 * never at infinity, where padding is: what the filter adds up must be a number. */
static float staged(const kith_lane *lane, uint32_t c, double x) {
  const double FARTHEST = 0x1p126;
  double moved = (x + lane->shift[c]) - lane->origin[c];
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
  const kith_lattice *lattice = &lane->unfolded;
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
  for (uint32_t i = 0; i < lane->unfolded.n; i++) {
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
      double x = coordinate(lane->task->queries, c, lane->queries.positions[q]);
      low = x < low ? x : low;
      high = x > high ? x : high;
    }
    lane->near_box[c] = low;
    lane->near_box[dim + c] = high;
  }
}

/* The same as it is staged, to sieve by: staging keeps the order of coordinates. */
static void sieve_by_near(kith_lane *lane) {
  uint32_t dim = lane->tile.dim;
  for (uint32_t c = 0; c < dim; c++) {
    lane->sieve.low[c] = staged(lane, c, lane->near_box[c]);
    lane->sieve.high[c] = staged(lane, c, lane->near_box[dim + c]);
  }
}

/* Makes the tile ready to meet the images of candidates under lane->turned: all of its queries, though only
 * those in the near box have any within reach. */
static void stage_image(kith_lane *lane) {
  lane->filter =
      lane->may_filter && kith_predicate_narrow(&lane->predicate, lane->tile.dim, center_on_moved(lane));
  assert(lane->filter || lane->spread == 0); /* rounded coordinates are for the filter only */
  if (lane->ties)
    widen_band(lane);
  lane->width = lane->filter ? sizeof(float) : lane->index_width;
  lane->tile.truth = lane->filter ? &lane->truth : NULL;
  lane->tile.image = &lane->image;
  lane->tile.n_candidates = 0;
  lane->needs_positions = lane->filter || lane->ties || lane->lists;
  if (lane->filter)
    stage_moved(lane);
  else
    kith_lane_stage_queries(lane);
  kith_lane_choose_sieve(lane);
}

/* Turns to an image, for some of the queries. The near box has three readers, one after the other: staging,
 * whose origin is its middle; the sieve, for which it is wider by what rounding in the index may have moved;
 * and the search for candidates, which wants all of a folded axis. */
static void turn_to(kith_lane *lane, const kith_shift *shift, uint64_t near) {
  const kith_lattice *lattice = &lane->unfolded;
  lane->turned = *shift;
  memset(lane->shift, 0, lane->tile.dim * sizeof *lane->shift);
  for (uint32_t i = 0; i < lattice->n; i++)
    lane->shift[lattice->axis[i]] = shift->by[i];
  if (near == all_queries(lane))
    memcpy(lane->near_box, lane->box, 2 * (size_t)lane->tile.dim * sizeof *lane->box);
  else
    bound_near(lane, near);
  stage_image(lane);
  kith_lane_widen_near_box(lane);
  if (lane->sieves)
    sieve_by_near(lane);
  kith_images_set_up(lane);
  open_near_box(lane);
}

void kith_images_each(kith_lane *lane, bool positive, void (*meet)(void *user), void *user) {
  const kith_lattice *lattice = &lane->unfolded;
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
