/* The kernels that join panels (index/panels.h) all with all.
 *
 * With the half norms h(A) = |A|^2 / 2, a pair of panels is a small matrix product: s = A.B - h(A) - h(B) =
 * -|A - B|^2 / 2, one fused instruction a column where differences take two. That loses digits where points are
 * far from the centre. How many is known (kith_panel_limits), so pairs that are not surely in or out are
 * settled by the definition.
 *
 * Stops (SHORTC): after some of the columns, A.B is at most what it is so far plus r(A) r(B), with r the norm
 * of the columns still to come (Cauchy and Schwarz). If that leaves every pair in the registers out, the rest
 * of the columns is not looked at.
 *
 * May include index, space, points, base. The engine in all_pairs.c includes it. */
#ifndef KITH_ENGINE_CPU_PANEL_H
#define KITH_ENGINE_CPU_PANEL_H

#include "index/marks.h"

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
typedef struct kith_mark_pair {
  kith_norm norm;
  uint32_t groups, stride; /* stride: groups between two looks at whether all is out */
  const uint8_t *queries, *candidates;
  uint32_t first, end;
  bool cut; /* in one of the panels */
  kith_mark_limits limits;
} kith_mark_pair;

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
