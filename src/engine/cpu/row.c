/* Rows and the definition: see row.h. */
#include "engine/cpu/row.h"

#include "base/bypass.h"

#define DEFINE_SIZE(NAME, TYPE)                                                                                \
  static double NAME(kith_norm norm, const char *a, int64_t stride_a, const char *b, int64_t stride_b,         \
                     uint32_t dim) {                                                                           \
    double size = 0;                                                                                           \
    for (uint32_t c = 0; c < dim; c++)                                                                         \
      size = kith_norm_add(norm, size,                                                                         \
                           (double)*(const TYPE *)(const void *)(a + (int64_t)c * stride_a) -                  \
                               (double)*(const TYPE *)(const void *)(b + (int64_t)c * stride_b));              \
    return size;                                                                                               \
  }
DEFINE_SIZE(size_f32, float)
DEFINE_SIZE(size_f64, double)

static const char *row_at(const kith_points *points, uint64_t row) {
  return (const char *)points->data + (int64_t)row * points->row_stride;
}

double kith_definition(kith_norm norm, const kith_points *a, uint64_t i, const kith_points *b, uint64_t j) {
  if (a->dtype == b->dtype)
    return (a->dtype == KITH_F32 ? size_f32 : size_f64)(norm, row_at(a, i), a->col_stride, row_at(b, j),
                                                        b->col_stride, a->dim);
  double size = 0;
  for (uint32_t c = 0; c < a->dim; c++)
    size = kith_norm_add(norm, size, kith_points_get(a, i, c) - kith_points_get(b, j, c));
  return size;
}

/* Shell's sort, by insertion at falling distances: for the rare row that is much longer than most. */
static void order_long_row(uint32_t *ids, double *d2, uint64_t n) {
  static const uint64_t GAPS[] = {1 << 20, 1 << 16, 1 << 12, 1750, 701, 301, 132, 57, 23, 10, 4, 1};
  for (size_t g = 0; g < sizeof GAPS / sizeof *GAPS; g++)
    for (uint64_t i = GAPS[g]; i < n; i++) {
      uint32_t id = ids[i];
      double distance = d2 ? d2[i] : 0;
      uint64_t at = i;
      for (; at >= GAPS[g] && ids[at - GAPS[g]] > id; at -= GAPS[g]) {
        ids[at] = ids[at - GAPS[g]];
        if (d2)
          d2[at] = d2[at - GAPS[g]];
      }
      ids[at] = id;
      if (d2)
        d2[at] = distance;
    }
}

void kith_row_order(const kith_kernel_table *table, uint32_t *ids, double *d2, uint64_t n) {
  enum { FEW = 512 };
  uint32_t ids_copy[FEW + KITH_LINE_BYTES / sizeof(uint32_t)];
  double d2_copy[FEW];
  if (n > FEW)
    order_long_row(ids, d2, n);
  else if (n > 1)
    table->order(ids, d2, (uint32_t)n, ids_copy, d2_copy);
}

void kith_row_measure(const kith_space *space, const kith_points *a, const kith_points *b, uint32_t id,
                      const kith_row *row) {
  for (uint64_t i = 0; row->distances && i < row->n; i++)
    row->distances[i] = kith_space_distance(space, kith_definition(space->norm, a, id, b, row->ids[i]));
}
