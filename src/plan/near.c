/* Volumes: see near.h. */
#include "plan/near.h"

#include <string.h>

/* The volume of the unit ball in some of the dimensions, as bits. Along directions that of a group is a cube,
 * and groups share a size of 1. */
static double ball_volume(kith_size_rule rule, uint32_t dims) {
  static const double BALLS[][KITH_GRID_DIMS + 1] = {
      [KITH_NORM_2] = {1, 2, 3.1416, 4.1888, 4.9348, 5.2638, 5.1677, 4.7248, 4.0587},
      [KITH_NORM_1] = {1, 2, 2, 1.3333, 0.66667, 0.26667, 0.088889, 0.025397, 0.0063492},
      [KITH_NORM_MAX] = {1, 2, 4, 8, 16, 32, 64, 128, 256}};
  if (!rule.slanted)
    return BALLS[rule.norm][__builtin_popcount(dims)];
  double volume = 1;
  uint32_t in_group[KITH_GRID_DIMS] = {0};
  uint32_t in_all = 0;
  for (uint32_t j = 0; j < KITH_GRID_DIMS; j++)
    if (dims >> j & 1)
      volume *= 2.0 * ++in_group[kith_rule_group(rule, j)] / ++in_all;
  return volume;
}

void kith_ball_volumes(kith_size_rule rule, uint32_t k, double *balls) {
  double choices[KITH_GRID_DIMS + 1] = {0};
  memset(balls, 0, (k + 1) * sizeof *balls);
  for (uint32_t dims = 0; dims < UINT32_C(1) << k; dims++) {
    int m = __builtin_popcount(dims);
    balls[m] += ball_volume(rule, dims);
    choices[m]++;
  }
  for (uint32_t m = 0; m <= k; m++)
    balls[m] /= choices[m];
}

double kith_volume_near(const double *balls, uint32_t k, double side, double length) {
  double products[KITH_GRID_DIMS + 1] = {1}; /* elementary symmetric polynomials of the sides */
  for (uint32_t j = 0; j < k; j++)
    for (uint32_t m = j + 1; m >= 1; m--)
      products[m] += products[m - 1] * (j == 0 ? length : side);
  double near = 0;
  for (uint32_t m = 0; m <= k; m++)
    near += balls[m] * products[k - m];
  return near;
}
