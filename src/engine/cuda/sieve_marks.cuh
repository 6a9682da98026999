/* The sieve of the norms 1 and max: differences of bytes, four columns an instruction. Coordinates become marks
 * on a ruler, whole numbers from 0 on, and what lies beyond its ends is cut off, which moves no two points
 * apart.
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

/* Lanes have 8 x 8 pairs, of rows four and columns eight apart.
 *
 * In norm max one column is enough to tell a pair apart. So where there are many, all pairs see the first half
 * of them, and only those that are left see the others, unless these are too many to be looked at one by one.
 */
template <kith_norm NORM, int K, bool MANY> struct mark_sieve : dense_part {
  using shape = dense_shape<K, MANY, uint8_t, K == 1 ? 0 : 16>;
  using memory_type = dense_memory<mark_sieve>;
  static constexpr bool NEEDS_NORMS = false;
  static constexpr bool IN_HALVES = NORM == KITH_NORM_MAX && K == 4 && !MANY;
  static constexpr int MOST_LEFT = 12; /* to a lane, one by one */
  using limit = uint32_t;              /* norm 1: what sums begin with; norm max: t, for each byte */

  uint32_t sum[8][8];
  uint32_t apart;                   /* norm max: t */
  uint32_t left[IN_HALVES ? 2 : 1]; /* in halves: the signs of both parts, */
  bool is_half;                     /* if the second half is still to be seen */

  /* From the largest size, in marks, of a pair that may belong. */
  __device__ static limit limit_of(const dense_args &args, const dense_tile &a, const dense_tile &b) {
    float size = (args.eps + a.error + b.error) * (1 + 0x1p-20f);
    return NORM == KITH_NORM_1 ? -1 - (int)size : (uint32_t)size * EACH_BYTE;
  }

  __device__ void see_queries(const dense_points &, uint32_t) {}

  __device__ void begin(const memory_type &, uint32_t, limit limit) {
    apart = limit;
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < 8; j++)
        sum[i][j] = NORM == KITH_NORM_1 ? limit : 0;
  }

  __device__ static void add_word(uint32_t &sum, uint32_t a, uint32_t b) {
    if (NORM == KITH_NORM_1)
      sum = add_apart(a, b, sum);
    else
      sum |= a - b;
  }
  __device__ static void add_words(uint32_t &sum, const uint4 &a, const uint4 &b) {
    add_word(sum, a.x, b.x);
    add_word(sum, a.y, b.y);
    add_word(sum, a.z, b.z);
    add_word(sum, a.w, b.w);
  }

  /* 16 columns of row or column i of the lane; rows with t, in norm max. */
  __device__ uint4 load_row(const memory_type &memory, uint32_t stage, int i, int k) const {
    uint4 row =
        *(const uint4 *)(memory.query_values(stage) + (row0 + lane / 8 + i * 4) * shape::STRIDE + k * 16);
    return NORM == KITH_NORM_1 ? row : uint4{row.x + apart, row.y + apart, row.z + apart, row.w + apart};
  }
  __device__ uint4 load_column(const memory_type &memory, uint32_t stage, int j, int k) const {
    return *(const uint4 *)(memory.candidates[stage] + (column0 + lane % 8 + j * 8) * shape::STRIDE + k * 16);
  }

  template <int BEGIN, int END> __device__ void add_steps(const memory_type &memory, uint32_t stage) {
#pragma unroll
    for (int k = BEGIN; k < END; k++) {
      uint4 rows[8];
#pragma unroll
      for (int i = 0; i < 8; i++)
        rows[i] = load_row(memory, stage, i, k);
#pragma unroll
      for (int j = 0; j < 8; j++) {
        uint4 column = load_column(memory, stage, j, k);
#pragma unroll
        for (int i = 0; i < 8; i++)
          add_words(sum[i][j], rows[i], column);
      }
    }
  }

  __device__ void add(const dense_args &args, const memory_type &memory, uint32_t stage) {
    add_steps<0, IN_HALVES ? K / 2 : K>(memory, stage);
    if constexpr (IN_HALVES) {
      find_left(args);
      is_half = !__any_sync(ALL_LANES, __popc(left[0]) + __popc(left[1]) > MOST_LEFT);
      if (!is_half) {
        add_steps<K / 2, K>(memory, stage);
        find_left(args);
      }
    }
  }

  __device__ void find_left(const dense_args &args) {
    left[0] = signs(0, args);
    left[1] = signs(1, args);
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

  __device__ bool has_any(const dense_args &args) const {
    if constexpr (IN_HALVES)
      return left[0] | left[1];
    uint32_t any = 0;
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < 8; j++)
        any |= sign_of(sum[i][j], args);
    return (int)any < 0;
  }

  /* Whether a pair may belong, going by the second half of its columns. */
  __device__ bool see_rest(uint32_t i, uint32_t j, const dense_args &args, const memory_type &memory,
                           uint32_t stage) const {
    uint32_t rest = 0;
#pragma unroll
    for (int k = K / 2; k < K; k++)
      add_words(rest, load_row(memory, stage, i, k), load_column(memory, stage, j, k));
    return (int)sign_of(rest, args) < 0;
  }

  /* None is sure: some coordinates may have been cut off. */
  __device__ uint32_t find(int part, const dense_args &args, const memory_type &memory, uint32_t stage, limit,
                           uint32_t *) const {
    if constexpr (!IN_HALVES)
      return signs(part, args);
    uint32_t found = left[IN_HALVES ? part : 0];
    for (uint32_t unseen = is_half ? found : 0; unseen;) {
      uint32_t i = __clz(unseen);
      uint32_t bit = 0x80000000U >> i;
      unseen &= ~bit;
      if (!see_rest(part * 4 + i / 8, i % 8, args, memory, stage))
        found &= ~bit;
    }
    return found;
  }

  __device__ uint32_t row(int part, uint32_t i) const { return row0 + lane / 8 + part * 16 + i / 8 * 4; }
  __device__ uint32_t column(int, uint32_t i) const { return column0 + lane % 8 + i % 8 * 8; }
};

} // namespace kith_cuda
#endif
