/* The kernels for the instruction set avx2, norm 1. */
#include "engine/cpu/simd/avx2.h"

#define KERNEL_TABLE kith_kernels_avx2_1
#define KERNEL_NORM KITH_NORM_1
#include "engine/cpu/kernels_body.h"
