/* join_dense from the host: narrowing the points, launching the filter on parts that fit the list of pairs, and
 * settling what it lets through. See join_dense.cuh.
 *
 * Counting needs one part after the other, and no more room than a part's list. A neighbour table needs its
 * pairs twice, to count them and to place them: if all fit the list at once they are kept, else found again. */
#include "engine/cuda/dense.cuh"

#include "engine/cuda/join.cuh"
#include "engine/cuda/join_dense.cuh"

#include <algorithm>
#include <cmath>

using namespace kith_cuda;

namespace {

/* ---- narrowing ----------------------------------------------------------------------------------------- */

/* How points are narrowed. */
struct narrowing {
  const double *center; /* on the device */
  double scale;
  uint32_t dim, columns, chunk_columns; /* columns: padded to whole chunks */
  uint32_t box_dims, dims[DENSE_BOX_DIMS];
};

__device__ void raise(float *to, float value) { atomicMax((int *)to, __float_as_int(value)); } /* both >= 0 */

/* Order-preserving integers of floats. */
__device__ int ordered(float x) {
  int bits = __float_as_int(x);
  return bits < 0 ? bits ^ 0x7FFFFFFF : bits;
}
__device__ float unordered(int bits) { return __int_as_float(bits < 0 ? bits ^ 0x7FFFFFFF : bits); }

/* A block a tile, a warp a point. */
template <typename T>
__global__ void narrow_points(const T *coords, uint32_t n, narrowing how, __half *values, float *half_norm2,
                              dense_tile *tiles) {
  __shared__ float norm2, error;
  __shared__ int low[DENSE_BOX_DIMS], high[DENSE_BOX_DIMS];
  if (threadIdx.x == 0)
    norm2 = error = 0;
  if (threadIdx.x < DENSE_BOX_DIMS) {
    low[threadIdx.x] = ordered(INFINITY);
    high[threadIdx.x] = ordered(-INFINITY);
  }
  __syncthreads();
  uint32_t lane = threadIdx.x % 32;
  for (uint32_t p = threadIdx.x / 32; p < DENSE_TILE; p += blockDim.x / 32) {
    uint32_t position = blockIdx.x * DENSE_TILE + p;
    const T *point = coords + (uint64_t)position * how.dim;
    double moved2 = 0, length2 = 0, narrow2 = 0;
    for (uint32_t c = lane; c < how.columns; c += 32) {
      double x = position < n && c < how.dim ? ((double)point[c] - how.center[c]) * how.scale : 0;
      __half half = __float2half_rn((float)fmin(fmax(x, -65504.0), 65504.0));
      double rest = x - (double)__half2float(half);
      moved2 += rest * rest;
      length2 += x * x;
      narrow2 += (double)__half2float(half) * (double)__half2float(half);
      uint64_t chunk = (uint64_t)blockIdx.x * (how.columns / how.chunk_columns) + c / how.chunk_columns;
      values[(chunk * DENSE_TILE + p) * how.chunk_columns + c % how.chunk_columns] = half;
    }
    for (int step = 16; step; step /= 2) {
      moved2 += __shfl_xor_sync(ALL_LANES, moved2, step);
      length2 += __shfl_xor_sync(ALL_LANES, length2, step);
      narrow2 += __shfl_xor_sync(ALL_LANES, narrow2, step);
    }
    if (lane == 0) {
      half_norm2[position] = position < n ? (float)(narrow2 / 2) : INFINITY;
      /* with what subtracting the centre and these sums were rounded by, and what float will */
      raise(&error, (float)((sqrt(moved2) + sqrt(length2) * 0x1p-48) * (1 + 0x1p-20)));
      raise(&norm2, (float)(narrow2 * (1 + 0x1p-20)));
    }
    if (lane < how.box_dims && position < n) {
      uint32_t c = how.dims[lane];
      double x = ((double)point[c] - how.center[c]) * how.scale;
      atomicMin(&low[lane], ordered((float)(x - fabs(x) * 0x1p-22)));
      atomicMax(&high[lane], ordered((float)(x + fabs(x) * 0x1p-22)));
    }
  }
  __syncthreads();
  if (threadIdx.x != 0)
    return;
  dense_tile &tile = tiles[blockIdx.x];
  tile.norm2 = norm2;
  tile.error = error;
  for (uint32_t j = 0; j < how.box_dims; j++) {
    tile.low[j] = unordered(low[j]);
    tile.high[j] = unordered(high[j]);
  }
}

/* ---- settling ------------------------------------------------------------------------------------------ */

/* What becomes of the pairs that belong. */
struct settling {
  const void *q_coords, *c_coords;
  const uint32_t *q_ids, *c_ids;
  uint32_t dim;
  double eps2;
  bool one_set, half;
  bool marked;       /* pairs that surely belong are */
  bool early;        /* stop adding up once a pair is too far apart (SHORTC) */
  uint32_t *degrees; /* by id; NULL: not wanted */
  tally *total;
};

/* Coordinates are read 16 bytes at a time: rows of a pair lie anywhere. */
template <typename T> struct alignas(16) wide {
  static constexpr uint32_t N = 16 / sizeof(T);
  T at[N];
};

/* The definition, which may stop early: sums never fall. */
template <typename T, typename V>
__device__ bool is_within(const T *query, const T *candidate, const settling &how) {
  constexpr uint32_t N = sizeof(V) / sizeof(T), BETWEEN_CHECKS = 8;
  double d2 = 0;
  for (uint32_t c = 0; c < how.dim;) {
    uint32_t stop = min(c + BETWEEN_CHECKS, how.dim);
    for (; c < stop; c += N) {
      V a = *(const V *)(query + c);
      V b = *(const V *)(candidate + c);
#pragma unroll
      for (uint32_t i = 0; i < N; i++) {
        double t = __dsub_rn((double)((const T *)&a)[i], (double)((const T *)&b)[i]);
        d2 = __dadd_rn(d2, __dmul_rn(t, t));
      }
    }
    if (how.early && d2 > how.eps2)
      return false;
  }
  return d2 <= how.eps2;
}

__device__ uint32_t query_of(unsigned long long pair, bool marked) {
  return (uint32_t)((marked ? pair & ~SURE_PAIR : pair) >> 32);
}

template <typename T> __device__ bool belong_together(uint32_t query, uint32_t candidate, const settling &how) {
  const T *a = (const T *)how.q_coords + (uint64_t)query * how.dim;
  const T *b = (const T *)how.c_coords + (uint64_t)candidate * how.dim;
  return how.dim % wide<T>::N == 0 ? is_within<T, wide<T>>(a, b, how) : is_within<T, T>(a, b, how);
}

/* Decides every pair of the list that is not sure by the definition; strikes out those that do not belong. */
template <typename T> __global__ void settle_pairs(pair_list list, unsigned long long n, settling how) {
  unsigned long long found = 0;
  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += (unsigned long long)gridDim.x * blockDim.x) {
    unsigned long long pair = list.pairs[i];
    uint32_t query = query_of(pair, how.marked);
    uint32_t candidate = (uint32_t)pair;
    if (!(how.marked && pair & SURE_PAIR) && !belong_together<T>(query, candidate, how)) {
      list.pairs[i] = NO_PAIR;
      continue;
    }
    bool both = how.one_set && !how.half;
    found += both || (how.one_set && !how.degrees) ? 2 : 1;
    if (!how.degrees)
      continue;
    uint32_t a = how.q_ids[query];
    uint32_t b = how.c_ids[candidate];
    atomicAdd(&how.degrees[how.half ? min(a, b) : a], 1U);
    if (both)
      atomicAdd(&how.degrees[b], 1U);
  }
  found = sum_over_warp(found);
  if (threadIdx.x % 32 == 0 && found)
    atomicAdd(&how.total->pairs, found);
}

/* Rows [first, end) of the table, and how many neighbours of each are in place. */
struct placing {
  const uint32_t *q_ids, *c_ids;
  const uint64_t *offsets;
  uint64_t first, end;
  uint32_t *placed; /* by row of the window */
  uint32_t *neighbors;
  bool one_set, half, marked;

  __device__ void put(uint32_t row, uint32_t neighbor) const {
    if (row < first || row >= end)
      return;
    uint64_t at = offsets[row] - offsets[first] + atomicAdd(&placed[row - first], 1U);
    neighbors[at] = neighbor;
  }
};

__global__ void place_pairs(const unsigned long long *pairs, unsigned long long n, placing to) {
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || pairs[i] == NO_PAIR)
    return;
  uint32_t a = to.q_ids[query_of(pairs[i], to.marked)];
  uint32_t b = to.c_ids[(uint32_t)pairs[i]];
  if (to.half) {
    to.put(min(a, b), max(a, b));
    return;
  }
  to.put(a, b);
  if (to.one_set)
    to.put(b, a);
}

__global__ void place_selves(uint32_t n, placing to) {
  uint32_t p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < n)
    to.put(to.q_ids[p], to.q_ids[p]);
}

/* Every point with itself; degrees may be NULL. */
__global__ void count_selves(const uint32_t *ids, uint32_t n, uint32_t *degrees, tally *total) {
  uint32_t p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p == 0)
    atomicAdd(&total->pairs, (unsigned long long)n);
  if (p < n && degrees)
    degrees[ids[p]] = 1;
}

template <int K, bool MANY = false>
void launch_filter(const dense_args &args, dim3 blocks, cudaStream_t stream) {
  constexpr int BYTES = sizeof(dense_memory<K, MANY>);
  check(cudaFuncSetAttribute(join_dense<K, MANY>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES),
        "join_dense");
  join_dense<K, MANY><<<blocks, 256, BYTES, stream>>>(args);
  check_launch("join_dense");
}

} // namespace

/* ---- the join ------------------------------------------------------------------------------------------ */

struct kith_cuda_dense::narrowed {
  buffer<__half> values;
  buffer<float> half_norm2;
  buffer<dense_tile> tiles;
  dense_points points{};
};

/* Chunks of 16, 32 or 64 columns: the smallest that hold all of them, else 64. */
kith_cuda_dense::kith_cuda_dense(kith_cuda_join &join) : join(join), session(join.session) {
  const dense_plan &plan = join.plan.dense;
  uint32_t dim = join.a.dim;
  chunk_columns = dim <= 16 ? 16 : dim <= 32 ? 32 : 64;
  chunks = (dim + chunk_columns - 1) / chunk_columns;
  auto center = session.make<double>(dim, "the centre of the points");
  check(cudaMemcpyAsync(center.get(), plan.center.data(), dim * sizeof(double), cudaMemcpyHostToDevice,
                        session.stream),
        "the centre");
  candidates = narrow(join.index_b, center.get());
  if (!join.spec.one_set)
    queries = narrow(join.index_a, center.get());
}

kith_cuda_dense::~kith_cuda_dense() = default;

std::unique_ptr<kith_cuda_dense::narrowed> kith_cuda_dense::narrow(const cell_index &index,
                                                                   const double *center) {
  auto made = std::make_unique<narrowed>();
  uint32_t n_tiles = blocks_for(index.n, DENSE_TILE);
  narrowing how{center, join.plan.dense.scale, join.a.dim, chunks * chunk_columns, chunk_columns, box_dims(),
                {}};
  std::copy(join.plan.grid.dims, join.plan.grid.dims + how.box_dims, how.dims);
  made->values = session.make<__half>((uint64_t)n_tiles * DENSE_TILE * how.columns, "narrow points");
  made->half_norm2 = session.make<float>((uint64_t)n_tiles * DENSE_TILE, "their lengths");
  made->tiles = session.make<dense_tile>(n_tiles, "tiles");
  made->points = dense_points{made->values.get(), made->half_norm2.get(), made->tiles.get(), index.n, n_tiles};
  if (n_tiles == 0)
    return made;
  if (join.is_f64)
    narrow_points<<<n_tiles, THREADS, 0, session.stream>>>((const double *)index.coords.get(), index.n, how,
                                                           made->values.get(), made->half_norm2.get(),
                                                           made->tiles.get());
  else
    narrow_points<<<n_tiles, THREADS, 0, session.stream>>>((const float *)index.coords.get(), index.n, how,
                                                           made->values.get(), made->half_norm2.get(),
                                                           made->tiles.get());
  check_launch("narrowing");
  return made;
}

bool kith_cuda_dense::marks() const { return join.queries().n <= INT32_MAX; }

uint32_t kith_cuda_dense::box_dims() const { return std::min<uint32_t>(join.plan.grid.k, DENSE_BOX_DIMS); }

/* Room for the pairs that are expected and some more, but no more than half of what is free. */
void kith_cuda_dense::make_list() {
  double expected = join.plan.neighbors * join.queries().n * (join.spec.one_set ? 0.5 : 1);
  double free = 0.5 * (double)(session.memory.limit - session.memory.used);
  double capacity = std::min(3 * expected + (16 << 20), free / sizeof(unsigned long long));
  list = session.make<unsigned long long>(std::max<uint64_t>((uint64_t)capacity, 4096), "pairs");
}

/* Runs the filter on a part; returns how many pairs it lets through. */
uint64_t kith_cuda_dense::filter(const part &part) {
  dense_args args{};
  args.queries = query_side().points;
  args.candidates = candidates->points;
  args.chunks = chunks;
  args.box_dims = box_dims();
  args.eps = (float)(sqrt(join.spec.predicate.limit) * join.plan.dense.scale * (1 + 0x1p-20));
  args.slack = (float)((chunks * chunk_columns / 16 * 40 + 16) * 0x1p-22);
  args.marks = marks();
  args.one_set = join.spec.one_set;
  args.query_tile = part.query;
  args.candidate_tile = part.candidate;
  args.candidate_end = part.candidate_end;
  unsigned long long *used = &join.total.get()->records;
  args.out = pair_list{list.get(), list.size(), used};
  args.total = &join.total.get()->found;
  args.stop = join.stop.get();
  check(cudaMemsetAsync(used, 0, sizeof *used, session.stream), "join_dense");
  dim3 blocks(part.query_end - part.query, blocks_for(part.candidate_end - part.candidate, DENSE_SEGMENT));
  if (chunk_columns == 16)
    launch_filter<1>(args, blocks, session.stream);
  else if (chunk_columns == 32)
    launch_filter<2>(args, blocks, session.stream);
  else if (chunks == 1)
    launch_filter<4>(args, blocks, session.stream);
  else
    launch_filter<4, true>(args, blocks, session.stream);
  auto *host = (unsigned long long *)session.pinned;
  check(cudaMemcpyAsync(host, used, sizeof *used, cudaMemcpyDeviceToHost, session.stream), "join_dense");
  join.wait("join_dense");
  return *host;
}

/* Decides the pairs on the list. */
void kith_cuda_dense::settle(uint64_t n, uint32_t *degrees) {
  if (n == 0)
    return;
  const cell_index &q = join.queries();
  settling how{q.coords.get(),
               join.index_b.coords.get(),
               q.ids.get(),
               join.index_b.ids.get(),
               join.a.dim,
               join.spec.predicate.limit,
               (bool)join.spec.one_set,
               join.spec.half && degrees,
               marks(),
               !join.spec.no_shortc,
               degrees,
               &join.total.get()->found};
  pair_list pairs{list.get(), list.size(), nullptr};
  unsigned blocks = (unsigned)std::min<uint64_t>((n + THREADS - 1) / THREADS, 64U * session.multiprocessors);
  if (join.is_f64)
    settle_pairs<double><<<blocks, THREADS, 0, session.stream>>>(pairs, n, how);
  else
    settle_pairs<float><<<blocks, THREADS, 0, session.stream>>>(pairs, n, how);
  check_launch("settling pairs");
}

/* Finds the pairs of a part and gives them to `use`; cut in two while they do not fit the list. */
template <typename F> void kith_cuda_dense::each_list(const part &whole, F use) {
  uint64_t n = filter(whole);
  if (n <= list.size()) {
    use(n);
    return;
  }
  part first = whole;
  part second = whole;
  if (whole.query_end - whole.query > 1)
    first.query_end = second.query = whole.query + (whole.query_end - whole.query) / 2;
  else if (whole.candidate_end - whole.candidate > 1)
    first.candidate_end = second.candidate = whole.candidate + (whole.candidate_end - whole.candidate) / 2;
  else
    fail_memory(n * sizeof(unsigned long long), "pairs");
  each_list(first, use);
  each_list(second, use);
}

kith_cuda_dense::part kith_cuda_dense::everything() const {
  return part{0, query_side().points.n_tiles, 0, candidates->points.n_tiles};
}

bool kith_cuda_dense::is_empty() const { return join.queries().n == 0 || join.index_b.n == 0; }

/* Whether rows have (i, i). */
bool kith_cuda_dense::counts_selves() const {
  return join.spec.one_set && !join.spec.drop_self && !join.spec.half;
}

/* Pairs in both orders, and (i, i). */
void kith_cuda_dense::count() {
  if (is_empty())
    return;
  uint32_t n = join.queries().n;
  if (join.spec.one_set)
    count_selves<<<blocks_for(n, THREADS), THREADS, 0, session.stream>>>(nullptr, n, nullptr,
                                                                         &join.total.get()->found);
  check_launch("count");
  make_list();
  each_list(everything(), [&](uint64_t n) { settle(n, nullptr); });
  list.reset();
}

/* The degrees, and the pairs themselves if all fit the list. */
void kith_cuda_dense::find_degrees(uint32_t *degrees) {
  has_all = false;
  if (is_empty())
    return;
  const cell_index &q = join.queries();
  if (counts_selves())
    count_selves<<<blocks_for(q.n, THREADS), THREADS, 0, session.stream>>>(q.ids.get(), q.n, degrees,
                                                                           &join.total.get()->found);
  check_launch("degrees");
  make_list();
  uint64_t lists = 0;
  each_list(everything(), [&](uint64_t n) {
    settle(n, degrees);
    lists++;
    n_listed = n;
  });
  has_all = lists == 1;
  if (!has_all)
    list.reset();
}

/* Rows [first, end), in no order. */
void kith_cuda_dense::fill(uint64_t first, uint64_t end, uint32_t *neighbors) {
  if (is_empty())
    return;
  const cell_index &q = join.queries();
  auto placed = session.make<uint32_t>(end - first, "pairs of the rows");
  check(cudaMemsetAsync(placed.get(), 0, (end - first) * sizeof(uint32_t), session.stream), "rows");
  placing to{q.ids.get(), join.index_b.ids.get(),  join.offsets.get(),   first,  end, placed.get(),
             neighbors,   (bool)join.spec.one_set, (bool)join.spec.half, marks()};
  if (counts_selves())
    place_selves<<<blocks_for(q.n, THREADS), THREADS, 0, session.stream>>>(q.n, to);
  auto place = [&](uint64_t n) {
    if (n > 0)
      place_pairs<<<blocks_for(n, THREADS), THREADS, 0, session.stream>>>(list.get(), n, to);
    check_launch("placing pairs");
  };
  if (has_all) {
    place(n_listed);
    return;
  }
  make_list();
  each_list(everything(), [&](uint64_t n) {
    settle(n, nullptr);
    place(n);
  });
  list.reset();
}

/* Makes room for what is worth more than the pairs kept. */
void kith_cuda_dense::forget_pairs() {
  has_all = false;
  list.reset();
}
