/* Choosing the grid on the device: see index.cuh.
 *
 * One pass over the points finds their box and invalid rows and draws a sample. A second kernel counts, for
 * every number of cut dimensions and side of the cells, how many sampled points lie near sampled queries. From
 * that the host predicts the cost of every choice, in warp instructions a query, and takes the cheapest. Two
 * short waits, some 0.1 ms in all: a join of a million points takes less than one. */
#include "engine/cuda/box.cuh"
#include "engine/cuda/dense_plan.cuh"
#include "engine/cuda/join_point.cuh"
#include "engine/cuda/join_tile.cuh"
#include "plan/near.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace kith_cuda {

namespace {

enum { QUERIES = 64, MAX_SAMPLE = 4096, SPREAD_POINTS = 256 };
enum { NUMBERS_BYTES = 128 << 10 }; /* of the pinned block, for the box and counts */

/* The sides tried, in units of the reach, and how far the stencil reaches from the middle of a cell. */
constexpr double SIDES[] = {1.0 / 16, 1.0 / 8, 0.25, 0.5, 1, 2, 4, 8, 16, 64};
enum { N_SIDES = sizeof SIDES / sizeof *SIDES };
constexpr double FINEST_X = SIDES[0]; /* along the rows */
constexpr double half_width(double side) { return side < 1 ? 1 + side / 2 : 1.5 * side; }

/* ---- looking at the points ------------------------------------------------------------------------------ */

/* Order-preserving integers for atomicMin and atomicMax. */
__host__ __device__ inline uint64_t ordered(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}
inline double unordered(uint64_t bits) {
  bits = bits >> 63 ? bits & ~(UINT64_C(1) << 63) : ~bits;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* What looking at points finds, in one block of memory: 64-bit words that begin with all bits set (the smallest
 * coordinate of every column, and the first invalid value as row * dim + column), then words that begin with
 * none (the largest ones, and the number of invalid rows). */
struct findings {
  uint64_t *words;
  uint32_t dim;
  __host__ __device__ uint64_t *min() const { return words; }
  __host__ __device__ uint64_t &first_invalid() const { return words[dim]; }
  __host__ __device__ uint64_t *max() const { return words + dim + 1; }
  __host__ __device__ uint64_t &invalid_rows() const { return words[2 * dim + 1]; }
  uint64_t half_bytes() const { return (dim + 1) * sizeof(uint64_t); }
};
static_assert(2 * (4096 + 1) * sizeof(uint64_t) <= NUMBERS_BYTES, "findings are read through the pinned block");

/* Threads keep to a column each; `threads` is a multiple of the dimension. Where columns are few, a block
 * gathers what its threads found before it tells the device. */
__global__ void find_box(view points, uint64_t threads, findings found) {
  __shared__ double lows[THREADS], highs[THREADS];
  uint64_t t = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t column = (uint32_t)(t % points.dim);
  double low = INFINITY;
  double high = -INFINITY;
#pragma unroll 4
  for (uint64_t i = t / points.dim; t < threads && i < points.n; i += threads / points.dim) {
    double x = points.get(i, column);
    if (isfinite(x)) {
      low = fmin(low, x);
      high = fmax(high, x);
    } else {
      atomicMin((unsigned long long *)&found.first_invalid(), (unsigned long long)(i * points.dim + column));
    }
  }
  lows[threadIdx.x] = low;
  highs[threadIdx.x] = high;
  __syncthreads();
  if (threadIdx.x >= points.dim) /* another thread has this column */
    return;
  for (unsigned i = threadIdx.x; i < THREADS; i += points.dim) {
    low = fmin(low, lows[i]);
    high = fmax(high, highs[i]);
  }
  if (low <= high) {
    atomicMin((unsigned long long *)&found.min()[column], (unsigned long long)ordered(low));
    atomicMax((unsigned long long *)&found.max()[column], (unsigned long long)ordered(high));
  }
}

__global__ void count_invalid(view points, findings found) {
  uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  bool invalid = false;
  for (uint32_t c = 0; i < points.n && c < points.dim; c++)
    invalid |= !isfinite(points.get(i, c));
  int count = __syncthreads_count(invalid);
  if (threadIdx.x == 0 && count)
    atomicAdd((unsigned long long *)&found.invalid_rows(), (unsigned long long)count);
}

__device__ uint64_t hash(uint64_t x) {
  x += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

/* One row from each of equal strata, as doubles; the strata in a mixed order, so that the first rows are a
 * sample of the whole too. An invalid row makes the sample a little worse, no more. */
__global__ void draw_sample(view points, uint32_t wanted, double *sample) {
  uint32_t s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= wanted)
    return;
  uint64_t stratum = (uint64_t)s * UINT32_C(2654435761) % wanted;
  uint64_t begin = points.n * stratum / wanted;
  uint64_t end = points.n * (stratum + 1) / wanted;
  uint64_t row = begin + (end > begin + 1 ? hash(s) % (end - begin) : 0);
  for (uint32_t c = 0; c < points.dim; c++) {
    double x = points.get(row, c);
    sample[(uint64_t)s * points.dim + c] = isfinite(x) ? x : 0;
  }
}

/* ---- counting candidates -------------------------------------------------------------------------------- */

struct sample_question {
  const double *points, *queries; /* rows of dim doubles */
  uint32_t n_points, n_queries, dim;
  uint32_t n_dims;
  kith_direction along[KITH_GRID_DIMS];
  double inverse_reach;
  double half_widths[N_SIDES];
  kith_norm norm;
  double limit;
};

enum { N_COUNTS = (KITH_GRID_DIMS + 1) * N_SIDES };

/* counts[j][s]: pairs of a query and a point within the reach in the first dimension, and in those up to j not
 * held by a side finer than SIDES[s]; then pairs that belong. */
__global__ void count_candidates(sample_question question, unsigned *counts) {
  __shared__ unsigned local[KITH_GRID_DIMS + 1][N_SIDES];
  for (unsigned i = threadIdx.x; i < N_COUNTS; i += blockDim.x)
    (&local[0][0])[i] = 0;
  __syncthreads();
  const double *query = question.queries + (uint64_t)blockIdx.x * question.dim;
  for (uint32_t p = threadIdx.x; p < question.n_points; p += blockDim.x) {
    const double *point = question.points + (uint64_t)p * question.dim;
    int side = 0;
    for (uint32_t j = 0; j < question.n_dims && side < N_SIDES; j++) {
      double u = fabs(value_along(question.along[j], [&](uint32_t c) { return query[c] - point[c]; })) *
                 question.inverse_reach;
      if (j == 0 && u > 1)
        break;
      while (j > 0 && side < N_SIDES && u > question.half_widths[side])
        side++;
      if (side < N_SIDES)
        atomicAdd(&local[j][side], 1U);
    }
    double size = 0;
    for (uint32_t c = 0; side == 0 && c < question.dim; c++)
      size = kith_norm_add(question.norm, size, query[c] - point[c]);
    if (side == 0 && size <= question.limit)
      atomicAdd(&local[KITH_GRID_DIMS][0], 1U);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < N_COUNTS; i += blockDim.x)
    if ((&local[0][0])[i])
      atomicAdd(&counts[i], (&local[0][0])[i]);
}

/* ---- the model ------------------------------------------------------------------------------------------ */

/* What a stencil of k dimensions and some side looks like, in units of the reach: lengths along the rows. */
struct shape {
  double steps;   /* rows looked at */
  double window;  /* their windows together, for a query of no extent */
  double inside;  /* of which accepted untested, if all dimensions are cut */
  double accepts; /* rows that accept anything */
  double balls[KITH_GRID_DIMS +
               1]; /* volumes of what is within reach of a point, in so many of the k dimensions */
};

/* What a size of at most 1 leaves along the first dimension, for differences along the other k - 1; negative:
 * nothing. `most`: for all pairs with such differences or smaller ones. */
double room_beside(kith_size_rule rule, uint32_t k, const double *apart, bool most) {
  if (!rule.slanted) {
    double size = 0;
    for (uint32_t j = 1; j < k; j++)
      size = kith_norm_add(rule.norm, size, apart[j]);
    kith_norm norm = rule.norm;
    bool none = most ? size >= 1 : size > 1;
    return none ? -1 : norm == KITH_NORM_2 ? sqrt(1 - size) : norm == KITH_NORM_1 ? 1 - size : 1;
  }
  double largest[KITH_SLANT_TO] = {};
  double sum[KITH_SLANT_TO] = {};
  for (uint32_t j = 1; j < k; j++) {
    uint32_t g = kith_rule_group(rule, j);
    largest[g] = fmax(largest[g], apart[j]);
    sum[g] += apart[j];
  }
  double room = 1;
  for (uint32_t g = 1; g < KITH_SLANT_TO; g++)
    room -= most ? fmax(largest[g], sum[g] / 2) : largest[g];
  if (largest[0] > room)
    return -1;
  return most ? fmin(room, 2 * room - sum[0]) : room;
}

shape measure(kith_size_rule rule, uint32_t k, double side) {
  int reach = (int)ceil(1 / side);
  shape shape{};
  kith_ball_volumes(rule, k, shape.balls);
  std::vector<int> offset(k, -reach);
  for (;;) {
    double near[KITH_GRID_DIMS];
    double far[KITH_GRID_DIMS];
    for (uint32_t j = 1; j < k; j++) {
      double apart = abs(offset[j]);
      near[j] = apart > 1 ? (apart - 1) * side : 0;
      far[j] = (apart + 1) * side;
    }
    double room = room_beside(rule, k, near, false);
    double inside = room_beside(rule, k, far, true);
    shape.steps += room >= 0;
    shape.window += 2 * fmax(room, 0);
    shape.accepts += inside > 0;
    shape.inside += 2 * fmax(inside, 0);
    uint32_t j = 1;
    for (; j < k && offset[j] == reach; j++)
      offset[j] = -reach;
    if (j >= k)
      return shape;
    offset[j]++;
  }
}

double rows_of(uint32_t k, double side) { return pow(2 * ceil(1 / side) + 1, k - 1); }

enum { MAX_ROWS = KITH_STENCIL_MAX };

/* The shapes of all choices; made once. */
std::vector<shape> measure_all(kith_size_rule rule) {
  std::vector<shape> made(KITH_GRID_DIMS * N_SIDES);
  uint32_t most = rule.slanted ? rule.slanted : KITH_GRID_DIMS;
  for (uint32_t k = 1; k <= most; k++)
    for (int s = 0; s < N_SIDES; s++)
      if (rows_of(k, SIDES[s]) <= MAX_ROWS)
        made[(k - 1) * N_SIDES + s] = measure(rule, k, SIDES[s]);
  return made;
}

const std::vector<shape> &slanted_shapes(uint32_t dim) {
  static const std::vector<shape> all[] = {measure_all({KITH_NORM_1, 4}), measure_all({KITH_NORM_1, 5}),
                                           measure_all({KITH_NORM_1, 6}), measure_all({KITH_NORM_1, 7}),
                                           measure_all({KITH_NORM_1, 8})};
  return all[dim - KITH_SLANT_FROM];
}

const std::vector<shape> &shapes_of(kith_size_rule rule) {
  static const std::vector<shape> all[] = {measure_all({KITH_NORM_2, 0}), measure_all({KITH_NORM_1, 0}),
                                           measure_all({KITH_NORM_MAX, 0})};
  return rule.slanted ? slanted_shapes(rule.slanted) : all[rule.norm];
}

struct option {
  uint32_t k = 1;
  double side = 1, x_side = 1;
  uint32_t queries = 32;
  double candidates = 0, cost = INFINITY;
};

/* Costs in warp instructions, about. Only ratios matter. */
constexpr double COST_FIND = 300; /* the runs of 32 steps */
constexpr double COST_TILE = 700;
constexpr double COST_LOAD = 25; /* 32 candidates */
constexpr double COST_TEST = 17; /* 32 tests, beside four instructions a dimension: to count and to fill; */
constexpr double COST_COUNT = 4; /* beside two of them: to count only */
constexpr double COST_COPY = 6;  /* 32 pairs accepted untested */
constexpr double COST_PLACE = 3; /* a column of 32 candidates, for tiles whose rows wrap around, */
constexpr double COST_WRAP = 1;  /* to which finding runs costs so much more than to others */
constexpr double COST_FOLD = 2;  /* a dimension of 32 tests that may be folded */

/* Of a periodic box that the grid is to wrap around. */
struct wrapping {
  uint32_t least_dims = 1;    /* are to be cut, at least, */
  uint32_t folds_to = 0;      /* and axes are folded if no more than so many are */
  double border = 0;          /* the share of tiles whose rows wrap around, if no axes are */
  double shortest = INFINITY; /* side, in units of the reach */

  /* Whether a grid with cells of such a side can: what a cell reaches leaves a gap of a cell. */
  bool suits(double side) const { return floor(shortest / side) >= 2 * ceil(1 / side) + 2; }
};

struct setting {
  uint32_t dim;
  kith_size_rule rule;
  bool accepts;      /* pairs may be accepted untested */
  bool counts;       /* nothing but a total is asked for, */
  bool once;         /* and of the stencil only the half that comes after the query is looked at */
  double row_length; /* of the even box, in units of the reach */
  wrapping around;
};

/* The share of the stencil that lies within the reach of a box around a tile: its sides in the k cut dimensions
 * are those of the cells, and `length` along the rows. Volumes by Steiner's formula. */
double near_share(uint32_t k, double side, double length, const shape &shape) {
  double near = kith_volume_near(shape.balls, k, side, length);
  double all = (shape.window + shape.steps * length) * pow(side, k - 1);
  return std::min(near / all, 1.0);
}

/* Predicts the cost of one choice. `window` sampled candidates lie within the reach along the rows and in the
 * stencil's rows. For a table everything is done twice: to count, and to fill. */
option weigh(const setting &setting, uint32_t k, int s, uint32_t most, double window) {
  double side = SIDES[s];
  bool folds = k <= setting.around.folds_to;
  double border = folds ? 1 : setting.around.border;
  const shape &shape = shapes_of(setting.rule)[(k - 1) * N_SIDES + s];
  double per_reach = std::max(window / rows_of(k, side) / 2, 1e-9);
  double in_row = std::max(per_reach * setting.row_length, 1.0);
  double queries = in_row / ceil(in_row / most);
  double x_side = std::min(std::max(2 / per_reach, FINEST_X), 4.0);
  while (!setting.around.suits(x_side) && x_side > FINEST_X)
    x_side /= 2;
  double length = std::min(queries / per_reach, setting.row_length);
  double span = std::min(length + 2 * x_side, setting.row_length);
  bool accepts = setting.accepts && k == setting.dim;
  double inside = accepts ? per_reach * std::max(shape.inside - shape.accepts * span, 0.0) : 0;
  double loaded = per_reach * (shape.window + shape.steps * span) - inside;
  bool sieves = setting.dim <= 8 && prunes(setting.dim);
  double tested = loaded * (sieves ? near_share(k, side, length, shape) : 1);
  double load = COST_LOAD + (2 + COST_PLACE * border) * setting.dim + (sieves ? 5 * setting.dim + 10 : 0);
  double find = ceil(shape.steps / 32) * COST_FIND * (1 + COST_WRAP * border);
  double met = setting.once ? 0.5 : 1;
  double pass = met * (loaded / 32 * load + find) + COST_TILE;
  double tests = met * tested / 32 * queries;
  double fold = COST_FOLD * border * most_folds(setting.dim);
  double per_tile = setting.counts ? pass + tests * (2 * setting.dim + COST_COUNT + fold)
                                   : 2 * pass + tests * (4 * setting.dim + COST_TEST + 2 * fold) +
                                         inside * queries / 32 * COST_COPY;
  option o;
  o.k = k;
  o.side = side;
  o.x_side = x_side;
  o.queries = most;
  o.candidates = tested;
  o.cost = per_tile / queries;
  return o;
}

/* ---- putting it together -------------------------------------------------------------------------------- */

struct planner {
  kith_cuda_session &session;
  const kith_cuda_spec &spec;
  view a, b;
  uint32_t dim;
  std::vector<double> min, max;               /* of the columns, */
  std::vector<double> least, most, low, high; /* and of the dimensions that a grid may cut */
  std::vector<uint32_t> columns;              /* those of largest variance first, unless REORDER is off */
  uint32_t n_sample, n_queries;
  buffer<double> points, queries;
  const double *spread; /* some rows of the sample, in pinned memory */
  size_t n_spread;
  kith_grid_spec grid_spec{};
  double neighbors = 0; /* of a query, expected */

  planner(kith_cuda_session &session, const kith_cuda_spec &spec, const view &a, const view &b)
      : session(session), spec(spec), a(a), b(b), dim(a.dim) {}

  void look(uint64_t invalid[2]);
  void look_at(const view &points, const char *name, uint64_t *invalid);
  void draw();
  void choose_dimensions();
  kith_direction direction(uint32_t d) const { return kith_direction_of(dim, d, grid_spec.slanted > 0); }
  double spread_along(size_t row, const kith_direction &along) const;
  std::vector<uint32_t> rank_dimensions(bool slanted) const;
  void choose_box();
  std::vector<double> candidates();
  option choose(const std::vector<double> &counts, const wrapping &around);
  bool is_periodic(uint32_t d) const { return kith_lattice_side(&spec.lattice, d) > 0; }
  bool may_fold(uint32_t d) const;
  uint32_t count_cut(bool folds) const;
  uint32_t find_folded(uint32_t cut) const;
  void make_grid(grid_plan &plan, const option &chosen, const double *period) const;
  bool make_wrapping(grid_plan &plan, const std::vector<double> &counts, const option &plain);
  option choose_point(const std::vector<double> &counts);
};

[[noreturn]] void refuse_invalid(const view &points, const char *name, const findings &found) {
  uint64_t row = found.first_invalid() / points.dim;
  uint32_t column = (uint32_t)(found.first_invalid() % points.dim);
  double value = 0;
  float narrow = 0;
  const char *at = points.data + (int64_t)row * points.row_stride + (int64_t)column * points.col_stride;
  check(cudaMemcpy(points.is_f64 ? (void *)&value : (void *)&narrow, at, points.is_f64 ? 8 : 4,
                   cudaMemcpyDeviceToHost),
        "reading an invalid value");
  char text[256];
  snprintf(text, sizeof text,
           "%s: row %llu, column %u is %g (counted from 0; invalid rows in all: %llu); remove such rows, or "
           "skip them",
           name, (unsigned long long)row, column, points.is_f64 ? value : (double)narrow,
           (unsigned long long)found.invalid_rows());
  fail(KITH_ERR_POINTS, text);
}

void planner::look_at(const view &points, const char *name, uint64_t *invalid) {
  findings host{(uint64_t *)session.pinned, dim};
  auto room = session.make<uint64_t>(2 * ((uint64_t)dim + 1), "the box around the points");
  findings device{room.get(), dim};
  auto read = [&] {
    check(cudaMemcpyAsync(host.words, device.words, 2 * device.half_bytes(), cudaMemcpyDeviceToHost,
                          session.stream),
          "box");
    session.wait("looking at the points");
  };
  check(cudaMemsetAsync(device.min(), 0xFF, device.half_bytes(), session.stream), "box");
  check(cudaMemsetAsync(device.max(), 0, device.half_bytes(), session.stream), "box");
  uint64_t wanted = std::min<uint64_t>(points.n * dim, (uint64_t)session.multiprocessors * 2048);
  uint64_t threads = std::max<uint64_t>(wanted / dim, 1) * dim;
  if (points.n > 0)
    find_box<<<blocks_for(threads, THREADS), THREADS, 0, session.stream>>>(points, threads, device);
  check_launch("box");
  read();
  if (host.first_invalid() != UINT64_MAX) {
    count_invalid<<<blocks_for(points.n, THREADS), THREADS, 0, session.stream>>>(points, device);
    check_launch("invalid rows");
    read();
    if (!spec.skip_invalid)
      refuse_invalid(points, name, host);
  }
  *invalid = host.invalid_rows();
  for (uint32_t c = 0; c < dim; c++) {
    if (host.min()[c] == UINT64_MAX)
      continue;
    min[c] = std::min(min[c], unordered(host.min()[c]));
    max[c] = std::max(max[c], unordered(host.max()[c]));
  }
}

void planner::look(uint64_t invalid[2]) {
  min.assign(dim, INFINITY);
  max.assign(dim, -INFINITY);
  draw(); /* before the wait */
  look_at(a, "a", &invalid[0]);
  invalid[1] = 0;
  if (!spec.one_set)
    look_at(b, "b", &invalid[1]);
  for (uint32_t c = 0; c < dim; c++)
    if (!(min[c] <= max[c]))
      min[c] = max[c] = 0;
}

void planner::draw() {
  uint64_t most = std::max<uint64_t>((uint64_t)MAX_SAMPLE * 16 / dim, SPREAD_POINTS);
  n_sample = (uint32_t)std::min<uint64_t>({b.n, (uint64_t)MAX_SAMPLE, most});
  n_queries = (uint32_t)std::min<uint64_t>(a.n, QUERIES);
  points = session.make<double>((uint64_t)n_sample * dim, "a sample of the points");
  queries = session.make<double>((uint64_t)n_queries * dim, "a sample of the points");
  if (n_sample)
    draw_sample<<<blocks_for(n_sample, THREADS), THREADS, 0, session.stream>>>(b, n_sample, points.get());
  if (n_queries)
    draw_sample<<<1, QUERIES, 0, session.stream>>>(a, n_queries, queries.get());
  check_launch("sample");
  size_t room = (KITH_CUDA_PINNED_BYTES - NUMBERS_BYTES) / (dim * sizeof(double));
  n_spread = std::min<size_t>({n_sample, SPREAD_POINTS, room});
  spread = (const double *)((char *)session.pinned + NUMBERS_BYTES);
  check(cudaMemcpyAsync((void *)spread, points.get(), n_spread * dim * sizeof(double), cudaMemcpyDeviceToHost,
                        session.stream),
        "sample");
}

double planner::spread_along(size_t row, const kith_direction &along) const {
  double value = 0;
  for (uint32_t i = 0; i < along.n; i++)
    value = kith_direction_add(&along, i, value, spread[row * dim + along.first + i]);
  return value;
}

/* Puts the columns, or directions, of largest variance first (REORDER), or leaves them as they are. Those that
 * may be folded come behind others of about that variance, since axes are folded that are not cut. */
std::vector<uint32_t> planner::rank_dimensions(bool slanted) const {
  size_t rows = n_spread;
  std::vector<std::pair<double, uint32_t>> ranked;
  for (uint32_t d = 0; d < dim; d++) {
    kith_direction along = kith_direction_of(dim, d, slanted);
    double mean = 0;
    double square = 0;
    for (size_t r = 0; r < rows; r++)
      mean += spread_along(r, along) / (double)rows;
    for (size_t r = 0; r < rows; r++) {
      double apart = spread_along(r, along) - mean;
      square += apart * apart * 0x1p-100;
    }
    ranked.push_back({-square * (may_fold(d) ? 0.25 : 1), d}); /* none if these are directions */
  }
  if (!spec.no_reorder)
    std::sort(ranked.begin(), ranked.end());
  std::vector<uint32_t> dims;
  for (const auto &dimension : ranked)
    dims.push_back(dimension.second);
  return dims;
}

/* Columns or directions; the grid may cut the first of them. */
void planner::choose_dimensions() {
  grid_spec.slanted = kith_slanted_of(spec.predicate.norm, dim, min.data(), max.data(), spec.predicate.reach);
  grid_spec.k = std::min<uint32_t>(dim, KITH_GRID_DIMS);
  columns = rank_dimensions(false);
  std::vector<uint32_t> dims = grid_spec.slanted > 0 ? rank_dimensions(true) : columns;
  std::copy(dims.begin(), dims.begin() + grid_spec.k, grid_spec.dims);
  least.resize(dim);
  most.resize(dim);
  for (uint32_t d = 0; d < dim; d++) {
    kith_direction along = direction(d);
    kith_direction_bounds(&along, min.data(), max.data(), &least[d], &most[d]);
  }
}

/* Far outliers and heavy tails would be most of the box: it is cut evenly without them. */
void planner::choose_box() {
  low = least;
  high = most;
  size_t rows = n_spread;
  std::vector<double> column(rows);
  for (uint32_t j = 0; rows > 0 && j < grid_spec.k; j++) {
    uint32_t d = grid_spec.dims[j];
    for (size_t r = 0; r < rows; r++)
      column[r] = spread_along(r, direction(d));
    std::nth_element(column.begin(), column.begin() + rows / 4, column.end());
    double first = column[rows / 4];
    size_t last = rows - 1 - rows / 4;
    std::nth_element(column.begin(), column.begin() + last, column.end());
    double third = column[last];
    double width = fmax(third - first, 256 * spec.predicate.reach);
    if (!(high[d] - low[d] > 128 * width))
      continue;
    low[d] = fmax(low[d], first - 2 * width);
    high[d] = fmin(high[d], third + 2 * width);
  }
}

/* [k - 1][side]: points in the window of a query, expected. Where the sample met too few, what uniform points
 * would give. */
std::vector<double> planner::candidates() {
  uint32_t n_dims = grid_spec.k;
  auto device = session.make<unsigned>(N_COUNTS, "planning");
  check(cudaMemsetAsync(device.get(), 0, N_COUNTS * sizeof(unsigned), session.stream), "plan");
  sample_question question{};
  question.points = points.get();
  question.queries = queries.get();
  question.n_points = n_sample;
  question.n_queries = n_queries;
  question.dim = dim;
  question.n_dims = n_dims;
  question.norm = spec.predicate.norm;
  question.limit = spec.predicate.limit;
  for (int s = 0; s < N_SIDES; s++)
    question.half_widths[s] = half_width(SIDES[s]);
  for (uint32_t j = 0; j < n_dims; j++)
    question.along[j] = direction(grid_spec.dims[j]);
  question.inverse_reach = 1 / spec.predicate.reach;
  if (n_queries && n_sample)
    count_candidates<<<n_queries, THREADS, 0, session.stream>>>(question, device.get());
  check_launch("plan");
  unsigned *met = (unsigned *)session.pinned;
  check(cudaMemcpyAsync(met, device.get(), N_COUNTS * sizeof(unsigned), cudaMemcpyDeviceToHost, session.stream),
        "plan");
  session.wait("planning");
  std::vector<double> counts(KITH_GRID_DIMS * N_SIDES);
  double scale = n_queries && n_sample ? (double)b.n / n_sample / n_queries : 0;
  neighbors = met[KITH_GRID_DIMS * N_SIDES] * scale;
  auto share = [&](uint32_t j, double width) {
    double extent = (high[grid_spec.dims[j]] - low[grid_spec.dims[j]]) / spec.predicate.reach;
    return width < extent ? width / extent : 1.0;
  };
  for (int s = 0; s < N_SIDES; s++) {
    double uniform = (double)b.n * share(0, 2);
    for (uint32_t j = 0; j < n_dims; j++) {
      if (j > 0)
        uniform *= share(j, 2 * half_width(SIDES[s]));
      double seen = 0;
      for (int t = 0; t <= s; t++)
        seen += met[j * N_SIDES + t];
      double trust = seen < 4 ? 0 : std::min(seen / 32, 1.0);
      counts[j * N_SIDES + s] = trust * seen * scale + (1 - trust) * uniform;
    }
  }
  return counts;
}

/* The cheapest choice. */
option planner::choose(const std::vector<double> &counts, const wrapping &around) {
  uint32_t d = grid_spec.dims[0];
  double row_length = std::max((high[d] - low[d]) / spec.predicate.reach, 1.0);
  setting setting{dim,
                  {spec.predicate.norm, grid_spec.slanted > 0 ? dim : 0},
                  !spec.limits && !has_ties(spec),
                  spec.counts != 0,
                  meets_once(spec),
                  row_length,
                  around};
  option best;
  best.candidates = (double)b.n;
  for (uint32_t k = around.least_dims; k <= grid_spec.k; k++)
    for (int s = 0; s < N_SIDES; s++)
      for (uint32_t queries : {small_tile(dim <= 8 ? dim : 0), 32U}) {
        if ((spec.index_dims && k != spec.index_dims) || rows_of(k, SIDES[s]) > MAX_ROWS ||
            !around.suits(SIDES[s]))
          continue;
        if (queries < 32 && (needs_general(spec) || (spec.counts && !counts_in_small_tiles(dim))))
          continue; /* those kernels hold 32 */
        option o = weigh(setting, k, s, queries, counts[(k - 1) * N_SIDES + s]);
        if (o.cost < best.cost)
          best = o;
      }
  if (spec.cell_side > 0)
    best.side = spec.cell_side;
  if (spec.index_dims)
    best.k = spec.index_dims;
  return best;
}

/* Whether dimension d is an axis of the box that a grid which wraps around it may leave uncut. */
bool planner::may_fold(uint32_t d) const {
  return may_wrap(spec) && d + most_folds(dim) >= dim && is_periodic(d) &&
         kith_folds_suit(kith_lattice_side(&spec.lattice, d), spec.predicate.reach);
}

/* The dimensions that a grid has to cut to wrap around the box: up to the last periodic one, or up to the last
 * one of those that may not be folded. */
uint32_t planner::count_cut(bool folds) const {
  uint32_t n = grid_spec.k;
  while (n > 1 && (!is_periodic(grid_spec.dims[n - 1]) || (folds && may_fold(grid_spec.dims[n - 1]))))
    n--;
  return n;
}

/* The periodic dimensions behind those that are cut, as bits. */
uint32_t planner::find_folded(uint32_t cut) const {
  uint32_t folded = 0;
  for (uint32_t j = cut; j < grid_spec.k; j++)
    folded |= is_periodic(grid_spec.dims[j]) ? 1U << grid_spec.dims[j] : 0;
  return folded;
}

/* Makes grid and stencil, of fewer dimensions if there would be too many steps. */
void planner::make_grid(grid_plan &plan, const option &chosen, const double *period) const {
  kith_grid_spec made = grid_spec;
  made.k = chosen.k;
  made.row_side = chosen.side;
  made.x_side = chosen.x_side;
  made.low = low.data();
  made.high = high.data();
  made.min = least.data();
  made.max = most.data();
  made.period = period;
  made.floats = !a.is_f64 && !b.is_f64;
  made.dim = dim;
  kith_predicate predicate = spec.predicate;
  predicate.reach = widen_reach(spec.lattice, predicate.reach);
  kith_grid_make(&plan.grid, &made, &predicate);
  while (!kith_stencil_make(&plan.stencil, &plan.grid, &made, &predicate)) {
    made.k--;
    kith_grid_make(&plan.grid, &made, &predicate);
  }
  plan.tile_queries = chosen.queries;
  plan.candidates = chosen.candidates;
}

/* Whether the box can be cut open beside whatever a cell reaches: then no candidate is met twice. */
bool can_wrap(const kith_grid &grid) {
  for (uint32_t j = 0; j < grid.k; j++)
    if (grid.wraps[j] && grid.cells[j] < 2 * grid.reach[j] + 2)
      return false;
  return true;
}

/* A grid that wraps around the periodic box, if that can be made and is cheaper than images beside the points:
 * about as many as there is more room in the box once it is wider by eps. Rows wrap around for queries less
 * than about two eps from a face. */
bool planner::make_wrapping(grid_plan &plan, const std::vector<double> &counts, const option &plain) {
  if (!may_wrap(spec))
    return false;
  std::vector<double> period(dim);
  double room = 1;
  double inner = 1;
  wrapping around;
  for (uint32_t i = 0; i < spec.lattice.n; i++) {
    double side = period[spec.lattice.axis[i]] = spec.lattice.vector[i][i];
    around.shortest = std::min(around.shortest, side / spec.predicate.reach);
    room *= 1 + 2 * spec.predicate.reach / side;
    inner *= std::max(1 - 4 * spec.predicate.reach / side, 0.0);
  }
  around.border = 1 - inner;
  around.least_dims = count_cut(true);
  around.folds_to = count_cut(false) - 1;
  option chosen = choose(counts, around);
  if (chosen.k < around.least_dims || !(chosen.cost <= room * plain.cost))
    return false;
  make_grid(plan, chosen, period.data());
  if (plan.grid.k < around.least_dims || !can_wrap(plan.grid))
    return false;
  plan.folded = find_folded(plan.grid.k);
  return true;
}

/* The grid of join_point: cells of the side of the reach in all dimensions, so that a query has 3^k of them. */
option planner::choose_point(const std::vector<double> &counts) {
  const int s = (int)(std::find(SIDES, SIDES + N_SIDES, 1.0) - SIDES);
  option o;
  o.k = spec.index_dims ? spec.index_dims : std::min<uint32_t>(dim, POINT_DIMS);
  o.queries = 1;
  o.candidates = counts[(o.k - 1) * N_SIDES + s] * 1.5; /* three cells along the rows, too */
  return o;
}

} // namespace

grid_plan plan_join(kith_cuda_session &session, const kith_cuda_spec &spec, const view &a, const view &b,
                    uint64_t invalid[2]) {
  planner planner(session, spec, a, b);
  planner.look(invalid);
  planner.choose_dimensions();
  planner.choose_box();
  std::vector<double> counts = planner.candidates();
  option best = spec.kernel == KITH_KERNEL_POINT ? planner.choose_point(counts) : planner.choose(counts, {});
  grid_plan plan;
  plan.dense = plan_dense(spec, {planner.spread, planner.n_spread, planner.min, planner.max, planner.columns,
                                 b.n, best.candidates});
  plan.neighbors = planner.neighbors;
  plan.wraps = planner.make_wrapping(plan, counts, best);
  if (!plan.wraps)
    planner.make_grid(plan, best, nullptr);
  return plan;
}

} // namespace kith_cuda
