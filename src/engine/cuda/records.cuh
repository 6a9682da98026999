/* From records of collected pairs to rows. */
#ifndef KITH_ENGINE_CUDA_RECORDS_CUH
#define KITH_ENGINE_CUDA_RECORDS_CUH

#include "engine/cuda/join_args.cuh"

namespace kith_cuda {

/* Rows [first, end) of a table, one behind the other. */
struct window_rows {
  const uint64_t *offsets; /* by id */
  uint64_t first, end;
  __device__ bool has(uint32_t row) const { return row >= first && row < end; }
  __device__ uint64_t begin(uint32_t row) const { return offsets[row] - offsets[first]; }
};

/* All rows of a batch. */
struct batch_rows {
  const uint64_t *begins; /* by id */
  __device__ bool has(uint32_t) const { return true; }
  __device__ uint64_t begin(uint32_t row) const { return begins[row]; }
};

/* 16 lanes a record. */
template <typename R>
__global__ void move_records(const record *records, uint64_t n, const __grid_constant__ R rows,
                             uint32_t *neighbors) {
  uint64_t r = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 16;
  uint32_t lane = threadIdx.x % 16;
  if (r >= n)
    return;
  uint32_t word = ((const uint32_t *)(records + r))[lane];
  uint32_t half_warp = 0xFFFFU << (threadIdx.x & 16);
  uint32_t row = __shfl_sync(half_warp, word, 0, 16);
  uint32_t at = __shfl_sync(half_warp, word, 1, 16);
  if (lane >= 2 && word != record::NO_ID && rows.has(row))
    neighbors[rows.begin(row) + at + lane - 2] = word;
}

/* Moves n collected records to their rows. */
template <typename R>
void place_records(kith_cuda_session &session, const buffer<record> &records, uint64_t n, const R &rows,
                   uint32_t *neighbors) {
  if (n == 0)
    return;
  move_records<<<blocks_for(n * 16, THREADS), THREADS, 0, session.stream>>>(records.get(), n, rows, neighbors);
  check_launch("rows");
}

} // namespace kith_cuda
#endif
