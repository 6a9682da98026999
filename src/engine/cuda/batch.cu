/* A join that is shared with other engines: its queries in blocks, a batch of blocks at a time.
 *
 * A block is a number of tiles, one after the other. A batch names its blocks in any order; its rows are made
 * in that order, one behind the other, and go to the host row by row, each to its own place. */
#include "engine/cuda/join.cuh"
#include "engine/cuda/transfer.cuh"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

using namespace kith_cuda;

namespace {

enum { THREADS = 256 };

double seconds() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

/* The candidates of the queries of a tile, added to those of its block: a warp a tile. */
__global__ void weigh_tiles(const __grid_constant__ join_args args, uint32_t tiles_per_block,
                            unsigned long long *candidates) {
  uint64_t tile = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (tile >= args.n_tiles)
    return;
  uint32_t begin = args.tile_begin[tile];
  uint32_t end = args.tile_begin[tile + 1];
  uint64_t x_mask = (UINT64_C(1) << args.grid.x_bits) - 1;
  uint64_t first = args.q_keys[begin];
  uint32_t x_first = (uint32_t)(first & x_mask);
  uint32_t x_last = (uint32_t)(args.q_keys[end - 1] & x_mask);
  uint64_t sum = 0;
  for (uint32_t s = threadIdx.x % 32; s < args.n_steps; s += 32) {
    int64_t row = (int64_t)(first >> args.grid.x_bits) + args.steps[s].row;
    if (row < 0)
      continue;
    cell_span span = cells_within_reach(args.grid, args.steps[s], x_first, x_last);
    uint64_t base = (uint64_t)row << args.grid.x_bits;
    sum += args.find.find(base + span.high + 1) - args.find.find(base + span.low);
  }
  sum = sum_over_warp(sum);
  if (threadIdx.x % 32 == 0)
    atomicAdd(candidates + tile / tiles_per_block, (unsigned long long)(sum * (end - begin)));
}

__global__ void find_begins(const uint32_t *tile_begin, uint32_t n_tiles, uint32_t tiles_per_block, uint32_t n,
                            uint32_t *begin) {
  uint32_t b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b <= n)
    begin[b] = tile_begin[min(b * tiles_per_block, n_tiles)];
}

/* One of the blocks of a batch: its queries are the batch's from `first` on. */
struct block_place {
  uint32_t begin, end;
  uint64_t first;
};

/* The ids of a batch's queries, a block of threads a block of queries. */
__global__ void list_ids(const block_place *places, const uint32_t *q_ids, uint32_t *ids) {
  block_place place = places[blockIdx.x];
  for (uint32_t p = place.begin + threadIdx.x; p < place.end; p += blockDim.x)
    ids[place.first + (p - place.begin)] = q_ids[p];
}

__global__ void gather_degrees(const uint32_t *ids, uint64_t n, const uint32_t *degrees, uint32_t *out) {
  uint64_t q = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (q < n)
    out[q] = degrees[ids[q]];
}

__global__ void scatter_places(const uint32_t *ids, uint64_t n, const uint64_t *offsets, uint64_t *places) {
  uint64_t q = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (q < n)
    places[ids[q]] = offsets[q];
}

template <typename T>
buffer<T> upload(kith_cuda_session &session, const std::vector<T> &values, const char *what) {
  auto room = session.make<T>(values.size(), what);
  check(cudaMemcpyAsync(room.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice,
                        session.stream),
        what);
  return room;
}

} // namespace

/* The blocks of a batch, here and on the device. */
struct block_list {
  std::vector<block_place> places;
  std::vector<uint32_t> tiles;
  uint64_t n_queries = 0;
  buffer<uint32_t> device_tiles, ids; /* the latter of the queries, in the order of the batch */

  block_list(kith_cuda_session &session, const kith_cuda_blocks &blocks, uint32_t n_tiles,
             const uint32_t *q_ids, const kith_cuda_batch &batch) {
    for (uint32_t i = 0; i < batch.n_blocks; i++) {
      uint32_t b = batch.blocks[i];
      places.push_back({blocks.begin[b], blocks.begin[b + 1], n_queries});
      n_queries += blocks.begin[b + 1] - blocks.begin[b];
      for (uint32_t t = b * blocks.tiles; t < std::min((b + 1) * blocks.tiles, n_tiles); t++)
        tiles.push_back(t);
    }
    device_tiles = upload(session, tiles, "the tiles of a batch");
    auto device_places = upload(session, places, "the blocks of a batch");
    ids = session.make<uint32_t>(n_queries, "the queries of a batch");
    if (n_queries > 0)
      list_ids<<<(unsigned)places.size(), THREADS, 0, session.stream>>>(device_places.get(), q_ids, ids.get());
    check_launch("the queries of a batch");
  }

  /* use(q, id) for every query. */
  template <typename F> void each(const uint32_t *host_ids, F use) const {
    for (const block_place &place : places)
      for (uint32_t p = place.begin; p < place.end; p++)
        use(place.first + (p - place.begin), host_ids[p]);
  }
};

uint32_t kith_cuda_join::cut_blocks() {
  constexpr uint32_t BLOCKS = 8192, MOST_TILES = 64;
  if (dense || by_point())
    fail(KITH_ERR_UNSUPPORTED, "this kernel cannot share a join with other engines");
  blocks.tiles = std::clamp<uint32_t>(tiles.n / BLOCKS, 1, MOST_TILES);
  blocks.n = (tiles.n + blocks.tiles - 1) / blocks.tiles;
  return blocks.n;
}

void kith_cuda_join::blocks_to_host(uint32_t *begin, uint64_t *candidates, uint32_t *ids) {
  blocks.begin = begin;
  blocks.ids = ids;
  begin[0] = 0;
  if (blocks.n == 0)
    return;
  auto sums = session.make<unsigned long long>(blocks.n, "the weights of blocks");
  auto begins = session.make<uint32_t>(blocks.n + UINT64_C(1), "the blocks");
  check(cudaMemsetAsync(sums.get(), 0, blocks.n * sizeof(unsigned long long), session.stream), "blocks");
  join_args args = arguments(DEGREES);
  if (args.n_tiles > 0)
    weigh_tiles<<<blocks_for((uint64_t)args.n_tiles * 32, THREADS), THREADS, 0, session.stream>>>(
        args, blocks.tiles, sums.get());
  find_begins<<<blocks_for(blocks.n + UINT64_C(1), THREADS), THREADS, 0, session.stream>>>(
      tiles.begin.get(), tiles.n, blocks.tiles, blocks.n, begins.get());
  check_launch("blocks");
  copy_to_host(session, candidates, sums.get(), blocks.n * sizeof(uint64_t));
  copy_to_host(session, begin, begins.get(), (blocks.n + UINT64_C(1)) * sizeof(uint32_t));
  copy_to_host(session, ids, queries().ids.get(), queries().n * sizeof(uint32_t));
}

/* What a batch finds first: its degrees, left on the device. */
void kith_cuda_join::find_batch_degrees(const block_list &list, bool all_pairs) {
  if (!degrees.get()) {
    degrees = session.make<uint32_t>(a.n, "one count per point");
    check(cudaMemsetAsync(degrees.get(), 0, a.n * sizeof(uint32_t), session.stream), "degrees");
    doubtful = session.make<uint8_t>(tiles.n, "tiles");
    check(cudaMemsetAsync(doubtful.get(), 1, tiles.n, session.stream), "tiles");
  }
  check(cudaMemsetAsync(total.get(), 0, 2 * sizeof(kith_cuda::tally), session.stream), "degrees");
  join_args args = arguments(DEGREES);
  args.half = args.half && !all_pairs;
  args.drop_self = args.drop_self && !all_pairs;
  args.tile_list = list.device_tiles.get();
  args.n_tiles = index_b.n ? (uint32_t)list.tiles.size() : 0;
  args.degrees = degrees.get();
  args.doubtful = doubtful.get();
  launch_tiles(args, DEGREES);
  if (has_box())
    add_images(args);
}

/* Each unordered pair of one set once: where all engines have the queries in the same order. */
void kith_cuda_join::count_batch(const block_list &list) {
  check(cudaMemsetAsync(total.get(), 0, 2 * sizeof(kith_cuda::tally), session.stream), "count");
  join_args args = arguments(COUNT);
  args.tile_list = list.device_tiles.get();
  args.n_tiles = index_b.n ? (uint32_t)list.tiles.size() : 0;
  launch_tiles(args, COUNT);
  launch_images(args, COUNT);
}

void kith_cuda_join::degrees_of_batch(const kith_cuda_batch &batch, const block_list &list) {
  auto found = session.make<uint32_t>(list.n_queries, "the degrees of a batch");
  if (list.n_queries == 0)
    return;
  gather_degrees<<<blocks_for(list.n_queries, THREADS), THREADS, 0, session.stream>>>(
      list.ids.get(), list.n_queries, degrees.get(), found.get());
  check_launch("the degrees of a batch");
  std::vector<uint32_t> host(list.n_queries);
  copy_to_host(session, host.data(), found.get(), list.n_queries * sizeof(uint32_t));
  list.each(blocks.ids, [&](uint64_t q, uint32_t id) { batch.degrees[id] = host[q]; });
}

namespace {

/* Rows that lie one behind the other in a batch, on their way to their own places. */
template <typename T> struct row_scatter {
  static constexpr uint64_t LONG_ROW = 512; /* bytes, from which on caches are passed by */
  const std::vector<uint64_t> &offsets;     /* of the batch's rows in it, n + 1 */
  const std::vector<uint64_t> &to;          /* where each goes */
  T *out;

  void operator()(uint64_t at, const char *piece, uint64_t bytes) const {
    uint64_t first = at / sizeof(T);
    uint64_t end = first + bytes / sizeof(T);
    const T *values = (const T *)piece;
    size_t row = (size_t)(std::upper_bound(offsets.begin(), offsets.end(), first) - offsets.begin()) - 1;
    while (first < end) {
      uint64_t stop = std::min(end, offsets[row + 1]);
      char *place = (char *)(out + to[row] + (first - offsets[row]));
      uint64_t row_bytes = (stop - first) * sizeof(T);
      if (row_bytes >= LONG_ROW)
        stream_copy(place, (const char *)values, row_bytes);
      else
        memcpy(place, values, row_bytes);
      values += stop - first;
      first = stop;
      row++;
    }
  }
};

} // namespace

void kith_cuda_join::fill_batch(const kith_cuda_batch &batch, const block_list &list, kith_cuda_times *times) {
  double began = seconds();
  std::vector<uint64_t> begins(list.n_queries + 1);
  std::vector<uint64_t> to(list.n_queries);
  uint64_t pairs = 0;
  list.each(blocks.ids, [&](uint64_t q, uint32_t id) {
    bool wanted = id >= batch.first_row && id < batch.end_row;
    const uint64_t *offset = batch.offsets + (wanted ? id - batch.first_row : 0);
    begins[q] = pairs;
    to[q] = offset[0] - batch.offsets[0];
    pairs += wanted ? offset[1] - offset[0] : 0;
  });
  begins[list.n_queries] = pairs;
  if (pairs == 0)
    return;
  if (has_box() || !degrees.get())
    find_batch_degrees(list, false); /* how many pairs are no images; and which tiles are in doubt */
  if (!blocks.places.get())
    blocks.places = session.make<uint64_t>(a.n, "the places of rows");
  auto offsets = upload(session, begins, "the offsets of a batch");
  scatter_places<<<blocks_for(list.n_queries, THREADS), THREADS, 0, session.stream>>>(
      list.ids.get(), list.n_queries, offsets.get(), blocks.places.get());
  window = kith_cuda_window{};
  window.neighbors = session.make<uint32_t>(pairs, "the rows of a batch");
  if (spec.distances)
    window.distances = session.make<double>(pairs, "the distances of a batch");
  join_args args = arguments(FILL);
  args.tile_list = list.device_tiles.get();
  args.n_tiles = (uint32_t)list.tiles.size();
  args.offsets = blocks.places.get();
  args.neighbors = window.neighbors.get();
  args.first_row = batch.first_row;
  args.end_row = batch.end_row;
  args.doubtful = doubtful.get();
  launch_tiles(args, FILL);
  launch_images(args, FILL);
  if (spec.sorted)
    sort_rows(offsets.get(), 0, list.n_queries, pairs);
  if (spec.distances)
    launch_distances({offsets.get(), 0, list.ids.get(), 0, list.n_queries});
  wait("filling the rows of a batch");
  times->computed = seconds() - began;
  copy_pieces_to_host(session, window.neighbors.get(), pairs * sizeof(uint32_t),
                      row_scatter<uint32_t>{begins, to, batch.neighbors});
  if (batch.distances)
    copy_pieces_to_host(session, window.distances.get(), pairs * sizeof(double),
                        row_scatter<double>{begins, to, batch.distances});
  window = kith_cuda_window{};
  times->transferred = seconds() - began;
}

void kith_cuda_join::run_batch(const kith_cuda_batch &batch, kith_cuda_tally *tally, kith_cuda_times *times) {
  double began = seconds();
  *times = kith_cuda_times{};
  *tally = kith_cuda_tally{};
  block_list list(session, blocks, tiles.n, queries().ids.get(), batch);
  if (batch.task == KITH_CUDA_FILL) {
    fill_batch(batch, list, times);
    return;
  }
  if (batch.task == KITH_CUDA_COUNT && !batch.one_sided)
    count_batch(list);
  else
    find_batch_degrees(list, batch.task == KITH_CUDA_COUNT);
  read_tally(tally, "degrees");
  times->computed = times->transferred = seconds() - began;
  if (batch.task == KITH_CUDA_DEGREES)
    degrees_of_batch(batch, list);
  times->transferred = seconds() - began;
}
