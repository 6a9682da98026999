/* The interface between libkith and libkith_cuda.so, which is loaded when a GPU is first asked for.
 *
 * A session is one GPU of one context: its stream, its memory, its pinned buffers; it stays warm between calls.
 * A join is one join on that GPU: creating it moves the points there, looks at them, chooses a grid and builds
 * the index. All of it is plain C: neither side sees the other's language or allocator. Every function returns
 * a status and, on failure, a sentence in the error.
 *
 * May include kith.h, space and index/grid.h. engine/cuda/engine.c (in libkith) and the .cu files (in
 * libkith_cuda.so) include it. */
#ifndef KITH_ENGINE_CUDA_API_H
#define KITH_ENGINE_CUDA_API_H

#include "index/grid.h"
#include "kith.h"
#include "space/lattice.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KITH_CUDA_API_VERSION = 11 };

typedef struct kith_cuda_error {
  char text[512];
} kith_cuda_error;

typedef struct kith_cuda_session kith_cuda_session;
typedef struct kith_cuda_join kith_cuda_join;

/* Tells whether the call is to stop; asked while the GPU works. */
typedef struct kith_cuda_stop {
  int (*asked)(const void *user);
  const void *user;
} kith_cuda_stop;

typedef struct kith_cuda_spec {
  kith_points a, b; /* in host or device memory; the same view when a set is joined with itself */
  int one_set;
  int half;
  int drop_self;
  int sorted;
  int distances;
  int skip_invalid;
  uint32_t index_dims; /* 0: choose */
  double cell_side;    /* 0: choose */
  int brute;           /* all points with all */
  int no_reorder;      /* columns in the order of the input */
  int no_sortidu;      /* all with all: not ordered by norms of columns */
  int no_shortc;       /* distances are added up to the end */
  int shared;          /* with the CPU (for engine.c), */
  int gives_index;     /* which is to have the index from here (join_index) */
  int counts;          /* nothing but a total is asked for */
  kith_kernel kernel;
  kith_cells cells;           /* KITH_KERNEL_POINT */
  kith_order order;           /* likewise */
  uint32_t threads_per_query; /* likewise: a power of two, at most 32 */
  kith_predicate predicate;   /* with the largest limit, if there are many: */
  const double *limits;       /* in host memory, by row of a; NULL: all have the predicate's */
  kith_lattice lattice;       /* of a periodic box, which the points are moved into; n is 0: there is none */
  double doubt;               /* kith_lattice_doubt */
  kith_metric metric;         /* embedded ones: */
  int finds_places;           /* the points are as they were given, and become unit vectors on the device; */
  int sizes;                  /* distances are given as sizes, for the caller to convert */
  kith_cuda_stop stop;
} kith_cuda_spec;

/* What tiles of points that are joined all with all are ordered by: a sketch (index/sketch.h). */
typedef struct kith_cuda_tile_order {
  uint32_t split, groups;
  uint32_t columns[KITH_GRID_DIMS]; /* the first of them are split */
  double share;                     /* of the others that a tile meets, expected */
  bool coded;                       /* pairs are told apart by codes (codes.cuh) */
} kith_cuda_tile_order;

/* What creating a join found and did. */
typedef struct kith_cuda_info {
  uint64_t n_valid;      /* queries that take part */
  uint64_t invalid_rows; /* of both sets together */
  uint64_t cells;        /* of the grid of the candidates, non-empty */
  uint64_t index_bytes;  /* device memory held */
  kith_grid grid;
  const kith_stencil *stencil; /* until the join is destroyed */
  uint32_t runs;
  uint32_t tile_queries;        /* queries that share their candidates */
  int dense;                    /* all points are joined with all: there are no cells */
  kith_cuda_tile_order tiles;   /* then */
  double candidates, neighbors; /* per query, expected */
  double seconds_plan, seconds_index;
} kith_cuda_info;

typedef struct kith_cuda_tally {
  uint64_t pairs, tested, inside;
} kith_cuda_tally;

/* Rows [first_row, end_row) of the neighbour table, to host memory. */
typedef struct kith_cuda_rows {
  uint64_t first_row, end_row;
  uint32_t *neighbors;
  double *distances; /* NULL: not wanted */
} kith_cuda_rows;

/* An index as the CPU has it (index/index.h), and where it goes, in host memory: dim arrays of coordinates that
 * begin `stride` values apart, and the others. */
typedef struct kith_cuda_index_size {
  uint32_t n, cells, rows;
  int is_f64; /* the coordinates: if one of the sets is, on the device, where points of a box may have been
                 moved */
} kith_cuda_index_size;

typedef struct kith_cuda_index {
  void *coords;
  uint64_t stride;
  uint32_t *ids, *cell_x, *cell_start, *row_cell;
  uint64_t *row_number;
} kith_cuda_index;

/* A part of the queries, where other engines have the rest: whole blocks of them. */
typedef enum kith_cuda_task {
  KITH_CUDA_COUNT,
  KITH_CUDA_DEGREES,
  KITH_CUDA_COLLECT,
  KITH_CUDA_FILL
} kith_cuda_task;

enum { KITH_CUDA_LANES = 2 }; /* batches at the same time: one computes while another one's rows are moved */

/* Where rows are collected: take(user, n) gives the place of n ids, or UINT64_MAX if there is no room left. */
typedef struct kith_cuda_pool {
  uint32_t *ids;
  uint64_t (*take)(void *user, uint64_t n);
  void *user;
} kith_cuda_pool;

typedef struct kith_cuda_batch {
  kith_cuda_task task;
  uint32_t lane; /* no two batches of one lane at the same time */
  int one_sided; /* KITH_CUDA_COUNT: pairs from the side of the query; else each once, by who comes first */
  const uint32_t *blocks;
  uint32_t n_blocks;
  uint64_t *degrees;   /* KITH_CUDA_DEGREES: by id, in host memory; COLLECT: place in the pool << 32 | degree */
  kith_cuda_pool pool; /* KITH_CUDA_COLLECT; not in a periodic box */
  uint64_t first_row, end_row; /* KITH_CUDA_FILL: the rows of this window only; */
  const uint64_t *offsets;     /* that of id begins at neighbors[offsets[id - first_row] - offsets[0]]. */
  uint64_t run;                /* Another number than before, if these are other offsets than before */
  uint32_t *neighbors;
  double *distances; /* NULL: not wanted */
} kith_cuda_batch;

/* When a batch did what, in seconds since it began. */
typedef struct kith_cuda_times {
  double computed, transferred;
} kith_cuda_times;

typedef struct kith_cuda_api {
  uint32_t version;
  /* GPUs that could be used. */
  kith_status (*device_count)(uint32_t *count, kith_cuda_error *error);
  kith_status (*device_describe)(uint32_t device, char *text, size_t size, kith_cuda_error *error);
  /* memory_bytes: device memory that may be used; 0: what is free. threads: for copies to and from the host. */
  kith_status (*session_create)(uint32_t device, uint64_t memory_bytes, uint32_t threads,
                                kith_cuda_session **out, kith_cuda_error *error);
  void (*session_destroy)(kith_cuda_session *session);

  kith_status (*join_create)(kith_cuda_session *session, const kith_cuda_spec *spec, kith_cuda_join **out,
                             kith_cuda_info *info, kith_cuda_error *error);
  void (*join_destroy)(kith_cuda_join *join);
  /* Pairs with (i, i) and in both orders, whatever half and drop_self say. */
  kith_status (*join_count)(kith_cuda_join *join, kith_cuda_tally *tally, kith_cuda_error *error);
  /* The pairs of every row, or (n + 1 numbers) where the rows begin; to host memory. */
  kith_status (*join_degrees)(kith_cuda_join *join, uint64_t *degrees, kith_cuda_tally *tally,
                              kith_cuda_error *error);
  kith_status (*join_offsets)(kith_cuda_join *join, uint64_t *offsets, kith_cuda_tally *tally,
                              kith_cuda_error *error);
  /* For joins that are shared with other engines. Cuts the queries into blocks; then gives, for n blocks,
   * begin[n + 1] positions and the ids of all positions: the arrays must stay. The GPU goes on to weigh the
   * blocks, and the candidates of each are there after so many seconds, about. Pairs with (i, i) and in both
   * orders for KITH_CUDA_COUNT. */
  kith_status (*join_cut)(kith_cuda_join *join, uint32_t *n, kith_cuda_error *error);
  kith_status (*join_blocks)(kith_cuda_join *join, uint32_t *begin, uint32_t *ids, double *weigh_seconds,
                             kith_cuda_error *error);
  kith_status (*join_weights)(kith_cuda_join *join, uint64_t *candidates, kith_cuda_error *error);
  /* The index of the candidates, else of the queries (of one set they are the same), if it is to be given;
   * once, after join_blocks: how large it is, then the index. The GPU goes on meanwhile, but for batches that
   * move rows. */
  kith_status (*join_index_size)(kith_cuda_join *join, int candidates, kith_cuda_index_size *size,
                                 kith_cuda_error *error);
  kith_status (*join_index)(kith_cuda_join *join, int candidates, const kith_cuda_index *to,
                            kith_cuda_error *error);
  kith_status (*join_batch)(kith_cuda_join *join, const kith_cuda_batch *batch, kith_cuda_tally *tally,
                            kith_cuda_times *times, kith_cuda_error *error);
  /* After join_offsets. */
  kith_status (*join_fill)(kith_cuda_join *join, const kith_cuda_rows *rows, kith_cuda_error *error);
  /* The whole table in device memory, which then belongs to the caller: release with device_free. */
  kith_status (*join_table)(kith_cuda_join *join, kith_table *table, kith_cuda_tally *tally,
                            kith_cuda_error *error);
  void (*device_free)(uint32_t device, const void *memory);
  /* Host points, packed in C order in device memory: release with device_free. */
  kith_status (*upload)(kith_cuda_session *session, const kith_points *points, void **copy,
                        kith_cuda_error *error);
  kith_status (*download)(kith_cuda_session *session, void *to, const void *from, uint64_t bytes,
                          kith_cuda_error *error);
} kith_cuda_api;

/* The one symbol of libkith_cuda.so. */
KITH_API const kith_cuda_api *kith_cuda_api_get(void);

#ifdef __cplusplus
}
#endif
#endif
