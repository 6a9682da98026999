/* The kernels, written once against the vector vocabulary and compiled once per instruction set and norm.
 *
 * Include after a vocabulary (simd/...) with KERNEL_TABLE defined as the name of the table to make and
 * KERNEL_NORM as its norm. Every body takes `dim` (and the coordinate type) as constants after inlining, so
 * that its loops unroll. `dim` 0 in the generator macros stands for "any": then it is read from the tile.
 *
 * Costs, per vector of candidates and query in d dimensions: filter 2d arithmetic instructions (norm 1: 3d), 2
 * to count, 1 to watch the band (2 without AVX-512). The exact kernels hold half the lanes and may not fuse: 3d
 * and more. */
#include "engine/cpu/kernels.h"

#include "base/bypass.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define HAS_BOXES (KERNEL_NORM == KITH_NORM_2) /* periodic boxes are for that norm */

static inline uint32_t padded_candidates(const kith_tile *tile) {
  return (tile->n_candidates + KITH_CANDIDATE_ALIGN - 1) / KITH_CANDIDATE_ALIGN * KITH_CANDIDATE_ALIGN;
}

/* Here, and not in common code, so that a line moves in the widest registers of the instruction set. */
static void copy_lines(const kith_copy *copy) {
  for (uint32_t a = 0; a < copy->arrays; a++) {
    char *to = copy->to + a * copy->to_stride;
    const char *from = copy->from + a * copy->from_stride;
    for (size_t at = 0; at < copy->bytes; at += KITH_LINE_BYTES)
      memcpy(to + at, from + at, KITH_LINE_BYTES);
  }
}

static void narrow_values(const kith_copy *copy, const double *origin) {
  for (uint32_t a = 0; a < copy->arrays; a++) {
    float *to = (float *)(void *)(copy->to + a * copy->to_stride);
    const double *from = (const double *)(const void *)(copy->from + a * copy->from_stride);
    vd o = vd_set(origin[a]);
    for (size_t i = 0; i < copy->bytes / sizeof *from; i += D_LANES)
      vd_store_f32(to + i, vd_sub(vd_load_f64(from + i), o));
  }
}

static void number_lines(uint32_t *to, uint32_t first, uint32_t n) {
  for (uint32_t i = 0; i < n; i += LANES)
    vu_store(to + i, vu_from(first + i));
}

/* The place of an id is the number of ids that are not greater. Comparing all with all takes no branches that
 * could be guessed wrong, which is what sorting few numbers costs otherwise. */
static void order_ids(uint32_t *ids, double *d2, uint32_t n, uint32_t *ids_copy, double *d2_copy) {
  memcpy(ids_copy, ids, n * sizeof *ids);
  for (uint32_t i = n; i % LANES != 0; i++)
    ids_copy[i] = 0; /* not greater than anything */
  if (d2)
    memcpy(d2_copy, d2, n * sizeof *d2);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t greater = 0;
    for (uint32_t j = 0; j < n; j += LANES)
      greater += (uint32_t)__builtin_popcount(vu_mask_gt(ids_copy + j, ids_copy[i]));
    ids[n - 1 - greater] = ids_copy[i];
    if (d2)
      d2[n - 1 - greater] = d2_copy[i];
  }
}

static void find_bounds(const float *values, uint32_t n, float *low, float *high) {
  if (n < LANES) {
    *low = *high = values[0];
    for (uint32_t i = 1; i < n; i++) {
      *low = values[i] < *low ? values[i] : *low;
      *high = values[i] > *high ? values[i] : *high;
    }
    return;
  }
  vf least = vf_load(values + n - LANES); /* overlaps with what the loop sees */
  vf most = least;
  for (uint32_t i = 0; i + LANES < n; i += LANES) {
    least = vf_min(least, vf_load(values + i));
    most = vf_max(most, vf_load(values + i));
  }
  *low = vf_reduce_min(least);
  *high = vf_reduce_max(most);
}

/* One more dimension: the size so far, and the difference there. */
INLINE vf vf_size_add(vf size, vf t) {
  if (KERNEL_NORM == KITH_NORM_2)
    return vf_muladd(t, t, size);
  return KERNEL_NORM == KITH_NORM_1 ? vf_add(size, vf_abs(t)) : vf_max_abs(size, t);
}

/* The same by the definition. */
INLINE vd vd_size_add(vd size, vd t) {
  if (KERNEL_NORM == KITH_NORM_2)
    return vd_add(size, vd_mul(t, t));
  return KERNEL_NORM == KITH_NORM_1 ? vd_add(size, vd_abs(t)) : vd_max(size, vd_abs(t));
}

/* How candidates are sieved; known when this is compiled. In norm 1 the box may be one along directions, in
 * norm 2 there are periodic boxes. */
typedef struct sieve_kind {
  bool is_f64, slanted, lowers;
} sieve_kind;

/* Coordinate c of LANES candidates from i on, as it is staged. */
INLINE vf sieve_load(const kith_sieve *sieve, uint32_t c, uint32_t i, sieve_kind kind) {
  size_t at = c * sieve->from_stride + i;
  vf x = kind.is_f64 ? vf_load_narrow((const double *)sieve->from + at, vd_set(sieve->origin[c]))
                     : vf_load((const float *)sieve->from + at);
  if (kind.lowers)
    x = vf_lower_behind(x, vf_set(sieve->behind[c]), vf_set(sieve->by[c]));
  return x;
}

/* Two columns become their sum and their difference, and all columns the directions of their groups. */
INLINE void add_and_subtract(vf *a, vf *b) {
  vf sum = vf_add(*a, *b);
  *b = vf_sub(*a, *b);
  *a = sum;
}
INLINE void slant(vf *x, uint32_t dim) {
  uint32_t c = 0;
  for (; c + KITH_GROUP <= dim; c += KITH_GROUP) {
    add_and_subtract(&x[c], &x[c + 1]);
    add_and_subtract(&x[c + 2], &x[c + 3]);
    add_and_subtract(&x[c], &x[c + 2]);
    add_and_subtract(&x[c + 1], &x[c + 3]);
  }
  if (c + 2 <= dim)
    add_and_subtract(&x[c], &x[c + 1]);
}

/* The same for n points in place. */
static void slant_columns(float *columns, size_t stride, uint32_t n, uint32_t dim) {
  for (uint32_t i = 0; i < n; i += LANES) {
    vf x[KITH_SLANT_TO];
    for (uint32_t c = 0; c < dim; c++)
      x[c] = vf_load(columns + c * stride + i);
    slant(x, dim);
    for (uint32_t c = 0; c < dim; c++)
      vf_store(columns + c * stride + i, x[c]);
  }
}

/* The box in one dimension. */
typedef struct sieve_bounds {
  vf low, high;
} sieve_bounds;

INLINE sieve_bounds sieve_bounds_at(const kith_sieve *sieve, uint32_t c) {
  return (sieve_bounds){vf_set(sieve->low[c]), vf_set(sieve->high[c])};
}

/* The distance from a coordinate to itself, clamped to the box. */
INLINE vf beyond_box(sieve_bounds box, vf x) { return vf_sub(x, vf_min(vf_max(x, box.low), box.high)); }

/* The size of the difference from a box along directions, at least. */
INLINE vf size_beyond_slanted(const sieve_bounds *box, uint32_t dim, const vf *x) {
  vf y[KITH_SLANT_TO];
  vf sum = vf_set(0);
  vf largest = vf_set(0);
  for (uint32_t c = 0; c < dim; c++)
    y[c] = x[c];
  slant(y, dim);
  for (uint32_t c = 0; c < dim; c++) {
    bool begins = c == kith_group_begin(dim, c);
    vf t = beyond_box(box[c], y[c]);
    sum = begins ? vf_add(sum, largest) : sum;
    largest = begins ? vf_abs(t) : vf_max_abs(largest, t);
  }
  return vf_add(sum, largest);
}

/* Which of LANES candidates are near the box. If dimensions are few enough for the registers, these have the
 * box, and keep the coordinates. */
INLINE uint32_t sieve_mask(const kith_sieve *sieve, uint32_t i, uint32_t dim, sieve_kind kind,
                           const sieve_bounds *box, vf *x) {
  vf sum = vf_set(0);
  for (uint32_t c = 0; c < dim; c++) {
    vf value = sieve_load(sieve, c, i, kind);
    if (!kind.slanted)
      sum = vf_size_add(sum, beyond_box(dim <= KITH_KERNEL_DIMS ? box[c] : sieve_bounds_at(sieve, c), value));
    if (dim <= KITH_KERNEL_DIMS)
      x[c] = value;
  }
  if (kind.slanted)
    sum = size_beyond_slanted(box, dim, x);
  return vf_mask_le(sum, vf_set(sieve->limit));
}

/* The bits of the candidates among LANES from i on. */
static inline uint32_t lanes_left(uint32_t i, uint32_t n) {
  return n - i < LANES ? (1U << (n - i)) - 1 : UINT32_MAX;
}

INLINE uint32_t sieve_loop(const kith_sieve *shared, uint32_t dim, sieve_kind kind) {
  const kith_sieve sieve = *shared; /* a copy of its own, which the stores below cannot change */
  sieve_bounds box[KITH_KERNEL_DIMS];
  for (uint32_t c = 0; c < dim && dim <= KITH_KERNEL_DIMS; c++)
    box[c] = sieve_bounds_at(&sieve, c);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < sieve.n; i += LANES) {
    vf x[KITH_KERNEL_DIMS];
    uint32_t mask = sieve_mask(&sieve, i, dim, kind, box, x) & lanes_left(i, sieve.n);
    if (!mask && dim > KITH_KERNEL_DIMS) /* for few dimensions a wrong guess would cost more than it saves */
      continue;
    vorder order = v_order(mask);
    for (uint32_t c = 0; c < dim; c++)
      vf_pack(sieve.to + c * sieve.to_stride + kept,
              dim <= KITH_KERNEL_DIMS ? x[c] : sieve_load(&sieve, c, i, kind), order);
    if (sieve.ids)
      vu_pack(sieve.ids_to + kept, vu_load(sieve.ids + i), order);
    if (sieve.positions_to)
      vu_pack(sieve.positions_to + kept, vu_from(sieve.position + i), order);
    kept += (uint32_t)__builtin_popcount(mask);
  }
  return kept;
}

INLINE uint32_t sieve_body(const kith_sieve *sieve, uint32_t dim, bool is_f64, bool may_slant) {
  if (KERNEL_NORM == KITH_NORM_1 && may_slant && sieve->slanted)
    return sieve_loop(sieve, dim, (sieve_kind){.is_f64 = is_f64, .slanted = true});
  if (HAS_BOXES && sieve->lowers)
    return sieve_loop(sieve, dim, (sieve_kind){.is_f64 = is_f64, .lowers = true});
  return sieve_loop(sieve, dim, (sieve_kind){.is_f64 = is_f64});
}

/* Adds columns [begin, end) of one query against LANES candidates. */
INLINE vf filter_columns(const kith_tile *tile, uint32_t q, uint32_t j, uint32_t begin, uint32_t end, vf sum) {
  const float *query = (const float *)tile->queries + q;
  const float *candidate = (const float *)tile->candidates + j;
  for (uint32_t c = begin; c < end; c++) {
    vf t = vf_sub(vf_load(candidate + (size_t)c * tile->stride), vf_set(query[c * KITH_TILE_QUERIES]));
    sum = vf_size_add(sum, t);
  }
  return sum;
}

/* Columns between two looks at whether all lanes are out (SHORTC). */
enum { STOP_COLUMNS = 8 };

/* The size less the limit of one query against LANES candidates, in float32: negative means "belongs" outside
 * the band. Partial sizes never fall, so once all exceed tile->stop, which is at least the band, the rest does
 * not matter. */
INLINE vf filter_sum(const kith_tile *tile, uint32_t q, uint32_t j, uint32_t dim) {
  bool is_max = KERNEL_NORM == KITH_NORM_MAX; /* then the limit is taken off in the end */
  vf start = vf_set(tile->starts[q]);
  vf sum = is_max ? vf_set(0) : start;
  if (dim <= KITH_KERNEL_DIMS) {
    sum = filter_columns(tile, q, j, 0, dim, sum);
  } else {
    vf stop = vf_set(is_max ? tile->stop - tile->starts[q] : tile->stop);
    for (uint32_t c = 0; c < dim && vf_mask_le(sum, stop); c += STOP_COLUMNS)
      sum = filter_columns(tile, q, j, c, dim - c < STOP_COLUMNS ? dim : c + STOP_COLUMNS, sum);
  }
  return is_max ? vf_add(sum, start) : sum;
}

/* Where periodic axes are cut for fours of queries, or for single ones (cuts.h): which of the columns are is
 * known when this is compiled, if these are the last `last` of them. */
typedef struct cutting {
  uint32_t last; /* 0: no column is cut, or it is not known which */
  const struct cut_columns *columns;
  const kith_cuts *cuts; /* NULL: no column is cut, or it is known */
} cutting;
static const cutting NO_CUTS = {0};

/* The columns of a tile in an order in which those that are cut come last. */
typedef struct cut_columns {
  uint32_t n_cut;
  bool shared;
  const float *candidates[KITH_KERNEL_DIMS];
  float by[KITH_KERNEL_DIMS];
  float behind[KITH_KERNEL_DIMS * KITH_TILE_QUERIES];
  float queries[KITH_KERNEL_DIMS * KITH_TILE_QUERIES];
} cut_columns;

/* So many columns are cut in most tiles, if any: the grid makes cells along the others. */
#define FEW_CUTS(D) ((D) < 6 ? 1 : (D)-4)

/* Puts column c at a place. If it is not cut, nothing is behind its cut. */
INLINE void place_column(const kith_tile *tile, uint32_t c, uint32_t place, cut_columns *columns) {
  const kith_cuts *cuts = tile->cuts;
  size_t from = c * (size_t)KITH_TILE_QUERIES;
  size_t to = place * (size_t)KITH_TILE_QUERIES;
  vf none = vf_set(INFINITY);
  columns->candidates[place] = (const float *)tile->candidates + (size_t)c * tile->stride;
  columns->by[place] = cuts->by[c];
  for (uint32_t q = 0; q < tile->n_queries; q += LANES) {
    vf_store(columns->queries + to + q, vf_load((const float *)tile->queries + from + q));
    vf_store(columns->behind + to + q, cuts->cut[c] ? vf_load(cuts->behind + from + q) : none);
  }
}

INLINE void order_columns(const kith_tile *tile, uint32_t dim, cut_columns *columns) {
  uint32_t place = 0;
  for (uint32_t c = 0; c < dim; c++)
    if (!tile->cuts->cut[c])
      place_column(tile, c, place++, columns);
  columns->n_cut = dim - place;
  columns->shared = tile->cuts->shared;
  for (uint32_t c = 0; c < dim; c++)
    if (tile->cuts->cut[c])
      place_column(tile, c, place++, columns);
}

/* Adds one column of `width` queries (4 or 1) whose values stand there. */
INLINE void add_column(vf x, const float *queries, uint32_t width, vf *sums) {
  for (uint32_t k = 0; k < width; k++)
    sums[k] = vf_size_add(sums[k], vf_sub(x, vf_set(queries[k])));
}

/* The sums of `width` queries where some columns are cut: queries share the cut of the first. */
INLINE void cut_sums(const kith_tile *tile, uint32_t q, uint32_t width, uint32_t j, uint32_t dim,
                     const kith_cuts *cuts, vf *sums) {
  for (uint32_t c = 0; c < dim; c++) {
    size_t at = c * (size_t)KITH_TILE_QUERIES + q;
    vf x = vf_load((const float *)tile->candidates + (size_t)c * tile->stride + j);
    if (cuts->cut[c])
      x = vf_lower_behind(x, vf_set(cuts->behind[at]), vf_set(cuts->by[c]));
    add_column(x, (const float *)tile->queries + at, width, sums);
  }
}

/* The same where the last columns are. */
INLINE void cut_last_sums(const cut_columns *columns, uint32_t last, uint32_t q, uint32_t width, uint32_t j,
                          uint32_t dim, vf *sums) {
  for (uint32_t c = 0; c < dim; c++) {
    size_t at = c * (size_t)KITH_TILE_QUERIES + q;
    vf x = vf_load(columns->candidates[c] + j);
    if (c + last >= dim)
      x = vf_lower_behind(x, vf_set(columns->behind[at]), vf_set(columns->by[c]));
    add_column(x, columns->queries + at, width, sums);
  }
}

/* The sums of `width` queries (4 or 1) against LANES candidates. */
INLINE void filter_sums(const kith_tile *tile, uint32_t q, uint32_t width, uint32_t j, uint32_t dim,
                        cutting cut, vf *sums) {
  for (uint32_t k = 0; k < width; k++)
    sums[k] = cut.last || cut.cuts ? vf_set(tile->starts[q + k]) : filter_sum(tile, q + k, j, dim);
  if (cut.last)
    cut_last_sums(cut.columns, cut.last, q, width, j, dim, sums);
  else if (cut.cuts)
    cut_sums(tile, q, width, j, dim, cut.cuts, sums);
}

/* How many queries go by fours, from the first one on: none where each has cuts of its own. */
INLINE uint32_t queries_by_fours(const kith_tile *tile, cutting cut) {
  bool shared = cut.last ? cut.columns->shared : !cut.cuts || cut.cuts->shared;
  return shared ? tile->n_queries / 4 * 4 : 0;
}

/* Queries go by fours: four independent chains hide the latency of the accumulators.
 *
 * A sum counts by its sign, so none may be NaN: whoever stages queries keeps them finite, and padding is
 * +infinity.
 */
INLINE bool count_body(const kith_tile *tile, const kith_predicate *predicate, uint64_t *pairs, uint32_t dim,
                       cutting cut) {
  uint32_t n = padded_candidates(tile);
  uint32_t fours = queries_by_fours(tile, cut);
  vf nearest[4];
  vu hits[4];
  for (int k = 0; k < 4; k++) {
    nearest[k] = vf_set(INFINITY);
    hits[k] = vu_zero();
  }
  for (uint32_t j = 0; j < n; j += LANES) {
    vf sums[4];
    for (uint32_t q = 0; q < fours; q += 4) {
      filter_sums(tile, q, 4, j, dim, cut, sums);
      for (uint32_t k = 0; k < 4; k++) {
        hits[k] = vu_count_negative(hits[k], sums[k]);
        nearest[k] = vf_min_abs(nearest[k], sums[k]);
      }
    }
    for (uint32_t q = fours; q < tile->n_queries; q++) {
      filter_sums(tile, q, 1, j, dim, cut, sums);
      hits[0] = vu_count_negative(hits[0], sums[0]);
      nearest[0] = vf_min_abs(nearest[0], sums[0]);
    }
  }
  uint64_t found = 0;
  for (int k = 0; k < 4; k++) {
    found += vu_sum(hits[k]);
    nearest[0] = vf_min_abs(nearest[0], nearest[k]);
  }
  *pairs = found;
  return vf_reduce_min(nearest[0]) > predicate->band;
}

/* Counts for `width` queries (4 or 1) starting at q; returns the smallest |sum| met. */
INLINE float degrees_of(const kith_tile *tile, uint32_t q, uint32_t width, uint32_t *degrees, uint32_t dim,
                        cutting cut) {
  uint32_t n = padded_candidates(tile);
  vf nearest[4];
  vu hits[4];
  for (uint32_t k = 0; k < width; k++) {
    nearest[k] = vf_set(INFINITY);
    hits[k] = vu_zero();
  }
  for (uint32_t j = 0; j < n; j += LANES) {
    vf sums[4];
    filter_sums(tile, q, width, j, dim, cut, sums);
    for (uint32_t k = 0; k < width; k++) {
      hits[k] = vu_count_negative(hits[k], sums[k]);
      nearest[k] = vf_min_abs(nearest[k], sums[k]);
    }
  }
  for (uint32_t k = 0; k < width; k++) {
    degrees[q + k] += vu_sum(hits[k]);
    nearest[0] = vf_min_abs(nearest[0], nearest[k]);
  }
  return vf_reduce_min(nearest[0]);
}

INLINE bool degrees_body(const kith_tile *tile, const kith_predicate *predicate, uint32_t *degrees,
                         uint32_t dim, cutting cut) {
  uint32_t q = 0;
  float nearest = INFINITY;
  for (; q < queries_by_fours(tile, cut); q += 4)
    nearest = fminf(nearest, degrees_of(tile, q, 4, degrees, dim, cut));
  for (; q < tile->n_queries; q++)
    nearest = fminf(nearest, degrees_of(tile, q, 1, degrees, dim, cut));
  return nearest > predicate->band;
}

/* The definition for one pair of staged points. */
INLINE double staged_size(const kith_tile *tile, uint32_t q, uint32_t j, uint32_t dim) {
  double size = 0;
  for (uint32_t c = 0; c < dim; c++) {
    double t = (double)((const float *)tile->queries)[c * (size_t)KITH_TILE_QUERIES + q] -
               (double)((const float *)tile->candidates)[c * (size_t)tile->stride + j];
    size = kith_norm_add(KERNEL_NORM, size, t);
  }
  return size;
}

static double given_coordinate(const kith_true_points *points, uint32_t c, uint32_t position) {
  int64_t row = points->ids ? points->ids[position] : position;
  const void *at = points->data + row * points->row + c * points->column;
  return points->is_f64 ? *(const double *)at : (double)*(const float *)at;
}

/* Of a point that is wrapped into a box with angles, which needs all its coordinates. */
static __attribute__((noinline)) double skewed_coordinate(const kith_true_points *points, uint32_t c,
                                                          uint32_t position) {
  double x[KITH_MAX_AXES];
  for (uint32_t i = 0; i < points->wrap_into->n; i++) {
    uint32_t axis = points->wrap_into->axis[i];
    x[axis] = given_coordinate(points, axis, position);
  }
  kith_lattice_wrap(points->wrap_into, x);
  return x[c];
}

static double true_coordinate(const kith_true_points *points, uint32_t c, uint32_t position) {
  double side = points->wrap_into ? kith_lattice_side(points->wrap_into, c) : 0;
  if (side > 0 && points->wrap_into->skewed)
    return skewed_coordinate(points, c, position);
  return kith_wrap_nearby(given_coordinate(points, c, position), side);
}

/* The definition for one pair whose staged coordinates are rounded. */
static double true_size(const kith_truth *truth, const kith_image *image, uint32_t q, uint32_t j,
                        uint32_t dim) {
  double size = 0;
  for (uint32_t c = 0, i = 0; c < dim; c++) {
    double t = true_coordinate(&truth->queries, c, truth->query_positions[q]) -
               true_coordinate(&truth->candidates, c, truth->candidate_positions[j]);
    if (image)
      t += image->shift[c];
    if (image && i < image->folds.n && image->folds.axis[i] == c)
      t = kith_fold(t, image->folds.side[i++]);
    size = kith_norm_add(KERNEL_NORM, size, t);
  }
  return size;
}

/* Whether a pair that belongs does so in this image: it may in two, and then the nearer one counts. */
INLINE bool is_nearest(const kith_tile *tile, uint32_t q, uint32_t j, double size) {
  const kith_image *image = tile->image;
  return !image || size <= image->doubt || image->is_nearest(image, q, j, size);
}

/* Settles the undecided lanes by the definition. Rare: about one candidate in a million. */
INLINE uint32_t settle(const kith_tile *tile, uint32_t q, uint32_t j, uint32_t undecided, uint32_t dim) {
  uint32_t belongs = 0;
  for (; undecided; undecided &= undecided - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(undecided);
    if (j + lane >= tile->n_candidates)
      continue;
    double size = tile->truth ? true_size(tile->truth, tile->image, q, j + lane, dim)
                              : staged_size(tile, q, j + lane, dim);
    if (size <= tile->limits[q] && is_nearest(tile, q, j + lane, size))
      belongs |= 1U << lane;
  }
  return belongs;
}

/* The lanes that may be reported at all: not the query itself, and for half only larger ids. */
INLINE uint32_t admitted(const kith_tile *tile, uint32_t q, uint32_t j) {
  uint32_t mask = UINT32_MAX;
  if (tile->self && tile->self[q] - j < LANES)
    mask = ~(1U << (tile->self[q] - j));
  if (tile->half)
    mask &= vu_mask_gt(tile->candidate_ids + j, tile->query_ids[q]);
  return mask;
}

/* The neighbours of query q among LANES candidates whose sums are known; `near` are those that the filter does
 * not reject. */
INLINE uint32_t neighbors(const kith_tile *tile, const kith_predicate *predicate, uint32_t q, uint32_t j,
                          vf sum, uint32_t near, uint32_t dim) {
  uint32_t belongs = vf_mask_lt(sum, vf_set(-predicate->band));
  uint32_t undecided = near & ~belongs;
  if (__builtin_expect(undecided != 0, 0))
    belongs |= settle(tile, q, j, undecided, dim);
  return belongs & admitted(tile, q, j);
}

INLINE void settled_body(const kith_tile *tile, const kith_predicate *predicate, uint32_t *degrees,
                         uint32_t dim, cutting cut) {
  uint32_t n = padded_candidates(tile);
  vf above = vf_set(predicate->band);
  for (uint32_t q = 0; q < tile->n_queries; q++)
    for (uint32_t j = 0; j < n; j += LANES) {
      vf sum;
      filter_sums(tile, q, 1, j, dim, cut, &sum);
      uint32_t near = vf_mask_le(sum, above);
      if (near)
        degrees[q] += (uint32_t)__builtin_popcount(neighbors(tile, predicate, q, j, sum, near, dim));
    }
}

/* What a kernel finds for some queries, on its way to their rows. */
typedef uint32_t found_ids[4][KITH_MOST_CANDIDATES];

/* Rows of `width` queries (4 or 1) starting at q: candidates are loaded once for all of them. */
INLINE void fill_of(const kith_tile *tile, uint32_t q, uint32_t width, const kith_predicate *predicate,
                    kith_rows *rows, uint32_t dim, cutting cut, found_ids buffer) {
  uint32_t n = padded_candidates(tile);
  vf above = vf_set(predicate->band);
  uint32_t *next[4];
  for (uint32_t k = 0; k < width; k++)
    next[k] = rows->bypasses ? buffer[k] : rows->next[q + k];
  for (uint32_t k = q + width; k < q + 2 * width && k < tile->n_queries; k++)
    __builtin_prefetch(rows->next[k], 1); /* rows are far apart, and their first lines written in part */
  for (uint32_t j = 0; j < n; j += LANES) {
    vf sums[4];
    uint32_t near[4];
    uint32_t any = 0;
    filter_sums(tile, q, width, j, dim, cut, sums);
#pragma GCC unroll 4
    for (uint32_t k = 0; k < width; k++) {
      near[k] = vf_mask_le(sums[k], above);
      any |= near[k];
    }
    if (!any)
      continue;
#pragma GCC unroll 4
    for (uint32_t k = 0; k < width; k++) {
      uint32_t found = near[k] ? neighbors(tile, predicate, q + k, j, sums[k], near[k], dim) : 0;
      if (!found)
        continue;
      vu_compress(next[k], vu_load(tile->candidate_ids + j), found);
      next[k] += __builtin_popcount(found);
    }
  }
  for (uint32_t k = 0; k < width; k++) {
    if (rows->bypasses) {
      uint32_t found = (uint32_t)(next[k] - buffer[k]);
      kith_bypass_copy(rows->next[q + k], buffer[k], found * sizeof **buffer);
      next[k] = rows->next[q + k] + found;
    }
    rows->next[q + k] = next[k];
  }
}

/* Works on copies of the tile and the predicate: ids are written through pointers that might otherwise point
 * into them. */
INLINE void fill_body(const kith_tile *shared_tile, const kith_predicate *shared_predicate, kith_rows *rows,
                      uint32_t dim, cutting cut) {
  const kith_tile tile = *shared_tile;
  const kith_predicate predicate = *shared_predicate;
  found_ids buffer;
  uint32_t q = 0;
  for (; q < queries_by_fours(&tile, cut); q += 4)
    fill_of(&tile, q, 4, &predicate, rows, dim, cut, buffer);
  for (; q < tile.n_queries; q++)
    fill_of(&tile, q, 1, &predicate, rows, dim, cut, buffer);
}

/* ---- the filter for tiles with cuts, which there are in norm 2 only ---- */

/* Where it is not known which columns are cut. */
INLINE cutting cuts_of(const kith_tile *tile) { return (cutting){.cuts = tile->cuts}; }

/* Where it is: few of the columns, or any. */
INLINE bool is_cut_in_few(const cut_columns *columns, uint32_t dim) { return columns->n_cut <= FEW_CUTS(dim); }
INLINE cutting few_cuts(const cut_columns *columns, uint32_t dim) {
  return (cutting){.last = FEW_CUTS(dim), .columns = columns};
}
INLINE cutting many_cuts(const cut_columns *columns, uint32_t dim) {
  return (cutting){.last = dim, .columns = columns};
}

/* `dim` 0: any dimension. */
INLINE bool count_cutting(const kith_tile *tile, const kith_predicate *predicate, uint64_t *pairs,
                          uint32_t dim) {
  cut_columns columns;
  if (dim == 0)
    return count_body(tile, predicate, pairs, tile->dim, cuts_of(tile));
  order_columns(tile, dim, &columns);
  return is_cut_in_few(&columns, dim) ? count_body(tile, predicate, pairs, dim, few_cuts(&columns, dim))
                                      : count_body(tile, predicate, pairs, dim, many_cuts(&columns, dim));
}

INLINE bool degrees_cutting(const kith_tile *tile, const kith_predicate *predicate, uint32_t *degrees,
                            uint32_t dim) {
  cut_columns columns;
  if (dim == 0)
    return degrees_body(tile, predicate, degrees, tile->dim, cuts_of(tile));
  order_columns(tile, dim, &columns);
  return is_cut_in_few(&columns, dim) ? degrees_body(tile, predicate, degrees, dim, few_cuts(&columns, dim))
                                      : degrees_body(tile, predicate, degrees, dim, many_cuts(&columns, dim));
}

INLINE void fill_cutting(const kith_tile *tile, const kith_predicate *predicate, kith_rows *rows,
                         uint32_t dim) {
  cut_columns columns;
  if (dim == 0) {
    fill_body(tile, predicate, rows, tile->dim, cuts_of(tile));
    return;
  }
  order_columns(tile, dim, &columns);
  if (is_cut_in_few(&columns, dim))
    fill_body(tile, predicate, rows, dim, few_cuts(&columns, dim));
  else
    fill_body(tile, predicate, rows, dim, many_cuts(&columns, dim));
}

/* kith_fold for D_LANES differences. Padding, infinitely far away, stays there. */
INLINE vd vd_fold(vd t, double side) {
  t = vd_abs(t);
  return vd_min(t, vd_sub(vd_set(side), t));
}

/* The size of one query against D_LANES candidates, by the definition. */
INLINE vd exact_sum(const kith_tile *tile, uint32_t q, uint32_t j, uint32_t dim, bool is_f64, bool is_image) {
  vd sum = vd_set(0);
  for (uint32_t c = 0, i = 0; c < dim; c++) {
    size_t at_q = c * (size_t)KITH_TILE_QUERIES + q;
    size_t at_j = c * (size_t)tile->stride + j;
    vd t = is_f64 ? vd_sub(vd_set(((const double *)tile->queries)[at_q]),
                           vd_load_f64((const double *)tile->candidates + at_j))
                  : vd_sub(vd_set((double)((const float *)tile->queries)[at_q]),
                           vd_load_f32((const float *)tile->candidates + at_j));
    if (is_image)
      t = vd_add(t, vd_set(tile->image->shift[c]));
    if (is_image && i < tile->image->folds.n && tile->image->folds.axis[i] == c)
      t = vd_fold(t, tile->image->folds.side[i++]);
    sum = vd_size_add(sum, t);
  }
  return sum;
}

/* Drops the lanes that are nearer in another image. */
INLINE uint32_t nearest_lanes(const kith_tile *tile, uint32_t q, uint32_t j, const vd *sums, uint32_t belongs) {
  double sizes[LANES];
  for (uint32_t part = 0; part < LANES / D_LANES; part++)
    vd_store(sizes + part * D_LANES, sums[part]);
  for (uint32_t left = belongs; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    if (!is_nearest(tile, q, j + lane, sizes[lane]))
      belongs &= ~(1U << lane);
  }
  return belongs;
}

/* Visits LANES candidates at a time, since ids are compared LANES at a time: D_LANES divides LANES. */
INLINE uint32_t exact_mask(const kith_tile *tile, uint32_t q, uint32_t j, vd *sums, uint32_t dim, bool is_f64,
                           bool is_image) {
  uint32_t belongs = 0;
  for (uint32_t part = 0; part < LANES / D_LANES; part++) {
    sums[part] = exact_sum(tile, q, j + part * D_LANES, dim, is_f64, is_image);
    belongs |= vd_mask_le(sums[part], vd_set(tile->limits[q])) << (part * D_LANES);
  }
  /* Where the limit is infinite, so is the size of padding: it must not count. */
  if (j + LANES > tile->n_candidates)
    belongs &= j < tile->n_candidates ? (1U << (tile->n_candidates - j)) - 1 : 0;
  belongs &= admitted(tile, q, j);
  return is_image && belongs ? nearest_lanes(tile, q, j, sums, belongs) : belongs;
}

INLINE void degrees_exact_body(const kith_tile *tile, uint32_t *degrees, uint32_t dim, bool is_f64,
                               bool is_image) {
  uint32_t n = padded_candidates(tile);
  for (uint32_t q = 0; q < tile->n_queries; q++) {
    uint32_t found = 0;
    for (uint32_t j = 0; j < n; j += LANES) {
      vd sums[LANES / D_LANES];
      found += (uint32_t)__builtin_popcount(exact_mask(tile, q, j, sums, dim, is_f64, is_image));
    }
    degrees[q] += found;
  }
}

INLINE void fill_exact_body(const kith_tile *tile, kith_rows *rows, uint32_t dim, bool is_f64, bool is_image) {
  uint32_t n = padded_candidates(tile);
  for (uint32_t q = 0; q < tile->n_queries; q++)
    for (uint32_t j = 0; j < n; j += LANES) {
      vd sums[LANES / D_LANES];
      uint32_t belongs = exact_mask(tile, q, j, sums, dim, is_f64, is_image);
      if (!belongs)
        continue;
      double d2[LANES];
      for (uint32_t part = 0; part < LANES / D_LANES; part++)
        vd_store(d2 + part * D_LANES, sums[part]);
      for (; belongs; belongs &= belongs - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(belongs);
        *rows->next[q]++ = tile->candidate_ids[j + lane];
        if (rows->d2[q])
          *rows->d2[q]++ = d2[lane];
      }
    }
}

/* One set of kernels for dimension D (0: any). */
#define DIMENSION(D) ((D) ? (D) : tile->dim)
#define MAKE_EXACT(D, TYPE, IS_F64)                                                                            \
  static void degrees_exact_##TYPE##_##D(const kith_tile *tile, uint32_t *degrees) {                           \
    degrees_exact_body(tile, degrees, DIMENSION(D), IS_F64, false);                                            \
  }                                                                                                            \
  static void fill_exact_##TYPE##_##D(const kith_tile *tile, kith_rows *rows) {                                \
    fill_exact_body(tile, rows, DIMENSION(D), IS_F64, false);                                                  \
  }                                                                                                            \
  static uint32_t sieve_##TYPE##_##D(const kith_sieve *sieve, uint32_t dim) {                                  \
    return sieve_body(sieve, (D) ? (D) : dim, IS_F64, (D) >= KITH_SLANT_FROM);                                 \
  }
#define MAKE(D)                                                                                                \
  static bool count_##D(const kith_tile *tile, const kith_predicate *predicate, uint64_t *pairs) {             \
    return count_body(tile, predicate, pairs, DIMENSION(D), NO_CUTS);                                          \
  }                                                                                                            \
  static bool degrees_##D(const kith_tile *tile, const kith_predicate *predicate, uint32_t *degrees) {         \
    return degrees_body(tile, predicate, degrees, DIMENSION(D), NO_CUTS);                                      \
  }                                                                                                            \
  static void settled_##D(const kith_tile *tile, const kith_predicate *predicate, uint32_t *degrees) {         \
    settled_body(tile, predicate, degrees, DIMENSION(D), NO_CUTS);                                             \
  }                                                                                                            \
  static void fill_##D(const kith_tile *tile, const kith_predicate *predicate, kith_rows *rows) {              \
    fill_body(tile, predicate, rows, DIMENSION(D), NO_CUTS);                                                   \
  }                                                                                                            \
  MAKE_EXACT(D, f32, false)                                                                                    \
  MAKE_EXACT(D, f64, true)                                                                                     \
  MAKE_CUTTING(D)
#define MAKE_CUTTING(D)                                                                                        \
  static bool count_cutting_##D(const kith_tile *tile, const kith_predicate *predicate, uint64_t *pairs) {     \
    return HAS_BOXES && count_cutting(tile, predicate, pairs, D);                                              \
  }                                                                                                            \
  static bool degrees_cutting_##D(const kith_tile *tile, const kith_predicate *predicate, uint32_t *degrees) { \
    return HAS_BOXES && degrees_cutting(tile, predicate, degrees, D);                                          \
  }                                                                                                            \
  static void settled_cutting_##D(const kith_tile *tile, const kith_predicate *predicate, uint32_t *degrees) { \
    if (HAS_BOXES)                                                                                             \
      settled_body(tile, predicate, degrees, DIMENSION(D), cuts_of(tile));                                     \
  }                                                                                                            \
  static void fill_cutting_##D(const kith_tile *tile, const kith_predicate *predicate, kith_rows *rows) {      \
    if (HAS_BOXES)                                                                                             \
      fill_cutting(tile, predicate, rows, D);                                                                  \
  }
/* Tiles with any image, by the definition. */
#define MAKE_IMAGE(TYPE, IS_F64)                                                                               \
  static void degrees_image_##TYPE(const kith_tile *tile, uint32_t *degrees) {                                 \
    degrees_exact_body(tile, degrees, tile->dim, IS_F64, true);                                                \
  }                                                                                                            \
  static void fill_image_##TYPE(const kith_tile *tile, kith_rows *rows) {                                      \
    fill_exact_body(tile, rows, tile->dim, IS_F64, true);                                                      \
  }
#define ENTRY_F32(D)                                                                                           \
  { count_##D, degrees_##D, settled_##D, fill_##D, degrees_exact_f32_##D, fill_exact_f32_##D, sieve_f32_##D }
#define ENTRY_CUTTING(D)                                                                                       \
  {                                                                                                            \
    .count = count_cutting_##D, .degrees = degrees_cutting_##D, .settled = settled_cutting_##D,                \
    .fill = fill_cutting_##D                                                                                   \
  }
#define ENTRY_F64(D)                                                                                           \
  { NULL, NULL, NULL, NULL, degrees_exact_f64_##D, fill_exact_f64_##D, sieve_f64_##D }

MAKE(0)
MAKE(1)
MAKE(2)
MAKE(3)
MAKE(4)
MAKE(5)
MAKE(6)
MAKE(7)
MAKE(8)
MAKE_IMAGE(f32, false)
MAKE_IMAGE(f64, true)

const kith_kernel_table KERNEL_TABLE = {
    .copy = copy_lines,
    .narrow = narrow_values,
    .number = number_lines,
    .order = order_ids,
    .bounds = find_bounds,
    .slant = slant_columns,
    .f32 = {ENTRY_F32(0), ENTRY_F32(1), ENTRY_F32(2), ENTRY_F32(3), ENTRY_F32(4), ENTRY_F32(5), ENTRY_F32(6),
            ENTRY_F32(7), ENTRY_F32(8)},
    .f64 = {ENTRY_F64(0), ENTRY_F64(1), ENTRY_F64(2), ENTRY_F64(3), ENTRY_F64(4), ENTRY_F64(5), ENTRY_F64(6),
            ENTRY_F64(7), ENTRY_F64(8)},
    .cutting = {ENTRY_CUTTING(0), ENTRY_CUTTING(1), ENTRY_CUTTING(2), ENTRY_CUTTING(3), ENTRY_CUTTING(4),
                ENTRY_CUTTING(5), ENTRY_CUTTING(6), ENTRY_CUTTING(7), ENTRY_CUTTING(8)},
    .image_f32 = {degrees_image_f32, fill_image_f32},
    .image_f64 = {degrees_image_f64, fill_image_f64},
};
