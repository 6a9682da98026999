/* The index on the device: points in the order of their cells, a table that finds a cell, and the tiles.
 *
 * Keys are the grid's: row << x_bits | x (index/grid.h). Sorting them (radix, stable) puts cells of a row one
 * after the other, so that the candidates of a step of the stencil are consecutive positions: a run. Its ends
 * are found through `table`, which has the first position of every value of the upper bits of a key; where it
 * has all bits, that is one load, and else a few steps of a binary search.
 *
 * A tile is up to G consecutive positions of one row of cells whose queries share their candidates. */
#ifndef KITH_ENGINE_CUDA_INDEX_CUH
#define KITH_ENGINE_CUDA_INDEX_CUH

#include "engine/cuda/dense_plan.cuh"
#include "engine/cuda/device.cuh"
#include "index/grid.h"

#include <vector>

namespace kith_cuda {

/* Points in device memory. */
struct view {
  const char *data;
  uint64_t n;
  uint32_t dim;
  bool is_f64;
  int64_t row_stride, col_stride;

  __device__ double get(uint64_t i, uint32_t c) const {
    const char *at = data + (int64_t)i * row_stride + (int64_t)c * col_stride;
    return is_f64 ? *(const double *)at : (double)*(const float *)at;
  }
  __device__ bool is_valid(uint64_t i) const {
    for (uint32_t c = 0; c < dim; c++)
      if (!isfinite(get(i, c)))
        return false;
    return true;
  }
};

/* Sorted keys of 32 or 64 bits. */
struct key_list {
  const void *keys;
  bool wide;

  __device__ uint64_t operator[](uint32_t i) const {
    return wide ? ((const uint64_t *)keys)[i] : ((const uint32_t *)keys)[i];
  }
};

/* Positions from begin up to end. */
struct position_range {
  uint32_t begin, end;
};

/* Finds the first position with a key of at least some value. */
struct finder {
  key_list keys;
  const uint32_t *table; /* entries + 1 */
  uint64_t entries;
  uint32_t shift;
  uint32_t n;

  /* The positions among which it is, up to the last one. */
  __device__ position_range narrow(uint64_t entry) const {
    if (entry >= entries)
      return {n, n};
    uint32_t low = table[entry];
    return {low, shift == 0 ? low : table[entry + 1]};
  }
  __device__ uint32_t search(position_range among, uint64_t key) const {
    while (among.begin < among.end) {
      uint32_t middle = among.begin + (among.end - among.begin) / 2;
      if (keys[middle] < key)
        among.begin = middle + 1;
      else
        among.end = middle;
    }
    return among.begin;
  }
  __device__ uint32_t find(uint64_t key) const { return search(narrow(key >> shift), key); }

  /* The positions with keys from `first` to before `end`: often both ends are in one entry of the table. */
  __device__ position_range find_range(uint64_t first, uint64_t end) const {
    position_range among = narrow(first >> shift);
    uint32_t begin = search(among, first);
    if (end >> shift != first >> shift)
      among = narrow(end >> shift);
    return {begin, search({max(begin, among.begin), among.end}, end)};
  }
};

/* One set of points, indexed. Coordinates are of the type of the index, a point after the other. */
struct cell_index {
  uint32_t n = 0; /* valid points */
  buffer<char> coords;
  buffer<uint32_t> ids;
  buffer<char> keys;
  buffer<uint32_t> table;
  finder find{};
};

struct tiles {
  uint32_t n = 0;
  buffer<uint32_t> begin; /* n + 1 */
};

/* Some of them: the first n in a list of numbers, which others may follow. */
struct tile_list {
  uint32_t n = 0;
  buffer<uint32_t> numbers;
};

struct grid_plan {
  kith_grid grid;
  kith_stencil stencil;
  uint32_t tile_queries; /* at most: a small tile or 32 */
  bool wraps = false;    /* the grid does, around a periodic box: no images are needed */
  uint32_t folded = 0;   /* of which it does not cut these dimensions, bits */
  double candidates;     /* per query, expected */
  double neighbors;      /* likewise */
  dense_plan dense;
};

/* Looks at both sets, refuses invalid rows unless they are to be skipped, and chooses grid and tiles. */
grid_plan plan_join(kith_cuda_session &session, const kith_cuda_spec &spec, const view &a, const view &b,
                    uint64_t invalid[2]);

/* Builds the index over the valid points, with float or double coordinates. *cells, in pinned memory, will have
 * the number of non-empty cells once the stream was waited for. */
cell_index build_index(kith_cuda_session &session, const view &points, uint64_t invalid_rows,
                       const kith_grid &grid, bool as_f64, uint32_t *cells);

/* Fills coords, once n and ids are there. */
void gather_points(kith_cuda_session &session, const view &points, bool as_f64, cell_index &index);

/* Cuts an index into tiles of up to `queries` positions. */
tiles cut_tiles(kith_cuda_session &session, const cell_index &index, const kith_grid &grid, uint32_t queries);

/* The tiles whose stencils wrap around a periodic box; in the list, all the others follow, the last one first.
 */
tile_list find_wrapping_tiles(kith_cuda_session &session, const tiles &tiles, const cell_index &index,
                              const kith_grid &grid);

/* Makes what finds the positions of keys, once index.n and the sorted keys are there; *cells as above, or NULL.
 */
void make_table(kith_cuda_session &session, const kith_grid &grid, cell_index &index, uint32_t *cells);

/* The coordinate along a direction of a point, whose coordinate in column c is get(c). */
template <typename F> __device__ double value_along(const kith_direction &along, F get) {
  double value = get(along.first);
  for (uint32_t i = 1; i < along.n; i++)
    value = kith_direction_add(&along, i, value, get(along.first + i));
  return value;
}

/* The key of such a point. */
template <typename F> __device__ uint64_t key_of(const kith_grid &grid, F get) {
  uint64_t row = 0;
  for (uint32_t j = 1; j < grid.k; j++)
    row += grid.stride[j] * kith_grid_cell(&grid, j, value_along(grid.along[j], get));
  return row << grid.x_bits | kith_grid_cell(&grid, 0, value_along(grid.along[0], get));
}

} // namespace kith_cuda
#endif
