/* Tensor cores: a warp multiplies matrices of which every lane has a few words. */
#ifndef KITH_ENGINE_CUDA_TENSOR_CUH
#define KITH_ENGINE_CUDA_TENSOR_CUH

#include <cstdint>

namespace kith_cuda {

/* Four matrices of eight rows of 16 bytes; lane i gives the address of row i % 8 of matrix i / 8. */
__device__ inline void load_matrices(uint32_t (&to)[4], const void *from) {
  uint32_t at = (uint32_t)__cvta_generic_to_shared(from);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(at));
}

/* sum += a * b: 16 rows by 8 columns, of 16 halves each. Not volatile: what the next ones need may be loaded
 * meanwhile. */
__device__ inline void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* sum = from + how many bits a and b have in common: 16 rows by 8 columns, of 256 bits each. */
__device__ inline void count_common(int (&sum)[4], const int (&from)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%11,%12,%13};"
      : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(from[0]), "r"(from[1]), "r"(from[2]),
        "r"(from[3]));
}

} // namespace kith_cuda
#endif
