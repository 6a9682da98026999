/* The kernels for the instruction set avx2. */
#include "engine/cpu/simd/avx2.h"

#define KERNEL_TABLE kith_kernels_avx2
#define KERNEL_NORM KITH_NORM_2
#include "engine/cpu/kernels_body.h"
