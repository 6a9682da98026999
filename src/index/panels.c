/* Ordering points and packing them into panels: see panels.h. */
#include "index/panels.h"

#include "base/team.h"
#include "index/halve.h"
#include "index/marks.h"

#include <string.h>

/* ---- order ---- */

/* Sketches of rows, many at a time. */
enum { SKETCH_BLOCK = 512 };
typedef struct sketching {
  const kith_sketch *sketch;
  const kith_points *points;
  const uint32_t *ids;
  uint32_t n;
  float *values;
} sketching;

static void sketch_block(void *argument, uint64_t block) {
  const sketching *s = argument;
  uint64_t begin = block * SKETCH_BLOCK;
  uint64_t end = begin + SKETCH_BLOCK < s->n ? begin + SKETCH_BLOCK : s->n;
  for (uint64_t i = begin; i < end; i++)
    kith_sketch_point(s->sketch, s->points, s->ids[i], s->values + i, s->n);
}

kith_status kith_panels_order(kith_context *ctx, const kith_points *points, const kith_sketch *sketch,
                              uint32_t *ids, uint32_t n) {
  kith_memory *memory = &ctx->memory;
  uint32_t dims = kith_sketch_dims(sketch);
  uint64_t bytes = (uint64_t)n * (dims * sizeof(float) + 2 * sizeof(uint32_t));
  float *values = kith_alloc(memory, (uint64_t)n * dims * sizeof(float));
  uint32_t *order = kith_alloc(memory, n * sizeof *order);
  uint32_t *copy = kith_alloc(memory, n * sizeof *copy);
  sketching s = {.sketch = sketch, .points = points, .ids = ids, .n = n, .values = values};
  kith_status status;
  if (!values || !order || !copy) {
    status = kith_fail_memory(ctx, bytes, "ordering the points");
    goto done;
  }
  kith_each_unless_cancelled(ctx, (n + SKETCH_BLOCK - 1) / SKETCH_BLOCK, sketch_block, &s);
  if ((status = kith_check_cancel(ctx)) || (status = kith_halve(ctx, values, n, dims, n, KITH_PANEL, order)))
    goto done;
  memcpy(copy, ids, n * sizeof *ids);
  for (uint32_t i = 0; i < n; i++)
    ids[i] = copy[order[i]];
done:
  kith_free(values);
  kith_free(order);
  kith_free(copy);
  return status;
}

/* ---- packing ---- */

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
