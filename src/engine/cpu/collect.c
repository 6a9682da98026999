/* Rows that are found in the lane's buffers first, whatever their lengths: collected, they go to the pool of
 * the work as rows; where every pair is met once, as pairs to the list of the lane. */
#include "engine/cpu/row.h"
#include "engine/cpu/visit.h"

#include "base/bypass.h"

#include <string.h>

static uint32_t *collected_row(const kith_lane *lane, uint32_t q) {
  return lane->collected + q * ((size_t)lane->collect_limit + lane->capacity);
}

static uint32_t collected_length(const kith_lane *lane, uint32_t q) {
  return (uint32_t)(lane->rows.next[q] - collected_row(lane, q));
}

static void open_collected(kith_lane *lane) {
  memset(lane->rows.d2, 0, sizeof lane->rows.d2);
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    lane->rows.next[q] = collected_row(lane, q);
}

/* ---- pairs ----------------------------------------------------------------------------------------------- */

/* Adds a pair of positions to the list of the lane. */
static void list_pair(kith_visit *v, uint32_t position, uint32_t other) {
  const uint32_t *ids = v->lane->task->queries->ids;
  bool swap = v->lane->task->half && ids[other] < ids[position];
  kith_pairs_add(v->work->found, v->lane_number, swap ? other : position, swap ? position : other);
}

static void list_collected(kith_visit *v) {
  const kith_lane *lane = v->lane;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
    uint32_t n = collected_length(lane, q);
    const uint32_t *row = collected_row(lane, q);
    for (uint32_t i = 0; i < n; i++)
      list_pair(v, lane->queries.positions[q], row[i]);
    v->tally->pairs += lane->task->half ? n : 2 * (uint64_t)n;
  }
  open_collected(v->lane);
}

/* Positions take the place of ids, so that of the pairs among the tile's own queries each is met once. The lane
 * is prepared for that (`lists`): it notes positions of candidates, needs no ids of them, and has no half of
 * its own. */
void kith_pairs_tile(kith_visit *v) {
  kith_lane *lane = v->lane;
  if (atomic_load(&v->work->found->overflow))
    return;
  open_collected(lane);
  lane->tile.query_ids = lane->queries.positions;
  lane->tile.candidate_ids = lane->candidate_positions;
  lane->tile.half = true;
  kith_visit_itself(v);
  lane->tile.half = false;
  kith_visit_behind(v);
  list_collected(v);
  for (uint32_t q = 0; q < lane->tile.n_queries && !lane->task->drop_self; q++) {
    list_pair(v, lane->queries.positions[q], lane->queries.positions[q]);
    v->tally->pairs++;
  }
  lane->tile.query_ids = lane->queries.ids;
  lane->tile.candidate_ids = lane->candidate_ids;
}

/* ---- rows ------------------------------------------------------------------------------------------------ */

/* Takes room for the tile's rows from the pool, and notes where they begin; false: there is none left. */
static bool reserve_rows(kith_visit *v, const uint32_t *lengths, uint64_t *begin) {
  kith_lane *lane = v->lane;
  uint64_t pairs = 0;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    pairs += lengths[q];
  *begin = kith_pool_reserve(v->work->pool, pairs);
  if (*begin == KITH_NO_ROOM)
    return false;
  uint64_t at = *begin;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++) {
    v->work->degrees[lane->queries.ids[q]] = at << 32 | lengths[q];
    at += lengths[q];
  }
  v->tally->pairs += pairs;
  return true;
}

static void order_collected(kith_visit *v, uint32_t *row, uint32_t length) {
  if (v->lane->task->sorted)
    kith_row_order(v->lane->table, row, NULL, length);
}

/* The lengths of the tile's rows: lane->degrees. Of a tile that may have met its candidates already. */
static void count_collected(kith_visit *v) {
  kith_lane *lane = v->lane;
  const uint32_t *self = lane->tile.self;
  kith_lane_open_tile(lane);
  lane->tile.self = NULL;
  v->operation = KITH_DO_DEGREES;
  kith_visit_degrees(v);
  v->operation = KITH_DO_COLLECT;
  lane->tile.self = self;
}

/* Fills rows of these lengths, one behind the other. */
static void fill_collected(kith_visit *v, uint32_t *row) {
  kith_lane *lane = v->lane;
  kith_lane_open_tile(lane);
  uint32_t *next = row;
  for (uint32_t q = 0; q < lane->tile.n_queries; next += lane->degrees[q++])
    lane->rows.next[q] = next;
  memset(lane->self, 0xFF, sizeof lane->self);
  v->operation = KITH_DO_FILL;
  kith_visit_all(v);
  v->operation = KITH_DO_COLLECT;
  for (uint32_t q = 0; q < lane->tile.n_queries; row += lane->degrees[q++])
    order_collected(v, row, lane->degrees[q]);
}

/* A tile with long rows, or after one: counts them, then fills them where they belong in the pool. */
static void collect_long_rows(kith_visit *v) {
  kith_lane *lane = v->lane;
  count_collected(v);
  v->too_long = false;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    v->too_long = v->too_long || lane->degrees[q] > lane->collect_limit;
  uint64_t at;
  if (reserve_rows(v, lane->degrees, &at))
    fill_collected(v, v->work->pool->ids + at);
}

/* Looks for rows in the lane's buffers, then moves them to the pool. */
static void collect_short_rows(kith_visit *v) {
  kith_lane *lane = v->lane;
  open_collected(lane);
  memset(lane->self, 0xFF, sizeof lane->self);
  kith_visit_all(v);
  if (v->too_long)
    return;
  uint32_t lengths[KITH_TILE_QUERIES] = {0};
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    lengths[q] = collected_length(lane, q);
  const kith_pool *pool = v->work->pool;
  bool bypasses = kith_bypass_pays(pool->capacity, lane->task->queries->id_end);
  uint64_t at;
  if (!reserve_rows(v, lengths, &at))
    return;
  for (uint32_t q = 0; q < lane->tile.n_queries; at += lengths[q++]) {
    order_collected(v, collected_row(lane, q), lengths[q]);
    kith_copy_row(pool->ids + at, collected_row(lane, q), lengths[q] * sizeof *pool->ids, bypasses);
  }
}

void kith_collect_tile(kith_visit *v) {
  if (atomic_load(&v->work->pool->overflow))
    return;
  if (!v->too_long)
    collect_short_rows(v);
  if (v->too_long)
    collect_long_rows(v);
}

/* A row may grow by `capacity` at every kernel: of one that is already longer, pairs are listed, and other rows
 * given up. */
void kith_collect_look(kith_visit *v) {
  kith_lane *lane = v->lane;
  bool too_long = false;
  for (uint32_t q = 0; q < lane->tile.n_queries; q++)
    too_long = too_long || collected_length(lane, q) > lane->collect_limit;
  if (too_long && v->operation == KITH_DO_PAIRS) {
    list_collected(v);
  } else if (too_long) {
    open_collected(lane);
    v->too_long = true;
  }
}
