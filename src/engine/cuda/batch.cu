/* A join that is shared with other engines: its queries in blocks, a batch of blocks at a time.
 *
 * A block is a number of tiles, one after the other. A batch names its blocks in any order; its rows are made
 * in that order, one behind the other. They go to the host as they are, to be collected, or row by row, each to
 * its own place. Two batches may be under way: while the rows of one are moved, the other computes. */
#include "engine/cuda/algorithms.cuh"
#include "engine/cuda/join.cuh"
#include "engine/cuda/records.cuh"
#include "engine/cuda/transfer.cuh"

#include "base/bypass.h"

#include <algorithm>
#include <cstring>
#include <optional>

using namespace kith_cuda;

namespace {

/* The candidates of the queries of a tile in the steps from the first one on, added to those of its block: so
 * many lanes a tile, a power of two. In a periodic box, without those beyond its faces. */
__global__ void weigh_tiles(const __grid_constant__ join_args args, uint32_t first_step, uint32_t lanes,
                            uint32_t tiles_per_block, unsigned long long *candidates) {
  uint64_t tile = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / lanes;
  if (tile >= args.n_tiles)
    return;
  uint32_t begin = args.tile_begin[tile];
  uint32_t end = args.tile_begin[tile + 1];
  uint64_t x_mask = (UINT64_C(1) << args.grid.x_bits) - 1;
  uint64_t first = args.q_keys[begin];
  uint32_t x_first = (uint32_t)(first & x_mask);
  uint32_t x_last = (uint32_t)(args.q_keys[end - 1] & x_mask);
  uint64_t sum = 0;
  for (uint32_t s = first_step + threadIdx.x % lanes; s < args.n_steps; s += lanes) {
    int64_t row = (int64_t)(first >> args.grid.x_bits) + args.steps[s].row;
    if (row < 0)
      continue;
    cell_span span = cells_within_reach(args.grid, args.steps[s], x_first, x_last);
    uint64_t base = (uint64_t)row << args.grid.x_bits;
    position_range run = args.find.find_range(base + span.low, base + span.high + 1);
    sum += run.end - run.begin;
  }
  uint32_t group = (UINT32_MAX >> (32 - lanes)) << (threadIdx.x % 32 / lanes * lanes);
  for (uint32_t step = lanes / 2; step > 0; step /= 2)
    sum += __shfl_down_sync(group, sum, step, lanes);
  if (threadIdx.x % lanes == 0)
    atomicAdd(candidates + tile / tiles_per_block, (unsigned long long)(sum * (end - begin)));
}

__global__ void begin_blocks(const uint32_t *tile_begin, uint32_t n_tiles, uint32_t tiles_per_block, uint32_t n,
                             uint32_t *begin) {
  uint32_t b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b <= n)
    begin[b] = tile_begin[min(b * tiles_per_block, n_tiles)];
}

/* The ids and the tiles of a batch's queries, a block of threads a block of queries. */
__global__ void list_queries(const kith_cuda_block *blocks, const uint32_t *q_ids, uint32_t *ids,
                             uint32_t *tiles) {
  kith_cuda_block block = blocks[blockIdx.x];
  for (uint32_t p = block.begin + threadIdx.x; p < block.end; p += blockDim.x)
    ids[block.first + (p - block.begin)] = q_ids[p];
  for (uint32_t t = block.tile + threadIdx.x; t < block.tile_end; t += blockDim.x)
    tiles[block.first_tile + (t - block.tile)] = t;
}

__global__ void gather_degrees(const uint32_t *ids, uint64_t n, const uint32_t *degrees, uint64_t *out) {
  uint64_t q = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (q < n)
    out[q] = degrees[ids[q]];
}

/* How long the rows of a batch are in the window of a table, and where they belong in it. */
__global__ void find_rows(const uint32_t *ids, uint64_t n, uint64_t first_row, uint64_t end_row,
                          const uint64_t *table, uint64_t *lengths, uint64_t *to) {
  uint64_t q = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (q >= n)
    return;
  bool wanted = ids[q] >= first_row && ids[q] < end_row;
  const uint64_t *offset = table + (wanted ? ids[q] - first_row : 0);
  lengths[q] = wanted ? offset[1] - offset[0] : 0;
  to[q] = offset[0] - table[0];
}

__global__ void scatter_places(const uint32_t *ids, uint64_t n, const uint64_t *begins, uint64_t *places) {
  uint64_t q = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (q < n)
    places[ids[q]] = begins[q];
}

/* Where a row begins in the batch << 32 | its length. */
__global__ void pack_rows(const uint64_t *begins, uint64_t n, uint64_t *out) {
  uint64_t q = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (q < n)
    out[q] = begins[q] << 32 | (begins[q + 1] - begins[q]);
}

/* Rows that lie one behind the other in a batch, on their way to their own places. */
template <typename T> struct row_scatter {
  const uint64_t *begins; /* of the batch's rows in it, n + 1 */
  const uint64_t *to;     /* where each goes */
  uint64_t n;
  T *out;

  void operator()(uint64_t at, const char *piece, uint64_t bytes) const {
    uint64_t first = at / sizeof(T);
    uint64_t end = first + bytes / sizeof(T);
    const T *values = (const T *)piece;
    uint64_t row = (uint64_t)(std::upper_bound(begins, begins + n, first) - begins) - 1;
    while (first < end) {
      uint64_t stop = std::min(end, begins[row + 1]);
      char *place = (char *)(out + to[row] + (first - begins[row]));
      uint64_t row_bytes = (stop - first) * sizeof(T);
      kith_bypass_copy(place, values, row_bytes);
      values += stop - first;
      first = stop;
      row++;
    }
  }
};

} // namespace

kith_cuda_batch_lane::~kith_cuda_batch_lane() {
  if (done)
    cudaEventDestroy(done);
}

uint32_t kith_cuda_join::cut_blocks() {
  constexpr uint32_t BLOCKS = 16384, MOST_TILES = 64;
  if (dense || by_point())
    fail(KITH_ERR_UNSUPPORTED, "this kernel cannot share a join with other engines");
  blocks.tiles = std::clamp<uint32_t>(tiles.n / BLOCKS, 1, MOST_TILES);
  blocks.n = (tiles.n + blocks.tiles - 1) / blocks.tiles;
  uint64_t lane_bytes = blocks.n * sizeof(kith_cuda_block) + sizeof(kith_cuda_batch_numbers);
  char *room = (char *)pinned_room(session, KITH_CUDA_LANES * lane_bytes);
  for (kith_cuda_batch_lane &lane : blocks.lanes) {
    lane.numbers = (kith_cuda_batch_numbers *)room;
    lane.blocks = (kith_cuda_block *)(lane.numbers + 1);
    room += lane_bytes;
    check(cudaEventCreateWithFlags(&lane.done, cudaEventDisableTiming), "event");
    lane.total = session.make<totals>(1, "totals");
  }
  session.patient = true;
  for (cudaEvent_t *event : {&blocks.listed, &blocks.indexed})
    check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "event");
  return blocks.n;
}

kith_cuda_blocks::~kith_cuda_blocks() {
  for (cudaEvent_t event : {listed, indexed})
    if (event)
      cudaEventDestroy(event);
}

static bool has_tails(const kith_grid &grid) {
  return std::any_of(grid.tails, grid.tails + grid.k, [](bool tails) { return tails; });
}

/* The CPU builds its own if the device has no room for them, and in a box where cells follow from a logarithm:
 * there it finds the cells of images itself, and its logarithm may round otherwise. */
void kith_cuda_join::make_host_indexes() {
  uint64_t bytes = ((uint64_t)index_a.n + index_b.n) * (a.dim * (is_f64 ? sizeof(double) : sizeof(float)) + 20);
  bool fits = bytes < (session.memory.limit - session.memory.used) / 4; /* batches need some, too */
  if (!spec.gives_index || !fits || (spec.lattice.n > 0 && has_tails(plan.grid)))
    return;
  try {
    uint32_t *rows = session.numbers().rows;
    blocks.for_host[1].emplace(session, index_b, plan.grid, a.dim, is_f64, cells[1], &rows[1]);
    if (!spec.one_set)
      blocks.for_host[0].emplace(session, index_a, plan.grid, a.dim, is_f64, cells[0], &rows[0]);
    check(cudaEventRecord(blocks.indexed, session.stream), "event");
  } catch (const failure &f) {
    blocks.for_host[0].reset();
    blocks.for_host[1].reset();
    if (f.status != KITH_ERR_BUDGET && f.status != KITH_ERR_MEMORY)
      throw;
  }
}

const host_index &kith_cuda_join::index_for_host(bool candidates) const {
  const std::optional<host_index> &index = blocks.for_host[candidates || spec.one_set];
  if (!index)
    fail(KITH_ERR_BUDGET, "the GPU has no index for the CPU");
  check(cudaEventSynchronize(blocks.indexed), "an index");
  return *index;
}

void kith_cuda_join::index_to_host(bool candidates, const kith_cuda_index &to) {
  std::lock_guard<std::mutex> hold(blocks.moving);
  index_for_host(candidates).copy(session, blocks.indexed, to);
  std::lock_guard<std::mutex> also(blocks.queueing);
  blocks.for_host[candidates || spec.one_set].reset();
}

/* The GPU then makes indexes for the CPU and weighs the blocks, and nobody waits for that yet: an index may
 * come while blocks are weighed. Tells how long that takes, about. */
double kith_cuda_join::blocks_to_host(uint32_t *begin, uint32_t *ids) {
  blocks.begin = begin;
  blocks.ids = ids;
  begin[0] = 0;
  if (blocks.n == 0) {
    make_host_indexes();
    return 0;
  }
  uint64_t n_begins = blocks.n + UINT64_C(1);
  auto begins = session.make<uint32_t>(n_begins, "the blocks");
  begin_blocks<<<blocks_for(n_begins, THREADS), THREADS, 0, session.stream>>>(
      tiles.begin.get(), tiles.n, blocks.tiles, blocks.n, begins.get());
  check_launch("blocks");
  check(cudaEventRecord(blocks.listed, session.stream), "event");
  make_host_indexes();
  double seconds = weigh_blocks();
  copy_to_host_after(session, blocks.listed,
                     {{begin, begins.get(), n_begins * sizeof(uint32_t)},
                      {ids, queries().ids.get(), queries().n * sizeof(uint32_t)}});
  return seconds;
}

double kith_cuda_join::weigh_blocks() {
  constexpr double SECONDS = 5.5e-8; /* for 32 steps, on one multiprocessor */
  blocks.weights = session.make<unsigned long long>(blocks.n, "the weights of blocks");
  check(cudaMemsetAsync(blocks.weights.get(), 0, blocks.n * sizeof(unsigned long long), session.stream),
        "blocks");
  join_args args = arguments(DEGREES);
  uint32_t first_step = meets_once(spec) && spec.lattice.n == 0 ? args.own_step : 0;
  uint32_t steps = args.n_steps - first_step;
  uint32_t lanes = std::min(UINT32_C(1) << ceil_log2(steps), UINT32_C(32));
  uint64_t threads = (uint64_t)args.n_tiles * lanes;
  if (threads > 0)
    weigh_tiles<<<blocks_for(threads, THREADS), THREADS, 0, session.stream>>>(
        args, first_step, lanes, blocks.tiles, blocks.weights.get());
  check_launch("blocks");
  return SECONDS / 32 * (double)threads * ((steps + lanes - 1) / lanes) / session.multiprocessors;
}

void kith_cuda_join::weights_to_host(uint64_t *candidates) {
  if (blocks.n > 0)
    copy_to_host(session, candidates, blocks.weights.get(), blocks.n * sizeof(uint64_t));
}

/* ---- a batch -------------------------------------------------------------------------------------------- */

/* A batch on its way: what it has on the device, until its rows are with the host. */
class running_batch {
public:
  running_batch(kith_cuda_join &join, const kith_cuda_batch &batch)
      : j(join), session(join.session), batch(batch), lane(join.blocks.lanes[batch.lane]) {}
  /* Memory is released in the order of the stream, as it was allocated. */
  ~running_batch() {
    std::lock_guard<std::mutex> hold(j.blocks.queueing);
    device.reset();
  }

  void compute();
  void deliver();
  const kith_cuda::tally &found() const { return lane.numbers->total.found; }
  uint64_t pairs() const { return n_pairs; }

private:
  struct device_memory {
    buffer<uint32_t> tiles, ids;          /* of the queries, in the order of the batch */
    buffer<uint64_t> lengths, begins, to; /* of its rows */
    kith_cuda_window rows;
  };

  bool wants_rows() const { return batch.task == KITH_CUDA_COLLECT || batch.task == KITH_CUDA_FILL; }
  template <typename F> void queue(F work);
  void find();
  void make_state();
  void list();
  join_args arguments(operation op) const;
  void count();
  void make_records();
  void find_degrees(operation op, bool all_pairs);
  void find_lengths();
  void find_table_rows();
  void find_begins();
  bool has_all_records() const;
  void make_rows();
  void upload_table();
  void deliver_lengths(const buffer<uint64_t> &values, uint64_t add);
  void collect_rows();
  void fill_rows();
  void fetch(std::vector<uint64_t> &to, const buffer<uint64_t> &from);

  kith_cuda_join &j;
  kith_cuda_session &session;
  const kith_cuda_batch &batch;
  kith_cuda_batch_lane &lane;
  std::optional<device_memory> device{std::in_place};
  uint64_t n_queries = 0, n_tiles = 0, n_pairs = 0;
};

/* The queries and tiles of the blocks. */
void running_batch::list() {
  const kith_cuda_blocks &blocks = j.blocks;
  for (uint32_t i = 0; i < batch.n_blocks; i++) {
    uint32_t b = batch.blocks[i];
    kith_cuda_block block{blocks.begin[b],  blocks.begin[b + 1],
                          b * blocks.tiles, std::min((b + 1) * blocks.tiles, j.tiles.n),
                          n_queries,        n_tiles};
    n_queries += block.end - block.begin;
    n_tiles += block.tile_end - block.tile;
    lane.blocks[i] = block;
  }
  auto places = session.make<kith_cuda_block>(batch.n_blocks, "the blocks of a batch");
  device->tiles = session.make<uint32_t>(n_tiles, "the tiles of a batch");
  device->ids = session.make<uint32_t>(n_queries, "the queries of a batch");
  check(cudaMemcpyAsync(places.get(), lane.blocks, batch.n_blocks * sizeof *lane.blocks, cudaMemcpyHostToDevice,
                        session.stream),
        "the blocks of a batch");
  if (batch.n_blocks > 0)
    list_queries<<<batch.n_blocks, THREADS, 0, session.stream>>>(places.get(), j.queries().ids.get(),
                                                                 device->ids.get(), device->tiles.get());
  check_launch("the queries of a batch");
  check(cudaMemsetAsync(lane.total.get(), 0, sizeof(totals), session.stream), "totals");
}

/* What batches share that find degrees: all tiles are in doubt until they have been counted here. */
void running_batch::make_state() {
  bool counts_only = batch.task == KITH_CUDA_COUNT && !batch.one_sided;
  if (j.degrees.get() || j.a.n == 0 || counts_only)
    return;
  auto doubtful = session.make<uint8_t>(j.tiles.n, "tiles");
  auto places = session.make<uint64_t>(j.a.n, "the places of rows");
  auto degrees = session.make<uint32_t>(j.a.n, "one count per point");
  check(cudaMemsetAsync(doubtful.get(), 1, j.tiles.n, session.stream), "tiles");
  check(cudaMemsetAsync(degrees.get(), 0, j.a.n * sizeof(uint32_t), session.stream), "degrees");
  j.doubtful = std::move(doubtful);
  j.blocks.places = std::move(places);
  j.degrees = std::move(degrees);
}

join_args running_batch::arguments(operation op) const {
  join_args args = j.arguments(op);
  args.tile_list = device->tiles.get();
  args.n_tiles = j.index_b.n ? (uint32_t)n_tiles : 0;
  args.total = &lane.total.get()->found;
  args.degrees = j.degrees.get();
  args.doubtful = j.doubtful.get();
  return args;
}

/* Each unordered pair of one set once: where all engines have the queries in the same order. */
void running_batch::count() { j.launch_passes(arguments(COUNT), COUNT); }

/* Where there is no room for them, rows are filled after they are counted. */
void running_batch::make_records() {
  try {
    lane.records = session.make<record>(j.pool_capacity(), "pairs");
  } catch (const failure &f) {
    if (f.status != KITH_ERR_BUDGET && f.status != KITH_ERR_MEMORY)
      throw;
  }
}

/* The degrees, left on the device; with COLLECT also the pairs, as far as the records reach. */
void running_batch::find_degrees(operation op, bool all_pairs) {
  join_args args = arguments(DEGREES);
  args.half = args.half && !all_pairs;
  args.drop_self = args.drop_self && !all_pairs;
  if (op == COLLECT && !lane.records.get())
    make_records();
  args.pool = pool{lane.records.get(), lane.records.size(), &lane.total.get()->records};
  j.launch_passes(args, lane.records.size() > 0 && op == COLLECT ? COLLECT : DEGREES);
}

/* Of all rows of the batch. */
void running_batch::find_lengths() {
  device->lengths = session.make<uint64_t>(n_queries, "the rows of a batch");
  if (n_queries > 0)
    gather_degrees<<<blocks_for(n_queries, THREADS), THREADS, 0, session.stream>>>(
        device->ids.get(), n_queries, j.degrees.get(), device->lengths.get());
  check_launch("the rows of a batch");
}

/* Of those rows that are in the window of the table. */
void running_batch::find_table_rows() {
  device->lengths = session.make<uint64_t>(n_queries, "the rows of a batch");
  device->to = session.make<uint64_t>(n_queries, "the rows of a batch");
  if (n_queries > 0)
    find_rows<<<blocks_for(n_queries, THREADS), THREADS, 0, session.stream>>>(
        device->ids.get(), n_queries, batch.first_row, batch.end_row, j.blocks.table.get(),
        device->lengths.get(), device->to.get());
  check_launch("the rows of a batch");
}

/* Where rows begin, one behind the other; the last number is for the host. Lengths are then packed with them.
 */
void running_batch::find_begins() {
  device->begins = session.make<uint64_t>(n_queries + 1, "the rows of a batch");
  check(cudaMemsetAsync(device->begins.get(), 0, sizeof(uint64_t), session.stream), "rows");
  if (n_queries > 0) {
    with_room(session, "the rows of a batch", [&](void *room, size_t &bytes) {
      return cub::DeviceScan::InclusiveSum(room, bytes, device->lengths.get(), device->begins.get() + 1,
                                           (int64_t)n_queries, session.stream);
    });
    scatter_places<<<blocks_for(n_queries, THREADS), THREADS, 0, session.stream>>>(
        device->ids.get(), n_queries, device->begins.get(), j.blocks.places.get());
    pack_rows<<<blocks_for(n_queries, THREADS), THREADS, 0, session.stream>>>(device->begins.get(), n_queries,
                                                                              device->lengths.get());
    check_launch("the rows of a batch");
  }
  check(cudaMemcpyAsync(&lane.numbers->pairs, device->begins.get() + n_queries, sizeof(uint64_t),
                        cudaMemcpyDeviceToHost, session.stream),
        "rows");
}

bool running_batch::has_all_records() const {
  return batch.task == KITH_CUDA_COLLECT && lane.records.size() > 0 &&
         lane.numbers->total.records <= lane.records.size();
}

void running_batch::make_rows() {
  kith_cuda_window &rows = device->rows;
  rows.neighbors = session.make<uint32_t>(n_pairs, "the rows of a batch");
  if (batch.distances)
    rows.distances = session.make<double>(n_pairs, "the distances of a batch");
  join_args args = arguments(FILL);
  args.offsets = j.blocks.places.get();
  args.neighbors = rows.neighbors.get();
  if (batch.task == KITH_CUDA_FILL) {
    args.first_row = batch.first_row;
    args.end_row = batch.end_row;
  }
  if (has_all_records())
    place_records(session, lane.records, lane.numbers->total.records, batch_rows{args.offsets}, args.neighbors);
  else
    j.launch_passes(args, FILL);
  if (j.spec.sorted)
    j.sort_rows(rows.neighbors, device->begins.get(), 0, n_queries, n_pairs);
  if (batch.distances)
    j.launch_distances({device->begins.get(), 0, device->ids.get(), 0, n_queries}, rows.neighbors.get(),
                       rows.distances.get());
}

/* The offsets of the table, once for all batches that fill it. */
void running_batch::upload_table() {
  std::scoped_lock hold(j.blocks.moving, j.blocks.queueing);
  if (j.blocks.run == batch.run)
    return;
  uint64_t rows = std::min(batch.end_row, j.a.n) - batch.first_row;
  j.blocks.table = session.make<uint64_t>(rows + 1, "the offsets of the rows");
  kith_points offsets{};
  offsets.data = batch.offsets;
  offsets.n = rows + 1;
  offsets.dim = 1;
  offsets.dtype = KITH_F64;
  offsets.row_stride = offsets.col_stride = sizeof(uint64_t);
  copy_rows_to_device(session, j.blocks.table.get(), offsets);
  j.blocks.run = batch.run;
}

/* Puts work on the stream, and waits for it and for what it counted. What was put there before a failure is
 * waited for, too: it reads memory of the lane, which its next batch writes. */
template <typename F> void running_batch::queue(F work) {
  {
    std::lock_guard<std::mutex> hold(j.blocks.queueing);
    try {
      work();
    } catch (const failure &) {
      cudaStreamSynchronize(session.stream);
      throw;
    }
    check(cudaMemcpyAsync(&lane.numbers->total, lane.total.get(), sizeof(totals), cudaMemcpyDeviceToHost,
                          session.stream),
          "a batch");
    check(cudaEventRecord(lane.done, session.stream), "a batch");
  }
  j.wait_for(lane.done, "a batch");
}

void running_batch::find() {
  make_state();
  list();
  switch (batch.task) {
  case KITH_CUDA_COUNT:
    if (batch.one_sided)
      find_degrees(DEGREES, true);
    else
      count();
    break;
  case KITH_CUDA_DEGREES:
    find_degrees(DEGREES, false);
    find_lengths();
    break;
  case KITH_CUDA_COLLECT:
    find_degrees(COLLECT, false);
    find_lengths();
    find_begins();
    break;
  case KITH_CUDA_FILL:
    if (j.has_images())
      find_degrees(DEGREES, false); /* how many pairs are no images */
    find_table_rows();
    find_begins();
    break;
  }
}

/* Where there are images, batches share more than others: what is found first must last until rows are made. */
void running_batch::compute() {
  std::unique_lock<std::mutex> alone(j.blocks.boxed, std::defer_lock);
  if (j.has_images())
    alone.lock();
  if (batch.task == KITH_CUDA_FILL)
    upload_table();
  queue([&] { find(); });
  n_pairs = wants_rows() ? lane.numbers->pairs : found().pairs;
  if (wants_rows() && n_pairs > 0)
    queue([&] { make_rows(); });
}

/* ---- to the host ---------------------------------------------------------------------------------------- */

/* A number for every query, to the place of its id in the batch's degrees. */
void running_batch::deliver_lengths(const buffer<uint64_t> &values, uint64_t add) {
  constexpr uint64_t PIECE = 1 << 18; /* bytes: enough pieces for all threads */
  const kith_cuda_block *first = lane.blocks;
  auto put = [&](uint64_t at, const char *piece, uint64_t bytes) {
    const uint64_t *value = (const uint64_t *)piece;
    uint64_t q = at / sizeof *value;
    uint64_t last = q + bytes / sizeof *value;
    auto behind = [](uint64_t place, const kith_cuda_block &block) { return place < block.first; };
    for (const kith_cuda_block *block = std::upper_bound(first, first + batch.n_blocks, q, behind) - 1;
         q < last; block++) {
      const uint32_t *ids = j.blocks.ids + block->begin - block->first;
      for (uint64_t stop = std::min(last, block->first + (block->end - block->begin)); q < stop; q++)
        batch.degrees[ids[q]] = *value++ + add;
    }
  };
  copy_pieces_to_host(session, values.get(), n_queries * sizeof(uint64_t), PIECE, put);
}

/* One behind the other, as they are. */
void running_batch::collect_rows() {
  uint64_t place = batch.pool.take(batch.pool.user, n_pairs);
  if (place == UINT64_MAX)
    return; /* the caller sees that the pool was too small */
  deliver_lengths(device->lengths, place << 32);
  char *to = (char *)(batch.pool.ids + place);
  copy_pieces_to_host(
      session, device->rows.neighbors.get(), n_pairs * sizeof(uint32_t), KITH_CUDA_PIECE_BYTES,
      [to](uint64_t at, const char *piece, uint64_t n) { kith_bypass_copy(to + at, piece, n); });
}

void running_batch::fetch(std::vector<uint64_t> &to, const buffer<uint64_t> &from) {
  to.resize(std::max<size_t>(to.size(), from.size()));
  char *begin = (char *)to.data();
  copy_pieces_to_host(session, from.get(), from.size() * sizeof(uint64_t), KITH_CUDA_PIECE_BYTES,
                      [begin](uint64_t at, const char *piece, uint64_t n) { memcpy(begin + at, piece, n); });
}

/* Each to its place. */
void running_batch::fill_rows() {
  if (n_pairs == 0)
    return;
  fetch(lane.begins, device->begins);
  fetch(lane.to, device->to);
  copy_pieces_to_host(session, device->rows.neighbors.get(), n_pairs * sizeof(uint32_t), KITH_CUDA_PIECE_BYTES,
                      row_scatter<uint32_t>{lane.begins.data(), lane.to.data(), n_queries, batch.neighbors});
  if (batch.distances)
    copy_pieces_to_host(session, device->rows.distances.get(), n_pairs * sizeof(double), KITH_CUDA_PIECE_BYTES,
                        row_scatter<double>{lane.begins.data(), lane.to.data(), n_queries, batch.distances});
}

void running_batch::deliver() {
  if (batch.task == KITH_CUDA_DEGREES)
    deliver_lengths(device->lengths, 0);
  else if (batch.task == KITH_CUDA_COLLECT)
    collect_rows();
  else if (batch.task == KITH_CUDA_FILL)
    fill_rows();
}

void kith_cuda_join::run_batch(const kith_cuda_batch &batch, kith_cuda_tally *tally, kith_cuda_times *times) {
  double began = seconds();
  ask_for_short_turns();
  running_batch run(*this, batch);
  run.compute();
  {
    std::unique_lock<std::mutex> hold(blocks.moving, std::defer_lock);
    if (batch.task != KITH_CUDA_COUNT) /* else there is nothing to move */
      hold.lock();
    times->computed = seconds() - began;
    run.deliver();
    times->transferred = seconds() - began;
  }
  *tally = kith_cuda_tally{run.pairs(), run.found().tested, run.found().inside};
}
