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

/* The size of the definition, of row i of a and row j of b. */
double kith_definition(kith_norm norm, const kith_points *a, uint64_t i, const kith_points *b, uint64_t j);

/* A row of the neighbour table. */
typedef struct kith_row {
  uint32_t *ids;
  double *distances; /* NULL: not wanted */
  uint64_t n;
} kith_row;

/* Puts the ids of the row of point `id` of a in order, and computes its distances. */
void kith_brute_finish_row(const kith_space *space, const kith_points *a, const kith_points *b, uint32_t id,
                           const kith_row *row);

#endif
