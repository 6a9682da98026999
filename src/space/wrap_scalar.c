/* Wrapping by columns for the instruction set scalar; and the choice. */
#define WRAP_KERNEL kith_wrap_scalar
#include "space/wrap_body.h"

kith_wrap_kernel *kith_wrap_for(kith_isa_level isa) {
#if defined(__x86_64__)
  if (isa == KITH_ISA_AVX2)
    return kith_wrap_avx2;
  if (isa == KITH_ISA_AVX512)
    return kith_wrap_avx512;
#endif
  (void)isa;
  return kith_wrap_scalar;
}
