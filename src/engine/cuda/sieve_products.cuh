/* The sieve of norm 2: products on tensor cores. Points are narrowed to half precision about their mean, scaled
 * by a power of two. The sum of a pair is
 *     s = (eps + e)^2 / 2 + slack - |a|^2 / 2 - |b|^2 / 2 + a . b        (eps, a, b scaled)
 * which is negative only if the pair is surely too far apart: e bounds what narrowing moved the two points by,
 * and slack the rounding of the sum. Where s is large enough the pair surely belongs. */
#ifndef KITH_ENGINE_CUDA_SIEVE_PRODUCTS_CUH
#define KITH_ENGINE_CUDA_SIEVE_PRODUCTS_CUH

#include "engine/cuda/join_dense.cuh"
#include "engine/cuda/tensor.cuh"

namespace kith_cuda {

template <int K, bool MANY> struct product_sieve : dense_part<32, 64> {
  using shape = dense_shape<16 * K, MANY, __half, 8>;
  using step = dense_step<product_sieve>;
  using own_number = float; /* half of the squared length, infinite beyond n */
  static constexpr bool HAS_OWN = true;

  struct limits {
    float begin; /* what sums begin with, before lengths are taken off, */
    float sure;  /* and what they are at least if a pair surely belongs */
  };

  float sum[2][8][4];
  float own[2][2]; /* of the lane's queries */

  /* 2^-18 is for the rounding of eps and of these sums themselves. */
  __device__ static limits limits_of(const dense_args &args, const dense_tile &a, const dense_tile &b) {
    float reach = args.eps + a.error + b.error;
    float least = args.eps * (1 - 0x1p-18f) - a.error - b.error; /* eps is rounded up */
    float slack = args.slack * (a.norm2 + b.norm2 + reach * reach);
    float begin = reach * reach * (0.5f + 0x1p-18f) + slack;
    float surely = least * least * (0.5f - 0x1p-18f) - slack;
    return {begin, args.flags && least > 0 ? begin - surely : INFINITY};
  }

  __device__ void see_queries(const dense_args &args, uint32_t tile) {
    const auto *own_of = (const float *)args.queries.own + (uint64_t)tile * DENSE_TILE + row0 + lane / 4;
#pragma unroll
    for (int m = 0; m < 2; m++)
#pragma unroll
      for (int h = 0; h < 2; h++)
        own[m][h] = own_of[m * 16 + h * 8];
  }

  /* s, before a . b is added. */
  __device__ void begin(const step &step) {
#pragma unroll
    for (int n = 0; n < 8; n++) {
      float2 other = *(const float2 *)(step.memory.own[step.stage] + column0 + n * 8 + lane % 4 * 2);
#pragma unroll
      for (int m = 0; m < 2; m++) {
        sum[m][n][0] = (step.limits.begin - own[m][0]) - other.x;
        sum[m][n][1] = (step.limits.begin - own[m][0]) - other.y;
        sum[m][n][2] = (step.limits.begin - own[m][1]) - other.x;
        sum[m][n][3] = (step.limits.begin - own[m][1]) - other.y;
      }
    }
  }

  /* Lanes give the addresses of the rows of four 8 x 8 matrices each. */
  __device__ void add(const step &step) {
    const __half *a = step.memory.query_values(step.stage) + (row0 + lane % 16) * shape::STRIDE + lane / 16 * 8;
    const __half *b = step.memory.candidates[step.stage] +
                      (column0 + lane / 16 * 8 + lane % 8) * shape::STRIDE + lane / 8 % 2 * 8;
#pragma unroll
    for (int k = 0; k < K; k++) {
      uint32_t rows[2][4];
      uint32_t columns[4][4];
#pragma unroll
      for (int m = 0; m < 2; m++)
        load_matrices(rows[m], a + m * 16 * shape::STRIDE + k * 16);
#pragma unroll
      for (int n = 0; n < 4; n++)
        load_matrices(columns[n], b + n * 16 * shape::STRIDE + k * 16);
#pragma unroll
      for (int n = 0; n < 4; n++)
#pragma unroll
        for (int m = 0; m < 2; m++) {
          multiply(sum[m][2 * n], rows[m], columns[n][0], columns[n][1]);
          multiply(sum[m][2 * n + 1], rows[m], columns[n][2], columns[n][3]);
        }
    }
  }

  /* Whether some sum is not negative. */
  __device__ bool has_any(int part, const step &) const {
    int all = -1;
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        all &= __float_as_int(sum[part][n][e]);
    return all >= 0;
  }

  __device__ static uint32_t signs_of(const float (&sum)[8][4], float less) {
    uint32_t signs = 0;
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        signs = __funnelshift_l(__float_as_uint(sum[n][e] - less), signs, 1);
    return signs;
  }

  __device__ uint32_t find(int part, const step &step, uint32_t *sure) const {
    *sure = ~signs_of(sum[part], step.limits.sure);
    return ~signs_of(sum[part], 0);
  }

  __device__ uint32_t row(int part, uint32_t i) const { return row0 + lane / 4 + part * 16 + i / 2 % 2 * 8; }
  __device__ uint32_t column(int, uint32_t i) const { return column0 + lane % 4 * 2 + i / 4 * 8 + i % 2; }
};

} // namespace kith_cuda
#endif
