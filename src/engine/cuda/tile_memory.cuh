/* What a warp of join_tile has in shared memory. */
#ifndef KITH_ENGINE_CUDA_TILE_MEMORY_CUH
#define KITH_ENGINE_CUDA_TILE_MEMORY_CUH

#include "engine/cuda/join_args.cuh"

namespace kith_cuda {

enum { WARPS = 2 /* of a block */, LINE = 32 /* ids in a line of memory */ };

/* What the kernel knows of the space when it is compiled: Euclidean and open, with one limit; the same in a
 * periodic box that the grid wraps around; or nothing. */
enum space_kind { OPEN_SPACE, WRAPPED_SPACE, ANY_SPACE };

/* Dimensions in which so much of a stencil is corners that candidates are compared with the tile's box first.
 */
constexpr bool prunes(uint32_t dim) { return dim >= 4; }

/* Dimensions in which runs are so short, and so many of them empty, that lanes vote which run a place is in. In
 * the others each walks from run to run, which takes less time where one is as long as a vector. */
constexpr bool votes_for_runs(uint32_t dim) { return dim >= 5; }

/* Queries in a small tile: fewer candidates for each of them, more work to find those. */
constexpr uint32_t small_tile(uint32_t dim) { return dim >= 1 && dim <= 3 ? 8 : 16; }

/* Counting keeps nothing of a query: up to 8 dimensions, small tiles never pay there. (0: any dimension.) */
constexpr bool counts_in_small_tiles(uint32_t dim) { return dim == 0 || dim > 8; }

/* Coordinates of a query in shared memory, padded for wide loads. */
template <int D> constexpr int padded = D <= 1 ? 1 : D <= 2 ? 2 : D <= 4 ? 4 : 8;

/* An axis of a periodic box, cut open where no query of the tile is near: what lies behind the cut is lowered
 * by a side. float64 coordinates are relative to an origin, too. */
template <typename T> struct axis_cut;
template <> struct axis_cut<float> {
  float behind;
  /* Of float32 numbers the same ones lie behind it when it is rounded down. */
  __device__ void set(double cut, double, double) { behind = __double2float_rd(cut); }
  __device__ float place(float x, const box_side &side) const {
    return x > behind ? (x - side.rounded) - side.rest : x;
  }
};
template <> struct axis_cut<double> {
  double behind, origin, origin_behind;
  /* `first`: a query of the tile. */
  __device__ void set(double cut, double first, double side) {
    behind = cut;
    origin = first > cut ? first - side : first;
    origin_behind = origin + side;
  }
  __device__ float place(double x, const box_side &) const {
    return (float)(x - (x > behind ? origin_behind : origin));
  }
};

/* What a space adds to the memory of a warp. */
template <typename T, int G, space_kind KIND> struct space_memory {};
template <typename T, int G> struct space_memory<T, G, WRAPPED_SPACE> {
  axis_cut<T> cuts[KITH_GRID_DIMS]; /* of the dimensions */
  int32_t cell[KITH_GRID_DIMS];     /* of the tile in those of the grid, but along its row */
};
template <typename T, int G> struct space_memory<T, G, ANY_SPACE> {
  double limit[G];  /* of the queries, by the definition, */
  float start[G];   /* and what their sums in float32 start from: less that */
  double origin[8]; /* of staged coordinates, where they have one */
};

template <int D, typename T, int G, operation OP, space_kind KIND>
struct warp_memory : space_memory<T, G, KIND> {
  static constexpr int PARTS = 32 / G; /* lanes that share the masks of a query */
  /* Masks of a lane. More candidates at a time means more of a row written before the next one's turn. */
  static constexpr int MASKS = G < 32 ? 1 : OP == FILL && D <= 3 ? 4 : 2;
  static constexpr int HELD = PARTS * MASKS; /* candidates that a lane holds */
  static constexpr bool PRUNES = prunes(D);
  static constexpr bool VOTES = votes_for_runs(D);
  static constexpr bool WRITES = OP == FILL || OP == COLLECT;
  static constexpr bool WRAPS = KIND == WRAPPED_SPACE;
  static constexpr int RUNS = WRAPS ? 3 : 2; /* of a step, at most */
  static constexpr int CHUNK = 32 * HELD;
  static constexpr int QUEUE = PRUNES ? 2 * CHUNK : CHUNK;
  /* A row's ids on their way to the pool: less than a record left over, and a mask of new ones. */
  static constexpr int OUT_STRIDE = 32 * PARTS + record::IDS;
  static constexpr int BLOCK = 512; /* ids copied to all rows at once */

  alignas(16) float queries[D ? G * padded<D> : 4];
  alignas(16) float low[D ? D : 1], high[D ? D : 1]; /* the box around them */
  uint32_t own[G], own_id[G];                        /* their positions and ids */
  uint32_t slot[G];                                  /* which query a position of the tile is, if any */
  /* the runs of a batch of steps, end to end: position = place + base */
  uint32_t test_end[VOTES ? 1 : 32 * RUNS], test_base[32 * RUNS], inside_end[32], inside_base[32];
  union {
    struct { /* candidates waiting to be tested */
      float queue[D ? D : 1][D ? QUEUE : 1];
      uint32_t queue_position[QUEUE];
      uint32_t queue_id[QUEUE];
    };
    uint32_t block[OP == FILL ? BLOCK : 1]; /* or ids to be copied */
  };
  uint32_t out[OP == COLLECT ? G * OUT_STRIDE : 1];
  uint32_t *row_at[OP == FILL ? G : 1]; /* where the rows go on */
};

} // namespace kith_cuda
#endif
