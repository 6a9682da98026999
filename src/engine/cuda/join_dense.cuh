/* join_dense: all points with all, on tensor cores; for dimensions in which a grid prunes little.
 *
 * Points are narrowed to half precision about their mean, scaled by a power of two, in the order of the index.
 * A block of eight warps takes a tile of 128 queries and, one after the other, the tiles of 128 candidates of a
 * segment; tiles whose boxes lie farther apart than eps are left out. For every pair the tensor cores compute
 *     s = (eps + e)^2 / 2 + slack - |a|^2 / 2 - |b|^2 / 2 + a . b        (eps, a, b scaled)
 * which is negative only if the pair is surely too far apart: e bounds what narrowing moved the two points by,
 * and slack the rounding of the sum (docs/exactness.md has the proof). What is left, hardly more than the
 * result, goes to a list of pairs, each of which the definition then decides (settle_pairs).
 *
 * One set meets itself once: tiles j >= i only, and in tile i itself the pairs with a larger position. */
#ifndef KITH_ENGINE_CUDA_JOIN_DENSE_CUH
#define KITH_ENGINE_CUDA_JOIN_DENSE_CUH

#include "engine/cuda/join_args.cuh"

#include <cuda_fp16.h>

namespace kith_cuda {

constexpr uint32_t DENSE_TILE = 128;
constexpr uint32_t DENSE_SEGMENT = 64; /* tiles of candidates that a block meets */
constexpr uint32_t DENSE_BOX_DIMS = 8;

/* What the filter knows of a tile; scaled. */
struct dense_tile {
  float norm2; /* the largest |a|^2 */
  float error; /* no point was moved farther */
  float low[DENSE_BOX_DIMS], high[DENSE_BOX_DIMS];
};

/* One set as the filter sees it. Halves lie [tile][chunk][point of the tile][column of the chunk]. */
struct dense_points {
  const __half *values;
  const float *half_norm2; /* infinite beyond n */
  const dense_tile *tiles;
  uint32_t n, n_tiles;
};

/* Pairs of positions, query in the upper word. */
struct pair_list {
  unsigned long long *pairs;
  unsigned long long capacity;
  unsigned long long *used; /* more than the capacity: the list is not complete */
};
constexpr unsigned long long NO_PAIR = ~0ULL;

struct dense_args {
  dense_points queries, candidates;
  uint32_t chunks; /* of columns */
  uint32_t box_dims;
  float eps;   /* scaled, rounded up */
  float slack; /* what rounding costs, beside the numbers that are added up */
  bool one_set;
  uint32_t query_tile, candidate_tile, candidate_end; /* where the launch begins and ends */
  pair_list out;
  tally *total;
  const int *stop;
};

/* ---- tensor cores -------------------------------------------------------------------------------------- */

__device__ inline void load_matrices(uint32_t (&to)[4], const __half *from) {
  uint32_t at = (uint32_t)__cvta_generic_to_shared(from);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at));
}

/* sum += a * b, for 16 x 16 by 16 x 8. Not volatile: what the next ones need may be loaded meanwhile. */
__device__ inline void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void copy_async(void *to, const void *from) {
  uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from));
}

/* ---- the filter ---------------------------------------------------------------------------------------- */

/* K: steps of 16 columns in a chunk. MANY: there are several chunks, and the queries' come and go like those of
 * the candidates. STAGES of them are on their way or in use at a time. */
template <int K, bool MANY> struct dense_memory {
  static constexpr int COLUMNS = 16 * K;
  static constexpr int STRIDE = COLUMNS + 8; /* halves of a row: eight rows lie in different banks */
  static constexpr int STAGES = MANY ? 2 : K == 1 ? 8 : K == 2 ? 4 : 3;
  static constexpr uint32_t FOUND = 1024;
  __half queries[MANY ? STAGES : 1][DENSE_TILE * STRIDE];
  __half candidates[STAGES][DENSE_TILE * STRIDE];
  float half_norm2[STAGES][DENSE_TILE];
  uint32_t near[DENSE_SEGMENT]; /* tiles to meet */
  float limit[DENSE_SEGMENT];   /* and what sums begin with, before lengths are taken off */
  uint32_t n_near;
  uint32_t n_found;
  unsigned long long place; /* of `found` in the list */
  unsigned long long found[FOUND];
};

template <int K, bool MANY> struct dense_join {
  using shared = dense_memory<K, MANY>;
  static constexpr int STAGES = shared::STAGES;
  static constexpr int THREADS = 256, ROWS = 32, COLUMNS = 64; /* of a warp's part of the tile */

  const dense_args &args;
  shared &memory;
  const uint32_t thread = threadIdx.x, lane = threadIdx.x % 32;
  const uint32_t row0 = threadIdx.x / 32 % 4 * ROWS, column0 = threadIdx.x / 128 * COLUMNS;
  const uint32_t chunks;
  uint32_t query_tile = 0, steps = 0;

  __device__ dense_join(const dense_args &args, shared &memory)
      : args(args), memory(memory), chunks(MANY ? args.chunks : 1) {}

  /* Whether points of two tiles may lie within eps of each other. */
  __device__ bool is_near(const dense_tile &a, const dense_tile &b) const {
    float gap2 = 0;
    for (uint32_t c = 0; c < args.box_dims; c++) {
      float gap = fmaxf(fmaxf(a.low[c] - b.high[c], b.low[c] - a.high[c]), 0.0f);
      gap2 = fmaf(gap, gap, gap2);
    }
    return !(gap2 > args.eps * args.eps * (1 + 0x1p-16f));
  }

  /* Lists the tiles of the segment that are to be met. */
  __device__ void list_near(uint32_t first) {
    uint32_t tile = first + thread;
    bool near = thread < DENSE_SEGMENT && tile < args.candidate_end && (!args.one_set || tile >= query_tile);
    near = near && is_near(args.queries.tiles[query_tile], args.candidates.tiles[tile]);
    if (thread == 0)
      memory.n_near = memory.n_found = 0;
    __syncthreads();
    uint32_t all = __ballot_sync(ALL_LANES, near);
    uint32_t place = 0;
    if (lane == 0 && all)
      place = atomicAdd(&memory.n_near, __popc(all));
    place = __shfl_sync(ALL_LANES, place, 0) + __popc(all & ((1U << lane) - 1));
    if (near) {
      memory.near[place] = tile;
      memory.limit[place] = limit_of(args.queries.tiles[query_tile], args.candidates.tiles[tile]);
    }
    __syncthreads();
  }

  __device__ float limit_of(const dense_tile &a, const dense_tile &b) const {
    float reach = args.eps + a.error + b.error;
    return reach * reach * (0.5f + 0x1p-18f + args.slack) + args.slack * (a.norm2 + b.norm2);
  }

  /* Fetches a chunk of a tile. */
  __device__ void fetch(__half *to, const dense_points &points, uint32_t tile, uint32_t chunk) const {
    constexpr int PIECES = shared::COLUMNS / 8; /* of 16 bytes, in a row */
    const __half *from = points.values + ((uint64_t)tile * chunks + chunk) * DENSE_TILE * shared::COLUMNS;
    for (uint32_t i = thread; i < DENSE_TILE * PIECES; i += THREADS)
      copy_async(to + i / PIECES * shared::STRIDE + i % PIECES * 8, from + i * 8);
  }

  /* Fetches what a step needs, if there is such a step: a chunk of a tile of candidates, and that of the
   * queries unless all of them are there. */
  __device__ void fetch_step(uint32_t step) const {
    if (step < steps) {
      uint32_t chunk = step % chunks;
      uint32_t tile = memory.near[step / chunks];
      fetch(memory.candidates[step % STAGES], args.candidates, tile, chunk);
      if (MANY || step == 0)
        fetch(memory.queries[MANY ? step % STAGES : 0], args.queries, query_tile, chunk);
      if (thread < DENSE_TILE / 4)
        copy_async(&memory.half_norm2[step % STAGES][thread * 4],
                   args.candidates.half_norm2 + (uint64_t)tile * DENSE_TILE + thread * 4);
    }
    asm volatile("cp.async.commit_group;");
  }

  /* Adds a chunk to the sums. Lanes give the addresses of the rows of four 8 x 8 matrices each. */
  __device__ void multiply_chunk(float (&sum)[2][8][4], uint32_t stage) const {
    const __half *a = memory.queries[MANY ? stage : 0] + (row0 + lane % 16) * shared::STRIDE + lane / 16 * 8;
    const __half *b =
        memory.candidates[stage] + (column0 + lane / 16 * 8 + lane % 8) * shared::STRIDE + lane / 8 % 2 * 8;
#pragma unroll
    for (int k = 0; k < K; k++) {
      uint32_t rows[2][4];
      uint32_t columns[4][4];
#pragma unroll
      for (int m = 0; m < 2; m++)
        load_matrices(rows[m], a + m * 16 * shared::STRIDE + k * 16);
#pragma unroll
      for (int n = 0; n < 4; n++)
        load_matrices(columns[n], b + n * 16 * shared::STRIDE + k * 16);
#pragma unroll
      for (int n = 0; n < 4; n++)
#pragma unroll
        for (int m = 0; m < 2; m++) {
          multiply(sum[m][2 * n], rows[m], columns[n][0], columns[n][1]);
          multiply(sum[m][2 * n + 1], rows[m], columns[n][2], columns[n][3]);
        }
    }
  }

  /* Puts a pair on the list. */
  __device__ void keep(uint32_t query, uint32_t candidate) {
    if (query >= args.queries.n || candidate >= args.candidates.n || (args.one_set && candidate <= query))
      return;
    unsigned long long pair = (unsigned long long)query << 32 | candidate;
    uint32_t place = atomicAdd(&memory.n_found, 1U);
    if (place < shared::FOUND) {
      memory.found[place] = pair;
      return;
    }
    unsigned long long far = atomicAdd(args.out.used, 1ULL);
    if (far < args.out.capacity)
      args.out.pairs[far] = pair;
  }

  /* Moves the pairs found so far to the list; all threads. */
  __device__ void flush() {
    __syncthreads();
    uint32_t n = min(memory.n_found, shared::FOUND);
    if (thread == 0 && n)
      memory.place = atomicAdd(args.out.used, (unsigned long long)n);
    __syncthreads();
    for (uint32_t i = thread; i < n; i += THREADS)
      if (memory.place + i < args.out.capacity)
        args.out.pairs[memory.place + i] = memory.found[i];
    __syncthreads();
    if (thread == 0)
      memory.n_found = 0;
    __syncthreads();
  }

  /* s, before a . b is added. */
  __device__ void begin_sums(float (&sum)[2][8][4], const float (&own)[2][2], float limit,
                             const float *half_norm2) const {
#pragma unroll
    for (int n = 0; n < 8; n++) {
      float2 other = *(const float2 *)(half_norm2 + column0 + n * 8 + lane % 4 * 2);
#pragma unroll
      for (int m = 0; m < 2; m++) {
        sum[m][n][0] = (limit - own[m][0]) - other.x;
        sum[m][n][1] = (limit - own[m][0]) - other.y;
        sum[m][n][2] = (limit - own[m][1]) - other.x;
        sum[m][n][3] = (limit - own[m][1]) - other.y;
      }
    }
  }

  /* Keeps the pairs whose sum is not negative. */
  __device__ void end_sums(const float (&sum)[2][8][4], uint32_t tile) {
    int signs = -1;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
      for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          signs &= __float_as_int(sum[m][n][e]);
    if (signs < 0)
      return;
    uint32_t query = query_tile * DENSE_TILE + row0 + lane / 4;
    uint32_t candidate = tile * DENSE_TILE + column0 + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
      for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          if (__float_as_int(sum[m][n][e]) >= 0)
            keep(query + m * 16 + e / 2 * 8, candidate + n * 8 + e % 2);
  }

  __device__ void run(uint32_t tile, uint32_t first) {
    query_tile = tile;
    list_near(first);
    steps = memory.n_near * chunks;
    if (steps == 0)
      return;
    float own[2][2];
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
      for (int h = 0; h < 2; h++)
        own[m][h] = args.queries.half_norm2[(uint64_t)tile * DENSE_TILE + row0 + m * 16 + h * 8 + lane / 4];
    for (int step = 0; step < STAGES - 1; step++)
      fetch_step(step);
    float sum[2][8][4];
    for (uint32_t step = 0; step < steps; step++) {
      asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
      if (__syncthreads_or(thread == 0 && memory.n_found > shared::FOUND / 2))
        flush();
      fetch_step(step + STAGES - 1); /* into the stage that the last step used; arrives while others are */
      uint32_t which = step / chunks;
      uint32_t stage = step % STAGES;
      if (step % chunks == 0)
        begin_sums(sum, own, memory.limit[which], memory.half_norm2[stage]);
      multiply_chunk(sum, stage);
      if (step % chunks == chunks - 1)
        end_sums(sum, memory.near[which]);
    }
    flush();
    if (thread == 0)
      atomicAdd(&args.total->tested, (unsigned long long)memory.n_near * DENSE_TILE * DENSE_TILE);
  }
};

template <int K, bool MANY>
__global__ void __launch_bounds__(256, 2) join_dense(const __grid_constant__ dense_args args) {
  extern __shared__ __align__(16) char room[];
  uint32_t tile = args.query_tile + blockIdx.x;
  uint32_t first = args.candidate_tile + blockIdx.y * DENSE_SEGMENT;
  if ((args.one_set && first + DENSE_SEGMENT <= tile) || *(const volatile int *)args.stop)
    return;
  dense_join<K, MANY>(args, *(dense_memory<K, MANY> *)room).run(tile, first);
}

} // namespace kith_cuda
#endif
