/* A periodic box in one pass. Where no cells are accepted untested, tiles near the faces of a box without
 * angles meet their candidates beyond the faces together with all others: the cells near a tile go on at the
 * other end of an axis (box_runs.h), and each candidate is met once, in the image that is nearest. So rows come
 * by position, as in open space, and of a set each pair is met once without asking which images it has.
 *
 * The definition folds differences along all axes (kith_fold), the filter cuts them open (cuts.h). */
#ifndef KITH_ENGINE_CPU_AROUND_H
#define KITH_ENGINE_CPU_AROUND_H

#include "engine/cpu/lane.h"

/* Whether the tiles of a task are met like this. */
bool kith_around_suits(const kith_task *task);

/* Sets up the staged tile of a lane: whether it reaches around the box, and how candidates are staged. */
void kith_around_set_up(kith_lane *lane);

#endif
