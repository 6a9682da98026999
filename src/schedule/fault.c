/* Faults for tests: see hybrid.h. Nothing of it is in a build for users. */
#include "schedule/hybrid.h"

#ifdef KITH_FAULTS

#include <stdlib.h>
#include <string.h>

/* What is to happen to a member; NULL: nothing. */
static const char *fault_of(const char *member) {
  const char *fault = getenv("KITH_FAULT");
  size_t length = strlen(member);
  return fault && strncmp(fault, member, length) == 0 && fault[length] == ':' ? fault + length + 1 : NULL;
}

bool kith_fault_wanted(const char *member, uint64_t n) {
  static const char at[] = "batch=";
  const char *fault = fault_of(member);
  return fault && strncmp(fault, at, sizeof at - 1) == 0 && strtoull(fault + sizeof at - 1, NULL, 10) == n;
}

bool kith_fault_slows(const char *member) {
  const char *fault = fault_of(member);
  return fault && strcmp(fault, "slow") == 0;
}

#else

bool kith_fault_wanted(const char *member, uint64_t n) {
  (void)member;
  (void)n;
  return false;
}

bool kith_fault_slows(const char *member) {
  (void)member;
  return false;
}

#endif
