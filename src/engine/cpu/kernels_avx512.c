/* The kernels for the instruction set avx512. */
#include "engine/cpu/simd/avx512.h"

#define KERNEL_TABLE kith_kernels_avx512
#define KERNEL_NORM KITH_NORM_2
#include "engine/cpu/kernels_body.h"
