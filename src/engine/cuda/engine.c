/* The CUDA engine: see engine.h. */
#include "engine/cuda/engine.h"

#include "base/clock.h"
#include "base/team.h"
#include "base/trace.h"
#include "points/points.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char LIBRARY[] = "libkith_cuda.so";

/* Which joins are a GPU's: of so many points, if it is awake; of more, if it must be woken up first, since they
 * would be over on the CPU before. Beyond 8 dimensions the CPU joins all with all, which takes longer: so many
 * columns of pairs take 16 threads as long as waking a GPU up. (Not the threads that there are: the engine
 * would then depend on them, and with it the order within rows.) */
enum { AWAKE_POINTS = 10000, ASLEEP_POINTS = 1000000, HIGH_DIM = 9 };
static const double START_SECONDS = 0.3;
static const double LONG_COLUMNS = 1e12;

/* ---- loading ------------------------------------------------------------------------------------------- */

static struct {
  const kith_cuda_api *api;
  char why[512];
} loaded;

/* Tries a library beside this code, in `folder` relative to it. */
static void *open_beside(const char *folder) {
  Dl_info info;
  char path[4096];
  if (!dladdr((const void *)&kith_cuda_load, &info) || !info.dli_fname)
    return NULL;
  const char *slash = strrchr(info.dli_fname, '/');
  int length = slash ? (int)(slash - info.dli_fname) : 0;
  int size = snprintf(path, sizeof path, "%.*s/%s%s", slash ? length : 1, slash ? info.dli_fname : ".", folder,
                      LIBRARY);
  return size > 0 && (size_t)size < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* KITH_CUDA_LIBRARY, else beside the program or libkith.so, else where the system looks. */
static void *open_library(void) {
  const char *named = getenv("KITH_CUDA_LIBRARY");
  if (named && *named)
    return dlopen(named, RTLD_NOW | RTLD_LOCAL);
  void *library = open_beside("");
  if (!library)
    library = open_beside("../lib/");
  return library ? library : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

static void load_once(void) {
  void *library = open_library();
  if (!library) {
    const char *error = dlerror();
    snprintf(loaded.why, sizeof loaded.why, "%s was not found (%s)", LIBRARY,
             error ? error : "no reason given");
    return;
  }
  const kith_cuda_api *(*get)(void) = NULL;
  *(void **)&get = dlsym(library, "kith_cuda_api_get");
  const kith_cuda_api *api = get ? get() : NULL;
  if (!api || api->version != KITH_CUDA_API_VERSION) {
    snprintf(loaded.why, sizeof loaded.why, "%s is of another version than this library", LIBRARY);
    return;
  }
  uint32_t devices = 0;
  kith_cuda_error error = {""};
  if (api->device_count(&devices, &error) != KITH_OK)
    snprintf(loaded.why, sizeof loaded.why, "%s", error.text);
  else if (devices == 0)
    snprintf(loaded.why, sizeof loaded.why, "this machine has no NVIDIA GPU");
  else
    loaded.api = api;
}

const kith_cuda_api *kith_cuda_load(const char **why) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_once);
  if (why)
    *why = loaded.why;
  return loaded.api;
}

/* ---- the session --------------------------------------------------------------------------------------- */

static void close_session(void *session) { kith_cuda_load(NULL)->session_destroy(session); }

kith_status kith_cuda_count(kith_context *ctx, uint32_t *gpus) {
  const char *why;
  const kith_cuda_api *api = kith_cuda_load(&why);
  if (!api)
    return kith_fail(ctx, KITH_ERR_UNSUPPORTED, "no GPU can be used: %s", why);
  uint32_t devices = 0;
  kith_cuda_error error = {""};
  api->device_count(&devices, &error);
  for (; ctx->gpus.n < devices && ctx->gpus.n < KITH_MAX_GPUS && ctx->gpus.all; ctx->gpus.n++)
    ctx->gpus.list[ctx->gpus.n].device = ctx->gpus.n;
  for (uint32_t i = 0; i < ctx->gpus.n; i++)
    if (ctx->gpus.list[i].device >= devices)
      return kith_fail(ctx, KITH_ERR_UNSUPPORTED,
                       "there is no GPU number %u: this machine has %u, counted from 0",
                       ctx->gpus.list[i].device, devices);
  *gpus = ctx->gpus.n;
  return KITH_OK;
}

static kith_status open_session(kith_context *ctx, uint32_t number) {
  uint32_t gpus;
  kith_status status = kith_cuda_count(ctx, &gpus);
  if (status)
    return status;
  kith_gpu *gpu = &ctx->gpus.list[number];
  if (gpu->session)
    return KITH_OK;
  kith_cuda_error error = {""};
  kith_cuda_session *session;
  status =
      kith_cuda_load(NULL)->session_create(gpu->device, ctx->gpus.memory_bytes, ctx->threads, &session, &error);
  if (status)
    return kith_fail(ctx, status, "%s", error.text);
  gpu->session = session;
  ctx->gpus.close = close_session;
  return KITH_OK;
}

static bool is_long_on_cpu(uint64_t n_points, uint32_t dim) {
  bool long_high = dim >= HIGH_DIM && (double)n_points * (double)n_points * dim > LONG_COLUMNS;
  return n_points >= ASLEEP_POINTS || long_high;
}

/* Wakes the first GPU up, unless that has failed before. */
static bool wake_gpu(kith_context *ctx) {
  if (ctx->gpus.unusable || !kith_cuda_load(NULL))
    return false;
  ctx->gpus.unusable = open_session(ctx, 0) != KITH_OK;
  if (ctx->gpus.unusable)
    ctx->message[0] = '\0'; /* nobody has asked for it */
  return !ctx->gpus.unusable;
}

/* A GPU is woken up for a join that is long enough, or once the short ones before it have taken as long
 * together: then there will be more of them. */
bool kith_cuda_wanted(kith_context *ctx, uint64_t n_points, uint32_t dim, bool device_memory) {
  if (ctx->engine != KITH_ENGINE_AUTO)
    return ctx->engine != KITH_ENGINE_CPU;
  if (device_memory || n_points < AWAKE_POINTS)
    return device_memory;
  bool awake = ctx->gpus.n > 0 && ctx->gpus.list[0].session;
  bool worth_waking = is_long_on_cpu(n_points, dim) || ctx->gpus.missed_seconds > START_SECONDS;
  return awake || (worth_waking && wake_gpu(ctx));
}

void kith_cuda_missed(kith_context *ctx, uint64_t n_points, double seconds) {
  if (ctx->engine == KITH_ENGINE_AUTO && n_points >= AWAKE_POINTS)
    ctx->gpus.missed_seconds += seconds;
}

/* ---- the engine ---------------------------------------------------------------------------------------- */

typedef struct cuda_engine {
  kith_engine base;
  kith_context *ctx;
  const kith_cuda_api *api;
  kith_cuda_join *join;
  uint64_t n_rows;
  kith_space space;
  kith_blocks blocks; /* of a join that is shared, once they are cut; */
  bool gave_blocks;   /* their arrays are the caller's */
  uint32_t track;     /* of the trace: transfers */
} cuda_engine;

static int asked_to_stop(const void *ctx) { return kith_cancelled(ctx); }

static kith_status finish(cuda_engine *cuda, kith_status status, const kith_cuda_error *error) {
  if (status == KITH_ERR_CANCELLED)
    return kith_check_cancel(cuda->ctx);
  return status ? kith_fail(cuda->ctx, status, "%s", error->text) : KITH_OK;
}

static void add(kith_tally *tally, const kith_cuda_tally *found) {
  tally->pairs += found->pairs;
  tally->tested += found->tested;
  tally->inside += found->inside;
}

typedef struct conversion {
  const kith_space *space;
  double *sizes;
  uint64_t n, shares;
} conversion;

static void convert_share(void *argument, uint64_t share) {
  const conversion *c = argument;
  uint64_t end = kith_share_begin(c->n, share + 1, c->shares);
  for (uint64_t i = kith_share_begin(c->n, share, c->shares); i < end; i++)
    c->sizes[i] = kith_space_distance(c->space, c->sizes[i]);
}

/* Embedded metrics: a GPU gives sizes, since its arcsine may round otherwise than that of this machine. */
static void convert_sizes(const cuda_engine *cuda, double *sizes, uint64_t n) {
  enum { GRAIN = 16384 };
  conversion c = {.space = &cuda->space, .sizes = sizes, .n = n, .shares = kith_shares(cuda->ctx, n, GRAIN)};
  kith_each(cuda->ctx, c.shares, convert_share, &c);
}

/* ---- blocks, where the join is shared -------------------------------------------------------------------- */

/* The GPU has begun to weigh them when this returns. */
static kith_status cut_blocks(cuda_engine *cuda) {
  kith_cuda_error error = {""};
  uint32_t n = 0;
  kith_status status = cuda->api->join_cut(cuda->join, &n, &error);
  if (status)
    return finish(cuda, status, &error);
  if ((status = kith_blocks_allocate(cuda->ctx, n, cuda->base.n_queries, &cuda->blocks)))
    return status;
  status = cuda->api->join_blocks(cuda->join, cuda->blocks.begin, cuda->blocks.ids, &cuda->base.weigh_seconds,
                                  &error);
  if (status)
    kith_blocks_release(&cuda->blocks);
  return finish(cuda, status, &error);
}

static kith_status cut(kith_engine *engine, kith_blocks *blocks) {
  cuda_engine *cuda = (cuda_engine *)engine;
  kith_status status = cuda->blocks.begin ? KITH_OK : cut_blocks(cuda);
  if (status)
    return status;
  *blocks = cuda->blocks;
  cuda->gave_blocks = true;
  return KITH_OK;
}

static kith_status weigh(kith_engine *engine, kith_blocks *blocks) {
  cuda_engine *cuda = (cuda_engine *)engine;
  kith_cuda_error error = {""};
  kith_status status = cuda->api->join_weights(cuda->join, blocks->candidates, &error);
  return finish(cuda, status, &error);
}

static kith_status give_index(kith_engine *engine, bool candidates, kith_index *index) {
  cuda_engine *cuda = (cuda_engine *)engine;
  kith_cuda_error error = {""};
  kith_cuda_index_size size;
  kith_status status = cuda->api->join_index_size(cuda->join, candidates, &size, &error);
  if (status)
    return finish(cuda, status, &error);
  index->dtype = size.is_f64 ? KITH_F64 : KITH_F32;
  index->n = size.n;
  index->n_cells = size.cells;
  index->n_rows = size.rows;
  if ((status = kith_index_allocate(cuda->ctx, index)))
    return status;
  kith_cuda_index to = {.coords = index->coords,
                        .stride = index->stride,
                        .ids = index->ids,
                        .cell_x = index->cell_x,
                        .cell_start = index->cell_start,
                        .row_cell = index->row_cell,
                        .row_number = index->row_number};
  status = cuda->api->join_index(cuda->join, candidates, &to, &error);
  if (!status)
    return kith_index_complete(cuda->ctx, index);
  kith_index_destroy(index);
  return finish(cuda, status, &error);
}

/* Embedded metrics: the distances of a block's rows. The threads of the context have other work. */
static void convert_block(const cuda_engine *cuda, const kith_work *work, uint32_t block) {
  for (uint32_t p = cuda->blocks.begin[block]; p < cuda->blocks.begin[block + 1]; p++) {
    uint32_t id = cuda->blocks.ids[p];
    if (id < work->first_row || id >= work->end_row)
      continue;
    const uint64_t *offset = work->offsets + (id - work->first_row);
    for (uint64_t i = offset[0] - work->offsets[0]; i < offset[1] - work->offsets[0]; i++)
      work->distances[i] = kith_space_distance(&cuda->space, work->distances[i]);
  }
}

static void trace_transfer(const cuda_engine *cuda, double began, const kith_cuda_times *times,
                           uint64_t pairs) {
  kith_trace_event event = {.track = cuda->track,
                            .name = "transfer",
                            .began = began + times->computed,
                            .ended = began + times->transferred,
                            .pairs = pairs};
  kith_trace_add(cuda->ctx, &event);
}

static uint64_t take_from_pool(void *pool, uint64_t n) { return kith_pool_reserve(pool, n); }

static kith_status run_blocks(cuda_engine *cuda, uint32_t lane, const kith_work *work, kith_cuda_tally *found,
                              kith_cuda_error *error) {
  static const kith_cuda_task tasks[] = {[KITH_DO_COUNT] = KITH_CUDA_COUNT,
                                         [KITH_DO_DEGREES] = KITH_CUDA_DEGREES,
                                         [KITH_DO_FILL] = KITH_CUDA_FILL,
                                         [KITH_DO_COLLECT] = KITH_CUDA_COLLECT};
  kith_cuda_batch batch = {.task = tasks[work->operation],
                           .lane = lane,
                           .one_sided = work->one_sided,
                           .blocks = work->blocks,
                           .n_blocks = work->n_blocks,
                           .degrees = work->degrees,
                           .first_row = work->first_row,
                           .end_row = work->end_row,
                           .offsets = work->offsets,
                           .run = work->run,
                           .neighbors = work->neighbors,
                           .distances = work->distances};
  if (work->pool)
    batch.pool = (kith_cuda_pool){.ids = work->pool->ids, .take = take_from_pool, .user = work->pool};
  kith_cuda_times times = {0};
  double began = kith_seconds();
  kith_status status = cuda->api->join_batch(cuda->join, &batch, found, &times, error);
  if (status)
    return status;
  if (work->distances && kith_space_is_embedded(&cuda->space))
    for (uint32_t i = 0; i < work->n_blocks; i++)
      convert_block(cuda, work, work->blocks[i]);
  trace_transfer(cuda, began, &times, found->pairs);
  return KITH_OK;
}

static kith_status fill(cuda_engine *cuda, const kith_work *work, kith_cuda_tally *found,
                        kith_cuda_error *error) {
  uint64_t end = work->end_row < cuda->n_rows ? work->end_row : cuda->n_rows;
  kith_cuda_rows rows = {
      .first_row = work->first_row, .end_row = end, .neighbors = work->neighbors, .distances = work->distances};
  found->pairs = work->offsets[end - work->first_row] - work->offsets[0];
  kith_status status = cuda->api->join_fill(cuda->join, &rows, error);
  if (!status && rows.distances && kith_space_is_embedded(&cuda->space))
    convert_sizes(cuda, rows.distances, found->pairs);
  return status;
}

static kith_status run(kith_engine *engine, uint32_t lane, const kith_work *work, kith_tally *tally) {
  cuda_engine *cuda = (cuda_engine *)engine;
  kith_cuda_tally found = {0};
  kith_cuda_error error = {""};
  kith_status status = KITH_ERR_UNSUPPORTED;
  if (work->blocks)
    status = run_blocks(cuda, lane, work, &found, &error);
  else if (work->operation == KITH_DO_COUNT)
    status = cuda->api->join_count(cuda->join, &found, &error);
  else if (work->operation == KITH_DO_DEGREES)
    status = cuda->api->join_degrees(cuda->join, work->degrees, &found, &error);
  else if (work->operation == KITH_DO_FILL)
    status = fill(cuda, work, &found, &error);
  add(tally, &found);
  return finish(cuda, status, &error);
}

static kith_status offsets(kith_engine *engine, uint64_t *out, kith_tally *tally) {
  cuda_engine *cuda = (cuda_engine *)engine;
  kith_cuda_tally found = {0};
  kith_cuda_error error = {""};
  kith_status status = cuda->api->join_offsets(cuda->join, out, &found, &error);
  add(tally, &found);
  return finish(cuda, status, &error);
}

kith_status kith_engine_cuda_table(kith_engine *engine, kith_table *table, kith_tally *tally) {
  cuda_engine *cuda = (cuda_engine *)engine;
  kith_cuda_tally found = {0};
  kith_cuda_error error = {""};
  kith_status status = cuda->api->join_table(cuda->join, table, &found, &error);
  table->device = 1 + cuda->ctx->gpus.list[0].device;
  add(tally, &found);
  return finish(cuda, status, &error);
}

void kith_cuda_free(uint32_t device, const void *memory) {
  const kith_cuda_api *api = kith_cuda_load(NULL);
  if (api)
    api->device_free(device, memory);
}

kith_status kith_points_upload(kith_context *ctx, const kith_points *points, kith_points *copy) {
  kith_status status = kith_call_begin(ctx);
  if (!status)
    status = kith_points_check(ctx, points, "points");
  if (!status && points->device)
    status = kith_fail(ctx, KITH_ERR_ARGUMENT, "points: they are in device memory already");
  if (status || (status = open_session(ctx, 0)))
    return status;
  void *data = NULL;
  kith_cuda_error error = {""};
  status = kith_cuda_load(NULL)->upload(ctx->gpus.list[0].session, points, &data, &error);
  if (status)
    return kith_fail(ctx, status, "%s", error.text);
  *copy = points->dtype == KITH_F32 ? kith_points_f32(data, points->n, points->dim)
                                    : kith_points_f64(data, points->n, points->dim);
  copy->device = 1 + ctx->gpus.list[0].device;
  return KITH_OK;
}

void kith_points_release(kith_points *copy) {
  if (copy && copy->device)
    kith_cuda_free(copy->device - 1, copy->data);
  if (copy)
    *copy = (kith_points){0};
}

kith_status kith_device_read(kith_context *ctx, const void *device_memory, void *host, uint64_t bytes) {
  kith_status status = kith_call_begin(ctx);
  if (status || (status = open_session(ctx, 0)))
    return status;
  kith_cuda_error error = {""};
  status = kith_cuda_load(NULL)->download(ctx->gpus.list[0].session, host, device_memory, bytes, &error);
  return status ? kith_fail(ctx, status, "%s", error.text) : KITH_OK;
}

static void destroy(kith_engine *engine) {
  cuda_engine *cuda = (cuda_engine *)engine;
  cuda->api->join_destroy(cuda->join);
  if (!cuda->gave_blocks)
    kith_blocks_release(&cuda->blocks);
  kith_free(cuda);
}

kith_status kith_engine_cuda_create(kith_context *ctx, uint32_t gpu, const kith_cuda_spec *spec,
                                    const kith_space *space, kith_cuda_info *info, kith_engine **out) {
  kith_status status = open_session(ctx, gpu);
  if (status)
    return status;
  cuda_engine *cuda = kith_alloc(&ctx->memory, sizeof *cuda);
  if (!cuda)
    return kith_fail_memory(ctx, sizeof *cuda, "the engine");
  *cuda = (cuda_engine){.base = {.name = "cuda",
                                 .lanes = 1,
                                 .block_lanes = KITH_CUDA_LANES,
                                 .whole = true,
                                 .run = run,
                                 .offsets = offsets,
                                 .cut = cut,
                                 .weigh = weigh,
                                 .destroy = destroy},
                        .ctx = ctx,
                        .api = kith_cuda_load(NULL),
                        .n_rows = spec->a.n,
                        .space = *space};
  kith_cuda_spec own = *spec;
  own.lattice = space->lattice;
  own.doubt = space->lattice.n > 0 ? kith_lattice_doubt(&space->lattice, spec->predicate.limit) : INFINITY;
  own.metric = space->metric;
  own.sizes = kith_space_is_embedded(space);
  own.stop = (kith_cuda_stop){.asked = asked_to_stop, .user = ctx};
  kith_cuda_error error = {""};
  status = cuda->api->join_create(ctx->gpus.list[gpu].session, &own, &cuda->join, info, &error);
  if (status) {
    status = finish(cuda, status, &error);
    kith_free(cuda);
    return status;
  }
  cuda->base.n_queries = (uint32_t)info->n_valid;
  char name[32];
  snprintf(name, sizeof name, "cuda %u transfers", gpu);
  cuda->track = kith_trace_tracks(ctx, name, 1);
  bool will_share = spec->shared && !info->dense && spec->kernel != KITH_KERNEL_POINT;
  cuda->base.give_index = will_share && spec->gives_index ? give_index : NULL;
  if (will_share && (status = cut_blocks(cuda))) {
    destroy(&cuda->base);
    return status;
  }
  *out = &cuda->base;
  return KITH_OK;
}
