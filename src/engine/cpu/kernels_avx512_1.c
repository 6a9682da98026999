/* The kernels for the instruction set avx512, norm 1. */
#include "engine/cpu/simd/avx512.h"

#define KERNEL_TABLE kith_kernels_avx512_1
#define KERNEL_NORM KITH_NORM_1
#include "engine/cpu/kernels_body.h"
