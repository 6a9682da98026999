/* The sieve of norm 1, where one chunk holds all columns: bits that codes have in common, on tensor cores
 * (codes.cuh), and differences of bytes for the few pairs that are left. A pair may belong if
 *     own(a) + own(b) - 2 (common bits, in marks) <= eps
 * in whole marks: what two points have of their own, less what they have in common, bounds their distance from
 * below. */
#ifndef KITH_ENGINE_CUDA_SIEVE_CODES_CUH
#define KITH_ENGINE_CUDA_SIEVE_CODES_CUH

#include "engine/cuda/codes.cuh"
#include "engine/cuda/sieve_marks.cuh"
#include "engine/cuda/tensor.cuh"

namespace kith_cuda {

/* Lanes have 8 x 8 pairs, as tensor cores give them: rows eight apart, columns in twos. */
template <int K> struct code_sieve : dense_part<64, 32> {
  static constexpr code_form FORM{16 * K};
  using shape = dense_shape<FORM.row_bytes(), false, uint8_t, 0>;
  using step = dense_step<code_sieve>;
  using own_number = own_code;
  static constexpr bool HAS_OWN = true;
  static constexpr int M = 4, N = 4; /* matrices of 16 x 8 counts */
  static constexpr int STEPS = FORM.code_bytes() / 32;

  struct limits {
    uint32_t begin; /* what sums of bytes begin with */
  };

  int common[M][N][4]; /* bits, less those that the candidate outweighs */
  int start[N][4];     /* what counts begin with: minus these */
  int limit[M][2];     /* of the lane's queries: pairs with more may belong */

  __device__ static limits limits_of(const dense_args &args, const dense_tile &a, const dense_tile &b) {
    return {begin_marks(args.eps + a.error + b.error)};
  }

  /* From own(a) - T - 1, in the words of docs/exactness.md. */
  __device__ void see_queries(const dense_args &args, uint32_t tile) {
    const auto *own = (const own_code *)args.queries.own + (uint64_t)tile * DENSE_TILE + row0 + lane / 4;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
      for (int h = 0; h < 2; h++)
        limit[m][h] = code_form{16 * K}.bits_outweighed(own[m * 16 + h * 8].marks + (int)begin_marks(args.eps));
  }

  /* The upper half of an own_code is its bits. */
  __device__ void begin(const step &step) {
#pragma unroll
    for (int n = 0; n < N; n++) {
      uint2 other = *(const uint2 *)(step.memory.own[step.stage] + column0 + n * 8 + lane % 4 * 2);
      start[n][0] = start[n][2] = (int)other.x >> 16;
      start[n][1] = start[n][3] = (int)other.y >> 16;
    }
  }

  __device__ void add(const step &step) {
    const uint8_t *a = step.memory.query_values(step.stage) + (row0 + lane % 16) * shape::STRIDE +
                       FORM.columns + lane / 16 * 16;
    const uint8_t *b = step.memory.candidates[step.stage] +
                       (column0 + lane / 16 * 8 + lane % 8) * shape::STRIDE + FORM.columns + lane / 8 % 2 * 16;
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
      uint32_t rows[M][4];
      uint32_t columns[N / 2][4];
#pragma unroll
      for (int m = 0; m < M; m++)
        load_matrices(rows[m], a + m * 16 * shape::STRIDE + k * 32);
#pragma unroll
      for (int n = 0; n < N / 2; n++)
        load_matrices(columns[n], b + n * 16 * shape::STRIDE + k * 32);
#pragma unroll
      for (int n = 0; n < N; n++)
#pragma unroll
        for (int m = 0; m < M; m++)
          count_common(common[m][n], k == 0 ? start[n] : common[m][n], rows[m], columns[n / 2][n % 2 * 2],
                       columns[n / 2][n % 2 * 2 + 1]);
    }
  }

  /* The largest count of a row of the lane. */
  __device__ int most_common(int m, int h) const {
    int most = common[m][0][2 * h];
#pragma unroll
    for (int n = 1; n < N; n++)
      most = __vimax3_s32(most, common[m][n][2 * h], common[m][n][2 * h + 1]);
    return max(most, common[m][0][2 * h + 1]);
  }

  /* With the short codes of 64 columns most often there is one. */
  __device__ bool has_any(int part, const step &) const {
    if constexpr (K == 4)
      return true;
    bool any = false;
#pragma unroll
    for (int m = part * M / 2; m < (part + 1) * M / 2; m++)
      any |= most_common(m, 0) > limit[m][0] || most_common(m, 1) > limit[m][1];
    return any;
  }

  /* Whether a pair may belong, going by its bytes. */
  __device__ bool may_belong(uint32_t row, uint32_t column, const step &step) const {
    const uint8_t *a = step.memory.query_values(step.stage) + row * shape::STRIDE;
    const uint8_t *b = step.memory.candidates[step.stage] + column * shape::STRIDE;
    uint32_t sum = step.limits.begin;
#pragma unroll
    for (int k = 0; k < K; k++)
      sum = add_apart(((const uint4 *)a)[k], ((const uint4 *)b)[k], sum);
    return (int)sum < 0;
  }

  /* None is sure: some coordinates may have been cut off. */
  __device__ uint32_t find(int part, const step &step, uint32_t *) const {
    uint32_t found = 0;
#pragma unroll
    for (int m = 0; m < M / 2; m++)
#pragma unroll
      for (int n = 0; n < N; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          found = __funnelshift_l(limit[part * M / 2 + m][e / 2] - common[part * M / 2 + m][n][e], found, 1);
    for (uint32_t unseen = found; unseen;) {
      uint32_t i = __clz(unseen);
      uint32_t bit = 0x80000000U >> i;
      unseen &= ~bit;
      if (!may_belong(row(part, i), column(part, i), step))
        found &= ~bit;
    }
    return found;
  }

  __device__ uint32_t row(int part, uint32_t i) const {
    return row0 + lane / 4 + part * 32 + i / 16 * 16 + i / 2 % 2 * 8;
  }
  __device__ uint32_t column(int, uint32_t i) const { return column0 + lane % 4 * 2 + i / 4 % 4 * 8 + i % 2; }
};

} // namespace kith_cuda
#endif
