/* join_tile: the default kernel.
 *
 * A warp takes a tile: up to G queries (8 to 32) that lie one after the other in a row of cells. Its lanes
 * first find the runs of the stencil's steps, a lane a step. What lies wholly within eps is counted, or copied
 * to the rows of all queries, untested. The rest is laid end to end, whatever the lengths of the runs. In four
 * dimensions and more, candidates farther than eps from the box around the queries are dropped: most of a
 * stencil is corners. What is left is tested in chunks: a lane holds a few candidates in registers and tests
 * all queries of the tile against them, which it reads from shared memory. s = D2 - eps2 in float32:
 *
 *   to count        the signs are added up, over all queries or for each of them, in registers
 *   to fill rows    the signs of a warp are a vote, which tells each lane its place in the row
 *   to collect      the votes are masks, kept by one lane a query and expanded into its buffer
 *
 * The smallest |s| is kept when counting: if any is within the band of the predicate, the chunk is counted
 * again by the definition, and the tile is marked, so that filling its rows looks twice as well. No atomics a
 * pair, and the same order in every run: in a row, the tested pairs of a batch of 32 steps come first, by
 * position, then the others. What is left of a batch, if candidates are dropped, waits for the next one to fill
 * a chunk; but not with the tile itself among it, whose pairs need admission.
 *
 * Counting a set against itself looks at each unordered pair once: at candidates that come after the query.
 *
 * In a periodic box whose grid wraps around, tiles near its faces (the border) meet rows from the other side,
 * too; for the other tiles space is open. There each axis is cut open where the tile reaches nothing, and what
 * lies behind the cut is lowered by a side when it is staged; a candidate is met once. In six dimensions and
 * more the grid may leave axes uncut, in the last dimensions. Then differences along them are folded, in all
 * tiles.
 *
 * In any other space (space.cuh) norm and limits are known only when it runs, and candidates may be images in a
 * periodic box (box.cuh). */
#ifndef KITH_ENGINE_CUDA_JOIN_TILE_CUH
#define KITH_ENGINE_CUDA_JOIN_TILE_CUH

#include "engine/cuda/settle.cuh"
#include "engine/cuda/tile_memory.cuh"

#include <type_traits>

namespace kith_cuda {

/* The first and the last cell of a row that a step reaches from cells x_first to x_last. */
struct cell_span {
  uint32_t low, high;
};

__device__ inline cell_span cells_within_reach(const kith_grid &grid, const kith_step &step, uint32_t x_first,
                                               uint32_t x_last) {
  uint32_t last_cell = grid.cells[0] - 1;
  return {x_first > step.x_reach ? x_first - step.x_reach : 0,
          last_cell - x_last > step.x_reach ? x_last + step.x_reach : last_cell};
}

/* Reads a point of the index in words as wide as rows are aligned. */
template <int D, typename T> __device__ inline void read_point(const T *from, T (&to)[D]) {
  constexpr int BYTES = D * sizeof(T), WIDTH = BYTES % 16 == 0 ? 16 : BYTES % 8 == 0 ? 8 : 4;
  using word = std::conditional_t<WIDTH == 16, uint4, std::conditional_t<WIDTH == 8, uint2, uint32_t>>;
#pragma unroll
  for (int i = 0; i < BYTES / WIDTH; i++) {
    word read = ((const word *)from)[i];
    memcpy((char *)to + i * WIDTH, &read, WIDTH);
  }
}

/* One warp's view of its tile. */
template <int D, typename T, int G, operation OP, space_kind KIND> struct tile_join {
  using shared = warp_memory<D, T, G, OP, KIND>;
  static constexpr bool WRAPS = KIND == WRAPPED_SPACE, GENERAL = KIND == ANY_SPACE;
  static constexpr uint32_t FOLDS = WRAPS ? most_folds(D) : 0; /* of the last dimensions, at most */
  static constexpr bool KEEPS_ORIGIN = sizeof(T) == 8 && D > 0 && KIND == OPEN_SPACE;
  static constexpr int PARTS = shared::PARTS, MASKS = shared::MASKS, HELD = shared::HELD;
  static constexpr uint32_t CHUNK = shared::CHUNK;
  static constexpr bool WRITES = shared::WRITES;
  static constexpr bool COUNTS_ROWS = OP == DEGREES && D > 0;
  static constexpr bool PRUNES = shared::PRUNES, VOTES = shared::VOTES;
  static constexpr uint32_t NOWHERE = UINT32_MAX; /* no place in a batch is as large */

  const join_args &args;
  shared &memory;
  const uint32_t lane;
  const uint32_t mine, part; /* the query whose masks this lane keeps, and for which candidates: mask m has bit
                                b for candidate 32 * (m * PARTS + part) + b of the chunk */
  /* the tile */
  uint32_t begin = 0, end = 0;
  uint32_t n_queries = 0;
  uint64_t row = 0;
  uint32_t x_first = 0, x_last = 0;
  bool accepts = false;                /* its cells and those around are even: pairs may be accepted untested */
  double origin[KEEPS_ORIGIN ? D : 1]; /* of staged coordinates; else in memory */
  uint32_t cut = 0;                    /* WRAPS: the axes that are cut open, bits */
  float band = 0, prune_band = 0;
  /* the runs of a batch */
  uint32_t n_test = 0, n_inside = 0;
  uint32_t run_place[shared::RUNS];        /* VOTES: where those of this lane begin, end to end; or NOWHERE */
  uint32_t waiting = 0;                    /* candidates in the queue */
  uint32_t self_inside = UINT32_MAX;       /* the place of query `mine` among those accepted untested */
  bool own_row = false;                    /* the own row is in the batch, and not all pairs there count */
  uint64_t found = 0;                      /* by query `mine` */
  uint32_t have = 0;                       /* ids in its buffer */
  int row_count[COUNTS_ROWS ? G : 1] = {}; /* of all queries, with the candidates that this lane held */
  bool doubts = D == 0;                    /* some test of the tile is within the band */
  uint64_t tested = 0, inside = 0, counted = 0;

  __device__ tile_join(const join_args &args, shared &memory)
      : args(args), memory(memory), lane(threadIdx.x % 32), mine(lane % G), part(lane / G) {}

  __device__ uint32_t dim() const { return D ? D : args.dim; }
  __device__ auto limit() const {
    if constexpr (D == 0)
      return early_limit{args.predicate.limit, args.give_up};
    else
      return args.predicate.limit;
  }
  __device__ bool has() const { return mine < n_queries; }
  __device__ const T *query(uint32_t position) const {
    return (const T *)args.q_coords + (uint64_t)position * dim();
  }
  __device__ const T *candidate(uint32_t position) const {
    return (const T *)args.c_coords + (uint64_t)position * dim();
  }
  /* Whether each pair is looked at once, and counted in both orders. */
  __device__ bool is_symmetric() const {
    if constexpr (GENERAL)
      return OP == COUNT && args.space.symmetric;
    else
      return OP == COUNT && args.one_set;
  }
  __device__ bool sees_images() const {
    if constexpr (GENERAL)
      return args.space.images.list;
    else
      return false;
  }

  /* ---- the tile ---- */

  __device__ bool may_accept() const {
    bool tails = false;
    for (uint32_t j = 0; j < args.grid.k; j++)
      tails |= args.grid.tails[j];
    return !args.half &&
           (!tails || (kith_grid_is_even(&args.grid, 0, x_first) && kith_grid_is_even(&args.grid, 0, x_last) &&
                       kith_grid_row_is_even(&args.grid, row)));
  }

  /* Lists the queries of the tile: those whose rows are wanted. */
  __device__ void list_queries() {
    uint32_t position = begin + lane;
    bool wanted = lane < G && position < end;
    uint32_t id = wanted ? args.q_ids[position] : 0;
    if (OP == FILL)
      wanted = wanted && id >= args.first_row && id < args.end_row;
    uint32_t all = __ballot_sync(ALL_LANES, wanted);
    n_queries = __popc(all);
    uint32_t at = __popc(all & ((1U << lane) - 1));
    if (lane < G)
      memory.slot[lane] = wanted ? at : UINT32_MAX;
    if (wanted) {
      memory.own[at] = position;
      memory.own_id[at] = id;
    }
    __syncwarp();
  }

  /* Whether staged coordinates are relative to an origin. */
  __device__ bool is_relative() const { return sizeof(T) == 8 || sees_images(); }

  /* Puts the coordinates in shared memory, and a box around them. float64 coordinates are relative to the first
   * position of the tile (see predicate.h), wanted or not, so that all passes see the same numbers. */
  __device__ void load_queries() {
    band = args.predicate.filter ? args.predicate.band : INFINITY;
    if constexpr (D == 0) {
      band = INFINITY;
    } else {
      double spread = 0;
      if constexpr (WRAPS)
        spread = cut_axes();
      bool is_query = lane < n_queries;
      const T *from = query(memory.own[is_query ? lane : 0]);
      double square = 0;
#pragma unroll
      for (int c = 0; c < D; c++) {
        float x = (float)from[c];
        if constexpr (WRAPS) {
          x = memory.cuts[c].place(from[c], args.space.side[c]);
          square += is_relative() ? (double)x * x : 0;
        } else if (is_relative()) {
          double first = (double)query(begin)[c];
          double relative = (double)from[c] - first;
          square += relative * relative;
          x = (float)relative;
          if constexpr (KEEPS_ORIGIN)
            origin[c] = first;
        }
        if (lane < G) /* nothing is near a query that is not there */
          memory.queries[lane * padded<D> + c] = is_query ? x : INFINITY;
        if (PRUNES)
          bound(c, x);
      }
      if constexpr (FOLDS > 0)
        open_folds();
      bool is_rounded = is_relative() || WRAPS;
      if (is_rounded)
        narrow(square, spread);
      /* Rounding in beyond_box costs (D + 4) 2^-24 of eps2 at most, as in the predicate. Where staging rounds
       * coordinates, the nearest point of the box may be a corner, sqrt(D) times as far from the origin as
       * any query: three times the band. */
      prune_band = (float)args.predicate.limit * 0x1p-20f + (is_rounded ? 3 * band : 0);
      prune_band = isinf(band) ? INFINITY : prune_band;
    }
    __syncwarp();
  }

  /* Lanes without a query have the coordinates of the first one. */
  __device__ void bound(int c, float x) {
    float low = x;
    float high = x;
#pragma unroll
    for (int step = 16; step; step /= 2) {
      low = fminf(low, __shfl_xor_sync(ALL_LANES, low, step));
      high = fmaxf(high, __shfl_xor_sync(ALL_LANES, high, step));
    }
    if (lane == 0) {
      memory.low[c] = low;
      memory.high[c] = high;
    }
  }

  /* The box along the columns, or along directions if the grid cuts those. */
  __device__ void bound_staged(float (&x)[D ? D : 1]) {
    if (is_slanted())
      slant(x);
#pragma unroll
    for (int c = 0; c < D; c++)
      bound(c, x[c]);
  }

  /* ---- directions (space/directions.h) ---- */

  static constexpr bool MAY_SLANT = GENERAL && D >= KITH_SLANT_FROM && D <= KITH_SLANT_TO;
  __device__ bool is_slanted() const {
    if constexpr (MAY_SLANT)
      return args.grid.slanted > 0;
    else
      return false;
  }

  __device__ static void add_and_subtract(float &a, float &b) {
    float sum = a + b;
    b = a - b;
    a = sum;
  }

  /* Columns become the directions of their groups. */
  __device__ static void slant(float (&x)[D ? D : 1]) {
    if constexpr (MAY_SLANT) {
      constexpr int LEFT = D / KITH_GROUP * KITH_GROUP;
#pragma unroll
      for (int c = 0; c < LEFT; c += KITH_GROUP) {
        add_and_subtract(x[c], x[c + 1]);
        add_and_subtract(x[c + 2], x[c + 3]);
        add_and_subtract(x[c], x[c + 2]);
        add_and_subtract(x[c + 1], x[c + 3]);
      }
      if constexpr (LEFT + 2 <= D)
        add_and_subtract(x[LEFT], x[LEFT + 1]);
    }
  }

  /* The least size of the difference from the box, less the limit. */
  __device__ float beyond_slanted_box(const float *x) const {
    float y[D ? D : 1];
    float s = args.predicate.minus_limit;
    float largest = 0;
#pragma unroll
    for (int c = 0; c < D; c++)
      y[c] = x[c];
    slant(y);
#pragma unroll
    for (int c = 0; c < D; c++) {
      bool begins = c == (int)kith_group_begin(D, c);
      s = begins ? s + largest : s;
      largest = fmaxf(begins ? 0 : largest, fmaxf(memory.low[c] - y[c], y[c] - memory.high[c]));
    }
    return s + largest;
  }

  /* `square`: of the distance of this lane's query from the origin, to which `spread` comes for all of them. */
  __device__ void narrow(double square, double spread) {
#pragma unroll
    for (int step = 16; step; step /= 2)
      square = fmax(square, __shfl_xor_sync(ALL_LANES, square, step));
    kith_predicate narrowed = args.predicate;
    narrowed.norm = KITH_NORM_2; /* the only one here, said so that the compiler knows */
    double h = sqrt(square) * (1 + 0x1p-20) + spread;
    bool near = kith_predicate_narrow(&narrowed, D, h);
    band = near ? narrowed.band : INFINITY;
  }

  /* ---- the tile in a box that the grid wraps around ---- */

  /* The cells of the tile along a dimension of the grid: the first and the last one. */
  __device__ cell_span own_cells(const kith_grid &grid, uint32_t j) const {
    uint32_t cell = j > 0 ? kith_grid_row_cell(&grid, j, row) : 0;
    return j > 0 ? cell_span{cell, cell} : cell_span{x_first, x_last};
  }

  /* Cuts the axes open for this tile, a lane an axis. Between what it reaches to one side and to the other
   * there is a cell at least (can_wrap, widest_tile); the cut is in the middle of that. Returns what the
   * rounding of places adds to the distance from the origin that the band is made for (docs/exactness.md). */
  __device__ double cut_axes() {
    const kith_grid &grid = *args.grid_in_memory;
    double first = (double)query(begin)[lane < D ? lane : 0];
    if (lane < D)
      memory.cuts[lane].set(INFINITY, first, 0);
    __syncwarp();
    double size = 0;
    uint32_t c = lane < grid.k ? grid.dims[lane] : 0;
    first = (double)query(begin)[c];
    if (lane < grid.k) {
      auto [low, high] = own_cells(grid, lane);
      memory.cell[lane] = (int32_t)low;
      bool below = low < grid.reach[lane];
      if (grid.wraps[lane] && (below || high + grid.reach[lane] >= grid.cells[lane])) {
        double cells = grid.cells[lane];
        double middle = (low + high + 1.0) / 2;
        memory.cuts[c].set((middle + (below ? cells : -cells) / 2) * grid.side[lane], first,
                           args.space.period[c]);
        size = (below ? high + 1 : cells - low) * grid.side[lane];
      }
    }
    __syncwarp();
    cut = __reduce_or_sync(ALL_LANES, size > 0 ? 1U << c : 0);
    double square = sizeof(T) == 4 ? size * size : 0;
#pragma unroll
    for (int step = 4; step; step /= 2) /* a grid has 8 dimensions at most */
      square += __shfl_xor_sync(ALL_LANES, square, step);
    square = __shfl_sync(ALL_LANES, square, 0);
    double spread = sizeof(T) == 4 ? 2 * sqrt(square) + args.predicate.reach : 0;
    return spread + 2 * args.space.folded + 0x1p-20 * args.space.periods;
  }

  /* Which of the last dimensions that is; negative: not one that may be folded. */
  __device__ static constexpr int fold_of(int c) { return c - (D - (int)FOLDS); }

  /* Candidates may be near wherever they are along a folded axis. */
  __device__ void open_folds() {
    __syncwarp(); /* another lane has put the bounds there */
    if (lane < FOLDS && !isinf(args.space.fold[lane])) {
      memory.low[D - FOLDS + lane] = -INFINITY;
      memory.high[D - FOLDS + lane] = INFINITY;
    }
  }

  /* The difference in dimension c, of which the sign does not matter. */
  __device__ float difference(float x, float q, int c) const {
    float d = x - q;
    if (fold_of(c) >= 0)
      d = fminf(fabsf(d), args.space.fold[fold_of(c)] - fabsf(d));
    return d;
  }

  /* ---- the tile in any space ---- */

  /* The limits of the queries. The band is that of the largest limit of all: for a smaller one, all errors that
   * are in proportion to the limit are smaller, and those of subnormal numbers are covered by the spare of the
   * band, which is 2^-23 of the largest limit (docs/exactness.md). */
  __device__ void load_limits() {
    bool is_query = lane < n_queries;
    bool own = is_query && args.space.limits;
    double limit = own ? args.space.limits[memory.own_id[is_query ? lane : 0]] : args.predicate.limit;
    if (lane < G) {
      memory.limit[lane] = limit;
      memory.start[lane] = own ? (float)-limit : args.predicate.minus_limit;
    }
    __syncwarp();
  }

  /* Like load_queries; where candidates are images, float32 coordinates have an origin, too. */
  __device__ void stage_queries() {
    band = INFINITY;
    if constexpr (D > 0) {
      bool is_query = lane < n_queries;
      const T *from = query(memory.own[is_query ? lane : 0]);
      if (lane < D)
        memory.origin[lane] = is_relative() ? (double)query(begin)[lane] : 0;
      __syncwarp();
      double size = 0;
      float staged[D];
#pragma unroll
      for (int c = 0; c < D; c++) {
        double x = (double)from[c] - memory.origin[c];
        size = kith_norm_add(args.predicate.norm, size, x);
        staged[c] = (float)x;
        if (lane < G) /* far from candidates, and from those that are not there: at +INFINITY */
          memory.queries[lane * padded<D> + c] = is_query ? (float)x : -INFINITY;
      }
      if (PRUNES)
        bound_staged(staged);
      choose_band(size);
    }
    __syncwarp();
  }

  /* `size`: of this lane's query, from the origin. Where a pair may belong in two images, the filter may accept
   * only what no second one can: below -band - 2 (limit - doubt) sizes are below the doubt. */
  __device__ void choose_band(double size) {
#pragma unroll
    for (int step = 16; step; step /= 2)
      size = fmax(size, __shfl_xor_sync(ALL_LANES, size, step));
    kith_predicate predicate = args.predicate;
    double h = kith_norm_distance(predicate.norm, size) * (1 + 0x1p-20);
    if (sees_images())
      h += args.space.images.rounding;
    bool filters = is_relative() ? kith_predicate_narrow(&predicate, D, h) : predicate.filter;
    double margin = args.space.ties ? predicate.limit - args.space.doubt : 0;
    if (!filters || margin > 0x1p-10 * predicate.limit) {
      band = prune_band = INFINITY;
      return;
    }
    band = predicate.band;
    if (margin > 0)
      band = (float)((double)band * (1 + 0x1p-20) + 2 * margin);
    prune_band = (float)predicate.limit * 0x1p-20f + (is_relative() ? 3 * band : 0);
    if (is_slanted())
      prune_band += (float)(KITH_SLANT_ROUNDING * args.grid.slanted);
  }

  __device__ void enter(uint32_t tile) {
    begin = args.tile_begin[tile];
    end = args.tile_begin[tile + 1];
    uint64_t first = args.q_keys[begin];
    uint64_t x_mask = (UINT64_C(1) << args.grid.x_bits) - 1;
    row = first >> args.grid.x_bits;
    x_first = (uint32_t)(first & x_mask);
    x_last = (uint32_t)(args.q_keys[end - 1] & x_mask);
    found = 0;
    __syncwarp();
    list_queries();
    if (n_queries == 0)
      return;
    if constexpr (GENERAL) {
      accepts = !args.space.limits && !args.space.ties && !sees_images() && may_accept();
      load_limits();
      stage_queries();
    } else {
      accepts = may_accept();
      load_queries();
    }
  }

  /* ---- the runs ---- */

  /* A range of positions, those in the middle of which are accepted untested, and what a row has beyond one end
   * of the box. */
  struct run {
    uint32_t begin = 0, end = 0, inside_begin = 0, inside_end = 0;
    position_range around = {0, 0};
  };

  /* The number of the row that a step leads to; negative: there is none. */
  __device__ int64_t find_row(const kith_step &step) const {
    if constexpr (WRAPS)
      return wrap_row(step);
    else
      return (int64_t)row + step.row;
  }

  __device__ int64_t wrap_row(const kith_step &step) const {
    const kith_grid &grid = args.grid;
    int64_t number = 0;
    for (uint32_t j = 1; j < grid.k; j++) {
      int32_t cells = (int32_t)grid.cells[j];
      int32_t cell = memory.cell[j] + step.offset[j];
      bool below = cell < 0;
      if (below || cell >= cells) {
        if (!grid.wraps[j])
          return -1;
        cell += below ? cells : -cells;
      }
      number += cell * (int64_t)grid.stride[j];
    }
    return number;
  }

  __device__ run find_run(uint32_t s) const {
    const kith_step &step = args.steps[s];
    run run;
    int64_t number = find_row(step);
    if (number < 0)
      return run;
    uint64_t base = (uint64_t)number << args.grid.x_bits;
    if constexpr (WRAPS)
      if (args.grid.wraps[0])
        run.around = find_around(step, base);
    auto [low, high] = cells_within_reach(args.grid, step, x_first, x_last);
    position_range within = args.find.find_range(base + low, base + high + 1);
    run.begin = within.begin;
    run.end = within.end;
    run.inside_begin = run.inside_end = run.end;
    if (step.x_inside < 0 || !accepts || run.begin == run.end)
      return run;
    int64_t inside_low = (int64_t)x_last - step.x_inside;
    int64_t inside_high = (int64_t)x_first + step.x_inside;
    if (args.grid.tails[0]) {
      inside_low = max(inside_low, (int64_t)ceil(args.grid.before[0]));
      inside_high = min(inside_high, (int64_t)floor(args.grid.before[0] + args.grid.even[0]) - 1);
    }
    inside_low = max(inside_low, (int64_t)low);
    inside_high = min(inside_high, (int64_t)high);
    if (inside_low > inside_high)
      return run;
    within = args.find.find_range(base + (uint64_t)inside_low, base + (uint64_t)inside_high + 1);
    run.inside_begin = within.begin;
    run.inside_end = within.end;
    return run;
  }

  /* What the row has beyond its end: a tile reaches one of them at most. */
  __device__ position_range find_around(const kith_step &step, uint64_t base) const {
    uint64_t cells = args.grid.cells[0];
    if (x_first < step.x_reach)
      return args.find.find_range(base + cells + x_first - step.x_reach, base + cells);
    if (x_last + step.x_reach >= cells)
      return args.find.find_range(base, base + x_last + step.x_reach - cells + 1);
    return {0, 0};
  }

  /* Counting one set looks only at what follows: in the own row, what comes later, or beyond the end of the
   * box; the tile itself is tested, pair by pair. */
  __device__ void keep_following(run &run) const {
    run.begin = max(run.begin, begin);
    run.inside_begin = max(run.inside_begin, end);
    run.inside_end = max(run.inside_end, run.inside_begin);
    run.end = max(run.end, run.begin);
    if (run.inside_begin == run.inside_end)
      run.inside_begin = run.inside_end = run.end;
    if (x_first < args.grid.reach[0])
      run.around = {0, 0};
  }

  /* The sum of a value over the lanes before this one, and over all of them. */
  __device__ uint32_t before(uint32_t value, uint32_t &all) const {
    uint32_t sum = value;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      uint32_t other = __shfl_up_sync(ALL_LANES, sum, step);
      sum += lane >= step ? other : 0;
    }
    all = __shfl_sync(ALL_LANES, sum, 31);
    return sum - value;
  }

  /* What is to be tested of a step: in front of the untested part of its run and behind it, and beyond the end
   * of a row that wraps around. */
  struct tests {
    position_range part[shared::RUNS];
    uint32_t n = 0;

    __device__ explicit tests(const run &run) {
      part[0] = {run.begin, run.inside_begin};
      part[1] = {run.inside_end, run.end};
      if constexpr (WRAPS)
        part[2] = run.around;
#pragma unroll
      for (int i = 0; i < shared::RUNS; i++)
        n += part[i].end - part[i].begin;
    }
  };

  /* Lays them end to end, and lists them; to vote, only those that are not empty. */
  __device__ void lay_tests(const tests &tests) {
    uint32_t at = before(tests.n, n_test);
    uint32_t entry = VOTES ? 0 : shared::RUNS * lane;
#pragma unroll
    for (int i = 0; i < shared::RUNS && VOTES; i++)
      entry += __popc(__ballot_sync(ALL_LANES, tests.part[i].begin < tests.part[i].end) & ((1U << lane) - 1));
#pragma unroll
    for (int i = 0; i < shared::RUNS; i++) {
      auto [first, end] = tests.part[i];
      if constexpr (VOTES) {
        run_place[i] = first < end ? at : NOWHERE;
        if (first == end)
          continue;
      }
      memory.test_base[entry] = first - at;
      at += end - first;
      if constexpr (!VOTES)
        memory.test_end[entry] = at;
      entry++;
    }
  }

  /* Finds the runs of 32 places, a lane a place, from the first of a batch on. */
  struct run_finder {
    uint32_t passed = 0; /* runs that lie before, or begin before */

    __device__ uint32_t find(const tile_join &tile, uint32_t place) {
      if constexpr (VOTES) {
        uint32_t begins = tile.vote_for_begins(place - tile.lane);
        uint32_t entry = passed + __popc(begins & (UINT32_MAX >> (31 - tile.lane))) - 1;
        passed += __popc(begins);
        return entry;
      } else {
        while (place < tile.n_test && place >= tile.memory.test_end[passed])
          passed++;
        return passed;
      }
    }
  };

  /* Which of 32 places begin a run, as a mask. */
  __device__ uint32_t vote_for_begins(uint32_t place) const {
    uint32_t begins = 0;
#pragma unroll
    for (int i = 0; i < shared::RUNS; i++)
      if (run_place[i] - place < 32 && run_place[i] < n_test)
        begins |= 1U << (run_place[i] - place);
    return __reduce_or_sync(ALL_LANES, begins);
  }

  /* Lays the runs of steps [s, s + 32) end to end. */
  __device__ void list_runs(uint32_t s) {
    run run;
    if (s + lane < args.n_steps)
      run = find_run(s + lane);
    if (is_symmetric() && s + lane == args.own_step && !sees_images())
      keep_following(run);
    uint32_t middle = run.inside_end - run.inside_begin;
    __syncwarp();
    lay_tests(tests(run));
    uint32_t at = before(middle, n_inside);
    memory.inside_end[lane] = at + middle;
    memory.inside_base[lane] = run.inside_begin - at;
    __syncwarp();
    bool in_batch = args.one_set && args.own_step >= s && args.own_step < s + 32;
    own_row = in_batch && (OP == COUNT || (WRITES && args.drop_self));
    if constexpr (GENERAL)
      own_row = own_row && !sees_images() && (OP != COUNT || is_symmetric());
    if (WRITES)
      find_self(run, at, args.own_step - s);
  }

  /* Where query `mine` stands among those accepted untested; `from` is the lane with the run of the own row. */
  __device__ void find_self(const run &run, uint32_t at, uint32_t from) {
    self_inside = UINT32_MAX;
    if (!own_row)
      return;
    uint32_t inside_begin = __shfl_sync(ALL_LANES, run.inside_begin, from);
    uint32_t inside_end = __shfl_sync(ALL_LANES, run.inside_end, from);
    uint32_t start = __shfl_sync(ALL_LANES, at, from);
    uint32_t own = memory.own[has() ? mine : 0];
    if (has() && own >= inside_begin && own < inside_end)
      self_inside = start + (own - inside_begin);
  }

  /* ---- collected rows ---- */

  __device__ uint32_t *buffer() { return memory.out + mine * shared::OUT_STRIDE; }

  /* Moves whole records of the buffer to the pool; `last`: what is left, too. */
  __device__ void flush_records(bool last) {
    for (;;) {
      bool moves = has() && (have >= record::IDS || (last && have > 0));
      uint32_t all = __ballot_sync(ALL_LANES, moves && part == 0);
      if (all == 0)
        return;
      unsigned long long first = 0;
      if (lane == 0)
        first = atomicAdd(args.pool.used, (unsigned long long)__popc(all));
      first = __shfl_sync(ALL_LANES, first, 0) + __popc(all & ((1U << lane) - 1));
      uint32_t ids = have < record::IDS ? have : record::IDS;
      if (moves && part == 0) {
        if (first < args.pool.capacity)
          write_record(args.pool.records + first);
        for (uint32_t i = ids; i < have; i++)
          buffer()[i - ids] = buffer()[i];
      }
      found += moves ? ids : 0;
      have -= moves ? ids : 0;
      __syncwarp();
    }
  }

  __device__ void write_record(record *to) {
    const uint32_t *ids = buffer();
    auto id = [&](uint32_t i) { return i < have ? ids[i] : record::NO_ID; };
    uint4 *words = (uint4 *)to;
    words[0] = make_uint4(memory.own_id[mine], (uint32_t)found, id(0), id(1));
#pragma unroll
    for (int i = 1; i < 4; i++)
      words[i] = make_uint4(id(4 * i - 2), id(4 * i - 1), id(4 * i), id(4 * i + 1));
  }

  /* ---- pairs accepted untested ---- */

  /* Copies the ids of the block, places [at, at + n), to all rows: whole lines of memory at a time. */
  __device__ void copy_block(uint32_t at, uint32_t n) {
    for (uint32_t t = 0; t < n_queries; t++) {
      uint32_t *to = memory.row_at[t];
      uint32_t self = __shfl_sync(ALL_LANES, self_inside, t) - at; /* beyond n: not in this block */
      bool self_passed = self >= 0x80000000U && __shfl_sync(ALL_LANES, self_inside, t) != UINT32_MAX;
      to += at - self_passed;
      uint32_t misaligned = (uint32_t)((uint64_t)to / sizeof(uint32_t)) % LINE;
#pragma unroll 4
      for (uint32_t i = lane - misaligned; (int32_t)i < (int32_t)n; i += 32)
        if ((int32_t)i >= 0 && i != self)
          to[i - (self < n && i > self)] = memory.block[i];
    }
  }

  __device__ void copy_inside() {
    uint32_t cursor = 0;
    for (uint32_t at = 0; at < n_inside; at += shared::BLOCK) {
      uint32_t n = min(n_inside - at, (uint32_t)shared::BLOCK);
      __syncwarp();
      for (uint32_t i = lane; i < n; i += 32) {
        while (at + i >= memory.inside_end[cursor])
          cursor++;
        memory.block[i] = args.c_ids[at + i + memory.inside_base[cursor]];
      }
      __syncwarp();
      copy_block(at, n);
    }
  }

  /* The same for a pool: ids go the way of those that were tested. */
  __device__ void collect_inside() {
    uint32_t cursor = 0;
    for (uint32_t at = 0; at < n_inside; at += 32) {
      __syncwarp();
      uint32_t place = at + lane;
      if (place < n_inside) {
        while (place >= memory.inside_end[cursor])
          cursor++;
        memory.queue_id[lane] = args.c_ids[place + memory.inside_base[cursor]];
      }
      __syncwarp();
      uint32_t n = min(n_inside - at, 32U);
      uint32_t mask = has() && part == 0 ? 0xFFFFFFFFU >> (32 - n) : 0;
      if (self_inside - at < n)
        mask &= ~(1U << (self_inside - at));
      append(mask, memory.queue_id);
    }
  }

  __device__ void take_inside() {
    if (n_inside == 0)
      return;
    if (lane == 0)
      inside += (uint64_t)n_inside * n_queries;
    if (OP == COLLECT) {
      collect_inside();
      return;
    }
    if (OP != FILL) {
      found += part == 0 && has() ? n_inside : 0;
      return;
    }
    copy_inside();
    __syncwarp();
    if (has() && part == 0)
      memory.row_at[mine] += n_inside - (self_inside != UINT32_MAX);
    __syncwarp();
  }

  /* ---- the tests ---- */

  /* Candidates on their way from memory. */
  struct batch {
    T coords[HELD][D ? D : 1];
    uint32_t position[HELD], id[HELD];
    bool exists[HELD];
  };

  __device__ void load(batch &batch, uint32_t at, run_finder &runs) const {
#pragma unroll
    for (int p = 0; p < HELD; p++) {
      uint32_t place = at + p * 32 + lane;
      bool exists = batch.exists[p] = place < n_test;
      uint32_t entry = runs.find(*this, place);
      if (!exists)
        continue;
      uint32_t position = batch.position[p] = place + memory.test_base[entry];
      if (WRITES || (OP == DEGREES && args.half))
        batch.id[p] = args.c_ids[position];
      if (sees_images()) {
        load_image(batch, p, position);
        continue;
      }
      if constexpr (D > 0)
        read_point(candidate(position), batch.coords[p]);
    }
  }

  /* Images have coordinates of their own, and are staged when they are loaded, not when they are enqueued. */
  __device__ void load_image(batch &batch, int p, uint32_t position) const {
    if constexpr (GENERAL) {
      const double *from = args.space.images.coords + (uint64_t)position * D;
#pragma unroll
      for (int c = 0; c < D; c++)
        batch.coords[p][c] = (T)(from[c] - memory.origin[c]);
    }
  }

  /* D2 between a candidate and the box of the queries, less eps2. */
  __device__ float beyond_box(const float *x) const {
    float s = args.predicate.minus_limit;
#pragma unroll
    for (int c = 0; c < D; c++) {
      float t = fmaxf(fmaxf(memory.low[c] - x[c], x[c] - memory.high[c]), 0.0f);
      s = fmaf(t, t, s);
    }
    return s;
  }

  /* The same in any norm. */
  __device__ float beyond_box_in_norm(const float *x) const {
    if (args.predicate.norm == KITH_NORM_2)
      return beyond_box(x);
    if (is_slanted())
      return beyond_slanted_box(x);
    bool sums = args.predicate.norm == KITH_NORM_1;
    float s = sums ? args.predicate.minus_limit : 0;
#pragma unroll
    for (int c = 0; c < D; c++) {
      float t = fmaxf(fmaxf(memory.low[c] - x[c], x[c] - memory.high[c]), 0.0f);
      s = sums ? s + t : fmaxf(s, t);
    }
    return sums ? s : s + args.predicate.minus_limit;
  }

  /* Moves candidates of float32 to where they are seen. Most axes are not cut open: that is asked once for all
   * that a lane has. */
  __device__ void place(batch &batch) const {
#pragma unroll
    for (int c = 0; c < D; c++)
      if (cut >> c & 1) {
        auto axis = memory.cuts[c];
#pragma unroll
        for (int p = 0; p < HELD; p++)
          batch.coords[p][c] = axis.place(batch.coords[p][c], args.space.side[c]);
      }
  }

  /* Coordinate c of a candidate as it is staged. */
  __device__ float stage(T x, int c) const {
    if constexpr (sizeof(T) == 4)
      return (float)x;
    else if constexpr (WRAPS)
      return memory.cuts[c].place(x, args.space.side[c]);
    else if constexpr (!GENERAL)
      return (float)(x - origin[c]);
    else
      return sees_images() ? (float)x : (float)(x - memory.origin[c]);
  }

  /* Puts candidates into the queue, behind the n that wait there, without those that lie too far away. */
  __device__ uint32_t enqueue(batch &batch, uint32_t n) {
    if constexpr (WRAPS && sizeof(T) == 4)
      place(batch);
#pragma unroll
    for (int p = 0; p < HELD; p++) {
      float x[D ? D : 1];
      if constexpr (D > 0) {
#pragma unroll
        for (int c = 0; c < D; c++)
          x[c] = stage(batch.coords[p][c], c);
      }
      bool kept = batch.exists[p];
      if constexpr (PRUNES && GENERAL)
        kept = kept && !(beyond_box_in_norm(x) > prune_band);
      else if constexpr (PRUNES)
        kept = kept && !(beyond_box(x) > prune_band);
      uint32_t all = __ballot_sync(ALL_LANES, kept);
      if (kept) {
        uint32_t at = n + __popc(all & ((1U << lane) - 1));
        memory.queue_position[at] = batch.position[p];
        if (WRITES || (OP == DEGREES && args.half))
          memory.queue_id[at] = batch.id[p];
        if constexpr (D > 0) {
#pragma unroll
          for (int c = 0; c < D; c++)
            memory.queue[c][at] = x[c];
        }
      }
      n += __popc(all);
    }
    return n;
  }

  /* What remains in the queue beyond a chunk moves to its front. */
  __device__ void shift_queue(uint32_t n) {
    for (uint32_t i = lane; i + CHUNK < n; i += 32) {
      memory.queue_position[i] = memory.queue_position[i + CHUNK];
      memory.queue_id[i] = memory.queue_id[i + CHUNK];
#pragma unroll
      for (int c = 0; c < D; c++)
        memory.queue[c][i] = memory.queue[c][i + CHUNK];
    }
    __syncwarp();
  }

  __device__ void read_query(uint32_t t, float (&q)[D ? D : 1]) const {
#pragma unroll
    for (int c = 0; c < D; c++)
      q[c] = memory.queries[t * padded<D> + c];
  }

  /* D2 - eps2 in float32: the filter of the predicate. */
  __device__ float excess(const float (&x)[D ? D : 1], const float (&q)[D ? D : 1]) const {
    float s = args.predicate.minus_limit;
#pragma unroll
    for (int c = 0; c < D; c++) {
      float d = difference(x[c], q[c], c);
      s = fmaf(d, d, s);
    }
    return s;
  }

  /* The same in any norm, for query t. */
  template <kith_norm NORM>
  __device__ float excess_in(const float (&x)[D ? D : 1], const float (&q)[D ? D : 1], uint32_t t) const {
    if constexpr (GENERAL) {
      float start = memory.start[t];
      float s = NORM == KITH_NORM_MAX ? 0 : start;
#pragma unroll
      for (int c = 0; c < D; c++) {
        float d = x[c] - q[c];
        s = NORM == KITH_NORM_2 ? fmaf(d, d, s) : NORM == KITH_NORM_1 ? s + fabsf(d) : fmaxf(s, fabsf(d));
      }
      return NORM == KITH_NORM_MAX ? s + start : s;
    } else {
      return excess(x, q);
    }
  }

  /* Calls f with the norm as a constant, so that no loop asks for it. */
  template <typename F> __device__ auto in_norm(F f) const {
    if constexpr (GENERAL) {
      if (args.predicate.norm == KITH_NORM_1)
        return f(std::integral_constant<kith_norm, KITH_NORM_1>());
      if (args.predicate.norm == KITH_NORM_MAX)
        return f(std::integral_constant<kith_norm, KITH_NORM_MAX>());
    }
    return f(std::integral_constant<kith_norm, KITH_NORM_2>());
  }

  /* Calls f with how many candidates of a chunk of n a lane holds at most, as a constant. In few dimensions a
   * tile has few candidates, and the last chunk, which is seldom full, is a large part of them. */
  template <int MOST = D <= 3 ? 1 : HELD, typename F> __device__ void by_size(uint32_t n, F f) const {
    if constexpr (MOST < HELD) {
      if (n > 32 * MOST)
        return by_size<MOST + 1>(n, f);
    }
    f(std::integral_constant<int, MOST>());
  }

  /* The masks of a chunk in float32. */
  template <kith_norm NORM>
  __device__ void filter(const float (&x)[HELD][D ? D : 1], uint32_t (&masks)[MASKS], float &nearest) const {
#pragma unroll 2
    for (uint32_t t = 0; t < n_queries; t++) {
      float q[D ? D : 1];
      read_query(t, q);
#pragma unroll
      for (int p = 0; p < HELD; p++) {
        float s = excess_in<NORM>(x[p], q, t);
        nearest = fminf(nearest, fabsf(s));
        uint32_t votes = __ballot_sync(ALL_LANES, __float_as_int(s) < 0);
        masks[p / PARTS] = lane == p % PARTS * G + t ? votes : masks[p / PARTS];
      }
    }
  }

  /* The number of pairs instead, over all queries and the candidates of this lane. */
  template <kith_norm NORM>
  __device__ uint32_t filter_count(const float (&x)[HELD][D ? D : 1], float &nearest) const {
    uint32_t count = 0;
#pragma unroll 4
    for (uint32_t t = 0; t < n_queries; t++)
      count += count_row<NORM>(x, t, nearest);
    return count;
  }

  /* The number of pairs of each query with the candidates of this lane, added to those so far, or taken from
   * them. Eight queries at a time: counts are in registers, whose numbers must be known. */
  template <kith_norm NORM>
  __device__ void count_rows(const float (&x)[HELD][D ? D : 1], int sign, float &nearest) {
#pragma unroll
    for (int first = 0; first < G; first += 8)
      if (first < n_queries) {
#pragma unroll
        for (int t = first; t < first + 8; t++)
          row_count[t] += sign * count_row<NORM>(x, t, nearest);
      }
  }

  template <kith_norm NORM>
  __device__ int count_row(const float (&x)[HELD][D ? D : 1], int t, float &nearest) const {
    float q[D ? D : 1];
    read_query(t, q);
    uint32_t count = 0;
#pragma unroll
    for (int p = 0; p < HELD; p++) {
      float s = excess_in<NORM>(x[p], q, t);
      nearest = fminf(nearest, fabsf(s));
      count += __float_as_uint(s) >> 31;
    }
    return (int)count;
  }

  /* Lanes exchange halves of their counts with partners, until each has one left. */
  template <int WIDTH> __device__ void fold_rows() {
    if constexpr (WIDTH > 0) {
      bool upper = lane & WIDTH;
#pragma unroll
      for (int t = 0; t < WIDTH; t++) {
        int given = upper ? row_count[t] : row_count[t + WIDTH];
        int kept = upper ? row_count[t + WIDTH] : row_count[t];
        row_count[t] = kept + __shfl_xor_sync(ALL_LANES, given, WIDTH);
      }
      fold_rows<WIDTH / 2>();
    }
  }

  /* The sum of row_count[mine] over all lanes. */
  __device__ uint32_t sum_rows() {
    fold_rows<G / 2>();
    uint32_t sum = (uint32_t)row_count[0];
    if constexpr (PARTS > 1)
      for (int step = G; step < 32; step *= 2)
        sum += __shfl_xor_sync(ALL_LANES, sum, step);
    return sum;
  }

  /* Leaves out what is not to be reported: the query itself, what comes before it in the tile, or smaller ids.
   * The mask is of the n candidates that wait at place `first`. */
  __device__ uint32_t admit(uint32_t mask, uint32_t first, uint32_t n) const {
    uint32_t own = memory.own[has() ? mine : 0];
    uint32_t own_id = memory.own_id[has() ? mine : 0];
    for (uint32_t b = 0; b < n; b++) {
      uint32_t position = memory.queue_position[first + b];
      bool out = position == own;
      if (OP == COUNT)
        out = position - begin <= own - begin;
      else if (args.half)
        out = memory.queue_id[first + b] <= own_id;
      if (out)
        mask &= ~(1U << b);
    }
    return mask;
  }

  /* Whether some candidate of the chunk is one of the tile's queries, or pairs are admitted by id. */
  __device__ bool needs_admission(uint32_t n) const {
    if (OP != COUNT && args.half)
      return true;
    bool own_tile = false;
    for (uint32_t i = lane; own_row && i < n; i += 32)
      own_tile |= memory.queue_position[i] - begin < end - begin;
    return __any_sync(ALL_LANES, own_tile);
  }

  /* Appends those ids to the row of query `mine` that its masks have bits for: `ids` are those of bit 0 and on.
   */
  __device__ void append(uint32_t mask, const uint32_t *ids) {
    uint32_t hits = __popc(mask);
    uint32_t most = __reduce_max_sync(ALL_LANES, hits);
    if (most == 0)
      return;
    uint32_t all = hits; /* of the lanes of this query, up to this one */
    if constexpr (PARTS > 1)
      for (int step = G; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(ALL_LANES, all, step);
        all += lane >= step ? other : 0;
      }
    uint32_t *to = buffer() + have + all - hits;
    have += PARTS > 1 ? __shfl_sync(ALL_LANES, all, 32 - G + mine) : all;
    if (most <= 6) {
      for (; mask; mask &= mask - 1)
        *to++ = ids[__ffs(mask) - 1];
    } else {
#pragma unroll
      for (int b = 0; b < 32; b++)
        if (mask >> b & 1)
          *to++ = ids[b];
    }
    __syncwarp();
    flush_records(false);
  }

  __device__ void report(const uint32_t (&masks)[MASKS]) {
#pragma unroll
    for (int m = 0; m < MASKS; m++) {
      if (OP == COLLECT)
        append(masks[m], memory.queue_id + 32 * (m * PARTS + part));
      else
        found += __popc(masks[m]);
    }
  }

  /* Makes the masks of a chunk of n again, by the definition. */
  __device__ void settle_chunk(uint32_t n, uint32_t (&masks)[MASKS]) const {
#pragma unroll
    for (int m = 0; m < MASKS; m++) {
      uint32_t first = 32 * (m * PARTS + part);
      uint32_t here = has() && n > first ? min(n - first, 32U) : 0;
      if constexpr (GENERAL)
        masks[m] = settle_in_space(query(memory.own[has() ? mine : 0]), memory.queue_position + first, here,
                                   args, memory.limit[mine]);
      else if constexpr (WRAPS)
        masks[m] =
            settle_folded(query(memory.own[has() ? mine : 0]), memory.queue_position + first, here, args);
      else
        masks[m] = settle(query(memory.own[has() ? mine : 0]), (const T *)args.c_coords,
                          memory.queue_position + first, here, dim(), limit());
    }
  }

  __device__ void admit_chunk(uint32_t n, uint32_t (&masks)[MASKS]) const {
#pragma unroll
    for (int m = 0; m < MASKS; m++) {
      uint32_t first = 32 * (m * PARTS + part);
      masks[m] = admit(masks[m], first, n > first ? min(n - first, 32U) : 0);
    }
  }

  /* Whether candidate i of the queue belongs to query t. */
  __device__ bool is_pair(uint32_t t, uint32_t i) const {
    uint32_t position = memory.queue_position[i];
    if constexpr (GENERAL)
      return is_pair_in_space(query(memory.own[t]), position, args, memory.limit[t]);
    else if constexpr (WRAPS)
      return belongs_folded(query(memory.own[t]), candidate(position), args);
    else
      return belongs(query(memory.own[t]), candidate(position), dim(), limit());
  }

  /* Whether candidate i of the queue belongs to query t and is admitted by its id; `near` is what float32 says.
   */
  __device__ bool check(bool near, float s, uint32_t t, uint32_t i, uint32_t n) const {
    if (D == 0 || !(fabsf(s) > band))
      near = i < n && is_pair(t, i);
    return near && (!args.half || memory.queue_id[i] > memory.own_id[t]);
  }

  /* Writes the neighbours among the first n candidates of the queue to the rows: the lanes that hold neighbours
   * of a query write them side by side. CHECKED: float32 may not be enough, or not all pairs are to be
   * reported. */
  template <bool CHECKED, kith_norm NORM, int MOST>
  __device__ void write_rows(const float (&x)[HELD][D ? D : 1], uint32_t n) {
    uint32_t id[MOST];
    uint32_t self[MOST]; /* the query that the candidate is */
#pragma unroll
    for (int p = 0; p < MOST; p++) {
      bool exists = p * 32 + lane < n;
      id[p] = exists ? memory.queue_id[p * 32 + lane] : 0;
      uint32_t place = exists && own_row ? memory.queue_position[p * 32 + lane] - begin : UINT32_MAX;
      self[p] = place < end - begin ? memory.slot[place] : UINT32_MAX;
    }
    uint32_t lower = (1U << lane) - 1;
#pragma unroll 2
    for (uint32_t t = 0; t < n_queries; t++) {
      float q[D ? D : 1];
      read_query(t, q);
      uint32_t *row = memory.row_at[t];
#pragma unroll
      for (int p = 0; p < MOST; p++) {
        float s = excess_in<NORM>(x[p], q, t);
        bool near = D > 0 && __float_as_int(s) < 0;
        if (CHECKED)
          near = check(near, s, t, p * 32 + lane, n);
        near = near && self[p] != t;
        uint32_t votes = __ballot_sync(ALL_LANES, near);
        if (near)
          row[__popc(votes & lower)] = id[p];
        row += __popc(votes);
      }
      __syncwarp(); /* all have read the old one */
      if (lane == 0)
        memory.row_at[t] = row;
    }
  }

  /* Tests the first n candidates of the queue. */
  __device__ void test(uint32_t n) {
    float x[HELD][D ? D : 1];
    if constexpr (D > 0) {
#pragma unroll
      for (int p = 0; p < HELD; p++)
#pragma unroll
        for (int c = 0; c < D; c++)
          x[p][c] = p * 32 + lane < n ? memory.queue[c][p * 32 + lane] : INFINITY;
    }
    if (lane == 0)
      tested += (uint64_t)n * n_queries;
    float nearest = INFINITY;
    if constexpr (OP == FILL) {
      in_norm([&](auto norm) {
        if (args.half || doubts)
          write_rows<true, norm, HELD>(x, n);
        else
          by_size(n, [&](auto most) { write_rows<false, norm, most>(x, n); });
      });
      return;
    }
    if constexpr (COUNTS_ROWS) {
      if (!args.half) {
        in_norm([&](auto norm) { count_rows<norm>(x, 1, nearest); });
        if (!__any_sync(ALL_LANES, !(nearest > band)))
          return;
        in_norm([&](auto norm) { count_rows<norm>(x, -1, nearest); }); /* as if nothing had happened */
      }
    }
    bool admission = needs_admission(n);
    uint32_t masks[MASKS] = {};
    if constexpr (D > 0) {
      if (OP == COUNT && !admission) {
        uint32_t count = in_norm([&](auto norm) { return filter_count<norm>(x, nearest); });
        if (!__any_sync(ALL_LANES, !(nearest > band))) {
          found += count;
          return;
        }
      } else {
        in_norm([&](auto norm) { filter<norm>(x, masks, nearest); });
      }
    }
    if (D == 0 || __any_sync(ALL_LANES, !(nearest > band))) {
      doubts = true;
      settle_chunk(n, masks);
    }
    if (admission)
      admit_chunk(n, masks);
    report(masks);
  }

  /* `all`: nothing is to be left waiting. */
  __device__ void take_tests(bool all) {
    run_finder runs;
    batch batch;
    load(batch, 0, runs);
    for (uint32_t at = 0; at < n_test || (all && waiting > 0); at += CHUNK) {
      __syncwarp();
      waiting = enqueue(batch, waiting);
      load(batch, at + CHUNK, runs); /* arrives while the queue is tested */
      __syncwarp();
      bool last = at + CHUNK >= n_test;
      while (waiting >= CHUNK || (last && all && waiting > 0)) {
        test(min(waiting, CHUNK));
        __syncwarp();
        if (PRUNES)
          shift_queue(waiting);
        waiting = waiting > CHUNK ? waiting - CHUNK : 0;
      }
    }
  }

  /* ---- all together ---- */

  __device__ void finish(uint32_t tile) {
    if constexpr (OP == FILL)
      return close_rows();
    if (OP == COLLECT)
      flush_records(true);
    if constexpr (OP == DEGREES && PARTS > 1)
      for (int step = G; step < 32; step *= 2)
        found += __shfl_xor_sync(ALL_LANES, found, step);
    if constexpr (COUNTS_ROWS)
      found += sum_rows();
    if (OP == COUNT) {
      counted += is_symmetric() ? 2 * found + (lane < n_queries && !sees_images() ? 1 : 0) : found;
      return;
    }
    if (lane == 0 && !sees_images())
      args.doubtful[tile] = doubts;
    if (has() && part == 0) {
      uint32_t &degree = args.degrees[memory.own_id[mine]];
      uint32_t before = sees_images() ? degree : 0;
      bool with_self = OP == DEGREES && args.drop_self && !args.half && !sees_images();
      degree = (uint32_t)found - (with_self ? 1 : 0);
      counted += degree - before;
    }
  }

  /* FILL: where the rows of the tile begin, and whether they need a second look. */
  __device__ void open_rows(uint32_t tile) {
    doubts = sees_images() || args.doubtful[tile];
    if (lane >= n_queries)
      return;
    uint32_t id = memory.own_id[lane];
    memory.row_at[lane] = args.neighbors + (args.offsets[id] - args.base);
    if (sees_images())
      memory.row_at[lane] += args.space.images.filled[id];
  }

  /* FILL: where more images go on. */
  __device__ void close_rows() {
    __syncwarp();
    if (!sees_images() || lane >= n_queries)
      return;
    uint32_t id = memory.own_id[lane];
    args.space.images.filled[id] =
        (uint32_t)(memory.row_at[lane] - (args.neighbors + (args.offsets[id] - args.base)));
  }

  __device__ void run_tile(uint32_t tile) {
    enter(tile);
    if (n_queries == 0)
      return;
    have = 0;
    if constexpr (OP == FILL)
      open_rows(tile);
    if ((OP == DEGREES || OP == COLLECT) && sees_images() && has()) /* behind those that are there */
      found = args.degrees[memory.own_id[mine]];
    for (uint32_t s = is_symmetric() && !sees_images() ? args.own_step : 0; s < args.n_steps; s += 32) {
      list_runs(s);
      bool last = s + 32 >= args.n_steps;
      bool needs_queue = WRITES && n_inside > 0;
      take_tests(!PRUNES || last || own_row || needs_queue);
      take_inside();
    }
    finish(tile);
  }
};

/* Blocks that a multiprocessor is to hold at least. In few dimensions all but COLLECT are short on warps that
 * could hide latencies, and do not need the registers; other spaces need some more. */
constexpr int least_blocks(int dim, operation op, space_kind kind) {
  if (dim < 1 || dim > 3 || op == COLLECT)
    return 1;
  return kind == OPEN_SPACE ? 12 : kind == WRAPPED_SPACE ? 10 : 8;
}

template <int D, typename T, int G, operation OP, space_kind KIND>
__global__ void __launch_bounds__(32 * WARPS, least_blocks(D, OP, KIND))
    join_tile(const __grid_constant__ join_args args) {
  __shared__ warp_memory<D, T, G, OP, KIND> memory[WARPS];
  tile_join<D, T, G, OP, KIND> join(args, memory[threadIdx.x / 32]);
  uint64_t tile = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
  if (tile >= args.n_tiles || *(const volatile int *)args.stop)
    return;
  join.run_tile(args.tile_list ? args.tile_list[tile] : (uint32_t)tile);
  uint64_t pairs = sum_over_warp(join.counted);
  if (join.lane == 0 && OP != FILL) {
    atomicAdd(&args.total->pairs, (unsigned long long)pairs);
    atomicAdd(&args.total->tested, (unsigned long long)join.tested);
    atomicAdd(&args.total->inside, (unsigned long long)join.inside);
  }
}

/* Dimensions in which there are so many tests a pair that collecting may pay. */
constexpr bool collects(uint32_t dim) { return dim >= 3; }

/* Launches the instance for a dimension (0: any) and a kind of space on args.n_tiles tiles; one per translation
 * unit. In any space tiles are of 32. */
template <int D, space_kind KIND>
void launch_join(const join_args &args, operation op, bool is_f64, uint32_t tile_queries, cudaStream_t stream);

} // namespace kith_cuda
#endif
