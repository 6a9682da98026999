/* The sort, the index and the choice of a grid: each against the promise that its header makes, on random and
 * on hostile data. */
#include "fixture.h"

#include "index/index.h"
#include "index/sort.h"
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the sort ---- */

/* Which items to sort: their keys stand in bits [low, low + bits), below them the place they came from, which
 * must ascend among equal keys, and above them noise, which must not matter. */
typedef struct sort_case {
  uint64_t n;
  uint32_t low, bits;
  uint32_t distinct; /* keys; 0: as many as items */
  uint32_t narrow;   /* keys use only so many of their bits (0: all), so that one bucket holds everything */
} sort_case;

static uint64_t low_bits(uint32_t bits) { return bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX; }

static void make_items(const sort_case *s, uint64_t *items, uint64_t *keys) {
  uint64_t rng = s->n + s->bits;
  for (uint64_t i = 0; i < s->n; i++) {
    uint64_t seed = s->distinct ? random_below(&rng, s->distinct) : i;
    keys[i] = random_bits(&seed) & low_bits(s->narrow ? s->narrow : s->bits);
    uint64_t noise = s->low + s->bits < 64 ? random_bits(&rng) << (s->low + s->bits) : 0;
    items[i] = noise | keys[i] << s->low | i;
  }
}

static void check_sort(kith_context *on, const sort_case *s) {
  uint64_t n = s->n;
  uint64_t *items = malloc((n + 1) * sizeof *items), *sorted = malloc((n + 1) * sizeof *sorted);
  uint64_t *keys = malloc((n + 1) * sizeof *keys);
  uint32_t *counts = malloc(kith_sort_counts(on) * sizeof *counts);
  uint8_t *seen = calloc(n + 1, 1);
  make_items(s, items, keys);
  kith_sort(on, items, sorted, n, s->low, s->bits, counts);
  uint64_t last_key = 0, last_place = 0, wrong = 0;
  for (uint64_t i = 0; i < n; i++) {
    uint64_t place = sorted[i] & low_bits(s->low), key = sorted[i] >> s->low & low_bits(s->bits);
    assert_true(place < n);
    wrong += seen[place]++ || key != keys[place];
    wrong += i > 0 && (key < last_key || (key == last_key && place < last_place));
    last_key = key;
    last_place = place;
  }
  assert_int_equal(wrong, 0);
  free(seen);
  free(counts);
  free(keys);
  free(sorted);
  free(items);
}

static void test_sort(void **state) {
  (void)state;
  static const uint32_t BITS[] = {0, 1, 5, 10, 11, 12, 17, 22, 23, 31, 32};
  static const uint64_t SIZES[] = {0, 1, 2, 3, 24, 25, 100, 5000};
  static const uint32_t DISTINCT[] = {0, 7, 1}; /* many equal keys try the stability */
  for (uint32_t threads = 1; threads <= 9; threads += 4) {
    kith_context *on = open_context(threads);
    for (size_t b = 0; b < sizeof BITS / sizeof *BITS; b++)
      for (size_t n = 0; n < sizeof SIZES / sizeof *SIZES; n++)
        for (size_t d = 0; d < 3; d++) {
          check_sort(on, &(sort_case){SIZES[n], 32, BITS[b], DISTINCT[d], 0});
          check_sort(on, &(sort_case){SIZES[n], 13, BITS[b], DISTINCT[d], BITS[b] / 2});
        }
    check_sort(on, &(sort_case){3000, 13, 51, 0, 0}); /* up to the last bit */
    kith_context_destroy(on);
  }
}

/* Enough for buckets that all threads sort together. */
static void test_sort_large(void **state) {
  (void)state;
  for (uint32_t threads = 1; threads <= 5; threads += 2) {
    kith_context *on = open_context(threads);
    check_sort(on, &(sort_case){300000, 32, 32, 0, 0});
    check_sort(on, &(sort_case){300000, 32, 32, 0, 20});
    check_sort(on, &(sort_case){300000, 32, 32, 1000, 25});
    check_sort(on, &(sort_case){300000, 20, 30, 3, 12});
    kith_context_destroy(on);
  }
}

/* ---- the index ---- */

typedef struct point_set {
  kith_points view;
  void *memory;
  double min[8], max[8];
  uint64_t invalid;
} point_set;

static point_set make_set(uint64_t n, uint32_t dim, kith_dtype dtype, bool holes, uint64_t seed) {
  point_set s = {.memory = malloc((n * dim + 1) * sizeof(double))};
  for (uint32_t c = 0; c < dim; c++) {
    s.min[c] = INFINITY;
    s.max[c] = -INFINITY;
  }
  for (uint64_t i = 0; i < n; i++) {
    bool hole = holes && random_below(&seed, 10) == 0;
    s.invalid += hole;
    for (uint32_t c = 0; c < dim; c++) {
      float value = (float)(random_unit(&seed) * random_unit(&seed));
      if (hole)
        value = c == dim - 1 ? NAN : value;
      else {
        s.min[c] = fmin(s.min[c], (double)value);
        s.max[c] = fmax(s.max[c], (double)value);
      }
      if (dtype == KITH_F32)
        ((float *)s.memory)[i * dim + c] = value;
      else
        ((double *)s.memory)[i * dim + c] = (double)value;
    }
  }
  for (uint32_t c = 0; c < dim; c++)
    if (s.min[c] > s.max[c])
      s.min[c] = s.max[c] = 0;
  s.view = dtype == KITH_F32 ? kith_points_f32(s.memory, n, dim) : kith_points_f64(s.memory, n, dim);
  return s;
}

static kith_grid make_grid(const point_set *s, uint32_t k, double eps, double side) {
  kith_predicate predicate = kith_predicate_make(eps, s->view.dim);
  kith_grid_spec spec = {.k = k, .row_side = side, .x_side = side, .dim = s->view.dim};
  for (uint32_t j = 0; j < k; j++)
    spec.dims[j] = k - 1 - j;
  spec.low = spec.min = s->min;
  spec.high = spec.max = s->max;
  kith_grid grid;
  kith_grid_make(&grid, &spec, &predicate);
  return grid;
}

static uint64_t key_of(const kith_grid *grid, const double *point) {
  uint64_t row = 0;
  for (uint32_t j = 1; j < grid->k; j++)
    row += grid->stride[j] * kith_grid_cell(grid, j, point[grid->dims[j]]);
  return row << grid->x_bits | kith_grid_cell(grid, 0, point[grid->dims[0]]);
}

static double index_value(const kith_index *index, uint32_t c, uint32_t position) {
  uint64_t at = c * index->stride + position;
  return index->dtype == KITH_F32 ? (double)((float *)index->coords)[at] : ((double *)index->coords)[at];
}

/* Positions hold every valid row once, with its coordinates. */
static void check_positions(const kith_index *index, const point_set *s) {
  assert_int_equal(index->n, s->view.n - s->invalid);
  uint8_t *seen = calloc(s->view.n + 1, 1);
  for (uint32_t p = 0; p < index->n; p++) {
    uint32_t id = index->ids[p];
    assert_true(id < s->view.n && !seen[id]);
    seen[id] = 1;
    for (uint32_t c = 0; c < index->dim; c++)
      assert_true(index_value(index, c, p) == kith_points_get(&s->view, id, c));
  }
  free(seen);
  for (uint32_t c = 0; c < index->dim; c++) /* kernels load beyond the end: it must be there, and be calm */
    for (uint64_t p = index->n; p < index->stride; p++)
      assert_true(isfinite(index_value(index, c, (uint32_t)p)));
}

static void check_cell(const kith_index *index, uint32_t row, uint32_t cell) {
  uint64_t key = index->row_number[row] << index->grid->x_bits | index->cell_x[cell];
  uint32_t begin = index->cell_start[cell], end = index->cell_start[cell + 1];
  assert_true(begin < end); /* only cells that hold something are listed */
  for (uint32_t p = begin; p < end; p++) {
    double point[8];
    for (uint32_t c = 0; c < index->dim; c++)
      point[c] = index_value(index, c, p);
    assert_int_equal(key_of(index->grid, point), key);
    assert_true(!index->ids || p == begin || index->ids[p - 1] < index->ids[p]);
    assert_int_equal(kith_index_cell_at(index, p), cell);
  }
  assert_int_equal(kith_index_row_at(index, cell), row);
}

static void check_directory(const kith_index *index) {
  assert_int_equal(index->cell_start[index->n_cells], index->n);
  assert_int_equal(index->row_cell[index->n_rows], index->n_cells);
  assert_int_equal(index->n == 0, index->n_cells == 0);
  for (uint32_t row = 0; row < index->n_rows; row++) {
    assert_true(row == 0 || index->row_number[row - 1] < index->row_number[row]);
    assert_true(index->row_cell[row] < index->row_cell[row + 1]);
    for (uint32_t cell = index->row_cell[row]; cell < index->row_cell[row + 1]; cell++) {
      assert_true(cell == index->row_cell[row] || index->cell_x[cell - 1] < index->cell_x[cell]);
      check_cell(index, row, cell);
    }
  }
}

/* An index that was brought here, array by array, is as good as the one that was built. */
static void check_brought(const point_set *s, const kith_index *built) {
  kith_index index = {.grid = built->grid,
                      .dtype = built->dtype,
                      .dim = built->dim,
                      .n = built->n,
                      .id_end = built->id_end,
                      .n_cells = built->n_cells,
                      .n_rows = built->n_rows};
  assert_int_equal(kith_index_allocate(ctx, &index), KITH_OK);
  uint64_t width = index.dtype == KITH_F32 ? sizeof(float) : sizeof(double);
  assert_int_equal(index.stride, built->stride);
  for (uint64_t c = 0; c < index.dim; c++)
    memcpy((char *)index.coords + c * index.stride * width,
           (const char *)built->coords + c * built->stride * width, index.n * width);
  memcpy(index.ids, built->ids, index.n * sizeof *index.ids);
  memcpy(index.cell_x, built->cell_x, index.n_cells * sizeof *index.cell_x);
  memcpy(index.cell_start, built->cell_start, index.n_cells * sizeof *index.cell_start);
  memcpy(index.row_number, built->row_number, index.n_rows * sizeof *index.row_number);
  memcpy(index.row_cell, built->row_cell, index.n_rows * sizeof *index.row_cell);
  assert_int_equal(kith_index_complete(ctx, &index), KITH_OK);
  check_positions(&index, s);
  check_directory(&index);
  assert_int_equal(index.n_crowds, built->n_crowds);
  kith_index_destroy(&index);
}

static void check_index(const point_set *s, const kith_grid *grid, kith_dtype dtype) {
  kith_index index;
  kith_call_begin(ctx);
  assert_int_equal(kith_index_build(ctx, &s->view, grid, s->invalid, dtype, &index), KITH_OK);
  check_positions(&index, s);
  check_directory(&index);
  check_brought(s, &index);
  kith_index_destroy(&index);
  assert_int_equal(kith_memory_left(&ctx->memory), ctx->memory.limit);
}

static void test_index(void **state) {
  (void)state;
  static const uint64_t SIZES[] = {0, 1, 2, 63, 64, 65, 1000, 3000};
  for (size_t size = 0; size < sizeof SIZES / sizeof *SIZES; size++)
    for (uint32_t dim = 1; dim <= 4; dim++)
      for (int variant = 0; variant < 4; variant++) {
        kith_dtype dtype = variant & 1 ? KITH_F64 : KITH_F32;
        point_set s = make_set(SIZES[size], dim, dtype, variant & 2, SIZES[size] + dim);
        kith_grid grid = make_grid(&s, dim, 0.05, variant & 1 ? 1 : 0.25);
        check_index(&s, &grid, dtype);
        if (dtype == KITH_F32)
          check_index(&s, &grid, KITH_F64);
        free(s.memory);
      }
}

/* The index of points that are wrapped when they are read is that of a copy that was wrapped before. */
static void check_wrapped(const point_set *raw, const point_set *wrapped, const kith_lattice *lattice,
                          kith_dtype dtype) {
  kith_grid grid = make_grid(wrapped, 2, 0.05, 0.5);
  kith_index_plan plan = {.dtype = dtype, .spread = 2};
  kith_index expected, index;
  assert_int_equal(kith_index_build_planned(ctx, &wrapped->view, &grid, &plan, &expected), KITH_OK);
  plan.wrap_into = lattice;
  assert_int_equal(kith_index_build_planned(ctx, &raw->view, &grid, &plan, &index), KITH_OK);
  assert_true(dtype == KITH_F64 ? !index.rounded : index.rounded == &raw->view && index.wrap_into == lattice);
  assert_int_equal(index.n_cells, expected.n_cells);
  assert_memory_equal(index.ids, expected.ids, index.n * sizeof *index.ids);
  assert_memory_equal(index.cell_x, expected.cell_x, index.n_cells * sizeof *index.cell_x);
  assert_memory_equal(index.cell_start, expected.cell_start, index.n_cells * sizeof *index.cell_start);
  for (uint32_t p = 0; p < index.n; p++)
    for (uint32_t c = 0; c < index.dim; c++)
      assert_true(index_value(&index, c, p) == index_value(&expected, c, p));
  kith_index_destroy(&expected);
  kith_index_destroy(&index);
}

static void test_index_of_wrapped_points(void **state) {
  enum { N = 3000, DIM = 3 };
  (void)state;
  const double box[DIM] = {0.7, 0.8, 0}; /* an open axis */
  kith_lattice lattice;
  kith_call_begin(ctx);
  assert_int_equal(kith_lattice_make(ctx, box, DIM, DIM, &lattice), KITH_OK);
  for (int dtype = KITH_F32; dtype <= KITH_F64; dtype++) {
    point_set raw = make_set(N, DIM, (kith_dtype)dtype, false, 5);
    point_set wrapped = make_set(N, DIM, KITH_F64, false, 5);
    double *copy = wrapped.memory;
    for (int i = 0; i < N; i++) {
      for (int c = 0; c < DIM && i % 2; c++) { /* some below the brick, others above it or within */
        double moved = copy[i * DIM + c] - 0.25;
        copy[i * DIM + c] = dtype == KITH_F32 ? (double)(float)moved : moved;
        if (dtype == KITH_F32)
          ((float *)raw.memory)[i * DIM + c] = (float)moved;
        else
          ((double *)raw.memory)[i * DIM + c] = moved;
      }
      assert_true(kith_lattice_wrap(&lattice, copy + (size_t)i * DIM));
    }
    for (int c = 0; c < DIM; c++) {
      wrapped.min[c] = box[c] > 0 ? 0 : -0.25;
      wrapped.max[c] = box[c] > 0 ? box[c] : 1;
    }
    check_wrapped(&raw, &wrapped, &lattice, KITH_F32);
    check_wrapped(&raw, &wrapped, &lattice, KITH_F64);
    free(raw.memory);
    free(wrapped.memory);
  }
}

static int compare_floats(const void *a, const void *b) {
  float x = *(const float *)a;
  float y = *(const float *)b;
  return (x > y) - (x < y);
}

/* The index for counting holds the valid values in ascending order, and takes at most three times their memory.
 */
static void test_index_of_values(void **state) {
  (void)state;
  static const uint64_t SIZES[] = {0, 1, 2, 65, 1000, 40000};
  for (size_t size = 0; size < 2 * sizeof SIZES / sizeof *SIZES; size++) {
    point_set s = make_set(SIZES[size / 2], 1, KITH_F32, size % 2, size);
    float *values = s.memory;
    for (uint64_t i = 0; i < s.view.n; i++) /* both signs, zeros of both kinds, and many equal ones */
      values[i] = i % 3 ? values[i] : i % 2 ? -values[i] : i % 4 ? -0.0F : 0.0F;
    s.min[0] = -s.max[0];
    s.invalid = 0;
    float *want = malloc((s.view.n + 1) * sizeof *want);
    uint64_t n = 0;
    for (uint64_t i = 0; i < s.view.n; i++)
      if (isfinite(values[i]))
        want[n++] = values[i];
      else
        s.invalid++;
    qsort(want, n, sizeof *want, compare_floats);
    kith_grid grid = make_grid(&s, 1, 0.001, 1);
    kith_index index;
    kith_call_begin(ctx);
    assert_int_equal(kith_index_build_values(ctx, &s.view, &grid, s.invalid, &index), KITH_OK);
    assert_int_equal(index.n, n);
    for (uint32_t p = 0; p < index.n; p++)
      assert_true(index_value(&index, 0, p) == (double)want[p]);
    check_directory(&index);
    assert_true(kith_peak_bytes(ctx) <= 12 * n + 4 * kith_sort_counts(ctx) + (8 << 10));
    kith_index_destroy(&index);
    assert_int_equal(kith_memory_left(&ctx->memory), ctx->memory.limit);
    free(want);
    free(s.memory);
  }
}

/* Every cell of KITH_CROWD points is listed, with the box around its points. */
static void test_crowds(void **state) {
  (void)state;
  for (int variant = 0; variant < 4; variant++) {
    point_set s = make_set(12000, 2, variant % 2 ? KITH_F64 : KITH_F32, false, 9);
    kith_grid grid = make_grid(&s, 2, variant < 2 ? 0.2 : 0.01, 1);
    kith_index index;
    kith_call_begin(ctx);
    assert_int_equal(kith_index_build(ctx, &s.view, &grid, 0, s.view.dtype, &index), KITH_OK);
    uint32_t n = 0;
    for (uint32_t cell = 0; cell < index.n_cells; cell++) {
      uint32_t begin = index.cell_start[cell], end = index.cell_start[cell + 1];
      if (end - begin < KITH_CROWD)
        continue;
      assert_true(n < index.n_crowds && index.crowds[n].begin == begin && index.crowds[n].end == end);
      for (uint32_t c = 0; c < 2; c++) {
        double low = INFINITY, high = -INFINITY;
        for (uint32_t p = begin; p < end; p++) {
          low = fmin(low, index_value(&index, c, p));
          high = fmax(high, index_value(&index, c, p));
        }
        assert_true(index.crowd_box[n * 4 + c] == low && index.crowd_box[n * 4 + 2 + c] == high);
      }
      n++;
    }
    assert_int_equal(n, index.n_crowds);
    assert_int_equal(n > 0, variant < 2);
    kith_index_destroy(&index);
    free(s.memory);
  }
}

static void test_wide_keys(void **state) {
  (void)state;
  point_set s = make_set(4000, 3, KITH_F32, true, 9);
  memcpy((float *)s.memory + 3 * 100, (float *)s.memory + 3 * 7, 12); /* some cells shall hold two */
  for (double eps = 1e-3; eps > 1e-12; eps /= 7) {
    kith_grid grid = make_grid(&s, 3, eps, 1);
    check_index(&s, &grid, KITH_F32);
  }
  kith_grid widest = make_grid(&s, 2, 1e-9, 1);
  assert_true(widest.k == 2 && widest.key_bits > 56);
  check_index(&s, &widest, KITH_F64);
  kith_grid dropped = make_grid(&s, 3, 1e-9, 1); /* 90 bits are too many: one dimension fewer */
  assert_true(dropped.k == 2 && dropped.key_bits <= KITH_KEY_BITS);
  free(s.memory);
}

static void test_index_memory(void **state) {
  (void)state;
  point_set s = make_set(20000, 2, KITH_F32, false, 3);
  kith_grid grid = make_grid(&s, 2, 1e-6, 1); /* nearly every point in a cell and a row of its own */
  kith_index index;
  kith_call_begin(ctx);
  assert_int_equal(kith_index_build(ctx, &s.view, &grid, 0, KITH_F32, &index), KITH_OK);
  uint64_t slack = 4 * kith_sort_counts(ctx) + (8 << 10);          /* the sort's counters, and roundings */
  uint64_t most = s.view.n * (2 * sizeof(float) + 4 + 8 + 8 + 12); /* what index.h says, per point */
  assert_true(kith_peak_bytes(ctx) <= most + slack);
  kith_index_destroy(&index);
  uint64_t failures = 0;
  for (uint64_t n = 1; n < 100; n++) { /* each of its allocations fails once */
    kith_memory_fail_nth(n);
    kith_status status = kith_index_build(ctx, &s.view, &grid, 0, KITH_F32, &index);
    kith_memory_fail_nth(0);
    kith_index_destroy(&index);
    assert_int_equal(kith_memory_left(&ctx->memory), ctx->memory.limit);
    if (status == KITH_OK)
      break;
    assert_int_equal(status, KITH_ERR_MEMORY);
    assert_true(kith_message(ctx)[0] != '\0');
    failures++;
  }
  assert_true(failures >= 7 && failures < 50);
  free(s.memory);
}

/* ---- the choice of a grid ---- */

static kith_choice choose(const point_set *s, double eps, uint32_t index_dims, double row_side) {
  static kith_predicate predicate;
  predicate = kith_predicate_make(eps, s->view.dim);
  kith_question question = {.queries = &s->view,
                            .candidates = &s->view,
                            .predicate = &predicate,
                            .min = s->min,
                            .max = s->max,
                            .index_dims = index_dims,
                            .row_side = row_side};
  kith_choice choice;
  assert_int_equal(kith_choose_grid(ctx, &question, &choice), KITH_OK);
  const kith_grid_spec *spec = &choice.spec;
  assert_true(spec->k >= 1 && spec->k <= s->view.dim && spec->k <= KITH_GRID_DIMS);
  assert_true(spec->row_side >= 0.25 && spec->row_side <= 64 && spec->x_side > 0 && isfinite(spec->x_side));
  for (uint32_t j = 0; j < spec->k; j++) {
    uint32_t d = spec->dims[j];
    assert_true(d < s->view.dim && spec->low[d] <= spec->high[d]);
    assert_true(spec->low[d] >= s->min[d] && spec->high[d] <= s->max[d]);
    for (uint32_t other = 0; other < j; other++)
      assert_true(spec->dims[other] != d);
  }
  assert_true(choice.why[0] != '\0' && strlen(choice.why) < sizeof choice.why);
  kith_grid grid;
  static kith_stencil stencil;
  kith_grid_make(&grid, spec, &predicate);
  assert_true(kith_stencil_make(&stencil, &grid, spec, &predicate) || spec->k > 1);
  return choice;
}

static void test_choice(void **state) {
  (void)state;
  for (uint32_t dim = 1; dim <= 8; dim++) {
    point_set s = make_set(3000, dim, KITH_F32, false, dim);
    for (double eps = 1e-9; eps < 1e9; eps *= 31.6) {
      kith_choice first = choose(&s, eps, 0, 0), again = choose(&s, eps, 0, 0);
      assert_int_equal(first.spec.k, again.spec.k); /* the same input is always indexed in the same way */
      assert_true(first.spec.row_side == again.spec.row_side && first.spec.x_side == again.spec.x_side);
      kith_free(first.box);
      kith_free(again.box);
      kith_choice forced = choose(&s, eps, dim, 2);
      assert_true(forced.spec.row_side == 2 && forced.spec.k == dim);
      kith_free(forced.box);
    }
    kith_choice zero = choose(&s, 0, 0, 0);
    kith_free(zero.box);
    kith_choice infinite = choose(&s, 1.7e308, 0, 0);
    kith_free(infinite.box);
    free(s.memory);
  }
}

/* Dense 2-D data is worth cutting in both dimensions; the wide one is cut where the other is flat. */
static void test_choice_is_sensible(void **state) {
  (void)state;
  point_set s = make_set(20000, 2, KITH_F32, false, 5);
  kith_choice dense = choose(&s, 0.01, 0, 0);
  assert_int_equal(dense.spec.k, 2);
  assert_true(dense.candidates > 1 && dense.candidates < 2000);
  kith_free(dense.box);
  for (uint64_t i = 0; i < s.view.n; i++)
    ((float *)s.memory)[2 * i] = 0.5F;
  s.min[0] = s.max[0] = 0.5;
  kith_choice flat = choose(&s, 0.01, 1, 0);
  assert_int_equal(flat.spec.dims[0], 1);
  kith_free(flat.box);
  ((float *)s.memory)[3] = 1e30F; /* one far outlier must not spoil the cells of the others */
  s.max[1] = (double)1e30F;
  kith_choice trimmed = choose(&s, 1e-6, 0, 0);
  assert_true(trimmed.spec.high[1] < 2);
  kith_free(trimmed.box);
  free(s.memory);
}

static void test_choice_of_nothing(void **state) {
  (void)state;
  for (uint64_t n = 0; n <= 2; n++) {
    point_set s = make_set(n, 3, KITH_F64, false, n);
    kith_choice choice = choose(&s, 0.1, 0, 0);
    kith_free(choice.box);
    free(s.memory);
  }
  point_set s = make_set(500, 2, KITH_F32, false, 1);
  for (uint64_t i = 0; i < 1000; i++)
    ((float *)s.memory)[i] = NAN; /* nothing valid to sample */
  s.min[0] = s.min[1] = s.max[0] = s.max[1] = 0;
  kith_choice choice = choose(&s, 0.1, 0, 0);
  kith_free(choice.box);
  free(s.memory);
}

#define INDEX_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      INDEX_TEST(test_sort),
      INDEX_TEST(test_sort_large),
      INDEX_TEST(test_index),
      INDEX_TEST(test_index_of_wrapped_points),
      INDEX_TEST(test_index_of_values),
      INDEX_TEST(test_crowds),
      INDEX_TEST(test_wide_keys),
      INDEX_TEST(test_index_memory),
      INDEX_TEST(test_choice),
      INDEX_TEST(test_choice_is_sensible),
      INDEX_TEST(test_choice_of_nothing),
  };
  return cmocka_run_group_tests_name("index", tests, NULL, NULL);
}
