/* join_tile: the default kernel.
 *
 * A group of G lanes (8 or 32) takes a tile: up to G queries that lie one after the other in a row of cells, a
 * query per lane. The lanes first find the runs of the stencil's steps, G at a time. What lies wholly within
 * eps is counted, or copied to the rows of all queries, untested. The rest is laid end to end, whatever the
 * lengths of the runs, and read in chunks of 32 candidates through shared memory; every lane tests its query
 * against all of them, 2 D + 2 instructions a test:
 *
 *   s = D2 - eps2 in float32, its sign shifted into a mask (one funnel shift), and the smallest |s| kept. If
 * that is within the band of the predicate for any lane, the chunk's masks are made again by the definition.
 *
 * Masks are counted, or expanded into a buffer per lane that leaves in aligned sectors of 8 ids. No atomics, no
 * branches a candidate; the same order in every run: untested pairs of a batch of steps first, then the others,
 * by position.
 *
 * Counting a set against itself looks at each unordered pair once: at candidates that come after the query. */
#ifndef KITH_ENGINE_CUDA_JOIN_TILE_CUH
#define KITH_ENGINE_CUDA_JOIN_TILE_CUH

#include "engine/cuda/index.cuh"

namespace kith_cuda {

enum operation { COUNT, DEGREES, FILL };

enum { CHUNK = 32, WARPS = 4 };
constexpr unsigned ALL_LANES = 0xFFFFFFFFU;

struct tally {
  unsigned long long pairs, tested, inside;
};

struct join_args {
  /* queries */
  const void *q_coords;
  const uint32_t *q_ids;
  key_list q_keys;
  const uint32_t *tile_begin;
  uint32_t n_tiles;
  /* candidates */
  const void *c_coords;
  const uint32_t *c_ids;
  finder find;
  /* the question */
  kith_grid grid;
  const kith_step *steps;
  uint32_t n_steps, own_step;
  kith_predicate predicate;
  uint32_t dim; /* where D is 0 */
  bool one_set, half, drop_self;
  /* the answer */
  tally *total;
  uint32_t *degrees;       /* by id */
  const uint64_t *offsets; /* by id */
  uint32_t *neighbors;     /* offsets[first_row] goes here */
  uint64_t first_row, end_row;
  const int *stop;
};

/* Coordinates of a candidate in shared memory, padded for wide loads. */
template <int D> constexpr int padded = D <= 1 ? 1 : D <= 2 ? 2 : D <= 4 ? 4 : 8;

/* A lane's ids on their way out: up to 7 left over and 32 new ones; the stride keeps 16-byte accesses of
 * neighbouring lanes in different banks. */
enum { OUT_STRIDE = 44, SECTOR = 8 };

template <int D, int G, operation OP> struct warp_memory {
  static constexpr int GROUPS = 32 / G;
  /* Groups are 8 words apart in the banks, so that they may read at once. */
  static constexpr int COORDS = CHUNK * padded<D> + 8;
  alignas(16) float coords[D ? GROUPS * COORDS : 4];
  alignas(16) uint32_t out[OP == FILL ? 32 * OUT_STRIDE : 4];
  uint32_t ids[GROUPS][CHUNK];
  uint32_t positions[GROUPS][CHUNK];
  uint32_t test_end[GROUPS][2 * G], test_base[GROUPS][2 * G];
  uint32_t inside_end[GROUPS][G], inside_base[GROUPS][G];
};

/* The ids of one row on their way to memory. */
struct row_writer {
  uint32_t *buffer; /* of the lane, in shared memory */
  uint32_t *sector; /* where buffer[0] goes: aligned */
  uint32_t have;    /* ids in the buffer, `skip` places before them included */
  uint32_t skip;

  __device__ void open(uint32_t *lane_buffer, uint32_t *row) {
    buffer = lane_buffer;
    skip = have = (uint32_t)((uint64_t)row / sizeof(uint32_t)) % SECTOR;
    sector = row - skip;
  }
  __device__ void flush() {
    uint32_t whole = have / SECTOR * SECTOR;
    for (uint32_t at = 0; at < whole; at += SECTOR) {
      uint4 first = *(const uint4 *)(buffer + at);
      uint4 second = *(const uint4 *)(buffer + at + 4);
      if (skip == 0) {
        *(uint4 *)(sector + at) = first;
        *(uint4 *)(sector + at + 4) = second;
      } else {
        for (uint32_t i = skip; i < SECTOR; i++)
          sector[at + i] = buffer[at + i];
        skip = 0;
      }
    }
    if (whole && have > whole) {
      *(uint4 *)buffer = *(const uint4 *)(buffer + whole);
      *(uint4 *)(buffer + 4) = *(const uint4 *)(buffer + whole + 4);
    }
    sector += whole;
    have -= whole;
  }
  __device__ void close() {
    for (uint32_t i = skip; i < have; i++)
      sector[i] = buffer[i];
  }
};

/* The masks of a chunk by the definition: bit 31 - b for candidate b. Not inlined: it is rare, and large. */
template <typename T>
__device__ __noinline__ uint32_t settle_chunk(const T *query, const T *candidates, const uint32_t *positions,
                                              uint32_t n, uint32_t dim, double eps2) {
  uint32_t mask = 0;
  for (uint32_t b = 0; b < n; b++) {
    const T *candidate = candidates + (uint64_t)positions[b] * dim;
    double d2 = 0;
    for (uint32_t c = 0; c < dim; c++) {
      double t = __dsub_rn((double)query[c], (double)candidate[c]);
      d2 = __dadd_rn(d2, __dmul_rn(t, t));
    }
    if (d2 <= eps2)
      mask |= 0x80000000U >> b;
  }
  return mask;
}

/* One warp's view of its tiles. */
template <int D, typename T, int G, operation OP> struct tile_join {
  static constexpr int GROUPS = 32 / G;
  using shared = warp_memory<D, G, OP>;

  const join_args &args;
  shared &memory;
  const uint32_t lane, group, sub;
  /* the group's tile */
  uint32_t begin = 0, end = 0;
  uint64_t row = 0;
  uint32_t x_first = 0, x_last = 0;
  bool accepts = false; /* its cells and those around are even: pairs may be accepted untested */
  /* the lane's query */
  uint32_t own = 0, own_id = 0;
  bool has = false;
  bool busy = false; /* some lane of the group has one */
  float q[D ? D : 1];
  double origin[sizeof(T) == 8 && D ? D : 1];
  float band;
  uint32_t found = 0;
  row_writer writer;
  /* the runs of a batch of steps, end to end */
  uint32_t n_test = 0, n_inside = 0;
  uint32_t self_inside = UINT32_MAX; /* the query's own place among those accepted untested */
  uint64_t tested = 0, inside = 0, counted = 0;

  __device__ tile_join(const join_args &args, shared &memory)
      : args(args), memory(memory), lane(threadIdx.x % 32), group(lane / G), sub(lane % G) {}

  __device__ uint32_t dim() const { return D ? D : args.dim; }
  __device__ const T *query() const { return (const T *)args.q_coords + (uint64_t)own * dim(); }
  __device__ const T *candidate(uint32_t position) const {
    return (const T *)args.c_coords + (uint64_t)position * dim();
  }

  /* ---- the tile ---- */

  __device__ bool rows_are_even() const {
    const kith_grid &grid = args.grid;
    uint64_t number = row;
    for (uint32_t j = grid.k - 1; j >= 1; j--) {
      int64_t cell = (int64_t)(number / grid.stride[j]);
      number %= grid.stride[j];
      int64_t first = cell > grid.reach[j] ? cell - grid.reach[j] : 0;
      int64_t last = cell + grid.reach[j] < grid.cells[j] ? cell + grid.reach[j] : grid.cells[j] - 1;
      if (!kith_grid_is_even(&grid, j, first) || !kith_grid_is_even(&grid, j, last))
        return false;
    }
    return true;
  }

  /* float64 coordinates are tested relative to the tile's first query: see predicate.h. */
  __device__ void load_query() {
    band = args.predicate.filter ? args.predicate.band : INFINITY;
    if constexpr (D == 0) {
      band = INFINITY;
    } else if constexpr (sizeof(T) == 4) {
#pragma unroll
      for (int c = 0; c < D; c++)
        q[c] = has ? (float)query()[c] : 0;
    } else {
      const T *first = (const T *)args.q_coords + (uint64_t)(begin < end ? begin : 0) * D;
      double square = 0;
#pragma unroll
      for (int c = 0; c < D; c++) {
        origin[c] = first[c];
        double relative = has ? query()[c] - origin[c] : 0;
        q[c] = (float)relative;
        square += relative * relative;
      }
      for (int step = G / 2; step; step /= 2)
        square = fmax(square, __shfl_xor_sync(ALL_LANES, square, step));
      kith_predicate narrow = args.predicate;
      bool near = kith_predicate_narrow(&narrow, D, sqrt(square) * (1 + 0x1p-20));
      band = near ? narrow.band : INFINITY;
    }
  }

  __device__ void enter(uint32_t tile) {
    bool exists = tile < args.n_tiles;
    begin = exists ? args.tile_begin[tile] : 0;
    end = exists ? args.tile_begin[tile + 1] : 0;
    own = begin + sub;
    has = own < end;
    own_id = has ? args.q_ids[own] : 0;
    if (exists) {
      uint64_t first = args.q_keys[begin];
      row = first >> args.grid.x_bits;
      uint64_t x_mask = (UINT64_C(1) << args.grid.x_bits) - 1;
      x_first = (uint32_t)(first & x_mask);
      x_last = (uint32_t)(args.q_keys[end - 1] & x_mask);
    }
    if (OP == FILL) /* rows outside the window are left out */
      has = has && own_id >= args.first_row && own_id < args.end_row;
    busy = (__ballot_sync(ALL_LANES, has) & group_lanes()) != 0;
    bool even = exists && !args.half;
    for (uint32_t j = 0; j < args.grid.k; j++)
      if (args.grid.tails[j])
        even = even && kith_grid_is_even(&args.grid, 0, x_first) && kith_grid_is_even(&args.grid, 0, x_last) &&
               rows_are_even();
    accepts = even;
    found = 0;
    load_query();
  }

  /* ---- the runs ---- */

  struct run {
    uint32_t begin = 0, end = 0, inside_begin = 0, inside_end = 0;
  };

  __device__ run find_run(uint32_t s) const {
    kith_step step = args.steps[s];
    run run;
    int64_t number = (int64_t)row + step.row;
    if (number < 0)
      return run;
    uint64_t base = (uint64_t)number << args.grid.x_bits;
    uint32_t last_cell = args.grid.cells[0] - 1;
    uint32_t low = x_first > step.x_reach ? x_first - step.x_reach : 0;
    uint32_t high = last_cell - x_last > step.x_reach ? x_last + step.x_reach : last_cell;
    run.begin = args.find.find(base + low);
    run.end = args.find.find(base + high + 1);
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
    run.inside_begin = args.find.find(base + (uint64_t)inside_low);
    run.inside_end = args.find.find(base + (uint64_t)inside_high + 1);
    return run;
  }

  /* Counting one set looks only at what follows; the tile itself is tested, pair by pair. */
  __device__ void keep_following(run &run) const {
    run.begin = max(run.begin, begin);
    run.inside_begin = max(run.inside_begin, end);
    run.inside_end = max(run.inside_end, run.inside_begin);
    run.end = max(run.end, run.begin);
    if (run.inside_begin == run.inside_end)
      run.inside_begin = run.inside_end = run.end;
  }

  /* The sum of a value over the lanes of the group before this one, and over all of them. */
  __device__ uint32_t before(uint32_t value, uint32_t &all) const {
    uint32_t sum = value;
#pragma unroll
    for (int step = 1; step < G; step *= 2) {
      uint32_t other = __shfl_up_sync(ALL_LANES, sum, step, G);
      sum += sub >= step ? other : 0;
    }
    all = __shfl_sync(ALL_LANES, sum, G - 1, G);
    return sum - value;
  }

  /* Lays the runs of steps [s, s + G) end to end: a lane a step. Positions are place + base. */
  __device__ void list_runs(uint32_t s) {
    run run;
    bool mine = busy && s + sub < args.n_steps;
    if (mine)
      run = find_run(s + sub);
    if (OP == COUNT && args.one_set && mine)
      keep_following(run);
    uint32_t front = run.inside_begin - run.begin;
    uint32_t middle = run.inside_end - run.inside_begin;
    uint32_t back = run.end - run.inside_end;
    __syncwarp();
    uint32_t at = before(front + back, n_test);
    memory.test_end[group][2 * sub] = at + front;
    memory.test_base[group][2 * sub] = run.begin - at;
    memory.test_end[group][2 * sub + 1] = at + front + back;
    memory.test_base[group][2 * sub + 1] = run.inside_end - (at + front);
    at = before(middle, n_inside);
    memory.inside_end[group][sub] = at + middle;
    memory.inside_base[group][sub] = run.inside_begin - at;
    __syncwarp();
    if (OP == FILL)
      find_self(run, at, s);
  }

  __device__ unsigned group_lanes() const { return G == 32 ? ~0U : ((1U << G) - 1) << (group * G); }

  /* Where the lane's own query stands among those accepted untested. */
  __device__ void find_self(const run &run, uint32_t at, uint32_t s) {
    self_inside = UINT32_MAX;
    if (!args.drop_self || args.own_step < s || args.own_step >= s + G)
      return;
    uint32_t from = args.own_step - s; /* the lane with the run of the own row */
    uint32_t inside_begin = __shfl_sync(ALL_LANES, run.inside_begin, from, G);
    uint32_t inside_end = __shfl_sync(ALL_LANES, run.inside_end, from, G);
    uint32_t start = __shfl_sync(ALL_LANES, at, from, G);
    if (own >= inside_begin && own < inside_end)
      self_inside = start + (own - inside_begin);
  }

  /* ---- pairs accepted untested ---- */

  __device__ void copy_inside() {
    uint32_t most = __reduce_max_sync(ALL_LANES, n_inside);
    uint32_t cursor = 0;
    uint64_t row_at = (uint64_t)(writer.sector + writer.have); /* nothing of this batch is buffered yet */
    for (uint32_t at = 0; at < most; at += G) {
      uint32_t place = at + sub;
      bool inside = place < n_inside;
      uint32_t id = 0;
      if (inside) {
        while (place >= memory.inside_end[group][cursor])
          cursor++;
        id = args.c_ids[place + memory.inside_base[group][cursor]];
      }
#pragma unroll 4
      for (uint32_t t = 0; t < G; t++) {
        uint32_t *to = (uint32_t *)__shfl_sync(ALL_LANES, row_at, t, G);
        uint32_t self = __shfl_sync(ALL_LANES, self_inside, t, G);
        bool open = __shfl_sync(ALL_LANES, (int)has, t, G);
        if (inside && open && place != self)
          to[place - (place > self)] = id;
      }
    }
  }

  __device__ void take_inside() {
    inside += has ? n_inside : 0;
    if (OP != FILL) {
      found += n_inside;
      return;
    }
    uint32_t mine = n_inside - (self_inside != UINT32_MAX);
    if (!__any_sync(ALL_LANES, n_inside > 0))
      return;
    if (has) {
      writer.close();
      writer.sector += writer.have;
      writer.have = writer.skip = 0; /* for copy_inside: the row goes on here */
    }
    copy_inside();
    if (has)
      writer.open(writer.buffer, writer.sector + mine);
  }

  /* ---- the tests ---- */

  __device__ void load_chunk(uint32_t at, uint32_t &cursor) {
#pragma unroll
    for (int r = 0; r < CHUNK / G; r++) {
      uint32_t i = r * G + sub;
      uint32_t place = at + i;
      bool inside = place < n_test;
      uint32_t position = 0;
      if (inside) {
        while (place >= memory.test_end[group][cursor])
          cursor++;
        position = place + memory.test_base[group][cursor];
        if (OP == FILL || args.half)
          memory.ids[group][i] = args.c_ids[position];
      }
      memory.positions[group][i] = position;
      if constexpr (D > 0) {
        float *to = memory.coords + group * shared::COORDS + i * padded<D>;
        const T *from = candidate(position);
#pragma unroll
        for (int c = 0; c < D; c++) {
          if constexpr (sizeof(T) == 4)
            to[c] = inside ? (float)from[c] : INFINITY;
          else
            to[c] = inside ? (float)(from[c] - origin[c]) : INFINITY;
        }
      }
    }
  }

  /* Bit 31 - b: candidate b is nearer than eps, as far as float32 can tell. */
  __device__ uint32_t filter_chunk(uint32_t n, float &nearest) const {
    const float *from = memory.coords + group * shared::COORDS;
    uint32_t mask = 0;
    uint32_t b = 0;
    for (; b < n; b += 8) {
#pragma unroll
      for (int k = 0; k < 8; k++) {
        float s = args.predicate.minus_eps2;
#pragma unroll
        for (int c = 0; c < D; c++) {
          float t = q[c] - from[(b + k) * padded<D> + c];
          s = fmaf(t, t, s);
        }
        mask = __funnelshift_l(__float_as_uint(s), mask, 1);
        nearest = fminf(nearest, fabsf(s));
      }
    }
    return b < 32 ? mask << (32 - b) : mask;
  }

  /* Leaves out what is not to be reported: the query itself, what comes before it, or smaller ids. */
  __device__ uint32_t admit(uint32_t mask, uint32_t n) const {
    for (uint32_t b = 0; b < n; b++) {
      uint32_t position = memory.positions[group][b];
      bool out = OP == COUNT ? position <= own : args.half ? memory.ids[group][b] <= own_id : position == own;
      if (out)
        mask &= ~(0x80000000U >> b);
    }
    return mask;
  }

  /* Whether some candidate of the chunk is one of the tile's queries, or pairs are admitted by id. */
  __device__ bool needs_admission(uint32_t n, bool own_row) const {
    if (OP == DEGREES || args.half)
      return args.half && n > 0;
    bool own_tile = false;
    for (uint32_t i = sub; own_row && i < n; i += G)
      own_tile |= memory.positions[group][i] - begin < end - begin;
    return own_tile;
  }

  __device__ void append(uint32_t mask) {
    const uint32_t *ids = memory.ids[group];
    uint32_t most = __reduce_max_sync(ALL_LANES, __popc(mask));
    if (most == 0)
      return;
    if (most <= 4) {
      for (; mask; mask &= ~(0x80000000U >> __clz(mask)))
        writer.buffer[writer.have++] = ids[__clz(mask)];
    } else {
#pragma unroll
      for (int b = 0; b < CHUNK; b++)
        if ((int)(mask << b) < 0)
          writer.buffer[writer.have++] = ids[b];
    }
    if (has)
      writer.flush();
  }

  /* own_row: the runs of the batch are those of the own row, among others, and not all pairs there count. */
  __device__ void take_tests(bool own_row) {
    uint32_t most = __reduce_max_sync(ALL_LANES, n_test);
    uint32_t cursor = 0;
    tested += has ? n_test : 0;
    for (uint32_t at = 0; at < most; at += CHUNK) {
      __syncwarp();
      load_chunk(at, cursor);
      __syncwarp();
      uint32_t n = n_test > at ? min(n_test - at, (uint32_t)CHUNK) : 0;
      uint32_t most_here = min(most - at, (uint32_t)CHUNK);
      float nearest = INFINITY;
      uint32_t mask = 0;
      if constexpr (D > 0)
        mask = filter_chunk(most_here, nearest);
      bool doubtful = has && n > 0 && !(nearest > band);
      if (doubtful)
        mask = settle_chunk(query(), (const T *)args.c_coords, memory.positions[group], n, dim(),
                            args.predicate.eps2);
      if (__any_sync(ALL_LANES, needs_admission(n, own_row)))
        mask = admit(mask, n);
      mask = has ? mask : 0;
      if (OP == FILL)
        append(mask);
      else
        found += __popc(mask);
    }
  }

  /* ---- all together ---- */

  __device__ void run_tile(uint32_t tile) {
    enter(tile);
    if (OP == FILL && has)
      writer.open(memory.out + lane * OUT_STRIDE,
                  args.neighbors + (args.offsets[own_id] - args.offsets[args.first_row]));
    if (OP == FILL && !__any_sync(ALL_LANES, has))
      return;
    bool excludes = args.one_set && (OP == COUNT || (OP == FILL && args.drop_self));
    uint32_t first = OP == COUNT && args.one_set ? args.own_step : 0;
    for (uint32_t s = first; s < args.n_steps; s += G) {
      list_runs(s);
      take_inside();
      take_tests(excludes && args.own_step >= s && args.own_step < s + G);
    }
    if (!has)
      return;
    if (OP == COUNT)
      counted += args.one_set ? 1 + 2 * (uint64_t)found : found;
    if (OP == DEGREES) {
      uint32_t degree = found - (args.drop_self && !args.half ? 1 : 0);
      args.degrees[own_id] = degree;
      counted += degree;
    }
    if (OP == FILL)
      writer.close();
  }
};

__device__ inline uint64_t sum_over_warp(uint64_t value) {
  for (int step = 16; step; step /= 2)
    value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

template <int D, typename T, int G, operation OP>
__global__ void __launch_bounds__(32 * WARPS) join_tile(const __grid_constant__ join_args args) {
  __shared__ warp_memory<D, G, OP> memory[WARPS];
  constexpr uint32_t GROUPS = 32 / G;
  tile_join<D, T, G, OP> join(args, memory[threadIdx.x / 32]);
  uint64_t warp = (uint64_t)blockIdx.x * WARPS + threadIdx.x / 32;
  uint64_t warps = (uint64_t)gridDim.x * WARPS;
  for (uint64_t tile = warp * GROUPS; tile < args.n_tiles; tile += warps * GROUPS) {
    if (*(const volatile int *)args.stop)
      break;
    join.run_tile((uint32_t)tile + join.group);
  }
  uint64_t pairs = sum_over_warp(join.counted);
  uint64_t tested = sum_over_warp(join.tested);
  uint64_t inside = sum_over_warp(join.inside);
  if (join.lane == 0 && args.total) {
    atomicAdd(&args.total->pairs, (unsigned long long)pairs);
    atomicAdd(&args.total->tested, (unsigned long long)tested);
    atomicAdd(&args.total->inside, (unsigned long long)inside);
  }
}

/* Launches the instance for a dimension (0: any) on args.n_tiles tiles; one per translation unit. */
template <int D>
void launch_join(const join_args &args, operation op, bool is_f64, uint32_t tile_queries, cudaStream_t stream);

} // namespace kith_cuda
#endif
