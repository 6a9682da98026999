/* The plan of a join, for people: section 5 of kith.h. */
#include "ops/calibrate.h"
#include "ops/join.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

kith_plan kith_plan_init(void) { return (kith_plan){.struct_size = sizeof(kith_plan)}; }

/* Adds to the reasons. */
__attribute__((format(printf, 2, 3))) static void explain(kith_plan *plan, const char *format, ...) {
  size_t used = strlen(plan->why);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(plan->why + used, sizeof plan->why - used, format, arguments);
  va_end(arguments);
}

static uint64_t result_bytes(const kith_join *j, kith_what what, double pairs) {
  if (what == KITH_COUNT)
    return sizeof(uint64_t);
  if (what == KITH_DEGREES)
    return j->a->n * sizeof(uint64_t);
  if (what == KITH_PAIRS)
    return (uint64_t)(pairs * (j->options.distances ? 24 : 8));
  return (uint64_t)(pairs * kith_join_pair_bytes(j)) + (j->a->n + 1) * sizeof(uint64_t);
}

/* Seconds on this machine: the sample's count, again for the fill, and the bytes written at about 1 GB/s. */
static double predict_seconds(const kith_join *j, kith_what what, const kith_estimate *estimate,
                              uint64_t bytes) {
  double base = j->report.seconds_plan + j->report.seconds_index;
  if (what == KITH_COUNT)
    return base + estimate->seconds;
  double passes = kith_join_is_self(j) ? 2 * estimate->seconds : estimate->seconds;
  return what == KITH_DEGREES ? base + passes : base + 2.5 * passes + (double)bytes * 1e-9;
}

static void describe_gpu_tiles(const kith_join *j, kith_plan *plan) {
  const kith_cuda_tile_order *tiles = &j->gpu.tiles;
  bool products = j->predicate.norm == KITH_NORM_2;
  const char *how = products       ? "in half precision on tensor cores"
                    : tiles->coded ? "as bits on tensor cores"
                                   : "as bytes";
  const char *why = j->options.brute ? "that was asked for" : "a grid would leave too many candidates to test";
  char order[KITH_ORDER_TEXT];
  kith_describe_order(tiles->split, tiles->groups, !j->options.no_reorder, order);
  plan->kernel = products ? "tensor" : tiles->coded ? "codes" : "marks";
  plan->index_dims = tiles->split;
  memcpy(plan->dims, tiles->columns, tiles->split * sizeof *tiles->columns);
  snprintf(
      plan->why, sizeof plan->why,
      "All points are joined with all, %s: %s. Ordered by %s, a tile of them meets about %.2g of the tiles.\n",
      how, why, order, tiles->share);
}

static void describe_gpu_grid(const kith_join *j, kith_plan *plan) {
  const kith_grid *grid = &j->gpu.grid;
  plan->index_dims = grid->k;
  memcpy(plan->dims, grid->dims, grid->k * sizeof *grid->dims);
  plan->directions = grid->slanted > 0;
  plan->cell_side = kith_grid_row_side(grid);
  plan->cell_width = grid->side[0];
  plan->cells = j->gpu.cells;
  plan->runs = j->gpu.runs;
  if (j->options.kernel == KITH_KERNEL_POINT) {
    snprintf(
        plan->why, sizeof plan->why,
        "Cut dimensions: %u of %u, those of largest variance, in cells of side eps, as the kernel point wants "
        "them: about %.3g tests a query in a sample.\n",
        plan->index_dims, plan->dim, j->gpu.candidates);
    return;
  }
  snprintf(plan->why, sizeof plan->why,
           "Cut %s: %u of %u, those of largest variance, in cells of %.3g eps, and tiles of %u "
           "queries: that "
           "costs least, at %.3g tests a query in a sample.\n",
           plan->directions ? "directions, sums and differences of columns" : "dimensions", plan->index_dims,
           plan->dim, plan->cell_side / j->predicate.reach, j->gpu.tile_queries, j->gpu.candidates);
}

static void describe_engine(const kith_join *j, kith_plan *plan) {
  plan->n_queries = j->a->n;
  plan->n_candidates = j->b->n;
  plan->dim = j->input_dim;
  plan->engine = j->engine->name;
  plan->isa = kith_isa(j->ctx);
  plan->threads = j->ctx->threads;
  plan->algorithm = kith_join_algorithm(j);
  plan->kernel = j->predicate.everything ? "everything" : j->predicate.filter ? "filter" : "double";
}

static void describe_grid(const kith_join *j, kith_plan *plan) {
  plan->index_dims = j->grid.k;
  memcpy(plan->dims, j->grid.dims, j->grid.k * sizeof *plan->dims);
  plan->directions = j->grid.slanted > 0;
  plan->cell_side = kith_grid_row_side(&j->grid);
  plan->cell_width = j->grid.side[0];
  plan->cells = j->index_b.n_cells;
  plan->rows = j->index_b.n_rows;
  plan->runs = j->stencil->n_steps;
  memcpy(plan->why, j->choice.why, sizeof plan->why);
  if (j->ego_choice.grid_cost > 0)
    explain(plan, "Epsilon grid order would cost about %.2g times as much.\n",
            j->ego_choice.cost / j->ego_choice.grid_cost);
}

static void describe_order(const kith_join *j, kith_plan *plan) {
  plan->index_dims = j->grid.k;
  memcpy(plan->dims, j->ego_choice.dims, j->grid.k * sizeof *plan->dims);
  plan->cell_side = plan->cell_width = j->grid.side[0];
  plan->cells = j->index_b.n_cells;
  memcpy(plan->why, j->ego_choice.why, sizeof plan->why);
}

static void describe_panels(const kith_join *j, kith_plan *plan) {
  plan->index_dims = j->brute_choice.split;
  memcpy(plan->dims, j->packing.columns, plan->index_dims * sizeof *plan->dims);
  memcpy(plan->why, j->brute_choice.why, sizeof plan->why);
  if (j->predicate.filter)
    plan->kernel = "panels";
}

static void describe_index(const kith_join *j, kith_plan *plan) {
  if (j->on_gpu && j->gpu.dense)
    describe_gpu_tiles(j, plan);
  else if (j->on_gpu)
    describe_gpu_grid(j, plan);
  else if (j->all_with_all)
    describe_panels(j, plan);
  else if (j->in_ego_order)
    describe_order(j, plan);
  else
    describe_grid(j, plan);
}

static void describe_memory(const kith_join *j, kith_what what, int streamed, kith_plan *plan) {
  bool table = what == KITH_NEIGHBORS || what == KITH_PAIRS;
  plan->index_bytes = j->on_gpu ? j->gpu.index_bytes : atomic_load(&j->ctx->memory.used);
  plan->result_bytes = result_bytes(j, what, plan->pairs);
  plan->budget_bytes = j->ctx->memory.limit;
  plan->batches = 1;
  plan->fits = 1;
  if (!table)
    return;
  plan->work_bytes = (j->a->n + 1) * sizeof(uint64_t);
  if (!streamed) {
    plan->fits = plan->result_bytes <= kith_system_memory_free();
    return;
  }
  uint64_t per_batch = kith_stream_pairs_per_batch(j->ctx, (uint64_t)plan->pairs, 1, j->options.distances);
  plan->fits = per_batch > 0;
  plan->work_bytes += 2 * per_batch * (uint64_t)kith_join_pair_bytes(j);
  plan->batches = per_batch ? (uint64_t)ceil(plan->pairs / (double)per_batch) : 0;
  plan->batches += plan->batches == 0;
}

/* Where a distance may end early (SHORTC). */
static void explain_stops(const kith_join *j, kith_plan *plan) {
  const kith_packing *packing = &j->packing;
  if (!j->all_with_all || packing->n_active == 0)
    return;
  explain(plan, "Distances end early, where they can, after");
  for (uint32_t i = 0; i < packing->n_active; i++) {
    const char *before = i == 0 ? "" : i + 1 < packing->n_active ? "," : " or";
    explain(plan, "%s %u", before, packing->stops[packing->active[i]]);
  }
  explain(plan, " of %u columns.\n", packing->dim);
}

/* Where points are not taken as they come. */
static void explain_space(const kith_join *j, kith_plan *plan) {
  if (kith_space_is_embedded(&j->space))
    explain(plan, "Points become unit vectors in %u dimensions, eps the length of a chord: cells are theirs.\n",
            j->space.dim);
  else if (j->placed[0].turned || j->placed[1].turned)
    explain(plan,
            "The vectors of the box lead along no axes: it is turned, and a copy of the points, in double.\n");
  else if (j->placed[0].owned || j->placed[1].owned)
    explain(plan, "Some points lie outside of the box: a copy of them, in double, is wrapped into it.\n");
  else if (j->placed[0].unwrapped || j->placed[1].unwrapped)
    explain(plan, "Some points lie outside of the box: they are wrapped into it as they are read.\n");
}

/* Where every query has a radius of its own. */
static void explain_radii(const kith_join *j, kith_plan *plan) {
  if (j->limits && !kith_space_is_embedded(&j->space))
    explain(plan, "Radii go up to %.6g; nine in ten are at most %.6g%s.\n", j->predicate.reach,
            j->typical.reach, j->on_gpu ? "" : ", and cells are made for those");
}

static void explain_kernel(const kith_join *j, kith_plan *plan) {
  const char *why = "Every pair is tested by the definition in double.\n";
  if (j->predicate.everything)
    why = "eps exceeds every distance: all pairs belong, none is tested.\n";
  else if (strcmp(plan->kernel, "filter") == 0)
    why = "Pairs are tested in float32; those within rounding of eps are settled in double.\n";
  else if (strcmp(plan->kernel, "tensor") == 0)
    why = "Pairs are sifted by products in half precision; what those do not reject is settled in double.\n";
  else if (strcmp(plan->kernel, "codes") == 0)
    why = "Pairs are sifted by bits in common, then by differences of bytes; the rest is settled in double.\n";
  else if (strcmp(plan->kernel, "marks") == 0)
    why = "Pairs are sifted by differences of bytes; what those do not reject is settled in double.\n";
  else if (strcmp(plan->kernel, "panels") == 0)
    why = "Pairs are tested by products in float32; those within rounding of eps are settled in double.\n";
  explain(plan, "%s", why);
}

/* What each engine would take, where the machine was measured. */
static void predict_engines(const kith_join *j, kith_plan *plan) {
  kith_speeds speeds;
  kith_speeds_load(j->ctx, &speeds);
  double points = (double)j->a->n;
  double cpu = plan->seconds_cpu = kith_speeds_predict(&speeds, "cpu", j->space.dim, points, plan->pairs);
  double cuda = plan->seconds_cuda = kith_speeds_predict(&speeds, "cuda", j->space.dim, points, plan->pairs);
  if (cpu <= 0 || cuda <= 0)
    return;
  plan->share_cuda = cpu / (cpu + cuda);
  plan->seconds_hybrid = cpu * cuda / (cpu + cuda);
}

kith_status kith_plan_join(kith_context *ctx, const kith_points *a, const kith_points *b,
                           const kith_join_options *options, kith_what what, int streamed, kith_plan *out) {
  if (!out || out->struct_size == 0)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "there is no place for the plan: begin with kith_plan_init()");
  kith_join j;
  kith_plan plan = kith_plan_init();
  kith_estimate estimate = {0};
  kith_status status = kith_join_prepare(&j, ctx, a, b, options);
  if (!status)
    status = kith_estimate_run(ctx, j.engine, &estimate);
  if (!status) {
    describe_engine(&j, &plan);
    describe_index(&j, &plan);
    plan.pairs = kith_join_pairs_of_estimate(&j, estimate.pairs);
    plan.pairs_error = j.options.half ? estimate.error / 2 : estimate.error;
    double passes = what == KITH_COUNT || !kith_join_is_self(&j) ? 1 : 2;
    plan.candidates = estimate.tested * passes;
    plan.inside = estimate.inside * passes;
    describe_memory(&j, what, streamed, &plan);
    plan.seconds = predict_seconds(&j, what, &estimate, plan.result_bytes);
    explain_stops(&j, &plan);
    explain_space(&j, &plan);
    explain_radii(&j, &plan);
    explain_kernel(&j, &plan);
    predict_engines(&j, &plan);
    plan.struct_size = out->struct_size < sizeof plan ? out->struct_size : sizeof plan;
    memcpy(out, &plan, plan.struct_size);
  }
  return kith_join_release(&j, status, NULL);
}
