/* A lane: one thread's view of a join, and the buffers it stages tiles in.
 *
 * A lane walks a range of query positions. It cuts it into tiles of up to 64 queries; the candidates of a tile
 * are runs of consecutive positions. Tiles and runs are found in the rows of a grid (grid.h) or in epsilon grid
 * order (ego.h); all else is the same. */
#ifndef KITH_ENGINE_CPU_LANE_H
#define KITH_ENGINE_CPU_LANE_H

#include "engine/cpu/kernels.h"
#include "engine/engine.h"

/* The queries of a tile. */
typedef struct kith_query_tile {
  uint32_t begin, end;      /* positions covered; with a window of ids not all of them are queries */
  uint32_t x_first, x_last; /* cells covered */
  uint32_t positions[KITH_TILE_QUERIES];
  uint32_t ids[KITH_TILE_QUERIES];
} kith_query_tile;

/* Candidates of a tile: positions, and within them those that surely belong. */
typedef struct kith_run {
  uint32_t begin, end;
  uint32_t inside_begin, inside_end; /* empty: begin == end */
  uint32_t inside_cells;             /* that those are in */
} kith_run;

struct kith_grid_walk;
struct kith_ego_walk;

/* A periodic box (periodic.h). */
typedef struct kith_periodic {
  bool one_pass;         /* tiles meet all images at once (around.h), */
  bool around;           /* and this one some beyond the faces of the box */
  bool ties;             /* eps is so close to half of the box that a pair may have two images within it */
  kith_image image;      /* the images that the tile is tested against */
  kith_lattice unfolded; /* of the task's lattice, the axes along which there are images to turn to, */
  kith_shift turned;     /* the vector of it that the tile is turned to, */
  double *shift;         /* and the same per dimension */
  double *near_box;   /* around the queries that say which candidates are looked up (box_runs.h): low, high */
  kith_cuts cuts;     /* of the tile */
  double fold_spread; /* how far the filter's queries are from their origin along folded axes, in any tile */
} kith_periodic;

typedef struct kith_lane {
  const kith_task *task;
  bool orders;    /* candidates are put in id order before they are tested */
  bool lists;     /* pairs are listed, by position */
  bool needs_ids; /* of the candidates: rows are filled, or pairs admitted by id */

  /* The kernels. */
  const kith_kernel_table *table;
  const kith_kernels *plain_kernels;   /* for float coordinates, */
  const kith_kernels *cutting_kernels; /* and if the tile has cuts for fours of its queries: */
  const kith_kernels *filter_kernels;  /* those of the tile */
  const kith_kernels *exact_kernels;   /* for coordinates of the index */
  const kith_image_kernels *image_kernels;

  /* The tile, and how it is tested. */
  kith_tile tile; /* what the kernels see; points into the buffers below */
  kith_query_tile queries;
  bool may_filter;          /* the operation and eps allow the float32 filter */
  bool filter;              /* the tile is tested by it */
  kith_predicate predicate; /* the task's, with the band of the tile */
  double least;             /* the smallest limit of the tile's queries */
  double index_spread;      /* how far from the origin coordinates are that the index rounds, at most; or 0 */
  double tile_spread;       /* and how far those of the tile are as they are staged at first */
  bool tile_accepts;        /* pairs may be accepted untested: cells are even */
  bool needs_positions;     /* of the staged candidates: for the truth, or to compare images */
  kith_truth truth;         /* of a tile staged narrower */
  double *box;              /* around the tile's queries, exactly: low[dim], high[dim]; */
  bool box_known;           /* made when it is needed */
  kith_periodic periodic;   /* the box of space, if it has one */

  /* Staging. */
  uint32_t capacity;  /* candidates that fit; the buffers have room for a cache line more */
  size_t index_width; /* of a coordinate in the index, in bytes, */
  size_t width;       /* and staged: narrower if float64 coordinates are filtered */
  double *origin;     /* staged float64 coordinates are relative to this */
  void *query_coords;
  float starts[KITH_TILE_QUERIES];  /* less the limits of the queries, for the filter */
  double limits[KITH_TILE_QUERIES]; /* of the queries, by the definition */
  void *candidate_coords;
  uint32_t *candidate_ids;
  uint32_t *candidate_positions;    /* of the staged candidates, if needed */
  uint32_t self[KITH_TILE_QUERIES]; /* of the queries, among the staged candidates */
  bool sieves;                      /* candidates far from the box around the tile's queries are not staged */
  double slanted;                   /* of the grid: this box is one along directions; 0: along columns */
  kith_sieve sieve;                 /* by this box; what differs from run to run is set when a run is staged */

  /* Runs. */
  uint32_t n_runs; /* of the tile, or of its row; where pairs are met once, those with any behind it */
  struct kith_grid_walk *grid; /* how tiles and runs are found: in the rows of a grid, */
  struct kith_ego_walk *ego;   /* or in epsilon grid order; the other is NULL */

  /* What is found. */
  uint32_t degrees[KITH_TILE_QUERIES];
  kith_rows rows;
  uint32_t collect_limit; /* neighbours that rows may have to be collected in the lane's buffers, */
  uint32_t *collected;    /* which have room for that and `capacity` more, for each query of the tile */
  uint64_t id_window;     /* ids whose candidates could last be sorted at once */
  uint64_t *sort_items;   /* 2 * KITH_SORT_CAPACITY, if rows are to be in id order */
} kith_lane;

/* Candidates of a tile that can be put in id order at once; more are taken in windows of ids. */
enum { KITH_SORT_CAPACITY = 16384 };

/* A lane of a task, in so many bytes that are the caller's (make_lane.c). It collects rows of up to so many
 * neighbours at once, and looks for longer ones twice. */
size_t kith_lane_bytes(const kith_task *task, uint32_t collect_limit);
void kith_lane_make(kith_lane *lane, const kith_task *task, uint32_t collect_limit, kith_isa_level isa,
                    char *buffer);

/* Candidates that fit in the staging buffers: about 24 KiB of float coordinates. */
uint32_t kith_lane_capacity(uint32_t dim);

/* Begins a piece of work: nothing is remembered of the one before. */
void kith_lane_begin(kith_lane *lane);

/* Cuts the next tile from positions [at, end), or entries [at, end) of the work's list: those with ids in
 * [first_row, end_row). Returns where it ends; the tile may be empty. */
uint32_t kith_lane_next_tile(kith_lane *lane, uint32_t at, const kith_work *work);

/* Makes the tile ready to meet its candidates. Its images in a periodic box leave it moved, so a tile that is
 * to meet them all once more must be opened again. */
void kith_lane_open_tile(kith_lane *lane);

/* Run r of the current tile. */
kith_run kith_lane_run(kith_lane *lane, uint32_t r);

/* Whether work meets every pair of a set once: a tile meets itself, and what comes after it. */
static inline bool kith_lane_meets_once(const kith_task *task, const kith_work *work) {
  bool one_sided = work->list || work->one_sided;
  bool for_both = work->operation == KITH_DO_COUNT || work->operation == KITH_DO_PAIRS;
  return for_both && task->queries == task->candidates && !task->limits && !one_sided;
}

/* Finds in [begin, end) the first positions of a crowded cell of which every point belongs to every query of
 * the tile; false if there are none. */
bool kith_lane_crowd(kith_lane *lane, uint32_t begin, uint32_t end, kith_crowd *crowd);

/* Copies positions [begin, end) behind the candidates staged already; they must fit. */
void kith_lane_stage(kith_lane *lane, uint32_t begin, uint32_t end);

/* The same, without those that cannot be neighbours of any query of the tile: if lane->sieves. */
void kith_lane_sieve(kith_lane *lane, uint32_t begin, uint32_t end);

/* For periodic boxes (periodic.h): the box around the tile's queries, the queries themselves in the
 * width that is set, and the box to sieve by. */
void kith_lane_find_box(kith_lane *lane);
void kith_lane_stage_queries(kith_lane *lane);
void kith_lane_choose_sieve(kith_lane *lane);

/* Sets up a sieve, whether it pays or not; its limit, for another band. */
void kith_lane_make_sieve(kith_lane *lane);
void kith_lane_limit_sieve(kith_lane *lane);

/* Does without the filter after all: stages the tile anew. */
void kith_lane_test_exactly(kith_lane *lane);

/* Where coordinates are rounded in the index, the cells of candidates are not: makes room for that. */
void kith_lane_widen_near_box(kith_lane *lane);

/* Whether the tile is staged as floats relative to an origin. */
static inline bool kith_lane_is_narrow(const kith_lane *lane) { return lane->width < lane->index_width; }

/* Makes the staged candidates ready for a kernel: pads them to whole vectors. */
void kith_lane_seal(kith_lane *lane);

#endif
