/* What the processor offers: cores and instruction sets. */
#ifndef KITH_BASE_CPU_H
#define KITH_BASE_CPU_H

#include "base/context.h"

/* Cores that this process may use. */
uint32_t kith_cpu_cores(void);

/* The best instruction set that this build has and the processor and system support. */
kith_isa_level kith_cpu_best_isa(void);

const char *kith_isa_name(kith_isa_level isa);
bool kith_isa_from_name(const char *name, kith_isa_level *isa);

/* Model, cores and instruction set, for people. */
void kith_cpu_describe(char *text, size_t size);

#endif
