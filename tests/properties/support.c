/* What the property tests share: see support.h. */
#include "support.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned checks_passed, checks_failed;

void check_at(bool ok, const char *file, int line, const char *format, ...) {
  enum { PRINTED = 20 };
  if (ok) {
    checks_passed++;
    return;
  }
  if (++checks_failed > PRINTED)
    return;
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "FAILED %s:%d: ", file, line);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}

/* ---- random numbers ---- */

uint64_t random_bits(uint64_t *state) {
  *state += UINT64_C(0x9E3779B97F4A7C15);
  uint64_t x = *state;
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

double random_unit(uint64_t *state) { return (double)(random_bits(state) >> 11) * 0x1p-53; }

uint64_t random_below(uint64_t *state, uint64_t bound) { return random_bits(state) % bound; }

/* ---- sets of points ---- */

cloud cloud_new(uint64_t n, uint32_t dim, kith_dtype dtype) {
  cloud c = {.memory = calloc(n * dim + 1, sizeof(double))};
  if (!c.memory)
    abort();
  c.points = dtype == KITH_F32 ? kith_points_f32(c.memory, n, dim) : kith_points_f64(c.memory, n, dim);
  return c;
}

void cloud_free(cloud *c) {
  free(c->memory);
  *c = (cloud){0};
}

static char *place_of(const cloud *c, uint64_t i, uint32_t column) {
  return (char *)c->points.data + (int64_t)i * c->points.row_stride + (int64_t)column * c->points.col_stride;
}

void cloud_set(cloud *c, uint64_t i, uint32_t column, double value) {
  if (c->points.dtype == KITH_F32)
    *(float *)place_of(c, i, column) = (float)value;
  else
    *(double *)place_of(c, i, column) = value;
}

double cloud_get(const cloud *c, uint64_t i, uint32_t column) {
  return c->points.dtype == KITH_F32 ? (double)*(float *)place_of(c, i, column)
                                     : *(double *)place_of(c, i, column);
}

cloud cloud_random(uint64_t n, uint32_t dim, kith_dtype dtype, uint64_t seed) {
  cloud c = cloud_new(n, dim, dtype);
  for (uint64_t i = 0; i < n; i++)
    for (uint32_t column = 0; column < dim; column++)
      cloud_set(&c, i, column, (double)random_below(&seed, 64) / 64);
  return c;
}

cloud cloud_pick(const cloud *a, const uint64_t *rows, uint64_t n) {
  cloud c = cloud_new(n, a->points.dim, a->points.dtype);
  for (uint64_t i = 0; i < n; i++)
    for (uint32_t column = 0; column < a->points.dim; column++)
      cloud_set(&c, i, column, cloud_get(a, rows[i], column));
  return c;
}

/* ---- calls ---- */

kith_context *context_new(const char *isa, uint32_t threads, uint64_t memory_bytes) {
  kith_context_options options = kith_context_options_init();
  options.isa = isa;
  options.threads = threads;
  options.memory_bytes = memory_bytes;
  kith_context *ctx;
  kith_status status = kith_context_create(&options, &ctx);
  if (status == KITH_OK)
    return ctx;
  CHECK(status == KITH_ERR_UNSUPPORTED && *kith_message(ctx), "context with %s: %s", isa ? isa : "best",
        kith_status_name(status));
  kith_context_destroy(ctx);
  return NULL;
}

kith_table *table_of(kith_context *ctx, const kith_points *a, const kith_points *b, kith_join_options options) {
  kith_table *table;
  options.sorted = 1;
  if (kith_join_table(ctx, a, b, &options, &table, NULL) == KITH_OK)
    return table;
  fprintf(stderr, "no table: %s\n", kith_message(ctx));
  abort(); /* every comparison needs it */
}

/* ---- tables ---- */

uint64_t row_length(const kith_table *table, uint64_t i) { return table->offsets[i + 1] - table->offsets[i]; }

bool row_holds(const kith_table *table, uint64_t i, uint32_t id) {
  uint64_t low = table->offsets[i], high = table->offsets[i + 1];
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (table->neighbors[middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < table->offsets[i + 1] && table->neighbors[low] == id;
}

static bool same_bytes(const void *x, const void *y, uint64_t bytes) {
  return bytes == 0 || (x && y && memcmp(x, y, bytes) == 0);
}

bool same_table(const kith_table *x, const kith_table *y) {
  return x->n_rows == y->n_rows && x->n_pairs == y->n_pairs && !x->distances == !y->distances &&
         same_bytes(x->offsets, y->offsets, (x->n_rows + 1) * sizeof *x->offsets) &&
         same_bytes(x->neighbors, y->neighbors, x->n_pairs * sizeof *x->neighbors) &&
         (!x->distances || same_bytes(x->distances, y->distances, x->n_pairs * sizeof *x->distances));
}

bool equals_reference(const kith_table *table, const reference *want) {
  kith_table other = {.n_rows = want->n_rows,
                      .n_pairs = want->n_pairs,
                      .offsets = want->offsets,
                      .neighbors = want->neighbors,
                      .distances = table->distances ? want->distances : NULL};
  /* Without pairs there may be no array of distances to compare. */
  return same_table(table, &other) ||
         (want->n_pairs == 0 && table->n_pairs == 0 && table->n_rows == want->n_rows);
}

/* ---- streams ---- */

int collect_batch(void *user, const kith_batch *batch) {
  collected *all = user;
  uint64_t pairs = batch->offsets[batch->n_rows];
  uint64_t rows = all->n_rows + batch->n_rows, total = all->n_pairs + pairs;
  all->offsets = realloc(all->offsets, (rows + 1) * sizeof *all->offsets);
  all->neighbors = realloc(all->neighbors, (total + 1) * sizeof *all->neighbors);
  all->distances = realloc(all->distances, (total + 1) * sizeof *all->distances);
  all->broken |= batch->first_row != all->n_rows || batch->offsets[0] != 0;
  if (all->broken || !all->offsets || !all->neighbors || !all->distances)
    return 1;
  for (uint64_t r = 0; r <= batch->n_rows; r++)
    all->offsets[all->n_rows + r] = all->n_pairs + batch->offsets[r];
  if (pairs)
    memcpy(all->neighbors + all->n_pairs, batch->neighbors, pairs * sizeof *all->neighbors);
  if (pairs && batch->distances)
    memcpy(all->distances + all->n_pairs, batch->distances, pairs * sizeof *all->distances);
  all->n_rows = rows;
  all->n_pairs = total;
  all->batches++;
  if (batch->n_rows > all->largest_batch)
    all->largest_batch = batch->n_rows;
  return 0;
}

kith_table collected_table(const collected *all) {
  static const uint64_t nothing[1];
  return (kith_table){.n_rows = all->n_rows,
                      .n_pairs = all->n_pairs,
                      .offsets = all->offsets ? all->offsets : nothing,
                      .neighbors = all->neighbors,
                      .distances = all->distances};
}

void collected_free(collected *all) {
  free(all->offsets);
  free(all->neighbors);
  free(all->distances);
  *all = (collected){0};
}
