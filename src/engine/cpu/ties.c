/* Ties: see ties.h. */
#include "engine/cpu/ties.h"

/* The size of a pair in an image. */
static double image_size(const kith_lane *lane, uint32_t query, uint32_t candidate, const kith_shift *shift) {
  const kith_lattice *lattice = &lane->periodic.unfolded;
  double size = 0;
  for (uint32_t c = 0, i = 0; c < lane->tile.dim; c++) {
    double t = kith_index_coordinate(lane->task->queries, c, query) -
               kith_index_coordinate(lane->task->candidates, c, candidate);
    if (i < lattice->n && lattice->axis[i] == c)
      t += shift->by[i++];
    size += t * t;
  }
  return size;
}

bool kith_ties_is_nearest(const kith_image *image, uint32_t q, uint32_t j, double size) {
  const kith_lane *lane = image->owner;
  const kith_lattice *lattice = &lane->periodic.unfolded;
  uint32_t query = lane->queries.positions[q];
  uint32_t candidate = lane->candidate_positions[j];
  kith_differences differences = {.reach = lane->predicate.reach};
  for (uint32_t i = 0; i < lattice->n; i++)
    differences.low[i] = differences.high[i] =
        kith_index_coordinate(lane->task->queries, lattice->axis[i], query) -
        kith_index_coordinate(lane->task->candidates, lattice->axis[i], candidate);
  kith_shift_walk walk;
  bool more = kith_shift_first(lattice, &differences, &walk);
  for (; more; more = kith_shift_next(lattice, &differences, &walk)) {
    if (kith_shift_equals(lattice, &walk.shift, &lane->periodic.turned))
      continue;
    double other = image_size(lane, query, candidate, &walk.shift);
    if (other < size || (other == size && kith_shift_before(lattice, &walk.shift, &lane->periodic.turned)))
      return false;
  }
  return true;
}

/* Below -band - 2 (limit - doubt) sizes are below the doubt. */
void kith_ties_widen_band(kith_lane *lane) {
  double margin = lane->predicate.limit - lane->periodic.image.doubt;
  if (!lane->filter || margin <= 0)
    return;
  if (margin > 0x1p-10 * lane->predicate.limit) {
    lane->filter = false;
    return;
  }
  lane->predicate.band = (float)((double)lane->predicate.band * (1 + 0x1p-20) + 2 * margin);
}

void kith_ties_expect(kith_lane *lane) {
  kith_ties_widen_band(lane);
  if (!lane->filter)
    lane->width = lane->index_width;
  lane->tile.truth = lane->filter ? &lane->truth : NULL;
  lane->tile_accepts = false;
}
