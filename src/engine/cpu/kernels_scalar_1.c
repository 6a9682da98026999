/* The kernels for the instruction set scalar, norm 1. */
#include "engine/cpu/simd/scalar.h"

#define KERNEL_TABLE kith_kernels_scalar_1
#define KERNEL_NORM KITH_NORM_1
#include "engine/cpu/kernels_body.h"
