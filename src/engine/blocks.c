/* Blocks of queries: see engine.h. */
#include "engine/engine.h"

kith_status kith_blocks_allocate(kith_context *ctx, uint32_t n, uint32_t positions, kith_blocks *out) {
  uint64_t bytes = (n + UINT64_C(1)) * sizeof *out->begin + n * sizeof *out->candidates +
                   (uint64_t)positions * sizeof *out->ids;
  *out = (kith_blocks){.n = n};
  out->begin = kith_alloc(&ctx->memory, (n + UINT64_C(1)) * sizeof *out->begin);
  out->candidates = kith_alloc(&ctx->memory, n * sizeof *out->candidates);
  out->ids = kith_alloc(&ctx->memory, (uint64_t)positions * sizeof *out->ids);
  if (out->begin && out->candidates && out->ids)
    return KITH_OK;
  kith_blocks_release(out);
  return kith_fail_memory(ctx, bytes, "the blocks of queries that engines share");
}

void kith_blocks_release(kith_blocks *blocks) {
  kith_free(blocks->begin);
  kith_free(blocks->candidates);
  kith_free(blocks->ids);
  *blocks = (kith_blocks){0};
}
