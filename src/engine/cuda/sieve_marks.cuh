/* The sieve of norm max, and of norm 1 in several chunks: differences of bytes, four columns an instruction.
 * Coordinates become marks on a ruler, whole numbers from 0 on, and what lies beyond its ends is cut off, which
 * moves no two points apart.
 *
 * Norm 1: s = |a - b| - (eps + e) - 1, in whole numbers, is negative unless the pair is surely too far apart.
 * Norm max: a - b + t, where t is the largest difference of a pair that may belong, has a byte for each column.
 * The upper bits are those that are set if any is too large or below 0: no byte borrows from the next one
 * unless it is itself below 0, and the pair too far apart. */
#ifndef KITH_ENGINE_CUDA_SIEVE_MARKS_CUH
#define KITH_ENGINE_CUDA_SIEVE_MARKS_CUH

#include "engine/cuda/join_dense.cuh"

namespace kith_cuda {

constexpr uint32_t EACH_BYTE = 0x01010101;

/* The sum of four differences of bytes, and another number. */
__device__ inline uint32_t add_apart(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t more;
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(more) : "r"(a), "r"(b), "r"(sum));
  return more;
}
__device__ inline uint32_t add_apart(const uint4 &a, const uint4 &b, uint32_t sum) {
  return add_apart(a.w, b.w, add_apart(a.z, b.z, add_apart(a.y, b.y, add_apart(a.x, b.x, sum))));
}

/* Norm 1: what sums begin with, so that they are negative unless a pair is farther apart than so many marks. */
__device__ inline uint32_t begin_marks(float marks) { return (uint32_t)(-1 - (int)(marks * (1 + 0x1p-20f))); }

/* Lanes have 8 x 8 pairs, of rows four and columns eight apart.
 *
 * In norm max one column is enough to tell a pair apart. So where there are many (IN_HALVES), all pairs see the
 * first half of them, and only those that are left see the rest, unless these are too many to be looked at one
 * by one. */
template <kith_norm NORM, int K, bool MANY> struct mark_sieve : dense_part<32, 64> {
  using shape = dense_shape<16 * K, MANY, uint8_t, K == 1 ? 0 : 16>;
  using step = dense_step<mark_sieve>;
  using own_number = float; /* none */
  static constexpr bool HAS_OWN = false;
  static constexpr bool IN_HALVES = NORM == KITH_NORM_MAX && K == 4 && !MANY;
  static constexpr int MOST_LEFT = 12; /* of a lane's pairs, to be looked at one by one */

  struct limits {
    uint32_t begin; /* norm 1: what sums begin with */
    uint32_t apart; /* norm max: t, for each byte */
  };

  uint32_t sum[8][8];
  uint32_t left[2]; /* IN_HALVES: the signs of both parts, */
  bool rest_unseen; /* of which the second half of the columns is still to be seen */

  /* From the largest size, in marks, of a pair that may belong. */
  __device__ static limits limits_of(const dense_args &args, const dense_tile &a, const dense_tile &b) {
    float size = args.eps + a.error + b.error;
    return {begin_marks(size), (uint32_t)(size * (1 + 0x1p-20f)) * EACH_BYTE};
  }

  __device__ void see_queries(const dense_args &, uint32_t) {}

  __device__ void begin(const step &step) {
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < 8; j++)
        sum[i][j] = NORM == KITH_NORM_1 ? step.limits.begin : 0;
  }

  __device__ static void add_words(uint32_t &sum, const uint4 &a, const uint4 &b) {
    if (NORM == KITH_NORM_1)
      sum = add_apart(a, b, sum);
    else
      sum |= (a.x - b.x) | (a.y - b.y) | (a.z - b.z) | (a.w - b.w);
  }

  /* 16 columns of row or column i of the lane; rows with t, in norm max. */
  __device__ uint4 load_row(const step &step, int i, int k) const {
    const uint8_t *rows = step.memory.query_values(step.stage);
    uint4 row = *(const uint4 *)(rows + (row0 + lane / 8 + i * 4) * shape::STRIDE + k * 16);
    uint32_t t = NORM == KITH_NORM_1 ? 0 : step.limits.apart;
    return uint4{row.x + t, row.y + t, row.z + t, row.w + t};
  }
  __device__ uint4 load_column(const step &step, int j, int k) const {
    const uint8_t *columns = step.memory.candidates[step.stage];
    return *(const uint4 *)(columns + (column0 + lane % 8 + j * 8) * shape::STRIDE + k * 16);
  }

  template <int BEGIN, int END> __device__ void add_columns(const step &step) {
#pragma unroll
    for (int k = BEGIN; k < END; k++) {
      uint4 rows[8];
#pragma unroll
      for (int i = 0; i < 8; i++)
        rows[i] = load_row(step, i, k);
#pragma unroll
      for (int j = 0; j < 8; j++) {
        uint4 column = load_column(step, j, k);
#pragma unroll
        for (int i = 0; i < 8; i++)
          add_words(sum[i][j], rows[i], column);
      }
    }
  }

  __device__ void add(const step &step) {
    add_columns<0, IN_HALVES ? K / 2 : K>(step);
    if constexpr (IN_HALVES) {
      see_left(step);
      rest_unseen = !__any_sync(ALL_LANES, __popc(left[0]) + __popc(left[1]) > MOST_LEFT);
      if (!rest_unseen) {
        add_columns<K / 2, K>(step);
        see_left(step);
      }
    }
  }

  __device__ void see_left(const step &step) {
    left[0] = signs(0, step.args);
    left[1] = signs(1, step.args);
  }

  /* A number whose upper bit is set if the pair may belong: bytes without upper bits add up to -1. */
  __device__ static uint32_t sign_of(uint32_t sum, const dense_args &args) {
    return NORM == KITH_NORM_1 ? sum : (uint32_t)__dp4a(sum & args.beyond, EACH_BYTE, -1U);
  }

  __device__ uint32_t signs(int part, const dense_args &args) const {
    uint32_t signs = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 8; j++)
        signs = __funnelshift_l(sign_of(sum[part * 4 + i][j], args), signs, 1);
    return signs;
  }

  __device__ bool has_any(int part, const step &step) const {
    if constexpr (IN_HALVES)
      return left[part];
    uint32_t any = 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 8; j++)
        any |= sign_of(sum[part * 4 + i][j], step.args);
    return (int)any < 0;
  }

  /* Whether a pair may belong, going by the second half of its columns. */
  __device__ bool see_rest(uint32_t i, uint32_t j, const step &step) const {
    uint32_t rest = 0;
#pragma unroll
    for (int k = K / 2; k < K; k++)
      add_words(rest, load_row(step, i, k), load_column(step, j, k));
    return (int)sign_of(rest, step.args) < 0;
  }

  /* None is sure: some coordinates may have been cut off. */
  __device__ uint32_t find(int part, const step &step, uint32_t *) const {
    if constexpr (!IN_HALVES)
      return signs(part, step.args);
    uint32_t found = left[part];
    for (uint32_t unseen = rest_unseen ? found : 0; unseen;) {
      uint32_t i = __clz(unseen);
      uint32_t bit = 0x80000000U >> i;
      unseen &= ~bit;
      if (!see_rest(part * 4 + i / 8, i % 8, step))
        found &= ~bit;
    }
    return found;
  }

  __device__ uint32_t row(int part, uint32_t i) const { return row0 + lane / 8 + part * 16 + i / 8 * 4; }
  __device__ uint32_t column(int, uint32_t i) const { return column0 + lane % 8 + i % 8 * 8; }
};

} // namespace kith_cuda
#endif
