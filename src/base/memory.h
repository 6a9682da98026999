/* The memory budget.
 *
 * Every allocation of the library whose size depends on data goes through kith_alloc, is counted against the
 * budget of its context, and is released with kith_free. Results that the caller asked for in memory are
 * counted for the peak but exempt from the budget (kith_alloc_result). Thread-safe. */
#ifndef KITH_BASE_MEMORY_H
#define KITH_BASE_MEMORY_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct kith_memory {
  uint64_t limit;
  _Atomic uint64_t used;    /* counts against the limit */
  _Atomic uint64_t results; /* does not */
  _Atomic uint64_t peak;    /* of used + results, since the call began */
} kith_memory;

/* Returns memory aligned to 64 bytes and not cleared, or NULL if the budget or the system refuses. */
void *kith_alloc(kith_memory *memory, uint64_t bytes);
void *kith_alloc_result(kith_memory *memory, uint64_t bytes);

/* Releases what kith_alloc gave; NULL is legal. Needs no context: the block remembers its budget. */
void kith_free(void *block);

/* Detaches a result from its budget, so that it may outlive the context. */
void kith_release_result(void *block);

/* Bytes of the budget still free. */
uint64_t kith_memory_left(const kith_memory *memory);

/* Bytes of memory that the system could give now (MemAvailable, or the cgroup's limit if that is lower). */
uint64_t kith_system_memory_free(void);

/* For tests: the n-th allocation from now fails (0: none). */
void kith_memory_fail_nth(uint64_t n);

#endif
