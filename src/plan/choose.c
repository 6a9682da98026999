/* Choosing the grid.
 *
 * Dimensions are ranked by variance: cutting the widest ones leaves the fewest candidates (REORDER in the
 * literature). Then the number of dimensions k and the side of the cells are chosen together, by the cost per
 * query that a small sample predicts: how many candidates would be tested and how many runs looked up.
 *
 *   finer cells  fewer candidates, since the stencil follows the ball more closely; more runs
 *   more dims    fewer candidates; (2r + 1) times more runs each
 *
 * Along the rows the window is cut at the reach itself, whatever the cells, so their width there only has to
 * be small beside the reach, or hold a few points. Cost: about a million comparisons, 1 ms of one thread. */
#include "plan/plan.h"

#include "base/team.h"
#include "plan/sample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The sides tried, in units of the reach, and how far the stencil reaches from the middle of a cell. */
static const double SIDES[] = {0.25, 1.0 / 3, 0.5, 1, 2, 4, 8, 16, 64};
static const double HALF_WIDTHS[] = {4.5 / 4, 3.5 / 3, 2.5 / 2, 1.5, 3, 6, 12, 24, 96};
enum { N_SIDES = sizeof SIDES / sizeof *SIDES };

/* Costs in vector instructions, about: measured on the CPU engine. Only ratios matter. */
static const double COST_RUN = 60;        /* finding one run of a tile, */
static const double COST_RUN_COLUMN = 60; /* and per coordinate staging it */
static const double COST_ROW = 160;       /* finding one row of the stencil for a row of cells */
static const double COST_TILE = 600;      /* everything else about a tile */
static const double VECTOR = 16;
static const double TILE_QUERIES = 16;

static const double TIGHT = 0.25;

static const double POINTS_PER_CELL = 4;
static const double MIN_X_SIDE = 1.0 / 8;
static const double MAX_X_SIDE = 0x1p600;

static double stencil_half_width(double side) { return (ceil(1 / side) + 0.5) * side; }

/* counts[k - 1][s]: sampled points that k dimensions of side SIDES[s] leave as candidates, per query. */
typedef struct candidate_counts {
  double counts[KITH_GRID_DIMS][N_SIDES];
  double tight[KITH_GRID_DIMS]; /* those within TIGHT in each of k dimensions: the finest cells accept them
                                   untested */
} candidate_counts;

/* The first side whose stencil holds a difference of u reaches; N_SIDES if none does. Half widths rise, so that
 * is how many of them are too narrow: counted without branches, since there is no telling which it will be. */
static uint32_t side_holding(double u) {
  uint32_t s = 0;
  for (uint32_t i = 0; i < N_SIDES; i++)
    s += u > HALF_WIDTHS[i];
  return s;
}

/* Sampled points that a query has met so far, as a list: which, the side that holds them in all dimensions
 * looked at, and their largest difference there. */
enum { SAMPLE_BLOCK = 512 };
typedef struct met_points {
  uint32_t n;
  uint32_t point[SAMPLE_BLOCK];
  uint32_t side[SAMPLE_BLOCK];
  double widest[SAMPLE_BLOCK];
} met_points;

/* Lists the points [begin, end) within reach of a query in dimension 0. Like the next function it writes first
 * and then keeps or drops what it wrote: branches would be guessed wrong too often. */
static void meet_in_first(const kith_sample *sample, uint32_t q, uint32_t begin, uint32_t end,
                          double inverse_reach, met_points *met) {
  double at = kith_sample_query(sample, q, 0);
  uint32_t n = 0;
  for (uint32_t p = begin; p < end; p++) {
    double u = fabs(at - kith_sample_point(sample, p, 0)) * inverse_reach;
    met->point[n] = p;
    met->side[n] = 0;
    met->widest[n] = u;
    n += !(u > 1);
  }
  met->n = n;
}

/* Goes on to dimension j: drops the points that no side holds there. */
static void meet_in_next(const kith_sample *sample, uint32_t q, uint32_t j, double inverse_reach,
                         met_points *met) {
  double at = kith_sample_query(sample, q, j);
  uint32_t n = 0;
  for (uint32_t i = 0; i < met->n; i++) {
    uint32_t p = met->point[i];
    double u = fabs(at - kith_sample_point(sample, p, j)) * inverse_reach;
    uint32_t holding = side_holding(u);
    uint32_t side = holding > met->side[i] ? holding : met->side[i];
    met->point[n] = p;
    met->side[n] = side;
    met->widest[n] = u > met->widest[i] ? u : met->widest[i];
    n += side < N_SIDES;
  }
  met->n = n;
}

static void count_met(const met_points *met, uint32_t j, candidate_counts *result) {
  uint32_t sides[N_SIDES] = {0};
  uint32_t tight = 0;
  for (uint32_t i = 0; i < met->n; i++) {
    sides[met->side[i]]++;
    tight += met->widest[i] <= TIGHT;
  }
  for (uint32_t s = 0; s < N_SIDES; s++)
    result->counts[j][s] += sides[s];
  result->tight[j] += tight;
}

/* Queries counted together, by all threads: whole batches, so that the result does not depend on their number.
 */
enum { QUERY_BATCH = 8 };
typedef struct query_batch {
  const kith_sample *sample;
  double inverse_reach;
  uint32_t first;
  candidate_counts counts[QUERY_BATCH];
} query_batch;

static void count_query(void *argument, uint64_t i) {
  query_batch *batch = argument;
  const kith_sample *sample = batch->sample;
  double inverse_reach = batch->inverse_reach;
  uint32_t q = batch->first + (uint32_t)i;
  candidate_counts *result = &batch->counts[i];
  memset(result, 0, sizeof *result);
  met_points met = {0}; /* that it is never read before it is written is hard to see */
  for (uint32_t begin = 0; begin < sample->n_points; begin += SAMPLE_BLOCK) {
    uint32_t left = sample->n_points - begin;
    meet_in_first(sample, q, begin, begin + (left < SAMPLE_BLOCK ? left : SAMPLE_BLOCK), inverse_reach, &met);
    count_met(&met, 0, result);
    for (uint32_t j = 1; j < sample->n_dims; j++) {
      meet_in_next(sample, q, j, inverse_reach, &met);
      count_met(&met, j, result);
    }
  }
}

static void add_counts(candidate_counts *sum, const candidate_counts *counts) {
  for (uint32_t j = 0; j < KITH_GRID_DIMS; j++) {
    for (uint32_t s = 0; s < N_SIDES; s++)
      sum->counts[j][s] += counts->counts[j][s];
    sum->tight[j] += counts->tight[j];
  }
}

/* Counts for as many queries as it takes to meet enough sampled points; returns how many. */
static uint32_t count_queries(kith_context *ctx, const kith_sample *sample, double reach,
                              candidate_counts *result) {
  enum { ENOUGH = 30000 };
  query_batch batch = {.sample = sample, .inverse_reach = 1 / reach};
  memset(result, 0, sizeof *result);
  while (batch.first < sample->n_queries && result->counts[0][0] < ENOUGH) {
    uint32_t left = sample->n_queries - batch.first;
    uint32_t n = left < QUERY_BATCH ? left : QUERY_BATCH;
    kith_each(ctx, n, count_query, &batch);
    for (uint32_t i = 0; i < n; i++)
      add_counts(result, &batch.counts[i]);
    batch.first += n;
  }
  return batch.first;
}

/* The box that is cut evenly: that of all points, but without far outliers and heavy tails, which would be most
 * of it. Tells whether there are any. */
static bool choose_box(const kith_question *question, const kith_sample *sample, double *low, double *high) {
  bool tails = false;
  for (uint32_t j = 0; j < sample->n_dims; j++) {
    uint32_t d = sample->dims[j];
    double quartiles[2];
    kith_sample_quartiles(sample, j, quartiles);
    double spread = fmax(quartiles[1] - quartiles[0], 256 * question->predicate->reach);
    if (!(high[d] - low[d] > 128 * spread))
      continue;
    low[d] = fmax(low[d], quartiles[0] - 2 * spread);
    high[d] = fmin(high[d], quartiles[1] + 2 * spread);
    tails = true;
  }
  return tails;
}

/* The extent of the even box in sampled dimension j, in units of the reach. */
static double extent_of(const kith_question *question, const kith_choice *choice, const kith_sample *sample,
                        uint32_t j) {
  uint32_t d = sample->dims[j];
  return (choice->spec.high[d] - choice->spec.low[d]) / question->predicate->reach;
}

/* The share of the even box that a window of a width covers in sampled dimension j. */
static double share(const kith_question *question, const kith_choice *choice, const kith_sample *sample,
                    uint32_t j, double width) {
  double extent = extent_of(question, choice, sample, j);
  return width < extent ? width / extent : 1;
}

/* Candidates per query. Queries are added until enough sampled points were met. Where the sample saw little,
 * what uniform points would give is believed instead: it is at least of the right kind. */
static void count_candidates(kith_context *ctx, const kith_question *question, const kith_choice *choice,
                             const kith_sample *sample, candidate_counts *result) {
  uint32_t queries = count_queries(ctx, sample, question->predicate->reach, result);
  double n = (double)question->candidates->n;
  double scale = queries && sample->n_points ? n / sample->n_points / queries : 0;
  for (uint32_t s = 1; s < N_SIDES; s++)
    result->counts[0][s] = result->counts[0][0];
  for (uint32_t j = 1; j < sample->n_dims; j++)
    for (uint32_t s = 1; s < N_SIDES; s++)
      result->counts[j][s] += result->counts[j][s - 1];
  for (uint32_t j = 0; j < sample->n_dims; j++)
    result->tight[j] *= scale;
  for (uint32_t s = 0; s < N_SIDES; s++) {
    double uniform = n * share(question, choice, sample, 0, 2);
    for (uint32_t j = 0; j < sample->n_dims; j++) {
      if (j > 0)
        uniform *= share(question, choice, sample, j, 2 * HALF_WIDTHS[s]);
      double met = result->counts[j][s];
      double enough = met < 4 ? 0 : fmin(met / 32, 1);
      result->counts[j][s] = enough * met * scale + (1 - enough) * uniform;
    }
  }
}

typedef struct option {
  uint32_t k;
  double side;
  double x_side;
  double candidates; /* per query */
  double cost;       /* per query */
  double tile_length;
} option;

/* The size across a cell of side 1 that cuts all dimensions. */
static double size_across(const kith_question *question) {
  uint32_t dim = question->candidates->dim;
  if (question->slanted > 0) /* two for a group of four directions, one for others */
    return dim / KITH_GROUP * 2 + (dim % KITH_GROUP + 1) / 2;
  kith_norm norm = question->predicate->norm;
  return norm == KITH_NORM_2 ? sqrt(dim) : norm == KITH_NORM_1 ? dim : 1;
}

/* Candidates that cells of a side accept untested, of `tight` ones in all k = dim dimensions: the own cell's if
 * it lies within eps, with the finest sides its neighbours' too. Short runs are tested all the same. */
static double accepted(const kith_question *question, uint32_t k, double side, double tight) {
  enum { FEW = 256 };
  uint32_t dim = question->candidates->dim;
  double across = side * size_across(question);
  if (k < dim || tight < FEW || across >= 1)
    return 0;
  return 2 * across < 1 && side <= TIGHT ? 0.98 * tight : 0.5 * tight;
}

/* Predicts the cost of k dimensions with cells of a side, of which `window` candidates lie in the stencil and
 * `untested` are accepted as they are. */
static option weigh(uint32_t k, double side, double window, double untested, uint32_t dim, double row_length) {
  double runs = pow(2 * ceil(1 / side) + 1, k - 1);
  double per_reach = window / runs / 2; /* points per reach along a row */
  double x_side = fmin(fmax(POINTS_PER_CELL / per_reach, MIN_X_SIDE), MAX_X_SIDE);
  double in_cell = per_reach * x_side;
  double queries = fmin(fmax(in_cell, TILE_QUERIES), 4 * TILE_QUERIES);
  double tile_length = fmax(x_side, queries / per_reach);
  double candidates = fmax(window - untested, 0) * (1 + tile_length / 2);
  double per_row = fmax(per_reach * row_length, 1);
  double cost = candidates / VECTOR * (2 * dim + 3) + candidates / VECTOR * 2 * (dim + 1) / queries +
                runs * (COST_RUN + COST_RUN_COLUMN * dim) / queries + runs * COST_ROW / per_row +
                COST_TILE / queries;
  return (option){.k = k,
                  .side = side,
                  .x_side = x_side,
                  .candidates = candidates,
                  .cost = cost,
                  .tile_length = tile_length};
}

static option best_option(kith_context *ctx, const kith_question *question, const kith_choice *choice,
                          const kith_sample *sample) {
  candidate_counts counted;
  count_candidates(ctx, question, choice, sample, &counted);
  double row_length = extent_of(question, choice, sample, 0);
  option best = {.cost = INFINITY};
  for (uint32_t k = 1; k <= sample->n_dims; k++)
    for (uint32_t s = 0; s < N_SIDES; s++) {
      double side = SIDES[s];
      if (question->index_dims && k != question->index_dims)
        continue;
      if (question->row_side > 0) {
        if (s != side_holding(stencil_half_width(question->row_side) * (1 - 1e-9)) && s != N_SIDES - 1)
          continue;
        side = question->row_side;
      }
      if (pow(2 * ceil(1 / side) + 1, k - 1) > KITH_STENCIL_MAX)
        continue;
      uint32_t dim = question->candidates->dim;
      double untested = accepted(question, k, side, counted.tight[k - 1]);
      option o = weigh(k, side, counted.counts[k - 1][s], untested, dim, row_length);
      if (o.cost < best.cost)
        best = o;
    }
  return best;
}

static void explain(const kith_question *question, kith_choice *choice, const kith_sample *sample, bool tails) {
  const kith_grid_spec *spec = &choice->spec;
  uint32_t dim = question->candidates->dim;
  int at = snprintf(choice->why, sizeof choice->why,
                    "Cut %s: %u of %u, %s: that costs least, at %.3g candidates a query in the sample of %u "
                    "points.\n",
                    question->slanted > 0 ? "directions, sums and differences of columns" : "dimensions",
                    spec->k, dim, question->no_reorder ? "the first ones" : "those of largest variance",
                    choice->candidates, sample->n_points);
  size_t used = at > 0 ? (size_t)at : 0;
  double side = spec->k > 1 ? spec->row_side : spec->x_side; /* there is no row but one */
  if (side < 1)
    at = snprintf(choice->why + used, sizeof choice->why - used,
                  "Cells of eps / %.3g: points are dense, so a stencil close to the ball saves tests.\n",
                  1 / side);
  else if (side > 1)
    at = snprintf(
        choice->why + used, sizeof choice->why - used,
        "Cells of %.3g eps: points are sparse, so fewer look-ups save more than smaller cells would.\n", side);
  else
    at = snprintf(choice->why + used, sizeof choice->why - used,
                  "Cells of eps: finer ones would cost more look-ups than they save tests.\n");
  used += at > 0 ? (size_t)at : 0;
  if (tails && used < sizeof choice->why)
    snprintf(choice->why + used, sizeof choice->why - used,
             "Some points lie far outside: cells widen with the distance there.\n");
}

kith_status kith_choose_grid(kith_context *ctx, const kith_question *question, kith_choice *choice) {
  uint32_t dim = question->candidates->dim;
  uint64_t bytes = 4 * (uint64_t)dim * sizeof(double);
  *choice = (kith_choice){.box = kith_alloc(&ctx->memory, bytes)};
  if (!choice->box)
    return kith_fail_memory(ctx, bytes, "planning");
  double *low = choice->box;
  double *high = low + dim;
  double *min = high + dim;
  double *max = min + dim;
  for (uint32_t d = 0; d < dim; d++) {
    kith_direction along = kith_direction_of(dim, d, question->slanted > 0);
    kith_direction_bounds(&along, question->min, question->max, &min[d], &max[d]);
    low[d] = min[d];
    high[d] = max[d];
  }
  kith_sample sample;
  kith_sample_dims which = {.reorder = !question->no_reorder, .slanted = question->slanted > 0};
  kith_status status = kith_sample_take(ctx, question->queries, question->candidates, which, &sample);
  if (status)
    return status;
  if (question->wrap_into)
    kith_sample_wrap(&sample, question->wrap_into);
  kith_grid_spec *spec = &choice->spec;
  *spec = (kith_grid_spec){
      .slanted = question->slanted, .low = low, .high = high, .min = min, .max = max, .dim = dim};
  memcpy(spec->dims, sample.dims, sizeof spec->dims);
  bool tails = choose_box(question, &sample, low, high);
  option best = best_option(ctx, question, choice, &sample);
  if (!isfinite(best.cost)) /* eps is infinite, or there are no points: one cell will do */
    best = (option){.k = 1, .side = 1, .x_side = 1, .candidates = (double)question->candidates->n};
  spec->k = best.k;
  spec->row_side = best.side;
  spec->x_side = best.x_side;
  if (question->no_sortidu && spec->k > 1) /* cells along the rows no narrower than across them */
    spec->x_side = best.side;
  choice->candidates = best.candidates;
  choice->cost = best.cost;
  choice->tile_length = best.tile_length;
  explain(question, choice, &sample, tails);
  kith_sample_destroy(&sample);
  return KITH_OK;
}
