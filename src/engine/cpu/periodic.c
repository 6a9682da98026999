/* A periodic box: see periodic.h. */
#include "engine/cpu/periodic.h"

#include "engine/cpu/around.h"
#include "engine/cpu/cuts.h"
#include "engine/cpu/ties.h"

#include <string.h>

/* Whether a tile meets its candidates along an axis whatever their image: all images at once, or no run ends
 * there, since there is one cell, or two. */
static bool can_fold(const kith_lane *lane, uint32_t axis, double side) {
  const kith_grid *grid = lane->task->candidates->grid;
  uint32_t j = kith_grid_dimension(grid, axis);
  bool meets_all = lane->periodic.one_pass || j == grid->k || grid->cells[j] <= 2;
  return meets_all && kith_folds_suit(side, lane->task->predicate->reach);
}

/* Divides the axes of a box without angles into those that are folded and those with images to turn to. */
static void choose_folds(kith_lane *lane) {
  const kith_lattice *whole = &lane->task->space->lattice;
  kith_lattice *unfolded = &lane->periodic.unfolded;
  kith_folds *folds = &lane->periodic.image.folds;
  double squares = 0;
  unfolded->n = 0;
  for (uint32_t i = 0; i < whole->n; i++) {
    double side = whole->vector[i][i];
    if (can_fold(lane, whole->axis[i], side)) {
      kith_folds_add(folds, whole, i);
      squares += side * side;
      continue;
    }
    uint32_t n = unfolded->n++;
    unfolded->axis[n] = whole->axis[i];
    unfolded->vector[n][n] = side;
  }
  lane->periodic.fold_spread = kith_folds_spread(squares);
}

/* How much is lowered behind a cut, along each axis. */
static void set_sides(kith_lane *lane) {
  for (uint32_t c = 0; c < lane->tile.dim; c++)
    lane->periodic.cuts.by[c] = (float)kith_lattice_side(&lane->task->space->lattice, c);
}

void kith_periodic_open(kith_lane *lane) {
  kith_periodic *periodic = &lane->periodic;
  const kith_lattice *lattice = &lane->task->space->lattice;
  double limit = lane->task->predicate->limit;
  periodic->image = (kith_image){.shift = periodic->shift, .is_nearest = kith_ties_is_nearest, .owner = lane};
  periodic->unfolded = *lattice;
  if (lattice->n == 0)
    return;
  set_sides(lane);
  periodic->one_pass = kith_around_suits(lane->task);
  periodic->image.doubt = kith_lattice_doubt(lattice, limit);
  periodic->ties = periodic->image.doubt < limit;
  if (!periodic->ties && !lattice->skewed)
    choose_folds(lane);
}

void kith_periodic_turn_home(kith_lane *lane) {
  kith_periodic *periodic = &lane->periodic;
  if (!periodic->ties && periodic->image.folds.n == 0)
    return;
  memset(&periodic->turned, 0, sizeof periodic->turned);
  memset(periodic->shift, 0, lane->tile.dim * sizeof *periodic->shift);
  lane->tile.image = &periodic->image;
  if (periodic->ties)
    kith_ties_expect(lane);
}

void kith_periodic_set_up(kith_lane *lane) {
  if (lane->periodic.one_pass)
    kith_around_set_up(lane);
  else
    kith_periodic_cut_folds(lane);
}

/* The box of the tile is one of staged coordinates, and wanted as they were. */
void kith_periodic_cut_folds(kith_lane *lane) {
  if (lane->periodic.image.folds.n == 0 || !lane->filter)
    return;
  kith_lane_find_box(lane);
  kith_folds none = {0};
  kith_cuts_lay(lane, &none, &lane->periodic.image.folds);
}
