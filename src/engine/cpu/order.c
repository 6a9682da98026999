/* Rows in id order: see order.h. */
#include "engine/cpu/order.h"

#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, ID_SHIFT = 32 };

static bool list_candidates(kith_lane *lane, uint32_t *n_items, uint64_t *present) {
  const uint32_t *ids = lane->task->candidates->ids;
  uint32_t n = 0;
  for (uint32_t s = 0; s < lane->task->stencil->n_steps; s++) {
    kith_run run = kith_lane_run(lane, s);
    if (run.end - run.begin > KITH_SORT_CAPACITY - n)
      return false;
    for (uint32_t p = run.begin; p < run.end; p++) {
      *present |= ids[p];
      lane->sort_items[n++] = (uint64_t)ids[p] << ID_SHIFT | p;
    }
  }
  *n_items = n;
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

uint32_t kith_order_candidates(kith_lane *lane, const uint64_t **items) {
  uint32_t n = 0;
  uint64_t present = 0; /* bits that occur in some id */
  if (!list_candidates(lane, &n, &present))
    return UINT32_MAX;
  uint64_t *from = lane->sort_items;
  uint64_t *to = lane->sort_items + KITH_SORT_CAPACITY;
  for (uint32_t bit = 0; present >> bit; bit += DIGIT_BITS) {
    sort_pass(from, to, n, ID_SHIFT + bit);
    uint64_t *sorted = to;
    to = from;
    from = sorted;
  }
  *items = from;
  return n;
}

static void gather_column(kith_lane *lane, uint32_t c, const uint64_t *items, uint32_t n) {
  const kith_index *index = lane->task->candidates;
  size_t to = c * (size_t)lane->tile.stride;
  size_t from = c * index->stride;
  if (lane->width == sizeof(float))
    for (uint32_t i = 0; i < n; i++)
      ((float *)lane->candidate_coords)[to + i] = ((const float *)index->coords)[from + (uint32_t)items[i]];
  else
    for (uint32_t i = 0; i < n; i++)
      ((double *)lane->candidate_coords)[to + i] = ((const double *)index->coords)[from + (uint32_t)items[i]];
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
  for (uint32_t i = 0; i < n; i++)
    lane->candidate_ids[i] = (uint32_t)(items[i] >> ID_SHIFT);
  lane->tile.n_candidates = n;
  if (lane->tile.self)
    for (uint32_t q = 0; q < lane->tile.n_queries; q++)
      lane->self[q] = find_id(items, n, lane->queries.ids[q]);
}

static void swap_entries(uint32_t *ids, double *distances, uint64_t i, uint64_t j) {
  uint32_t id = ids[i];
  ids[i] = ids[j];
  ids[j] = id;
  if (distances) {
    double distance = distances[i];
    distances[i] = distances[j];
    distances[j] = distance;
  }
}

/* Lets entry i sink to its place in the heap ids[0..n). */
static void sink_entry(uint32_t *ids, double *distances, uint64_t i, uint64_t n) {
  while (2 * i + 1 < n) {
    uint64_t child = 2 * i + 1;
    if (child + 1 < n && ids[child + 1] > ids[child])
      child++;
    if (ids[i] >= ids[child])
      return;
    swap_entries(ids, distances, i, child);
    i = child;
  }
}

void kith_order_row(uint32_t *ids, double *distances, uint64_t n) {
  for (uint64_t i = n / 2; i > 0; i--)
    sink_entry(ids, distances, i - 1, n);
  for (uint64_t end = n; end > 1; end--) {
    swap_entries(ids, distances, 0, end - 1);
    sink_entry(ids, distances, 0, end - 1);
  }
}
