/* Making a lane: which kernels it calls, and where in its memory its buffers lie. See lane.h. */
#include "engine/cpu/ego.h"
#include "engine/cpu/grid.h"
#include "engine/cpu/lane.h"
#include "engine/cpu/periodic.h"

const kith_kernel_table *kith_kernels_for(kith_isa_level isa, kith_norm norm) {
  static const kith_kernel_table *const tables[][3] = {
    [KITH_ISA_SCALAR] = {&kith_kernels_scalar, &kith_kernels_scalar_1, &kith_kernels_scalar_max},
#if defined(__x86_64__)
    [KITH_ISA_AVX2] = {&kith_kernels_avx2, &kith_kernels_avx2_1, &kith_kernels_avx2_max},
    [KITH_ISA_AVX512] = {&kith_kernels_avx512, &kith_kernels_avx512_1, &kith_kernels_avx512_max},
#endif
  };
  return tables[isa][norm];
}

/* The buffers of one lane, one behind the other. Sizes are multiples of 64 bytes. */
typedef struct lane_layout {
  uint32_t stride;
  size_t queries, candidates, ids, positions, grid, steps, ego, origin, box, near_box, shift, sieve, cuts,
      collected, sort_items, total; /* where each begins */
} lane_layout;

static size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

static size_t coordinate_width(const kith_task *task) {
  return task->candidates->dtype == KITH_F32 ? sizeof(float) : sizeof(double);
}

static lane_layout layout_lane(const kith_task *task, uint32_t collect_limit) {
  uint32_t dim = task->candidates->dim;
  uint32_t capacity = kith_lane_capacity(dim);
  size_t width = coordinate_width(task);
  lane_layout layout = {.stride = capacity + 64 / sizeof(float)};
  layout.candidates = round_up(dim * width * KITH_TILE_QUERIES) + 64;
  layout.ids = layout.candidates + round_up(dim * width * layout.stride);
  layout.positions = layout.ids + round_up(sizeof(uint32_t) * layout.stride);
  layout.grid = layout.positions + round_up(sizeof(uint32_t) * layout.stride);
  layout.steps = layout.grid + (task->stencil ? round_up(sizeof(kith_grid_walk)) : 0);
  layout.ego = layout.steps + (task->stencil ? round_up(kith_grid_walk_bytes(task->stencil)) : 0);
  layout.origin = layout.ego + (task->ego ? round_up(sizeof(kith_ego_walk)) : 0);
  layout.box = layout.origin + round_up(sizeof(double) * dim);
  layout.near_box = layout.box + round_up(2 * sizeof(double) * dim);
  layout.shift = layout.near_box + round_up(2 * sizeof(double) * dim);
  layout.sieve = layout.shift + round_up(sizeof(double) * dim);
  layout.cuts = layout.sieve + round_up(3 * sizeof(float) * dim);
  size_t cuts = (sizeof(float) * (KITH_TILE_QUERIES + 1) + sizeof(bool)) * dim;
  layout.collected = layout.cuts + (task->space->lattice.n > 0 ? round_up(cuts) : 0);
  size_t room = collect_limit > 0 ? (size_t)collect_limit + capacity : 0;
  size_t collected = sizeof(uint32_t) * KITH_TILE_QUERIES * room;
  layout.sort_items = layout.collected + round_up(collected);
  layout.total = layout.sort_items + (task->sorted ? sizeof(uint64_t) * 2 * KITH_SORT_CAPACITY : 0);
  return layout;
}

size_t kith_lane_bytes(const kith_task *task, uint32_t collect_limit) {
  return layout_lane(task, collect_limit).total;
}

/* Where the true coordinates of an index are. */
static kith_true_points truth_of(const kith_index *index) {
  int64_t width = index->dtype == KITH_F32 ? sizeof(float) : sizeof(double);
  if (!index->rounded)
    return (kith_true_points){.data = index->coords,
                              .row = width,
                              .column = (int64_t)index->stride * width,
                              .is_f64 = index->dtype == KITH_F64};
  const kith_points *points = index->rounded;
  return (kith_true_points){.data = points->data,
                            .row = points->row_stride,
                            .column = points->col_stride,
                            .ids = index->ids,
                            .is_f64 = points->dtype == KITH_F64,
                            .wrap_into = index->wrap_into};
}

void kith_lane_make(kith_lane *lane, const kith_task *task, uint32_t collect_limit, kith_isa_level isa,
                    char *buffer) {
  uint32_t dim = task->candidates->dim;
  lane_layout layout = layout_lane(task, collect_limit);
  const kith_kernel_table *table = kith_kernels_for(isa, task->predicate->norm);
  uint32_t entry = dim <= KITH_KERNEL_DIMS ? dim : 0;
  *lane = (kith_lane){
      .task = task,
      .table = table,
      .plain_kernels = &table->f32[entry],
      .filter_kernels = &table->f32[entry],
      .cutting_kernels = &table->cutting[entry],
      .exact_kernels = task->candidates->dtype == KITH_F32 ? &table->f32[entry] : &table->f64[entry],
      .predicate = *task->predicate,
      .index_width = coordinate_width(task),
      .origin = (double *)(buffer + layout.origin),
      .box = (double *)(buffer + layout.box),
      .image_kernels = task->candidates->dtype == KITH_F32 ? &table->image_f32 : &table->image_f64,
      .query_coords = buffer + layout.queries,
      .candidate_coords = buffer + layout.candidates,
      .candidate_ids = (uint32_t *)(buffer + layout.ids),
      .candidate_positions = (uint32_t *)(buffer + layout.positions),
      .grid = task->stencil ? (kith_grid_walk *)(buffer + layout.grid) : NULL,
      .ego = task->ego ? (kith_ego_walk *)(buffer + layout.ego) : NULL,
      .collect_limit = collect_limit,
      .collected = (uint32_t *)(buffer + layout.collected),
      .sort_items = (uint64_t *)(buffer + layout.sort_items),
      .id_window = task->candidates->id_end,
      .capacity = kith_lane_capacity(dim)};
  lane->slanted = task->stencil ? task->candidates->grid->slanted : 0;
  lane->tile = (kith_tile){.dim = dim,
                           .stride = layout.stride,
                           .queries = lane->query_coords,
                           .candidates = lane->candidate_coords,
                           .starts = lane->starts,
                           .limits = lane->limits,
                           .query_ids = lane->queries.ids,
                           .candidate_ids = lane->candidate_ids};
  for (uint32_t q = 0; q < KITH_TILE_QUERIES; q++) {
    lane->starts[q] = task->predicate->minus_limit;
    lane->limits[q] = task->predicate->limit;
  }
  lane->sieve = (kith_sieve){.from_stride = task->candidates->stride,
                             .origin = lane->origin,
                             .slanted = lane->slanted > 0,
                             .low = (float *)(buffer + layout.sieve),
                             .high = (float *)(buffer + layout.sieve) + dim,
                             .behind = (float *)(buffer + layout.sieve) + 2 * dim,
                             .to_stride = layout.stride};
  lane->truth = (kith_truth){.queries = truth_of(task->queries),
                             .candidates = truth_of(task->candidates),
                             .query_positions = lane->queries.positions,
                             .candidate_positions = lane->candidate_positions};
  float *behind = (float *)(buffer + layout.cuts);
  float *by = behind + (size_t)KITH_TILE_QUERIES * dim;
  lane->periodic = (kith_periodic){.near_box = (double *)(buffer + layout.near_box),
                                   .shift = (double *)(buffer + layout.shift),
                                   .cuts = {.cut = (bool *)(by + dim), .by = by, .behind = behind}};
  lane->sieve.by = by; /* an axis is cut for the tile or for fours, not both */
  lane->index_spread = task->candidates->spread;
  if (lane->grid)
    kith_grid_walk_make(lane->grid, task->stencil, buffer + layout.steps);
  kith_periodic_open(lane);
}
