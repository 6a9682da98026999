/* A join of all points with all on the device: what join.cu asks of join_dense. */
#ifndef KITH_ENGINE_CUDA_DENSE_CUH
#define KITH_ENGINE_CUDA_DENSE_CUH

#include "engine/cuda/index.cuh"

#include <memory>

struct kith_cuda_join;

class kith_cuda_dense {
public:
  /* Makes the join's indexes, in an order of its own, and narrow copies of the points. */
  kith_cuda_dense(kith_cuda_join &join, const uint64_t invalid[2]);
  ~kith_cuda_dense();

  /* Each adds to the join's total. */
  void count();
  void find_degrees(uint32_t *degrees); /* cleared before */
  /* After find_degrees and once the join has offsets: rows [first, end), in no order. */
  void fill(uint64_t first, uint64_t end, uint32_t *neighbors);
  /* Pairs kept since find_degrees are not worth their memory any more. */
  void forget_pairs();

private:
  struct narrowed;
  /* Tiles of queries and of candidates that meet. */
  struct part {
    uint32_t query, query_end, candidate, candidate_end;
  };

  kith_cuda_join &join;
  kith_cuda_session &session;
  uint32_t chunk_columns, chunks;
  std::unique_ptr<narrowed> queries, candidates; /* queries: none if one set is joined with itself */
  kith_cuda::buffer<unsigned long long> list;    /* pairs of positions */
  bool has_all = false;                          /* the list has all pairs that belong, among its first */
  uint64_t n_listed = 0;

  std::unique_ptr<narrowed> narrow(const kith_cuda::view &points, uint64_t invalid_rows, const double *center,
                                   kith_cuda::cell_index &index);
  const narrowed &query_side() const { return queries ? *queries : *candidates; }
  kith_sketch sketch() const;
  kith_norm norm() const;
  uint32_t row_bytes() const;
  bool flags() const;
  bool is_empty() const;
  bool counts_selves() const;
  void make_list();
  part everything() const;
  uint64_t filter(const part &part);
  void settle(uint64_t n, uint32_t *degrees);
  template <typename F> void each_list(const part &whole, F use);
};

#endif
