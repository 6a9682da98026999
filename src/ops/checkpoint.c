/* Joins that are recorded: what makes two of them the same, and degrees that are counted only once.
 *
 * Two joins are the same if their results are, byte by byte: what was asked for, of which points, by which
 * version. Without `sorted` the order within rows is that of the index, and so the engine and its grid count
 * too. Threads, instruction set, memory and batches do not. */
#include "ops/join.h"

#include "base/clock.h"
#include "base/hash.h"
#include "sink/output.h"

#include <string.h>

enum { BLOCK_BYTES = 4096, MAX_ROW_BYTES = KITH_MAX_DIM * sizeof(double), BLOCKS_PER_ITEM = 64 };
static const double DEFAULT_SECONDS = 5;

/* ---- points -------------------------------------------------------------------------------------------- */

/* Points are hashed in blocks of about BLOCK_BYTES, or one row; the hashes, each with the number of its block
 * as the seed, are added up. So threads may take them in any order, and strides do not matter. */
typedef struct point_hash {
  const kith_points *points;
  uint64_t row_bytes, block_rows;
  _Atomic uint64_t sum;
} point_hash;

static bool rows_are_contiguous(const kith_points *p) {
  int64_t size = p->dtype == KITH_F32 ? sizeof(float) : sizeof(double);
  return p->col_stride == size && p->row_stride == size * (int64_t)p->dim;
}

static void gather_rows(const kith_points *p, uint64_t begin, uint64_t end, unsigned char *to) {
  size_t size = p->dtype == KITH_F32 ? sizeof(float) : sizeof(double);
  for (uint64_t i = begin; i < end; i++)
    for (uint32_t c = 0; c < p->dim; c++, to += size)
      memcpy(to, (const char *)p->data + (int64_t)i * p->row_stride + (int64_t)c * p->col_stride, size);
}

static uint64_t hash_block(const point_hash *h, uint64_t block) {
  const kith_points *p = h->points;
  unsigned char gathered[BLOCK_BYTES > MAX_ROW_BYTES ? BLOCK_BYTES : MAX_ROW_BYTES];
  uint64_t begin = block * h->block_rows;
  uint64_t end = begin + h->block_rows < p->n ? begin + h->block_rows : p->n;
  uint64_t bytes = (end - begin) * h->row_bytes;
  if (rows_are_contiguous(p))
    return kith_hash((const char *)p->data + begin * h->row_bytes, bytes, block);
  gather_rows(p, begin, end, gathered);
  return kith_hash(gathered, bytes, block);
}

static uint64_t n_blocks(const point_hash *h) { return (h->points->n + h->block_rows - 1) / h->block_rows; }

static void hash_blocks(void *argument, uint64_t item) {
  point_hash *h = argument;
  uint64_t end = (item + 1) * BLOCKS_PER_ITEM < n_blocks(h) ? (item + 1) * BLOCKS_PER_ITEM : n_blocks(h);
  uint64_t sum = 0;
  for (uint64_t block = item * BLOCKS_PER_ITEM; block < end; block++)
    sum += hash_block(h, block);
  atomic_fetch_add(&h->sum, sum);
}

static uint64_t hash_points(kith_context *ctx, const kith_points *points) {
  uint64_t row_bytes = points->dim * (points->dtype == KITH_F32 ? sizeof(float) : sizeof(double));
  point_hash h = {.points = points,
                  .row_bytes = row_bytes,
                  .block_rows = row_bytes < BLOCK_BYTES ? BLOCK_BYTES / row_bytes : 1};
  kith_each_unless_cancelled(ctx, (n_blocks(&h) + BLOCKS_PER_ITEM - 1) / BLOCKS_PER_ITEM, hash_blocks, &h);
  const uint64_t all[] = {points->n, points->dim, points->dtype, atomic_load(&h.sum)};
  return kith_hash(all, sizeof all, 0);
}

/* ---- identity ------------------------------------------------------------------------------------------ */

static void add(kith_identity *identity, const char *name, uint64_t hash) {
  identity->names[identity->n] = name;
  identity->hashes[identity->n++] = hash;
}

/* Where the points are in the index, and what engine walks it: the order of queries, and of unsorted rows. */
static uint64_t hash_plan(const kith_join *j) {
  const kith_join_report *report = &j->report;
  uint64_t hash = kith_hash(&report->cell_side, sizeof report->cell_side, report->cells);
  const uint64_t kind[] = {j->on_gpu,
                           j->all_with_all,
                           j->in_ego_order,
                           report->index_dims,
                           j->brute_choice.split,
                           j->brute_choice.groups,
                           j->options.kernel,
                           hash};
  hash = kith_hash(kind, sizeof kind, 0);
  if (j->on_gpu || j->all_with_all)
    return hash;
  const kith_grid *grid = &j->grid;
  hash = kith_hash(grid->dims, grid->k * sizeof *grid->dims, hash);
  hash = kith_hash(&grid->slanted, sizeof grid->slanted, hash);
  hash = kith_hash(grid->origin, grid->k * sizeof *grid->origin, hash);
  return kith_hash(grid->side, grid->k * sizeof *grid->side, hash);
}

static uint64_t hash_eps(const kith_join *j) {
  const double *eps_of = j->options.eps_of;
  return eps_of ? kith_hash(eps_of, j->a->n * sizeof *eps_of, 1)
                : kith_hash(&j->options.eps, sizeof j->options.eps, 0);
}

static void add_options(kith_identity *identity, const kith_join *j) {
  const kith_join_options *opt = &j->options;
  add(identity, "eps", hash_eps(j));
  add(identity, "self", (uint64_t)(opt->self_pairs != 0));
  add(identity, "half", (uint64_t)(opt->half != 0));
  add(identity, "sorted", (uint64_t)(opt->sorted != 0));
  add(identity, "distances", (uint64_t)(opt->distances != 0));
  add(identity, "skip-invalid", (uint64_t)(opt->skip_invalid != 0));
  add(identity, "metric", (uint64_t)opt->metric);
  add(identity, "radius", kith_hash(&opt->radius, sizeof opt->radius, 0));
  add(identity, "box", opt->box ? kith_hash(opt->box, opt->n_box * sizeof *opt->box, 1) : 0);
}

static kith_status identify(const kith_join *j, const kith_recording *recording, kith_identity *identity) {
  const kith_points *b = recording->b;
  uint64_t output;
  kith_status status = kith_output_identify(j->ctx, recording->path, &output);
  if (status)
    return status;
  const char *version = kith_version();
  add(identity, "the version of kith", kith_hash(version, strlen(version), 0));
  add(identity, "the points of A", hash_points(j->ctx, recording->a));
  add(identity, "the points of B", b ? hash_points(j->ctx, b) : 0);
  add_options(identity, j);
  add(identity, "what", (uint64_t)recording->what);
  add(identity, "the output file", output);
  add(identity, "the engine or its grid", j->options.sorted ? 0 : hash_plan(j));
  return kith_check_cancel(j->ctx);
}

kith_status kith_join_record(kith_join *j, const kith_recording *recording) {
  double *seconds = &j->options.checkpoint_seconds;
  kith_identity identity = {0};
  if (!(*seconds >= 0))
    return kith_fail(j->ctx, KITH_ERR_ARGUMENT, "checkpoint_seconds is %g; it must be 0 or greater", *seconds);
  if (recording->a->device || (recording->b && recording->b->device))
    return kith_fail(j->ctx, KITH_ERR_UNSUPPORTED, "a checkpoint is for points in host memory");
  if (j->shared && !j->options.sorted)
    return kith_fail(
        j->ctx, KITH_ERR_ARGUMENT,
        "engines that share a join leave rows in an order of their own, so that a checkpoint needs "
        "sorted rows");
  *seconds = *seconds > 0 ? *seconds : DEFAULT_SECONDS;
  kith_status status = identify(j, recording, &identity);
  if (!status)
    status = kith_checkpoint_adopt(recording->checkpoint, &identity, *seconds);
  if (!status)
    j->checkpoint = recording->checkpoint;
  return status;
}

/* ---- degrees ------------------------------------------------------------------------------------------- */

/* Counts the next queries: as many as take about as long as there is between two records. */
static kith_status count_slice(kith_join *j, uint64_t *values, uint32_t *slice) {
  enum { LEAST_SHARE = 1024 };
  uint32_t n = j->engine->n_queries, begin = (uint32_t)values[0];
  uint32_t end = n - begin > *slice ? begin + *slice : n;
  kith_work work = {.operation = KITH_DO_DEGREES, .begin = begin, .end = end, .end_row = UINT64_MAX};
  work.degrees = values + 1;
  kith_stage_begin(j->ctx, "count", KITH_COUNT_SPAN * (end - begin) / n);
  double began = kith_seconds();
  kith_status status = kith_join_run(j, &work);
  values[0] = end;
  double wanted = (end - begin) * j->options.checkpoint_seconds / (kith_seconds() - began + 1e-6);
  *slice = (uint32_t)fmin(fmax(wanted, n / LEAST_SHARE + 1), n); /* NOLINT(bugprone-integer-division) */
  if (j->engine->grain && *slice < n)
    *slice += j->engine->grain - *slice % j->engine->grain;
  return status;
}

kith_status kith_join_recorded_degrees(kith_join *j, uint64_t *values) {
  enum { FIRST_SHARE = 64, WRITES_SHARE = 20 };
  kith_checkpoint *checkpoint = j->checkpoint;
  uint64_t n_values = j->a->n + 1, order = hash_plan(j);
  uint32_t n = j->engine->n_queries, slice = j->engine->whole ? n : n / FIRST_SHARE + 1;
  if (!kith_checkpoint_load_degrees(checkpoint, order, values, n_values))
    memset(values, 0, n_values * sizeof *values);
  kith_stage_resume(j->ctx, "count", n > 0 ? KITH_COUNT_SPAN * (double)values[0] / n : KITH_COUNT_SPAN);
  double saved = kith_seconds(), wait = j->options.checkpoint_seconds;
  while (values[0] < n) {
    kith_status status = count_slice(j, values, &slice);
    double now = kith_seconds();
    if (!status && (values[0] == n || now - saved >= wait)) {
      status = kith_checkpoint_save_degrees(checkpoint, order, values, n_values);
      saved = kith_seconds();
      wait = fmax(wait, WRITES_SHARE * (saved - now));
    }
    if (status)
      return status;
  }
  return KITH_OK;
}
