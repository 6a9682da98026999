/* A parallel stable radix sort of 64-bit items by some of their bits. */
#ifndef KITH_INDEX_SORT_H
#define KITH_INDEX_SORT_H

#include "base/context.h"

/* Sorts items[n] by bits [low, low + bits), using spare[n]. Returns the array that holds the result: items or
 * spare. counts must hold kith_sort_counts(threads) numbers. */
uint64_t *kith_sort(uint64_t *items, uint64_t *spare, uint64_t n, uint32_t low, uint32_t bits, uint32_t *counts,
                    uint32_t threads);

uint64_t kith_sort_counts(uint32_t threads);

#endif
