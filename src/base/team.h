/* The threads of a context, and the one way to use them.
 *
 * kith_each calls a function for every item, on all threads; a thread takes the next item when it is done with
 * its last. Item 0 runs on the calling thread. Nobody waits for a thread that never came to take an item, and
 * those who wait soon sleep: on a busy machine a thread without a core delays only the item it holds.
 *
 * Threads are started by the first call that needs them and end with the context. Calls do not nest. */
#ifndef KITH_BASE_TEAM_H
#define KITH_BASE_TEAM_H

#include "base/context.h"

typedef void (*kith_item_fn)(void *argument, uint64_t item);

void kith_each(kith_context *ctx, uint64_t n_items, kith_item_fn fn, void *argument);

/* The same for long work: once the call is cancelled, items that nobody has begun are left out. The caller must
 * look at kith_cancelled() before it uses what they were to make. */
void kith_each_unless_cancelled(kith_context *ctx, uint64_t n_items, kith_item_fn fn, void *argument);

/* A good number of items to cut n equal pieces of work into, of at least `grain` each: enough for the threads
 * to end together, few enough to cost nothing. */
uint64_t kith_shares(const kith_context *ctx, uint64_t n, uint64_t grain);

/* Item s of `shares` covers [kith_share_begin(n, s, shares), kith_share_begin(n, s + 1, shares)). */
static inline uint64_t kith_share_begin(uint64_t n, uint64_t s, uint64_t shares) {
  return n / shares * s + (n % shares) * s / shares;
}

/* Ends the threads of a context, if it has any. */
void kith_team_destroy(kith_context *ctx);

#endif
