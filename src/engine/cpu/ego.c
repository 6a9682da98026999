/* Walking in epsilon grid order: see ego.h. */
#include "engine/cpu/ego.h"

#include <string.h>

/* Fewer queries do not make a tile, unless there are no more. */
enum { FEWEST_QUERIES = 16 };

/* Cuts a tile from entry `at` of the work on: as many queries as fit, to where the order takes a large step. */
static void cut_tile(const kith_index *index, uint32_t at, const kith_work *work, kith_ego_tile *tile) {
  uint32_t entries[KITH_TILE_QUERIES]; /* that the queries are, */
  uint32_t n = 0;
  for (; at < work->end && n < KITH_TILE_QUERIES; at++) {
    uint32_t position = tile->positions[n] = work->list ? work->list[at] : at;
    uint32_t id = index->ids[position];
    entries[n] = at;
    n += id >= work->first_row && id < work->end_row;
  }
  bool full = n == KITH_TILE_QUERIES;
  tile->n_queries = full ? kith_ego_cut(index, tile->positions, FEWEST_QUERIES, n) : n;
  tile->at_end = full ? entries[tile->n_queries] : at;
  tile->n_runs = 0;
}

/* Two sequences: tiles [tiles[0], tiles[1]) and blocks [blocks[0], blocks[1]). */
typedef struct meeting {
  uint32_t tiles[2], blocks[2];
  uint32_t dims; /* not settled by what these are parts of */
} meeting;

/* Makes room in a full list: every two runs become one, with what lies between them. */
static void merge_runs(kith_ego_tile *tile) {
  for (uint32_t r = 0; r < KITH_EGO_RUNS / 2; r++)
    tile->runs[r] = (kith_ego_run){tile->runs[2 * r].begin, tile->runs[2 * r + 1].end};
  tile->n_runs = KITH_EGO_RUNS / 2;
}

static void add_run(kith_ego_tile *tile, uint32_t begin, uint32_t end) {
  kith_ego_run *last = &tile->runs[tile->n_runs - (tile->n_runs > 0)];
  if (tile->n_runs > 0 && last->end == begin) {
    last->end = end;
    return;
  }
  if (tile->n_runs == KITH_EGO_RUNS)
    merge_runs(tile);
  tile->runs[tile->n_runs++] = (kith_ego_run){begin, end};
}

/* The EGO join: halves the longer sequence, the first half first, so that the runs of a tile ascend. */
static void join(const kith_task *task, kith_ego_walk *walk, meeting m) {
  const kith_ego_box *blocks = task->ego->boxes;
  kith_ego_sequence a = {&walk->boxes[m.tiles[0]], &walk->boxes[m.tiles[1] - 1]};
  kith_ego_sequence b = {&blocks[m.blocks[0]], &blocks[m.blocks[1] - 1]};
  if (!kith_ego_may_meet(task->candidates->grid, a, b, &m.dims))
    return;
  uint32_t n_tiles = m.tiles[1] - m.tiles[0];
  uint32_t n_blocks = m.blocks[1] - m.blocks[0];
  if (n_tiles == 1 && n_blocks == 1) {
    const uint32_t *starts = &task->ego->starts[m.blocks[0]];
    add_run(&walk->tiles[m.tiles[0]], starts[0], starts[1]);
    return;
  }
  meeting halves[2] = {m, m};
  if (n_tiles > n_blocks)
    halves[0].tiles[1] = halves[1].tiles[0] = m.tiles[0] + n_tiles / 2;
  else
    halves[0].blocks[1] = halves[1].blocks[0] = m.blocks[0] + n_blocks / 2;
  join(task, walk, halves[0]);
  join(task, walk, halves[1]);
}

/* Cuts the next tiles and finds their runs. Where every pair is met once, candidates before them are not
 * looked at. */
static void cut_tiles(kith_lane *lane, uint32_t at, const kith_work *work) {
  const kith_task *task = lane->task;
  kith_ego_walk *walk = lane->ego;
  walk->next = 0;
  uint32_t n = 0;
  for (; n < KITH_EGO_TILES && at < work->end; n++) {
    kith_ego_tile *tile = &walk->tiles[n];
    cut_tile(task->queries, at, work, tile);
    at = tile->at_end;
    if (tile->n_queries == 0) /* then this was the end of the work */
      break;
    kith_ego_bound(task->queries, tile->positions, tile->n_queries, &walk->boxes[n]);
  }
  walk->n_tiles = n;
  uint32_t from =
      n > 0 && kith_lane_meets_once(task, work) ? kith_ego_block_at(task->ego, walk->tiles[0].positions[0]) : 0;
  if (n > 0 && task->ego->n_blocks > 0)
    join(task, walk,
         (meeting){.tiles = {0, n}, .blocks = {from, task->ego->n_blocks}, .dims = task->queries->grid->k});
}

uint32_t kith_ego_next_tile(kith_lane *lane, uint32_t at, const kith_work *work) {
  kith_ego_walk *walk = lane->ego;
  kith_query_tile *queries = &lane->queries;
  if (walk->next == walk->n_tiles)
    cut_tiles(lane, at, work);
  if (walk->n_tiles == 0) {
    lane->tile.n_queries = lane->n_runs = 0;
    return work->end;
  }
  const kith_ego_tile *tile = &walk->tiles[walk->next++];
  uint32_t n = lane->tile.n_queries = tile->n_queries;
  memcpy(queries->positions, tile->positions, n * sizeof *tile->positions);
  for (uint32_t q = 0; q < n; q++)
    queries->ids[q] = lane->task->queries->ids[tile->positions[q]];
  queries->begin = tile->positions[0];
  queries->end = tile->positions[n - 1] + 1;
  lane->n_runs = tile->n_runs;
  return tile->at_end;
}

kith_run kith_ego_tile_run(const kith_lane *lane, uint32_t r) {
  const kith_ego_run *run = &lane->ego->tiles[lane->ego->next - 1].runs[r];
  return (kith_run){.begin = run->begin, .end = run->end, .inside_begin = run->end, .inside_end = run->end};
}
