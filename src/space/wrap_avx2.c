/* Wrapping by columns for the instruction set avx2. */
#define WRAP_KERNEL kith_wrap_avx2
#include "space/wrap_body.h"
