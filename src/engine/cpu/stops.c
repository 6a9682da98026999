/* Where the kernel of panels stops to see whether the rest is worth it (SHORTC).
 *
 * A stop costs about as much as three columns. Whether it saves more is measured: some panels that would meet
 * are tested against each other, a block of the kernel at a time, and it is noted after which of the possible
 * stops a block would have ended. Then the best subset of the stops is taken. */
#include "engine/cpu/panel.h"

#include <string.h>

enum { BLOCK = 8, TRIALS = 40, STOP_COST = 3 };

void kith_packing_offer_stops(kith_packing *packing) {
  static const double PARTS[] = {1.0 / 16, 1.0 / 8, 1.0 / 4, 3.0 / 8, 1.0 / 2, 3.0 / 4};
  _Static_assert(sizeof PARTS / sizeof *PARTS <= KITH_PANEL_STOPS, "room for all stops");
  packing->n_stops = 0;
  for (uint32_t i = 0; i < sizeof PARTS / sizeof *PARTS; i++) {
    uint32_t stop = ((uint32_t)(PARTS[i] * packing->dim) + 3) / 4 * 4;
    uint32_t last = packing->n_stops ? packing->stops[packing->n_stops - 1] : 0;
    if (stop > last && stop < packing->dim)
      packing->stops[packing->n_stops++] = stop;
  }
}

/* The sums of BLOCK queries against a panel, column by column. */
typedef struct trial {
  const float *queries, *query_rests; /* of the block */
  const float *candidates, *candidate_rests;
  float sums[BLOCK][KITH_PANEL];
  float out;
} trial;

static void add_column(trial *t, uint32_t c) {
  const float *candidates = t->candidates + (size_t)c * KITH_PANEL;
  for (uint32_t q = 0; q < BLOCK; q++) {
    float x = t->queries[(size_t)c * KITH_PANEL + q];
    for (uint32_t i = 0; i < KITH_PANEL; i++)
      t->sums[q][i] += x * candidates[i];
  }
}

static bool is_out(const trial *t, uint32_t stop) {
  const float *rests = t->candidate_rests + (size_t)stop * KITH_PANEL;
  float most = -INFINITY;
  for (uint32_t q = 0; q < BLOCK; q++)
    for (uint32_t i = 0; i < KITH_PANEL; i++) {
      float sum = t->sums[q][i] + t->query_rests[(size_t)stop * KITH_PANEL + q] * rests[i];
      most = sum > most ? sum : most;
    }
  return most < t->out;
}

/* The first stop at which the block ends, or n_stops. */
static uint32_t ends_at(trial *t, const kith_packing *packing) {
  uint32_t done = 0;
  for (uint32_t s = 0; s < packing->n_stops; s++) {
    for (; done < packing->stops[s]; done++)
      add_column(t, done);
    if (is_out(t, s))
      return s;
  }
  return packing->n_stops;
}

static uint32_t try_block(const kith_panels *a, uint32_t panel_a, const kith_panels *b, uint32_t panel_b,
                          const kith_predicate *predicate) {
  const kith_packing *packing = a->packing;
  uint32_t first = panel_a % (KITH_PANEL / BLOCK) * BLOCK;
  trial t = {.queries = a->coords + (size_t)panel_a * packing->dim * KITH_PANEL + first,
             .query_rests = a->rests + (size_t)panel_a * packing->n_stops * KITH_PANEL + first,
             .candidates = b->coords + (size_t)panel_b * packing->dim * KITH_PANEL,
             .candidate_rests = b->rests + (size_t)panel_b * packing->n_stops * KITH_PANEL};
  t.out = kith_panel_limits_make(predicate, packing->dim, (a->norms2[panel_a] + b->norms2[panel_b]) / 2).out;
  for (uint32_t q = 0; q < BLOCK; q++)
    for (uint32_t i = 0; i < KITH_PANEL; i++)
      t.sums[q][i] =
          -a->halves[(size_t)panel_a * KITH_PANEL + first + q] - b->halves[(size_t)panel_b * KITH_PANEL + i];
  return ends_at(&t, packing);
}

/* Columns that blocks look at with the stops of a subset; ended[s]: blocks that end at s if not before. */
static double cost_of(const kith_packing *packing, uint32_t subset, const uint32_t *ended, uint32_t trials) {
  double cost = 0;
  uint32_t at = 0;
  uint32_t alive = trials;
  uint32_t out = 0; /* blocks that are out, whether the subset has noticed or not */
  for (uint32_t s = 0; s < packing->n_stops; s++) {
    out += ended[s];
    if (!(subset >> s & 1))
      continue;
    cost += (double)alive * (packing->stops[s] - at + STOP_COST);
    at = packing->stops[s];
    alive = trials - out;
  }
  return cost + (double)alive * (packing->dim - at);
}

static kith_sketch_box box_of(const kith_panels *panels, uint32_t panel) {
  return (kith_sketch_box){
      .low = panels->low + panel, .high = panels->high + panel, .stride = panels->box_stride};
}

/* The panel of b that a panel is tried with: from *partner on, going round, the first that it would meet. */
static bool find_partner(const kith_panels *a, uint32_t panel, const kith_panels *b, float box_limit,
                         uint32_t *partner) {
  for (uint32_t tries = 0; tries < b->n_panels; tries++) {
    uint32_t other = (*partner + tries) % b->n_panels;
    if (b->box_dims == 0 ||
        kith_sketch_gap(b->packing->norm, box_of(a, panel), box_of(b, other), b->box_dims) <= box_limit) {
      *partner = other;
      return true;
    }
  }
  return false;
}

void kith_packing_choose_stops(kith_packing *packing, const kith_panels *a, const kith_panels *b,
                               const kith_predicate *predicate, float box_limit) {
  uint32_t ended[KITH_PANEL_STOPS + 1] = {0};
  uint32_t trials = 0;
  packing->n_active = 0;
  if (packing->n_stops == 0 || a->n_panels == 0 || b->n_panels == 0)
    return;
  for (uint32_t i = 0; i < TRIALS; i++) {
    uint32_t panel = (uint32_t)((uint64_t)i * a->n_panels / TRIALS);
    uint32_t partner = (uint32_t)((uint64_t)i * 29 % TRIALS * b->n_panels / TRIALS);
    if (!find_partner(a, panel, b, box_limit, &partner))
      continue;
    ended[try_block(a, panel, b, partner, predicate)]++;
    trials++;
  }
  uint32_t best = 0;
  double best_cost = 0.95 * cost_of(packing, 0, ended, trials); /* not for nothing */
  for (uint32_t subset = 1; subset < UINT32_C(1) << packing->n_stops; subset++) {
    double cost = cost_of(packing, subset, ended, trials);
    if (cost < best_cost) {
      best = subset;
      best_cost = cost;
    }
  }
  for (uint32_t s = 0; s < packing->n_stops; s++)
    if (best >> s & 1)
      packing->active[packing->n_active++] = s;
}
