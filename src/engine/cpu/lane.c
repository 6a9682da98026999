/* Lanes: how a tile is tested, and staging. See lane.h. */
#include "engine/cpu/lane.h"

#include "engine/cpu/ego.h"
#include "engine/cpu/grid.h"
#include "engine/cpu/periodic.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Sieving candidates pays with so many queries to test each of them, in so many dimensions. */
enum { SIEVE_QUERIES = 8, SIEVE_DIMS = 2 };

uint32_t kith_lane_capacity(uint32_t dim) {
  size_t fit = (24 << 10) / (dim * sizeof(float)) / KITH_CANDIDATE_ALIGN * KITH_CANDIDATE_ALIGN;
  return (uint32_t)(fit < 64 ? 64 : fit > KITH_MOST_CANDIDATES ? KITH_MOST_CANDIDATES : fit);
}

/* Differences of coordinates that are rounded in the index are off by less. */
static double rounding_in_index(const kith_lane *lane) { return 0x1p-22 * lane->index_spread; }

/* Finds the box around the tile's queries, and puts the origin in its middle; returns their largest distance
 * from it, in the norm, or more. */
static double center_on_queries(kith_lane *lane) {
  const kith_index *index = lane->task->queries;
  double size = 0;
  for (uint32_t c = 0; c < index->dim; c++) {
    const double *column = (const double *)index->coords + c * index->stride;
    double min = INFINITY;
    double max = -INFINITY;
    for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
      double x = column[lane->queries.positions[q]];
      min = x < min ? x : min;
      max = x > max ? x : max;
    }
    lane->box[c] = min;
    lane->box[index->dim + c] = max;
    double origin = lane->origin[c] = min + (max / 2 - min / 2);
    double half = fmax(max - origin, origin - min); /* the origin is rounded */
    size = kith_norm_add(lane->predicate.norm, size, half);
  }
  lane->box_known = true;
  return kith_norm_distance(lane->predicate.norm, size) * (1 + 0x1p-20);
}

/* Every query has a limit of its own: the filter works with the largest of the tile, whose band holds for
 * smaller ones too; pairs are accepted untested within the smallest. */
static void take_limits(kith_lane *lane) {
  const kith_task *task = lane->task;
  double most = 0;
  double least = INFINITY;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
    double limit = lane->limits[q] = task->limits[lane->queries.ids[q]];
    lane->starts[q] = (float)-limit;
    most = limit > most ? limit : most;
    least = limit < least ? limit : least;
  }
  lane->predicate = kith_predicate_of(task->predicate->norm, most, lane->tile.dim);
  lane->least = least;
  lane->tile_accepts = lane->tile_accepts && least >= task->predicate->limit;
}

/* Decides how the tile is tested, and in what width it is staged. */
static void choose_test(kith_lane *lane) {
  lane->predicate = *lane->task->predicate;
  lane->least = lane->predicate.limit;
  if (lane->task->limits)
    take_limits(lane);
  lane->filter = lane->may_filter && lane->predicate.filter;
  lane->width = lane->index_width;
  lane->tile.truth = NULL;
  lane->tile.image = NULL;
  lane->tile.cuts = NULL;
  bool is_f64 = lane->index_width > sizeof(float);
  if (lane->filter && (is_f64 || lane->index_spread + lane->periodic.fold_spread > 0)) {
    lane->tile_spread = lane->index_spread + (is_f64 ? center_on_queries(lane) : 0);
    /* What folds add is known later where there is one pass (around.c). */
    double folds = lane->periodic.one_pass ? 0 : lane->periodic.fold_spread;
    lane->filter = kith_predicate_narrow(&lane->predicate, lane->tile.dim, lane->tile_spread + folds);
    if (lane->filter)
      lane->width = sizeof(float);
    lane->tile.truth = lane->filter ? &lane->truth : NULL;
  }
  assert(lane->filter || lane->index_spread == 0); /* rounded coordinates are for the filter only */
  kith_periodic_turn_home(lane);
  lane->needs_positions = lane->tile.truth || lane->periodic.ties || lane->lists;
}

/* Copies arrays of coordinates from an index to a buffer, narrower if the tile is. */
static void copy_coordinates(const kith_lane *lane, const kith_index *index, uint32_t begin, uint32_t end,
                             kith_copy copy) {
  copy.from = (const char *)index->coords + begin * lane->index_width;
  copy.from_stride = index->stride * lane->index_width;
  copy.bytes = (end - begin) * lane->index_width;
  copy.arrays = index->dim;
  if (kith_lane_is_narrow(lane))
    lane->table->narrow(&copy, lane->origin);
  else
    lane->table->copy(&copy);
}

/* Copies the coordinates of the tile's queries: all together if they are neighbours in the index. */
void kith_lane_stage_queries(kith_lane *lane) {
  const kith_index *index = lane->task->queries;
  const kith_query_tile *queries = &lane->queries;
  uint32_t n = lane->tile.n_queries;
  kith_copy copy = {.to = lane->query_coords, .to_stride = KITH_TILE_QUERIES * lane->width};
  if (n == queries->end - queries->begin) {
    copy_coordinates(lane, index, queries->begin, queries->end, copy);
    return;
  }
  for (uint32_t c = 0; c < index->dim; c++)
    for (uint32_t q = 0; q < n; q++) {
      const char *from =
          (const char *)index->coords + (c * index->stride + queries->positions[q]) * lane->index_width;
      char *to = copy.to + c * copy.to_stride + q * lane->width;
      if (kith_lane_is_narrow(lane))
        *(float *)(void *)to = (float)(*(const double *)(const void *)from - lane->origin[c]);
      else
        memcpy(to, from, lane->width);
    }
}

/* The box around the staged queries, along the columns or along directions. */
static void bound_queries(kith_lane *lane) {
  uint32_t dim = lane->tile.dim;
  const float *columns = lane->query_coords;
  float directions[KITH_SLANT_TO * KITH_TILE_QUERIES];
  if (lane->slanted > 0) {
    memcpy(directions, columns, dim * (size_t)KITH_TILE_QUERIES * sizeof *columns);
    lane->table->slant(directions, KITH_TILE_QUERIES, lane->tile.n_queries, dim);
    columns = directions;
  }
  for (uint32_t c = 0; c < dim; c++)
    lane->table->bounds(columns + c * (size_t)KITH_TILE_QUERIES, lane->tile.n_queries, &lane->sieve.low[c],
                        &lane->sieve.high[c]);
}

/* Finds the box to sieve by.
 *
 * Let a be a query and b a candidate that belong together, as staged, and y the point of the box nearest to b:
 * then |b_c - y_c| <= |b_c - a_c| in every dimension, as a lies in the box. The sieve computes the size of b -
 * y in float like the filter does that of b - a, and without the limit in the sum. So what is shown for the
 * filter (docs/exactness.md) holds here: rounding lifts the sum to at most limit + band. A second band pays for
 * rounding the limit itself. Along directions, whose differences are no larger than those of their columns
 * together, the largest of each group are added up; sums that make them are rounded, too. */
void kith_lane_make_sieve(kith_lane *lane) {
  lane->sieves = true;
  bound_queries(lane);
  kith_lane_limit_sieve(lane);
}

void kith_lane_limit_sieve(kith_lane *lane) {
  lane->sieve.limit =
      (float)(lane->predicate.limit + 2 * (double)lane->predicate.band + KITH_SLANT_ROUNDING * lane->slanted);
}

void kith_lane_test_exactly(kith_lane *lane) {
  assert(lane->index_spread == 0); /* rounded coordinates are for the filter only */
  lane->filter = lane->sieves = false;
  lane->width = lane->index_width;
  lane->tile.truth = NULL;
  kith_lane_stage_queries(lane);
}

void kith_lane_widen_near_box(kith_lane *lane) {
  for (uint32_t c = 0; c < lane->tile.dim && lane->index_spread > 0; c++) {
    lane->periodic.near_box[c] -= rounding_in_index(lane);
    lane->periodic.near_box[lane->tile.dim + c] += rounding_in_index(lane);
  }
}

void kith_lane_choose_sieve(kith_lane *lane) {
  lane->sieve.lowers = false;
  lane->sieves = lane->filter && lane->tile.dim >= SIEVE_DIMS && lane->tile.n_queries >= SIEVE_QUERIES;
  if (lane->sieves)
    kith_lane_make_sieve(lane);
}

void kith_lane_begin(kith_lane *lane) {
  if (lane->grid)
    lane->grid->row = UINT32_MAX;
  if (lane->ego)
    lane->ego->next = lane->ego->n_tiles = 0;
}

uint32_t kith_lane_next_tile(kith_lane *lane, uint32_t at, const kith_work *work) {
  at = lane->ego ? kith_ego_next_tile(lane, at, work) : kith_grid_next_tile(lane, at, work);
  kith_lane_open_tile(lane);
  return at;
}

void kith_lane_open_tile(kith_lane *lane) {
  lane->tile.n_candidates = 0;
  lane->box_known = false;
  choose_test(lane);
  kith_lane_stage_queries(lane);
  kith_lane_choose_sieve(lane);
  kith_periodic_set_up(lane);
}

kith_run kith_lane_run(kith_lane *lane, uint32_t r) {
  return lane->ego ? kith_ego_tile_run(lane, r) : kith_grid_tile_run(lane, r);
}

/* The box around the queries of the tile, in the coordinates of the index. */
void kith_lane_find_box(kith_lane *lane) {
  const kith_index *index = lane->task->queries;
  if (lane->box_known)
    return;
  lane->box_known = true;
  bool knows = lane->sieves && lane->slanted == 0;
  if (knows && lane->index_width == sizeof(float)) { /* staged as they are, and their box is known */
    for (uint32_t c = 0; c < index->dim; c++) {
      lane->box[c] = lane->sieve.low[c];
      lane->box[index->dim + c] = lane->sieve.high[c];
    }
    return;
  }
  const uint32_t *positions = lane->queries.positions;
  for (uint32_t c = 0; c < index->dim; c++) {
    const float *floats = (const float *)index->coords + c * index->stride;
    const double *doubles = (const double *)index->coords + c * index->stride;
    double low = INFINITY;
    double high = -INFINITY;
    for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
      double x = index->dtype == KITH_F32 ? (double)floats[positions[q]] : doubles[positions[q]];
      low = x < low ? x : low;
      high = x > high ? x : high;
    }
    lane->box[c] = low;
    lane->box[index->dim + c] = high;
  }
}

/* Whether all points of two boxes belong together. The largest difference in each dimension goes through the
 * operations of the definition, in its order. Rounding is monotone, so no pair has a larger size: this needs no
 * margin, and is right for eps = 0 too. Where coordinates are rounded in the index, differences may be larger
 * by `rounding`. */
static bool boxes_belong(const double *a, const double *b, const kith_lane *lane) {
  uint32_t dim = lane->tile.dim;
  double rounding = rounding_in_index(lane);
  double far = 0;
  for (uint32_t c = 0; c < dim; c++)
    far = kith_norm_add(lane->predicate.norm, far, fmax(a[dim + c] - b[c], b[dim + c] - a[c]) + rounding);
  return far <= lane->least;
}

bool kith_lane_crowd(kith_lane *lane, uint32_t begin, uint32_t end, kith_crowd *crowd) {
  const kith_index *index = lane->task->candidates;
  if (index->n_crowds == 0 || end - begin < KITH_CROWD || lane->periodic.ties)
    return false;
  uint32_t low = 0; /* the first crowd that ends behind begin */
  uint32_t high = index->n_crowds;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (index->crowds[middle].end <= begin)
      low = middle + 1;
    else
      high = middle;
  }
  kith_lane_find_box(lane);
  for (; low < index->n_crowds && index->crowds[low].begin < end; low++)
    if (boxes_belong(lane->box, index->crowd_box + (size_t)low * 2 * index->dim, lane)) {
      *crowd = index->crowds[low];
      crowd->begin = crowd->begin < begin ? begin : crowd->begin;
      crowd->end = crowd->end > end ? end : crowd->end;
      return true;
    }
  return false;
}

/* Candidates that are lowered when they are staged go through the sieve, which is to drop none. */
static void stage_lowered(kith_lane *lane, uint32_t begin, uint32_t end) {
  float limit = lane->sieve.limit;
  lane->sieve.limit = INFINITY;
  kith_lane_sieve(lane, begin, end);
  lane->sieve.limit = limit;
}

void kith_lane_stage(kith_lane *lane, uint32_t begin, uint32_t end) {
  const kith_index *index = lane->task->candidates;
  kith_tile *tile = &lane->tile;
  if (lane->sieve.lowers) {
    stage_lowered(lane, begin, end);
    return;
  }
  kith_copy copy = {.to = (char *)lane->candidate_coords + tile->n_candidates * lane->width,
                    .to_stride = tile->stride * lane->width};
  copy_coordinates(lane, index, begin, end, copy);
  if (lane->needs_positions)
    lane->table->number(lane->candidate_positions + tile->n_candidates, begin, end - begin);
  if (lane->needs_ids) {
    copy = (kith_copy){.to = (char *)(lane->candidate_ids + tile->n_candidates),
                       .from = (const char *)(index->ids + begin),
                       .bytes = (end - begin) * sizeof(uint32_t),
                       .arrays = 1};
    lane->table->copy(&copy);
  }
  tile->n_candidates += end - begin;
}

void kith_lane_sieve(kith_lane *lane, uint32_t begin, uint32_t end) {
  const kith_index *index = lane->task->candidates;
  uint32_t staged = lane->tile.n_candidates;
  kith_sieve *sieve = &lane->sieve;
  sieve->from = (const char *)index->coords + begin * lane->index_width;
  sieve->n = end - begin;
  sieve->to = (float *)lane->candidate_coords + staged;
  sieve->ids = lane->needs_ids ? index->ids + begin : NULL;
  sieve->ids_to = lane->candidate_ids + staged;
  sieve->position = begin;
  sieve->positions_to = lane->needs_positions || lane->orders ? lane->candidate_positions + staged : NULL;
  lane->tile.n_candidates = staged + lane->exact_kernels->sieve(sieve, lane->tile.dim);
}

/* Always a whole vector of padding, wherever the last candidate is: there is room, and the loops unroll. */
void kith_lane_seal(kith_lane *lane) {
  const kith_tile *tile = &lane->tile;
  for (uint32_t c = 0; c < tile->dim; c++) {
    size_t at = c * (size_t)tile->stride + tile->n_candidates;
    if (lane->width == sizeof(float))
      for (uint32_t i = 0; i < KITH_CANDIDATE_ALIGN; i++)
        ((float *)lane->candidate_coords)[at + i] = INFINITY;
    else
      for (uint32_t i = 0; i < KITH_CANDIDATE_ALIGN; i++)
        ((double *)lane->candidate_coords)[at + i] = INFINITY;
  }
}
