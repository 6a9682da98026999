/* Joins that several engines share: the GPUs of the context, and the CPU if it is asked for. See hybrid.h. */
#include "base/clock.h"
#include "ops/calibrate.h"
#include "ops/join.h"

#include <stdio.h>
#include <string.h>

static void note_failure(kith_join *j, const char *name) {
  kith_engine_report *engine = &j->report.engines[j->report.n_engines++];
  snprintf(engine->name, sizeof engine->name, "%s", name);
  snprintf(engine->failure, sizeof engine->failure, "%.200s", kith_message(j->ctx));
}

static void add_member(kith_hybrid_spec *spec, kith_engine *engine, kith_end end, const char *name) {
  kith_member *member = &spec->members[spec->n_members++];
  *member = (kith_member){.engine = engine, .end = end};
  snprintf(member->name, sizeof member->name, "%s", name);
}

static void remove_members(kith_hybrid_spec *spec, uint32_t first) {
  while (spec->n_members > first)
    kith_engine_destroy(spec->members[--spec->n_members].engine);
}

/* Whether others may do what this engine could not. */
static bool is_its_own_failure(kith_status status) {
  return status == KITH_ERR_MEMORY || status == KITH_ERR_BUDGET || status == KITH_ERR_UNSUPPORTED;
}

/* cuda, or by its number where there are several; two engines on one GPU are told apart by a second number. */
static void name_gpu(const kith_context *ctx, uint32_t i, char name[16]) {
  uint32_t device = ctx->gpus.list[i].device;
  uint32_t same = 0;
  for (uint32_t k = 0; k < i; k++)
    same += ctx->gpus.list[k].device == device;
  if (ctx->gpus.n == 1)
    snprintf(name, 16, "cuda");
  else if (same == 0)
    snprintf(name, 16, "cuda%u", device);
  else
    snprintf(name, 16, "cuda%u-%u", device, same + 1);
}

/* From which end of the deque an engine takes. A fixed partition is the paper's: heavy queries are the GPU's.
 * When engines take what they can, the other way round is faster in four of five sets,
 * and as fast in the fifth (docs/performance.md). */
static kith_end end_of(const kith_join *j, bool gpu) {
  bool heavy = gpu == (j->options.partition != KITH_PARTITION_DYNAMIC);
  return heavy ? KITH_HEAVY_END : KITH_LIGHT_END;
}

static kith_status add_gpus(kith_join *j, kith_hybrid_spec *spec) {
  bool hybrid = j->ctx->engine == KITH_ENGINE_HYBRID;
  uint32_t gpus = 0;
  kith_status status = kith_cuda_count(j->ctx, &gpus);
  for (uint32_t i = 0; i < gpus && !status; i++) {
    kith_engine *engine = NULL;
    char name[16];
    name_gpu(j->ctx, i, name);
    status = kith_join_prepare_gpu(j, i, &engine);
    if (engine)
      add_member(spec, engine, end_of(j, true), name);
    else if (is_its_own_failure(status) && (hybrid || i + 1 < gpus || spec->n_members > 0)) {
      note_failure(j, name);
      status = KITH_OK;
    }
  }
  if (spec->n_members > 0 && spec->members[0].engine->give_index)
    j->giver = spec->members[0].engine;
  return status;
}

/* Brings the index of the CPU, while a GPU weighs its blocks or joins them. The times of plan and index in the
 * report have the former, and are not about the latter. */
static kith_status make_cpu(void *argument, kith_engine **out) {
  kith_join *j = argument;
  kith_join_report report = j->report;
  kith_status status = kith_join_prepare_cpu(j, out);
  j->report = report;
  return status;
}

/* About what that takes: coordinates, ids and cells over the bus, or else (measured with 16 threads, 2 and 10
 * million points in 2 to 8 dimensions) to sort the points. */
static double index_seconds(const kith_join *j) {
  const double BYTES_A_SECOND = 2e10;
  double points = (double)j->a->n + (j->one_set ? 0 : (double)j->b->n);
  if (!j->giver)
    return points * (80 + 5.0 * j->a->dim) * 1e-9 / j->ctx->threads;
  double width = j->a->dtype == KITH_F32 && j->b->dtype == KITH_F32 ? sizeof(float) : sizeof(double);
  return points * (width * j->a->dim + 8) / BYTES_A_SECOND;
}

/* Engines of one grid have their queries in one order, and a share that is not fixed needs no sample of both.
 */
static bool may_come_later(const kith_join *j, const kith_hybrid_spec *spec) {
  return spec->n_members > 0 && j->options.partition == KITH_PARTITION_DYNAMIC &&
         j->options.algorithm != KITH_ALGORITHM_EGO;
}

/* The CPU alone, if no GPU is there. */
static kith_status add_cpu(kith_join *j, kith_hybrid_spec *spec) {
  kith_status status = kith_join_check_cpu(j);
  if (!status && may_come_later(j, spec)) {
    add_member(spec, NULL, end_of(j, false), "cpu");
    kith_member *cpu = &spec->members[spec->n_members - 1];
    cpu->make = make_cpu;
    cpu->user = j;
    cpu->make_seconds = index_seconds(j);
    return KITH_OK;
  }
  kith_engine *engine = NULL;
  if (!status)
    status = kith_join_prepare_cpu(j, &engine);
  if (is_its_own_failure(status) && spec->n_members > 0) {
    note_failure(j, "cpu");
    return KITH_OK;
  }
  if (!status && j->all_with_all) /* has no queries to share */
    j->engine = engine;
  else if (!status)
    add_member(spec, engine, end_of(j, false), "cpu");
  return status;
}

/* What is known of the speed of the members: how they compare is enough. */
static void expect_rates(const kith_join *j, kith_hybrid_spec *spec) {
  kith_speeds speeds;
  kith_speeds_load(j->ctx, &speeds);
  for (uint32_t i = 0; i < spec->n_members; i++) {
    const char *engine = strcmp(spec->members[i].name, "cpu") == 0 ? "cpu" : "cuda";
    double seconds = kith_speeds_predict(&speeds, engine, j->a->dim, 1e6, 1e8);
    spec->members[i].rate = seconds > 0 ? 1e8 / seconds : 0;
  }
}

kith_status kith_join_prepare_shared(kith_join *j) {
  kith_hybrid_spec spec = {.n_rows = j->a->n, .partition = j->options.partition};
  spec.one_sided = j->space.lattice.n > 0; /* the CPU folds some axes of a box, where a GPU does not */
  if (j->options.on_device)
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT,
                     "a table in the memory of a GPU is made by that GPU alone: choose the engine cuda and one "
                     "device");
  kith_status status = add_gpus(j, &spec);
  bool dense =
      spec.n_members > 0 && j->gpu.dense; /* its tiles meet each other: there are no queries to share */
  if (!status && !dense && j->ctx->engine == KITH_ENGINE_HYBRID)
    status = add_cpu(j, &spec);
  if (status || (spec.n_members == 0 && j->engine)) {
    remove_members(&spec, 0);
    return status;
  }
  if (dense || spec.n_members == 1) {
    remove_members(&spec, 1);
    j->engine = spec.members[0].engine;
    return KITH_OK;
  }
  expect_rates(j, &spec);
  j->shared = true;
  double began = kith_seconds();
  status = kith_engine_hybrid_create(j->ctx, &spec, &j->engine);
  j->report.seconds_index += kith_seconds() - began;
  return status;
}
