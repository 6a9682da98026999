/* Cuts: see cuts.h. */
#include "engine/cpu/cuts.h"

#include <math.h>
#include <string.h>

/* Half of the arc that holds four points of a circle once their widest gap, a quarter or more, is left out. */
static const double FARTHEST_OF_FOUR = 0.375;

/* ---- rounding ---- */

/* Coordinates are rounded when they are lowered, and sides where they are no floats. Those that are relative to
 * an origin were rounded before, and are up to two sides from it then. */
static double spread_along(const kith_lane *lane, double side, double farthest) {
  bool is_float = side == (double)(float)side;
  return (kith_lane_is_narrow(lane) ? 2.5 * side : farthest) + (is_float ? 0 : side / 2);
}

/* Whether a tile lies behind its cut, at the high end of a side: then it is lowered, too. */
static bool is_lowered(const kith_lane *lane, uint32_t c, double side) {
  return lane->box[c] + lane->box[lane->tile.dim + c] > side;
}

double kith_cuts_spread(const kith_lane *lane, const kith_folds *for_tile, const kith_folds *for_fours) {
  double square = 0;
  for (uint32_t i = 0; i < for_tile->n; i++) {
    uint32_t c = for_tile->axis[i];
    double side = for_tile->side[i];
    double farthest = is_lowered(lane, c, side) ? side - lane->box[c] : lane->box[lane->tile.dim + c];
    double spread = spread_along(lane, side, farthest);
    square += spread * spread;
  }
  for (uint32_t i = 0; i < for_fours->n; i++) {
    double spread = spread_along(lane, for_fours->side[i], for_fours->side[i]);
    square += spread * spread;
  }
  return sqrt(square) * (1 + 0x1p-20);
}

/* ---- a cut for the tile ---- */

bool kith_cuts_one(const kith_lane *lane, double low, double high, double side) {
  return (high - low) / 2 + lane->predicate.reach * (1 + 0x1p-20) <= KITH_HALF_SIDE * side;
}

static float *staged_queries(const kith_lane *lane, uint32_t c) {
  return (float *)lane->query_coords + c * (size_t)KITH_TILE_QUERIES;
}

/* Cuts an axis in the middle between the tile and its image a side higher, or lower if the tile is lowered. */
static void cut_for_tile(kith_lane *lane, uint32_t c, double side) {
  kith_sieve *sieve = &lane->sieve;
  double low = lane->box[c];
  double high = lane->box[lane->tile.dim + c];
  double origin = kith_lane_is_narrow(lane) ? lane->origin[c] : 0;
  bool lowers = is_lowered(lane, c, side);
  float by = lane->periodic.cuts.by[c];
  sieve->behind[c] = (float)((low + high + (lowers ? -side : side)) / 2 - origin);
  if (!lowers)
    return;
  float *queries = staged_queries(lane, c);
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    queries[q] -= by;
  sieve->low[c] -= by;
  sieve->high[c] -= by;
}

/* ---- a cut for each four queries ---- */

/* A periodic axis, in the coordinates that are staged: from `low` on. */
typedef struct circle {
  float low, side;
  float *restrict queries;
  float *restrict behind;
} circle;

static inline float min_f32(float a, float b) { return a < b ? a : b; }
static inline float max_f32(float a, float b) { return a > b ? a : b; }

/* The middle of the widest gap between four points on a circle, perhaps a side higher. No branches: loops over
 * fours become vectors. */
static inline float gap_of_four(const float *x, float side) {
  float low_a = min_f32(x[0], x[1]), high_a = max_f32(x[0], x[1]);
  float low_b = min_f32(x[2], x[3]), high_b = max_f32(x[2], x[3]);
  float second = max_f32(low_a, low_b), third = min_f32(high_a, high_b);
  float sorted[4] = {min_f32(low_a, low_b), min_f32(second, third), max_f32(second, third),
                     max_f32(high_a, high_b)};
  float widest = side - (sorted[3] - sorted[0]);
  float middle = (sorted[3] + sorted[0] + side) / 2;
  for (int i = 0; i < 3; i++) {
    float gap = sorted[i + 1] - sorted[i];
    middle = gap > widest ? (sorted[i] + sorted[i + 1]) / 2 : middle;
    widest = max_f32(gap, widest);
  }
  return middle;
}

/* Sets the cuts of each four queries, and of those that are left over, or of all, each its own. */
static void set_cuts(const circle *axis, uint32_t n_queries, bool shared) {
  float fours[KITH_TILE_QUERIES / 4];
  uint32_t n = shared ? n_queries / 4 : 0;
  for (uint32_t i = 0; i < n; i++)
    fours[i] = gap_of_four(axis->queries + 4 * (size_t)i, axis->side);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < 4; k++)
      axis->behind[4 * i + k] = fours[i];
  for (uint32_t q = 4 * n; q < n_queries; q++)
    axis->behind[q] = axis->queries[q] + axis->side / 2;
}

static void lower_queries(circle axis, uint32_t n_queries) {
  float end = axis.low + axis.side;
  for (uint32_t q = 0; q < n_queries; q++) {
    float cut = axis.behind[q] - (axis.behind[q] >= end ? axis.side : 0);
    float x = axis.queries[q];
    axis.behind[q] = cut;
    axis.queries[q] = x > cut ? x - axis.side : x;
  }
}

static void cut_for_fours(kith_lane *lane, uint32_t c, double side) {
  kith_cuts *cuts = &lane->periodic.cuts;
  circle axis = {.low = kith_lane_is_narrow(lane) ? (float)-lane->origin[c] : 0,
                 .side = (float)side,
                 .queries = staged_queries(lane, c),
                 .behind = cuts->behind + c * (size_t)KITH_TILE_QUERIES};
  cuts->cut[c] = true;
  set_cuts(&axis, lane->tile.n_queries, cuts->shared);
  lower_queries(axis, lane->tile.n_queries);
  lane->sieve.low[c] = -INFINITY; /* candidates may be near wherever they are */
  lane->sieve.high[c] = INFINITY;
}

static bool can_share(const kith_lane *lane, const kith_folds *axes) {
  double least = lane->predicate.reach * (1 + 0x1p-20) / (KITH_HALF_SIDE - FARTHEST_OF_FOUR);
  bool can = true;
  for (uint32_t i = 0; i < axes->n; i++)
    can = can && axes->side[i] >= least;
  return can;
}

/* ---- both ---- */

static void lay_for_tile(kith_lane *lane, const kith_folds *axes) {
  if (!lane->sieves) /* it is what lowers candidates */
    kith_lane_make_sieve(lane);
  for (uint32_t c = 0; c < lane->tile.dim; c++)
    lane->sieve.behind[c] = INFINITY;
  for (uint32_t i = 0; i < axes->n; i++)
    cut_for_tile(lane, axes->axis[i], axes->side[i]);
}

static void lay_for_fours(kith_lane *lane, const kith_folds *axes) {
  kith_cuts *cuts = &lane->periodic.cuts;
  memset(cuts->cut, 0, lane->tile.dim * sizeof *cuts->cut);
  cuts->shared = can_share(lane, axes);
  for (uint32_t i = 0; i < axes->n; i++)
    cut_for_fours(lane, axes->axis[i], axes->side[i]);
}

static void choose_kernels(kith_lane *lane, bool cutting) {
  lane->tile.cuts = cutting ? &lane->periodic.cuts : NULL;
  lane->filter_kernels = cutting ? lane->cutting_kernels : lane->plain_kernels;
}

void kith_cuts_lay(kith_lane *lane, const kith_folds *for_tile, const kith_folds *for_fours) {
  choose_kernels(lane, for_fours->n > 0);
  lane->sieve.lowers = for_tile->n > 0;
  if (for_tile->n > 0)
    lay_for_tile(lane, for_tile);
  if (for_fours->n > 0)
    lay_for_fours(lane, for_fours);
}
