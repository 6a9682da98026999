/* A periodic box on a GPU: the pass over images, as on the CPU (engine/cpu/images.h).
 *
 * The candidates as they are have been met before. Now a tile meets, for every other vector of the lattice that
 * brings images of candidates within reach of its queries, the candidates near the moved queries: cells of the
 * grid around their box, in rows that are numbered as the grid numbers them. Only tiles near the faces of the
 * brick take part: the border.
 *
 * Staged coordinates of queries and candidates are relative to the middle of the moved box, for float32 input
 * too: rounding what was moved costs digits, few beside an origin close by. For the band, coordinates may be
 * off by some 2^-53 of the lengths that moving deals with (the side of the brick, the shift), and the
 * definition rounds (a - b) + shift likewise; 2^-26 of these lengths, added to h, more than pays for that. */
#ifndef KITH_ENGINE_CUDA_IMAGES_CUH
#define KITH_ENGINE_CUDA_IMAGES_CUH

#include "engine/cuda/join_args.cuh"

namespace kith_cuda {

/* What the lanes of a warp share about the image that their tile is in. */
struct image_memory {
  kith_shift_walk walk;
  kith_differences differences;   /* between queries and candidates */
  double low[8], high[8];         /* the box around the queries, where D is not 0: per dimension, */
  double shift[8], origin[8];     /* how far it is moved, and its middle then: of staged coordinates */
  uint32_t first[KITH_GRID_DIMS]; /* the cells around the moved box: per grid dimension, */
  uint32_t cells[KITH_GRID_DIMS]; /* how many */
};

/* Goes to the next image that a tile meets, or to its first. */
__device__ __noinline__ inline bool turn(const kith_lattice &lattice, image_memory &image, bool first,
                                         bool positive) {
  bool more = first ? kith_shift_first(&lattice, &image.differences, &image.walk)
                    : kith_shift_next(&lattice, &image.differences, &image.walk);
  for (; more; more = kith_shift_next(&lattice, &image.differences, &image.walk)) {
    int sign = kith_shift_sign(&lattice, &image.walk.shift);
    if (sign > 0 || (sign < 0 && !positive))
      return true;
  }
  return false;
}

__device__ inline double shift_along(const kith_lattice &lattice, const kith_shift &shift, uint32_t c) {
  for (uint32_t i = 0; i < lattice.n; i++)
    if (lattice.axis[i] == c)
      return shift.by[i];
  return 0;
}

/* The box around a value of every lane. */
__device__ inline void bound_lanes(double x, double &low, double &high) {
  low = high = x;
  for (int step = 16; step; step /= 2) {
    low = fmin(low, __shfl_xor_sync(ALL_LANES, low, step));
    high = fmax(high, __shfl_xor_sync(ALL_LANES, high, step));
  }
}

/* The passes of a tile_join, J, over images. */
template <typename J> struct image_pass {
  J &join;
  image_memory &image;
  const space_args &space;

  __device__ explicit image_pass(J &join) : join(join), image(join.memory.image), space(join.args.space) {}

  __device__ void find_bounds(uint32_t c, double &low, double &high) const {
    uint32_t own = join.lane < join.n_queries ? join.lane : 0;
    bound_lanes((double)join.query(join.memory.own[own])[c], low, high);
  }

  /* Finds the first image; false if there is none. */
  __device__ bool begin() {
    double low;
    double high;
    for (int c = 0; c < J::DIM; c++) {
      find_bounds((uint32_t)c, low, high);
      image.low[c] = low; /* all lanes write the same */
      image.high[c] = high;
    }
    for (uint32_t i = 0; i < space.lattice.n; i++) {
      find_bounds(space.lattice.axis[i], low, high);
      image.differences.low[i] = low - space.lattice.vector[i][i];
      image.differences.high[i] = high;
    }
    image.differences.reach = join.args.predicate.reach;
    return go(true);
  }

  __device__ bool go_on() { return go(false); }

  __device__ bool go(bool first) {
    __syncwarp(); /* all are through with the last one */
    int more = 0;
    if (join.lane == 0)
      more = turn(space.lattice, image, first, J::COUNTS && space.symmetric);
    more = __shfl_sync(ALL_LANES, more, 0);
    __syncwarp();
    if (!more)
      return false;
    move_box();
    join.stage_queries();
    find_cells();
    __syncwarp();
    return true;
  }

  __device__ void move_box() {
    int c = (int)join.lane;
    if (c < J::DIM) {
      double by = image.shift[c] = shift_along(space.lattice, image.walk.shift, (uint32_t)c);
      double low = image.low[c] + by;
      double high = image.high[c] + by;
      image.origin[c] = low + (high / 2 - low / 2);
    }
    __syncwarp();
  }

  /* What moving the queries adds to their distance from the origin, for the band. */
  __device__ double rounding() const {
    double lengths = 0;
    for (uint32_t i = 0; i < space.lattice.n; i++)
      lengths += space.lattice.vector[i][i] + fabs(image.walk.shift.by[i]);
    return 0x1p-26 * lengths;
  }

  /* Cells rise with coordinates, so those of points between two coordinates lie between theirs. Where cells are
   * bent the logarithm is trusted to one cell. */
  __device__ void find_cells() {
    const kith_grid &grid = join.args.grid;
    join.n_rows = 1;
    for (uint32_t j = 0; j < grid.k; j++) {
      uint32_t c = grid.dims[j];
      double low;
      double high;
      if constexpr (J::DIM > 0) {
        low = image.low[c];
        high = image.high[c];
      } else {
        find_bounds(c, low, high);
      }
      double by = shift_along(space.lattice, image.walk.shift, c);
      low += by;
      high += by;
      double reach = join.args.predicate.reach + 0x1p-46 * (fabs(low) + fabs(high) + fabs(by));
      uint32_t first = kith_grid_cell(&grid, j, low - reach);
      uint32_t last = kith_grid_cell(&grid, j, high + reach);
      if (grid.tails[j]) {
        first -= first > 0;
        last += last + 1 < grid.cells[j];
      }
      image.first[j] = first;
      image.cells[j] = last - first + 1;
      join.n_rows *= j > 0 ? last - first + 1 : 1;
    }
  }

  /* The candidates in row r of those around the moved box. */
  __device__ typename J::run find_run(uint32_t r) const {
    const kith_grid &grid = join.args.grid;
    uint64_t number = 0;
    for (uint32_t j = 1; j < grid.k; j++) {
      number += grid.stride[j] * (image.first[j] + r % image.cells[j]);
      r /= image.cells[j];
    }
    uint64_t first = (number << grid.x_bits) + image.first[0];
    typename J::run run;
    run.begin = join.args.find.find(first);
    run.end = join.args.find.find(first + image.cells[0]);
    run.inside_begin = run.inside_end = run.end;
    return run;
  }
};

} // namespace kith_cuda
#endif
