/* Faults for tests: see hybrid.h. Nothing of it is in a build for users. */
#include "schedule/hybrid.h"

#ifdef KITH_FAULTS

#include <stdlib.h>
#include <string.h>

bool kith_fault_wanted(const char *member, uint64_t n) {
  const char *fault = getenv("KITH_FAULT");
  size_t length = strlen(member);
  static const char at[] = ":batch=";
  if (!fault || strncmp(fault, member, length) != 0 || strncmp(fault + length, at, sizeof at - 1) != 0)
    return false;
  return strtoull(fault + length + sizeof at - 1, NULL, 10) == n;
}

#else

bool kith_fault_wanted(const char *member, uint64_t n) {
  (void)member;
  (void)n;
  return false;
}

#endif
