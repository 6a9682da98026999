/* A slower GPU: see throttle.cuh. Done with a green context, which is a part of the device's resources that
 * shares its memory with the rest. */
#include "engine/cuda/throttle.cuh"

#include <cuda.h>

#include <cstdlib>

namespace kith_cuda {

namespace {

/* A function of the driver, which is not linked to. */
template <typename F> F driver_function(const char *name) {
  void *function = nullptr;
  cudaDriverEntryPointQueryResult result;
  check(cudaGetDriverEntryPointByVersion(name, &function, 12050, cudaEnableDefault, &result), name);
  if (result != cudaDriverEntryPointSuccess)
    fail(KITH_ERR_UNSUPPORTED, std::string("this driver lacks ") + name + ", which KITH_CUDA_SMS needs");
  return (F)function;
}

void check_driver(CUresult result, const char *what) {
  if (result != CUDA_SUCCESS)
    fail(KITH_ERR_UNSUPPORTED, std::string("KITH_CUDA_SMS: ") + what + " failed");
}

void create_narrow_stream(kith_cuda_session &session, unsigned multiprocessors) {
  auto get_device = driver_function<decltype(&cuDeviceGet)>("cuDeviceGet");
  auto get_resource = driver_function<decltype(&cuDeviceGetDevResource)>("cuDeviceGetDevResource");
  auto split = driver_function<decltype(&cuDevSmResourceSplitByCount)>("cuDevSmResourceSplitByCount");
  auto describe = driver_function<decltype(&cuDevResourceGenerateDesc)>("cuDevResourceGenerateDesc");
  auto create = driver_function<decltype(&cuGreenCtxCreate)>("cuGreenCtxCreate");
  auto create_in = driver_function<decltype(&cuGreenCtxStreamCreate)>("cuGreenCtxStreamCreate");
  CUdevice device;
  CUdevResource all;
  CUdevResource part;
  CUdevResourceDesc description;
  CUgreenCtx context; /* ends with the process: it is an experiment */
  unsigned groups = 1;
  check_driver(get_device(&device, session.device), "finding the device");
  check_driver(get_resource(device, &all, CU_DEV_RESOURCE_TYPE_SM), "counting multiprocessors");
  check_driver(
      split(&part, &groups, &all, nullptr, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, multiprocessors),
      "taking multiprocessors");
  check_driver(describe(&description, &part, 1), "describing them");
  check_driver(create(&context, description, device, CU_GREEN_CTX_DEFAULT_STREAM), "a context for them");
  check_driver(create_in((CUstream *)&session.stream, context, CU_STREAM_NON_BLOCKING, 0), "a stream for them");
  session.multiprocessors = (int)part.sm.smCount;
}

} // namespace

void create_stream(kith_cuda_session &session) {
  const char *wanted = getenv("KITH_CUDA_SMS");
  unsigned long multiprocessors = wanted ? strtoul(wanted, nullptr, 10) : 0;
  if (multiprocessors > 0)
    create_narrow_stream(session, (unsigned)multiprocessors);
  else
    check(cudaStreamCreateWithFlags(&session.stream, cudaStreamNonBlocking), "stream");
}

} // namespace kith_cuda
