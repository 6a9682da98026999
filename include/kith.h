/* kith: exactly which points are near which, at the speed of the hardware.
 *
 * Read this header from top to bottom; it is the manual of the library.
 *
 *   1. Status and context    how calls report, how much they may use, how they are cancelled
 *   2. Points                a view of your array, or of a file
 *   3. The join              options, then the simple calls: count, degrees, neighbour table
 *   4. Streaming             results larger than memory: a callback, or a file
 *   5. The plan              what would run, how large the result would be, before it runs
 *   6. The machine           engines and instruction sets
 *
 * A first program:
 *
 *     kith_context *ctx;
 *     kith_context_create(NULL, &ctx);
 *     kith_points p = kith_points_f32(xy, n, 2);            // n rows of (x, y)
 *     kith_join_options opt = kith_join_options_init(0.01); // eps
 *     uint64_t pairs;
 *     if (kith_join_count(ctx, &p, NULL, &opt, &pairs) != KITH_OK)
 *       fprintf(stderr, "%s\n", kith_message(ctx));
 *     kith_context_destroy(ctx);
 *
 * What "exact" means. A pair (a, b) belongs to the result if and only if D2 <= eps * eps, where
 *     D2 = sum over the dimensions, in input order, of t * t,  t = (double)a - (double)b,
 * with every operation rounded to double and none fused (other metrics: section 3). That is what a plain loop
 * in double computes, so anybody can check us. Every engine, instruction set, thread count and batch size gives
 * the same set.
 *
 * Rules that hold for every call. Inputs are borrowed for the duration of the call and never changed.
 * Functions that can fail return a kith_status; the sentence for a person is then in kith_message(). The
 * library never prints, exits or aborts. Every *_destroy accepts NULL. Counts and offsets are 64-bit; ids
 * are row numbers of the input, 32-bit, so a set holds at most 2^32 - 1 points.
 *
 * Threads. A context serves one call at a time; use one per thread. kith_cancel() may be called from any
 * thread and from a signal handler.
 */
#ifndef KITH_H
#define KITH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KITH_VERSION_MAJOR 0
#define KITH_VERSION_MINOR 1
#define KITH_VERSION_PATCH 0
#define KITH_VERSION "0.1.0"

#if defined(__GNUC__)
#define KITH_API __attribute__((visibility("default")))
#else
#define KITH_API
#endif

/* The version of the library that runs, as "0.1.0"; KITH_VERSION is that of the header. */
KITH_API const char *kith_version(void);

/* ---------------------------------------------------------------------------------------------------------
 * 1. Status and context
 * ------------------------------------------------------------------------------------------------------ */

/* What a call returns. The values are pinned: they never change between versions. */
typedef enum kith_status {
  KITH_OK = 0,
  KITH_ERR_ARGUMENT = 1,    /* an argument is out of its range */
  KITH_ERR_MEMORY = 2,      /* the system refused an allocation */
  KITH_ERR_BUDGET = 3,      /* the work or its result does not fit the memory allowed */
  KITH_ERR_IO = 4,          /* a file could not be opened, read or written */
  KITH_ERR_FORMAT = 5,      /* a file is not what it claims to be */
  KITH_ERR_POINTS = 6,      /* a coordinate is NaN or infinite */
  KITH_ERR_CANCELLED = 7,   /* kith_cancel() or a callback asked to stop */
  KITH_ERR_UNSUPPORTED = 8, /* this build or machine cannot do it */
} kith_status;

/* The name of a status, such as "KITH_ERR_BUDGET"; never NULL. */
KITH_API const char *kith_status_name(kith_status status);

typedef struct kith_context kith_context;

/* How far a call has come; given to the progress callback. */
typedef struct kith_progress {
  const char *stage; /* "index", "count" or "join" */
  double fraction;   /* of the whole call, 0 to 1, never falling */
  uint64_t pairs;    /* found so far in this stage */
  double seconds;    /* since the call began */
  double resumed;    /* what of the fraction earlier calls did, and a checkpoint kept */
} kith_progress;

/* Called on the thread that made the call, about ten times a second. Return 0 to go on, anything else to
 * stop: the call then cleans up and returns KITH_ERR_CANCELLED. */
typedef int (*kith_progress_fn)(void *user, const kith_progress *progress);

typedef struct kith_context_options {
  size_t struct_size;    /* sizeof(kith_context_options), set by the init function */
  uint32_t threads;      /* 0: all cores this process may use */
  uint64_t memory_bytes; /* budget for everything but your arrays, mapped files and a result asked for in
                            memory; 0: 60 % of the memory that is free when the context is created */
  const char *engine;    /* NULL or "auto", "cpu", "cuda", or "hybrid": CPU and GPU on one join */
  const char *isa;       /* NULL: environment variable KITH_ISA, else the best; "scalar", "avx2", "avx512" */
  kith_progress_fn progress;
  void *progress_user;
  uint32_t device;              /* which GPU, from 0 */
  uint64_t device_memory_bytes; /* of its memory that may be used; 0: what is free when it is first used */
  const char *devices;          /* several GPUs on one join: "all", or numbers as in "0,1"; NULL: `device` */
} kith_context_options;

KITH_API kith_context_options kith_context_options_init(void);

/* Creates a context; options may be NULL. On failure *out is NULL, except for options that cannot be followed
 * (KITH_ERR_ARGUMENT, KITH_ERR_UNSUPPORTED), where *out holds only the message and must be destroyed. */
KITH_API kith_status kith_context_create(const kith_context_options *options, kith_context **out);
KITH_API void kith_context_destroy(kith_context *ctx);

/* One sentence on the last failure, for a person; "" if there was none. Valid until the next call on ctx. A
 * call without a context (NULL) returns KITH_ERR_ARGUMENT, and the sentence for NULL says so. */
KITH_API const char *kith_message(const kith_context *ctx);

/* Asks the running call (or the next one) to stop; it returns KITH_ERR_CANCELLED, normally within a second.
 * Safe in signal handlers. The request is spent when a call has returned KITH_ERR_CANCELLED. */
KITH_API void kith_cancel(kith_context *ctx);

/* The most bytes that the library held at once in the last call on ctx: results and files that had to be parsed
 * or converted are included, your arrays and mapped files are not. */
KITH_API uint64_t kith_peak_bytes(const kith_context *ctx);

/* The instruction set in use ("scalar", "avx2" or "avx512"), and the number of threads. */
KITH_API const char *kith_isa(const kith_context *ctx);
KITH_API uint32_t kith_threads(const kith_context *ctx);

/* ---------------------------------------------------------------------------------------------------------
 * 2. Points
 * ------------------------------------------------------------------------------------------------------ */

typedef enum kith_dtype { KITH_F32 = 1, KITH_F64 = 2 } kith_dtype;

/* A view of n points of dim coordinates that live elsewhere. Coordinate c of point i is at
 * data + i * row_stride + c * col_stride (bytes, may be negative). The value must be aligned for its type. */
typedef struct kith_points {
  const void *data;
  uint64_t n;
  uint32_t dim;
  kith_dtype dtype;
  int64_t row_stride;
  int64_t col_stride;
  uint32_t device; /* 0: data is in host memory; 1 + i: in the memory of CUDA device i (section 6) */
} kith_points;

/* Views of contiguous rows: n x dim, C order. */
KITH_API kith_points kith_points_f32(const float *data, uint64_t n, uint32_t dim);
KITH_API kith_points kith_points_f64(const double *data, uint64_t n, uint32_t dim);

/* A file of points, open. npy and fbin files of native type are mapped, not read: they must not be truncated
 * while they are open. Close a file before its context is destroyed. */
typedef struct kith_file kith_file;

typedef struct kith_file_options {
  size_t struct_size;
  const char *columns; /* NULL: all. "ra,dec" (names, from a header) or "0,3" (numbers from 0) */
  const char *format;  /* NULL: from the name's ending. "npy", "text", "fbin", "gro", "xyz", "hdf5" or "fits" */
} kith_file_options;

KITH_API kith_file_options kith_file_options_init(void);

/* Opens .npy (versions 1 to 3; f4, f8 and integers that convert exactly; C or Fortran order; both byte
 * orders), .csv .tsv .txt (optional header line), .fbin (int32 n, int32 dim, float32 rows), or "-" for text
 * on standard input. options may be NULL. Integers that float64 cannot hold exactly are refused.
 *
 * These hold more than one set of points, and the name chooses: .gro and .xyz .extxyz "traj.gro[3]", a frame
 * counted from 0 ("[-1]": the last; none: the first); .h5 .hdf5 .he5 .nc4 "file.h5:/group/data", a dataset of
 * n x dim numbers or of records, or a group of columns; .fits .fit .fts "file.fits[1]" or "[NAME]", a binary
 * table (none: the first). A file whose name is the whole text wins. HDF5 and FITS are read by their own
 * libraries, if the build has them, under a lock of kith's own: a program that uses HDF5 in other threads
 * meanwhile needs an HDF5 built to be thread-safe. */
KITH_API kith_status kith_file_open(kith_context *ctx, const char *path, const kith_file_options *options,
                                    kith_file **out);
KITH_API void kith_file_close(kith_file *file);

/* The points of an open file: valid until it is closed. */
KITH_API const kith_points *kith_file_points(const kith_file *file);

/* The name of column c as the file's header gives it, or NULL where there is none. */
KITH_API const char *kith_file_column(const kith_file *file, uint32_t c);

/* The box of a periodic system, where the file gives one (.gro, .xyz): returns how many numbers it wrote. 0: no
 * box; 3: the edges of a box along x, y and z; 9: the lattice vectors a, b and c, one behind the other. An edge
 * or a vector of zeros means that the system is not periodic that way. The box is in the units of the file, and
 * is that of x, y and z whatever columns are chosen. */
KITH_API int kith_file_box(const kith_file *file, double box[9]);

/* The formats that this build reads, with blanks between: "npy text fbin gro xyz", and "hdf5" and "fits". */
KITH_API const char *kith_file_formats(void);

/* The path as given to kith_file_open, and whether the data is mapped rather than held in memory. */
KITH_API const char *kith_file_path(const kith_file *file);
KITH_API int kith_file_is_mapped(const kith_file *file);

/* Statistics of one column over the valid rows. */
typedef struct kith_column_stats {
  double min, max, mean, variance; /* population variance */
} kith_column_stats;

/* Fills stats[dim] and the number of rows with a NaN or an infinity; either pointer may be NULL. Without a
 * valid row, min is +inf, max is -inf, and mean and variance are NaN. */
KITH_API kith_status kith_points_stats(kith_context *ctx, const kith_points *points, kith_column_stats *stats,
                                       uint64_t *invalid_rows);

/* ---------------------------------------------------------------------------------------------------------
 * 3. The join: which pairs lie within eps
 * ------------------------------------------------------------------------------------------------------ */

/* Kernels of the CUDA engine, for experiments: the result does not depend on them, and the CPU refuses them.
 *
 * KITH_KERNEL_TILE is the engine's own, and what AUTO takes. KITH_KERNEL_POINT is the one of the literature
 * (GPUCALCGLOBAL and LBJoin): every query on its own, one thread or a few, in a grid of cells of side eps over
 * at most 6 dimensions. Its rows are always sorted. These belong to it: */
typedef enum kith_kernel { KITH_KERNEL_AUTO = 0, KITH_KERNEL_TILE = 1, KITH_KERNEL_POINT = 2 } kith_kernel;

/* Which cells around its own a query looks at: all of them, or those that make every two cells meet once: by
 * odd coordinates (UNICOMP) or by larger number (LID-UNICOMP). The latter two are for one set only. */
typedef enum kith_cells { KITH_CELLS_FULL = 0, KITH_CELLS_UNICOMP = 1, KITH_CELLS_LID_UNICOMP = 2 } kith_cells;

/* The order of the queries: by id; by the number of their candidates, most first (SORTBYWL); the same, but
 * taken one by one from a queue, so that they surely run in this order (WORKQUEUE). */
typedef enum kith_order { KITH_ORDER_INPUT = 0, KITH_ORDER_WORKLOAD = 1, KITH_ORDER_QUEUE = 2 } kith_order;

/* What distance means (docs/exactness.md has every definition to the last bit).
 *
 *   KITH_EUCLIDEAN   the root of the sum of squares
 *   KITH_MANHATTAN   the sum of the absolute differences
 *   KITH_CHEBYSHEV   the largest absolute difference
 *   KITH_COSINE      1 - the cosine of the angle between two vectors: 0 to 2
 *   KITH_ANGULAR     that angle, in degrees: 0 to 180
 *   KITH_HAVERSINE   the great-circle distance of two places (longitude, latitude in degrees), in degrees of
 * arc, or on a sphere of the given radius in its unit
 *
 * A row of zeros has no direction, and a latitude beyond the poles is no place: cosine, angular and haversine
 * take such rows for invalid ones. */
typedef enum kith_metric {
  KITH_EUCLIDEAN = 0,
  KITH_MANHATTAN = 1,
  KITH_CHEBYSHEV = 2,
  KITH_COSINE = 3,
  KITH_ANGULAR = 4,
  KITH_HAVERSINE = 5,
} kith_metric;

/* How pairs are found. The result does not depend on it, except for the order of rows that are not sorted.
 *
 *   KITH_ALGORITHM_AUTO   what is expected to cost least, these or all with all
 *   KITH_ALGORITHM_GRID   cells in some dimensions, and for each row of cells the rows around it
 *   KITH_ALGORITHM_EGO    Super-EGO: points in epsilon grid order, joined by halving sequences of them. On the
 *                         CPU only, and without periodic boxes */
typedef enum kith_algorithm {
  KITH_ALGORITHM_AUTO = 0,
  KITH_ALGORITHM_GRID = 1,
  KITH_ALGORITHM_EGO = 2,
} kith_algorithm;

/* How engines share a join. */
typedef enum kith_partition {
  KITH_PARTITION_DYNAMIC,    /* on demand */
  KITH_PARTITION_QUERIES,    /* a fixed part of the queries to each, by what is known of their speed */
  KITH_PARTITION_CANDIDATES, /* a fixed part of the candidates, likewise */
} kith_partition;

/* a: the queries. b: the candidates, or NULL to join a with itself (passing a twice is a join of two sets). The
 * two may differ in dtype, not in dim.
 *
 * Joining a set with itself gives ordered pairs: (i, j) and (j, i) both, and no (i, i). Two sets give all
 * pairs (i of a, j of b). Fields left 0 mean "automatic". */
typedef struct kith_join_options {
  size_t struct_size;
  double eps;          /* the distance, inclusive; finite and >= 0 */
  int self_pairs;      /* 1: (i, i) too; one set only */
  int half;            /* 1: only i < j; one set only, excludes self_pairs */
  int sorted;          /* 1: neighbours of a row by id; 0: in index order, the same for the same input on
                          one engine */
  int distances;       /* 1: the distance with every neighbour */
  int skip_invalid;    /* 1: rows with NaN or infinity, and others without a place in the space, have no
                          neighbours;    0: they are refused */
  uint64_t batch_rows; /* streaming: at most so many rows a batch */
  /* How to index; for experiments. The result does not depend on them. */
  uint32_t index_dims; /* dimensions in the grid, at most 8 */
  double cell_side;    /* side of the cells across the rows of cells, in units of eps: 0.25 to 64 */
  int on_device;       /* 1: kith_join_table leaves the table in the memory of the GPU (section 6) */
  /* CUDA engine only, for experiments. */
  kith_kernel kernel;
  kith_cells cells;           /* KITH_KERNEL_POINT */
  kith_order order;           /* likewise */
  uint32_t threads_per_query; /* likewise: 1, 2, 4, 8, 16 or 32; 0 is 1 */
  /* The space. */
  kith_metric metric;
  double radius; /* KITH_HAVERSINE: of the sphere; eps and distances are in its unit. 0: they are in degrees */
  /* KITH_EUCLIDEAN: a periodic box of n_box values, or NULL and 0. dim lengths, or in three dimensions 6 values
   * (lengths, and angles in degrees) or 9 (vectors, row by row). A length or a vector of 0 leaves its axis
   * open. eps is at most half of the smallest height. Vectors that are not lower triangular are turned, and the
   * points with them, which rounds: choose eps between the distances of a perfect crystal. */
  const double *box;
  uint32_t n_box;
  const double *eps_of; /* a->n values, or NULL: (i, j) belongs iff their distance is at most eps_of[i]; eps is
                           then not used, and half keeps the pairs i < j with a distance of at most eps_of[i] */
  /* For experiments: how points of many dimensions are joined. */
  int brute;      /* 1: all with all; ordered by index_dims columns if that is given */
  int no_reorder; /* 1: columns in the order of the input, not by variance (REORDER) */
  int no_sortidu; /* 1: do not order points by what is not indexed (SORTIDU) */
  int no_shortc;  /* 1: add up all columns, even if a pair is surely too far apart (SHORTC) */
  /* Several engines on one join. */
  kith_partition partition;
  const char *trace; /* a file to write what ran when to, for chrome://tracing or Perfetto; NULL: none */
  kith_algorithm algorithm;
  /* kith_join_write of neighbours and pairs (section 4); other calls do not look at them. */
  const char *checkpoint;    /* a folder in which the work is recorded, or NULL */
  double checkpoint_seconds; /* about how often; 0: every 5 */
} kith_join_options;

KITH_API kith_join_options kith_join_options_init(double eps);

/* What one engine did in a join that several share, all passes over the queries together: a neighbour table
 * takes two, one to count and one to fill, unless its rows are collected in one. Candidates are those in the
 * cells around its queries; where each pair of one set is looked at once, only those that come after them. */
typedef struct kith_engine_report {
  char name[16]; /* "cpu", "cuda 0" */
  uint64_t batches, queries, candidates, pairs;
  double busy_seconds;
  char failure[256]; /* why it gave up, its work left to the others; "": it did not */
} kith_engine_report;

enum { KITH_MAX_ENGINES = 16 };

/* What a join did. */
typedef struct kith_join_report {
  size_t struct_size;
  uint64_t pairs;        /* in the result */
  uint64_t tested;       /* pairs whose distance was computed */
  uint64_t inside;       /* pairs accepted untested: their cells lie wholly within eps */
  uint64_t invalid_rows; /* rows left out, both sets together (skip_invalid) */
  uint64_t cells;        /* non-empty cells of the candidates' grid; panels, if all are joined with all */
  uint32_t index_dims;   /* dimensions in the grid */
  double cell_side;      /* in units of the data */
  uint64_t batches;      /* 1 unless streamed */
  double seconds_plan;   /* looking at the data, choosing the grid */
  double seconds_index;  /* sorting the points into cells */
  double seconds_join;   /* finding pairs */
  double seconds_write;  /* waiting for the sink: callback or file */
  uint64_t peak_bytes;   /* as kith_peak_bytes() */
  const char *engine;    /* what ran it: "cpu", "cuda" or "hybrid" */
  uint32_t n_engines;    /* that shared it; 0: it was not shared */
  kith_engine_report engines[KITH_MAX_ENGINES];
  double imbalance;      /* |t_gpu - t_cpu| / T: how far apart GPUs and CPU were done, as a part of the time */
  const char *algorithm; /* and how: "grid", "ego" or "brute" (all with all) */
  uint64_t resumed_rows; /* of the result, taken over from a checkpoint; tested and inside are without them */
  uint64_t resumed_pairs;
  int checkpoint_damaged; /* 1: there was one that could not be used, and the join began anew */
} kith_join_report;

KITH_API kith_join_report kith_join_report_init(void);

/* The number of pairs. report may be NULL, here and below. */
KITH_API kith_status kith_join_count(kith_context *ctx, const kith_points *a, const kith_points *b,
                                     const kith_join_options *options, uint64_t *pairs,
                                     kith_join_report *report);

/* degrees[i]: the number of pairs (i, .). The caller gives room for a->n numbers. */
KITH_API kith_status kith_join_degrees(kith_context *ctx, const kith_points *a, const kith_points *b,
                                       const kith_join_options *options, uint64_t *degrees,
                                       kith_join_report *report);

/* A neighbour table in memory (CSR): the neighbours of row i are
 * neighbors[offsets[i]] ... neighbors[offsets[i + 1] - 1]. */
typedef struct kith_table {
  uint64_t n_rows;
  uint64_t n_pairs;
  const uint64_t *offsets;   /* n_rows + 1 */
  const uint32_t *neighbors; /* n_pairs */
  const double *distances;   /* n_pairs, or NULL */
  uint32_t device;           /* 0: the arrays are in host memory; 1 + i: in that of CUDA device i */
} kith_table;

/* Builds the table. It is refused with KITH_ERR_BUDGET before the pairs are sought if its estimate (then its
 * exact size) does not fit what memory is free: stream it instead. The table outlives ctx. Pages of large
 * tables that were destroyed stay with the process for the next one until the system wants them (MADV_FREE). */
KITH_API kith_status kith_join_table(kith_context *ctx, const kith_points *a, const kith_points *b,
                                     const kith_join_options *options, kith_table **out,
                                     kith_join_report *report);
KITH_API void kith_table_destroy(kith_table *table);

/* ---------------------------------------------------------------------------------------------------------
 * 4. Streaming: results larger than memory
 * ------------------------------------------------------------------------------------------------------ */

/* Some consecutive rows of the neighbour table: the neighbours of row first_row + r are
 * neighbors[offsets[r]] ... neighbors[offsets[r + 1] - 1]; offsets[0] is 0. */
typedef struct kith_batch {
  uint64_t first_row;
  uint64_t n_rows;
  const uint64_t *offsets;
  const uint32_t *neighbors;
  const double *distances; /* NULL unless asked for */
} kith_batch;

/* Takes one batch; the arrays are valid until it returns. Return 0 to go on, anything else to stop
 * (KITH_ERR_CANCELLED). Batches come in row order, one at a time, not always on the thread of the caller. */
typedef int (*kith_batch_fn)(void *user, const kith_batch *batch);

/* Gives the whole neighbour table to a callback, batch by batch, within the memory budget. */
KITH_API kith_status kith_join_stream(kith_context *ctx, const kith_points *a, const kith_points *b,
                                      const kith_join_options *options, kith_batch_fn take, void *user,
                                      kith_join_report *report);

typedef enum kith_what { KITH_COUNT = 0, KITH_DEGREES = 1, KITH_NEIGHBORS = 2, KITH_PAIRS = 3 } kith_what;

/* Writes a result to a file, within the memory budget.
 *   KITH_DEGREES    .npy   int64 (n)
 *   KITH_NEIGHBORS  .npz   what scipy.sparse.load_npz opens; the data are ones (int32), or the distances
 *   KITH_PAIRS      .npy   (pairs, 2) integers, or with distances (pairs, 3) float64
 *                   .csv .tsv .txt, or "-": lines "i,j" or "i,j,distance" (tabs or blanks for .tsv, .txt);
 *                   .csv and .tsv begin with a line of names
 * The file appears under its name only when it is complete; failure leaves nothing behind.
 *
 * Unless there is a checkpoint: a folder, made if it is not there, in which finished batches are recorded.
 * Should the call fail, or the process be killed at any moment, the same call goes on from there, and the file
 * has the same bytes as that of a call that was never disturbed (on a GPU: if it is `sorted`). The same call:
 * the same points, result, file and version of kith; threads, memory and batches may differ. Another one is
 * refused with KITH_ERR_ARGUMENT, and while a process is at work in the folder, others are refused with
 * KITH_ERR_IO. In the end the record is removed, and the folder if it was made. Until then the unfinished file
 * lies beside its target as .NAME.XXXXXX.part. Only for regular files, and points in host memory. */
KITH_API kith_status kith_join_write(kith_context *ctx, const kith_points *a, const kith_points *b,
                                     const kith_join_options *options, kith_what what, const char *path,
                                     kith_join_report *report);

/* ---------------------------------------------------------------------------------------------------------
 * 5. The plan: what would run
 * ------------------------------------------------------------------------------------------------------ */

typedef struct kith_plan {
  size_t struct_size;
  uint64_t n_queries, n_candidates; /* points on each side */
  uint32_t dim;
  uint32_t index_dims;
  uint32_t
      dims[8]; /* the indexed dimensions; dims[0] runs along the rows of cells; "ego": the highest first. In
                  the Manhattan metric they may be directions: sums and differences of columns (below) */
  double cell_side;   /* across the rows of cells, in units of the data */
  double cell_width;  /* along them */
  uint64_t cells;     /* non-empty; 0: no grid, dims[] only order the points */
  uint64_t rows;      /* non-empty rows of cells; 0: "ego" */
  uint32_t runs;      /* neighbour rows looked at per row; 0: "ego" */
  const char *kernel; /* "filter" (float32, doubtful pairs in double), "panels" (the same, all with all),
                         "tensor", "codes" and "marks" (half precision, bits or bytes, on a GPU, all with all),
                         "double", or "everything" */
  const char *engine, *isa;
  uint32_t threads;
  double pairs, pairs_error; /* sampled estimate and its standard error; the error is 0 when counted */
  double candidates;         /* pairs to test, estimated */
  double inside;             /* pairs to accept untested, estimated */
  double seconds;            /* estimated time, index included, on this machine with these threads */
  uint64_t index_bytes;      /* memory for the index */
  uint64_t work_bytes;       /* memory beyond it: buffers, offsets */
  uint64_t result_bytes;     /* estimated size of the result, in memory or as a file */
  uint64_t budget_bytes;     /* what may be used */
  uint64_t batches;          /* estimated */
  int fits;                  /* 0: it would be refused */
  char why[1024];            /* the reasons, as sentences, one a line */
  /* Of a neighbour table in host memory, if the machine was calibrated (section 6); else 0. */
  double seconds_cpu, seconds_cuda, seconds_hybrid;
  double share_cuda;     /* of the candidates, if both share it */
  const char *algorithm; /* "grid", "ego" or "brute" (all with all) */
  /* 1: dims[] are directions. Columns 0 to 3 have the directions 0 to 3: they are added up with the signs ++++,
   * +-+-, ++-- and +--+; so have 4 to 7, if there are so many, else ++, +- and +. */
  int directions;
} kith_plan;

KITH_API kith_plan kith_plan_init(void);

/* Plans a join without running it: builds the index and runs a sample of the queries. streamed: 1 if the
 * result would go to a file or a callback, 0 if into memory. A plan that does not fit is still a success;
 * fits is then 0. */
KITH_API kith_status kith_plan_join(kith_context *ctx, const kith_points *a, const kith_points *b,
                                    const kith_join_options *options, kith_what what, int streamed,
                                    kith_plan *plan);

/* ---------------------------------------------------------------------------------------------------------
 * 6. The machine
 * ------------------------------------------------------------------------------------------------------ */

/* Engines. "cpu" runs everywhere. "cuda" runs on an NVIDIA GPU and needs libkith_cuda.so, which is looked for
 * beside libkith or the program, in ../lib from there, then where the system looks; the environment variable
 * KITH_CUDA_LIBRARY names it outright. "auto" takes the GPU if points are in its memory already; for a million
 * points and more, and for fewer in many dimensions; and, once the context has used the GPU, or has spent
 * longer on short joins than waking it up takes (0.3 s), for 10,000 points and more. Otherwise, and wherever
 * the GPU cannot do it, it takes the CPU.
 *
 * Device memory. Points whose `device` is 1 + i are read from the memory of CUDA device i, which must be the
 * context's: what cudaMalloc gave, on the legacy default stream or synchronised before the call. With on_device
 * set, the arrays of a table stay there as well: pass them to your own kernels, and release the table as usual.
 * Rows in device memory are complete when the call returns. */

typedef struct kith_device {
  const char *name;      /* "cpu" or "cuda" */
  int usable;            /* 0: the description says why not */
  char description[256]; /* model, cores, instruction sets */
} kith_device;

/* Describes engine number i (from 0); KITH_ERR_ARGUMENT past the last one. */
KITH_API kith_status kith_device_describe(uint32_t i, kith_device *device);

/* How long a reference join (a neighbour table of so many points and pairs) takes an engine. */
typedef struct kith_speed {
  char engine[16];
  uint32_t dim;
  uint64_t points, pairs;
  double seconds;
} kith_speed;

enum { KITH_MAX_SPEEDS = 16 };
typedef struct kith_speeds {
  uint32_t n;
  kith_speed list[KITH_MAX_SPEEDS];
} kith_speeds;

/* Measures the engines of this machine, with the threads of ctx, in a few seconds, and keeps what it found in
 * the user's cache ($KITH_SPEEDS, $XDG_CACHE_HOME/kith/speeds.txt or ~/.cache/kith/speeds.txt): plans then say
 * what each engine would take, and engines that share a join know each other's speed from the start. out may be
 * NULL. */
KITH_API kith_status kith_calibrate(kith_context *ctx, kith_speeds *out);

/* For programs without CUDA code of their own: a copy of host points in the memory of the context's GPU, and
 * bytes of such memory (a table, say) back. Release the copy with kith_points_release. */
KITH_API kith_status kith_points_upload(kith_context *ctx, const kith_points *points, kith_points *copy);
KITH_API void kith_points_release(kith_points *copy);
KITH_API kith_status kith_device_read(kith_context *ctx, const void *device_memory, void *host, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif /* KITH_H */
