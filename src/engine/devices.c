/* The engines of this machine: section 6 of kith.h. */
#include "base/cpu.h"
#include "engine/cuda/engine.h"

#include <stdio.h>

/* GPU number i, or, as number 0, why there is none. */
static kith_status describe_gpu(uint32_t i, kith_device *device) {
  const char *why;
  const kith_cuda_api *api = kith_cuda_load(&why);
  uint32_t gpus = 0;
  kith_cuda_error error = {""};
  if (!api && i == 0) {
    *device = (kith_device){.name = "cuda"};
    snprintf(device->description, sizeof device->description, "%s", why);
    return KITH_OK;
  }
  if (!api || api->device_count(&gpus, &error) != KITH_OK || i >= gpus)
    return KITH_ERR_ARGUMENT;
  *device = (kith_device){.name = "cuda", .usable = 1};
  int used = snprintf(device->description, sizeof device->description, "%u: ", i);
  if (api->device_describe(i, device->description + used, sizeof device->description - (size_t)used, &error)) {
    device->usable = 0;
    snprintf(device->description + used, sizeof device->description - (size_t)used, "%.200s", error.text);
  }
  return KITH_OK;
}

kith_status kith_device_describe(uint32_t i, kith_device *device) {
  if (!device)
    return KITH_ERR_ARGUMENT;
  if (i > 0)
    return describe_gpu(i - 1, device);
  *device = (kith_device){.name = "cpu", .usable = 1};
  kith_cpu_describe(device->description, sizeof device->description);
  return KITH_OK;
}
