/* The calls of api.h: exceptions become statuses here. */
#include "engine/cuda/join.cuh"
#include "engine/cuda/throttle.cuh"
#include "engine/cuda/transfer.cuh"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

using namespace kith_cuda;

namespace {

/* Runs fn; a failure becomes its status and its text. */
template <typename F> kith_status guard(kith_cuda_error *error, F fn) {
  try {
    fn();
    return KITH_OK;
  } catch (const failure &f) {
    snprintf(error->text, sizeof error->text, "%s", f.text.c_str());
    return f.status;
  } catch (const std::bad_alloc &) {
    snprintf(error->text, sizeof error->text, "out of memory");
    return KITH_ERR_MEMORY;
  } catch (const std::exception &e) { /* the system refused a lock or a thread */
    snprintf(error->text, sizeof error->text, "%s", e.what());
    return KITH_ERR_UNSUPPORTED;
  }
}

kith_status device_count(uint32_t *count, kith_cuda_error *error) {
  *count = 0;
  return guard(error, [&] {
    int n = 0;
    cudaError_t result = cudaGetDeviceCount(&n);
    if (result != cudaSuccess) {
      cudaGetLastError();
      fail(KITH_ERR_UNSUPPORTED, cudaGetErrorString(result));
    }
    *count = (uint32_t)n;
  });
}

kith_status device_describe(uint32_t device, char *text, size_t size, kith_cuda_error *error) {
  return guard(error, [&] {
    cudaDeviceProp p;
    check(cudaGetDeviceProperties(&p, (int)device), "properties");
    int driver = 0;
    check(cudaDriverGetVersion(&driver), "driver");
    snprintf(text, size, "%s, %d multiprocessors, %.0f GiB, compute capability %d.%d, CUDA driver %d.%d",
             p.name, p.multiProcessorCount, (double)p.totalGlobalMem / (1 << 30), p.major, p.minor,
             driver / 1000, driver % 1000 / 10);
  });
}

void session_destroy(kith_cuda_session *session) {
  if (!session)
    return;
  cudaSetDevice(session->device);
  destroy_ring(*session);
  if (session->event)
    cudaEventDestroy(session->event);
  for (cudaStream_t stream : {session->stream, session->side})
    if (stream)
      cudaStreamDestroy(stream);
  if (session->pinned)
    cudaFreeHost(session->pinned);
  delete session;
}

/* What was released stays with the pool, so that the next call finds it. */
void keep_memory(int device) {
  cudaMemPool_t pool;
  check(cudaDeviceGetDefaultMemPool(&pool, device), "memory pool");
  uint64_t all = UINT64_MAX;
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all), "memory pool");
}

void open_session(kith_cuda_session &session, uint64_t memory_bytes) {
  check(cudaSetDevice(session.device), "device");
  check(cudaDeviceGetAttribute(&session.multiprocessors, cudaDevAttrMultiProcessorCount, session.device),
        "device");
  size_t free = 0;
  size_t all = 0;
  check(cudaMemGetInfo(&free, &all), "memory");
  uint64_t most = (uint64_t)free / 100 * 95;
  session.memory.limit = memory_bytes ? std::min<uint64_t>(memory_bytes, most) : most;
  keep_memory(session.device);
  create_stream(session);
  check(cudaStreamCreateWithFlags(&session.side, cudaStreamNonBlocking), "stream");
  check(cudaEventCreateWithFlags(&session.event, cudaEventDisableTiming), "event");
  check(cudaHostAlloc(&session.pinned, KITH_CUDA_PINNED_BYTES, cudaHostAllocDefault), "pinned memory");
}

kith_status session_create(uint32_t device, uint64_t memory_bytes, uint32_t threads, kith_cuda_session **out,
                           kith_cuda_error *error) {
  *out = nullptr;
  kith_cuda_session *session = nullptr;
  kith_status status = guard(error, [&] {
    session = new kith_cuda_session;
    session->device = (int)device;
    session->threads = threads;
    open_session(*session, memory_bytes);
  });
  if (status)
    session_destroy(session);
  else
    *out = session;
  return status;
}

kith_status join_create(kith_cuda_session *session, const kith_cuda_spec *spec, kith_cuda_join **out,
                        kith_cuda_info *info, kith_cuda_error *error) {
  *out = nullptr;
  kith_cuda_join *join = nullptr;
  kith_status status = guard(error, [&] {
    check(cudaSetDevice(session->device), "device");
    session->memory.peak = session->memory.used;
    join = new kith_cuda_join(*session, *spec);
    join->prepare(*info);
  });
  if (status)
    delete join;
  else
    *out = join;
  return status;
}

void join_destroy(kith_cuda_join *join) {
  if (!join)
    return;
  cudaSetDevice(join->session.device);
  cudaStreamSynchronize(join->session.stream);
  delete join;
}

kith_status join_count(kith_cuda_join *join, kith_cuda_tally *tally, kith_cuda_error *error) {
  return guard(error, [&] { join->count(tally); });
}

kith_status join_degrees(kith_cuda_join *join, uint64_t *degrees, kith_cuda_tally *tally,
                         kith_cuda_error *error) {
  return guard(error, [&] { join->degrees_to_host(degrees, tally); });
}

kith_status join_offsets(kith_cuda_join *join, uint64_t *offsets, kith_cuda_tally *tally,
                         kith_cuda_error *error) {
  return guard(error, [&] { join->offsets_to_host(offsets, tally); });
}

kith_status join_cut(kith_cuda_join *join, uint32_t *n, kith_cuda_error *error) {
  return guard(error, [&] {
    check(cudaSetDevice(join->session.device), "device");
    *n = join->cut_blocks();
  });
}

kith_status join_blocks(kith_cuda_join *join, uint32_t *begin, uint32_t *ids, double *weigh_seconds,
                        kith_cuda_error *error) {
  return guard(error, [&] {
    check(cudaSetDevice(join->session.device), "device");
    *weigh_seconds = join->blocks_to_host(begin, ids);
  });
}

kith_status join_weights(kith_cuda_join *join, uint64_t *candidates, kith_cuda_error *error) {
  return guard(error, [&] {
    check(cudaSetDevice(join->session.device), "device");
    join->weights_to_host(candidates);
  });
}

kith_status join_index_size(kith_cuda_join *join, int candidates, kith_cuda_index_size *size,
                            kith_cuda_error *error) {
  return guard(error, [&] { *size = join->index_for_host(candidates).size(); });
}

kith_status join_index(kith_cuda_join *join, int candidates, const kith_cuda_index *to,
                       kith_cuda_error *error) {
  return guard(error, [&] {
    check(cudaSetDevice(join->session.device), "device");
    join->index_to_host(candidates, *to);
  });
}

kith_status join_batch(kith_cuda_join *join, const kith_cuda_batch *batch, kith_cuda_tally *tally,
                       kith_cuda_times *times, kith_cuda_error *error) {
  return guard(error, [&] {
    check(cudaSetDevice(join->session.device), "device");
    join->run_batch(*batch, tally, times);
  });
}

kith_status join_fill(kith_cuda_join *join, const kith_cuda_rows *rows, kith_cuda_error *error) {
  return guard(error, [&] { join->rows_to_host(*rows); });
}

kith_status join_table(kith_cuda_join *join, kith_table *table, kith_cuda_tally *tally,
                       kith_cuda_error *error) {
  return guard(error, [&] { join->table_on_device(table, tally); });
}

void device_free(uint32_t device, const void *memory) {
  if (!memory)
    return;
  cudaSetDevice((int)device);
  cudaFreeAsync((void *)memory, cudaStreamPerThread);
}

kith_status upload(kith_cuda_session *session, const kith_points *points, void **copy, kith_cuda_error *error) {
  return guard(error, [&] {
    check(cudaSetDevice(session->device), "device");
    uint64_t width = points->dtype == KITH_F64 ? sizeof(double) : sizeof(float);
    auto room = session->make<char>(points->n * points->dim * width, "the points");
    copy_rows_to_device(*session, room.get(), *points);
    *copy = room.release();
  });
}

kith_status download(kith_cuda_session *session, void *to, const void *from, uint64_t bytes,
                     kith_cuda_error *error) {
  return guard(error, [&] {
    check(cudaSetDevice(session->device), "device");
    copy_to_host(*session, to, from, bytes);
  });
}

} // namespace

const kith_cuda_api *kith_cuda_api_get(void) {
  static const kith_cuda_api api = {
      KITH_CUDA_API_VERSION, device_count,    device_describe, session_create, session_destroy, join_create,
      join_destroy,          join_count,      join_degrees,    join_offsets,   join_cut,        join_blocks,
      join_weights,          join_index_size, join_index,      join_batch,     join_fill,       join_table,
      device_free,           upload,          download};
  return &api;
}
