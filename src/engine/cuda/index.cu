/* Building the index on the device: see index.cuh. O(n) radix passes; 12 to 20 bytes a point beside the
 * coordinates while sorting. */
#include "engine/cuda/algorithms.cuh"
#include "engine/cuda/index.cuh"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/iterator/transform_iterator.h>

namespace kith_cuda {

namespace {

/* A tile does not cross a wider gap than about this many cells: a neighbouring row may be crowded there. */
enum { FAR_CELLS = 8 };

/* Invalid rows get the largest key, and so come last. */
template <typename K>
__global__ void make_keys(view points, kith_grid grid, bool has_invalid, K *keys, uint32_t *ids) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= points.n)
    return;
  ids[i] = i;
  if (has_invalid && !points.is_valid(i)) {
    keys[i] = ~(K)0;
    return;
  }
  keys[i] = (K)key_of(grid, [&](uint32_t c) { return points.get(i, c); });
}

template <typename T> __global__ void gather(view points, const uint32_t *ids, uint32_t n, T *coords) {
  uint32_t p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= n)
    return;
  uint32_t id = ids[p];
  for (uint32_t c = 0; c < points.dim; c++)
    coords[(uint64_t)p * points.dim + c] = (T)points.get(id, c);
}

/* The same for rows that are copied as they are, in words, by 2^shift threads each. */
template <typename W>
__global__ void gather_rows(const char *data, int64_t row_stride, const uint32_t *ids, uint32_t n,
                            uint32_t words, uint32_t shift, W *to) {
  uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  uint64_t p = thread >> shift;
  if (p >= n)
    return;
  const W *row = (const W *)(data + (int64_t)ids[p] * row_stride);
  for (uint32_t w = (uint32_t)thread & ((1U << shift) - 1); w < words; w += 1U << shift)
    to[p * words + w] = row[w];
}

/* Copies rows in such words; false: they are not aligned. */
template <typename W> bool copy_rows(kith_cuda_session &session, const view &points, cell_index &index) {
  uint64_t bytes = points.dim * sizeof(float);
  if (((uint64_t)points.data | (uint64_t)points.row_stride | bytes) % sizeof(W))
    return false;
  uint32_t words = (uint32_t)(bytes / sizeof(W));
  uint32_t shift = std::min<uint32_t>((uint32_t)ceil_log2(words), 5);
  gather_rows<<<blocks_for((uint64_t)index.n << shift, THREADS), THREADS, 0, session.stream>>>(
      points.data, points.row_stride, index.ids.get(), index.n, words, shift, (W *)index.coords.get());
  return true;
}

/* The first position of every table entry that has one. */
__global__ void mark_entries(key_list keys, uint32_t n, uint32_t shift, uint32_t *table, uint32_t *cells) {
  uint32_t p = blockIdx.x * blockDim.x + threadIdx.x;
  bool begins = false;
  if (p < n) {
    uint64_t key = keys[p];
    uint64_t before = p ? keys[p - 1] : ~key;
    begins = key != before;
    if (p == 0 || key >> shift != before >> shift)
      table[key >> shift] = p;
  }
  uint32_t begun = __syncthreads_count(begins);
  if (threadIdx.x == 0 && begun)
    atomicAdd(cells, begun);
}

struct minimum {
  __device__ uint32_t operator()(uint32_t a, uint32_t b) const { return a < b ? a : b; }
};

template <typename K>
void sort_keys(kith_cuda_session &session, const view &points, const kith_grid &grid, bool has_invalid,
               cell_index &index) {
  uint64_t n = points.n;
  auto keys = session.make<K>(n, "keys");
  auto ids = session.make<uint32_t>(n, "ids");
  auto sorted = session.make<char>(n * sizeof(K), "sorted keys");
  index.ids = session.make<uint32_t>(n, "sorted ids");
  make_keys<K><<<blocks_for(n, THREADS), THREADS, 0, session.stream>>>(points, grid, has_invalid, keys.get(),
                                                                       ids.get());
  check_launch("keys");
  /* Invalid rows have one bit more than any key. */
  sort_pairs(session, (int)grid.key_bits + (has_invalid ? 1 : 0), n, keys.get(), (K *)sorted.get(), ids.get(),
             index.ids.get());
  index.keys = std::move(sorted);
}

} // namespace

/* Marks the entries that begin somewhere; the others begin where the next one does. */
void make_table(kith_cuda_session &session, const kith_grid &grid, cell_index &index, uint32_t *counted) {
  enum { ENTRIES_PER_POINT_BITS = 2 };
  finder &find = index.find;
  uint32_t bits = ceil_log2(index.n) + ENTRIES_PER_POINT_BITS;
  find.shift = grid.key_bits > bits ? grid.key_bits - bits : 0;
  find.entries = UINT64_C(1) << (grid.key_bits - find.shift);
  find.n = index.n;
  index.table = session.make<uint32_t>(find.entries + 1, "the table of cells");
  find.table = index.table.get();
  auto cells = session.make<uint32_t>(1, "a number");
  check(cudaMemsetAsync(cells.get(), 0, sizeof(uint32_t), session.stream), "clear");
  check(cudaMemsetAsync(index.table.get(), 0xFF, find.entries * sizeof(uint32_t), session.stream), "clear");
  check(cudaMemcpyAsync(index.table.get() + find.entries, &index.n, sizeof index.n, cudaMemcpyHostToDevice,
                        session.stream),
        "table");
  mark_entries<<<blocks_for(index.n, THREADS), THREADS, 0, session.stream>>>(find.keys, index.n, find.shift,
                                                                             index.table.get(), cells.get());
  check_launch("table");
  auto backwards = thrust::make_reverse_iterator(index.table.get() + find.entries + 1);
  with_room(session, "the table of cells", [&](void *room, size_t &bytes) {
    return cub::DeviceScan::InclusiveScan(room, bytes, backwards, backwards, minimum(),
                                          (int64_t)find.entries + 1, session.stream);
  });
  if (counted)
    check(cudaMemcpyAsync(counted, cells.get(), sizeof *counted, cudaMemcpyDeviceToHost, session.stream),
          "cells");
}

void gather_points(kith_cuda_session &session, const view &points, bool as_f64, cell_index &index) {
  uint64_t width = as_f64 ? sizeof(double) : sizeof(float);
  index.coords = session.make<char>(index.n * (uint64_t)points.dim * width, "the sorted copy of the points");
  unsigned blocks = blocks_for(index.n, THREADS);
  bool as_they_are = !as_f64 && !points.is_f64 && points.col_stride == sizeof(float);
  bool copied =
      as_they_are && (copy_rows<uint4>(session, points, index) || copy_rows<uint2>(session, points, index) ||
                      copy_rows<uint32_t>(session, points, index));
  if (!copied && as_f64)
    gather<<<blocks, THREADS, 0, session.stream>>>(points, index.ids.get(), index.n,
                                                   (double *)index.coords.get());
  else if (!copied)
    gather<<<blocks, THREADS, 0, session.stream>>>(points, index.ids.get(), index.n,
                                                   (float *)index.coords.get());
  check_launch("gather");
}

cell_index build_index(kith_cuda_session &session, const view &points, uint64_t invalid_rows,
                       const kith_grid &grid, bool as_f64, uint32_t *cells) {
  cell_index index;
  *cells = 0;
  index.n = (uint32_t)(points.n - invalid_rows);
  if (index.n == 0)
    return index;
  bool has_invalid = invalid_rows > 0;
  bool wide = grid.key_bits + (has_invalid ? 1 : 0) > 32;
  if (wide)
    sort_keys<uint64_t>(session, points, grid, has_invalid, index);
  else
    sort_keys<uint32_t>(session, points, grid, has_invalid, index);
  index.find.keys = key_list{index.keys.get(), wide};
  gather_points(session, points, as_f64, index);
  make_table(session, grid, index, cells);
  return index;
}

/* ---- tiles --------------------------------------------------------------------------------------------- */

namespace {

/* Where positions begin a stretch that tiles may not cross: a row of cells, or what follows a wide gap in it.
 */
struct stretch_begin {
  key_list keys;
  uint32_t x_bits;
  uint64_t far;

  __device__ uint32_t operator()(uint32_t p) const {
    if (p == 0)
      return 0;
    uint64_t key = keys[p];
    uint64_t before = keys[p - 1];
    return key >> x_bits != before >> x_bits || key - before > far ? p : 0;
  }
};

struct maximum {
  __device__ uint32_t operator()(uint32_t a, uint32_t b) const { return a > b ? a : b; }
};

struct begins_tile {
  const uint32_t *stretch; /* where the stretch of each position begins */
  uint32_t queries;        /* a power of two */
  key_list keys;
  uint32_t n, x_bits;
  uint32_t widest; /* tiles of more cells along a row end wherever so many do; 0: none do */

  __device__ bool operator()(uint32_t p) const {
    uint32_t at = (p - stretch[p]) & (queries - 1);
    return at == 0 || (widest > 0 && enters_part(p) && is_wide(p - at));
  }
  __device__ uint64_t x(uint32_t p) const { return keys[p] & ((UINT64_C(1) << x_bits) - 1); }
  __device__ bool enters_part(uint32_t p) const { return x(p) / widest != x(p - 1) / widest; }
  /* Whether the tile that begins there is too wide, or looks so by what follows its stretch. */
  __device__ bool is_wide(uint32_t begin) const {
    uint64_t last = keys[min(n - begin, queries) - 1 + begin];
    return last - keys[begin] >= widest;
  }
};

/* Around a periodic box, two tiles of a row and what is within reach on both sides are no longer than the
 * period, so that no pair is met from both; and a tile and its reach leave a cell where the row can be cut
 * open. */
uint32_t widest_tile(const kith_grid &grid) {
  return grid.wraps[0] ? (grid.cells[0] - 2 * grid.reach[0]) / 2 : 0;
}

} // namespace

tiles cut_tiles(kith_cuda_session &session, const cell_index &index, const kith_grid &grid, uint32_t queries) {
  tiles tiles;
  if (index.n == 0)
    return tiles;
  auto stretch = session.make<uint32_t>(index.n, "tiles");
  tiles.begin = session.make<uint32_t>((uint64_t)index.n + 1, "tiles");
  auto count = session.make<uint32_t>(1, "a number");
  thrust::counting_iterator<uint32_t> positions(0);
  stretch_begin begin{index.find.keys, grid.x_bits, FAR_CELLS + 4 * (uint64_t)grid.reach[0]};
  auto begins = thrust::make_transform_iterator(positions, begin);
  begins_tile starts{stretch.get(), queries, index.find.keys, index.n, grid.x_bits, widest_tile(grid)};
  with_room(session, "tiles", [&](void *room, size_t &bytes) {
    return cub::DeviceScan::InclusiveScan(room, bytes, begins, stretch.get(), maximum(), (int64_t)index.n,
                                          session.stream);
  });
  with_room(session, "tiles", [&](void *room, size_t &bytes) {
    return cub::DeviceSelect::If(room, bytes, positions, tiles.begin.get(), count.get(), (int64_t)index.n,
                                 starts, session.stream);
  });
  tiles.n = read_value(session, count.get(), "tiles");
  check(cudaMemcpyAsync(tiles.begin.get() + tiles.n, &index.n, sizeof index.n, cudaMemcpyHostToDevice,
                        session.stream),
        "tiles");
  return tiles;
}

namespace {

struct is_wrapping {
  key_list keys;
  const uint32_t *tile_begin;
  kith_grid grid;

  __device__ bool leaves(uint32_t j, uint32_t first, uint32_t last) const {
    return grid.wraps[j] && (first < grid.reach[j] || last + grid.reach[j] >= grid.cells[j]);
  }
  __device__ bool operator()(uint32_t tile) const {
    uint64_t first = keys[tile_begin[tile]];
    uint64_t last = keys[tile_begin[tile + 1] - 1];
    uint64_t x_mask = (UINT64_C(1) << grid.x_bits) - 1;
    bool wraps = leaves(0, (uint32_t)(first & x_mask), (uint32_t)(last & x_mask));
    for (uint32_t j = 1; j < grid.k && !wraps; j++) {
      uint32_t cell = kith_grid_row_cell(&grid, j, first >> grid.x_bits);
      wraps = leaves(j, cell, cell);
    }
    return wraps;
  }
};

} // namespace

tile_list find_wrapping_tiles(kith_cuda_session &session, const tiles &tiles, const cell_index &index,
                              const kith_grid &grid) {
  tile_list list;
  if (tiles.n == 0)
    return list;
  list.numbers = session.make<uint32_t>(tiles.n, "tiles");
  auto count = session.make<uint32_t>(1, "a number");
  thrust::counting_iterator<uint32_t> numbers(0);
  is_wrapping chosen{index.find.keys, tiles.begin.get(), grid};
  with_room(session, "tiles", [&](void *room, size_t &bytes) {
    return cub::DevicePartition::If(room, bytes, numbers, list.numbers.get(), count.get(), (int64_t)tiles.n,
                                    chosen, session.stream);
  });
  list.n = read_value(session, count.get(), "tiles");
  return list;
}

} // namespace kith_cuda
