/* Blocks of queries that engines share, for an engine that has them in another order than the one that cut.
 *
 * May include engine.h. hybrid.c includes it. */
#ifndef KITH_SCHEDULE_BLOCKS_H
#define KITH_SCHEDULE_BLOCKS_H

#include "engine/engine.h"

/* The positions that the queries of the blocks have on another engine, block by block and ascending in each,
 * for n_rows ids at most. *list is the caller's to release, also after a failure. */
kith_status kith_blocks_map(kith_context *ctx, const kith_blocks *blocks, const kith_engine *engine,
                            uint64_t n_rows, uint32_t **list);

#endif
