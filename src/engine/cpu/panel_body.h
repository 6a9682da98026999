/* The kernels of panels, written once against the vector vocabulary and compiled once per instruction set.
 *
 * Include after a vocabulary (simd/...) with PANEL_TABLE defined as the name of the table to make, and
 * PANEL_QUERIES x PANEL_VECTORS as the sums that the registers hold. A column costs as many fused instructions
 * as there are sums, PANEL_VECTORS loads, and PANEL_QUERIES broadcasts, which go to other ports. */
#include "engine/cpu/panel.h"

#include <math.h>

#define INLINE static inline __attribute__((always_inline))

enum {
  WIDTH = PANEL_VECTORS * LANES, /* candidates at a time */
};
_Static_assert(KITH_PANEL % WIDTH == 0 && KITH_PANEL % PANEL_QUERIES == 0, "panels hold whole blocks");

typedef struct block {
  vf s[PANEL_QUERIES][PANEL_VECTORS];
} block;

/* Adds the products of columns [begin, end). */
INLINE void add_columns(block *sums, const float *queries, const float *candidates, uint32_t begin,
                        uint32_t end) {
  for (uint32_t c = begin; c < end; c++) {
    const float *query = queries + (size_t)c * KITH_PANEL;
    const float *candidate = candidates + (size_t)c * KITH_PANEL;
    vf b[PANEL_VECTORS];
    for (int v = 0; v < PANEL_VECTORS; v++)
      b[v] = vf_load(candidate + v * LANES);
    for (int q = 0; q < PANEL_QUERIES; q++) {
      vf a = vf_set(query[q]);
      for (int v = 0; v < PANEL_VECTORS; v++)
        sums->s[q][v] = vf_muladd(a, b[v], sums->s[q][v]);
    }
  }
}

/* The largest sum of each lane. */
INLINE vf largest(const block *sums) {
  vf most = sums->s[0][0];
  for (int q = 0; q < PANEL_QUERIES; q++)
    for (int v = 0; v < PANEL_VECTORS; v++)
      most = vf_max(most, sums->s[q][v]);
  return most;
}

/* The largest that any sum can become, if the norms of the columns to come are these. */
INLINE vf largest_possible(const block *sums, const float *query_rests, const float *candidate_rests) {
  vf most = vf_set(-INFINITY);
  for (int v = 0; v < PANEL_VECTORS; v++) {
    vf rest = vf_load(candidate_rests + v * LANES);
    for (int q = 0; q < PANEL_QUERIES; q++)
      most = vf_max(most, vf_muladd(vf_set(query_rests[q]), rest, sums->s[q][v]));
  }
  return most;
}

/* Lists what is not surely out. Queries before pair->first or from pair->end on are somebody else's. Rare, and
 * never inlined: the sums would leave their registers for it. */
static __attribute__((noinline)) uint32_t list_hits(const kith_panel_pair *pair, const float *sums, uint32_t q0,
                                                    uint32_t j0, kith_panel_hit *hits) {
  uint32_t n = 0;
  for (uint32_t q = 0; q < PANEL_QUERIES; q++)
    for (uint32_t v = 0; v < PANEL_VECTORS; v++) {
      vf sum = vf_load(sums + (q * PANEL_VECTORS + v) * LANES);
      uint32_t near = vf_mask_le(vf_set(pair->limits.out), sum);
      if (!near || q0 + q < pair->first || q0 + q >= pair->end)
        continue;
      hits[n++] = (kith_panel_hit){.query = q0 + q,
                                   .first = j0 + v * LANES,
                                   .near = near,
                                   .sure = vf_mask_lt(vf_set(pair->limits.in), sum)};
    }
  return n;
}

INLINE uint32_t store_hits(const kith_panel_pair *pair, const block *sums, uint32_t q0, uint32_t j0,
                           kith_panel_hit *hits) {
  float stored[PANEL_QUERIES * WIDTH];
  for (int q = 0; q < PANEL_QUERIES; q++)
    for (int v = 0; v < PANEL_VECTORS; v++)
      vf_store(stored + (q * PANEL_VECTORS + v) * LANES, sums->s[q][v]);
  return list_hits(pair, stored, q0, j0, hits);
}

/* PANEL_QUERIES queries from q0 on against WIDTH candidates from j0 on. One loop for the columns before,
 * between and after the stops: a second one would not find the registers as it needs them. */
INLINE uint32_t test_block(const kith_panel_pair *pair, uint32_t q0, uint32_t j0, kith_panel_hit *hits) {
  const kith_packing *packing = pair->packing;
  block sums;
  for (int v = 0; v < PANEL_VECTORS; v++) {
    vf half = vf_load(pair->candidate_halves + j0 + v * LANES);
    for (int q = 0; q < PANEL_QUERIES; q++)
      sums.s[q][v] = vf_sub(vf_set(-pair->query_halves[q0 + (uint32_t)q]), half);
  }
  uint32_t done = 0;
  for (uint32_t i = 0; i <= packing->n_active; i++) {
    bool last = i == packing->n_active;
    size_t s = last ? 0 : packing->active[i];
    uint32_t stop = last ? packing->dim : packing->stops[s];
    add_columns(&sums, pair->queries + q0, pair->candidates + j0, done, stop);
    done = stop;
    vf most = last ? largest(&sums)
                   : largest_possible(&sums, pair->query_rests + s * KITH_PANEL + q0,
                                      pair->candidate_rests + s * KITH_PANEL + j0);
    if (!vf_mask_le(vf_set(pair->limits.out), most))
      return 0;
  }
  return store_hits(pair, &sums, q0, j0, hits);
}

static uint32_t test_panels(const kith_panel_pair *shared, kith_panel_hit *hits) {
  const kith_panel_pair pair = *shared; /* a copy of its own, which storing hits cannot change */
  uint32_t n = 0;
  for (uint32_t q = pair.first / PANEL_QUERIES * PANEL_QUERIES; q < pair.end; q += PANEL_QUERIES)
    for (uint32_t j = 0; j < KITH_PANEL; j += WIDTH)
      n += test_block(&pair, q, j, hits + n);
  return n;
}

/* One more dimension of the gap between boxes. */
INLINE vf gap_add(vf size, vf gap, kith_norm norm) {
  gap = vf_max(gap, vf_set(0));
  if (norm == KITH_NORM_2)
    return vf_muladd(gap, gap, size);
  return norm == KITH_NORM_1 ? vf_add(size, gap) : vf_max(size, gap);
}

INLINE uint32_t meet_body(const kith_panels *queries, uint32_t box, const kith_panels *panels, uint32_t begin,
                          uint32_t end, float limit, uint32_t *met, kith_norm norm) {
  uint32_t n = 0;
  for (uint32_t p = begin; p < end; p += LANES) {
    vf sum = vf_set(0);
    for (uint32_t d = 0; d < panels->box_dims; d++) {
      vf low = vf_set(queries->low[d * queries->box_stride + box]);
      vf high = vf_set(queries->high[d * queries->box_stride + box]);
      vf gap = vf_max(vf_sub(vf_load(panels->low + d * panels->box_stride + p), high),
                      vf_sub(low, vf_load(panels->high + d * panels->box_stride + p)));
      sum = gap_add(sum, gap, norm);
    }
    for (uint32_t near = vf_mask_le(sum, vf_set(limit)); near; near &= near - 1) {
      uint32_t panel = p + (uint32_t)__builtin_ctz(near);
      if (panel < end)
        met[n++] = panel;
    }
  }
  return n;
}

static uint32_t meet_panels(const kith_panels *queries, uint32_t box, const kith_panels *panels, uint32_t begin,
                            uint32_t end, float limit, uint32_t *met) {
  switch (panels->packing->norm) {
  case KITH_NORM_1:
    return meet_body(queries, box, panels, begin, end, limit, met, KITH_NORM_1);
  case KITH_NORM_MAX:
    return meet_body(queries, box, panels, begin, end, limit, met, KITH_NORM_MAX);
  default:
    return meet_body(queries, box, panels, begin, end, limit, met, KITH_NORM_2);
  }
}

INLINE vd size_add(vd size, vd t, kith_norm norm) {
  if (norm == KITH_NORM_2)
    return vd_add(size, vd_mul(t, t));
  return norm == KITH_NORM_1 ? vd_add(size, vd_abs(t)) : vd_max(size, vd_abs(t));
}

/* As many sums at a time as hide the latency of an addition. */
INLINE double size_body(const kith_row_pair *rows, kith_norm norm, bool is_f64) {
  enum { SUMS = 4, STEP = SUMS * D_LANES };
  const float *a = rows->a, *b = rows->b;
  const double *a64 = rows->a, *b64 = rows->b;
  vd sums[SUMS];
  for (int k = 0; k < SUMS; k++)
    sums[k] = vd_set(0);
  uint32_t c = 0;
  for (; c + STEP <= rows->dim; c += STEP)
    for (uint32_t k = 0; k < SUMS; k++) {
      uint32_t at = c + k * D_LANES;
      vd t = is_f64 ? vd_sub(vd_load_f64(a64 + at), vd_load_f64(b64 + at))
                    : vd_sub(vd_load_f32(a + at), vd_load_f32(b + at));
      sums[k] = size_add(sums[k], t, norm);
    }
  double parts[STEP];
  for (int k = 0; k < SUMS; k++)
    vd_store(parts + k * D_LANES, sums[k]);
  double size = 0;
  for (; c < rows->dim; c++)
    size = kith_norm_add(norm, size, is_f64 ? a64[c] - b64[c] : (double)a[c] - (double)b[c]);
  for (int i = 0; i < STEP; i++)
    size = norm == KITH_NORM_MAX ? fmax(size, parts[i]) : size + parts[i];
  return size;
}

static double row_size(const kith_row_pair *rows) {
  switch (rows->norm) {
  case KITH_NORM_1:
    return rows->is_f64 ? size_body(rows, KITH_NORM_1, true) : size_body(rows, KITH_NORM_1, false);
  case KITH_NORM_MAX:
    return rows->is_f64 ? size_body(rows, KITH_NORM_MAX, true) : size_body(rows, KITH_NORM_MAX, false);
  default:
    return rows->is_f64 ? size_body(rows, KITH_NORM_2, true) : size_body(rows, KITH_NORM_2, false);
  }
}

#include "engine/cpu/marks_body.h"

const kith_panel_kernels PANEL_TABLE = {
    .test = test_panels, .test_marks = test_marks, .size = row_size, .meet = meet_panels};
