/* The deque: see deque.h. A lock for all of it: slices take milliseconds, taking one takes less than one
 * microsecond. */
#include "schedule/deque.h"

#include "index/sort.h"

#include <string.h>

/* ---- the order ------------------------------------------------------------------------------------------- */

/* Finding the candidates of a query costs about as much as testing so many: measured on the CPU, where points
 * are few and far between. */
enum { CANDIDATES_OF_A_QUERY = 1024 };

static uint64_t queries_of(const kith_blocks *blocks, uint32_t b) {
  return blocks->begin[b + 1] - blocks->begin[b];
}

static uint64_t work_of(const kith_blocks *blocks, uint32_t b) {
  return blocks->candidates[b] + CANDIDATES_OF_A_QUERY * queries_of(blocks, b);
}

/* What blocks are sorted by: the bits of a float, which are in the order of the floats, most work first. That
 * is exact enough: blocks whose work differs by less than 2^-24 of it may be in any order. */
static uint32_t rank_of(uint64_t work) {
  float rounded = (float)work;
  uint32_t bits;
  memcpy(&bits, &rounded, sizeof bits);
  return ~bits;
}

/* items, spare: as many as there are blocks; counts: of the sort. */
static kith_status order_blocks(kith_context *ctx, const kith_blocks *blocks, uint64_t *items, uint64_t *spare,
                                uint32_t *counts, kith_deque *deque) {
  for (uint32_t b = 0; b < blocks->n; b++)
    items[b] = (uint64_t)rank_of(work_of(blocks, b)) << 32 | b;
  kith_sort(ctx, items, spare, blocks->n, 32, 32, counts);
  if (kith_cancelled(ctx))
    return kith_check_cancel(ctx);
  deque->work[0] = deque->candidates[0] = deque->queries[0] = 0;
  for (uint32_t e = 0; e < blocks->n; e++) {
    uint32_t b = deque->blocks[e] = (uint32_t)spare[e];
    deque->work[e + 1] = deque->work[e] + work_of(blocks, b);
    deque->candidates[e + 1] = deque->candidates[e] + blocks->candidates[b];
    deque->queries[e + 1] = deque->queries[e] + queries_of(blocks, b);
  }
  memset(deque->pairs, 0, (blocks->n + UINT64_C(1)) * sizeof *deque->pairs);
  return KITH_OK;
}

kith_status kith_deque_make(kith_context *ctx, const kith_blocks *blocks, kith_deque *deque) {
  uint64_t sums = (blocks->n + UINT64_C(1)) * sizeof(uint64_t);
  *deque = (kith_deque){.n = blocks->n, .over = true};
  pthread_mutex_init(&deque->lock, NULL);
  pthread_cond_init(&deque->changed, NULL);
  uint64_t item_bytes = blocks->n * sizeof(uint64_t);
  uint64_t count_bytes = kith_sort_counts(ctx) * sizeof(uint32_t);
  uint64_t *items = kith_alloc(&ctx->memory, item_bytes);
  uint64_t *spare = kith_alloc(&ctx->memory, item_bytes);
  uint32_t *counts = kith_alloc(&ctx->memory, count_bytes);
  deque->blocks = kith_alloc(&ctx->memory, blocks->n * sizeof *deque->blocks);
  deque->work = kith_alloc(&ctx->memory, sums);
  deque->candidates = kith_alloc(&ctx->memory, sums);
  deque->queries = kith_alloc(&ctx->memory, sums);
  deque->pairs = kith_alloc(&ctx->memory, sums);
  deque->back = kith_alloc(&ctx->memory, blocks->n * sizeof *deque->back);
  bool fits = items && spare && counts && deque->blocks && deque->work && deque->candidates && deque->queries &&
              deque->pairs && deque->back;
  kith_status status =
      fits ? order_blocks(ctx, blocks, items, spare, counts, deque)
           : kith_fail_memory(ctx, 6 * sums + 2 * item_bytes + count_bytes, "the queue that engines share");
  kith_free(items);
  kith_free(spare);
  kith_free(counts);
  if (status)
    kith_deque_release(deque);
  return status;
}

void kith_deque_release(kith_deque *deque) {
  kith_free(deque->blocks);
  kith_free(deque->work);
  kith_free(deque->candidates);
  kith_free(deque->queries);
  kith_free(deque->pairs);
  kith_free(deque->back);
  pthread_mutex_destroy(&deque->lock);
  pthread_cond_destroy(&deque->changed);
  *deque = (kith_deque){0};
}

uint32_t kith_deque_find(const kith_deque *deque, const uint64_t *sums, double share) {
  double sought = share * (double)sums[deque->n];
  uint32_t low = 0;
  uint32_t high = deque->n;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if ((double)sums[middle] < sought)
      low = middle + 1;
    else
      high = middle;
  }
  bool before = low > 0 && sought - (double)sums[low - 1] < (double)sums[low] - sought;
  return before ? low - 1 : low;
}

/* ---- taking ---------------------------------------------------------------------------------------------- */

void kith_deque_open(kith_deque *deque, int64_t cut, const uint32_t active[2]) {
  uint32_t at = cut < 0 ? deque->n : (uint32_t)cut;
  deque->cut = cut >= 0;
  deque->part[KITH_HEAVY_END] = (kith_slice){0, at};
  deque->part[KITH_LIGHT_END] = (kith_slice){at, deque->n};
  memcpy(deque->active, active, sizeof deque->active);
  deque->n_back = deque->under_way = 0;
  deque->over = false;
}

static bool is_empty(kith_slice slice) { return slice.begin >= slice.end; }

static bool is_done(const kith_deque *deque) {
  return deque->under_way == 0 && deque->n_back == 0 && is_empty(deque->part[0]) &&
         (!deque->cut || is_empty(deque->part[1]));
}

/* Where an engine at this end finds its next slice; NULL: nowhere. */
static kith_slice *source(kith_deque *deque, kith_end end) {
  if (deque->n_back > 0)
    return &deque->back[deque->n_back - 1];
  if (!deque->cut)
    return is_empty(deque->part[0]) ? NULL : &deque->part[0];
  kith_end other = end == KITH_HEAVY_END ? KITH_LIGHT_END : KITH_HEAVY_END;
  if (!is_empty(deque->part[end]))
    return &deque->part[end];
  return deque->active[other] == 0 && !is_empty(deque->part[other]) ? &deque->part[other] : NULL;
}

/* The entries of a slice, from one of its ends, that an appetite is good for: at least one. */
static uint32_t count_entries(const kith_deque *deque, kith_slice from, kith_end end, kith_appetite appetite) {
  uint32_t n = 1;
  for (; n < from.end - from.begin; n++) {
    uint32_t first = end == KITH_HEAVY_END ? from.begin : from.end - n - 1;
    uint32_t last = first + n + 1;
    if ((double)(deque->work[last] - deque->work[first]) > appetite.work ||
        deque->pairs[last] - deque->pairs[first] > appetite.pairs)
      break;
  }
  return n;
}

static kith_slice cut_slice(kith_deque *deque, kith_slice *from, kith_end end, kith_appetite appetite) {
  uint32_t n = count_entries(deque, *from, end, appetite);
  kith_slice slice = end == KITH_HEAVY_END ? (kith_slice){from->begin, from->begin + n}
                                           : (kith_slice){from->end - n, from->end};
  if (end == KITH_HEAVY_END)
    from->begin += n;
  else
    from->end -= n;
  bool was_back = from >= deque->back && from < deque->back + deque->n_back;
  if (was_back && is_empty(*from))
    deque->n_back--;
  return slice;
}

uint64_t kith_deque_left(kith_deque *deque, kith_end end) {
  pthread_mutex_lock(&deque->lock);
  const kith_slice *part = deque->cut ? &deque->part[end] : &deque->part[0];
  uint64_t left = is_empty(*part) ? 0 : deque->work[part->end] - deque->work[part->begin];
  pthread_mutex_unlock(&deque->lock);
  return left;
}

bool kith_deque_take(kith_deque *deque, kith_end end, kith_appetite appetite, kith_slice *out) {
  pthread_mutex_lock(&deque->lock);
  kith_slice *from;
  while (!(from = source(deque, end)) && !is_done(deque) && !deque->over)
    pthread_cond_wait(&deque->changed, &deque->lock);
  bool takes = from && !deque->over;
  if (takes) {
    *out = cut_slice(deque, from, end, appetite);
    deque->under_way++;
  }
  pthread_mutex_unlock(&deque->lock);
  return takes;
}

/* Puts a slice back, together with those that it is next to. */
static void put_back(kith_deque *deque, kith_slice slice) {
  for (uint32_t i = 0; i < deque->n_back;) {
    kith_slice other = deque->back[i];
    if (other.end != slice.begin && slice.end != other.begin) {
      i++;
      continue;
    }
    slice.begin = other.begin < slice.begin ? other.begin : slice.begin;
    slice.end = other.end > slice.end ? other.end : slice.end;
    deque->back[i] = deque->back[--deque->n_back];
  }
  deque->back[deque->n_back++] = slice;
}

static void settle(kith_deque *deque, const kith_slice *back) {
  pthread_mutex_lock(&deque->lock);
  deque->under_way--;
  if (back)
    put_back(deque, *back);
  if (back || deque->under_way == 0)
    pthread_cond_broadcast(&deque->changed);
  pthread_mutex_unlock(&deque->lock);
}

void kith_deque_done(kith_deque *deque) { settle(deque, NULL); }

void kith_deque_give_back(kith_deque *deque, kith_slice slice) { settle(deque, &slice); }

void kith_deque_leave(kith_deque *deque, kith_end end) {
  pthread_mutex_lock(&deque->lock);
  deque->active[end]--;
  pthread_cond_broadcast(&deque->changed);
  pthread_mutex_unlock(&deque->lock);
}

void kith_deque_stop(kith_deque *deque) {
  pthread_mutex_lock(&deque->lock);
  deque->over = true;
  pthread_cond_broadcast(&deque->changed);
  pthread_mutex_unlock(&deque->lock);
}

bool kith_deque_is_done(kith_deque *deque) {
  pthread_mutex_lock(&deque->lock);
  bool done = is_done(deque);
  pthread_mutex_unlock(&deque->lock);
  return done;
}
