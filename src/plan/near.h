/* How many points lie within reach of a tile: volumes by Steiner's formula, for what predicts the cost of a
 * grid.
 *
 * May include index. The planner of the CUDA engine includes it. */
#ifndef KITH_PLAN_NEAR_H
#define KITH_PLAN_NEAR_H

#include "index/grid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How sizes add up: in a norm, along columns, or in norm 1 along the directions of so many columns. (Dimension
 * j of a grid is taken for direction j: which ones are cut matters little for a prediction.) */
typedef struct kith_size_rule {
  kith_norm norm;
  uint32_t slanted; /* columns; 0: dimensions are columns */
} kith_size_rule;

/* The group of dimension j: of directions its first one, else the dimension itself. */
static inline uint32_t kith_rule_group(kith_size_rule rule, uint32_t j) {
  return rule.slanted ? kith_group_begin(rule.slanted, j) : j;
}

/* balls[m], m <= k: the volume of what is within 1 of a point, in m of the first k dimensions, on average. */
void kith_ball_volumes(kith_size_rule rule, uint32_t k, double *balls);

/* The volume of what is within 1 of a box of `side` in k - 1 dimensions and of `length` in another. */
double kith_volume_near(const double *balls, uint32_t k, double side, double length);

#ifdef __cplusplus
}
#endif
#endif
