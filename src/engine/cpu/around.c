/* One pass through a periodic box: see around.h. */
#include "engine/cpu/around.h"

#include "engine/cpu/cuts.h"

/* Whether the stencil has steps of which pairs are accepted untested: then it is worth more than one pass. */
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

/* Where candidates are looked up. Where coordinates are rounded in the index, their cells are not. */
static void look_near(kith_lane *lane) {
  uint32_t dim = lane->tile.dim;
  for (uint32_t c = 0; c < dim; c++) {
    lane->near_box[c] = lane->box[c] - 0x1p-22 * lane->spread;
    lane->near_box[dim + c] = lane->box[dim + c] + 0x1p-22 * lane->spread;
  }
}

/* The axes that are cut for a tile as a whole, or for each four of its queries. */
typedef struct tile_axes {
  kith_folds for_tile, for_fours;
  bool around; /* along some of them it reaches into other cells around the box */
} tile_axes;

/* Along axes that the grid cuts into cells there is nothing to do in most tiles, and one cut in most others. */
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

/* Makes the band as narrow as the axes allow: it was made for whatever they may be. */
static void fit_band(kith_lane *lane, const tile_axes *axes) {
  double spread = kith_cuts_spread(lane, &axes->for_tile, &axes->for_fours);
  kith_predicate_narrow(&lane->predicate, lane->tile.dim, lane->tile_spread + spread);
}

void kith_around_set_up(kith_lane *lane) {
  kith_lane_find_box(lane);
  tile_axes axes = choose_cuts(lane);
  lane->around = axes.around;
  if (lane->around)
    look_near(lane);
  if (!lane->filter)
    return;
  fit_band(lane, &axes);
  kith_cuts_lay(lane, &axes.for_tile, &axes.for_fours);
}
