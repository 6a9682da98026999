/* Preparing a join of all with all: decide, put the points in order, pack them, make the engine. */
#include "ops/join.h"

#include "index/marks.h"
#include "plan/sample.h"

#include <stdlib.h>
#include <string.h>

/* Fewer dimensions are the grid's. */
enum { MIN_DIM = KITH_GRID_DIMS + 1 };

static kith_status find_columns(kith_join *j) {
  kith_packing *packing = &j->packing;
  uint32_t dim = packing->dim = j->a->dim;
  uint64_t bytes = dim * (sizeof(uint32_t) + 2 * sizeof(double));
  packing->columns = kith_alloc(&j->ctx->memory, dim * sizeof(uint32_t));
  packing->centre = kith_alloc(&j->ctx->memory, 2 * dim * sizeof(double));
  if (!packing->columns || !packing->centre)
    return kith_fail_memory(j->ctx, bytes, "planning");
  packing->norm = j->predicate.norm;
  double *middle = packing->centre + dim;
  kith_status status = kith_sample_columns(j->ctx, j->b, !j->options.no_reorder, packing->columns, middle);
  for (uint32_t c = 0; c < dim && !status; c++)
    packing->centre[c] = middle[packing->columns[c]];
  if (!j->options.no_shortc && packing->norm == KITH_NORM_2)
    kith_packing_offer_stops(packing);
  return status;
}

/* Whether the kernel's rounding leaves few pairs in doubt: for products, nine tenths of the points of a sample
 * must be so close to the centre that the band is narrow beside eps. */
static bool products_are_precise(const kith_join *j) {
  enum { ROWS = 65 };
  const kith_packing *packing = &j->packing;
  double norms2[ROWS];
  uint64_t strata = j->b->n < ROWS ? j->b->n : ROWS;
  if (strata == 0)
    return false;
  for (uint64_t i = 0; i < strata; i++) {
    uint64_t row = kith_sample_row(i, strata, j->b->n);
    norms2[i] = 0;
    for (uint32_t c = 0; c < packing->dim; c++) {
      double t = kith_points_get(j->b, row, packing->columns[c]) - packing->centre[c];
      norms2[i] += t * t;
    }
    if (!isfinite(norms2[i]))
      norms2[i] = INFINITY;
  }
  qsort(norms2, strata, sizeof *norms2, kith_compare_doubles);
  return (2.0 * packing->dim + 10) * 0x1p-24 * norms2[strata * 9 / 10] < j->predicate.limit / 8;
}

/* The same for marks, which are chosen here. */
static bool marks_are_precise(kith_join *j) {
  static const double FEW = 1.0 / 16;
  kith_packing *packing = &j->packing;
  double doubt = kith_marks_choose(packing, &j->predicate, j->b, j->box, j->box + packing->dim);
  uint32_t groups = kith_mark_groups(packing);
  bool looks = !j->options.no_shortc;
  packing->mark_stride = !looks                         ? groups
                         : packing->norm == KITH_NORM_1 ? (groups < 16 ? 4 : (groups + 3) / 4)
                                                        : (groups < 16 ? 8 : (groups + 1) / 2);
  return doubt < FEW;
}

static kith_sketch sketch_of(const kith_join *j) {
  return (kith_sketch){.norm = j->predicate.norm,
                       .dim = j->a->dim,
                       .columns = j->packing.columns,
                       .low = j->box,
                       .high = j->box + j->a->dim,
                       .split = j->brute_choice.split,
                       .groups = j->brute_choice.groups};
}

static kith_status pack(kith_join *j, const kith_points *points, uint64_t invalid, kith_panels *panels) {
  uint64_t room = (points->n - invalid + KITH_PANEL - 1) / KITH_PANEL * KITH_PANEL;
  panels->ids = kith_alloc(&j->ctx->memory, room * sizeof(uint32_t));
  if (!panels->ids)
    return kith_fail_memory(j->ctx, room * sizeof(uint32_t), "the ids of the points");
  for (uint64_t i = 0; i < points->n; i++)
    if (invalid == 0 || kith_points_is_valid(points, i))
      panels->ids[panels->n++] = (uint32_t)i;
  for (uint64_t i = panels->n; i < room; i++)
    panels->ids[i] = UINT32_MAX;
  kith_status status = KITH_OK;
  kith_sketch sketch = sketch_of(j);
  bool ordered = kith_sketch_dims(&sketch) > 0;
  if (ordered)
    status = kith_panels_order(j->ctx, points, &sketch, panels->ids, panels->n);
  if (!status)
    status = kith_panels_pack(j->ctx, points, &j->packing, panels);
  if (!status && ordered)
    status = kith_panels_bound(j->ctx, points, &sketch, panels);
  return status;
}

kith_status kith_join_choose_brute(kith_join *j, const kith_question *question) {
  bool knows = j->space.lattice.n == 0 && !j->limits;
  if (!knows && j->options.brute)
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT, "brute force knows one radius for all points, and no box");
  bool may = knows && j->options.algorithm == KITH_ALGORITHM_AUTO && j->predicate.filter &&
             j->a->dim >= MIN_DIM && j->options.cell_side == 0;
  if (!may && !j->options.brute)
    return KITH_OK;
  kith_status status = find_columns(j);
  if (status)
    return status;
  bool precise = j->packing.norm == KITH_NORM_2 ? products_are_precise(j) : marks_are_precise(j);
  if (!precise && !j->options.brute)
    return status;
  status = kith_choose_brute(j->ctx, question, &j->choice, j->packing.columns, KITH_PANEL, &j->brute_choice);
  j->all_with_all = !status && j->brute_choice.brute;
  return status;
}

kith_status kith_join_prepare_brute(kith_join *j, kith_engine **out) {
  kith_stage_begin(j->ctx, "index", 0.05);
  kith_status status = pack(j, j->b, j->invalid[j->one_set ? 0 : 1], &j->panels_b);
  if (!status && !j->one_set)
    status = pack(j, j->a, j->invalid[0], &j->panels_a);
  if (status)
    return status;
  kith_sketch sketch = sketch_of(j);
  float box_limit = kith_sketch_reach(&sketch, &j->predicate);
  kith_packing_choose_stops(&j->packing, j->one_set ? &j->panels_b : &j->panels_a, &j->panels_b, &j->predicate,
                            box_limit);
  kith_brute_task task = {.predicate = &j->predicate,
                          .space = &j->space,
                          .a = j->a,
                          .b = j->b,
                          .queries = j->one_set ? &j->panels_b : &j->panels_a,
                          .candidates = &j->panels_b,
                          .box_limit = box_limit,
                          .half = j->options.half,
                          .drop_self = kith_join_drops_self(j)};
  return kith_engine_brute_create(j->ctx, &task, out);
}

void kith_join_release_brute(kith_join *j) {
  kith_panels_destroy(&j->panels_a);
  kith_panels_destroy(&j->panels_b);
}
