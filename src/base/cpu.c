/* What the processor offers: see cpu.h. __builtin_cpu_supports checks the system's support (XCR0) too. */
#include "base/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

uint32_t kith_cpu_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  int cores = CPU_COUNT(&set);
  return cores > 0 ? (uint32_t)cores : 1;
}

kith_isa_level kith_cpu_best_isa(void) {
#if defined(__x86_64__)
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx2 && avx512)
    return KITH_ISA_AVX512;
  if (avx2)
    return KITH_ISA_AVX2;
#endif
  return KITH_ISA_SCALAR;
}

static const char *const ISA_NAMES[] = {"scalar", "avx2", "avx512"};

const char *kith_isa_name(kith_isa_level isa) { return ISA_NAMES[isa]; }

bool kith_isa_from_name(const char *name, kith_isa_level *isa) {
  for (int level = KITH_ISA_SCALAR; level <= KITH_ISA_AVX512; level++)
    if (strcmp(name, ISA_NAMES[level]) == 0) {
      *isa = (kith_isa_level)level;
      return true;
    }
  return false;
}

static void read_model_name(char *model, size_t size) {
  snprintf(model, size, "unknown processor");
  FILE *file = fopen("/proc/cpuinfo", "re");
  if (!file)
    return;
  char line[256];
  while (fgets(line, sizeof line, file)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon)
      continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(model, size, "%s", colon + 2);
    break;
  }
  fclose(file);
}

void kith_cpu_describe(char *text, size_t size) {
  char model[128];
  read_model_name(model, sizeof model);
  snprintf(text, size, "%s, %u core%s, best instruction set %s", model, kith_cpu_cores(),
           kith_cpu_cores() == 1 ? "" : "s", kith_isa_name(kith_cpu_best_isa()));
}
