/* Grid, or all with all? See plan.h.
 *
 * In many dimensions the grid leaves most points as candidates, since it can cut few of them. Then it is faster
 * to join panels of points that lie close together with all panels whose boxes are not too far away, by a
 * kernel that has nothing to look up: one instruction a column, where a test of the grid takes two and a half.
 *
 * How many panels are passed over is found by doing it to a sample: put in order for each number of columns,
 * with panels as small as the sample is smaller than the set, and boxes compared with boxes. That is the
 * paper's choice of k (search against distances) with panels for cells. Costs are in vector instructions a
 * query. */
#include "plan/plan.h"

#include "index/halve.h"
#include "plan/sample.h"

#include <stdio.h>
#include <string.h>

enum { SAMPLE = 4096, BOXES = 32, FEWEST = 4 };

static const double VECTOR = 16;
static const double GRID_TEST =
    2.5; /* instructions of the grid's kernels, as its plan counts them, for one here */
static const double TEST_EXTRA = 5; /* a test beyond its columns: half norms, the largest sum */
static const double HOPELESS =
    0.97; /* a sketch that leaves more than this of the panels: others will not help */
static const double BOX_COLUMN = 5; /* comparing a box with a vector of boxes, per dimension */

/* A sample in the order of its sketch. */
typedef struct trial {
  const kith_question *question;
  kith_sketch sketch;
  float reach;
  uint32_t n;     /* points drawn */
  uint32_t panel; /* points of a panel; */
  uint32_t group; /* as many of those drawn stand for it */
  uint64_t *rows;
  float *values; /* [KITH_SKETCH_DIMS][n] */
  uint32_t *order;
  float *low, *high; /* [n_boxes][KITH_SKETCH_DIMS] */
  double share;      /* of the panels that a panel met, and */
  double cost;       /* what that costs, with the last sketch; */
  double least;      /* with the best */
} trial;

static void draw_rows(trial *t, uint32_t wanted) {
  const kith_points *points = t->question->candidates;
  uint64_t strata = points->n < wanted ? points->n : wanted;
  for (uint64_t i = 0; i < strata; i++) {
    uint64_t row = kith_sample_row(i, strata, points->n);
    if (kith_points_is_valid(points, row))
      t->rows[t->n++] = row;
  }
}

/* The range of more points is wider. A box around t->group points is widened to what `t->panel` of them would
 * have, if they were uniform. */
static void bound_group(const trial *t, uint32_t box) {
  double wider = (t->panel - 1.0) / (t->panel + 1) * (t->group + 1.0) / (t->group - 1);
  uint32_t end = (box + 1) * t->group < t->n ? (box + 1) * t->group : t->n;
  for (uint32_t d = 0; d < kith_sketch_dims(&t->sketch); d++) {
    float low = INFINITY;
    float high = -INFINITY;
    for (uint32_t i = box * t->group; i < end; i++) {
      float x = t->values[(size_t)d * t->n + t->order[i]];
      low = x < low ? x : low;
      high = x > high ? x : high;
    }
    float more = (float)((wider - 1) / 2) * (high - low);
    t->low[box * KITH_SKETCH_DIMS + d] = low - more;
    t->high[box * KITH_SKETCH_DIMS + d] = high + more;
  }
}

static kith_sketch_box box_of(const trial *t, uint32_t box) {
  size_t at = (size_t)box * KITH_SKETCH_DIMS;
  return (kith_sketch_box){.low = t->low + at, .high = t->high + at, .stride = 1};
}

static bool boxes_meet(const trial *t, uint32_t a, uint32_t b) {
  return kith_sketch_gap(t->sketch.norm, box_of(t, a), box_of(t, b), kith_sketch_dims(&t->sketch)) <= t->reach;
}

/* Finds the share of the panels that a panel meets. */
static kith_status try_sketch(kith_context *ctx, trial *t) {
  for (uint32_t i = 0; i < t->n; i++)
    kith_sketch_point(&t->sketch, t->question->candidates, t->rows[i], t->values + i, t->n);
  kith_status status = kith_halve(ctx, t->values, t->n, kith_sketch_dims(&t->sketch), t->n, t->group, t->order);
  if (status)
    return status;
  uint32_t n_boxes = (t->n + t->group - 1) / t->group;
  for (uint32_t box = 0; box < n_boxes; box++)
    bound_group(t, box);
  uint32_t queries = n_boxes < BOXES ? n_boxes : BOXES;
  uint64_t met = 0;
  for (uint32_t q = 0; q < queries; q++)
    for (uint32_t box = 0; box < n_boxes; box++)
      met += boxes_meet(t, (uint32_t)((uint64_t)q * n_boxes / queries), box);
  t->share = queries ? (double)met / ((double)queries * n_boxes) : 1;
  return KITH_OK;
}

/* The cost of a query that meets a share of the panels. Marks take two instructions for 8 columns of half a
 * vector. */
static double cost_of(const trial *t, double share, uint32_t box_dims) {
  double n = (double)t->question->candidates->n;
  double columns = t->sketch.norm == KITH_NORM_2 ? t->sketch.dim : 4 * ceil(t->sketch.dim / 8.0);
  double tests = share * n / VECTOR * (columns + TEST_EXTRA);
  return tests + n / t->panel / VECTOR * BOX_COLUMN * box_dims / t->panel;
}

/* Tries one sketch; keeps it if it is the cheapest so far. */
static kith_status try_one(kith_context *ctx, trial *t, uint32_t split, uint32_t groups,
                           kith_brute_choice *choice) {
  t->sketch.split = split;
  t->sketch.groups = t->question->no_sortidu ? 0 : groups;
  kith_status status = try_sketch(ctx, t);
  if (status)
    return status;
  t->cost = cost_of(t, t->share, kith_sketch_dims(&t->sketch));
  if (t->cost < 0.95 * t->least || t->question->brute) {
    t->least = t->cost;
    choice->split = split;
    choice->groups = t->sketch.groups;
    choice->share = t->share;
  }
  return KITH_OK;
}

/* More and more dimensions of one kind, until it gets worse. */
static kith_status try_series(kith_context *ctx, trial *t, bool columns, kith_brute_choice *choice) {
  static const uint32_t COLUMNS[] = {1, 2, 3, 4, 6, 8};
  static const uint32_t GROUPS[] = {2, 3, 4};
  uint32_t n = columns ? sizeof COLUMNS / sizeof *COLUMNS : sizeof GROUPS / sizeof *GROUPS;
  double least = INFINITY;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t split = columns ? COLUMNS[i] : 0;
    if (split > t->sketch.dim)
      break;
    kith_status status = try_one(ctx, t, split, columns ? 1 : GROUPS[i], choice);
    if (status || t->cost > 1.1 * least || t->share > HOPELESS)
      return status;
    least = t->cost < least ? t->cost : least;
  }
  return KITH_OK;
}

static kith_status try_sketches(kith_context *ctx, trial *t, kith_brute_choice *choice) {
  if (t->question->index_dims)
    return try_one(ctx, t, t->question->index_dims, 1, choice);
  kith_status status = try_series(ctx, t, true, choice);
  return status || t->question->no_sortidu ? status : try_series(ctx, t, false, choice);
}

void kith_describe_order(uint32_t split, uint32_t groups, bool reorder, char text[KITH_ORDER_TEXT]) {
  if (split == 0)
    snprintf(text, KITH_ORDER_TEXT, "the norms of %u groups of columns", groups);
  else
    snprintf(text, KITH_ORDER_TEXT, "%u column%s%s%s", split, split == 1 ? "" : "s",
             reorder ? " of largest variance" : "", groups ? " and the norm of the others" : "");
}

static void explain(const trial *t, const kith_choice *grid, kith_brute_choice *choice) {
  int at = snprintf(choice->why, sizeof choice->why, "All points are joined with all, in panels: ");
  size_t used = at > 0 ? (size_t)at : 0;
  if (t->question->brute)
    at = snprintf(choice->why + used, sizeof choice->why - used, "that was asked for.\n");
  else
    at = snprintf(
        choice->why + used, sizeof choice->why - used,
        "a grid over %u of %u dimensions would leave %.3g %% of the points as candidates, at %.3g times "
        "the cost.\n",
        grid->spec.k, t->sketch.dim, 100 * fmin(grid->candidates / (double)t->question->candidates->n, 1),
        GRID_TEST * grid->cost / t->least);
  used += at > 0 ? (size_t)at : 0;
  if (used >= sizeof choice->why)
    return;
  char order[KITH_ORDER_TEXT];
  kith_describe_order(choice->split, choice->groups, !t->question->no_reorder, order);
  if (choice->split || choice->groups)
    snprintf(choice->why + used, sizeof choice->why - used,
             "Points are ordered by %s: a panel then meets %.2g of the panels in a sample of %u points.\n",
             order, choice->share, t->n);
  else
    snprintf(choice->why + used, sizeof choice->why - used, "They stay in the order of the input%s.\n",
             t->question->brute ? "" : ": no order would leave panels far enough apart");
}

static kith_status allocate(kith_context *ctx, trial *t) {
  kith_memory *memory = &ctx->memory;
  uint64_t floats = (uint64_t)SAMPLE * KITH_SKETCH_DIMS * sizeof(float);
  t->rows = kith_alloc(memory, SAMPLE * sizeof *t->rows);
  t->order = kith_alloc(memory, SAMPLE * sizeof *t->order);
  t->values = kith_alloc(memory, floats);
  t->low = kith_alloc(memory, floats);
  t->high = kith_alloc(memory, floats);
  if (!t->rows || !t->order || !t->values || !t->low || !t->high)
    return kith_fail_memory(ctx, 3 * floats, "planning");
  return KITH_OK;
}

/* As many points as make whole groups that stand for panels, if that is not too many. */
static void size_sample(trial *t) {
  uint64_t panels = (t->question->candidates->n + t->panel - 1) / t->panel;
  uint64_t size = panels ? SAMPLE / panels : SAMPLE;
  t->group = size < FEWEST ? FEWEST : size > t->panel ? t->panel : (uint32_t)size;
  uint64_t wanted = panels * t->group;
  draw_rows(t, wanted < SAMPLE ? (uint32_t)wanted : SAMPLE);
}

kith_status kith_choose_brute(kith_context *ctx, const kith_question *question, const kith_choice *grid,
                              const uint32_t *columns, uint32_t group, kith_brute_choice *choice) {
  uint32_t dim = question->candidates->dim;
  *choice = (kith_brute_choice){.brute = question->brute, .share = 1};
  trial t = {.question = question,
             .panel = group,
             .sketch = {.norm = question->predicate->norm,
                        .dim = dim,
                        .columns = columns,
                        .low = question->min,
                        .high = question->max}};
  t.reach = kith_sketch_reach(&t.sketch, question->predicate);
  t.least = cost_of(&t, 1, 0);
  bool wants_order = isfinite(t.reach) && (!question->brute || question->index_dims);
  kith_status status = allocate(ctx, &t);
  if (!status && wants_order) {
    size_sample(&t);
    status = try_sketches(ctx, &t, choice);
  }
  if (!status && !question->brute)
    choice->brute = t.least < GRID_TEST * grid->cost;
  if (!status)
    explain(&t, grid, choice);
  kith_free(t.rows);
  kith_free(t.order);
  kith_free(t.values);
  kith_free(t.low);
  kith_free(t.high);
  return status;
}
