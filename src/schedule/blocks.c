/* Blocks of queries and positions of engines: see blocks.h. */
#include "schedule/blocks.h"

#include "base/team.h"

#include <stdlib.h>
#include <string.h>

/* Blocks of so many positions, weighed by the engine whose positions they are. */
typedef struct weighing {
  kith_engine *engine;
  kith_blocks *blocks;
  _Atomic uint32_t next;
  _Atomic int failed;
} weighing;

static void weigh_blocks(void *argument, uint64_t lane) {
  weighing *w = argument;
  uint32_t b;
  while ((b = atomic_fetch_add(&w->next, 1)) < w->blocks->n) {
    kith_tally tally = {0};
    kith_work work = {.operation = KITH_DO_WEIGH,
                      .begin = w->blocks->begin[b],
                      .end = w->blocks->begin[b + 1],
                      .end_row = UINT64_MAX};
    kith_status status = w->engine->run(w->engine, (uint32_t)lane, &work, &tally);
    if (status)
      atomic_store(&w->failed, (int)status);
    w->blocks->candidates[b] = tally.tested;
  }
}

kith_status kith_blocks_cut(kith_context *ctx, kith_engine *engine, kith_blocks *blocks) {
  enum { LEAST = 64, MOST = 1024, BLOCKS = 8192 };
  uint32_t size = engine->n_queries / BLOCKS;
  size = size < LEAST ? LEAST : size > MOST ? MOST : size;
  uint32_t n = engine->n_queries / size + (engine->n_queries % size ? 1 : 0);
  kith_status status = kith_blocks_allocate(ctx, n, engine->n_queries, blocks);
  if (status)
    return status;
  for (uint32_t b = 0; b < n; b++)
    blocks->begin[b] = b * size;
  blocks->begin[n] = engine->n_queries;
  memcpy(blocks->ids, engine->ids, engine->n_queries * sizeof *blocks->ids);
  weighing w = {.engine = engine, .blocks = blocks};
  kith_each(ctx, engine->lanes, weigh_blocks, &w);
  return atomic_load(&w.failed) ? (kith_status)atomic_load(&w.failed) : kith_check_cancel(ctx);
}

/* The positions of a member, block by block. */
typedef struct mapping {
  const kith_engine *engine;
  const kith_blocks *blocks;
  uint32_t *position; /* by id */
  uint32_t *list;
  uint64_t shares;
} mapping;

static void place_ids(void *argument, uint64_t share) {
  const mapping *map = argument;
  uint64_t end = kith_share_begin(map->engine->n_queries, share + 1, map->shares);
  for (uint64_t p = kith_share_begin(map->engine->n_queries, share, map->shares); p < end; p++)
    map->position[map->engine->ids[p]] = (uint32_t)p;
}

static int compare_positions(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a;
  uint32_t y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void map_block(void *argument, uint64_t b) {
  const mapping *map = argument;
  uint32_t begin = map->blocks->begin[b];
  uint32_t end = map->blocks->begin[b + 1];
  bool ascends = true;
  for (uint32_t p = begin; p < end; p++) {
    map->list[p] = map->position[map->blocks->ids[p]];
    ascends = ascends && (p == begin || map->list[p - 1] < map->list[p]);
  }
  if (!ascends)
    qsort(map->list + begin, end - begin, sizeof *map->list, compare_positions);
}

kith_status kith_blocks_map(kith_context *ctx, const kith_blocks *blocks, const kith_engine *engine,
                            uint64_t n_rows, uint32_t **list) {
  enum { GRAIN = 65536 };
  uint32_t *position = kith_alloc(&ctx->memory, n_rows * sizeof *position);
  *list = kith_alloc(&ctx->memory, engine->n_queries * sizeof **list);
  if (!position || !*list) {
    kith_free(position);
    return kith_fail_memory(ctx, (n_rows + engine->n_queries) * sizeof *position,
                            "the positions of queries that engines share");
  }
  mapping map = {.engine = engine,
                 .blocks = blocks,
                 .position = position,
                 .list = *list,
                 .shares = kith_shares(ctx, engine->n_queries, GRAIN)};
  kith_each(ctx, map.shares, place_ids, &map);
  kith_each_unless_cancelled(ctx, blocks->n, map_block, &map);
  kith_free(position);
  return kith_check_cancel(ctx);
}
