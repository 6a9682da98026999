/* Grid, or epsilon grid order? See plan.h.
 *
 * Both test what lies within reach of the box around a tile. In the order, the box is one cell wide in as many
 * dimensions, the most selective first, as leave a tile's worth of points; in the next one it takes a share of
 * them; in the others it has no bounds. In the grid it is a cell across the rows, and some way along them. So
 * some queries of a sample, with a box of each kind around them, tell how many points either would test; costs
 * are in vector instructions a query.
 *
 * The order finds runs by descent where the grid looks up all rows of a stencil: it pays where these are many,
 * in five dimensions and more. Joins that a grid does cheaply are not looked at. */
#include "plan/plan.h"

#include "base/team.h"
#include "plan/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in choose.c, measured on the CPU engine. */
static const double VECTOR = 16;
static const double TILE_QUERIES = 36;
static const double TILE_SPAN = 110;   /* points whose box is about that of a tile, which may end anywhere */
static const double COST_TILE = 2500;  /* cutting a tile, and the upper part of the descent */
static const double COST_BLOCK = 60;   /* finding a block of candidates, */
static const double BLOCK_POINTS = 96; /* of so many */
static const double FITTED = 1.25;     /* what it takes beside the grid, for what all this says */
static const double CHEAP = 2000;      /* a grid that costs less is not beaten, */
static const double SURE = 0.9;        /* nor one that does not cost clearly more */

/* Values of a dimension in order, of some sampled points. */
enum { RANKED = 1024 };

typedef struct trial {
  kith_context *ctx;
  const kith_question *question;
  const kith_choice *grid;
  kith_sample sample;
  uint32_t n_dims;
  uint32_t ranked[KITH_GRID_DIMS]; /* the sampled dimensions, the most selective first */
  uint32_t n_values;
  double (*values)[RANKED]; /* by sampled dimension */
} trial;

/* Bounds by sampled dimension. */
typedef struct bounds {
  double low[KITH_GRID_DIMS], high[KITH_GRID_DIMS];
} bounds;

/* ---- the order of the dimensions ---- */

static void sort_values(trial *t) {
  const kith_sample *sample = &t->sample;
  uint32_t n = t->n_values = sample->n_points < RANKED ? sample->n_points : RANKED;
  for (uint32_t j = 0; j < sample->n_dims; j++) {
    for (uint32_t i = 0; i < n; i++)
      t->values[j][i] = kith_sample_point(sample, (uint32_t)((uint64_t)i * sample->n_points / n), j);
    qsort(t->values[j], n, sizeof **t->values, kith_compare_doubles);
  }
}

/* The share of the pairs of points that lie within `width` of each other in a dimension: what cutting it
 * leaves.
 */
static double share_left(const trial *t, uint32_t j, double width) {
  const double *values = t->values[j];
  uint64_t pairs = 0;
  for (uint32_t i = 0, begin = 0; i < t->n_values; i++) {
    while (values[i] - values[begin] > width)
      begin++;
    pairs += i - begin;
  }
  return t->n_values > 1 ? (double)pairs / (0.5 * t->n_values * (t->n_values - 1)) : 1;
}

/* The most selective dimension first; among equals, that of larger variance. */
static void rank_dimensions(trial *t) {
  double shares[KITH_GRID_DIMS] = {0};
  t->n_dims = t->sample.n_dims;
  for (uint32_t j = 0; j < t->n_dims; j++) {
    double share = t->question->no_reorder ? 1 : share_left(t, j, 1.5 * t->question->predicate->reach);
    uint32_t at = j;
    for (; at > 0 && shares[at - 1] > share; at--) {
      shares[at] = shares[at - 1];
      t->ranked[at] = t->ranked[at - 1];
    }
    shares[at] = share;
    t->ranked[at] = j;
  }
}

/* ---- boxes of tiles ---- */

static void unbound(bounds *box) {
  for (uint32_t j = 0; j < KITH_GRID_DIMS; j++) {
    box->low[j] = -INFINITY;
    box->high[j] = INFINITY;
  }
}

/* Bounds dimension j by the cell of a query. */
static void bound_by_cell(const trial *t, uint32_t q, uint32_t j, double side, bounds *box) {
  double origin = t->question->min[t->sample.dims[j]];
  double x = kith_sample_query(&t->sample, q, j);
  double cell = floor((x - origin) / side);
  bool narrow = !(cell < 0x1p52); /* than the rounding of coordinates */
  box->low[j] = narrow ? x : origin + cell * side;
  box->high[j] = narrow ? x : box->low[j] + side;
}

static uint32_t rank_of(const trial *t, uint32_t j, double value) {
  uint32_t low = 0;
  uint32_t high = t->n_values;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (t->values[j][middle] < value)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Bounds dimension j so that a share of the points lies within, around a query. */
static void bound_by_share(const trial *t, uint32_t q, uint32_t j, double share, bounds *box) {
  uint32_t rank = rank_of(t, j, kith_sample_query(&t->sample, q, j));
  uint32_t half = (uint32_t)(share * t->n_values / 2);
  uint32_t last = t->n_values - 1;
  box->low[j] = fmin(box->low[j], t->values[j][rank > half ? rank - half : 0]);
  box->high[j] = fmax(box->high[j], t->values[j][rank + half < last ? rank + half : last]);
}

/* The share of all points within the bounds of dimension j. */
static double share_within(const trial *t, uint32_t j, const bounds *box) {
  double n = rank_of(t, j, box->high[j]) - (double)rank_of(t, j, box->low[j]);
  return fmax(n, 0.5) / t->n_values;
}

/* The box of a tile in epsilon grid order: cells, until few enough points are left. */
static void bound_in_order(const trial *t, uint32_t q, bounds *box) {
  double left = (double)t->question->candidates->n;
  unbound(box);
  for (uint32_t i = 0; i < t->n_dims && left > TILE_SPAN; i++) {
    uint32_t j = t->ranked[i];
    bound_by_cell(t, q, j, t->question->predicate->reach, box);
    double share = share_within(t, j, box);
    if (left * share < TILE_SPAN)
      bound_by_share(t, q, j, TILE_SPAN / left, box);
    left *= share;
  }
}

/* And in the grid: sampled dimensions are those of the grid, by variance. */
static void bound_in_grid(const trial *t, uint32_t q, bounds *box) {
  const kith_grid_spec *spec = &t->grid->spec;
  double reach = t->question->predicate->reach;
  double half = t->grid->tile_length * reach / 2;
  double x = kith_sample_query(&t->sample, q, 0);
  unbound(box);
  box->low[0] = x - half;
  box->high[0] = x + half;
  for (uint32_t j = 1; j < spec->k; j++)
    bound_by_cell(t, q, j, spec->row_side * reach, box);
}

/* ---- costs ---- */

/* Points near boxes, per query. */
typedef struct near_points {
  double tested; /* within reach of the box */
  double sifted; /* within a cell of it in every dimension: looked at before that */
} near_points;

/* Points near the boxes of all queries, which threads share. */
typedef struct near_search {
  const trial *trial;
  void (*bound)(const trial *t, uint32_t q, bounds *box);
  near_points found[KITH_SAMPLE_QUERIES];
} near_search;

/* Gaps between a box and a block of sampled points: one dimension after the other, in loops that the compiler
 * turns into vectors. */
enum { BLOCK = 256 };
typedef struct gap_block {
  double size[BLOCK], widest[BLOCK];
} gap_block;

static void add_gaps(kith_norm norm, const double *values, uint32_t n, double low, double high,
                     gap_block *gaps) {
  for (uint32_t i = 0; i < n; i++) {
    double below = low - values[i];
    double above = values[i] - high;
    double gap = below > above ? below : above;
    gap = gap > 0 ? gap : 0;
    gaps->size[i] = kith_norm_add(norm, gaps->size[i], gap);
    gaps->widest[i] = gap > gaps->widest[i] ? gap : gaps->widest[i];
  }
}

static near_points find_near(const trial *t, const bounds *box) {
  near_points near = {0};
  const kith_sample *sample = &t->sample;
  const kith_predicate *predicate = t->question->predicate;
  double limit = kith_norm_size(predicate->norm, predicate->reach);
  for (uint32_t begin = 0; begin < sample->n_points; begin += BLOCK) {
    uint32_t n = sample->n_points - begin < BLOCK ? sample->n_points - begin : BLOCK;
    gap_block gaps = {0};
    for (uint32_t j = 0; j < sample->n_dims; j++)
      if (isfinite(box->low[j])) /* else it has no bounds there */
        add_gaps(predicate->norm, sample->points + (size_t)j * sample->n_points + begin, n, box->low[j],
                 box->high[j], &gaps);
    for (uint32_t i = 0; i < n; i++) {
      bool sifted = gaps.widest[i] <= predicate->reach;
      near.sifted += sifted;
      near.tested += sifted && gaps.size[i] <= limit;
    }
  }
  return near;
}

static void search_query(void *argument, uint64_t q) {
  near_search *search = argument;
  bounds box;
  search->bound(search->trial, (uint32_t)q, &box);
  search->found[q] = find_near(search->trial, &box);
}

static near_points count_near(const trial *t, void (*bound)(const trial *t, uint32_t q, bounds *box)) {
  near_points sum = {0};
  const kith_sample *sample = &t->sample;
  near_search search = {.trial = t, .bound = bound};
  kith_each(t->ctx, sample->n_queries, search_query, &search);
  for (uint32_t q = 0; q < sample->n_queries; q++) {
    sum.tested += search.found[q].tested;
    sum.sifted += search.found[q].sifted;
  }
  double scale = (double)t->question->candidates->n / sample->n_points / sample->n_queries;
  return (near_points){.tested = sum.tested * scale, .sifted = sum.sifted * scale};
}

static double cost_of_tests(const trial *t, double tested) {
  return tested / VECTOR * (2 * t->question->candidates->dim + 3);
}

static double cost_in_order(const trial *t, near_points near) {
  double sieve = near.sifted / VECTOR * (7 * t->question->candidates->dim + 2);
  double blocks = near.sifted / BLOCK_POINTS * COST_BLOCK;
  return cost_of_tests(t, near.tested) + (sieve + blocks + COST_TILE) / TILE_QUERIES;
}

/* The grid's own estimate, with the tests that the sieve leaves. */
static double cost_in_grid(const trial *t, near_points near) {
  double found = t->grid->cost - cost_of_tests(t, t->grid->candidates);
  return cost_of_tests(t, fmin(near.tested, t->grid->candidates)) + fmax(found, 0);
}

/* Weighs one against the other. */
static void weigh(const trial *t, kith_ego_choice *choice) {
  if (t->sample.n_points == 0 || t->sample.n_queries == 0)
    return;
  near_points order = count_near(t, bound_in_order);
  choice->candidates = order.tested;
  choice->cost = FITTED * cost_in_order(t, order);
  choice->grid_cost = cost_in_grid(t, count_near(t, bound_in_grid));
  choice->ego = choice->cost < SURE * choice->grid_cost;
}

static void explain(const trial *t, bool asked, kith_ego_choice *choice) {
  int at = snprintf(
      choice->why, sizeof choice->why,
      "Points are in epsilon grid order (Super-EGO), the most selective of %u dimensions first: ", t->n_dims);
  if (asked)
    snprintf(choice->why + at, sizeof choice->why - (size_t)at, "that was asked for.\n");
  else
    snprintf(choice->why + at, sizeof choice->why - (size_t)at,
             "at %.3g candidates a query in the sample it costs %.2g of what a grid would.\n",
             choice->candidates, choice->cost / choice->grid_cost);
}

static void choose(trial *t, bool asked, kith_ego_choice *choice) {
  sort_values(t);
  rank_dimensions(t);
  if (!asked)
    weigh(t, choice);
  choice->n_dims = t->n_dims;
  for (uint32_t i = 0; i < t->n_dims; i++)
    choice->dims[i] = t->sample.dims[t->ranked[i]];
  explain(t, asked, choice);
}

kith_status kith_choose_ego(kith_context *ctx, const kith_question *question, const kith_choice *grid,
                            bool asked, kith_ego_choice *choice) {
  *choice = (kith_ego_choice){.ego = asked};
  if (!asked && (grid->cost < CHEAP || question->candidates->dim > KITH_GRID_DIMS))
    return KITH_OK;
  trial t = {.ctx = ctx, .question = question, .grid = grid};
  kith_sample_dims which = {.reorder = !question->no_reorder};
  kith_status status = kith_sample_take(ctx, question->queries, question->candidates, which, &t.sample);
  if (status)
    return status;
  t.values = kith_alloc(&ctx->memory, KITH_GRID_DIMS * sizeof *t.values);
  if (t.values)
    choose(&t, asked, choice);
  else
    status = kith_fail_memory(ctx, KITH_GRID_DIMS * sizeof *t.values, "planning");
  kith_free(t.values);
  kith_sample_destroy(&t.sample);
  return status;
}
