/* Blocks of queries that engines share, where an engine does not cut them itself: from the positions of one
 * engine, and as positions of another.
 *
 * May include engine.h. hybrid.c includes it. */
#ifndef KITH_SCHEDULE_BLOCKS_H
#define KITH_SCHEDULE_BLOCKS_H

#include "engine/engine.h"

/* Cuts the positions of an engine into blocks, and lets it weigh them. */
kith_status kith_blocks_cut(kith_context *ctx, kith_engine *engine, kith_blocks *blocks);

/* The positions that the queries of the blocks have on another engine, block by block and ascending in each,
 * for n_rows ids at most. *list is the caller's to release, also after a failure. */
kith_status kith_blocks_map(kith_context *ctx, const kith_blocks *blocks, const kith_engine *engine,
                            uint64_t n_rows, uint32_t **list);

#endif
