/* How a lane walks an index in epsilon grid order (index/ego.h), in place of the rows of a grid: Super-EGO.
 *
 * The lane cuts some tiles ahead. Their sequence and that of all blocks of candidates are joined recursively:
 * two parts that cannot hold a pair are dropped, others halved, until a tile and a block are left. So every
 * tile has its runs of candidates, in ascending order. What is done with them (sieve, filter, definition,
 * rows) is the same as for a grid. */
#ifndef KITH_ENGINE_CPU_EGO_H
#define KITH_ENGINE_CPU_EGO_H

#include "engine/cpu/lane.h"
#include "index/ego.h"

/* Tiles cut ahead, and the runs that each may have: where there are more, neighbours become one run. */
enum { KITH_EGO_TILES = 16, KITH_EGO_RUNS = 1024 };

typedef struct kith_ego_run {
  uint32_t begin, end;
} kith_ego_run;

typedef struct kith_ego_tile {
  uint32_t at_end; /* where it ends in the work */
  uint32_t n_queries;
  uint32_t positions[KITH_TILE_QUERIES];
  uint32_t n_runs;
  kith_ego_run runs[KITH_EGO_RUNS];
} kith_ego_tile;

typedef struct kith_ego_walk {
  uint32_t next, n_tiles;
  kith_ego_box boxes[KITH_EGO_TILES]; /* of the tiles */
  kith_ego_tile tiles[KITH_EGO_TILES];
} kith_ego_walk;

/* Takes the queries of the next tile, as kith_lane_next_tile does. */
uint32_t kith_ego_next_tile(kith_lane *lane, uint32_t at, const kith_work *work);

/* Its run number r. */
kith_run kith_ego_tile_run(const kith_lane *lane, uint32_t r);

#endif
