/* Wrapping by columns for the instruction set avx512. */
#define WRAP_KERNEL kith_wrap_avx512
#include "space/wrap_body.h"
