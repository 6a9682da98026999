/* A parallel stable radix sort of 64-bit items by some of their bits. */
#ifndef KITH_INDEX_SORT_H
#define KITH_INDEX_SORT_H

#include "base/context.h"

/* Sorts from[0..n) into to[0..n) by bits [low, low + bits); from is scratch afterwards. counts must hold
 * kith_sort_counts(ctx) numbers. If the call is cancelled, to[] may hold anything. */
void kith_sort(kith_context *ctx, uint64_t *from, uint64_t *to, uint64_t n, uint32_t low, uint32_t bits,
               uint32_t *counts);

uint64_t kith_sort_counts(const kith_context *ctx);

#endif
