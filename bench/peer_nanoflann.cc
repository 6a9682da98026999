// nanoflann at its best on the same job: peer_nanoflann FILE.npy EPS count|table REPEATS [THREADS [LEAF]]
//
// What is done for it, beyond its examples: float32 throughout, 32-bit ids, the dimension a constant, built
// with -O3 -march=native, queries issued in the order of its own tree (three times faster than input order),
// a result set that only counts, huge pages for the result, and the best of four leaf sizes and of two ways
// to make the table, chosen for each data set on a sample of the queries before the clock starts.
//
// nanoflann takes d2 < r2 in float32; kith takes D2 <= eps * eps in double. The pair counts may therefore
// differ by the few pairs whose distance is eps to within rounding. Protocol and JSON are kith_bench.c's, with
// the tuning in place of the cold run; each run builds the tree anew, and build and query are timed apart.
#include <nanoflann.hpp>

#include <omp.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Points {
  size_t n = 0;
  int dim = 0;
  std::vector<float> data;
};

// Only what `kith gen --dtype f4` writes: version 1, little endian, C order.
Points read_npy(const char *path) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path, "rb"), std::fclose);
  unsigned char head[10];
  if (!file || std::fread(head, 1, 10, file.get()) != 10 || std::memcmp(head, "\x93NUMPY\x01", 7) != 0)
    throw std::runtime_error("not an npy file of version 1");
  std::string header(static_cast<size_t>(head[8] + 256 * head[9]), ' ');
  size_t got = std::fread(&header[0], 1, header.size(), file.get());
  size_t shape = header.find("'shape': (");
  Points p;
  if (got != header.size() || header.find("'<f4'") == std::string::npos ||
      header.find("False") == std::string::npos || shape == std::string::npos ||
      std::sscanf(header.c_str() + shape, "'shape': (%zu, %d", &p.n, &p.dim) != 2)
    throw std::runtime_error("not a float32 matrix in C order");
  p.data.resize(p.n * static_cast<size_t>(p.dim));
  if (std::fread(p.data.data(), sizeof(float), p.data.size(), file.get()) != p.data.size())
    throw std::runtime_error("file too short");
  return p;
}

// Uninitialised room on huge pages: a std::vector would write zeros first and fault 4 KiB at a time.
template <typename T> struct Room {
  explicit Room(size_t n) : bytes(std::max<size_t>(n * sizeof(T), 1)) {
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
      throw std::bad_alloc();
    madvise(p, bytes, MADV_HUGEPAGE);
    data = static_cast<T *>(p);
  }
  Room(Room &&other) noexcept : bytes(other.bytes), data(other.data) { other.data = nullptr; }
  ~Room() {
    if (data)
      munmap(data, bytes);
  }
  size_t bytes;
  T *data;
};

template <int Dim> struct Cloud {
  const float *data;
  size_t n;
  size_t kdtree_get_point_count() const { return n; }
  float kdtree_get_pt(size_t i, size_t c) const { return data[i * Dim + c]; }
  template <class Box> bool kdtree_get_bbox(Box &) const { return false; }
};

// nanoflann itself has tested d2 < r2 before it calls addPoint().
struct Counter {
  float r2;
  size_t found = 0;
  size_t size() const { return found; }
  bool full() const { return true; }
  float worstDist() const { return r2; }
  bool addPoint(float, uint32_t) { return ++found, true; }
};

// Writes ids, without the query's own, to room that is known to suffice.
struct Filler {
  float r2;
  uint32_t self;
  uint32_t *out;
  size_t size() const { return 0; }
  bool full() const { return true; }
  float worstDist() const { return r2; }
  bool addPoint(float, uint32_t id) {
    if (id != self) // without the branch, a row could spill into the next
      *out++ = id;
    return true;
  }
};

// The same where the number of ids is not known yet.
struct Appender {
  float r2;
  uint32_t self;
  std::vector<uint32_t> &out;
  size_t size() const { return out.size(); }
  bool full() const { return true; }
  float worstDist() const { return r2; }
  bool addPoint(float, uint32_t id) {
    if (id != self)
      out.push_back(id);
    return true;
  }
};

struct Table {
  explicit Table(size_t n) : offsets(n + 1, 0) {}
  std::vector<uint64_t> offsets;
  std::unique_ptr<Room<uint32_t>> neighbors;
  void offsets_from_degrees() { // offsets[i + 1] holds the degree of row i
    for (size_t i = 1; i < offsets.size(); i++)
      offsets[i] += offsets[i - 1];
    neighbors = std::make_unique<Room<uint32_t>>(offsets.back());
  }
};

// Rows in the order in which a thread found them, in slabs, so that growing never copies.
class Slabs {
public:
  uint32_t *append(const std::vector<uint32_t> &row) {
    if (row.size() > left_) {
      left_ = std::max<size_t>(row.size(), size_t{8} << 20);
      slabs_.emplace_back(left_);
      next_ = slabs_.back().data;
    }
    uint32_t *at = next_;
    std::copy(row.begin(), row.end(), at);
    next_ += row.size();
    left_ -= row.size();
    return at;
  }

private:
  std::vector<Room<uint32_t>> slabs_;
  uint32_t *next_ = nullptr;
  size_t left_ = 0;
};

enum class How { count, two_pass, staged };
const char *const how_names[] = {"count", "two searches", "one search and a copy"};

template <int Dim> class Join {
public:
  Join(const Points &points, double eps) : cloud_{points.data.data(), points.n}, r2_(float(eps * eps)) {}

  void build(size_t leaf) {
    // The constructor builds the index: buildIndex() would build it a second time.
    tree_ = std::make_unique<Tree>(Dim, cloud_, nanoflann::KDTreeSingleIndexAdaptorParams(leaf));
  }

  // Answers one block of queries in `stride` (1: all of them); returns the pairs found, without (i, i).
  uint64_t run(How how, size_t stride) {
    stride_ = stride;
    if (how == How::count)
      return count();
    table_ = std::make_unique<Table>(cloud_.n);
    how == How::two_pass ? fill_by_two_searches() : fill_by_one_search();
    return table_->offsets.back();
  }

  void drop() { // not part of anybody's time
    table_.reset();
    tree_.reset();
  }

private:
  using Metric = nanoflann::L2_Simple_Adaptor<float, Cloud<Dim>, float, uint32_t>;
  using Tree = nanoflann::KDTreeSingleIndexAdaptor<Metric, Cloud<Dim>, Dim, uint32_t>;
  static constexpr size_t block_ = 512; // queries a thread takes at a time

  const float *point(uint32_t id) const { return cloud_.data + size_t{id} * Dim; }

  // Calls f(id) for the queries in tree order, on all threads; inside a parallel region.
  template <class F> void each_query(F f) {
    const size_t blocks = (cloud_.n + block_ - 1) / block_;
#pragma omp for schedule(dynamic)
    for (size_t b = 0; b < blocks; b += stride_)
      for (size_t i = b * block_; i < std::min(cloud_.n, (b + 1) * block_); i++)
        f(tree_->vAcc[i]);
  }

  uint64_t degree(uint32_t id) const {
    Counter counter{r2_};
    tree_->findNeighbors(counter, point(id), nanoflann::SearchParams());
    return counter.found - 1; // the point itself
  }

  uint64_t count() {
    uint64_t pairs = 0;
#pragma omp parallel reduction(+ : pairs)
    each_query([&](uint32_t id) { pairs += degree(id); });
    return pairs;
  }

  void fill_by_two_searches() {
    Table &t = *table_;
#pragma omp parallel
    each_query([&](uint32_t id) { t.offsets[id + 1] = degree(id); });
    t.offsets_from_degrees();
#pragma omp parallel
    each_query([&](uint32_t id) {
      Filler filler{r2_, id, t.neighbors->data + t.offsets[id]};
      tree_->findNeighbors(filler, point(id), nanoflann::SearchParams());
    });
  }

  void fill_by_one_search() {
    Table &t = *table_;
    std::vector<const uint32_t *> rows(cloud_.n, nullptr);
    std::vector<Slabs> slabs(static_cast<size_t>(omp_get_max_threads()));
#pragma omp parallel
    {
      Slabs &mine = slabs[static_cast<size_t>(omp_get_thread_num())];
      std::vector<uint32_t> row;
      each_query([&](uint32_t id) {
        row.clear();
        Appender appender{r2_, id, row};
        tree_->findNeighbors(appender, point(id), nanoflann::SearchParams());
        t.offsets[id + 1] = row.size();
        rows[id] = mine.append(row);
      });
    }
    t.offsets_from_degrees();
#pragma omp parallel for schedule(dynamic, 4096)
    for (size_t i = 0; i < cloud_.n; i++)
      if (rows[i])
        std::copy_n(rows[i], t.offsets[i + 1] - t.offsets[i], t.neighbors->data + t.offsets[i]);
  }

  Cloud<Dim> cloud_;
  float r2_;
  size_t stride_ = 1;
  std::unique_ptr<Tree> tree_;
  std::unique_ptr<Table> table_;
};

struct Config {
  size_t leaf;
  How how;
};

struct Run {
  double build, query;
};

struct Results {
  Config config;
  uint64_t pairs = 0;
  std::vector<Run> runs;
};

template <int Dim> Run run_once(Join<Dim> &join, Config config, size_t stride, uint64_t *pairs) {
  double start = now();
  join.build(config.leaf);
  double built = now();
  *pairs = join.run(config.how, stride);
  double done = now();
  join.drop();
  return {built - start, done - built};
}

// The leaf size and way that are fastest for build and query together, judged on one query in 16.
template <int Dim> Config tune(Join<Dim> &join, bool table, size_t leaf) {
  const size_t stride = 16;
  const std::vector<size_t> leaves = leaf ? std::vector<size_t>{leaf} : std::vector<size_t>{10, 16, 24, 32};
  const std::vector<How> hows =
      table ? std::vector<How>{How::two_pass, How::staged} : std::vector<How>{How::count};
  Config best{};
  double best_seconds = 1e300;
  for (How how : hows)
    for (size_t size : leaves) {
      uint64_t pairs;
      Run run = run_once(join, {size, how}, stride, &pairs);
      double seconds = run.build + run.query * double(stride);
      if (seconds < best_seconds) {
        best_seconds = seconds;
        best = {size, how};
      }
    }
  return best;
}

template <int Dim> Results measure(const Points &points, double eps, bool table, long repeats, size_t leaf) {
  Join<Dim> join(points, eps);
  Results results{};
  auto prepare = [&] { results.config = tune(join, table, leaf); };
  auto run = [&] { results.runs.push_back(run_once(join, results.config, 1, &results.pairs)); };
  if (repeats > 0) {
    prepare();
    for (long i = 0; i < repeats; i++)
      run();
    return results;
  }
  char line[16];
  for (bool first = true; std::fgets(line, sizeof line, stdin); first = false) {
    first ? prepare() : run();
    std::puts("done");
    std::fflush(stdout);
  }
  return results;
}

Results measure_any(const Points &points, double eps, bool table, long repeats, size_t leaf) {
  switch (points.dim) {
  case 2:
    return measure<2>(points, eps, table, repeats, leaf);
  case 3:
    return measure<3>(points, eps, table, repeats, leaf);
  case 4:
    return measure<4>(points, eps, table, repeats, leaf);
  case 6:
    return measure<6>(points, eps, table, repeats, leaf);
  case 16:
    return measure<16>(points, eps, table, repeats, leaf);
  case 64:
    return measure<64>(points, eps, table, repeats, leaf);
  default:
    throw std::runtime_error("built for 2, 3, 4, 6, 16 and 64 dimensions only");
  }
}

void print_list(const char *name, const std::vector<Run> &runs, double Run::*part) {
  std::printf(", \"%s\": [", name);
  for (size_t i = 0; i < runs.size(); i++)
    std::printf("%s%.6f", i ? ", " : "", runs[i].*part);
  std::printf("]");
}

void print_json(const Results &r, const char *what) {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::printf("{\"peer\": \"nanoflann\", \"what\": \"%s\", \"version\": \"%x\", \"way\": \"leaf %zu, %s\", ",
              what, unsigned{NANOFLANN_VERSION}, r.config.leaf, how_names[int(r.config.how)]);
  std::printf("\"pairs\": %llu, \"max_rss_bytes\": %llu", static_cast<unsigned long long>(r.pairs),
              static_cast<unsigned long long>(usage.ru_maxrss) * 1024);
  print_list("build", r.runs, &Run::build);
  print_list("query", r.runs, &Run::query);
  std::puts("}");
}

} // namespace

int main(int argc, char **argv) try {
  if (argc < 5)
    throw std::runtime_error("usage: peer_nanoflann FILE.npy EPS count|table REPEATS [THREADS [LEAF]]");
  if (argc > 5)
    omp_set_num_threads(std::atoi(argv[5]));
  size_t leaf = argc > 6 ? std::strtoul(argv[6], nullptr, 10) : 0;
  bool table = std::strcmp(argv[3], "table") == 0;
  print_json(measure_any(read_npy(argv[1]), std::atof(argv[2]), table, std::atol(argv[4]), leaf), argv[3]);
  return 0;
} catch (const std::exception &e) {
  std::fprintf(stderr, "peer_nanoflann: %s\n", e.what());
  return 1;
}
