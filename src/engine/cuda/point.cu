/* Running join_point: the order of the queries, and the batches that fill a table. See join_point.cuh.
 *
 * Filling goes as in the papers: a sample of one query in a hundred (for the queue: the heaviest hundredth, so
 * that the first batch fits) says how many pairs to expect; batches of so many queries that a buffer should
 * hold their pairs go in turn to three streams, each with a buffer of its own. Batches are strided through the
 * list of queries, so that they are alike, except for the queue, whose order is the point of it. The pairs of a
 * batch are moved to their rows on the device; rows go to the host through the pinned buffers of transfer.cuh.
 * A batch that overflows its buffer leaves no trace and is run again in halves. That is why the queue's counter
 * begins anew with every batch, where the paper's goes on: a batch must find the same queries again. */
#include "engine/cuda/algorithms.cuh"
#include "engine/cuda/join.cuh"
#include "engine/cuda/join_point.cuh"

#include <algorithm>
#include <cmath>
#include <deque>

using namespace kith_cuda;

namespace {

enum { STREAMS = 3, SAMPLE_ONE_IN = 100 };
constexpr double MOST_PAIRS = 1e8;    /* of a buffer, as in the paper */
constexpr double LEAST_PAIRS = 65536; /* likewise, where there is room: the sample may have seen nothing */
constexpr double MARGIN = 1.25;       /* room for what the sample did not see */

/* ---- kernels beside the join ---------------------------------------------------------------------------- */

__global__ void count_up(uint32_t n, uint32_t *numbers) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    numbers[i] = i;
}

/* The candidates of the cells of queries: work[p] where position p begins a cell. */
__global__ void weigh_cells(join_args join, kith_cells cells, uint32_t n, uint32_t *work) {
  uint32_t p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= n || (p > 0 && join.q_keys[p] == join.q_keys[p - 1]))
    return;
  uint32_t candidates = 0;
  cell_walk walk(join.grid, cells, join.q_keys[p]);
  walk.each([&](uint64_t key) { candidates += join.find.find(key + 1) - join.find.find(key); });
  work[p] = candidates;
}

/* Those of every query: what its cell has. `own` finds cells of queries. */
__global__ void weigh_queries(finder own, uint32_t n, const uint32_t *work, uint32_t *of_query) {
  uint32_t p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p < n)
    of_query[p] = work[own.find(own.keys[p])];
}

/* Moves the pairs of a batch to their rows, if none is missing. placed[r]: pairs that row first + r has
 * already. */
__global__ void place_pairs(pair_buffer found, const uint64_t *offsets, uint64_t first, uint32_t *placed,
                            uint32_t *neighbors) {
  unsigned long long n = *found.used;
  if (n > found.capacity)
    return;
  for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += (uint64_t)gridDim.x * blockDim.x) {
    found_pair pair = found.pairs[i];
    uint32_t at = atomicAdd(&placed[pair.row - first], 1U);
    neighbors[offsets[pair.row] - offsets[first] + at] = pair.id;
  }
}

/* ---- launching ------------------------------------------------------------------------------------------ */

template <int D, typename T> void launch_typed(const point_args &args, operation op, cudaStream_t stream) {
  unsigned blocks = blocks_for(args.batch.count * args.threads, POINT_THREADS);
  if (op == COUNT)
    join_point<D, T, COUNT><<<blocks, POINT_THREADS, 0, stream>>>(args);
  else if (op == DEGREES)
    join_point<D, T, DEGREES><<<blocks, POINT_THREADS, 0, stream>>>(args);
  else
    join_point<D, T, FILL><<<blocks, POINT_THREADS, 0, stream>>>(args);
  check_launch("join_point");
}

template <int D> void launch_point(const point_args &args, operation op, bool is_f64, cudaStream_t stream) {
  if (is_f64)
    launch_typed<D, double>(args, op, stream);
  else
    launch_typed<D, float>(args, op, stream);
}

void launch_batch(const point_args &args, operation op, bool is_f64, cudaStream_t stream) {
  using launcher = void (*)(const point_args &, operation, bool, cudaStream_t);
  static const launcher by_dim[] = {launch_point<0>, launch_point<1>, launch_point<2>, launch_point<3>,
                                    launch_point<4>, launch_point<5>, launch_point<6>};
  by_dim[args.join.dim <= 6 ? args.join.dim : 0](args, op, is_f64, stream);
}

/* ---- the order ------------------------------------------------------------------------------------------ */

/* Candidates of every query, by position: those of its cell, which are found once. */
buffer<uint32_t> find_workloads(kith_cuda_session &session, const join_args &args, kith_cells cells,
                                const cell_index &queries) {
  auto of_cell = session.make<uint32_t>(queries.n, "the work of the cells");
  auto of_query = session.make<uint32_t>(queries.n, "the work of the queries");
  unsigned blocks = blocks_for(queries.n, THREADS);
  weigh_cells<<<blocks, THREADS, 0, session.stream>>>(args, cells, queries.n, of_cell.get());
  weigh_queries<<<blocks, THREADS, 0, session.stream>>>(queries.find, queries.n, of_cell.get(), of_query.get());
  check_launch("workloads");
  return of_query;
}

/* Sorts positions by keys of theirs; stable, so that the same input gives the same order. */
void sort_positions(kith_cuda_session &session, const uint32_t *keys, uint32_t n, bool descending,
                    uint32_t *order) {
  auto positions = session.make<uint32_t>(n, "positions");
  auto sorted = session.make<uint32_t>(n, "sorted keys");
  count_up<<<blocks_for(n, THREADS), THREADS, 0, session.stream>>>(n, positions.get());
  check_launch("positions");
  if (!descending)
    return sort_pairs(session, 32, n, keys, sorted.get(), positions.get(), order);
  with_room(session, "the order of the queries", [&](void *room, size_t &bytes) {
    return cub::DeviceRadixSort::SortPairsDescending(room, bytes, keys, sorted.get(), positions.get(), order,
                                                     (int64_t)n, 0, 32, session.stream);
  });
}

/* ---- batches -------------------------------------------------------------------------------------------- */

/* What a batch leaves for the host to look at. */
struct progress {
  unsigned long long used; /* pairs found */
  uint32_t head;           /* queries taken from the queue */
};

/* A stream and its buffer. Waits for its work before it goes. */
struct batch_lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t done = nullptr;
  buffer<found_pair> pairs;
  progress *device = nullptr, *host = nullptr;
  query_batch batch{};
  bool busy = false;

  batch_lane() {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    cudaError_t error = cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    if (error != cudaSuccess)
      cudaStreamDestroy(stream);
    check(error, "event");
  }
  batch_lane(const batch_lane &) = delete;
  batch_lane &operator=(const batch_lane &) = delete;
  ~batch_lane() {
    cudaStreamSynchronize(stream);
    cudaEventDestroy(done);
    cudaStreamDestroy(stream);
  }
};

/* Batches of about equal numbers of queries. */
std::deque<query_batch> cut_batches(uint64_t queries, uint64_t batches, bool contiguous) {
  std::deque<query_batch> cut;
  for (uint64_t b = 0; b < batches; b++) {
    uint64_t begin = queries * b / batches;
    uint64_t end = queries * (b + 1) / batches;
    if (contiguous)
      cut.push_back({begin, 1, end - begin});
    else
      cut.push_back({b, batches, (queries - b + batches - 1) / batches});
  }
  return cut;
}

/* The two halves of a batch: the same kind of batch again. */
void halve(const query_batch &batch, bool contiguous, std::deque<query_batch> &waiting) {
  uint64_t half = (batch.count + 1) / 2;
  uint64_t rest = batch.count - half;
  if (contiguous) {
    waiting.push_front({batch.first + half, 1, rest});
    waiting.push_front({batch.first, 1, half});
  } else {
    waiting.push_front({batch.first + batch.stride, 2 * batch.stride, rest});
    waiting.push_front({batch.first, 2 * batch.stride, half});
  }
}

/* ---- filling -------------------------------------------------------------------------------------------- */

/* Finds the pairs of a window of the table and puts them into its rows, in no order. */
struct point_fill {
  kith_cuda_join &join;
  kith_cuda_session &session;
  const join_args &args;
  const bool queue;
  std::deque<query_batch> waiting;
  buffer<uint32_t> placed; /* pairs that the rows have already */
  buffer<progress> states;
  batch_lane lanes[STREAMS]; /* the first to go: nothing runs on when memory is released */

  point_fill(kith_cuda_join &join, const join_args &args, double expected)
      : join(join), session(join.session), args(args), queue(join.spec.order == KITH_ORDER_QUEUE) {
    placed = session.make<uint32_t>(args.end_row - args.first_row, "pairs of the rows");
    states = session.make<progress>(STREAMS, "numbers");
    check(cudaMemsetAsync(placed.get(), 0, placed.size() * sizeof(uint32_t), session.stream), "clear");
    double room = (double)(session.memory.limit - session.memory.used) / 8 / sizeof(found_pair);
    double wanted = std::max(MARGIN * expected / (int)STREAMS, LEAST_PAIRS);
    double capacity = std::max(std::min({wanted, MOST_PAIRS, room}), 1.0);
    for (int i = 0; i < STREAMS; i++) {
      lanes[i].pairs = session.make<found_pair>((uint64_t)capacity, "pairs");
      lanes[i].device = states.get() + i;
      lanes[i].host = (progress *)session.pinned + i;
    }
    uint64_t batches = std::max<uint64_t>((uint64_t)std::ceil(MARGIN * expected / capacity), STREAMS);
    uint64_t queries = join.queries().n;
    waiting = cut_batches(queries, std::min(batches, queries), queue);
  }

  void start(batch_lane &lane) {
    lane.batch = waiting.front();
    waiting.pop_front();
    /* What was allocated and cleared on the session's stream comes first. */
    check(cudaEventRecord(session.event, session.stream), "batch");
    check(cudaStreamWaitEvent(lane.stream, session.event, 0), "batch");
    check(cudaMemsetAsync(lane.device, 0, sizeof *lane.device, lane.stream), "batch");
    point_args point = join.point_arguments(args, lane.batch);
    point.head = queue ? &lane.device->head : nullptr;
    point.out = pair_buffer{lane.pairs.get(), lane.pairs.size(), &lane.device->used};
    launch_batch(point, FILL, join.is_f64, lane.stream);
    place_pairs<<<4 * session.multiprocessors, THREADS, 0, lane.stream>>>(
        point.out, args.offsets, args.first_row, placed.get(), args.neighbors);
    check_launch("placing pairs");
    check(cudaMemcpyAsync(lane.host, lane.device, sizeof *lane.host, cudaMemcpyDeviceToHost, lane.stream),
          "batch");
    check(cudaEventRecord(lane.done, lane.stream), "batch");
    lane.busy = true;
  }

  void finish(batch_lane &lane) {
    join.wait_for(lane.done, "a batch");
    lane.busy = false;
    if (lane.host->used <= lane.pairs.size())
      return;
    if (lane.batch.count > 1) {
      halve(lane.batch, queue, waiting);
    } else {
      lane.pairs = session.make<found_pair>(lane.host->used, "the pairs of one query");
      waiting.push_front(lane.batch);
    }
  }

  void run() {
    auto is_busy = [](const batch_lane &lane) { return lane.busy; };
    for (int turn = 0; !waiting.empty() || std::any_of(lanes, lanes + STREAMS, is_busy);
         turn = (turn + 1) % STREAMS) {
      if (lanes[turn].busy)
        finish(lanes[turn]);
      if (!waiting.empty())
        start(lanes[turn]);
    }
  }
};

} // namespace

/* ---- what the join calls -------------------------------------------------------------------------------- */

/* Lists the positions of the queries in the order in which they are to be taken. */
void kith_cuda_join::order_queries() {
  const cell_index &q = queries();
  order = session.make<uint32_t>(q.n, "the order of the queries");
  if (q.n == 0)
    return;
  if (spec.order == KITH_ORDER_INPUT) {
    sort_positions(session, q.ids.get(), q.n, false, order.get());
    return;
  }
  auto work = find_workloads(session, arguments(COUNT), spec.cells, q);
  sort_positions(session, work.get(), q.n, true, order.get());
}

point_args kith_cuda_join::point_arguments(const join_args &args, const query_batch &batch) const {
  point_args point{};
  point.join = args;
  point.order = order.get();
  point.batch = batch;
  point.cells = spec.cells;
  point.threads = spec.threads_per_query;
  kith_predicate predicate = spec.predicate;
  bool filters = is_f64 ? kith_predicate_narrow(&predicate, a.dim, 0) : predicate.filter;
  point.band = filters ? predicate.band : INFINITY;
  return point;
}

/* Counts, or finds degrees: one launch, since nothing can overflow. */
void kith_cuda_join::launch_points(const join_args &args, operation op, const query_batch &batch) {
  if (batch.count == 0 || index_b.n == 0)
    return;
  point_args point = point_arguments(args, batch);
  buffer<uint32_t> head;
  if (spec.order == KITH_ORDER_QUEUE) {
    head = session.make<uint32_t>(1, "the head of the queue");
    check(cudaMemsetAsync(head.get(), 0, sizeof(uint32_t), session.stream), "clear");
    point.head = head.get();
  }
  launch_batch(point, op, is_f64, session.stream);
}

void kith_cuda_join::launch_points(const join_args &args, operation op) {
  launch_points(args, op, query_batch{0, 1, queries().n});
}

/* The pairs of the whole table, as the papers would expect them. */
double kith_cuda_join::expect_pairs() {
  if (expected_pairs >= 0)
    return expected_pairs;
  uint64_t n = queries().n;
  uint64_t sampled = (n + SAMPLE_ONE_IN - 1) / SAMPLE_ONE_IN;
  uint64_t stride = spec.order == KITH_ORDER_QUEUE ? 1 : SAMPLE_ONE_IN;
  kith_cuda_tally seen;
  check(cudaMemsetAsync(total.get(), 0, sizeof(totals), session.stream), "sample");
  launch_points(arguments(COUNT), COUNT, query_batch{0, stride, sampled});
  read_tally(&seen, "sample");
  double pairs = (double)seen.pairs * (double)n / (double)sampled;
  expected_pairs = spec.half ? pairs / 2 : pairs;
  return expected_pairs;
}

void kith_cuda_join::fill_points(const join_args &args, double share) {
  point_fill fill(*this, args, share * expect_pairs());
  fill.run();
}
