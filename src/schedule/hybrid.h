/* Several engines on one join: an engine made of engines.
 *
 * The queries are cut into blocks by the first of its members, ordered by how many candidates they have, and
 * taken from both ends of a deque (deque.h). How much a member takes at once follows from what is left and from
 * how fast everybody was so far (slices.c): less and less, so that all end together. A member that fails gives
 * its slice back and leaves; the others finish.
 *
 * With a fixed partition (a part of the queries, or of the candidates, to each end) the parts follow from a
 * sample of the blocks, which every member runs first.
 *
 * Members may differ in index and order: a block is a set of query ids.
 *
 * A member may come later: others begin while it is still being made, and if they would be done before it is
 * there, it is not made at all.
 *
 * May include engine and schedule. The operations include it. */
#ifndef KITH_SCHEDULE_HYBRID_H
#define KITH_SCHEDULE_HYBRID_H

#include "schedule/deque.h"

typedef struct kith_member {
  kith_engine *engine; /* NULL: it comes later, */
  /* and make(user, &engine) makes it, on the thread of the caller: while the first member weighs the blocks, or
   * once a run has begun. It is to have the order of the blocks. */
  kith_status (*make)(void *user, kith_engine **engine);
  void *user;
  double make_seconds; /* about how long that takes */
  kith_end end;
  char name[16];
  double rate; /* work a second, in any unit that is the same for all, if it is known beforehand; else 0 */
} kith_member;

typedef struct kith_hybrid_spec {
  kith_member members[KITH_MAX_MEMBERS]; /* the first cuts the blocks, and so must be able to, and be there */
  uint32_t n_members;
  uint64_t n_rows; /* of the query side, the invalid ones among them */
  bool
      one_sided; /* pairs are counted from both of their queries: the members do not agree on who comes first */
  kith_partition partition;
} kith_hybrid_spec;

/* The engine takes its members over, whether this succeeds or not. */
kith_status kith_engine_hybrid_create(kith_context *ctx, const kith_hybrid_spec *spec, kith_engine **out);

/* What each member has done so far. */
void kith_hybrid_describe(const kith_engine *engine, kith_join_report *report);

/* The part of the work that the members at the heavy end should get, going by the rates that are known; a half
 * if some are not. */
double kith_hybrid_share(const kith_hybrid_spec *spec);

/* In builds for tests: whether the environment variable KITH_FAULT (as in cuda:batch=7) wants a member to fail
 * at its n-th slice. */
bool kith_fault_wanted(const char *member, uint64_t n);

/* Likewise (as in cuda:slow), whether a member is to take its time over every slice. */
bool kith_fault_slows(const char *member);

#endif
