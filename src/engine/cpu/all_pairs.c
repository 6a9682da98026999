/* Joining all with all: see all_pairs.h.
 *
 * Of one set, every pair of points is tested once: a panel meets itself and the panels behind it. Rows of a
 * table, when they are filled in place, are the exception: there every ordered pair is tested, since a piece of
 * work may write only its own rows. Candidates come in chunks that fit the second-level cache, each for all
 * panels of a piece of work. */
#include "engine/cpu/all_pairs.h"

#include "engine/cpu/row.h"

#include <string.h>

enum { CHUNK_BYTES = 512 << 10, CHUNK_PANELS = 1024 };

typedef struct brute_lane {
  kith_panel_hit hits[KITH_PANEL_HITS];
  uint32_t met[CHUNK_PANELS];
  uint32_t *next[KITH_PANEL]; /* where the rows of the panel's queries go on: KITH_DO_FILL */
  kith_panels window;         /* one panel: the queries of a window of ids */
} brute_lane;

typedef struct brute_engine {
  kith_engine base;
  const kith_context *ctx;
  kith_brute_task task;
  const kith_panel_kernels *kernels;
  brute_lane *lanes;
  const kith_kernel_table *table; /* to put rows in order */
  uint32_t chunk;                 /* panels */
  kith_mark_limits mark_limits;   /* norms 1 and max */
  bool quick;                     /* sizes may be computed in any order before the definition is asked */
} brute_engine;

/* One panel of queries on its way through the candidates. */
typedef struct visit {
  const brute_engine *engine;
  brute_lane *lane;
  uint32_t lane_number;
  const kith_work *work;
  kith_tally *tally;
  const kith_panels *queries; /* the task's, or the lane's window */
  uint32_t panel;
  uint32_t first, end; /* queries of the panel */
  bool once;           /* one set, every pair tested once */
} visit;

/* ---- which pairs belong ---------------------------------------------------------------------------------- */

static const char *row_at(const kith_points *points, uint64_t row) {
  return (const char *)points->data + (int64_t)row * points->row_stride;
}

/* Whether a pair belongs. Sums in any order are within 2^-39 of the definition's (docs/exactness.md), and are
 * asked first: the definition adds one number after the other. */
static bool pair_belongs(const brute_engine *engine, uint32_t id, uint32_t other) {
  const kith_brute_task *task = &engine->task;
  double limit = task->predicate->limit;
  kith_norm norm = task->predicate->norm;
  if (engine->quick) {
    double size = engine->kernels->size(&(kith_row_pair){.norm = norm,
                                                         .is_f64 = task->a->dtype == KITH_F64,
                                                         .a = row_at(task->a, id),
                                                         .b = row_at(task->b, other),
                                                         .dim = task->a->dim});
    if (size < limit * (1 - 0x1p-38))
      return true;
    if (size > limit * (1 + 0x1p-38))
      return false;
  }
  return kith_definition(norm, task->a, id, task->b, other) <= limit;
}

/* Whether rows lie as kernels need them, and sizes close to the limit do not underflow. */
static bool may_be_quick(const kith_brute_task *task) {
  int64_t width = task->a->dtype == KITH_F32 ? sizeof(float) : sizeof(double);
  return task->predicate->filter && task->a->dtype == task->b->dtype && task->a->col_stride == width &&
         task->b->col_stride == width;
}

/* ---- what becomes of hits ------------------------------------------------------------------------------ */

/* The candidates of a hit that come behind its query, in a panel that meets itself. */
static uint32_t behind(const kith_panel_hit *hit) {
  if (hit->first > hit->query)
    return UINT32_MAX;
  uint32_t before = hit->query - hit->first + 1;
  return before < 32 ? UINT32_MAX << before : 0;
}

/* The candidates of a hit that belong, and that this visit is to report. Padding is never sure. */
static uint32_t settle(const visit *v, const kith_panel_hit *hit, uint32_t candidates) {
  const kith_brute_task *task = &v->engine->task;
  uint32_t mask = v->once && candidates == v->panel ? behind(hit) : UINT32_MAX;
  uint32_t belongs = hit->sure & mask;
  uint32_t undecided = hit->near & ~hit->sure & mask;
  uint32_t id = v->queries->ids[(size_t)v->panel * KITH_PANEL + hit->query];
  const uint32_t *ids = task->candidates->ids + (size_t)candidates * KITH_PANEL + hit->first;
  for (; undecided; undecided &= undecided - 1) {
    uint32_t i = (uint32_t)__builtin_ctz(undecided);
    if (ids[i] != UINT32_MAX && pair_belongs(v->engine, id, ids[i]))
      belongs |= UINT32_C(1) << i;
  }
  return belongs;
}

/* Pieces of work share the degrees of the candidates. Hits are few beside tests, so that this costs nothing. */
static void add_degree(const visit *v, uint32_t id) {
  __atomic_fetch_add(&v->work->degrees[id], 1, __ATOMIC_RELAXED);
}

static void take_degrees(const visit *v, uint32_t id, uint32_t other) {
  bool half = v->engine->task.half;
  if (!v->once || !half || id < other)
    add_degree(v, id);
  if (v->once && (!half || other < id))
    add_degree(v, other);
}

static void take_pair(const visit *v, uint32_t id, uint32_t other) {
  bool swap = v->once && other < id;
  kith_pairs_add(v->work->found, v->lane_number, swap ? other : id, swap ? id : other);
}

/* Whether a row has this neighbour: rows are filled with every candidate tested against every query. */
static bool is_in_row(const visit *v, uint32_t id, uint32_t other) {
  const kith_brute_task *task = &v->engine->task;
  return !(task->drop_self && other == id) && !(task->half && other <= id);
}

static void take_hit(visit *v, const kith_panel_hit *hit, uint32_t candidates) {
  uint32_t belongs = settle(v, hit, candidates);
  uint32_t id = v->queries->ids[(size_t)v->panel * KITH_PANEL + hit->query];
  const uint32_t *ids = v->engine->task.candidates->ids + (size_t)candidates * KITH_PANEL + hit->first;
  v->tally->pairs += (uint32_t)__builtin_popcount(belongs);
  if (v->work->operation == KITH_DO_COUNT)
    return;
  for (; belongs; belongs &= belongs - 1) {
    uint32_t other = ids[__builtin_ctz(belongs)];
    if (v->work->operation == KITH_DO_DEGREES)
      take_degrees(v, id, other);
    else if (v->work->operation == KITH_DO_PAIRS)
      take_pair(v, id, other);
    else if (is_in_row(v, id, other))
      *v->lane->next[hit->query]++ = other;
  }
}

/* ---- panels against panels ----------------------------------------------------------------------------- */

/* Where float32 can tell nothing, all pairs are left to the definition: sums could be NaN. */
static uint32_t list_all(const visit *v, kith_panel_hit *hits) {
  enum { BITS = 32 };
  uint32_t n = 0;
  for (uint32_t q = v->first; q < v->end; q++)
    for (uint32_t first = 0; first < KITH_PANEL; first += BITS) {
      uint32_t left = KITH_PANEL - first;
      hits[n++] = (kith_panel_hit){
          .query = q, .first = first, .near = left < BITS ? (UINT32_C(1) << left) - 1 : UINT32_MAX};
    }
  return n;
}

/* Tests by products. */
static uint32_t test_products(const visit *v, uint32_t candidates) {
  const kith_panels *a = v->queries;
  const kith_panels *b = v->engine->task.candidates;
  const kith_packing *packing = b->packing;
  kith_panel_pair pair = {.packing = packing,
                          .queries = a->coords + (size_t)v->panel * packing->dim * KITH_PANEL,
                          .query_halves = a->halves + (size_t)v->panel * KITH_PANEL,
                          .query_rests = a->rests + (size_t)v->panel * packing->n_stops * KITH_PANEL,
                          .candidates = b->coords + (size_t)candidates * packing->dim * KITH_PANEL,
                          .candidate_halves = b->halves + (size_t)candidates * KITH_PANEL,
                          .candidate_rests = b->rests + (size_t)candidates * packing->n_stops * KITH_PANEL,
                          .first = v->first,
                          .end = v->end};
  pair.limits = kith_panel_limits_make(v->engine->task.predicate, packing->dim,
                                       (a->norms2[v->panel] + b->norms2[candidates]) / 2);
  return pair.limits.out == -INFINITY ? list_all(v, v->lane->hits)
                                      : v->engine->kernels->test(&pair, v->lane->hits);
}

static uint32_t test_marks(const visit *v, uint32_t candidates) {
  const kith_panels *a = v->queries;
  const kith_panels *b = v->engine->task.candidates;
  const kith_packing *packing = b->packing;
  if (packing->marks_per_unit == 0)
    return list_all(v, v->lane->hits);
  kith_mark_pair pair = {.norm = packing->norm,
                         .groups = kith_mark_groups(packing),
                         .stride = packing->mark_stride,
                         .queries = a->marks + v->panel * kith_mark_panel_bytes(packing),
                         .candidates = b->marks + candidates * kith_mark_panel_bytes(packing),
                         .first = v->first,
                         .end = v->end,
                         .cut = a->cut[v->panel] || b->cut[candidates],
                         .limits = v->engine->mark_limits};
  return v->engine->kernels->test_marks(&pair, v->lane->hits);
}

static void meet_panel(visit *v, uint32_t candidates) {
  bool products = v->engine->task.predicate->norm == KITH_NORM_2;
  uint32_t n = products ? test_products(v, candidates) : test_marks(v, candidates);
  for (uint32_t i = 0; i < n; i++)
    take_hit(v, &v->lane->hits[i], candidates);
  v->tally->tested += (uint64_t)(v->end - v->first) * KITH_PANEL;
}

static void meet_chunk(visit *v, uint32_t begin, uint32_t end) {
  const brute_engine *engine = v->engine;
  const kith_panels *candidates = engine->task.candidates;
  if (v->once && begin < v->panel)
    begin = v->panel;
  if (begin >= end)
    return;
  if (candidates->box_dims == 0) {
    for (uint32_t p = begin; p < end; p++)
      meet_panel(v, p);
    return;
  }
  uint32_t n =
      engine->kernels->meet(v->queries, v->panel, candidates, begin, end, engine->task.box_limit, v->lane->met);
  for (uint32_t i = 0; i < n; i++)
    meet_panel(v, v->lane->met[i]);
}

/* Chooses the queries of a panel among the positions [begin, end). */
static void choose_queries(visit *v, uint32_t begin, uint32_t end) {
  uint32_t start = v->panel * KITH_PANEL;
  v->first = begin > start ? begin - start : 0;
  v->end = end - start < KITH_PANEL ? end - start : KITH_PANEL;
}

/* Every panel of the piece against every chunk of candidates. */
static void sweep(visit *v) {
  const brute_engine *engine = v->engine;
  uint32_t begin = v->work->begin;
  uint32_t end = v->work->end;
  uint32_t n_panels = engine->task.candidates->n_panels;
  uint32_t from = v->once ? begin / KITH_PANEL : 0;
  for (uint32_t chunk = from; chunk < n_panels; chunk += engine->chunk) {
    uint32_t stop = n_panels - chunk < engine->chunk ? n_panels : chunk + engine->chunk;
    for (v->panel = begin / KITH_PANEL; (uint64_t)v->panel * KITH_PANEL < end; v->panel++) {
      if (kith_cancelled(engine->ctx) || (v->work->found && atomic_load(&v->work->found->overflow)))
        return;
      choose_queries(v, begin, end);
      meet_chunk(v, chunk, stop);
    }
  }
}

/* ---- rows in place ------------------------------------------------------------------------------------- */

/* Copies the marks of a point to place i of the window. */
static void copy_marks(const kith_panels *from, size_t panel, size_t at, kith_panels *to, uint32_t i) {
  const uint8_t *marks = from->marks + panel * kith_mark_panel_bytes(from->packing);
  for (size_t g = 0; g < kith_mark_groups(from->packing); g++)
    memcpy(to->marks + (g * KITH_PANEL + i) * KITH_MARK_COLUMNS,
           marks + (g * KITH_PANEL + at) * KITH_MARK_COLUMNS, KITH_MARK_COLUMNS);
  to->cut[0] = (i > 0 && to->cut[0]) || from->cut[panel];
}

static void copy_coords(const kith_panels *from, size_t panel, size_t at, kith_panels *to, uint32_t i) {
  const kith_packing *packing = from->packing;
  for (uint32_t c = 0; c < packing->dim; c++)
    to->coords[(size_t)c * KITH_PANEL + i] = from->coords[(panel * packing->dim + c) * KITH_PANEL + at];
  for (uint32_t s = 0; s < packing->n_stops; s++)
    to->rests[(size_t)s * KITH_PANEL + i] = from->rests[(panel * packing->n_stops + s) * KITH_PANEL + at];
  to->halves[i] = from->halves[panel * KITH_PANEL + at];
  if (i == 0 || from->norms2[panel] > to->norms2[0])
    to->norms2[0] = from->norms2[panel];
}

/* Copies position p of the queries to place i of the lane's window. */
static void copy_query(const visit *v, uint32_t p, uint32_t i) {
  const kith_panels *from = v->engine->task.queries;
  kith_panels *to = &v->lane->window;
  size_t panel = p / KITH_PANEL;
  to->ids[i] = from->ids[p];
  if (from->marks)
    copy_marks(from, panel, p % KITH_PANEL, to, i);
  else
    copy_coords(from, panel, p % KITH_PANEL, to, i);
  for (uint32_t d = 0; d < from->box_dims; d++) {
    float low = from->low[d * from->box_stride + panel];
    float high = from->high[d * from->box_stride + panel];
    if (i == 0 || low < to->low[d * to->box_stride])
      to->low[d * to->box_stride] = low;
    if (i == 0 || high > to->high[d * to->box_stride])
      to->high[d * to->box_stride] = high;
  }
}

static kith_row row_of(const visit *v, uint32_t i) {
  const kith_work *work = v->work;
  const uint64_t *offset = &work->offsets[v->lane->window.ids[i] - work->first_row];
  uint64_t at = offset[0] - work->offsets[0];
  return (kith_row){.ids = work->neighbors + at,
                    .distances = work->distances ? work->distances + at : NULL,
                    .n = offset[1] - offset[0]};
}

/* Fills the rows of the n queries in the lane's window. */
static void fill_window(visit *v, uint32_t n) {
  const brute_engine *engine = v->engine;
  uint64_t pairs = 0;
  for (uint32_t i = 0; i < n; i++) {
    kith_row row = row_of(v, i);
    v->lane->next[i] = row.ids;
    pairs += row.n;
  }
  if (pairs == 0)
    return;
  uint64_t before = v->tally->pairs;
  v->queries = &v->lane->window;
  v->panel = v->first = 0;
  v->end = n;
  uint32_t n_panels = engine->task.candidates->n_panels;
  for (uint32_t chunk = 0; chunk < n_panels; chunk += engine->chunk) {
    if (kith_cancelled(engine->ctx))
      return;
    meet_chunk(v, chunk, n_panels - chunk < engine->chunk ? n_panels : chunk + engine->chunk);
  }
  v->tally->pairs = before + pairs;
  for (uint32_t i = 0; i < n; i++) {
    kith_row row = row_of(v, i);
    kith_row_order(engine->table, row.ids, NULL, row.n);
    kith_row_measure(engine->task.space, engine->task.a, engine->task.b, v->lane->window.ids[i], &row);
  }
}

static void fill(visit *v) {
  const kith_work *work = v->work;
  const uint32_t *ids = v->engine->task.queries->ids;
  uint32_t n = 0;
  for (uint32_t p = work->begin; p < work->end; p++) {
    if (ids[p] >= work->first_row && ids[p] < work->end_row)
      copy_query(v, p, n++);
    if (n == KITH_PANEL || (p + 1 == work->end && n > 0)) {
      fill_window(v, n);
      n = 0;
    }
  }
}

/* ---- the engine ---------------------------------------------------------------------------------------- */

/* What a set adds that no two different points are tested for: the pairs (i, i). */
static void count_self(visit *v) {
  const brute_engine *engine = v->engine;
  uint32_t n = v->work->end - v->work->begin;
  uint64_t found = v->tally->pairs; /* unordered */
  bool keeps = !engine->task.drop_self;
  if (v->work->operation == KITH_DO_COUNT) {
    v->tally->pairs = 2 * found + n;
    return;
  }
  v->tally->pairs = (engine->task.half ? found : 2 * found) + (keeps ? n : 0);
  for (uint32_t p = v->work->begin; keeps && p < v->work->end; p++) {
    uint32_t id = engine->task.queries->ids[p];
    if (v->work->operation == KITH_DO_DEGREES)
      add_degree(v, id);
    else
      take_pair(v, id, id);
  }
}

static kith_status run(kith_engine *base, uint32_t lane, const kith_work *work, kith_tally *tally) {
  const brute_engine *engine = (const brute_engine *)base;
  kith_tally mine = {0};
  visit v = {.engine = engine,
             .lane = &engine->lanes[lane],
             .lane_number = lane,
             .work = work,
             .tally = &mine,
             .queries = engine->task.queries};
  if (work->operation == KITH_DO_FILL) {
    fill(&v);
  } else {
    v.once = engine->task.queries == engine->task.candidates;
    sweep(&v);
    if (v.once)
      count_self(&v);
  }
  tally->pairs += mine.pairs;
  tally->tested += mine.tested;
  return KITH_OK;
}

static void destroy(kith_engine *base) {
  brute_engine *engine = (brute_engine *)base;
  for (uint32_t i = 0; engine->lanes && i < engine->base.lanes; i++)
    kith_panels_destroy(&engine->lanes[i].window);
  kith_free(engine->lanes);
  kith_free(engine);
}

static bool make_marks_window(kith_memory *memory, kith_panels *window) {
  size_t bytes = kith_mark_panel_bytes(window->packing);
  window->marks = kith_alloc(memory, bytes);
  window->cut = kith_alloc(memory, sizeof *window->cut);
  if (window->marks)
    memset(window->marks, 0, bytes);
  return window->marks && window->cut;
}

static bool make_coords_window(kith_memory *memory, kith_panels *window) {
  const kith_packing *packing = window->packing;
  uint64_t column = KITH_PANEL * sizeof(float);
  window->coords = kith_alloc(memory, packing->dim * column);
  window->halves = kith_alloc(memory, column);
  window->rests = kith_alloc(memory, packing->n_stops * column);
  window->norms2 = kith_alloc(memory, sizeof(double));
  if (!window->coords || !window->halves || !window->rests || !window->norms2)
    return false;
  memset(window->coords, 0, packing->dim * column);
  memset(window->rests, 0, packing->n_stops * column);
  memset(window->halves, 0, column);
  return true;
}

/* A panel with room for one window's queries. */
static kith_status make_window(kith_context *ctx, const kith_panels *queries, kith_panels *window) {
  const kith_packing *packing = queries->packing;
  kith_memory *memory = &ctx->memory;
  uint64_t column = KITH_PANEL * sizeof(float);
  *window = (kith_panels){.packing = packing, .n = KITH_PANEL, .n_panels = 1, .box_dims = queries->box_dims};
  window->box_stride = KITH_PANEL;
  window->ids = kith_alloc(memory, KITH_PANEL * sizeof(uint32_t));
  window->low = kith_alloc(memory, 2 * KITH_SKETCH_DIMS * column);
  bool made = queries->marks ? make_marks_window(memory, window) : make_coords_window(memory, window);
  if (!made || !window->ids || !window->low)
    return kith_fail_memory(ctx, (packing->dim + 32) * column, "the buffers of the threads");
  window->high = window->low + (size_t)KITH_SKETCH_DIMS * KITH_PANEL;
  return KITH_OK;
}

static const kith_panel_kernels *kernels_for(kith_isa_level isa) {
#if defined(__x86_64__)
  if (isa == KITH_ISA_AVX2)
    return &kith_panel_avx2;
  if (isa == KITH_ISA_AVX512)
    return &kith_panel_avx512;
#endif
  (void)isa;
  return &kith_panel_scalar;
}

static uint32_t chunk_panels(const kith_packing *packing) {
  size_t bytes =
      packing->norm == KITH_NORM_2 ? packing->dim * KITH_PANEL * sizeof(float) : kith_mark_panel_bytes(packing);
  uint32_t fit = CHUNK_BYTES / (uint32_t)bytes;
  return fit < 1 ? 1 : fit > CHUNK_PANELS ? CHUNK_PANELS : fit;
}

kith_status kith_engine_brute_create(kith_context *ctx, const kith_brute_task *task, kith_engine **out) {
  *out = NULL;
  brute_engine *engine = kith_alloc(&ctx->memory, sizeof *engine);
  if (!engine)
    return kith_fail_memory(ctx, sizeof *engine, "the CPU engine");
  *engine = (brute_engine){.base = {.name = "cpu",
                                    .lanes = ctx->threads,
                                    .n_queries = task->queries->n,
                                    .all_pairs = true,
                                    .lists_pairs = true,
                                    .grain = KITH_PANEL,
                                    .run = run,
                                    .destroy = destroy},
                           .ctx = ctx,
                           .task = *task,
                           .kernels = kernels_for(ctx->isa),
                           .chunk = chunk_panels(task->queries->packing),
                           .mark_limits = kith_mark_limits_make(task->predicate, task->queries->packing),
                           .table = kith_kernels_for(ctx->isa, task->predicate->norm),
                           .quick = may_be_quick(task),
                           .lanes = kith_alloc(&ctx->memory, ctx->threads * sizeof(brute_lane))};
  if (!engine->lanes) {
    destroy(&engine->base);
    return kith_fail_memory(ctx, ctx->threads * sizeof(brute_lane), "the buffers of the threads");
  }
  memset(engine->lanes, 0, ctx->threads * sizeof(brute_lane));
  kith_status status = KITH_OK;
  for (uint32_t i = 0; !status && i < ctx->threads; i++)
    status = make_window(ctx, task->queries, &engine->lanes[i].window);
  if (status)
    destroy(&engine->base);
  else
    *out = &engine->base;
  return status;
}
