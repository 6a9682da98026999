/* The kernels of marks, written once against the vector vocabulary: included by panel_body.h, and compiled with
 * it. Blocks hold as many sums as those of products do; a group of columns costs two instructions a sum.
 *
 * Norm 1 adds up differences from -(out + 1) on, so that what is not surely out is negative. Norm max keeps,
 * for each of 8 columns, the largest (query + out) - candidate modulo 256, which is at most 2 out if no
 * difference exceeds `out`. Both only rise, so that a block may end once all of it is out. */
#include "index/marks.h"

enum { MARK_WIDTH = PANEL_VECTORS * B_LANES };
_Static_assert(KITH_PANEL % MARK_WIDTH == 0, "panels hold whole blocks");

typedef struct mark_block {
  vb s[PANEL_QUERIES][PANEL_VECTORS];
} mark_block;

INLINE vb mark_start(const kith_mark_pair *pair, kith_norm norm) {
  return norm == KITH_NORM_1 ? vb_set_sum(-(pair->limits.out + 1)) : vb_set_byte(0);
}

/* Adds groups [begin, end) of columns. */
INLINE void add_groups(mark_block *sums, const kith_mark_pair *pair, uint32_t q0, uint32_t j0, uint32_t begin,
                       uint32_t end, kith_norm norm) {
  enum { GROUP = KITH_PANEL * KITH_MARK_COLUMNS };
  vb out = vb_set_byte((uint8_t)pair->limits.out);
  for (uint32_t g = begin; g < end; g++) {
    const uint8_t *query = pair->queries + (size_t)g * GROUP + (size_t)q0 * KITH_MARK_COLUMNS;
    const uint8_t *candidate = pair->candidates + (size_t)g * GROUP + (size_t)j0 * KITH_MARK_COLUMNS;
    for (int q = 0; q < PANEL_QUERIES; q++) {
      vb a = vb_repeat(query + q * KITH_MARK_COLUMNS);
      if (norm == KITH_NORM_MAX)
        a = vb_add_bytes(a, out);
      for (int v = 0; v < PANEL_VECTORS; v++) {
        vb b = vb_load(candidate + v * B_LANES * KITH_MARK_COLUMNS);
        sums->s[q][v] =
            norm == KITH_NORM_1 ? vb_add_sad(sums->s[q][v], a, b) : vb_max_less(sums->s[q][v], a, b);
      }
    }
  }
}

/* The lanes of a sum that are not surely out. */
INLINE uint32_t mark_near(const kith_mark_pair *pair, vb sum, kith_norm norm) {
  return norm == KITH_NORM_1 ? vb_mask_negative(sum)
                             : vb_mask_within(sum, vb_set_byte((uint8_t)(2 * pair->limits.out)));
}

INLINE bool any_near(const kith_mark_pair *pair, const mark_block *sums, kith_norm norm) {
  vb all = sums->s[0][0];
  uint32_t near = 0;
  for (int q = 0; q < PANEL_QUERIES; q++)
    for (int v = 0; v < PANEL_VECTORS; v++)
      if (norm == KITH_NORM_1)
        all = vb_or(all, sums->s[q][v]);
      else
        near |= mark_near(pair, sums->s[q][v], norm);
  return norm == KITH_NORM_1 ? vb_mask_negative(all) != 0 : near != 0;
}

/* Rare, and never inlined, as in panels. */
static __attribute__((noinline)) uint32_t list_marks(const kith_mark_pair *pair, const mark_block *sums,
                                                     uint32_t q0, uint32_t j0, kith_panel_hit *hits) {
  kith_norm norm = pair->norm;
  vb sure = vb_set_sum(pair->limits.in - pair->limits.out - 1);
  bool may_be_sure = norm == KITH_NORM_1 && !pair->cut && pair->limits.in >= 0;
  uint32_t n = 0;
  for (uint32_t q = 0; q < PANEL_QUERIES; q++)
    for (uint32_t v = 0; v < PANEL_VECTORS; v++) {
      uint32_t near = mark_near(pair, sums->s[q][v], norm);
      if (!near || q0 + q < pair->first || q0 + q >= pair->end)
        continue;
      hits[n++] = (kith_panel_hit){.query = q0 + q,
                                   .first = j0 + v * B_LANES,
                                   .near = near,
                                   .sure = may_be_sure ? vb_mask_sum_le(sums->s[q][v], sure) : 0};
    }
  return n;
}

INLINE uint32_t test_mark_block(const kith_mark_pair *pair, uint32_t q0, uint32_t j0, kith_panel_hit *hits,
                                kith_norm norm) {
  mark_block sums;
  for (int q = 0; q < PANEL_QUERIES; q++)
    for (int v = 0; v < PANEL_VECTORS; v++)
      sums.s[q][v] = mark_start(pair, norm);
  for (uint32_t g = 0; g < pair->groups; g += pair->stride) {
    uint32_t end = pair->groups - g < pair->stride ? pair->groups : g + pair->stride;
    add_groups(&sums, pair, q0, j0, g, end, norm);
    if (!any_near(pair, &sums, norm))
      return 0;
  }
  mark_block stored = sums; /* the sums themselves stay in their registers */
  return list_marks(pair, &stored, q0, j0, hits);
}

INLINE uint32_t test_marks_body(const kith_mark_pair *shared, kith_panel_hit *hits, kith_norm norm) {
  const kith_mark_pair pair = *shared; /* a copy of its own, which storing hits cannot change */
  uint32_t n = 0;
  for (uint32_t q = pair.first / PANEL_QUERIES * PANEL_QUERIES; q < pair.end; q += PANEL_QUERIES)
    for (uint32_t j = 0; j < KITH_PANEL; j += MARK_WIDTH)
      n += test_mark_block(&pair, q, j, hits + n, norm);
  return n;
}

static uint32_t test_marks(const kith_mark_pair *pair, kith_panel_hit *hits) {
  return pair->norm == KITH_NORM_1 ? test_marks_body(pair, hits, KITH_NORM_1)
                                   : test_marks_body(pair, hits, KITH_NORM_MAX);
}
