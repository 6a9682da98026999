/* join_dense: all points with all, on tensor cores; for dimensions in which a grid prunes little.
 *
 * Points are narrowed to half precision about their mean, scaled by a power of two, in the order of the index.
 * A block of eight warps takes a tile of 128 queries and, one after the other, the tiles of 128 candidates of a
 * segment; tiles whose boxes lie farther apart than eps are left out. For every pair the tensor cores compute
 *     s = (eps + e)^2 / 2 + slack - |a|^2 / 2 - |b|^2 / 2 + a . b        (eps, a, b scaled)
 * which is negative only if the pair is surely too far apart: e bounds what narrowing moved the two points by,
 * and slack the rounding of the sum (docs/exactness.md has the proof). What is left, hardly more than the
 * result, goes to a list of pairs. Where s is so large that the pair surely belongs, it is marked; the others
 * the definition then decides (settle_pairs).
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

/* Pairs of positions, query in the upper word; its upper bit marks a pair that surely belongs. That takes
 * positions below 2^31: where there are more, none is marked. */
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
  uint32_t box_dims;
  float eps;   /* scaled, rounded up */
  bool marks;  /* pairs that surely belong */
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
 * the candidates. A round is GROUP steps, a tile's chunk each: while one is in use, the next is on its way.
 * Threads wait for each other once a round, so that a warp that finds pairs does not hold up the others at
 * every step. */
template <int K, bool MANY> struct dense_memory {
  static constexpr int COLUMNS = 16 * K;
  static constexpr int STRIDE = COLUMNS + 8; /* halves of a row: eight rows lie in different banks */
  static constexpr uint32_t GROUP = MANY ? 1 : K == 1 ? 6 : K == 2 ? 3 : 2;
  static constexpr uint32_t STAGES = 2 * GROUP;
  static constexpr uint32_t WARPS = 8, FOUND = 64;
  __half queries[MANY ? STAGES : 1][DENSE_TILE * STRIDE];
  __half candidates[STAGES][DENSE_TILE * STRIDE];
  float half_norm2[STAGES][DENSE_TILE];
  uint32_t near[DENSE_SEGMENT]; /* tiles to meet */
  float limit[DENSE_SEGMENT];   /* what sums begin with, before lengths are taken off, */
  float sure[DENSE_SEGMENT];    /* and what they are at least if a pair surely belongs */
  uint32_t n_near;
  unsigned long long found[WARPS][FOUND]; /* pairs on their way to the list */
};

/* What a block may have on every GPU that the engine is built for. */
static_assert(sizeof(dense_memory<1, false>) <= 99 << 10 && sizeof(dense_memory<2, false>) <= 99 << 10 &&
              sizeof(dense_memory<4, false>) <= 99 << 10 && sizeof(dense_memory<4, true>) <= 99 << 10);

template <int K, bool MANY> struct dense_join {
  using shared = dense_memory<K, MANY>;
  static constexpr uint32_t GROUP = shared::GROUP, STAGES = shared::STAGES;
  static constexpr int THREADS = 256, ROWS = 32, COLUMNS = 64; /* of a warp's part of the tile */

  const dense_args &args;
  shared &memory;
  const uint32_t thread = threadIdx.x, lane = threadIdx.x % 32;
  const uint32_t row0 = threadIdx.x / 32 % 4 * ROWS, column0 = threadIdx.x / 128 * COLUMNS;
  const uint32_t chunks;
  uint32_t query_tile = 0, steps = 0;
  uint32_t n_found = 0; /* by this warp, on their way */

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
      memory.n_near = 0;
    __syncthreads();
    uint32_t all = __ballot_sync(ALL_LANES, near);
    uint32_t place = 0;
    if (lane == 0 && all)
      place = atomicAdd(&memory.n_near, __popc(all));
    place = __shfl_sync(ALL_LANES, place, 0) + __popc(all & ((1U << lane) - 1));
    if (near) {
      memory.near[place] = tile;
      set_limits(place, args.queries.tiles[query_tile], args.candidates.tiles[tile]);
    }
    __syncthreads();
  }

  /* 2^-18 is for the rounding of eps and of these sums themselves. */
  __device__ void set_limits(uint32_t place, const dense_tile &a, const dense_tile &b) {
    float reach = args.eps + a.error + b.error;
    float least = args.eps * (1 - 0x1p-18f) - a.error - b.error; /* eps is rounded up */
    float slack = args.slack * (a.norm2 + b.norm2 + reach * reach);
    float limit = memory.limit[place] = reach * reach * (0.5f + 0x1p-18f) + slack;
    float surely = least * least * (0.5f - 0x1p-18f) - slack;
    memory.sure[place] = args.marks && least > 0 ? limit - surely : INFINITY;
  }

  /* Fetches a chunk of a tile. */
  __device__ void fetch(__half *to, const dense_points &points, uint32_t tile, uint32_t chunk) const {
    constexpr int PIECES = shared::COLUMNS / 8; /* of 16 bytes, in a row */
    const __half *from = points.values + ((uint64_t)tile * chunks + chunk) * DENSE_TILE * shared::COLUMNS;
    for (uint32_t i = thread; i < DENSE_TILE * PIECES; i += THREADS)
      copy_async(to + i / PIECES * shared::STRIDE + i % PIECES * 8, from + i * 8);
  }

  /* Fetches a chunk of a tile of candidates, and that of the queries unless all of them are there. */
  __device__ void fetch_step(uint32_t step) const {
    uint32_t chunk = step % chunks;
    uint32_t tile = memory.near[step / chunks];
    fetch(memory.candidates[step % STAGES], args.candidates, tile, chunk);
    if (MANY || step == 0)
      fetch(memory.queries[MANY ? step % STAGES : 0], args.queries, query_tile, chunk);
    if (thread < DENSE_TILE / 4)
      copy_async(&memory.half_norm2[step % STAGES][thread * 4],
                 args.candidates.half_norm2 + (uint64_t)tile * DENSE_TILE + thread * 4);
  }

  /* Fetches what the round that begins with a step needs. */
  __device__ void fetch_round(uint32_t first) const {
    for (uint32_t step = first; step < min(first + GROUP, steps); step++)
      fetch_step(step);
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
    if (n_found + 32 > shared::FOUND)
      flush();
    if (has)
      memory.found[thread / 32][n_found + __popc(all & ((1U << lane) - 1))] =
          (unsigned long long)query << 32 | candidate | (sure ? SURE_PAIR : 0);
    n_found += __popc(all);
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

  /* The signs of 32 sums, the first one's in the upper bit. */
  __device__ static uint32_t signs_of(const float (&sum)[8][4], float less) {
    uint32_t signs = 0;
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        signs = __funnelshift_l(__float_as_uint(sum[n][e] - less), signs, 1);
    return signs;
  }

  /* Keeps the pairs whose sum is not negative; most often there is none. */
  __device__ void end_sums(const float (&sum)[2][8][4], uint32_t which) {
    int all = -1;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
      for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          all &= __float_as_int(sum[m][n][e]);
    if (__all_sync(ALL_LANES, all < 0))
      return;
    uint32_t query = query_tile * DENSE_TILE + row0 + lane / 4;
    uint32_t candidate = memory.near[which] * DENSE_TILE + column0 + lane % 4 * 2;
#pragma unroll
    for (int m = 0; m < 2; m++) {
      uint32_t found = ~signs_of(sum[m], 0);
      uint32_t sure = ~signs_of(sum[m], memory.sure[which]);
      while (__any_sync(ALL_LANES, found != 0)) {
        uint32_t i = __clz(found);
        uint32_t bit = 0x80000000U >> (i & 31);
        keep(found != 0, query + m * 16 + i / 2 % 2 * 8, candidate + i / 4 * 8 + i % 2, sure & bit);
        found &= ~bit;
      }
    }
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
    fetch_round(0);
    float sum[2][8][4];
    for (uint32_t first_step = 0; first_step < steps; first_step += GROUP) {
      asm volatile("cp.async.wait_group 0;");
      __syncthreads();
      fetch_round(first_step + GROUP); /* where the last round was; arrives while this one is multiplied */
      for (uint32_t step = first_step; step < min(first_step + GROUP, steps); step++) {
        uint32_t which = step / chunks;
        if (step % chunks == 0)
          begin_sums(sum, own, memory.limit[which], memory.half_norm2[step % STAGES]);
        multiply_chunk(sum, step % STAGES);
        if (step % chunks == chunks - 1)
          end_sums(sum, which);
      }
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
