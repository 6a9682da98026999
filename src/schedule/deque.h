/* The deque: the blocks of a join's queries, most work first, taken from both ends by engines that share it.
 *
 * Some engines take from the heavy end, where queries have many candidates; the others from the light end. A
 * slice that was taken is either done or given back, for others to take. Who finds the deque empty while slices
 * are under way waits: one of them may come back.
 *
 * With a fixed partition the deque is cut in two, and each end has its part; a part whose engines have all left
 * is taken by the others.
 *
 * May include engine.h. Thread-safe, but for make, open and release. */
#ifndef KITH_SCHEDULE_DEQUE_H
#define KITH_SCHEDULE_DEQUE_H

#include "engine/engine.h"

#include <pthread.h>

enum { KITH_MAX_MEMBERS = KITH_MAX_ENGINES }; /* that may share a join */

typedef enum kith_end { KITH_HEAVY_END, KITH_LIGHT_END } kith_end;

/* Entries of the deque, [begin, end). */
typedef struct kith_slice {
  uint32_t begin, end;
} kith_slice;

typedef struct kith_deque {
  uint32_t n;
  uint32_t *blocks;     /* their numbers, most work first */
  uint64_t *work;       /* n + 1: of all entries before; a query counts as so many candidates (deque.c) */
  uint64_t *candidates; /* likewise */
  uint64_t *queries;    /* likewise */
  uint64_t *pairs;      /* likewise, once they are known: else all 0 */
  kith_slice part[2];   /* what nobody has taken yet; of a deque in one piece part[0] is all of it */
  bool cut;             /* in two pieces: part[end] is for the engines at that end */
  kith_slice *back;     /* slices that were given back, not next to each other: at most n */
  uint32_t n_back;
  uint32_t active[2]; /* engines at each end */
  uint32_t under_way; /* slices taken, neither done nor given back */
  bool over;          /* nobody takes any more */
  pthread_mutex_t lock;
  pthread_cond_t changed;
} kith_deque;

/* Orders the blocks. */
kith_status kith_deque_make(kith_context *ctx, const kith_blocks *blocks, kith_deque *deque);
void kith_deque_release(kith_deque *deque);

/* Lays all entries open again, for so many engines at each end. cut: entries for the heavy end; below 0: the
 * deque stays in one piece. */
void kith_deque_open(kith_deque *deque, int64_t cut, const uint32_t active[2]);

/* The entries whose work (or queries), from the beginning on, comes nearest to a share. */
uint32_t kith_deque_find(const kith_deque *deque, const uint64_t *sums, double share);

/* How much to take at most: at least one entry is taken whatever it says. */
typedef struct kith_appetite {
  double work;
  uint64_t pairs;
} kith_appetite;

/* Work that nobody has taken yet and that this end may take. */
uint64_t kith_deque_left(kith_deque *deque, kith_end end);

/* Takes a slice from an end; waits while there is none but may come one back. False: all is done, or over. */
bool kith_deque_take(kith_deque *deque, kith_end end, kith_appetite appetite, kith_slice *out);
void kith_deque_done(kith_deque *deque);
void kith_deque_give_back(kith_deque *deque, kith_slice slice);
/* An engine leaves its end for good. */
void kith_deque_leave(kith_deque *deque, kith_end end);
/* Nobody is to take any more: the call fails or was cancelled. */
void kith_deque_stop(kith_deque *deque);
/* Whether every entry is done. */
bool kith_deque_is_done(kith_deque *deque);

#endif
