/* Ordering points by their sketches: see sketch.cuh. A radix sort for each dimension of the sketch; 24 bytes a
 * point while sorting, and 4 for each dimension. */
#include "engine/cuda/sketch.cuh"

#include "engine/cuda/algorithms.cuh"

#include <cmath>

namespace kith_cuda {

namespace {

/* A sketch on the device. */
struct sketcher {
  const uint32_t *columns;
  const double *low;
  kith_norm norm;
  uint32_t dim, split, groups;

  __device__ float column(const view &points, uint32_t i, uint32_t j) const {
    return (float)(points.get(i, columns[j]) - low[columns[j]]);
  }
  /* The norm of every so many of the other columns. */
  __device__ float group(const view &points, uint32_t i, uint32_t g) const {
    double size = 0;
    for (uint32_t j = split + g; j < dim; j += groups)
      size = kith_norm_add(norm, size, points.get(i, columns[j]) - low[columns[j]]);
    return (float)kith_norm_distance(norm, size);
  }
};

/* The sketches of all rows, [dimension][row]; and of every row whether it is invalid. */
__global__ void sketch_points(view points, sketcher sketch, float *values, bool *invalid) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= points.n)
    return;
  for (uint32_t d = 0; d < sketch.split; d++)
    values[d * points.n + i] = sketch.column(points, i, d);
  for (uint32_t g = 0; g < sketch.groups; g++)
    values[(sketch.split + g) * points.n + i] = sketch.group(points, i, g);
  if (invalid)
    invalid[i] = !points.is_valid(i);
}

/* Order-preserving integers of floats, NaN somewhere. */
__device__ uint32_t ordered(float x) {
  uint32_t bits = __float_as_uint(x);
  return bits >> 31 ? ~bits : bits | 1U << 31;
}

/* Keys that keep slabs together, and sort each by a dimension of the sketch. Invalid rows come last. Slabs are
 * whole tiles: one that had points of two slabs would be near almost every other. */
struct slab_keys {
  const float *values; /* of this dimension, by row */
  const bool *invalid; /* NULL: none is */
  uint64_t n, slabs;
  uint32_t tile, n_tiles;

  __device__ uint64_t key(uint32_t position, uint32_t row) const {
    uint64_t slab = invalid && invalid[row] ? slabs : position / tile * slabs / n_tiles;
    return slab << 32 | ordered(values[row]);
  }
};

__global__ void make_slab_keys(slab_keys make, const uint32_t *order, uint64_t *keys, uint32_t *rows) {
  uint32_t p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= make.n)
    return;
  rows[p] = order ? order[p] : p;
  keys[p] = make.key(p, rows[p]);
}

/* A block a tile. */
__global__ void bound_tiles(const float *values, uint64_t n_rows, const uint32_t *order, uint32_t n,
                            uint32_t tile, uint32_t dims, float *low, float *high) {
  uint32_t begin = blockIdx.x * tile;
  uint32_t end = begin + min(tile, n - begin);
  for (uint32_t d = threadIdx.x / 32; d < dims; d += blockDim.x / 32) {
    float least = INFINITY;
    float most = -INFINITY;
    for (uint32_t p = begin + threadIdx.x % 32; p < end; p += 32) {
      float x = values[d * n_rows + order[p]];
      least = fminf(least, x);
      most = fmaxf(most, x);
    }
    for (int step = 16; step; step /= 2) {
      least = fminf(least, __shfl_xor_sync(0xFFFFFFFFU, least, step));
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFFU, most, step));
    }
    if (threadIdx.x % 32 == 0) {
      low[blockIdx.x * dims + d] = least;
      high[blockIdx.x * dims + d] = most;
    }
  }
}

/* The rows in order, invalid ones last; n_valid of them are not. */
buffer<uint32_t> sort_rows(kith_cuda_session &session, const float *values, const bool *invalid, uint64_t n,
                           uint64_t n_valid, uint32_t dims, uint32_t tile) {
  auto order = session.make<uint32_t>(n, "sorted rows");
  auto rows = session.make<uint32_t>(n, "rows");
  auto keys = session.make<uint64_t>(n, "keys");
  auto sorted = session.make<uint64_t>(n, "sorted keys");
  uint64_t slabs_each = count_slabs(blocks_for(n_valid, tile), dims);
  uint64_t slabs = 1;
  for (uint32_t d = 0; d < dims; d++, slabs *= slabs_each) {
    uint64_t many = d == 0 ? n : n_valid;
    slab_keys make{values + d * n, d == 0 ? invalid : nullptr, many, slabs, tile, blocks_for(many, tile)};
    make_slab_keys<<<blocks_for(many, THREADS), THREADS, 0, session.stream>>>(make, d ? order.get() : nullptr,
                                                                              keys.get(), rows.get());
    check_launch("keys of sketches");
    sort_pairs(session, 32 + (int)ceil_log2(slabs + 1), many, keys.get(), sorted.get(), rows.get(),
               order.get());
  }
  return order;
}

} // namespace

uint32_t count_slabs(uint64_t n_tiles, uint32_t dims) {
  return (uint32_t)std::max(1.0, rint(pow((double)n_tiles, 1.0 / dims)));
}

sketched_points order_by_sketch(kith_cuda_session &session, const view &points, uint64_t invalid_rows,
                                const kith_sketch &sketch, bool as_f64, uint32_t tile) {
  sketched_points made;
  made.index.n = (uint32_t)(points.n - invalid_rows);
  uint32_t dims = kith_sketch_dims(&sketch);
  uint32_t n_tiles = blocks_for(made.index.n, tile);
  if (n_tiles == 0)
    return made;
  auto columns = upload(session, sketch.columns, sketch.dim, "columns");
  auto low = upload(session, sketch.low, sketch.dim, "the box around the points");
  auto values = session.make<float>(points.n * dims, "sketches");
  auto invalid = session.make<bool>(invalid_rows ? points.n : 0, "invalid rows");
  sketcher sketcher{columns.get(), low.get(), sketch.norm, sketch.dim, sketch.split, dims - sketch.split};
  sketch_points<<<blocks_for(points.n, THREADS), THREADS, 0, session.stream>>>(points, sketcher, values.get(),
                                                                               invalid.get());
  check_launch("sketches");
  made.index.ids = sort_rows(session, values.get(), invalid.get(), points.n, made.index.n, dims, tile);
  made.low = session.make<float>((uint64_t)n_tiles * dims, "boxes");
  made.high = session.make<float>((uint64_t)n_tiles * dims, "boxes");
  bound_tiles<<<n_tiles, THREADS, 0, session.stream>>>(
      values.get(), points.n, made.index.ids.get(), made.index.n, tile, dims, made.low.get(), made.high.get());
  check_launch("boxes");
  gather_points(session, points, as_f64, made.index);
  return made;
}

} // namespace kith_cuda
