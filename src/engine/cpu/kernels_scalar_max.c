/* The kernels for the instruction set scalar, norm max. */
#include "engine/cpu/simd/scalar.h"

#define KERNEL_TABLE kith_kernels_scalar_max
#define KERNEL_NORM KITH_NORM_MAX
#include "engine/cpu/kernels_body.h"
