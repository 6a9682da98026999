/* One join on a GPU: points -> plan -> index -> count, degrees, rows. See api.h for the calls.
 *
 * The neighbour table is made on the device, whole if it fits, else in windows of rows; a window is kept until
 * rows outside it are asked for. */
#include "engine/cuda/algorithms.cuh"
#include "engine/cuda/join.cuh"
#include "engine/cuda/places.cuh"
#include "engine/cuda/records.cuh"
#include "engine/cuda/transfer.cuh"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>

using namespace kith_cuda;

namespace {

/* ---- the points ----------------------------------------------------------------------------------------- */

/* Moves host points to the device, in C order; points that are there already are used where they are. */
view place_points(kith_cuda_session &session, const kith_points &points, buffer<char> &room) {
  bool is_f64 = points.dtype == KITH_F64;
  view placed{(const char *)points.data, points.n, points.dim, is_f64, points.row_stride, points.col_stride};
  if (points.device) {
    if ((int)points.device - 1 != session.device)
      fail(KITH_ERR_ARGUMENT, "the points are in the memory of another GPU than the one in use");
    return placed;
  }
  int64_t width = is_f64 ? sizeof(double) : sizeof(float);
  room = session.make<char>(points.n * points.dim * (uint64_t)width, "the points");
  copy_rows_to_device(session, room.get(), points);
  placed.data = room.get();
  placed.row_stride = points.dim * width;
  placed.col_stride = width;
  return placed;
}

/* ---- kernels beside the join ---------------------------------------------------------------------------- */

__global__ void widen(const uint32_t *degrees, uint64_t n, uint64_t *out) {
  uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = degrees[i];
}

/* A point of a view, as size_of sees it. */
struct row_of {
  const view &points;
  uint64_t i;
  __device__ double operator[](uint32_t c) const { return points.get(i, c); }
};

/* How sizes are found, and what becomes of them. */
struct distance_question {
  kith_norm norm;
  bool roots;
  double reach;         /* of images */
  kith_lattice lattice; /* n is 0: there are none */
};

/* The size of a pair that belongs: in a box, that of its nearest image. */
template <bool BOX>
__device__ double size_of_pair(const row_of &a, const row_of &b, uint32_t dim,
                               const distance_question &question) {
  const kith_lattice &lattice = question.lattice;
  if constexpr (!BOX) {
    double size = 0;
    for (uint32_t c = 0; c < dim; c++)
      size = kith_norm_add(question.norm, size, __dsub_rn(a[c], b[c]));
    return size;
  } else {
    double least = INFINITY;
    each_image(a, b, lattice, question.reach, [&](const kith_shift &shift) {
      least = fmin(least, size_of(a, b, dim, question.norm, lattice, shift));
      return true;
    });
    return least;
  }
}

/* Distances of the pairs of a window, a warp a row. */
template <bool BOX>
__global__ void find_distances(const __grid_constant__ view a, const __grid_constant__ view b,
                               const __grid_constant__ distance_question question,
                               const __grid_constant__ table_rows rows, const uint32_t *neighbors,
                               double *distances) {
  uint64_t i = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (i >= rows.n)
    return;
  uint64_t end = rows.offsets[i + 1] - rows.base;
  for (uint64_t at = rows.offsets[i] - rows.base + threadIdx.x % 32; at < end; at += 32) {
    double size = size_of_pair<BOX>(row_of{a, rows.id(i)}, row_of{b, neighbors[at]}, a.dim, question);
    distances[at] = question.roots ? __dsqrt_rn(size) : size;
  }
}

struct less_base {
  const uint64_t *offsets;
  uint64_t base;
  __device__ uint64_t operator()(uint64_t i) const { return offsets[i] - base; }
};

} // namespace

kith_cuda_join::kith_cuda_join(kith_cuda_session &session, const kith_cuda_spec &spec)
    : session(session), spec(spec) {}

void kith_cuda_join::prepare(kith_cuda_info &info) {
  double began = seconds();
  a = place_points(session, spec.a, room_a);
  a = find_places(session, spec, a, room_a);
  a = wrap_points(session, spec, a, "a", room_a);
  b = a;
  if (!spec.one_set) {
    b = place_points(session, spec.b, room_b);
    b = find_places(session, spec, b, room_b);
    b = wrap_points(session, spec, b, "b", room_b);
  }
  uint64_t invalid[2];
  plan = plan_join(session, spec, a, b, invalid);
  double planned = seconds();
  is_f64 = a.is_f64 || b.is_f64;
  uint32_t *counted = session.numbers().cells;
  counted[0] = counted[1] = 0;
  if (plan.dense.wanted)
    make_dense(invalid);
  if (!dense) {
    index_b = build_index(session, b, spec.one_set ? invalid[0] : invalid[1], plan.grid, is_f64, &counted[1]);
    if (!spec.one_set)
      index_a = build_index(session, a, invalid[0], plan.grid, is_f64, &counted[0]);
  }
  if (by_point()) {
    order_queries();
    session.wait("the order of the queries");
  } else if (!dense) {
    tiles = cut_tiles(session, queries(), plan.grid, plan.tile_queries);
  }
  if (plan.wraps)
    prepare_wrapping();
  if (has_images()) {
    border = find_border_tiles(session, tiles, queries(), is_f64, spec);
    images = std::make_unique<box_images>(session, spec, plan.grid, index_b, is_f64);
  }
  if (spec.limits)
    limits = upload(session, spec.limits, a.n, "the limits of the points");
  steps = upload(session, plan.stencil.steps, plan.stencil.n_steps, "the stencil");
  stop = session.make<int>(1, "a flag");
  total = session.make<totals>(1, "totals");
  check(cudaMemsetAsync(stop.get(), 0, sizeof(int), session.stream), "clear");
  if (!spec.distances) {
    room_a.reset();
    room_b.reset();
  }
  if (queries().n == 0)
    session.wait("the index"); /* as cut_tiles has otherwise */
  describe(info, invalid);
  std::copy_n(counted, 2, cells);
  info.cells = cells[1];
  info.seconds_plan = planned - began;
  info.seconds_index = seconds() - planned;
}

void kith_cuda_join::prepare_wrapping() {
  grid = upload(session, &plan.grid, 1, "the grid");
  if (!plan.folded)
    border = find_wrapping_tiles(session, tiles, queries(), plan.grid);
}

/* If the device has no room for narrow copies of the points, the grid does without them. */
void kith_cuda_join::make_dense(const uint64_t invalid[2]) {
  try {
    dense = std::make_unique<kith_cuda_dense>(*this, invalid);
    session.wait("narrowing the points");
  } catch (const failure &f) {
    dense.reset();
    index_a = cell_index();
    index_b = cell_index();
    if (f.status != KITH_ERR_BUDGET && f.status != KITH_ERR_MEMORY)
      throw;
  }
}

void kith_cuda_join::describe(kith_cuda_info &info, const uint64_t invalid[2]) const {
  info = kith_cuda_info{};
  info.n_valid = queries().n;
  info.invalid_rows = invalid[0] + invalid[1];
  info.index_bytes = session.memory.used;
  info.grid = plan.grid;
  info.stencil = &plan.stencil;
  info.runs = plan.stencil.n_steps;
  info.tile_queries = plan.tile_queries;
  info.dense = dense != nullptr;
  const dense_order &order = plan.dense.order;
  info.tiles = {order.split, order.groups, {}, order.share, plan.dense.coded};
  std::copy_n(order.columns.begin(), std::min<size_t>(order.columns.size(), KITH_GRID_DIMS),
              info.tiles.columns);
  info.candidates = plan.candidates;
  info.neighbors = plan.neighbors;
}

/* ---- running -------------------------------------------------------------------------------------------- */

/* Waits for an event; passes a request to stop on to the kernels. */
void kith_cuda_join::wait_for(cudaEvent_t event, const char *what) {
  bool asked = false;
  session.await(event, what, [&] {
    if (asked || !spec.stop.asked || !spec.stop.asked(spec.stop.user))
      return;
    asked = true;
    check(cudaMemsetAsync(stop.get(), 0xFF, sizeof(int), session.side), what);
  });
  if (asked)
    fail(KITH_ERR_CANCELLED, "cancelled");
}

/* Waits for the stream. */
void kith_cuda_join::wait(const char *what) {
  check(cudaEventRecord(session.event, session.stream), what);
  wait_for(session.event, what);
}

join_args kith_cuda_join::arguments(operation op) const {
  join_args args{};
  const cell_index &q = queries();
  args.q_coords = q.coords.get();
  args.q_ids = q.ids.get();
  args.q_keys = q.find.keys;
  args.tile_begin = tiles.begin.get();
  args.n_tiles = index_b.n ? tiles.n : 0;
  args.c_coords = index_b.coords.get();
  args.c_ids = index_b.ids.get();
  args.find = index_b.find;
  args.grid = plan.grid;
  args.grid_in_memory = grid.get();
  args.steps = steps.get();
  args.n_steps = plan.stencil.n_steps;
  args.own_step = plan.stencil.own;
  args.predicate = spec.predicate;
  args.give_up = spec.no_shortc ? INFINITY : spec.predicate.limit;
  args.dim = a.dim;
  args.one_set = spec.one_set;
  args.half = op != COUNT && spec.half;
  args.drop_self = spec.drop_self;
  args.total = &total.get()->found;
  args.end_row = UINT64_MAX;
  args.stop = stop.get();
  args.space.limits = limits.get();
  args.space.symmetric = spec.one_set && !spec.limits;
  args.space.ties = has_ties(spec);
  args.space.doubt = spec.doubt;
  args.space.lattice = spec.lattice;
  for (uint32_t i = 0; plan.wraps && i < spec.lattice.n; i++) {
    uint32_t c = spec.lattice.axis[i];
    double side = args.space.period[c] = spec.lattice.vector[i][i];
    args.space.side[c] = {(float)side, (float)(side - (double)(float)side)};
    args.space.periods += side;
  }
  for (uint32_t f = 0; f < most_folds(a.dim); f++) {
    uint32_t c = a.dim - most_folds(a.dim) + f;
    bool folds = plan.folded >> c & 1;
    args.space.fold[f] = folds ? (float)args.space.period[c] : INFINITY;
    args.space.folded += folds ? args.space.period[c] : 0;
  }
  return args;
}

void kith_cuda_join::launch(const join_args &args, operation op) {
  if (by_point())
    launch_points(args, op);
  else if (plan.wraps)
    launch_wrapping(args, op);
  else
    launch_tiles(args, op, is_general() ? ANY_SPACE : OPEN_SPACE);
}

/* Space is open for tiles that are not at the border, unless axes are folded. In a list (of a join that is
 * shared) there may be both, and all are taken to be there: what is slower for some of them. */
void kith_cuda_join::launch_wrapping(const join_args &args, operation op) {
  if (args.tile_list || args.n_tiles == 0 || plan.folded)
    return launch_tiles(args, op, WRAPPED_SPACE);
  join_args part = args;
  part.tile_list = border.numbers.get();
  part.n_tiles = border.n;
  launch_tiles(part, op, WRAPPED_SPACE);
  part.tile_list += border.n;
  part.n_tiles = tiles.n - border.n;
  launch_tiles(part, op, OPEN_SPACE);
}

void kith_cuda_join::launch_tiles(const join_args &args, operation op, space_kind kind) {
  using launcher = void (*)(const join_args &, operation, bool, uint32_t, cudaStream_t);
  static const launcher launchers[][9] = {
      {launch_join<0, OPEN_SPACE>, launch_join<1, OPEN_SPACE>, launch_join<2, OPEN_SPACE>,
       launch_join<3, OPEN_SPACE>, launch_join<4, OPEN_SPACE>, launch_join<5, OPEN_SPACE>,
       launch_join<6, OPEN_SPACE>, launch_join<7, OPEN_SPACE>, launch_join<8, OPEN_SPACE>},
      {nullptr /* grids of more dimensions do not wrap around */, launch_join<1, WRAPPED_SPACE>,
       launch_join<2, WRAPPED_SPACE>, launch_join<3, WRAPPED_SPACE>, launch_join<4, WRAPPED_SPACE>,
       launch_join<5, WRAPPED_SPACE>, launch_join<6, WRAPPED_SPACE>, launch_join<7, WRAPPED_SPACE>,
       launch_join<8, WRAPPED_SPACE>},
      {launch_join<0, ANY_SPACE>, launch_join<1, ANY_SPACE>, launch_join<2, ANY_SPACE>,
       launch_join<3, ANY_SPACE>, launch_join<4, ANY_SPACE>, launch_join<5, ANY_SPACE>,
       launch_join<6, ANY_SPACE>, launch_join<7, ANY_SPACE>, launch_join<8, ANY_SPACE>}};
  launchers[kind][a.dim <= 8 ? a.dim : 0](args, op, is_f64, plan.tile_queries, session.stream);
}

/* The pass over the candidates as they are; where those have images, then the pass over their images, which
 * adds to what that found. */
void kith_cuda_join::launch_passes(const join_args &args, operation op) {
  if (has_images() && args.n_tiles > 0)
    images->get({}, op == COUNT && args.space.symmetric); /* before it would have to wait for the first pass */
  launch(args, op);
  if (has_images() && (op == DEGREES || op == COLLECT)) {
    if (!open_degrees.get())
      open_degrees = session.make<uint32_t>(a.n, "one count per point");
    copy_degrees(open_degrees, degrees);
  }
  if (has_images() && args.n_tiles > 0)
    launch_images(args, op);
}

/* FILL: behind the pairs of the first pass, which open_degrees has. */
void kith_cuda_join::launch_images(const join_args &open, operation op) {
  join_args args = open;
  if (!args.tile_list) {
    args.tile_list = border.numbers.get();
    args.n_tiles = border.n;
  }
  buffer<uint32_t> filled;
  if (op == FILL) {
    filled = session.make<uint32_t>(a.n, "one count per point");
    copy_degrees(filled, open_degrees);
    args.space.images.filled = filled.get();
  }
  for (image_place first; first < images->end() && args.n_tiles > 0;) {
    const image_part &part = images->get(first, op == COUNT && args.space.symmetric);
    images->set_arguments(part, args);
    if (part.index.n > 0)
      launch_tiles(args, op, ANY_SPACE);
    first = part.end;
  }
}

void kith_cuda_join::copy_degrees(const buffer<uint32_t> &to, const buffer<uint32_t> &from) {
  check(cudaMemcpyAsync(to.get(), from.get(), a.n * sizeof(uint32_t), cudaMemcpyDeviceToDevice, session.stream),
        "degrees");
}

void kith_cuda_join::read_tally(kith_cuda_tally *out, const char *what) {
  totals *host = (totals *)session.pinned;
  check(cudaMemcpyAsync(host, total.get(), sizeof *host, cudaMemcpyDeviceToHost, session.stream), what);
  wait(what);
  *out = kith_cuda_tally{host->found.pairs, host->found.tested, host->found.inside};
  n_records = host->records;
}

void kith_cuda_join::count(kith_cuda_tally *out) {
  check(cudaMemsetAsync(total.get(), 0, sizeof(totals), session.stream), "count");
  if (dense) {
    dense->count();
  } else {
    launch_passes(arguments(COUNT), COUNT);
  }
  read_tally(out, "count");
}

/* Tests a pair from which on collecting pays. */
constexpr double COLLECT_TESTS = 12;

/* Records for the pairs that are expected, and as many again; 0: collecting does not pay, or does not fit. */
uint64_t kith_cuda_join::pool_capacity() const {
  bool pays = plan.candidates >= COLLECT_TESTS * plan.neighbors && collects(a.dim);
  if (by_point() || !pays)
    return 0;
  double records = (2 * plan.neighbors / record::IDS + 1.5) * queries().n + 1024;
  double room = 0.4 * (double)(session.memory.limit - session.memory.used);
  return records * sizeof(record) < room ? (uint64_t)records : 0;
}

/* The degrees; if asked to, and if they are few, the pairs themselves as well. */
void kith_cuda_join::find_degrees(bool collect) {
  degrees = session.make<uint32_t>(a.n, "one count per point");
  check(cudaMemsetAsync(degrees.get(), 0, a.n * sizeof(uint32_t), session.stream), "degrees");
  check(cudaMemsetAsync(total.get(), 0, sizeof(totals), session.stream), "degrees");
  if (dense) {
    dense->find_degrees(degrees.get());
    return;
  }
  uint64_t capacity = collect ? pool_capacity() : 0;
  records = session.make<record>(capacity, "pairs");
  join_args args = arguments(DEGREES);
  args.degrees = degrees.get();
  doubtful = session.make<uint8_t>(tiles.n, "tiles");
  args.doubtful = doubtful.get();
  args.pool = pool{records.get(), capacity, &total.get()->records};
  launch_passes(args, capacity ? COLLECT : DEGREES);
}

void kith_cuda_join::degrees_to_host(uint64_t *out, kith_cuda_tally *tally) {
  find_degrees(false);
  auto wide = session.make<uint64_t>(a.n, "one count per point");
  if (a.n > 0)
    widen<<<blocks_for(a.n, THREADS), THREADS, 0, session.stream>>>(degrees.get(), a.n, wide.get());
  check_launch("degrees");
  read_tally(tally, "degrees");
  copy_to_host(session, out, wide.get(), a.n * sizeof(uint64_t));
}

/* Where the rows begin: a running sum of the degrees. */
void kith_cuda_join::find_offsets(kith_cuda_tally *tally) {
  find_degrees(true);
  offsets = session.make<uint64_t>(a.n + 1, "the offsets of the rows");
  check(cudaMemsetAsync(offsets.get(), 0, sizeof(uint64_t), session.stream), "offsets");
  if (a.n > 0) {
    with_room(session, "the offsets of the rows", [&](void *room, size_t &bytes) {
      return cub::DeviceScan::InclusiveScanInit(room, bytes, degrees.get(), offsets.get() + 1,
                                                ::cuda::std::plus<uint64_t>(), UINT64_C(0), (int64_t)a.n,
                                                session.stream);
    });
  }
  degrees.reset();
  read_tally(tally, "offsets");
  n_pairs = tally->pairs;
  if (n_records > records.size()) /* not all pairs are in the pool */
    records.reset();
}

void kith_cuda_join::offsets_to_host(uint64_t *out, kith_cuda_tally *tally) {
  find_offsets(tally);
  copy_to_host(session, out, offsets.get(), (a.n + 1) * sizeof(uint64_t));
  host_offsets = out;
}

/* ---- rows ----------------------------------------------------------------------------------------------- */

/* n rows, one behind the other. */
void kith_cuda_join::sort_rows(buffer<uint32_t> &neighbors, const uint64_t *offsets, uint64_t base, uint64_t n,
                               uint64_t pairs) {
  auto sorted = session.make<uint32_t>(pairs, "sorting the rows");
  thrust::counting_iterator<uint64_t> rows(0);
  less_base place{offsets, base};
  auto begins = thrust::make_transform_iterator(rows, place);
  with_room(session, "sorting the rows", [&](void *room, size_t &bytes) {
    return cub::DeviceSegmentedSort::SortKeys(room, bytes, neighbors.get(), sorted.get(), (int64_t)pairs,
                                              (int64_t)n, begins, begins + 1, session.stream);
  });
  neighbors = std::move(sorted);
}

uint64_t kith_cuda_join::offset_of(uint64_t row) {
  if (row == 0 || row == a.n)
    return row ? n_pairs : 0;
  if (host_offsets)
    return host_offsets[row];
  return read_value(session, offsets.get() + row, "offsets");
}

void kith_cuda_join::launch_distances(const table_rows &rows, const uint32_t *neighbors, double *distances) {
  distance_question question{spec.predicate.norm, spec.predicate.norm == KITH_NORM_2 && !spec.sizes,
                             spec.predicate.reach, spec.lattice};
  auto kernel = spec.lattice.n > 0 ? find_distances<true> : find_distances<false>;
  kernel<<<blocks_for(rows.n * 32, THREADS), THREADS, 0, session.stream>>>(a, b, question, rows, neighbors,
                                                                           distances);
  check_launch("distances");
}

/* Images are made again if there is no room beside them. */
void kith_cuda_join::make_window_memory(uint64_t pairs) {
  try {
    window.neighbors = session.make<uint32_t>(pairs, "the neighbour table");
    if (spec.distances)
      window.distances = session.make<double>(pairs, "the distances");
  } catch (const failure &f) {
    bool again = images && images->has_part() && (f.status == KITH_ERR_BUDGET || f.status == KITH_ERR_MEMORY);
    if (!again)
      throw;
    images->forget();
    make_window_memory(pairs);
  }
}

/* Makes rows [first, end) on the device. */
void kith_cuda_join::make_window(uint64_t first, uint64_t end) {
  uint64_t pairs = offset_of(end) - offset_of(first);
  window = kith_cuda_window{};
  make_window_memory(pairs);
  if (pairs > 0) {
    join_args args = arguments(FILL);
    args.offsets = offsets.get();
    args.base = offset_of(first);
    args.neighbors = window.neighbors.get();
    args.first_row = first;
    args.end_row = end;
    args.doubtful = doubtful.get();
    if (dense)
      dense->fill(first, end, args.neighbors);
    else if (by_point())
      fill_points(args, (double)pairs / (double)offset_of(a.n));
    else if (records.get() && n_records > 0)
      place_records(session, records, n_records, window_rows{offsets.get(), first, end}, args.neighbors);
    else
      launch_passes(args, FILL);
    if (spec.sorted || by_point() || dense) /* the latter two in no order of their own */
      sort_rows(window.neighbors, offsets.get() + first, args.base, end - first, pairs);
    if (spec.distances)
      launch_distances({offsets.get() + first, args.base, nullptr, first, end - first}, window.neighbors.get(),
                       window.distances.get());
  }
  wait("filling the table");
  window.first = first;
  window.end = end;
}

/* Makes a window that holds rows [first, end), and as many more as fit. Out of device memory, it is halved
 * until it holds no more than what was asked for. */
void kith_cuda_join::cover(uint64_t first, uint64_t end) {
  if (first >= window.first && end <= window.end)
    return;
  window = kith_cuda_window{};
  if (first > 0) { /* the table is made in windows: room is worth more than time */
    records.reset();
    if (dense)
      dense->forget_pairs();
  }
  uint64_t last = a.n;
  for (;;) {
    try {
      make_window(first, last);
      return;
    } catch (const failure &f) {
      bool smaller = last > end && (f.status == KITH_ERR_BUDGET || f.status == KITH_ERR_MEMORY);
      if (!smaller)
        throw;
      last = std::max(end, first + (last - first) / 2);
    }
  }
}

void kith_cuda_join::rows_to_host(const kith_cuda_rows &rows) {
  for (uint64_t first = rows.first_row; first < rows.end_row;) {
    uint64_t end = rows.end_row;
    for (;; end = first + (end - first) / 2) { /* what is asked for may exceed the device */
      try {
        cover(first, end);
        break;
      } catch (const failure &f) {
        if (end - first < 2 || (f.status != KITH_ERR_BUDGET && f.status != KITH_ERR_MEMORY))
          throw;
      }
    }
    uint64_t from = host_offsets[first] - host_offsets[window.first];
    uint64_t pairs = host_offsets[end] - host_offsets[first];
    uint64_t to = host_offsets[first] - host_offsets[rows.first_row];
    copy_to_host(session, rows.neighbors + to, window.neighbors.get() + from, pairs * sizeof(uint32_t));
    if (rows.distances)
      copy_to_host(session, rows.distances + to, window.distances.get() + from, pairs * sizeof(double));
    first = end;
  }
}

void kith_cuda_join::table_on_device(kith_table *table, kith_cuda_tally *tally) {
  find_offsets(tally);
  make_window(0, a.n);
  table->n_rows = a.n;
  table->n_pairs = window.neighbors.size();
  table->neighbors = window.neighbors.release();
  table->distances = window.distances.release();
  table->offsets = offsets.release();
  window = kith_cuda_window{};
}
