/* Packing points as marks: see marks.h. */
#include "index/marks.h"

#include "base/team.h"

#include <string.h>

/* The last mark. Norm max subtracts marks modulo 256, and needs room for the limit at both ends: with at most
 * 60 marks to eps, differences of up to 180 do not come round to it. */
static double last_mark(kith_norm norm) { return norm == KITH_NORM_1 ? 255 : 180; }

/* A mark; what is NaN or below the ruler is 0. */
static uint8_t mark_of(double place, double last) {
  return place > 0 ? (uint8_t)(place < last ? place : last) : 0;
}

/* The place of a coordinate on the ruler, in marks. */
static double place_of(const kith_packing *packing, const kith_points *points, uint64_t row, uint32_t c) {
  return (kith_points_get(points, row, packing->columns[c]) - packing->centre[c]) * packing->marks_per_unit;
}

kith_mark_limits kith_mark_limits_make(const kith_predicate *predicate, const kith_packing *packing) {
  if (packing->marks_per_unit == 0) /* the limit may be infinite, then */
    return (kith_mark_limits){0};
  double marks = predicate->limit * packing->marks_per_unit;
  double terms = packing->norm == KITH_NORM_1 ? packing->dim : 1;
  return (kith_mark_limits){.out = (int64_t)(marks * (1 + 0x1p-38) + terms + 0x1p-20),
                            .in = (int64_t)floor(marks * (1 - 0x1p-38) - terms - 0x1p-20)};
}

/* ---- choosing the ruler -------------------------------------------------------------------------------- */

/* Some rows, marked. */
enum { ROWS = 48 };
typedef struct trial {
  const kith_points *points;
  const kith_packing *packing;
  const kith_predicate *predicate;
  uint64_t rows[ROWS];
  uint32_t n;
  double apart; /* what marks tell of the pairs: the more, the better */
  uint32_t in_doubt, pairs;
} trial;

/* A column begins where all of it fits, or around its middle. */
static void place_ruler(kith_packing *packing, const double *middle, const double *min, const double *max,
                        double marks_per_unit) {
  double last = last_mark(packing->norm);
  packing->marks_per_unit = marks_per_unit;
  for (uint32_t c = 0; c < packing->dim; c++) {
    uint32_t column = packing->columns[c];
    bool fits = (max[column] - min[column]) * marks_per_unit <= last;
    packing->centre[c] = fits ? min[column] : middle[column] - last / 2 / marks_per_unit;
  }
}

/* Adds what marks tell of one pair: how far beyond the limit it is (norm 1), or in how many columns (max). */
static void try_pair(trial *t, uint64_t i, uint64_t j, kith_mark_limits limits) {
  const kith_packing *packing = t->packing;
  double last = last_mark(packing->norm);
  int64_t sum = 0;
  double size = 0;
  uint32_t beyond = 0;
  for (uint32_t c = 0; c < packing->dim; c++) {
    int apart =
        mark_of(place_of(packing, t->points, i, c), last) - mark_of(place_of(packing, t->points, j, c), last);
    sum += apart < 0 ? -apart : apart;
    beyond += (apart < 0 ? -apart : apart) > limits.out;
    uint32_t column = packing->columns[c];
    size = kith_norm_add(packing->norm, size,
                         kith_points_get(t->points, i, column) - kith_points_get(t->points, j, column));
  }
  bool is_1 = packing->norm == KITH_NORM_1;
  t->apart += is_1 ? (double)sum / (double)limits.out : beyond;
  t->in_doubt += (is_1 ? sum <= limits.out : beyond == 0) && size > t->predicate->limit;
  t->pairs++;
}

static void try_ruler(trial *t) {
  kith_mark_limits limits = kith_mark_limits_make(t->predicate, t->packing);
  t->apart = 0;
  t->in_doubt = t->pairs = 0;
  for (uint32_t i = 0; i < t->n; i++)
    for (uint32_t j = i + 1; j < t->n; j++)
      try_pair(t, t->rows[i], t->rows[j], limits);
}

static void draw_rows(trial *t) {
  uint32_t wanted = t->packing->dim > 512 ? ROWS / 3 : ROWS;
  uint64_t n = t->points->n;
  for (uint64_t i = 0; i < wanted && i < n; i++) {
    uint64_t row = i * n / (wanted < n ? wanted : n);
    if (kith_points_is_valid(t->points, row))
      t->rows[t->n++] = row;
  }
}

double kith_marks_choose(kith_packing *packing, const kith_predicate *predicate, const kith_points *points,
                         const double *min, const double *max) {
  static const double MARKS[] = {8, 16, 32, 60}; /* to eps; in norm 1 to the share of eps that a column has */
  const double *middle = packing->centre + packing->dim;
  trial t = {.points = points, .packing = packing, .predicate = predicate};
  packing->norm = predicate->norm;
  packing->marks_per_unit = 0;
  if (!predicate->filter)
    return 1;
  draw_rows(&t);
  double best = 0;
  double apart = -1;
  double doubt = 0;
  for (uint32_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++) {
    double share = predicate->norm == KITH_NORM_1 ? packing->dim : 1;
    double marks_per_unit = MARKS[i] * share / predicate->limit;
    place_ruler(packing, middle, min, max, marks_per_unit);
    try_ruler(&t);
    if (t.apart > apart) {
      apart = t.apart;
      best = marks_per_unit;
      doubt = t.pairs ? (double)t.in_doubt / t.pairs : 0;
    }
  }
  place_ruler(packing, middle, min, max, best);
  return doubt;
}

/* ---- packing ------------------------------------------------------------------------------------------- */

typedef struct packer {
  const kith_points *points;
  kith_panels *panels;
} packer;

/* Packs one point; returns whether some coordinate lies beyond the ruler. */
static bool pack_point(const packer *p, uint32_t panel, uint32_t i) {
  const kith_packing *packing = p->panels->packing;
  uint32_t id = p->panels->ids[(size_t)panel * KITH_PANEL + i];
  uint8_t *to = p->panels->marks + panel * kith_mark_panel_bytes(packing) + (size_t)i * KITH_MARK_COLUMNS;
  double last = last_mark(packing->norm);
  bool cut = false;
  for (uint32_t c = 0; c < packing->dim; c++) {
    double place = place_of(packing, p->points, id, c);
    cut |= !(place >= 0 && place < last + 1);
    to[c / KITH_MARK_COLUMNS * KITH_MARK_COLUMNS * KITH_PANEL + c % KITH_MARK_COLUMNS] = mark_of(place, last);
  }
  return cut;
}

static void pack_panel(void *argument, uint64_t number) {
  const packer *p = argument;
  const kith_panels *panels = p->panels;
  uint32_t panel = (uint32_t)number;
  size_t bytes = kith_mark_panel_bytes(panels->packing);
  memset(panels->marks + panel * bytes, 0, bytes);
  bool cut = false;
  for (uint32_t i = 0; i < KITH_PANEL; i++) {
    bool padding = (uint64_t)panel * KITH_PANEL + i >= panels->n;
    cut |= padding || pack_point(p, panel, i); /* so that padding is never sure to be in */
  }
  panels->cut[panel] = cut;
}

kith_status kith_marks_pack(kith_context *ctx, const kith_points *points, kith_panels *panels) {
  uint64_t bytes = panels->n_panels * (uint64_t)kith_mark_panel_bytes(panels->packing);
  panels->marks = kith_alloc(&ctx->memory, bytes);
  panels->cut = kith_alloc(&ctx->memory, panels->n_panels * sizeof *panels->cut);
  if (!panels->marks || !panels->cut)
    return kith_fail_memory(ctx, bytes, "the packed copy of the points");
  packer p = {.points = points, .panels = panels};
  kith_each_unless_cancelled(ctx, panels->n_panels, pack_panel, &p);
  return kith_check_cancel(ctx);
}
