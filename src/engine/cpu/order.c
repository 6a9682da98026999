/* Rows in id order: see order.h. */
#include "engine/cpu/order.h"

#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, ID_SHIFT = 32 };

/* Adds positions [begin, end) to the list, those with ids in the window, and without those that the sieve drops
 * if there is one; at most as many as can be staged. False if they exceed KITH_SORT_CAPACITY. *present gets the
 * bits that occur in some id. */
static bool list_positions(kith_lane *lane, kith_ordered *ordered, uint32_t begin, uint32_t end,
                           uint64_t *present) {
  const uint32_t *ids = lane->task->candidates->ids + begin;
  uint64_t width = ordered->end - ordered->begin;
  uint32_t n = end - begin;
  if (lane->sieves) {
    lane->tile.n_candidates = 0;
    kith_lane_sieve(lane, begin, end);
    ids = lane->candidate_ids;
    n = lane->tile.n_candidates;
    lane->tile.n_candidates = 0;
  }
  for (uint32_t i = 0; i < n; i++) {
    if (ids[i] - ordered->begin >= width)
      continue;
    if (ordered->n == KITH_SORT_CAPACITY)
      return false;
    *present |= ids[i];
    uint32_t position = lane->sieves ? lane->candidate_positions[i] : begin + i;
    lane->sort_items[ordered->n++] = (uint64_t)ids[i] << ID_SHIFT | position;
  }
  return true;
}

/* Lists the candidates of the window, likewise. */
static bool list_candidates(kith_lane *lane, kith_ordered *ordered, uint64_t *present) {
  ordered->n = 0;
  *present = 0;
  for (uint32_t s = 0; s < lane->n_runs; s++) {
    kith_run run = kith_lane_run(lane, s);
    for (uint32_t p = run.begin; p < run.end; p += lane->capacity) {
      uint32_t stop = run.end - p > lane->capacity ? p + lane->capacity : run.end;
      if (!list_positions(lane, ordered, p, stop, present))
        return false;
      if (stop == run.end)
        break;
    }
  }
  return true;
}

static void sort_pass(const uint64_t *from, uint64_t *to, uint32_t n, uint32_t shift) {
  uint32_t starts[DIGITS] = {0};
  for (uint32_t i = 0; i < n; i++)
    starts[(from[i] >> shift) % DIGITS]++;
  uint32_t sum = 0;
  for (uint32_t digit = 0; digit < DIGITS; digit++) {
    uint32_t count = starts[digit];
    starts[digit] = sum;
    sum += count;
  }
  for (uint32_t i = 0; i < n; i++)
    to[starts[(from[i] >> shift) % DIGITS]++] = from[i];
}

bool kith_order_candidates(kith_lane *lane, kith_ordered *ordered) {
  uint64_t end = lane->task->candidates->id_end;
  if (ordered->end >= end)
    return false;
  uint64_t present;
  ordered->begin = ordered->end;
  for (;; lane->id_window = (lane->id_window + 1) / 2) {
    ordered->end = end - ordered->begin > lane->id_window ? ordered->begin + lane->id_window : end;
    if (list_candidates(lane, ordered, &present))
      break;
  }
  uint64_t *from = lane->sort_items;
  uint64_t *to = lane->sort_items + KITH_SORT_CAPACITY;
  for (uint32_t bit = 0; present >> bit; bit += DIGIT_BITS) {
    sort_pass(from, to, ordered->n, ID_SHIFT + bit);
    uint64_t *sorted = to;
    to = from;
    from = sorted;
  }
  ordered->items = from;
  if (ordered->n < KITH_SORT_CAPACITY / 4) /* room for a wider window next time */
    lane->id_window *= 2;
  if (lane->id_window > end)
    lane->id_window = end;
  return true;
}

static void gather_column(kith_lane *lane, uint32_t c, const uint64_t *items, uint32_t n) {
  const kith_index *index = lane->task->candidates;
  size_t to = c * (size_t)lane->tile.stride;
  const float *floats = (const float *)index->coords + c * index->stride;
  const double *doubles = (const double *)index->coords + c * index->stride;
  if (lane->index_width == sizeof(float))
    for (uint32_t i = 0; i < n; i++)
      ((float *)lane->candidate_coords)[to + i] = floats[(uint32_t)items[i]];
  else if (kith_lane_is_narrow(lane))
    for (uint32_t i = 0; i < n; i++)
      ((float *)lane->candidate_coords)[to + i] = (float)(doubles[(uint32_t)items[i]] - lane->origin[c]);
  else
    for (uint32_t i = 0; i < n; i++)
      ((double *)lane->candidate_coords)[to + i] = doubles[(uint32_t)items[i]];
}

/* The place of an id among the items, or UINT32_MAX. */
static uint32_t find_id(const uint64_t *items, uint32_t n, uint32_t id) {
  uint32_t low = 0;
  uint32_t high = n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (items[middle] >> ID_SHIFT < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < n && items[low] >> ID_SHIFT == id ? low : UINT32_MAX;
}

void kith_order_stage(kith_lane *lane, const uint64_t *items, uint32_t n) {
  for (uint32_t c = 0; c < lane->tile.dim; c++)
    gather_column(lane, c, items, n);
  for (uint32_t i = 0; i < n; i++) {
    lane->candidate_ids[i] = (uint32_t)(items[i] >> ID_SHIFT);
    lane->candidate_positions[i] = (uint32_t)items[i];
  }
  lane->tile.n_candidates = n;
  if (lane->tile.self)
    for (uint32_t q = 0; q < lane->tile.n_queries; q++)
      lane->self[q] = find_id(items, n, lane->queries.ids[q]);
}
