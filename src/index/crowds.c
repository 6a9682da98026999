/* The boxes of crowded cells: see index.h. O(points in such cells). */
#include "base/team.h"
#include "index/build.h"

#include <stdatomic.h>

/* The smallest and the largest of values[0..n), n > 0. Several lanes, since each comparison waits for the last.
 */
#define DEFINE_BOUNDS(NAME, TYPE)                                                                              \
  static void NAME(const TYPE *values, uint64_t n, double bounds[2]) {                                         \
    enum { LANES = 16 };                                                                                       \
    TYPE low[LANES], high[LANES];                                                                              \
    for (uint32_t lane = 0; lane < LANES; lane++)                                                              \
      low[lane] = high[lane] = values[0];                                                                      \
    for (uint64_t i = 0; i + LANES <= n; i += LANES)                                                           \
      for (uint32_t lane = 0; lane < LANES; lane++) {                                                          \
        TYPE value = values[i + lane];                                                                         \
        low[lane] = value < low[lane] ? value : low[lane];                                                     \
        high[lane] = value > high[lane] ? value : high[lane];                                                  \
      }                                                                                                        \
    for (uint64_t i = n / LANES * LANES; i < n; i++) {                                                         \
      low[0] = values[i] < low[0] ? values[i] : low[0];                                                        \
      high[0] = values[i] > high[0] ? values[i] : high[0];                                                     \
    }                                                                                                          \
    for (uint32_t lane = 1; lane < LANES; lane++) {                                                            \
      low[0] = low[lane] < low[0] ? low[lane] : low[0];                                                        \
      high[0] = high[lane] > high[0] ? high[lane] : high[0];                                                   \
    }                                                                                                          \
    bounds[0] = low[0];                                                                                        \
    bounds[1] = high[0];                                                                                       \
  }
DEFINE_BOUNDS(bounds_f32, float)
DEFINE_BOUNDS(bounds_f64, double)

/* The box of a crowd in one column. */
static void bound_crowd(void *argument, uint64_t item) {
  const kith_index *index = argument;
  uint64_t crowd = item / index->dim;
  uint64_t column = item % index->dim;
  uint32_t begin = index->crowds[crowd].begin;
  uint64_t n = index->crowds[crowd].end - begin;
  double bounds[2];
  if (index->dtype == KITH_F32)
    bounds_f32((const float *)index->coords + column * index->stride + begin, n, bounds);
  else
    bounds_f64((const double *)index->coords + column * index->stride + begin, n, bounds);
  double *box = index->crowd_box + crowd * 2 * index->dim;
  box[column] = bounds[0];
  box[index->dim + column] = bounds[1];
}

typedef struct crowd_count {
  const kith_index *index;
  uint64_t shares;
  _Atomic uint64_t n;
} crowd_count;

static void count_crowds(void *argument, uint64_t share) {
  crowd_count *c = argument;
  const uint32_t *start = c->index->cell_start;
  uint64_t end = kith_share_begin(c->index->n_cells, share + 1, c->shares);
  uint32_t n = 0;
  for (uint64_t cell = kith_share_begin(c->index->n_cells, share, c->shares); cell < end; cell++)
    n += start[cell + 1] - start[cell] >= KITH_CROWD;
  atomic_fetch_add(&c->n, n);
}

static void list_crowds(kith_index *index) {
  for (uint32_t cell = 0; cell < index->n_cells; cell++) {
    kith_crowd crowd = {index->cell_start[cell], index->cell_start[cell + 1]};
    if (crowd.end - crowd.begin >= KITH_CROWD)
      index->crowds[index->n_crowds++] = crowd;
  }
}

kith_status kith_index_bound_crowds(kith_context *ctx, kith_index *index) {
  enum { GRAIN = 65536 };
  crowd_count count = {.index = index, .shares = kith_shares(ctx, index->n_cells, GRAIN)};
  kith_each(ctx, count.shares, count_crowds, &count);
  uint64_t n = atomic_load(&count.n);
  if (n == 0)
    return KITH_OK;
  uint64_t box_bytes = n * 2 * index->dim * sizeof(double);
  index->crowds = kith_alloc(&ctx->memory, n * sizeof *index->crowds);
  index->crowd_box = kith_alloc(&ctx->memory, box_bytes);
  if (!index->crowds || !index->crowd_box)
    return kith_fail_memory(ctx, n * sizeof *index->crowds + box_bytes, "the boxes of crowded cells");
  list_crowds(index);
  kith_each(ctx, n * index->dim, bound_crowd, index);
  return KITH_OK;
}
