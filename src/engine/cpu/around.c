/* One pass through a periodic box: see around.h. */
#include "engine/cpu/around.h"

#include "engine/cpu/cuts.h"

#include <string.h>

/* Whether the stencil has cells of which pairs are accepted untested. One pass would test them near the faces,
 * which costs more than passes do. */
static bool accepts(const kith_stencil *stencil) {
  bool any = false;
  for (uint32_t s = 0; s < stencil->n_steps; s++)
    any = any || stencil->steps[s].x_inside >= 0;
  return any;
}

bool kith_around_suits(const kith_task *task) {
  const kith_lattice *lattice = &task->space->lattice;
  double limit = task->predicate->limit;
  if (lattice->n == 0 || lattice->skewed || !task->stencil || kith_lattice_doubt(lattice, limit) < limit)
    return false;
  bool suit = true;
  for (uint32_t i = 0; i < lattice->n; i++)
    suit = suit && kith_folds_suit(lattice->vector[i][i], task->predicate->reach);
  return suit && !accepts(task->stencil);
}

/* Where candidates are looked up. */
static void look_near(kith_lane *lane) {
  memcpy(lane->periodic.near_box, lane->box, 2 * (size_t)lane->tile.dim * sizeof *lane->box);
  kith_lane_widen_near_box(lane);
}

/* The axes that are cut for a tile as a whole, or for each four of its queries. */
typedef struct tile_axes {
  kith_folds for_tile, for_fours;
  bool around; /* along some of them it reaches into other cells around the box */
} tile_axes;

/* Along axes that the grid cuts into cells most tiles have all candidates within the brick, and so nothing to
 * do, and most others need one cut. */
static tile_axes choose_cuts(const kith_lane *lane) {
  const kith_lattice *lattice = &lane->task->space->lattice;
  const kith_grid *grid = lane->task->candidates->grid;
  tile_axes axes = {.around = false};
  for (uint32_t i = 0; i < lattice->n; i++) {
    uint32_t c = lattice->axis[i];
    double low = lane->box[c];
    double high = lane->box[lane->tile.dim + c];
    bool has_cells = kith_grid_dimension(grid, c) < grid->k;
    if (has_cells && kith_lattice_is_interior(lattice, i, low, high, lane->predicate.reach))
      continue;
    axes.around |= has_cells;
    bool one = has_cells && kith_cuts_one(lane, low, high, lattice->vector[i][i]);
    kith_folds_add(one ? &axes.for_tile : &axes.for_fours, lattice, i);
  }
  return axes;
}

/* Makes the band for what the cuts add to it. False if that is too much, which is so for small radii of queries
 * in boxes of many. */
static bool fit_band(kith_lane *lane, const tile_axes *axes) {
  double spread = kith_cuts_spread(lane, &axes->for_tile, &axes->for_fours);
  return kith_predicate_narrow(&lane->predicate, lane->tile.dim, lane->tile_spread + spread);
}

void kith_around_set_up(kith_lane *lane) {
  kith_lane_find_box(lane);
  tile_axes axes = choose_cuts(lane);
  lane->periodic.around = axes.around;
  if (lane->periodic.around)
    look_near(lane);
  if (!lane->filter)
    return;
  if (!fit_band(lane, &axes)) {
    kith_lane_test_exactly(lane);
    return;
  }
  kith_lane_limit_sieve(lane);
  kith_cuts_lay(lane, &axes.for_tile, &axes.for_fours);
}
