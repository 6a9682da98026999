/* What every join begins and ends with: see join.h. */
#include "ops/join.h"

#include "base/clock.h"
#include "base/trace.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

kith_join_options kith_join_options_init(double eps) {
  return (kith_join_options){.struct_size = sizeof(kith_join_options), .eps = eps};
}

kith_join_report kith_join_report_init(void) {
  return (kith_join_report){.struct_size = sizeof(kith_join_report)};
}

/* What only KITH_KERNEL_POINT understands, and what it does not. */
static kith_status check_kernel(kith_join *j) {
  const kith_join_options *opt = &j->options;
  uint32_t threads = opt->threads_per_query;
  if ((unsigned)opt->kernel > KITH_KERNEL_POINT || (unsigned)opt->cells > KITH_CELLS_LID_UNICOMP ||
      (unsigned)opt->order > KITH_ORDER_QUEUE)
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT, "kernel, cells or order has a value that has no meaning");
  if (threads > 32 || (threads & (threads - 1)) != 0)
    return kith_fail(
        j->ctx, KITH_ERR_ARGUMENT,
        "threads_per_query is %u; it must be 1, 2, 4, 8, 16 or 32, so that warps hold whole queries", threads);
  if (opt->kernel != KITH_KERNEL_POINT) {
    if (opt->cells || opt->order || threads)
      return kith_fail(j->ctx, KITH_ERR_ARGUMENT,
                       "cells, order and threads per query have a meaning for the kernel point only");
    return KITH_OK;
  }
  if (opt->cells != KITH_CELLS_FULL && !kith_join_is_self(j))
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT,
                     "the cells unicomp and lid-unicomp find a pair from one side only: they are for one set, "
                     "not for two");
  if (opt->index_dims > 6 || opt->cell_side != 0)
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT,
                     "the kernel point has cells of side eps in at most 6 dimensions: leave cell_side out, and "
                     "index_dims at 6 or less");
  if (j->space.norm != KITH_NORM_2 || j->space.lattice.n > 0 || opt->eps_of)
    return kith_fail(
        j->ctx, KITH_ERR_ARGUMENT,
        "the kernel point knows neither periodic boxes nor a radius for every point nor the metrics "
        "manhattan and chebyshev: leave the choice of the kernel to kith");
  return KITH_OK;
}

static kith_status check_options(kith_join *j, const kith_join_options *options) {
  kith_context *ctx = j->ctx;
  kith_join_options *opt = &j->options;
  if (!options || options->struct_size < offsetof(kith_join_options, self_pairs))
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "the options are not set up: begin with kith_join_options_init(eps)");
  *opt = kith_join_options_init(0);
  memcpy(opt, options, options->struct_size < sizeof *opt ? options->struct_size : sizeof *opt);
  if (opt->eps_of)
    opt->eps = 0;
  if (!isfinite(opt->eps) || opt->eps < 0)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "eps is %g; it must be a finite number, 0 or greater", opt->eps);
  if (opt->half && opt->self_pairs)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "half keeps only i < j, so it cannot go with self pairs");
  if ((opt->half || opt->self_pairs) && !kith_join_is_self(j))
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "half and self pairs have a meaning for one set only, not for two");
  kith_status status = kith_space_make(ctx, opt, j->a->dim, &j->space);
  if (status)
    return status;
  if (opt->index_dims > KITH_GRID_DIMS || opt->index_dims > j->space.dim)
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "index_dims is %u; it must be at most %u, and at most the dimension", opt->index_dims,
                     KITH_GRID_DIMS);
  if (opt->cell_side != 0 && !(opt->cell_side >= 0.25 && opt->cell_side <= 64))
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "cell_side is %g; it must lie between 0.25 and 64",
                     opt->cell_side);
  status = kith_join_check_algorithm(j);
  return status ? status : check_kernel(j);
}

static kith_status check_points(kith_join *j) {
  kith_status status = kith_points_check(j->ctx, j->a, "a");
  if (!status && !kith_join_is_self(j))
    status = kith_points_check(j->ctx, j->b, "b");
  if (!status && j->a->dim != j->b->dim)
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT, "the sets differ in dimension: a has %u columns, b has %u",
                     j->a->dim, j->b->dim);
  return status;
}

/* Finds the box of one set and refuses invalid rows unless they are to be skipped. */
static kith_status look_at(kith_join *j, const kith_points *points, const char *name, double *min, double *max,
                           uint64_t *invalid) {
  const kith_seen *seen = &j->placed[points == j->a ? 0 : 1].seen;
  *invalid = 0;
  if (seen->known) {
    memcpy(min, seen->min, points->dim * sizeof *min);
    memcpy(max, seen->max, points->dim * sizeof *max);
    return KITH_OK;
  }
  kith_points_summary summary = {.min = min, .max = max};
  kith_points_summarize(j->ctx, points, &summary);
  *invalid = summary.invalid_rows;
  if (kith_cancelled(j->ctx))
    return kith_check_cancel(j->ctx);
  if (summary.invalid_rows == 0 || j->options.skip_invalid)
    return KITH_OK;
  return kith_fail(
      j->ctx, KITH_ERR_POINTS,
      "%s: row %llu, column %u is %g (counted from 0; invalid rows in all: %llu); remove such rows, or "
      "skip them",
      name, (unsigned long long)summary.first_invalid_row, summary.first_invalid_col,
      kith_points_get(points, summary.first_invalid_row, summary.first_invalid_col),
      (unsigned long long)summary.invalid_rows);
}

static kith_status look_at_points(kith_join *j) {
  uint32_t dim = j->a->dim;
  j->box = kith_alloc(&j->ctx->memory, 4 * (uint64_t)dim * sizeof(double));
  if (!j->box)
    return kith_fail_memory(j->ctx, 4 * (uint64_t)dim * sizeof(double), "the box around the points");
  double *min = j->box;
  double *max = min + dim;
  kith_status status = look_at(j, j->a, "a", min, max, &j->invalid[0]);
  if (!status && !kith_join_is_self(j)) {
    double *min_b = max + dim;
    double *max_b = min_b + dim;
    status = look_at(j, j->b, "b", min_b, max_b, &j->invalid[1]);
    for (uint32_t c = 0; c < dim; c++) {
      min[c] = fmin(min[c], min_b[c]);
      max[c] = fmax(max[c], max_b[c]);
    }
  }
  for (uint32_t c = 0; c < dim; c++)
    if (!(min[c] <= max[c])) /* no valid row at all */
      min[c] = max[c] = 0;
  return status;
}

/* Both engines have the same grid, and so the same order of the queries. */
static kith_status take_grid_of_gpu(kith_join *j) {
  j->stencil = kith_alloc(&j->ctx->memory, sizeof *j->stencil);
  if (!j->stencil)
    return kith_fail_memory(j->ctx, sizeof *j->stencil, "the stencil");
  j->grid = j->gpu.grid;
  *j->stencil = *j->gpu.stencil;
  return KITH_OK;
}

/* The lattice, if points of either set have yet to be wrapped by those that read them: both sets are then,
 * which leaves what lies in the brick where it is. */
static const kith_lattice *lattice_to_wrap_into(const kith_join *j) {
  return j->placed[0].unwrapped || j->placed[1].unwrapped ? &j->space.lattice : NULL;
}

static kith_status choose(kith_join *j) {
  if (j->on_gpu && j->options.algorithm != KITH_ALGORITHM_EGO)
    return take_grid_of_gpu(j);
  kith_question question = {.queries = j->a,
                            .candidates = j->b,
                            .predicate = &j->predicate,
                            .min = j->box,
                            .max = j->box + j->a->dim,
                            .wrap_into = lattice_to_wrap_into(j),
                            .index_dims = j->options.index_dims,
                            .row_side = j->options.cell_side,
                            .brute = j->options.brute,
                            .no_reorder = j->options.no_reorder,
                            .no_sortidu = j->options.no_sortidu};
  double larger = kith_join_times_larger(j);
  if (larger > 2)
    question.predicate = &j->typical;
  if (j->options.algorithm != KITH_ALGORITHM_EGO)
    question.slanted =
        kith_slanted_of(j->space.norm, j->a->dim, question.min, question.max, question.predicate->reach);
  kith_status status = kith_choose_grid(j->ctx, &question, &j->choice);
  if (!status && larger > 2)
    kith_join_fit_cells(&j->choice.spec, larger);
  question.predicate = &j->predicate;
  if (!status)
    status = kith_join_choose_brute(j, &question);
  if (!status && !j->all_with_all)
    status = kith_join_choose_ego(j, &question);
  if (status || j->all_with_all || j->in_ego_order)
    return status;
  j->stencil = kith_alloc(&j->ctx->memory, sizeof *j->stencil);
  if (!j->stencil)
    return kith_fail_memory(j->ctx, sizeof *j->stencil, "the stencil");
  kith_grid_make(&j->grid, &j->choice.spec, &j->predicate);
  while (!kith_stencil_make(j->stencil, &j->grid, &j->choice.spec, &j->predicate)) {
    j->choice.spec.k--;
    kith_grid_make(&j->grid, &j->choice.spec, &j->predicate);
  }
  return KITH_OK;
}

static bool are_all(const kith_join *j, kith_dtype dtype) {
  return j->a->dtype == dtype && j->b->dtype == dtype;
}

/* No point is farther from the origin in a dimension, */
static double farthest_along(const kith_join *j, uint32_t c) {
  return fmax(fabs(j->box[c]), fabs(j->box[j->a->dim + c]));
}

/* and in all of them. */
static double find_spread(const kith_join *j) {
  double square = 0;
  for (uint32_t c = 0; c < j->a->dim; c++)
    square += farthest_along(j, c) * farthest_along(j, c);
  return sqrt(square) * (1 + 0x1p-20);
}

/* What the filter may have to do with, in the coordinates of an index that are rounded: points, points moved to
 * an image that comes within reach of the box, and axes cut open where a side is short (docs/exactness.md). */
static double find_widest(const kith_join *j) {
  const kith_lattice *lattice = &j->space.lattice;
  double square = 0;
  double folded = 0;
  for (uint32_t c = 0; c < j->a->dim; c++) {
    double side = kith_lattice_side(lattice, c);
    double most = side > 0 ? side : farthest_along(j, c); /* of points that lie in the brick */
    if (side <= KITH_WIDEST_FOLD * j->predicate.reach)
      folded += side * side;
    square += (most + j->predicate.reach) * (most + j->predicate.reach);
  }
  return 2 * sqrt(square) + kith_folds_spread(folded);
}

/* Whether coordinates in the index may be rounded: if the filter can always be used, and is all that sees them
 * there. */
static bool may_round(const kith_join *j) {
  const double WIDEST = 1000; /* eps: the filter goes up to 1024 */
  const kith_lattice *lattice = &j->space.lattice;
  bool has_ties = lattice->n > 0 && kith_lattice_doubt(lattice, j->predicate.limit) < j->predicate.limit;
  bool plain = j->predicate.norm == KITH_NORM_2 && !j->limits && !j->in_ego_order && !has_ties;
  return plain && j->a->dim > 1 && !j->on_gpu && !j->options.distances && j->predicate.filter &&
         find_widest(j) <= WIDEST * sqrt(j->predicate.limit);
}

/* Whether they are: those of float64 points, and of points that are wrapped when they are read. */
static bool is_rounded(const kith_join *j) {
  return (lattice_to_wrap_into(j) || are_all(j, KITH_F64)) && may_round(j);
}

static kith_status build_index(kith_join *j, const kith_points *points, uint64_t invalid, kith_index *index) {
  bool narrow = are_all(j, KITH_F32) && !lattice_to_wrap_into(j);
  if (j->aim == KITH_AIM_TOTAL && !j->on_gpu && !j->in_ego_order && !j->limits && points->dim == 1 && narrow)
    return kith_index_build_values(j->ctx, points, &j->grid, invalid, index);
  kith_index_plan plan = {.invalid_rows = invalid,
                          .dtype = narrow || is_rounded(j) ? KITH_F32 : KITH_F64,
                          .spread = find_spread(j),
                          .wrap_into = lattice_to_wrap_into(j)};
  return kith_index_build_planned(j->ctx, points, &j->grid, &plan, index);
}

static kith_status build_indexes(kith_join *j) {
  if (!j->shared) /* else others are further on */
    kith_stage_begin(j->ctx, "index", 0.05);
  if (kith_join_is_self(j))
    return build_index(j, j->a, j->invalid[0], &j->index_b);
  kith_status status = build_index(j, j->a, j->invalid[0], &j->index_a);
  return status ? status : build_index(j, j->b, j->invalid[1], &j->index_b);
}

static kith_status take_index(kith_join *j, const kith_points *points, bool candidates, kith_index *index) {
  *index = (kith_index){.grid = &j->grid, .dim = points->dim, .id_end = points->n};
  return j->giver->give_index(j->giver, candidates, index);
}

/* Whether a GPU has given the CPU its grid and its indexes. If it could not, the CPU makes them. */
static bool take_indexes(kith_join *j) {
  if (!j->giver || take_grid_of_gpu(j))
    return false;
  kith_status status = take_index(j, j->b, true, &j->index_b);
  if (!status && !kith_join_is_self(j))
    status = take_index(j, j->a, false, &j->index_a);
  if (!status)
    return true;
  kith_index_destroy(&j->index_a);
  kith_index_destroy(&j->index_b);
  kith_free(j->stencil);
  j->stencil = NULL;
  return false;
}

static kith_status build_blocks(kith_join *j) {
  return j->in_ego_order ? kith_ego_build(j->ctx, &j->index_b, &j->ego) : KITH_OK;
}

static kith_status create_engine(kith_join *j, kith_engine **out) {
  j->task = (kith_task){.predicate = &j->predicate,
                        .space = &j->space,
                        .limits = j->limits,
                        .stencil = j->stencil,
                        .ego = j->in_ego_order ? &j->ego : NULL,
                        .queries = kith_join_is_self(j) ? &j->index_b : &j->index_a,
                        .candidates = &j->index_b,
                        .half = j->options.half,
                        .sorted = j->options.sorted,
                        .no_shortc = j->options.no_shortc,
                        .drop_self = kith_join_drops_self(j),
                        .collects = j->aim == KITH_AIM_ROWS};
  return kith_engine_cpu_create(j->ctx, &j->task, out);
}

static bool uses_device_memory(const kith_join *j) {
  return j->a->device || j->b->device || j->options.on_device;
}

bool kith_join_needs_gpu(const kith_join *j) {
  return uses_device_memory(j) || j->options.kernel != KITH_KERNEL_AUTO;
}

static bool wants_to_share(const kith_context *ctx) {
  return ctx->engine == KITH_ENGINE_HYBRID || ctx->gpus.all || ctx->gpus.n > 1;
}

/* What a GPU cannot do: embedded metrics find their distances on the CPU, and so do points their places if the
 * join is shared. NULL: it can. */
static const char *beyond_gpu(const kith_join *j) {
  bool on_device = j->a->device || j->b->device;
  bool has_places = kith_space_is_embedded(&j->space) || j->space.lattice.n > 0;
  if (has_places && on_device && wants_to_share(j->ctx))
    return "periodic boxes, cosine, angular and haversine on points in the memory of a GPU that is to share "
           "the "
           "join: give it points in host memory";
  if (kith_space_is_embedded(&j->space) && j->options.distances && j->options.on_device)
    return "distances of this metric in the memory of a GPU: ask for a table in host memory";
  return NULL;
}

/* Replaces the points by how they lie in their space, once. */
static kith_status embed(kith_join *j) {
  const kith_points *sets[2] = {j->a, j->b};
  bool has_places = kith_space_is_embedded(&j->space) || j->space.lattice.n > 0;
  if (!has_places || j->a == &j->placed[0].points)
    return KITH_OK;
  kith_placing how = {.skip_invalid = j->options.skip_invalid, .may_wrap_later = !wants_to_share(j->ctx)};
  double began = kith_seconds();
  for (int i = 0; i < (j->one_set ? 1 : 2); i++) {
    kith_free(j->placed[i].owned); /* of a try that failed */
    how.name = i ? "b" : "a";
    kith_status status = kith_space_embed(j->ctx, &j->space, sets[i], &how, &j->placed[i]);
    if (status)
      return status;
  }
  j->a = &j->placed[0].points;
  j->b = j->one_set ? j->a : &j->placed[1].points;
  j->space.lattice.turned = false; /* they are now; GPUs that share the join are not to turn them again */
  j->report.seconds_plan += kith_seconds() - began;
  return KITH_OK;
}

kith_status kith_join_prepare_gpu(kith_join *j, uint32_t gpu, kith_engine **out) {
  const kith_join_options *opt = &j->options;
  bool alone = !wants_to_share(j->ctx);
  kith_status status = alone ? KITH_OK : embed(j);
  if (status)
    return status;
  kith_cuda_spec spec = {.a = *j->a,
                         .b = *j->b,
                         .one_set = j->one_set,
                         .half = opt->half,
                         .drop_self = kith_join_drops_self(j),
                         .sorted = opt->sorted,
                         .distances = opt->distances,
                         .skip_invalid = opt->skip_invalid,
                         .finds_places = alone && kith_space_is_embedded(&j->space),
                         .index_dims = opt->index_dims,
                         .cell_side = opt->cell_side,
                         .brute = opt->brute,
                         .no_reorder = opt->no_reorder,
                         .no_sortidu = opt->no_sortidu,
                         .no_shortc = opt->no_shortc,
                         .shared = j->ctx->engine == KITH_ENGINE_HYBRID,
                         .gives_index = j->ctx->engine == KITH_ENGINE_HYBRID && !j->on_gpu &&
                                        opt->algorithm != KITH_ALGORITHM_EGO,
                         .counts = j->aim == KITH_AIM_TOTAL,
                         .kernel = opt->kernel,
                         .cells = opt->cells,
                         .order = opt->order,
                         .threads_per_query = opt->threads_per_query ? opt->threads_per_query : 1,
                         .predicate = j->predicate,
                         .limits = j->limits};
  kith_cuda_info info;
  kith_stage_begin(j->ctx, "index", 0.05);
  status = kith_engine_cuda_create(j->ctx, gpu, &spec, &j->space, &info, out);
  bool on_host = !j->a->device && !j->b->device;
  if (status == KITH_ERR_POINTS && spec.finds_places && on_host) {
    kith_status why = embed(j); /* says which row has no place */
    status = why ? why : status;
  }
  if (status)
    return status;
  if (!j->on_gpu)
    j->gpu = info; /* the first one's */
  j->on_gpu = true;
  j->invalid[0] = info.invalid_rows;
  j->report.seconds_plan += info.seconds_plan;
  j->report.seconds_index += info.seconds_index;
  j->report.cells = j->gpu.cells;
  j->report.index_dims = j->gpu.dense ? j->gpu.tiles.split : j->gpu.grid.k;
  j->report.cell_side = j->gpu.dense ? 0 : kith_grid_row_side(&j->gpu.grid);
  return kith_check_cancel(j->ctx);
}

/* Whether the CPU may do what a GPU could not. */
static bool may_fall_back(const kith_join *j, kith_status status) {
  bool able = status != KITH_ERR_CANCELLED && status != KITH_ERR_POINTS && status != KITH_ERR_ARGUMENT;
  return j->ctx->engine == KITH_ENGINE_AUTO && !kith_join_needs_gpu(j) && able;
}

kith_status kith_join_check_cpu(kith_join *j) {
  if (uses_device_memory(j))
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT,
                     "the CPU cannot read or write the memory of a GPU: choose the engine cuda");
  if (j->options.kernel != KITH_KERNEL_AUTO)
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT,
                     "the kernels tile and point are those of a GPU: choose the engine cuda");
  return KITH_OK;
}

/* The engine of the CPU, once the indexes are there. */
static kith_status finish_cpu(kith_join *j, double began, kith_engine **out) {
  kith_status status = create_engine(j, out);
  if (status)
    return status;
  j->report.seconds_index += kith_seconds() - began;
  j->report.cells = j->index_b.n_cells;
  j->report.index_dims = j->grid.k;
  j->report.cell_side = kith_grid_row_side(&j->grid);
  return kith_check_cancel(j->ctx);
}

kith_status kith_join_prepare_cpu(kith_join *j, kith_engine **out) {
  *out = NULL;
  kith_status status = kith_join_check_cpu(j);
  if (status || (status = embed(j)))
    return status;
  double began = kith_seconds();
  if (take_indexes(j))
    return finish_cpu(j, began, out);
  if ((status = kith_check_cancel(j->ctx)) || (status = look_at_points(j)) || (status = choose(j)))
    return status;
  double planned = kith_seconds();
  j->report.seconds_plan += planned - began;
  if (j->all_with_all) {
    status = kith_join_prepare_brute(j, out);
    j->report.seconds_index += kith_seconds() - planned;
    j->report.cells = j->panels_b.n_panels;
    j->report.index_dims = j->brute_choice.split;
    return status ? status : kith_check_cancel(j->ctx);
  }
  if ((status = build_indexes(j)) || (status = build_blocks(j)))
    return status;
  return finish_cpu(j, planned, out);
}

/* When a pair belongs. */
static kith_status make_predicate(kith_join *j) {
  const kith_lattice *lattice = &j->space.lattice;
  double limit = kith_space_limit(&j->space, j->options.eps);
  j->predicate = kith_predicate_of(j->space.norm, limit, j->space.dim);
  kith_status status = j->options.eps_of ? kith_join_find_limits(j) : KITH_OK;
  if (status || lattice->n == 0 || j->options.eps <= lattice->height / 2)
    return status;
  char which[96] = "eps";
  for (uint64_t i = 0; j->options.eps_of && i < j->a->n; i++)
    if (j->options.eps_of[i] == j->options.eps) {
      snprintf(which, sizeof which, "the largest radius, that of row %llu (counted from 0),",
               (unsigned long long)i);
      break;
    }
  return kith_fail(
      j->ctx, KITH_ERR_ARGUMENT,
      "%s is %.15g, but in a periodic box it can be at most %.15g, half of the smallest height of the "
      "box: beyond that a point would have several images of another as neighbours",
      which, j->options.eps, lattice->height / 2);
}

/* Whether a GPU would look at so many points in vain that the CPU is faster: its cells are made for the largest
 * of the limits. */
static bool is_better_on_cpu(const kith_join *j) {
  double more = pow(kith_join_times_larger(j), j->space.dim < 3 ? j->space.dim : 3);
  return j->ctx->engine == KITH_ENGINE_AUTO && !kith_join_needs_gpu(j) && more > 64;
}

static uint64_t count_points(const kith_join *j) { return j->a->n + (j->one_set ? 0 : j->b->n); }

static kith_status prepare(kith_join *j, const kith_join_options *options) {
  kith_context *ctx = j->ctx;
  kith_status status = kith_call_begin(ctx);
  if (!status)
    status = check_points(j);
  if (!status)
    status = check_options(j, options);
  if (status || (status = kith_trace_open(ctx, j->options.trace)))
    return status;
  j->input_dim = j->a->dim;
  if ((status = make_predicate(j)))
    return status;
  const char *beyond = beyond_gpu(j);
  if (beyond) /* all of it is about the memory of a GPU, which the CPU has no use for */
    return kith_fail(ctx, KITH_ERR_UNSUPPORTED, "the engine cuda does not know %s", beyond);
  bool on_cpu = j->options.algorithm == KITH_ALGORITHM_EGO && ctx->engine != KITH_ENGINE_HYBRID;
  on_cpu = on_cpu || is_better_on_cpu(j);
  if (on_cpu || !kith_cuda_wanted(ctx, count_points(j), j->space.dim, kith_join_needs_gpu(j)))
    return kith_join_prepare_cpu(j, &j->engine);
  status = wants_to_share(ctx) ? kith_join_prepare_shared(j) : kith_join_prepare_gpu(j, 0, &j->engine);
  if (!status || !may_fall_back(j, status))
    return status;
  j->on_gpu = j->shared = false; /* what a GPU has told is gone with it */
  return kith_join_prepare_cpu(j, &j->engine);
}

static kith_join join_of(kith_context *ctx, const kith_points *a, const kith_points *b) {
  return (kith_join){.ctx = ctx, .a = a, .b = b ? b : a, .one_set = !b, .report = kith_join_report_init()};
}

kith_status kith_join_prepare(kith_join *j, kith_context *ctx, const kith_points *a, const kith_points *b,
                              const kith_join_options *options) {
  return kith_join_prepare_for(KITH_AIM_ROWS, j, ctx, a, b, options);
}

kith_status kith_join_prepare_for(kith_aim aim, kith_join *j, kith_context *ctx, const kith_points *a,
                                  const kith_points *b, const kith_join_options *options) {
  *j = join_of(ctx, a, b);
  j->aim = aim;
  return prepare(j, options);
}

void kith_join_release_index(kith_join *j) {
  if (j->shared && j->engine)
    kith_hybrid_describe(j->engine, &j->report);
  kith_engine_destroy(j->engine);
  j->engine = NULL;
  kith_index_destroy(&j->index_a);
  kith_index_destroy(&j->index_b);
  kith_ego_destroy(&j->ego);
  kith_join_release_brute(j);
}

static const char *engine_name(const kith_join *j) {
  if (j->shared && j->ctx->engine == KITH_ENGINE_HYBRID)
    return "hybrid";
  return j->on_gpu ? "cuda" : "cpu";
}

kith_status kith_join_release(kith_join *j, kith_status status, kith_join_report *report) {
  kith_join_report *mine = &j->report;
  kith_join_release_index(j);
  mine->tested = j->tally.tested;
  mine->inside = j->tally.inside;
  mine->invalid_rows = j->invalid[0] + j->invalid[1];
  mine->peak_bytes = kith_peak_bytes(j->ctx);
  mine->engine = engine_name(j);
  mine->algorithm = kith_join_algorithm(j);
  if (!status && !j->on_gpu && j->options.algorithm == KITH_ALGORITHM_AUTO)
    kith_cuda_missed(j->ctx, count_points(j), mine->seconds_plan + mine->seconds_index + mine->seconds_join);
  bool is_done = !status;
  status = kith_trace_close(j->ctx, status);
  if (report && is_done) { /* even if its trace could not be written */
    size_t size = report->struct_size < sizeof *mine ? report->struct_size : sizeof *mine;
    mine->struct_size = size;
    memcpy(report, mine, size);
  }
  kith_free(j->limits);
  kith_free(j->placed[0].owned);
  kith_free(j->placed[1].owned);
  kith_free(j->stencil);
  kith_free(j->choice.box);
  kith_free(j->packing.columns);
  kith_free(j->packing.centre);
  kith_free(j->box);
  return kith_call_end(j->ctx, status);
}
