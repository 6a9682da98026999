/* Codes, for norm 1. Coordinates are marks on a ruler (sieve_marks.cuh), which are rounded to steps: step k
 * becomes a code of k bits that are set. Two codes have min(k, l) bits in common, so that tensor cores, which
 * count these, can find |k - l| = k + l - 2 min(k, l). The more columns there are, the less distances differ,
 * and the longer codes would have to be: they serve one chunk of columns. */
#ifndef KITH_ENGINE_CUDA_CODES_CUH
#define KITH_ENGINE_CUDA_CODES_CUH

#include <cstdint>

namespace kith_cuda {

struct code_form {
  uint32_t columns; /* 16, 32 or 64 */

  static constexpr uint32_t LAST_MARK = 192;

  __host__ __device__ constexpr uint32_t bits() const { return columns == 16 ? 32 : columns == 32 ? 24 : 16; }
  __host__ __device__ constexpr uint32_t step() const { return LAST_MARK / bits(); } /* in marks */
  /* A bit in common weighs two steps: how many of them so many marks outweigh, rounded down. */
  __host__ __device__ constexpr int bits_outweighed(int marks) const {
    int bit = 2 * (int)step();
    return (marks < 0 ? marks - bit + 1 : marks) / bit;
  }
  /* A row has the marks of a point, a byte each, then its codes. It is an odd number of 16 bytes, so that eight
   * of them lie in different banks. */
  __host__ __device__ constexpr uint32_t code_bytes() const { return columns * bits() / 8; }
  __host__ __device__ constexpr uint32_t row_bytes() const { return (columns + code_bytes()) / 32 * 32 + 16; }
};

/* What a point has of its own: the marks of its codes, less what rounding to them moved it by, rounded down. */
struct own_code {
  int16_t marks; /* as a query */
  int16_t bits;  /* as a candidate: minus the bits in common that they outweigh */

  static constexpr int16_t FAR = 0x7FFF; /* beyond the last point: in no pair */
};

} // namespace kith_cuda
#endif
