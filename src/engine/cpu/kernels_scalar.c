/* The kernels for the instruction set scalar. */
#include "engine/cpu/simd/scalar.h"

#define KERNEL_TABLE kith_kernels_scalar
#include "engine/cpu/kernels_body.h"
