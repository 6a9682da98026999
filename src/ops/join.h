/* One join on its way along the data path: what the calls in this folder share.
 *
 *   kith_join_prepare   check -> embed -> look at the points -> choose the grid -> index -> engine
 *                       (on a GPU the engine looks, chooses and indexes itself, and gives all that to the CPU
 * if they share the join; joining all with all, points are packed instead of indexed: prepare_panels.c,
 * assemble.c) then                count, degrees, table, stream, write (join.c) or plan (plan.c)
 *   kith_join_release   in every case, also after a failed prepare */
#ifndef KITH_OPS_JOIN_H
#define KITH_OPS_JOIN_H

#include "base/team.h"
#include "engine/cpu/all_pairs.h"
#include "engine/cuda/engine.h"
#include "plan/estimate.h"
#include "plan/plan.h"
#include "schedule/hybrid.h"
#include "schedule/schedule.h"
#include "sink/checkpoint.h"

#include <math.h>

/* The share of a call's progress that counting has, where rows are filled afterwards. */
static const double KITH_COUNT_SPAN = 0.15;

/* What a call is to find. For a total the ids of points are not needed, unless engines share the join. */
typedef enum kith_aim { KITH_AIM_ROWS, KITH_AIM_DEGREES, KITH_AIM_TOTAL } kith_aim;

/* Everything about one join between kith_join_prepare and kith_join_release. */
typedef struct kith_join {
  kith_context *ctx;
  kith_join_options options;
  const kith_points *a;
  const kith_points *b; /* a itself when a set is joined with itself */
  uint32_t input_dim;   /* columns of the sets as they were given: */
  kith_space space;     /* a and b are views of them as they lie in this space, */
  kith_placed placed[2];
  bool one_set;
  kith_aim aim;
  kith_predicate predicate;
  double *limits;         /* by row of a, where each has its own; NULL: the predicate's, */
  kith_predicate typical; /* and that of which most are not larger */
  double *box;            /* min[dim], max[dim] of both sets, then of b alone */
  uint64_t invalid[2];
  bool on_gpu;
  bool shared;        /* by several engines */
  kith_cuda_info gpu; /* the plan of a GPU, then; of the CPU: */
  kith_choice choice;
  kith_grid grid;
  kith_stencil *stencil;
  kith_index index_a, index_b; /* index_a is unused when a set is joined with itself */
  kith_engine *giver;          /* the GPU that they may come from; NULL: they are built */
  kith_task task;
  bool in_ego_order; /* the grid is that of the order, then, and there is no stencil: */
  kith_ego_choice ego_choice;
  kith_ego ego;      /* the blocks of index_b */
  bool all_with_all; /* there are panels instead of indexes, then: */
  kith_brute_choice brute_choice;
  kith_packing packing;
  kith_panels panels_a, panels_b; /* panels_a is unused when a set is joined with itself */
  kith_engine *engine;
  kith_checkpoint *checkpoint; /* where the join is recorded; NULL: nowhere */
  kith_tally tally;
  kith_join_report report;
} kith_join;

static inline bool kith_join_is_self(const kith_join *j) { return j->one_set; }

/* Whether (i, i) is left out. */
static inline bool kith_join_drops_self(const kith_join *j) { return j->one_set && !j->options.self_pairs; }

kith_status kith_join_prepare(kith_join *j, kith_context *ctx, const kith_points *a, const kith_points *b,
                              const kith_join_options *options);

/* The same for a call that wants less than rows, which takes less memory. */
kith_status kith_join_prepare_for(kith_aim aim, kith_join *j, kith_context *ctx, const kith_points *a,
                                  const kith_points *b, const kith_join_options *options);

/* The index is not needed any more: makes room for the result. What engines have done is then in the report. */
void kith_join_release_index(kith_join *j);

/* Releases everything and, on success, hands the report to the caller. Returns the status. */
kith_status kith_join_release(kith_join *j, kith_status status, kith_join_report *report);

/* Whether nothing but a GPU can do what is asked for. */
bool kith_join_needs_gpu(const kith_join *j);

/* Refuses an algorithm that does not go with the other options; decides whether to put the points in epsilon
 * grid order (j->in_ego_order), once the grid is chosen, and makes the grid of that order. */
kith_status kith_join_check_algorithm(kith_join *j);
kith_status kith_join_choose_ego(kith_join *j, const kith_question *question);

/* Where every query has its own eps: their limits, the largest of them as the predicate's, and what is typical.
 */
kith_status kith_join_find_limits(kith_join *j);

/* How many times the typical reach of a query the largest one is; and cells for the typical one, from those
 * that were chosen as if there were no other. */
double kith_join_times_larger(const kith_join *j);
void kith_join_fit_cells(kith_grid_spec *spec, double times_smaller);

/* Decides whether to join all with all (j->all_with_all), once the grid is chosen; then packs the points and
 * makes the engine. */
kith_status kith_join_choose_brute(kith_join *j, const kith_question *question);
kith_status kith_join_prepare_brute(kith_join *j, kith_engine **out);

/* Lets several engines share the join, as the context has it. */
kith_status kith_join_prepare_shared(kith_join *j);

/* One engine of its own: a GPU of the context, which looks at the points, chooses the grid and builds the index
 * itself; or the CPU, which has the grid and the index of a GPU that shares the join. */
kith_status kith_join_prepare_gpu(kith_join *j, uint32_t gpu, kith_engine **out);
kith_status kith_join_prepare_cpu(kith_join *j, kith_engine **out);

/* Whether the CPU can do what is asked for. */
kith_status kith_join_check_cpu(kith_join *j);

void kith_join_release_brute(kith_join *j);

/* Work on all queries. */
static inline kith_work kith_join_work(const kith_join *j, kith_operation operation) {
  return (kith_work){.operation = operation, .end = j->engine->n_queries, .end_row = UINT64_MAX};
}

/* Runs work on the engine, and adds to tally and report. */
kith_status kith_join_run(kith_join *j, const kith_work *work);

/* Allocates the rows of a table, or refuses it if memory would not hold it. */
kith_status kith_join_allocate_table(kith_join *j, kith_table *table, uint64_t pairs);

/* How the rows of a table are found (way.c). */
typedef struct kith_way {
  enum { KITH_WAY_FILL, KITH_WAY_COLLECT, KITH_WAY_ASSEMBLE } kind;
  uint64_t pool_ids; /* KITH_WAY_COLLECT: room for so many */
} kith_way;

/* The best one for a table in memory, and for a table that is made whole, within the budget, to be streamed
 * (KITH_WAY_FILL: it is not). */
kith_way kith_join_way_to_table(const kith_join *j, const kith_estimate *estimate);
kith_way kith_join_way_to_stream(const kith_join *j, const kith_estimate *estimate);

/* Makes a table that way. *done is false if it did not fit after all, or is to be filled. */
kith_status kith_join_go(kith_join *j, kith_way way, kith_table *table, uint64_t *offsets, bool *done);

/* Memory that a table may take: not the last of it, or the system would end the process. */
static inline double kith_room_for_table(void) { return 0.9 * (double)kith_system_memory_free(); }

/* Makes a table in one pass, by collecting rows in a pool of so many ids (KITH_DO_COLLECT). *done is false if
 * they did not fit after all. */
kith_status kith_join_collect(kith_join *j, kith_table *table, uint64_t *offsets, uint64_t capacity,
                              bool *done);

/* Allocates the table and moves rows from a pool to their places in it. offsets[i + 1] has the number of row i
 * << 32 | its degree; it begins in the pool at begins[number], or at that number itself. */
kith_status kith_join_place_rows(kith_join *j, const uint32_t *pool, const uint64_t *begins, uint64_t *offsets,
                                 kith_table *table);

/* Makes a table by an engine that finds all pairs once. *done is false if they did not fit the memory. */
kith_status kith_join_assemble(kith_join *j, kith_table *table, uint64_t *offsets, bool *done);

/* The name of what finds the pairs. */
static inline const char *kith_join_algorithm(const kith_join *j) {
  bool brute = j->on_gpu ? j->gpu.dense : j->all_with_all;
  return brute ? "brute" : j->in_ego_order ? "ego" : "grid";
}

/* A file that is to be written, and recorded on the way (checkpoint.c). */
typedef struct kith_recording {
  kith_checkpoint *checkpoint; /* NULL: it is not */
  const kith_points *a, *b;    /* as they were given */
  kith_what what;
  const char *path;
} kith_recording;

/* Goes on with the checkpoint, if it is of this join, or begins one; refuses that of another. */
kith_status kith_join_record(kith_join *j, const kith_recording *recording);

/* The degrees, as far as they are recorded, and the others counted and recorded on the way; values[1 + i] is
 * that of row i, values[0] is spent. */
kith_status kith_join_recorded_degrees(kith_join *j, uint64_t *values);

/* Bytes of a pair in a neighbour table. */
static inline double kith_join_pair_bytes(const kith_join *j) { return j->options.distances ? 12 : 4; }

/* The pairs in the result, from what KITH_DO_COUNT counts: both orders, and every point with itself. */
static inline double kith_join_pairs_of_estimate(const kith_join *j, double counted) {
  double self = kith_join_drops_self(j) ? j->engine->n_queries : 0;
  return fmax(j->options.half ? (counted - self) / 2 : counted - self, 0);
}

#endif
