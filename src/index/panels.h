/* Panels: points packed for joining all with all, in an order in which those close to each other share panels.
 *
 * A panel holds KITH_PANEL points, one column behind the other, as floats relative to a centre c that all
 * points of a join share: A = float(a - c), with the half norms |A|^2 / 2 beside them; or, in the norms 1 and
 * max, as marks (marks.h). The kernels are in engine/cpu/panel.h.
 *
 * May include points, space, base. */
#ifndef KITH_INDEX_PANELS_H
#define KITH_INDEX_PANELS_H

#include "index/sketch.h"
#include "points/points.h"

enum {
  KITH_PANEL = 48,      /* points in a panel: 3 vectors of AVX-512 */
  KITH_PANEL_STOPS = 6, /* at most so many stops */
};

/* How the points of a join are packed: the same for both sets. */
typedef struct kith_packing {
  kith_norm norm;
  uint32_t dim;
  uint32_t *columns;                /* dim: which input column each packed one is */
  double *centre;                   /* dim: of each packed column; or where its marks begin */
  double marks_per_unit;            /* norms 1 and max (marks.h); 0: there are none, and no filter */
  uint32_t mark_stride;             /* groups of columns between two looks at whether all is out */
  uint32_t n_stops;                 /* possible ones: norms of the rest are packed for all of them */
  uint32_t stops[KITH_PANEL_STOPS]; /* columns looked at, ascending, below dim */
  uint32_t n_active;                /* those that pay */
  uint32_t active[KITH_PANEL_STOPS];
} kith_packing;

typedef struct kith_panels {
  const kith_packing *packing;
  uint32_t n; /* points; the last panel may be padded */
  uint32_t n_panels;
  uint32_t *ids;     /* [n_panels * KITH_PANEL] input rows; UINT32_MAX: padding */
  float *coords;     /* [n_panels][dim][KITH_PANEL]; 0 for padding */
  float *halves;     /* [n_panels * KITH_PANEL] half norms; +infinity for padding */
  float *rests;      /* [n_panels][n_stops][KITH_PANEL]: r, rounded up */
  double *norms2;    /* [n_panels] largest squared norm, or more */
  uint8_t *marks;    /* norms 1 and max: instead of all these (marks.h) */
  bool *cut;         /* [n_panels] some coordinate is beyond the marks, or a point is padding */
  uint32_t box_dims; /* 0: there are no boxes */
  float *low, *high; /* [box_dims][box_stride]: boxes around the sketches of their points */
  uint64_t box_stride;
} kith_panels;

/* Packs the points panels->ids[0..panels->n); the list must have room for whole panels. What it allocates is
 * released by kith_panels_destroy, also after a failure. */
kith_status kith_panels_pack(kith_context *ctx, const kith_points *points, const kith_packing *packing,
                             kith_panels *panels);
void kith_panels_destroy(kith_panels *panels);

/* Makes the boxes around the sketches of the points of each panel. */
kith_status kith_panels_bound(kith_context *ctx, const kith_points *points, const kith_sketch *sketch,
                              kith_panels *panels);

/* Puts n ids in the order of the sketch: halved again and again, down to panels. */
kith_status kith_panels_order(kith_context *ctx, const kith_points *points, const kith_sketch *sketch,
                              uint32_t *ids, uint32_t n);

#endif
