/* Panels: points packed for joining all with all, and the kernels that do it.
 *
 * A panel holds KITH_PANEL points, one column behind the other, as floats relative to a centre c that all
 * points of a join share: A = float(a - c). With the half norms h(A) = |A|^2 / 2 beside them, a pair of panels
 * is a small matrix product: s = A.B - h(A) - h(B) = -|A - B|^2 / 2, one fused instruction a column where
 * differences take two. That loses digits where points are far from the centre. How many is known
 * (kith_panel_limits), so pairs that are not surely in or out are settled by the definition.
 *
 * Stops (SHORTC): after some of the columns, A.B is at most what it is so far plus r(A) r(B), with r the norm
 * of the columns still to come (Cauchy and Schwarz). If that leaves every pair in the registers out, the rest
 * of the columns is not looked at.
 *
 * May include index, space, points, base. The engine in brute.c includes it. */
#ifndef KITH_ENGINE_CPU_PANEL_H
#define KITH_ENGINE_CPU_PANEL_H

#include "index/sketch.h"

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

/* Lists the possible stops for a number of columns; chooses among them those that pay for these panels, of
 * which those meet whose boxes are within box_limit. */
void kith_packing_offer_stops(kith_packing *packing);
void kith_packing_choose_stops(kith_packing *packing, const kith_panels *a, const kith_panels *b,
                               const kith_predicate *predicate, float box_limit);

/* What two panels are tested by: s < out: surely not; s > in: surely; otherwise the definition decides. */
typedef struct kith_panel_limits {
  float out, in;
} kith_panel_limits;

/* norm2: the mean of the panels' largest squared norms. */
kith_panel_limits kith_panel_limits_make(const kith_predicate *predicate, uint32_t dim, double norm2);

/* Queries [first, end) of one panel against all points of another. */
typedef struct kith_panel_pair {
  const kith_packing *packing;
  const float *queries, *query_halves, *query_rests;
  const float *candidates, *candidate_halves, *candidate_rests;
  uint32_t first, end;
  kith_panel_limits limits;
} kith_panel_pair;

/* Some candidates that are not surely out: bit i of `near` is candidate first + i. */
typedef struct kith_panel_hit {
  uint32_t query, first;
  uint32_t near;
  uint32_t sure; /* those of them that are surely in */
} kith_panel_hit;

enum { KITH_PANEL_HITS = KITH_PANEL * KITH_PANEL };

/* The same with marks. */
typedef struct kith_mark_pair kith_mark_pair;

/* Two rows whose columns lie side by side. */
typedef struct kith_row_pair {
  kith_norm norm;
  bool is_f64;
  const void *a, *b;
  uint32_t dim;
} kith_row_pair;

typedef struct kith_panel_kernels {
  /* Fills hits, which has room for KITH_PANEL_HITS; returns how many. They are in no special order. */
  uint32_t (*test)(const kith_panel_pair *pair, kith_panel_hit *hits);
  uint32_t (*test_marks)(const kith_mark_pair *pair, kith_panel_hit *hits);
  /* The size of the difference of two rows in double, as the definition has it but in another order: within
   * 2^-39 of it, where nothing underflows. */
  double (*size)(const kith_row_pair *rows);
  /* Lists those of the panels [begin, end) of `panels` whose boxes are within reach of box number `box` of
   * `queries`: the size of the gap (kith_sketch_gap) is at most limit. Returns how many. */
  uint32_t (*meet)(const kith_panels *queries, uint32_t box, const kith_panels *panels, uint32_t begin,
                   uint32_t end, float limit, uint32_t *met);
} kith_panel_kernels;

extern const kith_panel_kernels kith_panel_scalar;
extern const kith_panel_kernels kith_panel_avx2;
extern const kith_panel_kernels kith_panel_avx512;

#endif
