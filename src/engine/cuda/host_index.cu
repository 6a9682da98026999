/* Indexes for the CPU: see host_index.cuh. O(n); dim * width bytes a point and 20 a cell, until it is
 * copied. */
#include "engine/cuda/host_index.cuh"

#include "engine/cuda/algorithms.cuh"
#include "engine/cuda/transfer.cuh"

#include <thrust/iterator/counting_iterator.h>

namespace kith_cuda {

namespace {

/* A column after the other, in place of a point after the other. */
template <typename T> __global__ void transpose(const T *points, uint32_t n, uint32_t dim, T *columns) {
  uint32_t p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= n)
    return;
  for (uint32_t c = 0; c < dim; c++)
    columns[(uint64_t)c * n + p] = points[(uint64_t)p * dim + c];
}

/* Whether a position is the first of its cell. */
struct begins_cell {
  key_list keys;

  __device__ bool operator()(uint32_t p) const { return p == 0 || keys[p] != keys[p - 1]; }
};

/* Whether a cell is the first of its row. */
struct begins_row {
  key_list keys;
  const uint32_t *cell_start;
  uint32_t x_bits;

  __device__ bool operator()(uint32_t cell) const {
    return cell == 0 || keys[cell_start[cell]] >> x_bits != keys[cell_start[cell - 1]] >> x_bits;
  }
};

__global__ void find_x(key_list keys, const uint32_t *cell_start, uint32_t n, uint32_t x_bits, uint32_t *x) {
  uint32_t cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell < n)
    x[cell] = (uint32_t)(keys[cell_start[cell]] & ((UINT64_C(1) << x_bits) - 1));
}

__global__ void find_numbers(key_list keys, const uint32_t *cell_start, const uint32_t *row_cell,
                             const uint32_t *n, uint32_t x_bits, uint64_t *numbers) {
  uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < *n)
    numbers[row] = keys[cell_start[row_cell[row]]] >> x_bits;
}

/* The numbers below n that are chosen; *count, on the device, will have how many. */
template <typename F>
void select_numbers(kith_cuda_session &session, uint32_t n, F chosen, uint32_t *out, uint32_t *count) {
  with_room(session, "an index", [&](void *room, size_t &bytes) {
    return cub::DeviceSelect::If(room, bytes, thrust::counting_iterator<uint32_t>(0), out, count, (int64_t)n,
                                 chosen, session.stream);
  });
}

} // namespace

host_index::host_index(kith_cuda_session &session, const cell_index &index, const kith_grid &grid, uint32_t dim,
                       bool is_f64, uint32_t cells, uint32_t *rows)
    : n(index.n), cells(cells), rows(rows), dim(dim), width(is_f64 ? sizeof(double) : sizeof(float)),
      ids(index.ids.get()) {
  *rows = 0;
  if (n == 0)
    return;
  columns = session.make<char>((uint64_t)n * dim * width, "an index");
  unsigned blocks = blocks_for(n, THREADS);
  if (is_f64)
    transpose<<<blocks, THREADS, 0, session.stream>>>((const double *)index.coords.get(), n, dim,
                                                      (double *)columns.get());
  else
    transpose<<<blocks, THREADS, 0, session.stream>>>((const float *)index.coords.get(), n, dim,
                                                      (float *)columns.get());
  check_launch("an index");
  list_cells(session, index, grid);
  list_rows(session, index, grid);
}

void host_index::list_cells(kith_cuda_session &session, const cell_index &index, const kith_grid &grid) {
  cell_start = session.make<uint32_t>(cells, "an index");
  cell_x = session.make<uint32_t>(cells, "an index");
  auto count = session.make<uint32_t>(1, "a number");
  select_numbers(session, n, begins_cell{index.find.keys}, cell_start.get(), count.get());
  find_x<<<blocks_for(cells, THREADS), THREADS, 0, session.stream>>>(index.find.keys, cell_start.get(), cells,
                                                                     grid.x_bits, cell_x.get());
  check_launch("an index");
}

void host_index::list_rows(kith_cuda_session &session, const cell_index &index, const kith_grid &grid) {
  row_cell = session.make<uint32_t>(cells, "an index");
  row_number = session.make<uint64_t>(cells, "an index");
  auto count = session.make<uint32_t>(1, "a number");
  select_numbers(session, cells, begins_row{index.find.keys, cell_start.get(), grid.x_bits}, row_cell.get(),
                 count.get());
  find_numbers<<<blocks_for(cells, THREADS), THREADS, 0, session.stream>>>(
      index.find.keys, cell_start.get(), row_cell.get(), count.get(), grid.x_bits, row_number.get());
  check_launch("an index");
  check(cudaMemcpyAsync(rows, count.get(), sizeof *rows, cudaMemcpyDeviceToHost, session.stream), "an index");
}

void host_index::copy(kith_cuda_session &session, cudaEvent_t made, const kith_cuda_index &to) const {
  std::vector<host_copy> copies;
  for (uint32_t c = 0; c < dim; c++)
    copies.push_back(
        {(char *)to.coords + c * to.stride * width, columns.get() + c * (uint64_t)n * width, n * width});
  copies.push_back({to.ids, ids, n * sizeof(uint32_t)});
  copies.push_back({to.cell_x, cell_x.get(), cells * sizeof(uint32_t)});
  copies.push_back({to.cell_start, cell_start.get(), cells * sizeof(uint32_t)});
  copies.push_back({to.row_number, row_number.get(), *rows * sizeof(uint64_t)});
  copies.push_back({to.row_cell, row_cell.get(), *rows * sizeof(uint32_t)});
  copy_to_host_after(session, made, copies);
}

} // namespace kith_cuda
