/* The plan: what will run and why, before it runs.
 *
 * choose.c   looks at a sample of the points and chooses the grid
 * estimate.c runs a sample of the queries and predicts size and time
 *
 * Nothing here depends on the instruction set or the number of threads, so the same input is always indexed,
 * and its rows ordered, in the same way. May include index, space, points; estimate also engine. */
#ifndef KITH_PLAN_PLAN_H
#define KITH_PLAN_PLAN_H

#include "index/grid.h"
#include "points/points.h"

/* The inputs of a choice. */
typedef struct kith_question {
  const kith_points *queries;
  const kith_points *candidates; /* the same view when a set is joined with itself */
  const kith_predicate *predicate;
  const double *min, *max; /* the box around both sets, per dimension */
  uint32_t index_dims;     /* 0: choose */
  double row_side;         /* 0: choose */
} kith_question;

typedef struct kith_choice {
  kith_grid_spec spec; /* low and high point into `box` */
  double *box;         /* 2 * dim: release with kith_free */
  double candidates;   /* per query, expected */
  char why[1024];
} kith_choice;

kith_status kith_choose_grid(kith_context *ctx, const kith_question *question, kith_choice *choice);

#endif
