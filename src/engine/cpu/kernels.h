/* The CPU kernels: a tile of queries against a block of candidates, both staged in the L1 cache.
 *
 * One body (kernels_body.h) is compiled once per norm and instruction set against that set's vocabulary
 * (simd/), and in it once per dimension from 1 to 8 and once for any dimension. All give the same answers, bit
 * for bit. */
#ifndef KITH_ENGINE_CPU_KERNELS_H
#define KITH_ENGINE_CPU_KERNELS_H

#include "base/context.h"
#include "space/directions.h"
#include "space/lattice.h"

enum {
  KITH_TILE_QUERIES = 64,
  KITH_KERNEL_DIMS = 8,        /* dimensions with kernels of their own */
  KITH_CANDIDATE_ALIGN = 16,   /* candidates are padded to a multiple of this */
  KITH_MOST_CANDIDATES = 2048, /* staged for a tile at once; kernels have buffers of this size */
};

/* True coordinates of points, float or double: that of position p in dimension c is c * column and p * row
 * bytes from `data`, or ids[p] * row, if there are ids. */
typedef struct kith_true_points {
  const char *data;
  int64_t row, column;
  const uint32_t *ids;
  bool is_f64;
  const kith_lattice *wrap_into; /* points are to be wrapped into its brick; NULL: they lie there */
} kith_true_points;

/* Where the true coordinates of a tile are, if the staged ones are rounded. */
typedef struct kith_truth {
  kith_true_points queries, candidates;
  const uint32_t *query_positions;
  const uint32_t *candidate_positions; /* of the staged candidates */
} kith_truth;

/* Periodic axes that are cut open where no query is near (cuts.h): what is behind a cut is lower by a side.
 * Those of the filter are for four queries each, from the first one on, or for one. */
typedef struct kith_cuts {
  bool shared;   /* the cuts are those of four queries, but for queries that are left over */
  bool *cut;     /* which dimensions are, */
  float *behind; /* and where, dimension c for query q at [c * KITH_TILE_QUERIES + q]; */
  float *by;     /* the sides, of all periodic axes */
} kith_cuts;

/* The images of the candidates that a tile is tested against: queries moved by a vector of the lattice, and
 * along some axes whichever image is nearest. */
typedef struct kith_image kith_image;
struct kith_image {
  const double *shift; /* added to every difference, per dimension */
  kith_folds folds;    /* where that is 0, and differences are folded */
  double doubt;        /* pairs of a larger size may be nearer in another image: then ask */
  bool (*is_nearest)(const kith_image *image, uint32_t q, uint32_t j, double size);
  const void *owner; /* for is_nearest */
};

/* Padding candidates are infinitely far from everything. */
typedef struct kith_tile {
  uint32_t dim;
  uint32_t n_queries;
  uint32_t n_candidates;  /* without padding */
  uint32_t stride;        /* between the candidates' coordinate arrays */
  const void *queries;    /* coordinate c of query q at [c * KITH_TILE_QUERIES + q]; float or double */
  const void *candidates; /* coordinate c of candidate j at [c * stride + j] */
  const float *starts;    /* per query: what a sum of the filter starts from, less its limit */
  const double *limits;   /* per query: by the definition */
  const uint32_t *query_ids;
  const uint32_t *candidate_ids;
  const uint32_t *self;    /* per query: its own place among the candidates, to be left out, or UINT32_MAX;
                              NULL: leave out nothing */
  bool half;               /* only candidates with a larger id */
  float stop;              /* partial sums above this end a distance: the band, or infinity */
  const kith_truth *truth; /* NULL: the coordinates above are exact */
  const kith_image *image; /* NULL: the points as they are, no image */
  const kith_cuts *cuts;   /* of the filter; NULL: none */
} kith_tile;

/* Where the neighbours of each query of the tile go. */
typedef struct kith_rows {
  uint32_t *next[KITH_TILE_QUERIES]; /* advanced by what is written */
  double *d2[KITH_TILE_QUERIES];     /* where sizes go, in step with next; NULL: not wanted */
  bool bypasses;                     /* past the caches, where the kernel can: rows are long, and many */
} kith_rows;

/* Candidates on their way to a tile: consecutive positions of the index, of which only those near the box
 * around the tile's queries are staged. Both sides have room for a cache line beyond their ends. */
typedef struct kith_sieve {
  const void *from; /* coordinate c of candidate i at [c * from_stride + i]; float or double */
  size_t from_stride;
  uint32_t n;
  const double *origin; /* of staged coordinates, if they come from doubles */
  bool slanted;         /* the box is one along directions (space/directions.h), in norm 1 */
  float *low, *high;    /* the box, per dimension, as staged */
  float limit;          /* candidates whose size beside the box, in float, exceeds this are dropped */
  bool lowers;          /* candidates are staged in the image that is nearest to the box (cuts.h): */
  float *behind, *by;   /* those behind here are lower by so much, per dimension; infinity: none are */
  float *to;            /* coordinate c of the k-th kept one to [c * to_stride + k] */
  size_t to_stride;
  const uint32_t *ids; /* NULL: not wanted */
  uint32_t *ids_to;
  uint32_t position;      /* of candidate 0 */
  uint32_t *positions_to; /* NULL: not wanted */
} kith_sieve;

/* The kernels for one dimension and coordinate type. Those of the filter see float coordinates, and take the
 * band from the predicate. Self and half are heeded by all but count and degrees. */
typedef struct kith_kernels {
  /* The filter: number of pairs that belong, in all or per query (added to degrees). Returns false, and
   * nothing useful, if some pair lies in the band: then ask settled. */
  bool (*count)(const kith_tile *tile, const kith_predicate *predicate, uint64_t *pairs);
  bool (*degrees)(const kith_tile *tile, const kith_predicate *predicate, uint32_t *degrees);
  /* The filter with the band settled by the definition: per query, or ids appended to rows. */
  void (*settled)(const kith_tile *tile, const kith_predicate *predicate, uint32_t *degrees);
  void (*fill)(const kith_tile *tile, const kith_predicate *predicate, kith_rows *rows);
  /* The definition throughout; the coordinates must be exact. */
  void (*degrees_exact)(const kith_tile *tile, uint32_t *degrees);
  void (*fill_exact)(const kith_tile *tile, kith_rows *rows);
  /* Stages the candidates near a box, as floats; returns how many. */
  uint32_t (*sieve)(const kith_sieve *sieve, uint32_t dim);
} kith_kernels;

/* The definition throughout, for tiles with an image; the coordinates must be exact. Any dimension. */
typedef struct kith_image_kernels {
  void (*degrees)(const kith_tile *tile, uint32_t *degrees);
  void (*fill)(const kith_tile *tile, kith_rows *rows);
} kith_image_kernels;

/* Several arrays to be copied alike, in whole cache lines: both sides have room for a line beyond their ends.
 */
typedef struct kith_copy {
  char *to;
  const char *from;
  size_t to_stride, from_stride; /* in bytes, from one array to the next */
  size_t bytes;                  /* of each array copied from */
  uint32_t arrays;
} kith_copy;

/* Index 0: any dimension; 1 to 8: that dimension. */
typedef struct kith_kernel_table {
  void (*copy)(const kith_copy *copy);
  /* From double to float, relative to an origin: array a becomes (float)(x - origin[a]). */
  void (*narrow)(const kith_copy *copy, const double *origin);
  /* to[i] = first + i, in whole cache lines. */
  void (*number)(uint32_t *to, uint32_t first, uint32_t n);
  /* Sorts the n different ids of a row, and what belongs to them unless d2 is NULL. O(n^2 / lanes): for few.
   * The copies have room for n, and for a cache line more. */
  void (*order)(uint32_t *ids, double *d2, uint32_t n, uint32_t *ids_copy, double *d2_copy);
  /* The smallest and the largest of n >= 1 values. */
  void (*bounds)(const float *values, uint32_t n, float *low, float *high);
  /* The columns of n points become the directions of their groups (space/directions.h), in whole cache lines.
   */
  void (*slant)(float *columns, size_t stride, uint32_t n, uint32_t dim);
  kith_kernels f32[KITH_KERNEL_DIMS + 1];
  kith_kernels f64[KITH_KERNEL_DIMS + 1];
  kith_kernels cutting[KITH_KERNEL_DIMS + 1]; /* the filter, for tiles with cuts in norm 2 */
  kith_image_kernels image_f32, image_f64;
} kith_kernel_table;

/* The kernels to use for an instruction set and a norm. */
const kith_kernel_table *kith_kernels_for(kith_isa_level isa, kith_norm norm);

/* By norm: 2, 1, max. */
extern const kith_kernel_table kith_kernels_scalar, kith_kernels_scalar_1, kith_kernels_scalar_max;
extern const kith_kernel_table kith_kernels_avx2, kith_kernels_avx2_1, kith_kernels_avx2_max;
extern const kith_kernel_table kith_kernels_avx512, kith_kernels_avx512_1, kith_kernels_avx512_max;

#endif
