/* An index of the device as the CPU has it (index/index.h), on its way there: where a join is shared, the GPU
 * has sorted the points long before the CPU would have, and bringing all of it over the bus takes less than
 * putting points in an order that is known. */
#ifndef KITH_ENGINE_CUDA_HOST_INDEX_CUH
#define KITH_ENGINE_CUDA_HOST_INDEX_CUH

#include "engine/cuda/index.cuh"

namespace kith_cuda {

class host_index {
public:
  /* Puts all of it in the form that the CPU has it in, on the stream of the session: it is made when an event
   * that is recorded there afterwards has happened. `cells`: non-empty ones; `rows`: a number in pinned memory
   * that stays, for those of them. */
  host_index(kith_cuda_session &session, const cell_index &index, const kith_grid &grid, uint32_t dim,
             bool is_f64, uint32_t cells, uint32_t *rows);

  /* Once it is made. */
  kith_cuda_index_size size() const { return {n, cells, *rows, width == sizeof(double)}; }
  /* Waits for that event, not for the stream. */
  void copy(kith_cuda_session &session, cudaEvent_t made, const kith_cuda_index &to) const;

private:
  void list_cells(kith_cuda_session &session, const cell_index &index, const kith_grid &grid);
  void list_rows(kith_cuda_session &session, const cell_index &index, const kith_grid &grid);

  uint32_t n, cells;
  uint32_t *rows;
  uint32_t dim;
  uint64_t width;
  const uint32_t *ids; /* of the index, which stays */
  buffer<char> columns;
  buffer<uint32_t> cell_x, cell_start, row_cell;
  buffer<uint64_t> row_number;
};

} // namespace kith_cuda
#endif
