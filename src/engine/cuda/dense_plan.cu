/* Choosing between the grid and all with all: see dense_plan.cuh. */
#include "engine/cuda/dense_plan.cuh"

#include "engine/cuda/codes.cuh"
#include "engine/cuda/join_dense.cuh"
#include "engine/cuda/sketch.cuh"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kith_cuda {

namespace {

/* Seconds, about, on a GPU of the H100's kind; only ratios matter. */
constexpr double SECONDS_MULTIPLY = 5e-15;   /* a column of a pair on tensor cores, */
constexpr double SECONDS_COMMON = 9e-15;     /* as a code there, */
constexpr double SECONDS_SUBTRACT = 1.8e-14; /* as a difference of bytes, */
constexpr double SECONDS_SETTLE = 3e-12;     /* and by the definition, if the filter lets the pair through, */
constexpr double SECONDS_SEE = 3e-13;        /* or by its bytes, if codes do; */
constexpr double SECONDS_PAIR = 1.2e-13;     /* everything else about a pair */
constexpr double SECONDS_TEST = 1e-12;     /* a column of a candidate of the grid, by the definition, twice; */
constexpr double SECONDS_TEST_ANY = 5e-12; /* in the norms 1 and max */

/* ---- the order ----------------------------------------------------------------------------------------- */

/* What a sketch would do, tried with some rows. */
struct order_trial {
  const dense_sample &sample;
  const kith_predicate &predicate;
  size_t n;
  std::vector<float> low, high; /* [row][dimension]: around the slab that the row is in */

  order_trial(const dense_sample &sample, const kith_predicate &predicate)
      : sample(sample), predicate(predicate), n(std::min<size_t>(sample.n, 64)) {}

  void sketch_rows(const kith_sketch &sketch, std::vector<float> &values) const;
  void cut_slabs(const std::vector<float> &values, uint32_t dims, uint32_t d, uint32_t slabs);
  double find_share(const dense_order &order);
};

void order_trial::sketch_rows(const kith_sketch &sketch, std::vector<float> &values) const {
  kith_points rows{};
  rows.data = sample.rows;
  rows.n = n;
  rows.dim = sketch.dim;
  rows.dtype = KITH_F64;
  rows.row_stride = (int64_t)(sketch.dim * sizeof(double));
  rows.col_stride = sizeof(double);
  for (size_t i = 0; i < n; i++)
    kith_sketch_point(&sketch, &rows, i, &values[i * kith_sketch_dims(&sketch)], 1);
}

/* The value below which a share of the rows lies, which are in order. */
float quantile(const std::vector<float> &values, double share) {
  double last = (double)values.size() - 1;
  double at = std::min(std::max(share * (double)values.size() - 0.5, 0.0), last);
  size_t below = (size_t)at;
  size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (float)(at - (double)below) * (values[above] - values[below]);
}

/* The slab of a row, of equally many points each, is as wide as the values of the rows tell. */
void order_trial::cut_slabs(const std::vector<float> &values, uint32_t dims, uint32_t d, uint32_t slabs) {
  std::vector<float> sorted(n);
  for (size_t i = 0; i < n; i++)
    sorted[i] = values[i * dims + d];
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < n; i++) {
    float value = values[i * dims + d];
    double rank = (double)(std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin()) + 0.5;
    double slab = floor(rank * slabs / (double)n);
    low[i * dims + d] = std::min(value, quantile(sorted, slab / slabs));
    high[i * dims + d] = std::max(value, quantile(sorted, (slab + 1) / slabs));
  }
}

/* The share of pairs of rows whose boxes are not too far apart. */
double order_trial::find_share(const dense_order &order) {
  kith_sketch sketch = order.sketch(predicate.norm);
  uint32_t dims = kith_sketch_dims(&sketch);
  uint32_t slabs = count_slabs(sample.n_candidates / DENSE_TILE + 1, dims);
  std::vector<float> values(n * dims);
  low.resize(n * dims);
  high.resize(n * dims);
  sketch_rows(sketch, values);
  for (uint32_t d = 0; d < dims; d++)
    cut_slabs(values, dims, d, slabs);
  float reach = kith_sketch_reach(&sketch, &predicate);
  size_t met = 0;
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++)
      met += !(kith_sketch_gap(predicate.norm, {&low[i * dims], &high[i * dims], 1},
                               {&low[j * dims], &high[j * dims], 1}, dims) > reach);
  return n > 1 ? (double)met / ((double)n * (double)(n - 1) / 2) : 1;
}

/* Columns, columns and the norm of the others, norms of groups (SORTIDU): what leaves out most. */
dense_order choose_order(const kith_cuda_spec &spec, const dense_sample &sample) {
  struct choice {
    uint32_t split, groups;
  };
  constexpr choice CHOICES[] = {{2, 0}, {3, 0}, {4, 0}, {1, 1}, {2, 1}, {3, 1}, {0, 2}, {0, 3}, {0, 4}};
  uint32_t dim = (uint32_t)sample.min.size();
  order_trial trial(sample, spec.predicate);
  dense_order best{sample.columns, sample.min, sample.max};
  best.split = spec.index_dims ? spec.index_dims : 1;
  best.groups = spec.index_dims && !spec.no_sortidu ? 1 : 0;
  best.share = trial.find_share(best);
  for (const choice &choice : CHOICES) {
    if (spec.index_dims || choice.split + choice.groups > dim || (choice.groups && spec.no_sortidu))
      continue;
    dense_order order = best;
    order.split = choice.split;
    order.groups = choice.groups;
    order.share = trial.find_share(order);
    if (order.share < 0.95 * best.share)
      best = order;
  }
  return best;
}

/* ---- halves, for norm 2 -------------------------------------------------------------------------------- */

/* The mean of the sample, and the power of two that makes the largest coordinate about it fit half precision.
 */
dense_plan center_points(const dense_sample &sample) {
  constexpr double LARGEST_EXPONENT = 13;
  size_t dim = sample.min.size();
  dense_plan dense;
  dense.center.resize(dim);
  double largest = 0;
  for (size_t c = 0; c < dim; c++) {
    double mean = 0;
    for (size_t r = 0; r < sample.n; r++)
      mean += sample.rows[r * dim + c] / (double)sample.n;
    dense.center[c] = std::min(std::max(mean, sample.min[c]), sample.max[c]);
    largest = std::max({largest, sample.max[c] - dense.center[c], dense.center[c] - sample.min[c]});
  }
  dense.wanted = largest < 1e100 && (largest > 1e-100 || largest == 0);
  dense.scale = dense.wanted && largest > 0 ? exp2(LARGEST_EXPONENT - ceil(log2(largest))) : 1;
  return dense;
}

/* By what factor, about, narrowing lets through more pairs than belong; its logarithm. */
double blur(const dense_plan &dense, const dense_sample &sample, double eps) {
  size_t dim = sample.min.size();
  double length2 = 0;
  for (size_t r = 0; r < sample.n; r++)
    for (size_t c = 0; c < dim; c++) {
      double x = sample.rows[r * dim + c] - dense.center[c];
      length2 += x * x / (double)sample.n;
    }
  double moved = 0x1p-12 * sqrt(length2);
  return moved == 0 ? 0 : (double)dim * 2 * moved / eps;
}

/* ---- marks, for the norms 1 and max -------------------------------------------------------------------- */

/* A ruler: eps is so many marks long; in norm 1, the share of eps that a column has. In norm max, t, the
 * largest difference of a pair that may belong, is at most one mark more: so 2 t is less than the lowest of the
 * upper bits. LAST_MARK_MAX + t fits a byte; and t - LAST_MARK_MAX, modulo 256, has an upper bit, but for a t
 * of less than 63 with the last ruler, which then lets some pairs through that it need not. */
struct ruler {
  double marks;
  uint32_t beyond; /* the upper bits */
};
constexpr ruler RULERS_1[] = {{8, 0}, {16, 0}, {32, 0}, {64, 0}};
constexpr ruler RULERS_MAX[] = {{6, 0xF0}, {14, 0xE0}, {30, 0xC0}, {62, 0x80}};
constexpr double LAST_MARK_1 = 255;
constexpr double LAST_MARK_MAX = 191;

/* A column's ruler lies around its mean, but for parts where no point is. */
dense_plan place_ruler(const ruler &ruler, const kith_predicate &predicate, const dense_sample &sample,
                       const std::vector<double> &mean) {
  size_t dim = sample.min.size();
  bool is_1 = predicate.norm == KITH_NORM_1;
  dense_plan dense;
  dense.center.resize(dim);
  dense.coded = is_1 && dim <= MOST_CHUNK_COLUMNS;
  dense.last_mark = dense.coded ? code_form::LAST_MARK : is_1 ? LAST_MARK_1 : LAST_MARK_MAX;
  dense.beyond = ruler.beyond;
  dense.scale = ruler.marks * (is_1 ? (double)dim : 1) / predicate.limit;
  for (size_t c = 0; c < dim; c++) {
    double length = dense.last_mark / dense.scale;
    dense.center[c] = std::max(sample.min[c], std::min(mean[c] - length / 2, sample.max[c] - length));
  }
  return dense;
}

/* Some rows as the sieve sees them, and what narrowing moved them by. */
struct marked_rows {
  size_t n, dim;
  std::vector<float> marks, moved;

  marked_rows(const dense_plan &dense, const dense_sample &sample)
      : n(std::min<size_t>(sample.n, sample.min.size() > 512 ? 16 : 48)), dim(sample.min.size()),
        marks(n * dim), moved(n) {
    double step = dense.coded ? code_form{chunk_columns_for((uint32_t)dim)}.step() : 1;
    for (size_t i = 0; i < n * dim; i++) {
      double x = (sample.rows[i] - dense.center[i % dim]) * dense.scale;
      x = std::min(std::max(x, 0.0), dense.last_mark);
      marks[i] = (float)(rint(x / step) * step);
      moved[i / dim] += fabsf((float)x - marks[i]);
    }
  }
};

/* How far apart a pair is: in norm 1 at least, over eps; in norm max the number of columns that tell. */
float find_apart(const marked_rows &rows, size_t i, size_t j, kith_norm norm, float eps) {
  float sum = 0;
  float beyond = 0;
  for (size_t c = 0; c < rows.dim; c++) {
    float apart = fabsf(rows.marks[i * rows.dim + c] - rows.marks[j * rows.dim + c]);
    sum += apart;
    beyond += apart > eps + 1 ? 1.0f : 0.0f;
  }
  return norm == KITH_NORM_1 ? (sum - rows.moved[i] - rows.moved[j]) / eps : beyond;
}

/* What a ruler tells of the pairs of some rows. */
struct ruler_trial {
  double apart;   /* the more, the better */
  double passing; /* the share of pairs that are left */
};

/* Rulers are compared by how far apart 19 of 20 pairs are in norm 1, and by the average in norm max. */
ruler_trial try_ruler(const dense_plan &dense, const kith_predicate &predicate, const dense_sample &sample) {
  marked_rows rows(dense, sample);
  bool is_1 = predicate.norm == KITH_NORM_1;
  float eps = (float)(predicate.limit * dense.scale);
  std::vector<float> apart;
  for (size_t i = 0; i < rows.n; i++)
    for (size_t j = 0; j < i; j++)
      apart.push_back(find_apart(rows, i, j, predicate.norm, eps));
  if (apart.empty())
    return {0, 0};
  std::sort(apart.begin(), apart.end());
  double n = (double)apart.size();
  auto left = std::upper_bound(apart.begin(), apart.end(), is_1 ? 1.0f : 0.0f) - apart.begin();
  double mean = std::accumulate(apart.begin(), apart.end(), 0.0) / n;
  return {is_1 ? apart[apart.size() / 20] : mean, (double)left / n};
}

/* The ruler that tells most pairs of the sample apart. */
dense_plan choose_ruler(const kith_predicate &predicate, const dense_sample &sample, double *passing) {
  dense_plan best;
  double apart = -INFINITY;
  if (!predicate.filter)
    return best;
  std::vector<double> mean = center_points(sample).center;
  for (const ruler &ruler : predicate.norm == KITH_NORM_1 ? RULERS_1 : RULERS_MAX) {
    dense_plan dense = place_ruler(ruler, predicate, sample, mean);
    ruler_trial trial = try_ruler(dense, predicate, sample);
    if (trial.apart <= apart)
      continue;
    apart = trial.apart;
    best = dense;
    *passing = trial.passing;
  }
  best.wanted = true;
  return best;
}

/* Seconds a query to join all with all. */
double predict(const kith_cuda_spec &spec, const dense_sample &sample, const dense_plan &dense,
               double passing) {
  double dim = (double)sample.min.size();
  double columns = dense.coded ? chunk_columns_for((uint32_t)dim) : ceil(dim / 16) * 16;
  double column = spec.predicate.norm == KITH_NORM_2 ? SECONDS_MULTIPLY
                  : dense.coded                      ? SECONDS_COMMON
                                                     : SECONDS_SUBTRACT;
  double left = passing * dim * (dense.coded ? SECONDS_SEE : SECONDS_SETTLE);
  double pairs = dense.order.share * (double)sample.n_candidates * (spec.one_set ? 0.5 : 1);
  return pairs * (columns * column + SECONDS_PAIR + left);
}

/* Whether it is worth thinking about. */
bool may_be_dense(const kith_cuda_spec &spec, const dense_sample &sample) {
  bool asked = spec.brute || (sample.min.size() > 8 && !spec.index_dims && spec.cell_side == 0);
  return asked && !spec.limits && spec.lattice.n == 0 && spec.kernel == KITH_KERNEL_AUTO && sample.n > 0;
}

} // namespace

dense_plan plan_dense(const kith_cuda_spec &spec, const dense_sample &sample) {
  constexpr double MOST_BLUR = 3;
  const kith_predicate &predicate = spec.predicate;
  if (!may_be_dense(spec, sample))
    return {};
  double eps = kith_norm_distance(predicate.norm, predicate.limit);
  double passing = 0;
  bool euclidean = predicate.norm == KITH_NORM_2;
  dense_plan dense = euclidean ? center_points(sample) : choose_ruler(predicate, sample, &passing);
  dense.wanted &= eps * dense.scale < 0x1p40; /* sums stay finite; beyond, all pairs belong */
  if (!dense.wanted)
    return dense;
  dense.order = choose_order(spec, sample);
  if (spec.brute)
    return dense;
  double by_grid =
      sample.grid_tests * (double)sample.min.size() * (euclidean ? SECONDS_TEST : SECONDS_TEST_ANY);
  dense.wanted =
      (!euclidean || blur(dense, sample, eps) < MOST_BLUR) && predict(spec, sample, dense, passing) < by_grid;
  return dense;
}

} // namespace kith_cuda
