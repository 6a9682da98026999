/* Packing points as marks: see marks.h. */
#include "index/marks.h"

#include "base/team.h"

#include <stdlib.h>
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

/* Some rows, and what is known of their pairs: that of the rows i > j is pair i * (i - 1) / 2 + j. */
enum { ROWS = 48, PAIRS = ROWS * (ROWS - 1) / 2 };
typedef struct trial {
  const kith_points *points;
  const kith_packing *packing;
  const kith_predicate *predicate;
  uint64_t rows[ROWS];
  uint32_t n, n_pairs;
  bool far[PAIRS]; /* it does not belong */
  double apart;    /* what marks tell of the pairs: the more, the better */
  double doubt;    /* the share of them that are far, but not told to be */
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

static void draw_rows(trial *t) {
  uint32_t wanted = t->packing->dim > 512 ? ROWS / 3 : ROWS;
  uint64_t n = t->points->n;
  for (uint64_t i = 0; i < wanted && i < n; i++) {
    uint64_t row = i * n / (wanted < n ? wanted : n);
    if (kith_points_is_valid(t->points, row))
      t->rows[t->n++] = row;
  }
  t->n_pairs = t->n ? t->n * (t->n - 1) / 2 : 0;
}

static void see_far(trial *t) {
  double size[PAIRS] = {0};
  for (uint32_t c = 0; c < t->packing->dim; c++) {
    double x[ROWS];
    for (uint32_t i = 0; i < t->n; i++)
      x[i] = kith_points_get(t->points, t->rows[i], t->packing->columns[c]);
    for (uint32_t i = 0, pair = 0; i < t->n; i++)
      for (uint32_t j = 0; j < i; j++, pair++)
        size[pair] = kith_norm_add(t->packing->norm, size[pair], x[i] - x[j]);
  }
  for (uint32_t pair = 0; pair < t->n_pairs; pair++)
    t->far[pair] = size[pair] > t->predicate->limit;
}

/* Adds what the marks of a column tell: how far apart they are (norm 1), or whether that is too far (max). */
static void add_column(const trial *t, uint32_t c, kith_mark_limits limits, uint32_t *told) {
  uint8_t marks[ROWS];
  double last = last_mark(t->packing->norm);
  for (uint32_t i = 0; i < t->n; i++)
    marks[i] = mark_of(place_of(t->packing, t->points, t->rows[i], c), last);
  for (uint32_t i = 0; i < t->n; i++)
    for (uint32_t j = 0; j < i; j++) {
      int apart = abs(marks[i] - marks[j]);
      *told++ += t->packing->norm == KITH_NORM_1 ? (uint32_t)apart : apart > limits.out;
    }
}

static void try_ruler(trial *t) {
  kith_mark_limits limits = kith_mark_limits_make(t->predicate, t->packing);
  bool is_1 = t->packing->norm == KITH_NORM_1;
  uint32_t told[PAIRS] = {0};
  uint32_t in_doubt = 0;
  for (uint32_t c = 0; c < t->packing->dim; c++)
    add_column(t, c, limits, told);
  t->apart = 0;
  for (uint32_t pair = 0; pair < t->n_pairs; pair++) {
    t->apart += is_1 ? told[pair] / (double)limits.out : told[pair];
    in_doubt += t->far[pair] && told[pair] <= (is_1 ? limits.out : 0);
  }
  t->doubt = t->n_pairs ? (double)in_doubt / t->n_pairs : 0;
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
  see_far(&t);
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
      doubt = t.doubt;
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
