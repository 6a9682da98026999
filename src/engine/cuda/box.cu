/* Periodic boxes: see box.cuh. */
#include "engine/cuda/algorithms.cuh"
#include "engine/cuda/box.cuh"
#include "engine/cuda/join_args.cuh"

#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cmath>

namespace kith_cuda {

double widen_reach(const kith_lattice &lattice, double reach) {
  double sides = 0;
  for (uint32_t i = 0; i < lattice.n; i++)
    sides += lattice.vector[i][i];
  return reach + 0x1p-48 * sides;
}

/* ---- moving points into the brick ------------------------------------------------------------------------ */

namespace {

struct wrap_findings {
  unsigned long long outside; /* rows that are to be moved */
  unsigned long long faults;  /* rows that are invalid, or whose place is lost; */
  unsigned long long first;   /* the first of them: 2 * row, + 1 if it is lost */
};

/* Rows that are invalid lie nowhere, whatever becomes of them. */
__global__ void count_outside(const __grid_constant__ view points, const __grid_constant__ kith_lattice lattice,
                              wrap_findings *found) {
  uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  bool outside = false;
  for (uint32_t i = 0; row < points.n && i < lattice.n; i++) {
    double x = points.get(row, lattice.axis[i]);
    outside |= x < 0 || x >= lattice.vector[i][i];
  }
  int count = __syncthreads_count(outside && points.is_valid(row));
  if (threadIdx.x == 0 && count)
    atomicAdd(&found->outside, (unsigned long long)count);
}

__global__ void place_rows(const __grid_constant__ view points, const __grid_constant__ kith_lattice lattice,
                           double *to, wrap_findings *found) {
  uint64_t row = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= points.n)
    return;
  double *x = to + row * points.dim;
  bool valid = true;
  for (uint32_t c = 0; c < points.dim; c++) {
    x[c] = points.get(row, c);
    valid = valid && isfinite(x[c]);
  }
  bool lost = valid && !kith_lattice_place(&lattice, x);
  for (uint32_t c = 0; lost && c < points.dim; c++)
    x[c] = NAN;
  if (!valid || lost) {
    atomicAdd(&found->faults, 1ULL);
    atomicMin(&found->first, 2ULL * row + lost);
  }
}

wrap_findings read_findings(kith_cuda_session &session, const buffer<wrap_findings> &found) {
  return read_value(session, found.get(), "moving points into the box");
}

[[noreturn]] void refuse_lost(const char *name, const wrap_findings &found) {
  char text[256];
  snprintf(text, sizeof text,
           "%s: row %llu lies so many boxes away that its place in the box is lost (counted from 0; invalid "
           "rows in all: %llu); remove such rows, or skip them",
           name, found.first / 2, found.faults);
  fail(KITH_ERR_POINTS, text);
}

} // namespace

view wrap_points(kith_cuda_session &session, const kith_cuda_spec &spec, const view &points, const char *name,
                 buffer<char> &room) {
  if (spec.lattice.n == 0 || points.n == 0)
    return points;
  auto found = session.make<wrap_findings>(1, "numbers");
  check(cudaMemsetAsync(found.get(), 0, sizeof(wrap_findings), session.stream), "points");
  check(cudaMemsetAsync(&found.get()->first, 0xFF, sizeof(uint64_t), session.stream), "points");
  unsigned blocks = blocks_for(points.n, THREADS);
  if (!spec.lattice.turned) {
    count_outside<<<blocks, THREADS, 0, session.stream>>>(points, spec.lattice, found.get());
    check_launch("points");
    if (read_findings(session, found).outside == 0)
      return points;
  }
  auto wrapped = session.make<char>(points.n * points.dim * sizeof(double), "the points in their box");
  place_rows<<<blocks, THREADS, 0, session.stream>>>(points, spec.lattice, (double *)wrapped.get(),
                                                     found.get());
  check_launch("points");
  wrap_findings seen = read_findings(session, found);
  bool first_is_lost = seen.faults > 0 && seen.first % 2 == 1;
  if (first_is_lost && !spec.skip_invalid) /* other invalid rows are refused when the points are looked at */
    refuse_lost(name, seen);
  room = std::move(wrapped);
  return view{room.get(), points.n, points.dim, true, (int64_t)(points.dim * sizeof(double)), sizeof(double)};
}

/* ---- the border ------------------------------------------------------------------------------------------ */

namespace {

/* The box around a value of every lane. */
__device__ void bound_lanes(double x, double &low, double &high) {
  low = high = x;
  for (int step = 16; step; step /= 2) {
    low = fmin(low, __shfl_xor_sync(0xFFFFFFFFU, low, step));
    high = fmax(high, __shfl_xor_sync(0xFFFFFFFFU, high, step));
  }
}

/* The points of an index, in its order. */
view view_of(const cell_index &index, uint32_t dim, bool is_f64) {
  int64_t width = is_f64 ? sizeof(double) : sizeof(float);
  return view{index.coords.get(), index.n, dim, is_f64, dim * width, width};
}

/* A warp a tile. */
__global__ void find_border(const __grid_constant__ view points, const uint32_t *tile_begin, uint32_t n_tiles,
                            const __grid_constant__ kith_lattice lattice, double reach, uint32_t *border,
                            uint32_t *count) {
  uint32_t tile = (uint32_t)(((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32);
  uint32_t lane = threadIdx.x % 32;
  if (tile >= n_tiles)
    return;
  uint32_t begin = tile_begin[tile];
  uint32_t position = begin + lane < tile_begin[tile + 1] ? begin + lane : begin;
  bool interior = true;
  for (uint32_t i = 0; i < lattice.n; i++) {
    double low;
    double high;
    bound_lanes(points.get(position, lattice.axis[i]), low, high);
    interior = interior && kith_lattice_is_interior(&lattice, i, low, high, reach);
  }
  if (lane == 0 && !interior)
    border[atomicAdd(count, 1U)] = tile;
}

} // namespace

tile_list find_border_tiles(kith_cuda_session &session, const tiles &all, const cell_index &index, bool is_f64,
                            const kith_cuda_spec &spec) {
  tile_list border;
  if (all.n == 0)
    return border;
  border.numbers = session.make<uint32_t>(all.n, "tiles");
  auto count = session.make<uint32_t>(1, "a number");
  check(cudaMemsetAsync(count.get(), 0, sizeof(uint32_t), session.stream), "tiles");
  find_border<<<blocks_for((uint64_t)all.n * 32, THREADS), THREADS, 0, session.stream>>>(
      view_of(index, spec.a.dim, is_f64), all.begin.get(), all.n, spec.lattice, spec.predicate.reach,
      border.numbers.get(), count.get());
  check_launch("tiles");
  border.n = read_value(session, count.get(), "tiles");
  return border;
}

/* ---- images ---------------------------------------------------------------------------------------------- */

constexpr uint32_t MOST_STAGED = 8; /* dimensions in which kernels stage coordinates */

/* Which images are to be made. */
struct image_question {
  view points;
  kith_lattice lattice;
  double reach;
  bool positive;
  const uint32_t *sources; /* of these, */
  uint32_t n;
  image_place first, end; /* and only those between, */
  bool all;               /* if these are not all of them */
  shift_numbers numbers;
  kith_grid grid;

  /* Calls see(shift) for all shifts that bring candidate p within reach of some point of the brick. */
  template <typename F> __device__ void each_shift(uint32_t p, F see) const {
    kith_differences differences;
    differences.reach = reach;
    for (uint32_t i = 0; i < lattice.n; i++) {
      double x = points.get(p, lattice.axis[i]);
      differences.low[i] = -x;
      differences.high[i] = lattice.vector[i][i] - x;
    }
    kith_shift_walk walk;
    bool more = kith_shift_first(&lattice, &differences, &walk);
    for (; more; more = kith_shift_next(&lattice, &differences, &walk)) {
      int sign = kith_shift_sign(&lattice, &walk.shift);
      if (sign > 0 || (sign < 0 && !positive))
        see(walk.shift);
    }
  }

  __device__ uint32_t number_of(const kith_shift &shift) const {
    uint32_t number = 0;
    for (uint32_t i = 0; i < lattice.n; i++)
      number += (uint32_t)(shift.turns[i] - numbers.first[i]) * numbers.stride[i];
    return number;
  }

  __device__ uint64_t find_key(uint32_t p, const kith_shift &shift) const {
    return key_of(grid, [&](uint32_t c) { return moved(p, c, shift); });
  }

  /* Of source i. */
  __device__ bool wants(uint32_t i, const kith_shift &shift) const {
    if (all)
      return true;
    image_place place{find_key(sources[i], shift), i};
    return !(place < first) && place < end;
  }

  __device__ double moved(uint32_t p, uint32_t c, const kith_shift &shift) const {
    double x = points.get(p, c);
    for (uint32_t i = 0; i < lattice.n; i++)
      x -= lattice.axis[i] == c ? shift.by[i] : 0;
    return x;
  }
};

namespace {

/* Whether a candidate has images at all. */
struct has_images {
  view points;
  kith_lattice lattice;
  double reach;

  __device__ bool operator()(uint32_t p) const {
    for (uint32_t i = 0; i < lattice.n; i++) {
      double x = points.get(p, lattice.axis[i]);
      if (!kith_lattice_is_interior(&lattice, i, x, x, reach))
        return true;
    }
    return false;
  }
};

__global__ void count_images(const __grid_constant__ image_question question, uint64_t *counts) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= question.n)
    return;
  uint64_t n = 0;
  question.each_shift(question.sources[i], [&](const kith_shift &shift) { n += question.wants(i, shift); });
  counts[i] = n;
}

template <typename K>
__global__ void list_images(const __grid_constant__ image_question question, const uint64_t *begins, K *keys,
                            image *images) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= question.n)
    return;
  uint32_t p = question.sources[i];
  uint64_t at = begins[i];
  question.each_shift(p, [&](const kith_shift &shift) {
    if (!question.wants(i, shift))
      return;
    keys[at] = (K)question.find_key(p, shift);
    images[at++] = image{p, question.number_of(shift)};
  });
}

/* The ids of images, and their coordinates, if they are wanted. */
__global__ void place_images(const __grid_constant__ image_question question, const uint32_t *source_ids,
                             const image *images, const kith_shift *shifts, uint64_t n, uint32_t *ids,
                             double *coords) {
  uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  image made = images[i];
  ids[i] = source_ids[made.source];
  for (uint32_t c = 0; coords && c < question.points.dim; c++)
    coords[i * question.points.dim + c] = question.moved(made.source, c, shifts[made.shift]);
}

} // namespace

box_images::box_images(kith_cuda_session &session, const kith_cuda_spec &spec, const kith_grid &grid,
                       const cell_index &candidates, bool is_f64)
    : session(session), spec(spec), grid(grid), candidates(candidates),
      points(view_of(candidates, spec.a.dim, is_f64)) {
  make_shifts();
  find_sources();
}

void box_images::find_sources() {
  if (candidates.n == 0)
    return;
  auto found = session.make<uint32_t>(candidates.n, "images");
  auto count = session.make<uint32_t>(1, "a number");
  has_images chosen{points, spec.lattice, spec.predicate.reach};
  thrust::counting_iterator<uint32_t> positions(0);
  with_room(session, "images", [&](void *room, size_t &bytes) {
    return cub::DeviceSelect::If(room, bytes, positions, found.get(), count.get(), (int64_t)candidates.n,
                                 chosen, session.stream);
  });
  sources.n = read_value(session, count.get(), "images");
  sources.positions = session.make<uint32_t>(sources.n, "images");
  check(cudaMemcpyAsync(sources.positions.get(), found.get(), sources.n * sizeof(uint32_t),
                        cudaMemcpyDeviceToDevice, session.stream),
        "images");
}

/* All combinations of the turns that bring some pair of the brick within reach. */
void box_images::make_shifts() {
  const kith_lattice &lattice = spec.lattice;
  kith_differences differences{};
  differences.reach = spec.predicate.reach;
  for (uint32_t i = 0; i < lattice.n; i++) {
    differences.low[i] = -lattice.vector[i][i];
    differences.high[i] = lattice.vector[i][i];
  }
  int32_t last[KITH_MAX_AXES] = {};
  kith_shift_walk walk;
  bool more = kith_shift_first(&lattice, &differences, &walk);
  for (; more; more = kith_shift_next(&lattice, &differences, &walk))
    for (uint32_t i = 0; i < lattice.n; i++) {
      numbers.first[i] = std::min(numbers.first[i], walk.shift.turns[i]);
      last[i] = std::max(last[i], walk.shift.turns[i]);
    }
  uint32_t n = 1;
  for (uint32_t i = 0; i < lattice.n; i++) {
    numbers.stride[i] = n;
    n *= (uint32_t)(last[i] - numbers.first[i] + 1);
  }
  std::vector<kith_shift> list(n);
  for (uint32_t number = 0; number < n; number++) {
    kith_shift &made = list[number];
    for (uint32_t i = 0, rest = number; i < lattice.n; i++) {
      uint32_t many = (uint32_t)(last[i] - numbers.first[i] + 1);
      made.turns[i] = numbers.first[i] + (int32_t)(rest % many);
      rest /= many;
    }
    kith_shift_add_up(&lattice, 0, &made);
    double lengths = 0;
    for (uint32_t i = 0; i < lattice.n; i++)
      lengths += lattice.vector[i][i] + fabs(made.by[i]);
    rounding = std::max(rounding, 0x1p-26 * lengths);
  }
  shifts = session.make<kith_shift>(n, "the images of the box");
  check(cudaMemcpyAsync(shifts.get(), list.data(), n * sizeof(kith_shift), cudaMemcpyHostToDevice,
                        session.stream),
        "the images of the box");
}

/* Sorts the images into the cells of the grid. */
template <typename K> void box_images::fill_part(const image_question &question, const uint64_t *begins) {
  uint64_t n = part.index.n;
  auto keys = session.make<K>(n, "images");
  auto list = session.make<image>(n, "images");
  list_images<<<blocks_for(question.n, THREADS), THREADS, 0, session.stream>>>(question, begins, keys.get(),
                                                                               list.get());
  check_launch("images");
  part.index.keys = session.make<char>(n * sizeof(K), "images");
  part.list = session.make<image>(n, "images");
  sort_pairs(session, (int)grid.key_bits, n, keys.get(), (K *)part.index.keys.get(), list.get(),
             part.list.get());
  part.index.find.keys = key_list{part.index.keys.get(), sizeof(K) == 8};
  part.index.ids = session.make<uint32_t>(n, "images");
  part.coords = session.make<double>(points.dim <= MOST_STAGED ? n * points.dim : 0, "images");
  place_images<<<blocks_for(n, THREADS), THREADS, 0, session.stream>>>(question, candidates.ids.get(),
                                                                       part.list.get(), shifts.get(), n,
                                                                       part.index.ids.get(), part.coords.get());
  check_launch("images");
  make_table(session, grid, part.index, nullptr);
}

/* The number of images; begins will have where those of each source begin. */
uint64_t box_images::count(const image_question &question, buffer<uint64_t> &begins) {
  begins = session.make<uint64_t>(question.n + UINT64_C(1), "images");
  check(cudaMemsetAsync(begins.get(), 0, sizeof(uint64_t), session.stream), "images");
  count_images<<<blocks_for(question.n, THREADS), THREADS, 0, session.stream>>>(question, begins.get() + 1);
  check_launch("images");
  with_room(session, "images", [&](void *room, size_t &bytes) {
    return cub::DeviceScan::InclusiveSum(room, bytes, begins.get() + 1, begins.get() + 1, (int64_t)question.n,
                                         session.stream);
  });
  return read_value(session, begins.get() + question.n, "images");
}

/* What there is room for; as much again is left for what comes. Positions are numbers of 32 bits. */
uint64_t box_images::most_images() const {
  constexpr uint64_t MOST = 1 << 30;
  constexpr uint64_t SORTING_BYTES = 84;
  uint64_t bytes = SORTING_BYTES + (points.dim <= MOST_STAGED ? points.dim * sizeof(double) : 0);
  return std::min(MOST, (session.memory.limit - session.memory.used) / (2 * bytes));
}

/* Makes the images of a part; false if a smaller one is to be tried. */
bool box_images::try_part(image_place first, image_place end, bool positive) {
  bool all = !(image_place{} < first) && !(end < this->end());
  bool divides = first < halve(first, end);
  image_question question{points,
                          spec.lattice,
                          spec.predicate.reach,
                          positive,
                          sources.positions.get(),
                          sources.n,
                          first,
                          end,
                          all,
                          numbers,
                          grid};
  part = image_part{};
  this->positive = positive;
  try {
    buffer<uint64_t> begins;
    uint64_t n = question.n ? count(question, begins) : 0;
    if (n > most_images() && divides)
      return false;
    part.index.n = (uint32_t)n;
    if (n > 0 && grid.key_bits > 32)
      fill_part<uint64_t>(question, begins.get());
    else if (n > 0)
      fill_part<uint32_t>(question, begins.get());
  } catch (const failure &f) {
    if (!divides || (f.status != KITH_ERR_BUDGET && f.status != KITH_ERR_MEMORY))
      throw;
    return false;
  }
  part.first = first;
  part.end = end;
  return true;
}

/* Half way between two places; the first itself if there is nothing between them. */
image_place box_images::halve(image_place first, image_place end) const {
  if (end.key - first.key > 1)
    return {first.key + (end.key - first.key) / 2, 0};
  uint32_t last = end.key > first.key ? sources.n : end.source;
  return {first.key, first.source + (last - first.source) / 2};
}

const image_part &box_images::get(image_place first, bool positive) {
  bool same = !(part.first < first) && !(first < part.first) && this->positive == positive;
  bool is_there = first < part.end && same;
  for (image_place end = this->end(); !is_there; end = halve(first, end))
    is_there = try_part(first, end, positive);
  return part;
}

void box_images::set_arguments(const image_part &part, join_args &args) const {
  args.find = part.index.find;
  args.c_ids = part.index.ids.get();
  args.space.images.list = part.list.get();
  args.space.images.coords = part.coords.get();
  args.space.images.shifts = shifts.get();
  args.space.images.rounding = rounding;
}

} // namespace kith_cuda
