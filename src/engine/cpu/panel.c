/* Packing points into panels: see panel.h. */
#include "engine/cpu/panel.h"

#include "engine/cpu/marks.h"

#include "base/team.h"

#include <string.h>

static const double U = 0x1p-24; /* the unit roundoff of float */

/* The proof is in docs/exactness.md. In short: rounding the coordinates moves a distance by at most 2 U M, and
 * all other roundings move the sum by at most (2 dim + 10) U M^2, with M^2 = norm2. */
kith_panel_limits kith_panel_limits_make(const kith_predicate *predicate, uint32_t dim, double norm2) {
  kith_panel_limits limits = {.out = -INFINITY, .in = INFINITY};
  if (!predicate->filter || !(norm2 <= 1e36))
    return limits;
  double eps = sqrt(predicate->limit);
  double shift = 2.01 * U * sqrt(norm2);
  double band = (2.0 * dim + 10) * U * norm2 + 1e-38;
  double far = eps * (1 + 0x1p-40) + shift;
  double near = eps * (1 - 0x1p-40) - shift;
  limits.out = (float)(-(far * far / 2 + band) * (1 + 0x1p-22));
  if (near > 0 && near * near / 2 > band)
    limits.in = (float)(-(near * near / 2 - band) * (1 - 0x1p-22));
  return limits;
}

typedef struct packer {
  const kith_points *points;
  kith_panels *panels;
  const kith_sketch *sketch;
} packer;

/* Coordinate c of the packing, of one row, relative to the centre. */
static float packed(const packer *p, uint32_t id, uint32_t c) {
  const kith_packing *packing = p->panels->packing;
  return (float)(kith_points_get(p->points, id, packing->columns[c]) - packing->centre[c]);
}

/* Packs one point; returns its squared norm. */
static double pack_point(const packer *p, uint32_t panel, uint32_t i) {
  const kith_panels *panels = p->panels;
  const kith_packing *packing = panels->packing;
  uint32_t id = panels->ids[(size_t)panel * KITH_PANEL + i];
  float *coords = panels->coords + (size_t)panel * packing->dim * KITH_PANEL + i;
  float *rests = panels->rests + (size_t)panel * packing->n_stops * KITH_PANEL + i;
  uint32_t stop = packing->n_stops;
  double norm2 = 0;
  for (uint32_t c = packing->dim; c-- > 0;) {
    if (stop > 0 && packing->stops[stop - 1] == c + 1)
      rests[(size_t)--stop * KITH_PANEL] = (float)(sqrt(norm2) * (1 + 0x1p-22));
    float x = packed(p, id, c);
    coords[(size_t)c * KITH_PANEL] = x;
    norm2 += (double)x * (double)x;
  }
  panels->halves[(size_t)panel * KITH_PANEL + i] = (float)(norm2 / 2);
  return norm2;
}

static void pack_padding(const kith_panels *panels, uint32_t panel, uint32_t i) {
  const kith_packing *packing = panels->packing;
  for (uint32_t c = 0; c < packing->dim; c++)
    panels->coords[((size_t)panel * packing->dim + c) * KITH_PANEL + i] = 0;
  for (uint32_t s = 0; s < packing->n_stops; s++)
    panels->rests[((size_t)panel * packing->n_stops + s) * KITH_PANEL + i] = 0;
  panels->halves[(size_t)panel * KITH_PANEL + i] = INFINITY;
}

static void pack_panel(void *argument, uint64_t number) {
  const packer *p = argument;
  uint32_t panel = (uint32_t)number;
  double most = 0;
  for (uint32_t i = 0; i < KITH_PANEL; i++) {
    if ((uint64_t)panel * KITH_PANEL + i >= p->panels->n) {
      pack_padding(p->panels, panel, i);
      continue;
    }
    double norm2 = pack_point(p, panel, i);
    most = norm2 > most ? norm2 : most;
  }
  p->panels->norms2[panel] = most * (1 + 0x1p-40);
}

static kith_status allocate(kith_context *ctx, kith_panels *panels) {
  kith_memory *memory = &ctx->memory;
  uint64_t room = (uint64_t)panels->n_panels * KITH_PANEL;
  uint64_t bytes = room * sizeof(float) * ((uint64_t)panels->packing->dim + panels->packing->n_stops + 1);
  panels->coords = kith_alloc(memory, room * sizeof(float) * panels->packing->dim);
  panels->rests = kith_alloc(memory, room * sizeof(float) * panels->packing->n_stops);
  panels->halves = kith_alloc(memory, room * sizeof(float));
  panels->norms2 = kith_alloc(memory, panels->n_panels * sizeof(double));
  if (!panels->coords || !panels->rests || !panels->halves || !panels->norms2)
    return kith_fail_memory(ctx, bytes, "the packed copy of the points");
  return KITH_OK;
}

kith_status kith_panels_pack(kith_context *ctx, const kith_points *points, const kith_packing *packing,
                             kith_panels *panels) {
  panels->packing = packing;
  panels->n_panels = (uint32_t)(((uint64_t)panels->n + KITH_PANEL - 1) / KITH_PANEL);
  if (packing->norm != KITH_NORM_2)
    return kith_marks_pack(ctx, points, panels);
  kith_status status = allocate(ctx, panels);
  if (status)
    return status;
  packer p = {.points = points, .panels = panels};
  kith_each_unless_cancelled(ctx, panels->n_panels, pack_panel, &p);
  return kith_check_cancel(ctx);
}

static void bound_panel(void *argument, uint64_t panel) {
  const packer *p = argument;
  const kith_panels *panels = p->panels;
  uint64_t begin = panel * KITH_PANEL;
  uint64_t end = begin + KITH_PANEL < panels->n ? begin + KITH_PANEL : panels->n;
  for (uint64_t i = begin; i < end; i++) {
    float at[KITH_SKETCH_DIMS];
    kith_sketch_point(p->sketch, p->points, panels->ids[i], at, 1);
    for (uint32_t d = 0; d < panels->box_dims; d++) {
      float *low = &panels->low[d * panels->box_stride + panel];
      float *high = &panels->high[d * panels->box_stride + panel];
      *low = i == begin || at[d] < *low ? at[d] : *low;
      *high = i == begin || at[d] > *high ? at[d] : *high;
    }
  }
}

kith_status kith_panels_bound(kith_context *ctx, const kith_points *points, const kith_sketch *sketch,
                              kith_panels *panels) {
  enum { SLACK = 16 }; /* kernels look at a whole vector of boxes at a time */
  panels->box_stride = (uint64_t)panels->n_panels + SLACK;
  uint64_t bytes = 2 * kith_sketch_dims(sketch) * panels->box_stride * sizeof(float);
  panels->low = kith_alloc(&ctx->memory, bytes);
  if (!panels->low)
    return kith_fail_memory(ctx, bytes, "the boxes around the points");
  memset(panels->low, 0, bytes);
  panels->box_dims = kith_sketch_dims(sketch);
  panels->high = panels->low + panels->box_dims * panels->box_stride;
  packer p = {.points = points, .panels = panels, .sketch = sketch};
  kith_each_unless_cancelled(ctx, panels->n_panels, bound_panel, &p);
  return kith_check_cancel(ctx);
}

void kith_panels_destroy(kith_panels *panels) {
  kith_free(panels->ids);
  kith_free(panels->coords);
  kith_free(panels->halves);
  kith_free(panels->rests);
  kith_free(panels->norms2);
  kith_free(panels->marks);
  kith_free(panels->cut);
  kith_free(panels->low);
  *panels = (kith_panels){0};
}
