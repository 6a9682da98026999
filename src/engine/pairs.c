/* Lists of pairs: see engine.h. */
#include "engine/engine.h"

#include <string.h>

bool kith_pairs_open(kith_context *ctx, uint32_t lanes, kith_pairs_found *found) {
  *found = (kith_pairs_found){.ctx = ctx};
  found->lists = kith_alloc(&ctx->memory, lanes * sizeof *found->lists);
  if (!found->lists)
    return false;
  memset(found->lists, 0, lanes * sizeof *found->lists);
  found->lanes = lanes;
  return true;
}

/* The chunk of a lane with room for a pair more; NULL: there is no memory for it. */
static kith_pairs_chunk *find_room(kith_pairs_found *found, uint32_t lane) {
  kith_pairs_chunk *chunk = found->lists[lane];
  if (chunk && chunk->n < KITH_PAIRS_CHUNK)
    return chunk;
  kith_pairs_chunk *fresh = kith_alloc(&found->ctx->memory, sizeof *fresh);
  if (!fresh) {
    atomic_store(&found->overflow, true);
    return NULL;
  }
  fresh->next = chunk;
  fresh->n = 0;
  return found->lists[lane] = fresh;
}

void kith_pairs_add(kith_pairs_found *found, uint32_t lane, uint32_t first, uint32_t second) {
  kith_pairs_chunk *chunk = find_room(found, lane);
  if (chunk)
    chunk->pairs[chunk->n++] = (uint64_t)first << 32 | second;
}

void kith_pairs_release(kith_pairs_found *found) {
  for (uint32_t lane = 0; lane < found->lanes; lane++)
    while (found->lists[lane]) {
      kith_pairs_chunk *next = found->lists[lane]->next;
      kith_free(found->lists[lane]);
      found->lists[lane] = next;
    }
  kith_free(found->lists);
  found->lists = NULL;
  found->lanes = 0;
}
