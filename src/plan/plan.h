/* The plan: what will run and why, before it runs.
 *
 * choose.c          looks at a sample of the points and chooses the grid
 * ego.c             decides whether to put points in epsilon grid order instead, and by which dimensions
 * grid_or_panels.c  decides whether to join all with all instead, and in what order
 * estimate.c        runs a sample of the queries and predicts size and time
 *
 * Nothing here depends on the instruction set or the number of threads, so the same input is always indexed,
 * and its rows ordered, in the same way. May include index, space, points; estimate also engine. */
#ifndef KITH_PLAN_PLAN_H
#define KITH_PLAN_PLAN_H

#include "index/grid.h"
#include "index/sketch.h"
#include "space/lattice.h"

/* The inputs of a choice. */
typedef struct kith_question {
  const kith_points *queries;
  const kith_points *candidates; /* the same view when a set is joined with itself */
  const kith_predicate *predicate;
  const double *min, *max;       /* the box around both sets, per dimension */
  const kith_lattice *wrap_into; /* its brick is where points are to be wrapped; NULL: they lie there */
  double slanted;      /* of the grid (index/grid.h): its dimensions are to be directions; 0: columns */
  uint32_t index_dims; /* 0: choose */
  double row_side;     /* 0: choose */
  /* For experiments: see kith_join_options. */
  bool brute, no_reorder, no_sortidu;
} kith_question;

typedef struct kith_choice {
  kith_grid_spec spec; /* its boxes are in `box` */
  double *box;         /* 4 * dim: release with kith_free */
  double candidates;   /* per query, expected */
  double cost;         /* per query, in vector instructions */
  double tile_length;  /* along the rows, in units of the reach, expected */
  char why[1024];
} kith_choice;

kith_status kith_choose_grid(kith_context *ctx, const kith_question *question, kith_choice *choice);

/* Epsilon grid order (index/ego.h): whether, and how. */
typedef struct kith_ego_choice {
  bool ego;
  uint32_t n_dims;
  uint32_t dims[KITH_GRID_DIMS]; /* the most selective first */
  double candidates;             /* per query, expected, unless it was asked for; */
  double cost, grid_cost;        /* per query, likewise, with it and with the grid */
  char why[1024];
} kith_ego_choice;

/* Chooses between the grid and that order, unless it is asked for. */
kith_status kith_choose_ego(kith_context *ctx, const kith_question *question, const kith_choice *grid,
                            bool asked, kith_ego_choice *choice);

/* All with all: whether, and how. */
typedef struct kith_brute_choice {
  bool brute;
  uint32_t split, groups; /* of the sketch that orders the points (index/sketch.h); 0: they stay as they are */
  double share;           /* of the panels that a panel meets, expected */
  char why[1024];
} kith_brute_choice;

/* Chooses between the grid and joining all with all, for points whose columns are taken in this order. `group`
 * points make a panel. */
kith_status kith_choose_brute(kith_context *ctx, const kith_question *question, const kith_choice *grid,
                              const uint32_t *columns, uint32_t group, kith_brute_choice *choice);

/* What a sketch orders points by, in words. */
enum { KITH_ORDER_TEXT = 80 };
void kith_describe_order(uint32_t split, uint32_t groups, bool reorder, char text[KITH_ORDER_TEXT]);

#endif
