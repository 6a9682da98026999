/* join_dense from the host: narrowing the points, launching the filter on parts that fit the list of pairs, and
 * settling what it lets through. See join_dense.cuh.
 *
 * Counting needs one part after the other, and no more room than a part's list. A neighbour table needs its
 * pairs twice, to count them and to place them: if all fit the list at once they are kept, else found again. */
#include "engine/cuda/dense.cuh"

#include "engine/cuda/algorithms.cuh"
#include "engine/cuda/join.cuh"
#include "engine/cuda/sieve_codes.cuh"
#include "engine/cuda/sieve_marks.cuh"
#include "engine/cuda/sieve_products.cuh"
#include "engine/cuda/sketch.cuh"

#include <algorithm>
#include <cmath>

using namespace kith_cuda;

namespace {

/* ---- narrowing ----------------------------------------------------------------------------------------- */

/* How points are narrowed. */
struct narrowing {
  const double *center; /* on the device */
  double scale;
  double last;                          /* the last mark */
  uint32_t dim, columns, chunk_columns; /* columns: padded to whole chunks */
  uint32_t row_bytes;                   /* of a point in a chunk */
};

__device__ void raise(float *to, float value) { atomicMax((int *)to, __float_as_int(value)); } /* both >= 0 */

/* Each puts x in its column of a row, and tells what it became: a half, the nearest mark, or a code. */
__device__ double put_half(double x, void *row, uint32_t column) {
  __half half = __float2half_rn((float)fmin(fmax(x, -65504.0), 65504.0));
  ((__half *)row)[column] = half;
  return __half2float(half);
}
__device__ double put_mark(double x, void *row, uint32_t column) {
  uint8_t mark = (uint8_t)rint(x);
  ((uint8_t *)row)[column] = mark;
  return mark;
}
__device__ double put_code(double x, void *row, uint32_t column, code_form form) {
  int step = (int)rint(x / form.step());
  int bytes = (int)form.bits() / 8;
  uint8_t *code = (uint8_t *)row + form.columns + column * bytes;
  for (int b = 0; b < bytes; b++)
    code[b] = (uint8_t)((1 << min(max(step - 8 * b, 0), 8)) - 1);
  return step * (double)form.step();
}

/* A point as narrowing sees it: sizes, by the norm, that all lanes of a warp add to. */
template <kith_norm NORM> struct narrow_sizes {
  double moved = 0, wide = 0, narrow = 0;

  __device__ void add(double x, double became) {
    moved = kith_norm_add(NORM, moved, x - became);
    wide = kith_norm_add(NORM, wide, x);
    narrow = kith_norm_add(NORM, narrow, became);
  }
  __device__ static double gather(double size) {
    for (int step = 16; step; step /= 2) {
      double other = __shfl_xor_sync(ALL_LANES, size, step);
      size = NORM == KITH_NORM_MAX ? fmax(size, other) : size + other;
    }
    return size;
  }
  __device__ void gather() {
    moved = gather(moved);
    wide = gather(wide);
    narrow = gather(narrow);
  }
  /* How far the point was moved; with what subtracting the centre and these sums were rounded by. */
  __device__ double error() const {
    return (kith_norm_distance(NORM, moved) + kith_norm_distance(NORM, wide) * 0x1p-48) * (1 + 0x1p-20);
  }
};

/* Beyond the last point a number that tells all pairs apart. */
__device__ float own_length(const narrow_sizes<KITH_NORM_2> &sizes, bool is_point) {
  return is_point ? (float)(sizes.narrow / 2) : INFINITY;
}
__device__ own_code own_marks(const narrow_sizes<KITH_NORM_1> &codes, bool is_point, code_form form) {
  if (!is_point)
    return {own_code::FAR, -own_code::FAR};
  int marks = (int)floor(codes.narrow - codes.error());
  return {(int16_t)marks, (int16_t)-form.bits_outweighed(marks)};
}

/* A block a tile, a warp a point. CODED: norm 1, with codes. */
template <kith_norm NORM, bool CODED, typename T>
__global__ void narrow_points(const T *coords, uint32_t n, narrowing how, char *values, void *own,
                              dense_tile *tiles) {
  __shared__ float norm2, error;
  if (threadIdx.x == 0)
    norm2 = error = 0;
  __syncthreads();
  uint32_t lane = threadIdx.x % 32;
  for (uint32_t p = threadIdx.x / 32; p < DENSE_TILE; p += blockDim.x / 32) {
    uint32_t position = blockIdx.x * DENSE_TILE + p;
    const T *point = coords + (uint64_t)position * how.dim;
    narrow_sizes<NORM> sizes, codes;
    for (uint32_t c = lane; c < how.columns; c += 32) {
      double x = position < n && c < how.dim ? ((double)point[c] - how.center[c]) * how.scale : 0;
      uint64_t chunk = (uint64_t)blockIdx.x * (how.columns / how.chunk_columns) + c / how.chunk_columns;
      char *row = values + (chunk * DENSE_TILE + p) * how.row_bytes;
      uint32_t column = c % how.chunk_columns;
      if (NORM != KITH_NORM_2)
        x = fmin(fmax(x, 0.0), how.last);
      sizes.add(x, NORM == KITH_NORM_2 ? put_half(x, row, column) : put_mark(x, row, column));
      if (CODED)
        codes.add(x, put_code(x, row, column, {how.chunk_columns}));
    }
    sizes.gather();
    if (CODED)
      codes.gather();
    if (lane == 0) {
      raise(&error, (float)sizes.error());
      if constexpr (NORM == KITH_NORM_2) {
        ((float *)own)[position] = own_length(sizes, position < n);
        raise(&norm2, (float)(sizes.narrow * (1 + 0x1p-20)));
      }
      if constexpr (CODED)
        ((own_code *)own)[position] = own_marks(codes, position < n, {how.chunk_columns});
    }
  }
  __syncthreads();
  if (threadIdx.x == 0)
    tiles[blockIdx.x] = {norm2, error};
}

/* ---- settling ------------------------------------------------------------------------------------------ */

/* What becomes of the pairs that belong. */
struct settling {
  const void *q_coords, *c_coords;
  const uint32_t *q_ids, *c_ids;
  uint32_t dim;
  double limit;
  bool one_set, half;
  bool flagged;      /* pairs that surely belong are */
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
template <kith_norm NORM, typename T, typename V>
__device__ bool is_within(const T *query, const T *candidate, const settling &how) {
  constexpr uint32_t N = sizeof(V) / sizeof(T), BETWEEN_CHECKS = 8;
  double size = 0;
  for (uint32_t c = 0; c < how.dim;) {
    uint32_t stop = min(c + BETWEEN_CHECKS, how.dim);
    for (; c < stop; c += N) {
      V a = *(const V *)(query + c);
      V b = *(const V *)(candidate + c);
#pragma unroll
      for (uint32_t i = 0; i < N; i++) {
        double t = __dsub_rn((double)((const T *)&a)[i], (double)((const T *)&b)[i]);
        size = kith_norm_add(NORM, size, t);
      }
    }
    if (how.early && size > how.limit)
      return false;
  }
  return size <= how.limit;
}

__device__ uint32_t query_of(unsigned long long pair, bool flagged) {
  return (uint32_t)((flagged ? pair & ~SURE_PAIR : pair) >> 32);
}

template <kith_norm NORM, typename T>
__device__ bool belong_together(uint32_t query, uint32_t candidate, const settling &how) {
  const T *a = (const T *)how.q_coords + (uint64_t)query * how.dim;
  const T *b = (const T *)how.c_coords + (uint64_t)candidate * how.dim;
  return how.dim % wide<T>::N == 0 ? is_within<NORM, T, wide<T>>(a, b, how) : is_within<NORM, T, T>(a, b, how);
}

/* Decides every pair of the list that is not sure by the definition; strikes out those that do not belong. */
template <kith_norm NORM, typename T>
__global__ void settle_pairs(pair_list list, unsigned long long n, settling how) {
  unsigned long long found = 0;
  for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += (unsigned long long)gridDim.x * blockDim.x) {
    unsigned long long pair = list.pairs[i];
    uint32_t query = query_of(pair, how.flagged);
    uint32_t candidate = (uint32_t)pair;
    if (!(how.flagged && pair & SURE_PAIR) && !belong_together<NORM, T>(query, candidate, how)) {
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
  bool one_set, half, flagged;

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
  uint32_t a = to.q_ids[query_of(pairs[i], to.flagged)];
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

template <kith_norm NORM, typename SIEVE>
void launch(const dense_args &args, dim3 blocks, cudaStream_t stream) {
  constexpr int BYTES = sizeof(dense_memory<SIEVE>);
  check(cudaFuncSetAttribute(join_dense<NORM, SIEVE>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES),
        "join_dense");
  join_dense<NORM, SIEVE><<<blocks, 256, BYTES, stream>>>(args);
  check_launch("join_dense");
}

/* The sieve of a norm. Norm 1 in one chunk is coded (dense_plan). */
template <kith_norm NORM, int K, bool MANY>
using sieve = std::conditional_t<
    NORM == KITH_NORM_2, product_sieve<K, MANY>,
    std::conditional_t<NORM == KITH_NORM_1 && !MANY, code_sieve<K>, mark_sieve<NORM, K, MANY>>>;

template <kith_norm NORM>
void launch_filter(uint32_t chunk_columns, const dense_args &args, dim3 blocks, cudaStream_t stream) {
  if (chunk_columns == 16)
    launch<NORM, sieve<NORM, 1, false>>(args, blocks, stream);
  else if (chunk_columns == 32)
    launch<NORM, sieve<NORM, 2, false>>(args, blocks, stream);
  else if (args.chunks == 1)
    launch<NORM, sieve<NORM, 4, false>>(args, blocks, stream);
  else
    launch<NORM, sieve<NORM, 4, true>>(args, blocks, stream);
}

/* Calls a function with the norm as a constant. */
template <typename F> void with_norm(kith_norm norm, F use) {
  switch (norm) {
  case KITH_NORM_1:
    return use(std::integral_constant<kith_norm, KITH_NORM_1>{});
  case KITH_NORM_2:
    return use(std::integral_constant<kith_norm, KITH_NORM_2>{});
  case KITH_NORM_MAX:
    return use(std::integral_constant<kith_norm, KITH_NORM_MAX>{});
  }
}

} // namespace

/* ---- the join ------------------------------------------------------------------------------------------ */

struct kith_cuda_dense::narrowed {
  buffer<char> values;
  buffer<uint32_t> own;
  buffer<dense_tile> tiles;
  buffer<float> low, high; /* boxes around the sketches of tiles */
  dense_points points{};
};

kith_cuda_dense::kith_cuda_dense(kith_cuda_join &join, const uint64_t invalid[2])
    : join(join), session(join.session) {
  const dense_plan &plan = join.plan.dense;
  uint32_t dim = join.a.dim;
  chunk_columns = chunk_columns_for(dim);
  chunks = (dim + chunk_columns - 1) / chunk_columns;
  auto center = upload(session, plan.center.data(), dim, "the centre of the points");
  candidates = narrow(join.b, invalid[join.spec.one_set ? 0 : 1], center.get(), join.index_b);
  if (!join.spec.one_set)
    queries = narrow(join.a, invalid[0], center.get(), join.index_a);
}

kith_cuda_dense::~kith_cuda_dense() = default;

/* Orders and narrows one set; its index is in the same order. */
std::unique_ptr<kith_cuda_dense::narrowed> kith_cuda_dense::narrow(const view &points, uint64_t invalid_rows,
                                                                   const double *center, cell_index &index) {
  auto made = std::make_unique<narrowed>();
  sketched_points ordered = order_by_sketch(session, points, invalid_rows, sketch(), join.is_f64, DENSE_TILE);
  index = std::move(ordered.index);
  made->low = std::move(ordered.low);
  made->high = std::move(ordered.high);
  uint32_t n_tiles = blocks_for(index.n, DENSE_TILE);
  narrowing how{center,     join.plan.dense.scale,  join.plan.dense.last_mark,
                join.a.dim, chunks * chunk_columns, chunk_columns,
                row_bytes()};
  uint64_t n_points = (uint64_t)n_tiles * DENSE_TILE;
  bool coded = join.plan.dense.coded;
  made->values = session.make<char>(n_points * chunks * how.row_bytes, "narrow points");
  made->own = session.make<uint32_t>(norm() == KITH_NORM_2 || coded ? n_points : 0, "their own numbers");
  made->tiles = session.make<dense_tile>(n_tiles, "tiles");
  made->points = dense_points{made->values.get(),
                              made->own.get(),
                              made->tiles.get(),
                              made->low.get(),
                              made->high.get(),
                              index.n,
                              n_tiles};
  if (n_tiles == 0)
    return made;
  if (coded) /* rows may have gaps, which are copied, but not used */
    check(cudaMemsetAsync(made->values.get(), 0, made->values.size(), session.stream), "narrowing");
  auto launch = [&](auto norm, auto *coords) {
    auto kernel = coded ? narrow_points<norm(), norm() == KITH_NORM_1, std::decay_t<decltype(*coords)>>
                        : narrow_points<norm(), false, std::decay_t<decltype(*coords)>>;
    kernel<<<n_tiles, THREADS, 0, session.stream>>>(coords, index.n, how, made->values.get(), made->own.get(),
                                                    made->tiles.get());
  };
  with_norm(norm(), [&](auto norm) {
    if (join.is_f64)
      launch(norm, (const double *)index.coords.get());
    else
      launch(norm, (const float *)index.coords.get());
  });
  check_launch("narrowing");
  return made;
}

/* Bytes that a point has in a chunk. */
uint32_t kith_cuda_dense::row_bytes() const {
  if (join.plan.dense.coded)
    return code_form{chunk_columns}.row_bytes();
  return chunk_columns * (norm() == KITH_NORM_2 ? sizeof(__half) : 1);
}

kith_norm kith_cuda_dense::norm() const { return join.spec.predicate.norm; }

bool kith_cuda_dense::flags() const { return join.queries().n <= INT32_MAX; }

kith_sketch kith_cuda_dense::sketch() const { return join.plan.dense.order.sketch(norm()); }

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
  kith_sketch sketch = this->sketch();
  args.sketch_dims = kith_sketch_dims(&sketch);
  args.reach = kith_sketch_reach(&sketch, &join.spec.predicate);
  args.eps =
      (float)(kith_norm_distance(norm(), join.spec.predicate.limit) * join.plan.dense.scale * (1 + 0x1p-20));
  args.slack = (float)((chunks * chunk_columns / 16 * 40 + 16) * 0x1p-22);
  args.flags = flags();
  args.beyond = join.plan.dense.beyond * EACH_BYTE;
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
  with_norm(norm(), [&](auto norm) { launch_filter<norm()>(chunk_columns, args, blocks, session.stream); });
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
               flags(),
               !join.spec.no_shortc,
               degrees,
               &join.total.get()->found};
  pair_list pairs{list.get(), list.size(), nullptr};
  unsigned blocks = (unsigned)std::min<uint64_t>((n + THREADS - 1) / THREADS, 64U * session.multiprocessors);
  with_norm(norm(), [&](auto norm) {
    if (join.is_f64)
      settle_pairs<norm(), double><<<blocks, THREADS, 0, session.stream>>>(pairs, n, how);
    else
      settle_pairs<norm(), float><<<blocks, THREADS, 0, session.stream>>>(pairs, n, how);
  });
  check_launch("settling pairs");
}

/* Finds the pairs of a part and gives them to `use`; cut in two while they do not fit the list. */
template <typename F> void kith_cuda_dense::each_list(const part &whole, F use) {
  constexpr uint32_t MOST_SEGMENTS = 65535; /* of a launch */
  uint32_t segments = blocks_for(whole.candidate_end - whole.candidate, DENSE_SEGMENT);
  uint64_t n = segments > MOST_SEGMENTS ? UINT64_MAX : filter(whole);
  if (n <= list.size()) {
    use(n);
    return;
  }
  part first = whole;
  part second = whole;
  if (segments <= MOST_SEGMENTS && whole.query_end - whole.query > 1)
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
             neighbors,   (bool)join.spec.one_set, (bool)join.spec.half, flags()};
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
