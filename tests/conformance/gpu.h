/* Whether there is a GPU to test on. */
#ifndef KITH_TESTS_GPU_H
#define KITH_TESTS_GPU_H

#include "kith.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Whether this machine has a GPU that can be used; says why not. */
static inline bool has_gpu(void) {
  kith_device device = {0};
  for (uint32_t i = 0; kith_device_describe(i, &device) == KITH_OK; i++)
    if (strcmp(device.name, "cuda") == 0 && device.usable)
      return true;
  printf("skipped: %s\n", device.description);
  return false;
}

#endif
