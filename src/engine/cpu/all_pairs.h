/* The CPU engine that joins all with all: for points of many dimensions, where an index leaves too many
 * candidates to be worth its look-ups. Panels (index/panels.h) that are surely apart are passed over. */
#ifndef KITH_ENGINE_CPU_ALL_PAIRS_H
#define KITH_ENGINE_CPU_ALL_PAIRS_H

#include "engine/cpu/panel.h"
#include "engine/engine.h"

typedef struct kith_brute_task {
  const kith_predicate *predicate;
  const kith_space *space;  /* tells what distance a size is */
  const kith_points *a, *b; /* to evaluate the definition */
  const kith_panels *queries;
  const kith_panels *candidates; /* the same panels when a set is joined with itself */
  float box_limit;               /* panels whose boxes have a gap of a larger size are apart */
  bool half, drop_self;
} kith_brute_task;

kith_status kith_engine_brute_create(kith_context *ctx, const kith_brute_task *task, kith_engine **out);

#endif
