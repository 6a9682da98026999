/* Blocks of queries as positions of another engine: see blocks.h. */
#include "schedule/blocks.h"

#include "base/team.h"

#include <stdlib.h>

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
