/* The kernels for the instruction set avx2, norm max. */
#include "engine/cpu/simd/avx2.h"

#define KERNEL_TABLE kith_kernels_avx2_max
#define KERNEL_NORM KITH_NORM_MAX
#include "engine/cpu/kernels_body.h"
