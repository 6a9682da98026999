/* How the rows of a table are found.
 *
 *   fill      two passes: degrees, then rows in their places. Needs no memory but the table's.
 *   collect   one pass: rows as they are found, in a pool, then moved to their places. Where tests are many
 *             beside the neighbours, or neighbours are few.
 *   assemble  one pass that meets every pair of a set once: pairs in any order, of which rows are made. Where
 *             pairs are few beside the columns looked at.
 *
 * A table in memory may take what the system has; a stream keeps to the budget, and is made whole only if that
 * is small beside it. */
#include "ops/join.h"

#include <math.h>

/* Rows are collected without distances; and in a periodic box GPUs look for images row by row. */
static bool can_collect(const kith_join *j) {
  return !j->options.distances && !j->engine->all_pairs && !(j->shared && j->space.lattice.n > 0);
}

/* Of one set an estimate meets pairs once, and counts them twice. */
static bool has_many_tests(const kith_estimate *estimate) {
  enum { TESTS_PER_PAIR = 4 };
  return estimate->tested > TESTS_PER_PAIR * estimate->pairs;
}

/* Pairs are moved twice; counting and filling would test every pair three times, collecting twice. Where rows
 * that are filled have images last, their order is not known here. */
static bool can_assemble(const kith_join *j, const kith_estimate *estimate) {
  enum { COLUMNS_PER_PAIR = 512 };
  bool knows_order = !j->engine->images_last || j->options.sorted;
  bool needs_images = j->space.lattice.n > 0 && j->options.distances;
  return j->engine->lists_pairs && knows_order && !needs_images &&
         estimate->tested * j->a->dim > COLUMNS_PER_PAIR * kith_join_pairs_of_estimate(j, estimate->pairs);
}

/* Surely no fewer than there are. */
static double most_pairs(const kith_join *j, const kith_estimate *estimate) {
  return kith_join_pairs_of_estimate(j, estimate->pairs + 4 * estimate->error);
}

/* Ids that a pool must hold, to hold all pairs; some more are for the samples of fixed partitions, which are
 * run again (partition.c): about a twentieth. */
static double pool_size(const kith_join *j, const kith_estimate *estimate) {
  return 1.1 * most_pairs(j, estimate) + 4096;
}

/* What assembling takes for each id of a row: a list of pairs, of which most are in two rows, and a pool. */
static double bytes_to_assemble(const kith_join *j) { return j->one_set && !j->options.half ? 8 : 12; }

kith_way kith_join_way_to_table(const kith_join *j, const kith_estimate *estimate) {
  bool few = kith_join_pairs_of_estimate(j, estimate->pairs) < 2 * (double)j->a->n;
  double ids = pool_size(j, estimate);
  double room = fmin(kith_room_for_table() / 4, (double)kith_memory_left(&j->ctx->memory));
  if (can_assemble(j, estimate) && ids * bytes_to_assemble(j) + 8 * (double)j->a->n < room)
    return (kith_way){.kind = KITH_WAY_ASSEMBLE};
  bool fits = ids < UINT32_MAX && ids * sizeof(uint32_t) < room;
  bool collects = can_collect(j) && fits && (few || has_many_tests(estimate));
  return collects ? (kith_way){.kind = KITH_WAY_COLLECT, .pool_ids = (uint64_t)ids} : (kith_way){0};
}

kith_way kith_join_way_to_stream(const kith_join *j, const kith_estimate *estimate) {
  bool assembles = can_assemble(j, estimate);
  double ids = assembles ? most_pairs(j, estimate) : pool_size(j, estimate);
  bool few = ids < 2 * (double)j->a->n + 4096 && ids < UINT32_MAX;
  double pair_bytes = kith_join_pair_bytes(j) + (assembles ? bytes_to_assemble(j) : 4);
  bool fits = ids * pair_bytes <= (double)kith_memory_left(&j->ctx->memory) / 2;
  if (!fits || !(assembles || (few && can_collect(j))))
    return (kith_way){0};
  return (kith_way){.kind = assembles ? KITH_WAY_ASSEMBLE : KITH_WAY_COLLECT, .pool_ids = (uint64_t)ids};
}

kith_status kith_join_go(kith_join *j, kith_way way, kith_table *table, uint64_t *offsets, bool *done) {
  *done = false;
  if (way.kind == KITH_WAY_ASSEMBLE)
    return kith_join_assemble(j, table, offsets, done);
  if (way.kind == KITH_WAY_COLLECT)
    return kith_join_collect(j, table, offsets, way.pool_ids, done);
  return KITH_OK;
}
