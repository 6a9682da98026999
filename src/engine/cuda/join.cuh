/* A join on a GPU: what the calls of api.h work on. */
#ifndef KITH_ENGINE_CUDA_JOIN_CUH
#define KITH_ENGINE_CUDA_JOIN_CUH

#include "engine/cuda/box.cuh"
#include "engine/cuda/dense.cuh"
#include "engine/cuda/host_index.cuh"
#include "engine/cuda/join_tile.cuh"

#include <mutex>
#include <optional>
#include <vector>

class running_batch; /* batch.cu */

namespace kith_cuda {
struct point_args;  /* join_point.cuh */
struct query_batch; /* likewise */

/* Rows of a table on the device, one after the other. */
struct table_rows {
  const uint64_t *offsets; /* n + 1 */
  uint64_t base;           /* the first of them */
  const uint32_t *ids;     /* of the rows; NULL: from `first` on */
  uint64_t first, n;
  __device__ uint64_t id(uint64_t i) const { return ids ? ids[i] : first + i; }
};
} // namespace kith_cuda

/* Rows of the neighbour table on the device. */
struct kith_cuda_window {
  uint64_t first = 0, end = 0;
  kith_cuda::buffer<uint32_t> neighbors;
  kith_cuda::buffer<double> distances;
};

/* One of the blocks of a batch: its queries are the batch's from `first` on, its tiles those from `first_tile`
 * on. */
struct kith_cuda_block {
  uint32_t begin, end;
  uint32_t tile, tile_end;
  uint64_t first, first_tile;
};

/* What the host is told of a batch. */
struct kith_cuda_batch_numbers {
  kith_cuda::totals total;
  uint64_t pairs; /* in its rows */
};

/* What a lane keeps from batch to batch. */
struct kith_cuda_batch_lane {
  cudaEvent_t done = nullptr;
  kith_cuda_block *blocks = nullptr;          /* pinned: of the batch */
  kith_cuda_batch_numbers *numbers = nullptr; /* pinned */
  kith_cuda::buffer<kith_cuda::totals> total;
  kith_cuda::buffer<kith_cuda::record> records;
  std::vector<uint64_t> begins, to; /* of the rows of the batch: where they begin in it, and where they go */

  kith_cuda_batch_lane() = default;
  kith_cuda_batch_lane(const kith_cuda_batch_lane &) = delete;
  ~kith_cuda_batch_lane();
};

/* The blocks of a join that is shared with other engines (batch.cu). */
struct kith_cuda_blocks {
  uint32_t n = 0;
  uint32_t tiles = 0;              /* of a block: so many, one after the other */
  const uint32_t *begin = nullptr; /* in host memory: n + 1 positions, */
  const uint32_t *ids = nullptr;   /* and the ids of all of them */
  std::mutex queueing;             /* for who puts work on the stream, and allocates or releases for it */
  std::mutex moving;               /* for who uses the ring of transfers; taken before the other */
  std::mutex boxed;                /* for a whole batch, where there are images; taken first */
  kith_cuda::buffer<unsigned long long> weights; /* the candidates of each */
  kith_cuda::buffer<uint64_t> places;            /* by id: where the rows of a batch begin in it */
  kith_cuda::buffer<uint64_t> table;             /* where the rows begin in the table, */
  uint64_t run = 0;                              /* which is that of this run */
  kith_cuda_batch_lane lanes[KITH_CUDA_LANES];
  /* Indexes for the CPU: of the queries, if they are another set, and of the candidates. */
  std::optional<kith_cuda::host_index> for_host[2];
  cudaEvent_t listed = nullptr, indexed = nullptr; /* blocks, and these, may be copied */

  kith_cuda_blocks() = default;
  kith_cuda_blocks(const kith_cuda_blocks &) = delete;
  ~kith_cuda_blocks();
};

struct kith_cuda_join {
  kith_cuda_session &session;
  kith_cuda_spec spec;
  kith_cuda::buffer<char> room_a, room_b; /* points moved here from the host */
  kith_cuda::view a{}, b{};
  bool is_f64 = false; /* the coordinates of the indexes */
  kith_cuda::grid_plan plan{};
  kith_cuda::cell_index index_a, index_b;        /* index_a is unused when a set is joined with itself */
  uint32_t cells[2] = {0, 0};                    /* non-empty ones, of each */
  kith_cuda::tiles tiles;                        /* join_tile */
  kith_cuda::tile_list border;                   /* of which those near the faces of a periodic box */
  std::unique_ptr<kith_cuda::box_images> images; /* in a periodic box that the grid does not wrap around */
  kith_cuda::buffer<double> limits;              /* by row of a, if each has its own */
  std::unique_ptr<kith_cuda_dense> dense;        /* join_dense, if it is that */
  kith_cuda::buffer<uint32_t> order; /* join_point: the positions of the queries as they are to be taken */
  double expected_pairs = -1;        /* join_point: from a sample, once there was one */
  kith_cuda::buffer<kith_step> steps;
  kith_cuda::buffer<kith_grid> grid; /* where it wraps around */
  kith_cuda::buffer<int> stop;
  kith_cuda::buffer<kith_cuda::totals> total;
  kith_cuda::buffer<uint32_t> degrees;
  kith_cuda::buffer<uint32_t> open_degrees;     /* of them, where there are images: the pairs of the others */
  kith_cuda::buffer<uint8_t> doubtful;          /* tiles whose rows need a second look */
  kith_cuda::buffer<kith_cuda::record> records; /* collected pairs, if all of them were */
  uint64_t n_records = 0;
  kith_cuda::buffer<uint64_t> offsets;
  uint64_t n_pairs = 0;                   /* the last of them */
  const uint64_t *host_offsets = nullptr; /* the caller's copy of them, once there is one */
  kith_cuda_window window;
  kith_cuda_blocks blocks;

  kith_cuda_join(kith_cuda_session &session, const kith_cuda_spec &spec);
  ~kith_cuda_join() { session.patient = false; }

  void prepare(kith_cuda_info &info);
  void count(kith_cuda_tally *out);
  void degrees_to_host(uint64_t *out, kith_cuda_tally *tally);
  void offsets_to_host(uint64_t *out, kith_cuda_tally *tally);
  void rows_to_host(const kith_cuda_rows &rows);
  void table_on_device(kith_table *table, kith_cuda_tally *tally);
  uint32_t cut_blocks();
  double blocks_to_host(uint32_t *begin, uint32_t *ids);
  void weights_to_host(uint64_t *candidates);
  const kith_cuda::host_index &index_for_host(bool candidates) const;
  void index_to_host(bool candidates, const kith_cuda_index &to);
  void run_batch(const kith_cuda_batch &batch, kith_cuda_tally *tally, kith_cuda_times *times);

  const kith_cuda::cell_index &queries() const { return spec.one_set ? index_b : index_a; }
  void wait_for(cudaEvent_t event, const char *what);
  void wait(const char *what);
  kith_cuda::point_args point_arguments(const kith_cuda::join_args &args,
                                        const kith_cuda::query_batch &batch) const;

private:
  friend class running_batch; /* batch.cu */
  bool by_point() const { return spec.kernel == KITH_KERNEL_POINT; }
  /* Of candidates, around a periodic box. */
  bool has_images() const { return spec.lattice.n > 0 && !plan.wraps; }
  bool is_general() const { return kith_cuda::needs_general(spec); }
  void describe(kith_cuda_info &info, const uint64_t invalid[2]) const;
  void make_dense(const uint64_t invalid[2]);
  void make_host_indexes();
  double weigh_blocks();
  kith_cuda::join_args arguments(kith_cuda::operation op) const;
  void launch(const kith_cuda::join_args &args, kith_cuda::operation op);
  void launch_wrapping(const kith_cuda::join_args &args, kith_cuda::operation op);
  void launch_tiles(const kith_cuda::join_args &args, kith_cuda::operation op, kith_cuda::space_kind kind);
  void launch_images(const kith_cuda::join_args &args, kith_cuda::operation op);
  void launch_passes(const kith_cuda::join_args &args, kith_cuda::operation op);
  void prepare_wrapping();
  void read_tally(kith_cuda_tally *out, const char *what);
  void find_degrees(bool collect);
  void copy_degrees(const kith_cuda::buffer<uint32_t> &to, const kith_cuda::buffer<uint32_t> &from);
  void make_window_memory(uint64_t pairs);
  uint64_t pool_capacity() const;
  void find_offsets(kith_cuda_tally *tally);
  uint64_t offset_of(uint64_t row);
  void sort_rows(kith_cuda::buffer<uint32_t> &neighbors, const uint64_t *offsets, uint64_t base, uint64_t n,
                 uint64_t pairs);
  void launch_distances(const kith_cuda::table_rows &rows, const uint32_t *neighbors, double *distances);
  void make_window(uint64_t first, uint64_t end);
  void cover(uint64_t first, uint64_t end);

  /* point.cu */
  void order_queries();
  void launch_points(const kith_cuda::join_args &args, kith_cuda::operation op);
  void launch_points(const kith_cuda::join_args &args, kith_cuda::operation op,
                     const kith_cuda::query_batch &batch);
  double expect_pairs();
  void fill_points(const kith_cuda::join_args &args, double share);
};

#endif
