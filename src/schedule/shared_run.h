/* A run of the deque by engines that share a join: what hybrid.c, slices.c, arrivals.c and partition.c have in
 * common. */
#ifndef KITH_SCHEDULE_SHARED_RUN_H
#define KITH_SCHEDULE_SHARED_RUN_H

#include "schedule/hybrid.h"

/* How a member is told what to do. */
typedef enum manner {
  TAKES_BLOCKS, /* by their numbers, many at once */
  TAKES_RANGES, /* its positions are those of the blocks */
  TAKES_LISTS,  /* its positions are others: `list` has them, block by block, ascending in each */
} manner;

typedef struct member {
  kith_member public;
  manner manner;
  uint32_t *list;
  kith_blocks blocks; /* its own cut, the same as the first member's */
  uint32_t lanes;
  uint32_t track; /* of the trace: the first of `lanes` */
  /* Under the lock of the hybrid engine: */
  bool awaited;    /* it comes later */
  double max_work; /* of a slice: halved when memory did not suffice, doubled when it did */
  uint64_t slices; /* begun */
  kith_engine_report done;
  double work;  /* done, as the deque has it */
  double ended; /* when its last slice was done */
  bool gone;
} member;

/* Work a second that a member has shown; 0: none yet. */
static inline double kith_member_pace(const member *m) {
  return m->done.busy_seconds > 0 ? m->work / m->done.busy_seconds : 0;
}

typedef struct hybrid {
  kith_engine base;
  kith_context *ctx;
  kith_partition partition;
  member members[KITH_MAX_MEMBERS];
  uint32_t n_members;
  double share; /* of the heavy end in a fixed partition, where there is no sample */
  uint64_t n_rows;
  bool one_sided; /* a pair has no first query that all members agree on: they have different orders, for one */
  kith_blocks blocks;
  kith_deque deque;
  bool has_deque;
  pthread_mutex_t lock;
  uint64_t runs;             /* begun */
  kith_status failed;        /* of the last member that left */
  double imbalance, seconds; /* sums over the runs */
} hybrid;

/* Entries, here and there in the deque, that are run before a fixed partition is chosen: each by one member, in
 * turns. They are run again afterwards, by whoever gets them. */
enum { SAMPLES = 512 };
typedef struct sample {
  uint32_t n;
  uint32_t entries[SAMPLES];
  _Atomic uint32_t next[KITH_MAX_MEMBERS];  /* of the entries of each member */
  double half_seconds[KITH_MAX_MEMBERS][2]; /* for the heavy half, and the light one, where they are run at
                                               once, beside what any batch takes */
  double entry_seconds[SAMPLES];            /* of a lane, where entries are run one by one */
  bool failed[KITH_MAX_MEMBERS];
} sample;

/* One run of the deque. */
typedef struct shared_run {
  hybrid *h;
  const kith_work *work;
  void (*run_lane)(struct shared_run *r, member *m, uint32_t lane, bool reports);
  double began;
  kith_tally tally;
  _Atomic uint32_t running; /* members with a thread of their own that are not done */
  sample sample;
} shared_run;

/* One lane of a member, until there is nothing left to take; the one that reports tells of progress (slices.c).
 */
void kith_shared_work_lane(shared_run *r, member *m, uint32_t lane, bool reports);
void kith_shared_report(const shared_run *r);

/* One block, by a member that does not take blocks (slices.c). */
kith_status kith_shared_run_block(const hybrid *h, const member *m, uint32_t lane, kith_work *work,
                                  uint32_t entry, kith_tally *tally);

void kith_shared_add_tally(kith_tally *sum, const kith_tally *tally);

/* Lets all lanes of all members do what the run is about, and waits for them (hybrid.c). */
void kith_shared_run_lanes(shared_run *r);

/* Whether an engine has its queries in the order of the blocks (arrivals.c). */
bool kith_shared_has_order(const hybrid *h, const kith_engine *engine);

/* Makes those that are awaited, if that takes hardly longer than the first member needs to weigh the blocks, as
 * it does meanwhile. Fails only if the call was cancelled (arrivals.c). */
kith_status kith_shared_make_early(hybrid *h);

/* Makes those that are awaited, if they will be needed in this run; the caller's thread waits meanwhile
 * (arrivals.c).
 */
void kith_shared_admit(shared_run *r);

/* Where the deque is to be cut: the entries of the heavy end; -1: nowhere (partition.c). Runs a sample first,
 * if the partition is a fixed one. */
int64_t kith_shared_find_cut(shared_run *r);

#endif
