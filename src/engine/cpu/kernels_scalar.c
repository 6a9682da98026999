/* The kernels for the instruction set scalar. */
#include "engine/cpu/simd/scalar.h"

#define KERNEL_TABLE kith_kernels_scalar
#define KERNEL_NORM KITH_NORM_2
#include "engine/cpu/kernels_body.h"
