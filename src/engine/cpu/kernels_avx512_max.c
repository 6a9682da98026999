/* The kernels for the instruction set avx512, norm max. */
#include "engine/cpu/simd/avx512.h"

#define KERNEL_TABLE kith_kernels_avx512_max
#define KERNEL_NORM KITH_NORM_MAX
#include "engine/cpu/kernels_body.h"
