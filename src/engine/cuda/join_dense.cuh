/* join_dense: all points with all, for dimensions in which a grid prunes little.
 *
 * Points are narrowed, in the order of the index, to numbers of one or two bytes, or to codes. A block of eight
 * warps takes a tile of 128 queries and, one after the other, the tiles of 128 candidates of a segment; tiles
 * whose boxes lie farther apart than eps are left out. A sieve adds up, for every pair, what tells that it is
 * surely too far apart: products on tensor cores for norm 2 (sieve_products.cuh), bits in common there for norm
 * 1 (sieve_codes.cuh), differences of bytes for norm max and many columns of norm 1 (sieve_marks.cuh). What is
 * left, hardly more than the result, goes to a list of pairs, and the definition decides (settle_pairs).
 * docs/exactness.md has the proof.
 *
 * One set meets itself once: tiles j >= i only, and in tile i itself the pairs with a larger position.
 *
 * A sieve has its sums in registers, 32 in each of two parts:
 *   limits_of         what pairs of two tiles are compared with
 *   see_queries       looks at the tile of queries
 *   begin, add        for a tile of candidates, whose first chunk is in a stage; one more chunk
 *   has_any, find     whether some pair of the lane's part may belong; which, the first one in the upper bit
 *   row, column       where in the tile a sum lies */
#ifndef KITH_ENGINE_CUDA_JOIN_DENSE_CUH
#define KITH_ENGINE_CUDA_JOIN_DENSE_CUH

#include "engine/cuda/join_args.cuh"
#include "index/sketch.h"

#include <cuda_fp16.h>

namespace kith_cuda {

constexpr uint32_t DENSE_TILE = 128;
constexpr uint32_t DENSE_SEGMENT = 64; /* tiles of candidates that a block meets */

/* Columns come in chunks: one of 16, 32 or 64 if that holds all of them, else several of 64. */
constexpr uint32_t MOST_CHUNK_COLUMNS = 64;
inline uint32_t chunk_columns_for(uint32_t dim) { return dim <= 16 ? 16 : dim <= 32 ? 32 : MOST_CHUNK_COLUMNS; }

/* What the filter knows of a tile; scaled. */
struct dense_tile {
  float norm2; /* the largest |a|^2; norm 2 only */
  float error; /* no point was moved farther */
};

/* One set as the filter sees it. Values lie [tile][chunk][point of the tile][column of the chunk]; codes follow
 * the columns. */
struct dense_points {
  const void *values;
  const void *own; /* what each point adds to its sums, in four bytes; NULL: nothing */
  const dense_tile *tiles;
  const float *low, *high; /* [tile][dimension of the sketch] */
  uint32_t n, n_tiles;

  __device__ kith_sketch_box box(uint32_t tile, uint32_t dims) const {
    return {low + (uint64_t)tile * dims, high + (uint64_t)tile * dims, 1};
  }
};

/* Pairs of positions, query in the upper word; its upper bit flags a pair that surely belongs. That takes
 * positions below 2^31: where there are more, none is flagged. */
constexpr unsigned long long SURE_PAIR = 1ULL << 63;

struct pair_list {
  unsigned long long *pairs;
  unsigned long long capacity;
  unsigned long long *used; /* more than the capacity: the list is not complete */
};
constexpr unsigned long long NO_PAIR = ~0ULL; /* struck out */

struct dense_args {
  dense_points queries, candidates;
  uint32_t chunks; /* of columns */
  uint32_t sketch_dims;
  float reach;     /* of sketches: tiles farther apart do not meet */
  float eps;       /* scaled, rounded up */
  float slack;     /* norm 2: what rounding costs, beside the numbers that are added up */
  bool flags;      /* norm 2: pairs that surely belong */
  uint32_t beyond; /* norm max: bits that differences have if they are too large, in each of four columns */
  bool one_set;
  uint32_t query_tile, candidate_tile, candidate_end; /* where the launch begins and ends */
  pair_list out;
  tally *total;
  const int *stop;
};

__device__ inline void copy_async(void *to, const void *from) {
  uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from));
}

/* WIDTH: values that a point has in a chunk. MANY: there are several chunks, and the queries' come and go like
 * those of the candidates. A round is GROUP steps, a tile's chunk each: while one is in use, the next is on its
 * way. Threads wait for each other once a round, so that a warp that finds pairs does not hold up the others at
 * every step. With that ROOM two blocks fit a multiprocessor of 228 KB. Rows are padded, so that eight of them
 * lie in different banks. */
template <int WIDTH_, bool MANY_, typename VALUE, int PADDING> struct dense_shape {
  static constexpr bool MANY = MANY_;
  using value = VALUE;
  static constexpr int WIDTH = WIDTH_, STRIDE = WIDTH + PADDING;
  static constexpr uint32_t ROOM = 94 << 10, TILES = ROOM / (DENSE_TILE * STRIDE * sizeof(VALUE));
  static constexpr uint32_t GROUP = MANY || TILES < 5 ? 1 : TILES < 13 ? (TILES - 1) / 2 : 6;
  static constexpr uint32_t STAGES = 2 * GROUP;
};

template <typename SIEVE> struct dense_memory {
  using shape = typename SIEVE::shape;
  using value = typename shape::value;
  static constexpr uint32_t STAGES = shape::STAGES, WARPS = 8, FOUND = 64;
  value queries[shape::MANY ? STAGES : 1][DENSE_TILE * shape::STRIDE];
  value candidates[STAGES][DENSE_TILE * shape::STRIDE];
  alignas(16) typename SIEVE::own_number own[SIEVE::HAS_OWN ? STAGES : 1][DENSE_TILE]; /* of the candidates */
  uint32_t near[DENSE_SEGMENT];                                                        /* tiles to meet, */
  typename SIEVE::limits limits[DENSE_SEGMENT]; /* and how far pairs with each may be apart */
  uint32_t n_near;
  unsigned long long found[WARPS][FOUND]; /* pairs on their way to the list */

  __device__ const value *query_values(uint32_t stage) const { return queries[shape::MANY ? stage : 0]; }
};

/* Where a sieve is: in a stage, with a chunk of a tile of candidates. */
template <typename SIEVE> struct dense_step {
  const dense_args &args;
  const dense_memory<SIEVE> &memory;
  uint32_t stage;
  const typename SIEVE::limits &limits;
};

/* A warp's part of the tile. */
template <int ROWS, int COLUMNS> struct dense_part {
  static constexpr uint32_t DOWN = DENSE_TILE / ROWS; /* parts one below the other */
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t row0 = threadIdx.x / 32 % DOWN * ROWS, column0 = threadIdx.x / 32 / DOWN * COLUMNS;
};

template <kith_norm NORM, typename SIEVE> struct dense_join {
  using memory_type = dense_memory<SIEVE>;
  using shape = typename SIEVE::shape;
  static constexpr uint32_t GROUP = shape::GROUP, STAGES = shape::STAGES;
  static constexpr int THREADS = 256;

  const dense_args &args;
  memory_type &memory;
  SIEVE sieve;
  const uint32_t thread = threadIdx.x, lane = threadIdx.x % 32;
  const uint32_t chunks;
  uint32_t query_tile = 0, steps = 0;
  uint32_t n_found = 0; /* by this warp, on their way */

  __device__ dense_join(const dense_args &args, memory_type &memory)
      : args(args), memory(memory), chunks(shape::MANY ? args.chunks : 1) {}

  /* Whether points of a tile may lie within eps of queries. */
  __device__ bool is_near(uint32_t tile) const {
    kith_sketch_box a = args.queries.box(query_tile, args.sketch_dims);
    kith_sketch_box b = args.candidates.box(tile, args.sketch_dims);
    return !(kith_sketch_gap(NORM, a, b, args.sketch_dims) > args.reach);
  }

  /* Lists the tiles of the segment that are to be met. */
  __device__ void list_near(uint32_t first) {
    uint32_t tile = first + thread;
    bool near = thread < DENSE_SEGMENT && tile < args.candidate_end && (!args.one_set || tile >= query_tile);
    near = near && is_near(tile);
    if (thread == 0)
      memory.n_near = 0;
    __syncthreads();
    uint32_t all = __ballot_sync(ALL_LANES, near);
    uint32_t place = 0;
    if (lane == 0 && all)
      place = atomicAdd(&memory.n_near, __popc(all));
    place = __shfl_sync(ALL_LANES, place, 0) + __popc(all & ((1U << lane) - 1));
    if (near) {
      memory.near[place] = tile;
      memory.limits[place] =
          SIEVE::limits_of(args, args.queries.tiles[query_tile], args.candidates.tiles[tile]);
    }
    __syncthreads();
  }

  /* Fetches a chunk of a tile, 16 bytes a thread at a time. */
  __device__ void fetch(typename shape::value *to, const dense_points &points, uint32_t tile,
                        uint32_t chunk) const {
    constexpr int PIECE = 16 / sizeof(typename shape::value), PIECES = shape::WIDTH / PIECE; /* in a row */
    constexpr bool IS_PADDED = shape::STRIDE > shape::WIDTH;
    static_assert(!IS_PADDED || THREADS % PIECES == 0);
    constexpr uint32_t STEP = IS_PADDED ? THREADS / PIECES * shape::STRIDE : THREADS * PIECE;
    constexpr uint32_t ALL = DENSE_TILE * PIECES;
    to += IS_PADDED ? thread / PIECES * shape::STRIDE + thread % PIECES * PIECE : thread * PIECE;
    const auto *from = (const typename shape::value *)points.values +
                       (((uint64_t)tile * chunks + chunk) * ALL + thread) * PIECE;
#pragma unroll
    for (uint32_t i = 0; i * THREADS < ALL; i++)
      if ((i + 1) * THREADS <= ALL || thread < ALL - i * THREADS)
        copy_async(to + i * STEP, from + i * THREADS * PIECE);
  }

  /* Fetches a chunk of a tile of candidates, and that of the queries unless all of them are there. */
  __device__ void fetch_step(uint32_t step) const {
    uint32_t chunk = step % chunks;
    uint32_t tile = memory.near[step / chunks];
    fetch(memory.candidates[step % STAGES], args.candidates, tile, chunk);
    if (shape::MANY || step == 0)
      fetch(memory.queries[shape::MANY ? step % STAGES : 0], args.queries, query_tile, chunk);
    static_assert(sizeof(typename SIEVE::own_number) == 4);
    if (SIEVE::HAS_OWN && thread < DENSE_TILE / 4)
      copy_async(&memory.own[step % STAGES][thread * 4],
                 (const typename SIEVE::own_number *)args.candidates.own + (uint64_t)tile * DENSE_TILE +
                     thread * 4);
  }

  /* Fetches what the round that begins with a step needs. */
  __device__ void fetch_round(uint32_t first) const {
    for (uint32_t step = first; step < min(first + GROUP, steps); step++)
      fetch_step(step);
    asm volatile("cp.async.commit_group;");
  }

  /* Moves the pairs that the warp has found to the list. */
  __device__ void flush() {
    unsigned long long place = 0;
    if (lane == 0 && n_found)
      place = atomicAdd(args.out.used, (unsigned long long)n_found);
    place = __shfl_sync(ALL_LANES, place, 0);
    __syncwarp();
    for (uint32_t i = lane; i < n_found; i += 32)
      if (place + i < args.out.capacity)
        args.out.pairs[place + i] = memory.found[thread / 32][i];
    __syncwarp();
    n_found = 0;
  }

  /* Keeps a pair of each lane that has one. */
  __device__ void keep(bool has, uint32_t query, uint32_t candidate, bool sure) {
    has =
        has && query < args.queries.n && candidate < args.candidates.n && (!args.one_set || candidate > query);
    uint32_t all = __ballot_sync(ALL_LANES, has);
    if (n_found + 32 > memory_type::FOUND)
      flush();
    if (has)
      memory.found[thread / 32][n_found + __popc(all & ((1U << lane) - 1))] =
          (unsigned long long)query << 32 | candidate | (sure ? SURE_PAIR : 0);
    n_found += __popc(all);
  }

  /* Keeps the pairs that the sieve lets through; most often there is none. */
  __device__ void end_sums(const dense_step<SIEVE> &step, uint32_t tile) {
    const bool any[2] = {sieve.has_any(0, step), sieve.has_any(1, step)};
    if (!__any_sync(ALL_LANES, any[0] || any[1]))
      return;
    uint32_t query = query_tile * DENSE_TILE;
    uint32_t candidate = tile * DENSE_TILE;
#pragma unroll
    for (int part = 0; part < 2; part++) {
      if (!__any_sync(ALL_LANES, any[part]))
        continue;
      uint32_t sure = 0;
      uint32_t found = sieve.find(part, step, &sure);
      while (__any_sync(ALL_LANES, found != 0)) {
        uint32_t i = __clz(found);
        uint32_t bit = 0x80000000U >> (i & 31);
        keep(found != 0, query + sieve.row(part, i), candidate + sieve.column(part, i), sure & bit);
        found &= ~bit;
      }
    }
  }

  /* One step, whose data are there. */
  __device__ void take(uint32_t step) {
    uint32_t which = step / chunks;
    dense_step<SIEVE> here{args, memory, step % STAGES, memory.limits[which]};
    if (step % chunks == 0)
      sieve.begin(here);
    sieve.add(here);
    if (step % chunks == chunks - 1)
      end_sums(here, memory.near[which]);
  }

  __device__ void run(uint32_t tile, uint32_t first) {
    query_tile = tile;
    list_near(first);
    steps = memory.n_near * chunks;
    if (steps == 0)
      return;
    sieve.see_queries(args, tile);
    fetch_round(0);
    for (uint32_t first_step = 0; first_step < steps; first_step += GROUP) {
      asm volatile("cp.async.wait_group 0;");
      __syncthreads();
      fetch_round(first_step + GROUP); /* where the last round was; arrives while this one is in use */
      for (uint32_t step = first_step; step < min(first_step + GROUP, steps); step++)
        take(step);
    }
    flush();
    if (thread == 0)
      atomicAdd(&args.total->tested, (unsigned long long)memory.n_near * DENSE_TILE * DENSE_TILE);
  }
};

template <kith_norm NORM, typename SIEVE>
__global__ void __launch_bounds__(256, 2) join_dense(const __grid_constant__ dense_args args) {
  /* what a block may have on every GPU that the engine is built for */
  static_assert(sizeof(dense_memory<SIEVE>) <= 99 << 10);
  extern __shared__ __align__(16) char room[];
  uint32_t tile = args.query_tile + blockIdx.x;
  uint32_t first = args.candidate_tile + blockIdx.y * DENSE_SEGMENT;
  if ((args.one_set && first + DENSE_SEGMENT <= tile) || *(const volatile int *)args.stop)
    return;
  dense_join<NORM, SIEVE>(args, *(dense_memory<SIEVE> *)room).run(tile, first);
}

} // namespace kith_cuda
#endif
