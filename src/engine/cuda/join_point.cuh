/* join_point: the kernel of the literature, for measurement and for choice.
 *
 * GPUCALCGLOBAL (Gowanlock and Karsin) and what LBJoin (Gallet and Gowanlock) added to it: every query on its
 * own, by one thread or by k that share its candidates; cells of side eps, all 3^k around a query found one by
 * one; pairs appended to a buffer, an atomic addition a pair. The grid's numbers (keys) are the linear ids of
 * the papers. Three things differ: points are read in the order of their cells, not through a list of ids; the
 * predicate is kith's (float32, and the definition where that is in doubt); and counting makes no pairs.
 *
 * Which cells a query looks at:
 *   FULL          all around it. Every pair is found from both sides.
 *   UNICOMP       let j be the last dimension in which two cells differ: they differ by one there, so that one
 *                 of the two coordinates is odd. The cell that has it looks at the other.
 *   LID-UNICOMP   those of larger number.
 * The latter two find a pair of different cells from one side, and report it in both orders; in the own cell,
 * every query reports for itself.
 *
 * Everything is exact whatever is chosen; only the order of the pairs in the buffer differs from run to run. */
#ifndef KITH_ENGINE_CUDA_JOIN_POINT_CUH
#define KITH_ENGINE_CUDA_JOIN_POINT_CUH

#include "engine/cuda/join_args.cuh"

namespace kith_cuda {

enum { POINT_THREADS = 256 /* of a block, as in the paper */, POINT_DIMS = 6 /* cut at most */ };

/* Queries first, first + stride, ...: places in the list of queries. */
struct query_batch {
  uint64_t first, stride, count;
};

struct found_pair {
  uint32_t row, id;
};

/* Pairs of a batch. */
struct pair_buffer {
  found_pair *pairs;
  unsigned long long capacity;
  unsigned long long *used; /* more than the capacity: the pairs are not complete */
};

struct point_args {
  join_args join;        /* without tiles and steps */
  const uint32_t *order; /* the positions of the queries, in the order in which they are taken */
  query_batch batch;
  uint32_t *head;   /* WORKQUEUE: how many of the batch were taken; NULL: threads take what their number says */
  kith_cells cells; /* the pattern */
  uint32_t threads; /* of a query, a power of two */
  pair_buffer out;  /* FILL */
  float band;       /* of the filter, for coordinates relative to the query; infinite: there is none */
};

/* The cells around one cell that a pattern has. */
struct cell_walk {
  const kith_grid &grid;
  const kith_cells pattern;
  const uint64_t own;
  uint32_t below = 0, above = 0, odd = 0; /* bit j: there is a cell before and after in dimension j; j is odd */

  __device__ cell_walk(const kith_grid &grid, kith_cells pattern, uint64_t key)
      : grid(grid), pattern(pattern), own(key) {
    uint64_t number = key >> grid.x_bits;
    for (uint32_t j = grid.k - 1; j >= 1; j--) {
      look(j, number / grid.stride[j]);
      number %= grid.stride[j];
    }
    look(0, key & ((UINT64_C(1) << grid.x_bits) - 1));
  }

  __device__ void look(uint32_t j, uint64_t cell) {
    below |= (uint32_t)(cell > 0) << j;
    above |= (uint32_t)(cell + 1 < grid.cells[j]) << j;
    odd |= (uint32_t)(cell & 1) << j;
  }

  /* From a cell to the next one in dimension j. */
  __device__ uint64_t step(uint32_t j) const { return j == 0 ? 1 : grid.stride[j] << grid.x_bits; }

  /* Calls visit with the keys of all cells around `key` in the first `dims` dimensions. */
  template <typename F> __device__ void walk_box(uint32_t dims, uint64_t key, F &visit) const {
    int offset[POINT_DIMS]; /* loops are unrolled, so that it stays in registers */
#pragma unroll
    for (uint32_t j = 0; j < POINT_DIMS; j++) {
      offset[j] = j < dims ? -(int)(below >> j & 1) : 0;
      key -= offset[j] ? step(j) : 0;
    }
    for (bool more = true; more;) {
      if (pattern != KITH_CELLS_LID_UNICOMP || key >= own)
        visit(key);
      more = false;
#pragma unroll
      for (uint32_t j = 0; j < POINT_DIMS; j++) {
        if (more || j >= dims)
          continue;
        int low = -(int)(below >> j & 1);
        more = offset[j] < (int)(above >> j & 1);
        int move = more ? 1 : low - offset[j];
        offset[j] += move;
        key += (uint64_t)((int64_t)move * (int64_t)step(j));
      }
    }
  }

  /* Calls visit with the keys of the cells of the pattern, its own among them. UNICOMP looks in both directions
   * along every dimension in which it is odd, and all around in those before it. */
  template <typename F> __device__ void each(F visit) const {
    bool unicomp = pattern == KITH_CELLS_UNICOMP;
    uint32_t boxes = unicomp ? 1 + 2 * grid.k : 1;
    for (uint32_t b = 0; b < boxes; b++) {
      uint32_t dims = unicomp ? 0 : grid.k;
      uint64_t key = own;
      if (b > 0) {
        dims = (b - 1) / 2;
        bool up = b % 2;
        if (!(odd >> dims & 1) || !((up ? above : below) >> dims & 1))
          continue;
        key = up ? own + step(dims) : own - step(dims);
      }
      walk_box(dims, key, visit);
    }
  }
};

/* One thread's part of one query. D is 0: any dimension. */
template <int D, typename T, operation OP> struct point_join {
  const point_args &args;
  const join_args &join;
  const uint32_t lane;      /* among the threads of the query */
  const T *query = nullptr; /* its coordinates */
  T own[D ? D : 1];         /* the same, in registers */
  uint32_t id = 0;          /* of the query */
  uint32_t found = 0;       /* pairs of the query's row */
  uint64_t tested = 0, counted = 0;

  __device__ explicit point_join(const point_args &args)
      : args(args), join(args.join), lane(threadIdx.x % args.threads) {}

  __device__ uint32_t dim() const { return D ? D : join.dim; }

  /* Takes a query of the batch: its number there. WORKQUEUE: the first thread of a query asks, and tells the
   * others (a tile of cooperative groups does just that). All lanes of the warp are here. */
  __device__ uint64_t take() const {
    if (!args.head)
      return ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / args.threads;
    uint32_t number = lane == 0 ? atomicAdd(args.head, 1U) : 0;
    return __shfl_sync(ALL_LANES, number, 0, (int)args.threads);
  }

  __device__ void enter(uint32_t position) {
    query = (const T *)join.q_coords + (uint64_t)position * dim();
    id = join.q_ids[position];
#pragma unroll
    for (int c = 0; c < D; c++)
      own[c] = query[c];
  }

  /* float64 coordinates are relative to the query itself: h is 0 in predicate.h. */
  __device__ bool is_near(const T *candidate) const {
    float s = join.predicate.minus_limit;
    if constexpr (D > 0) {
#pragma unroll
      for (int c = 0; c < D; c++) {
        float t = (float)(candidate[c] - own[c]);
        s = fmaf(t, t, s);
      }
    } else {
      for (uint32_t c = 0; c < dim(); c++) {
        float t = (float)(candidate[c] - query[c]);
        s = fmaf(t, t, s);
      }
    }
    if (fabsf(s) > args.band)
      return s < 0;
    return belongs(query, candidate, dim(), join.predicate.limit);
  }

  /* Whether (row, other) is to be reported. */
  __device__ bool admits(uint32_t row, uint32_t other) const {
    if (join.half)
      return row < other;
    return !(join.drop_self && row == other);
  }

  __device__ void append(uint32_t row, uint32_t other) const {
    if (!admits(row, other) || row < join.first_row || row >= join.end_row)
      return;
    unsigned long long at = atomicAdd(args.out.used, 1ULL);
    if (at < args.out.capacity)
      args.out.pairs[at] = found_pair{row, other};
  }

  /* `both`: the other order will not be found. */
  __device__ void report(uint32_t other, bool both) {
    if (OP == COUNT) {
      counted += both ? 2 : 1;
    } else if (OP == DEGREES) {
      found += admits(id, other);
      if (both && admits(other, id)) {
        atomicAdd(&join.degrees[other], 1U);
        counted++;
      }
    } else {
      append(id, other);
      if (both)
        append(other, id);
    }
  }

  /* The threads of a query take turns in each cell. */
  __device__ void look_at(uint64_t key, bool both) {
    uint32_t end = join.find.find(key + 1);
    for (uint32_t p = join.find.find(key) + lane; p < end; p += args.threads) {
      tested++;
      if (is_near((const T *)join.c_coords + (uint64_t)p * dim()))
        report(OP == COUNT ? 0 : join.c_ids[p], both);
    }
  }

  __device__ void run(uint64_t number) {
    uint32_t position = args.order[args.batch.first + number * args.batch.stride];
    enter(position);
    bool full = args.cells == KITH_CELLS_FULL;
    if (OP == FILL && full && (id < join.first_row || id >= join.end_row))
      return; /* a row of another window */
    cell_walk walk(join.grid, args.cells, join.q_keys[position]);
    walk.each([&](uint64_t key) { look_at(key, !full && key != walk.own); });
    if (OP == DEGREES && found > 0) {
      atomicAdd(&join.degrees[id], found);
      counted += found;
    }
  }
};

template <int D, typename T, operation OP>
__global__ void __launch_bounds__(POINT_THREADS) join_point(const __grid_constant__ point_args args) {
  point_join<D, T, OP> join(args);
  uint64_t number = join.take();
  if (number < args.batch.count && !*(const volatile int *)args.join.stop)
    join.run(number);
  if (OP == FILL)
    return;
  uint64_t pairs = sum_over_warp(join.counted);
  uint64_t tested = sum_over_warp(join.tested);
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&args.join.total->pairs, (unsigned long long)pairs);
    atomicAdd(&args.join.total->tested, (unsigned long long)tested);
  }
}

} // namespace kith_cuda
#endif
