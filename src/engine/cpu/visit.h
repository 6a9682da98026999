/* A tile of queries on its way through its candidates.
 *
 * Candidates are staged until the buffers are full or the tile's runs are over, then the kernel of the
 * operation sees them all. Runs that lie wholly within eps are counted or copied without a test where that
 * pays.
 *
 * May be included by the CPU engine's operations. */
#ifndef KITH_ENGINE_CPU_VISIT_H
#define KITH_ENGINE_CPU_VISIT_H

#include "engine/cpu/lane.h"

typedef struct kith_visit {
  kith_lane *lane;
  uint32_t lane_number;
  const kith_work *work;
  kith_operation operation; /* that of the work; KITH_DO_COLLECT counts and fills tiles with long rows */
  kith_tally *tally;
  uint64_t found; /* pairs in the staged tiles since it was last cleared: KITH_DO_COUNT */
  bool too_long;  /* a row of the tile, or of the last one, outgrows the lane's buffers: KITH_DO_COLLECT */
} kith_visit;

/* The tile meets all its candidates, images in a periodic box included. */
void kith_visit_all(kith_visit *v);

/* Where every pair is met once: the tile meets its own queries, and then what comes after them in the index. */
void kith_visit_itself(kith_visit *v);
void kith_visit_behind(kith_visit *v);

/* Gives what is staged to the kernel of the operation, and empties the buffers. */
void kith_visit_flush(kith_visit *v);

/* Operations that look for rows in the lane's buffers first (collect.c). */
void kith_collect_tile(kith_visit *v);
void kith_pairs_tile(kith_visit *v);

/* Has to follow whenever a kernel has added to these rows. */
void kith_collect_look(kith_visit *v);

/* The neighbours of the tile's queries: lane->degrees. */
void kith_visit_degrees(kith_visit *v);

#endif
