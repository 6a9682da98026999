/* Conformance: every case x engine x instruction set x thread count x batch size x sink, compared for equality
 * with the reference. An instruction set that the machine lacks is skipped and counted as skipped. On a GPU,
 * its other kernel answers every case as well, in one combination of its options after the other; on the CPU,
 * the algorithm ego does. */
#include "cases.h"
#include "gpu.h"
#include "kith.h"
#include "reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The machines that are compared: instruction sets and thread counts; GPUs with much memory and with so little
 * that tables are made in windows; and engines that share a join, two of which may be one GPU. */
typedef struct machine {
  const char *engine, *isa;
  uint32_t threads;
  uint64_t device_memory;
  const char *devices; /* NULL: the first */
} machine;
static const machine CPUS[] = {{.engine = "cpu", .isa = "scalar", .threads = 1},
                               {.engine = "cpu", .isa = "avx2", .threads = 3},
                               {.engine = "cpu", .isa = "avx512", .threads = 1},
                               {.engine = "cpu", .isa = "avx512", .threads = 4}};
static const machine GPUS[] = {{.engine = "cuda", .threads = 4},
                               {.engine = "cuda", .threads = 1, .device_memory = 3 << 20}};
static const machine HYBRIDS[] = {{.engine = "hybrid", .threads = 3},
                                  {.engine = "hybrid", .threads = 2, .devices = "0,0"},
                                  {.engine = "cuda", .threads = 2, .devices = "0,0"}};
enum { MAX_MACHINES = 4 };
static const machine *machines_used;
static int n_machines;
static const kith_context *big_gpu; /* the first of them, if there is one */

static unsigned passed, failed, skipped;

static void check(bool ok, const test_case *c, const char *where, const char *what) {
  if (ok) {
    passed++;
    return;
  }
  failed++;
  if (failed <= 20)
    fprintf(stderr, "FAILED %s: %s on %s\n", c->name, what, where);
}

static const kith_points *second(const test_case *c) { return c->b.data ? &c->b : NULL; }

/* Whether a row of `got` is the row of `want` in another order. `stamps` has an entry for every id, none equal
 * to `stamp`. */
static bool same_set(const uint32_t *want, const uint32_t *got, uint64_t n, uint64_t *stamps, uint64_t stamp) {
  for (uint64_t k = 0; k < n; k++)
    stamps[want[k]] = stamp;
  for (uint64_t k = 0; k < n; k++) {
    if (stamps[got[k]] != stamp)
      return false;
    stamps[got[k]] = 0; /* a second time would be once too often */
  }
  return true;
}

/* Whether rows hold the same ids, in the same order if `ordered`. */
static bool same_rows(const test_case *c, const reference *want, const uint64_t *offsets, const uint32_t *got,
                      bool ordered) {
  if (memcmp(want->offsets, offsets, (want->n_rows + 1) * sizeof *offsets) != 0)
    return false;
  if (ordered || want->n_pairs == 0)
    return want->n_pairs == 0 || memcmp(want->neighbors, got, want->n_pairs * sizeof *got) == 0;
  uint64_t *stamps = calloc((second(c) ? c->b.n : c->a.n) + 1, sizeof *stamps);
  bool same = stamps != NULL;
  for (uint64_t i = 0; same && i < want->n_rows; i++)
    same = same_set(want->neighbors + offsets[i], got + offsets[i], offsets[i + 1] - offsets[i], stamps, i + 1);
  free(stamps);
  return same;
}

/* Collects a stream into one table. */
typedef struct collected {
  uint64_t rows, pairs, room_rows, room_pairs, batches;
  uint64_t *offsets;
  uint32_t *neighbors;
  double *distances;
  bool in_order;
} collected;

static int collect(void *user, const kith_batch *batch) {
  collected *all = user;
  uint64_t pairs = batch->offsets[batch->n_rows];
  if (batch->first_row != all->rows || batch->offsets[0] != 0 || all->rows + batch->n_rows > all->room_rows ||
      all->pairs + pairs > all->room_pairs) {
    all->in_order = false;
    return 1;
  }
  for (uint64_t r = 0; r <= batch->n_rows; r++)
    all->offsets[all->rows + r] = all->pairs + batch->offsets[r];
  if (pairs)
    memcpy(all->neighbors + all->pairs, batch->neighbors, pairs * sizeof(uint32_t));
  if (pairs && batch->distances)
    memcpy(all->distances + all->pairs, batch->distances, pairs * sizeof(double));
  all->rows += batch->n_rows;
  all->pairs += pairs;
  all->batches++;
  return 0;
}

static bool stream_matches(kith_context *ctx, const test_case *c, const kith_join_options *opt,
                           const reference *want) {
  collected all = {.room_rows = want->n_rows,
                   .room_pairs = want->n_pairs,
                   .offsets = calloc(want->n_rows + 1, sizeof(uint64_t)),
                   .neighbors = malloc((want->n_pairs + 1) * sizeof(uint32_t)),
                   .distances = malloc((want->n_pairs + 1) * sizeof(double)),
                   .in_order = true};
  bool ok = kith_join_stream(ctx, &c->a, second(c), opt, collect, &all, NULL) == KITH_OK && all.in_order &&
            all.rows == want->n_rows && same_rows(c, want, all.offsets, all.neighbors, opt->sorted);
  if (opt->distances && opt->sorted && want->n_pairs)
    ok = ok && memcmp(all.distances, want->distances, want->n_pairs * sizeof(double)) == 0;
  if (opt->batch_rows && want->n_rows > opt->batch_rows)
    ok = ok && all.batches >= want->n_rows / opt->batch_rows;
  free(all.offsets);
  free(all.neighbors);
  free(all.distances);
  return ok;
}

static bool table_matches(kith_context *ctx, const test_case *c, const kith_join_options *opt,
                          const reference *want) {
  kith_table *table = NULL;
  bool ok = kith_join_table(ctx, &c->a, second(c), opt, &table, NULL) == KITH_OK &&
            table->n_pairs == want->n_pairs &&
            same_rows(c, want, table->offsets, table->neighbors, opt->sorted);
  if (ok && opt->distances && opt->sorted && want->n_pairs)
    ok = memcmp(table->distances, want->distances, want->n_pairs * sizeof(double)) == 0;
  kith_table_destroy(table);
  return ok;
}

/* A copy of device memory; NULL on failure. */
static void *read_device(kith_context *ctx, const void *memory, uint64_t bytes) {
  void *copy = malloc(bytes + 1);
  if (copy && bytes && kith_device_read(ctx, memory, copy, bytes) != KITH_OK) {
    free(copy);
    return NULL;
  }
  return copy;
}

/* Points and table both in the memory of a GPU. */
static bool device_table_matches(kith_context *ctx, const test_case *c, kith_join_options opt,
                                 const reference *want) {
  kith_points a = {0};
  kith_points b = {0};
  kith_table *table = NULL;
  opt.on_device = 1;
  bool ok = kith_points_upload(ctx, &c->a, &a) == KITH_OK &&
            (!second(c) || kith_points_upload(ctx, &c->b, &b) == KITH_OK) &&
            kith_join_table(ctx, &a, second(c) ? &b : NULL, &opt, &table, NULL) == KITH_OK;
  if (ok) {
    uint64_t *offsets = read_device(ctx, table->offsets, (table->n_rows + 1) * sizeof *offsets);
    uint32_t *neighbors = read_device(ctx, table->neighbors, table->n_pairs * sizeof *neighbors);
    ok = offsets && neighbors && table->n_pairs == want->n_pairs &&
         same_rows(c, want, offsets, neighbors, opt.sorted);
    free(offsets);
    free(neighbors);
  }
  kith_table_destroy(table);
  kith_points_release(&a);
  kith_points_release(&b);
  return ok;
}

static bool degrees_match(kith_context *ctx, const test_case *c, const kith_join_options *opt,
                          const reference *want) {
  uint64_t *degrees = malloc((want->n_rows + 1) * sizeof *degrees);
  bool ok = degrees && kith_join_degrees(ctx, &c->a, second(c), opt, degrees, NULL) == KITH_OK;
  for (uint64_t i = 0; ok && i < want->n_rows; i++)
    ok = degrees[i] == want->offsets[i + 1] - want->offsets[i];
  free(degrees);
  return ok;
}

static bool count_matches(kith_context *ctx, const test_case *c, const kith_join_options *opt,
                          const reference *want) {
  uint64_t pairs = 0;
  return kith_join_count(ctx, &c->a, second(c), opt, &pairs, NULL) == KITH_OK && pairs == want->n_pairs;
}

/* All sinks of one variant of the options, on one machine. */
static void check_sinks(kith_context *ctx, const test_case *c, kith_join_options opt, const reference *want,
                        const char *isa) {
  check(count_matches(ctx, c, &opt, want), c, isa, "count");
  check(degrees_match(ctx, c, &opt, want), c, isa, "degrees");
  check(table_matches(ctx, c, &opt, want), c, isa, "table");
  if (ctx == big_gpu)
    check(device_table_matches(ctx, c, opt, want), c, isa, "table on the device");
  opt.sorted = 1;
  check(table_matches(ctx, c, &opt, want), c, isa, "sorted table");
  opt.distances = 1;
  check(table_matches(ctx, c, &opt, want), c, isa, "sorted table with distances");
  opt.batch_rows = 100;
  check(stream_matches(ctx, c, &opt, want), c, isa, "stream of 100 rows with distances");
  opt.batch_rows = c->a.n > 300 ? 0 : 1;
  opt.sorted = opt.distances = 0;
  check(stream_matches(ctx, c, &opt, want), c, isa, "stream");
}

/* Sets the options of the kernel point to one of their combinations; some only fit one set. They are mixed, so
 * that none keeps meeting the same kind of case. */
static void choose_point(kith_join_options *opt, bool one_set) {
  static const uint32_t threads[] = {1, 8, 32};
  static uint32_t number;
  uint32_t combination = (number++ * UINT32_C(2654435761)) >> 16;
  opt->kernel = KITH_KERNEL_POINT;
  opt->cells = one_set ? (kith_cells)(combination % 3) : KITH_CELLS_FULL;
  opt->order = (kith_order)(combination / 3 % 3);
  opt->threads_per_query = threads[combination / 9 % 3];
  opt->cell_side = 0;
  if (opt->index_dims > 6)
    opt->index_dims = 0;
}

/* The kernel point on a GPU. Its rows are sorted, asked or not. */
static void check_point(kith_context *ctx, const test_case *c, kith_join_options opt, const reference *want) {
  static const char *const cells[] = {"full", "unicomp", "lid-unicomp"};
  static const char *const orders[] = {"input", "workload", "queue"};
  char where[96];
  choose_point(&opt, !second(c));
  snprintf(where, sizeof where, "the GPU's kernel point (%s, %s, %u threads)%s", cells[opt.cells],
           orders[opt.order], opt.threads_per_query, ctx == big_gpu ? "" : " with little memory");
  check(count_matches(ctx, c, &opt, want), c, where, "count");
  check(degrees_match(ctx, c, &opt, want), c, where, "degrees");
  if (ctx == big_gpu)
    check(device_table_matches(ctx, c, opt, want), c, where, "table on the device");
  opt.sorted = 1;
  check(table_matches(ctx, c, &opt, want), c, where, "sorted table");
  opt.distances = 1;
  check(stream_matches(ctx, c, &opt, want), c, where, "stream with distances");
}

/* Epsilon grid order, on the CPU. */
static void check_ego(kith_context *ctx, const test_case *c, kith_join_options opt, const reference *want,
                      const char *isa) {
  char where[32];
  snprintf(where, sizeof where, "%s, ego", isa);
  opt.algorithm = KITH_ALGORITHM_EGO;
  opt.index_dims = 0;
  opt.cell_side = 0;
  check_sinks(ctx, c, opt, want, where);
}

static kith_context *machine_open(int m) {
  kith_context_options options = kith_context_options_init();
  options.engine = machines_used[m].engine;
  options.threads = machines_used[m].threads;
  options.isa = machines_used[m].isa;
  options.device_memory_bytes = machines_used[m].device_memory;
  options.devices = machines_used[m].devices;
  options.memory_bytes = 64 << 20;
  kith_context *ctx;
  if (kith_context_create(&options, &ctx) == KITH_OK)
    return ctx;
  kith_context_destroy(ctx);
  return NULL;
}

/* Whether the space of a case is another than the plain one. */
static bool is_other_space(const test_case *c) {
  return c->metric != KITH_EUCLIDEAN || c->n_box > 0 || c->eps_of;
}

/* Whether the kernel point knows the space of a case. */
static bool is_known_to_point(const test_case *c) {
  return c->metric != KITH_MANHATTAN && c->metric != KITH_CHEBYSHEV && c->n_box == 0 && !c->eps_of;
}

static void check_options(kith_context **machines, const test_case *c, const kith_join_options *opt,
                          const reference *all) {
  reference chosen = {0};
  if (!second(c))
    chosen = reference_select(all, opt);
  const reference *want = second(c) ? all : &chosen;
  for (int m = 0; m < n_machines; m++)
    if (!machines[m]) {
      skipped++;
    } else if (machines_used[m].isa) {
      check_sinks(machines[m], c, *opt, want, machines_used[m].isa);
      if (c->n_box == 0)
        check_ego(machines[m], c, *opt, want, machines_used[m].isa);
    } else if (machines_used == HYBRIDS) {
      kith_join_options shared = *opt;
      shared.partition = (kith_partition)(passed % 3);
      check_sinks(machines[m], c, shared, want, machines_used[m].devices ? "two GPUs" : "CPU and GPU");
    } else {
      check_sinks(machines[m], c, *opt, want, "the GPU");
      if (is_known_to_point(c))
        check_point(machines[m], c, *opt, want);
    }
  reference_free(&chosen);
}

/* One set, with every point as its own neighbour, and with each pair once. */
static void check_kinds(kith_context **machines, const test_case *c, kith_join_options opt,
                        const reference *all) {
  /* Other spaces have each of the two with one type of coordinates: they differ by id, not by distance. */
  bool brief = is_other_space(c);
  opt.self_pairs = 1;
  if (!brief || c->a.dtype == KITH_F64)
    check_options(machines, c, &opt, all);
  opt.self_pairs = 0;
  opt.half = 1;
  if (!brief || c->a.dtype == KITH_F32 || c->eps_of)
    check_options(machines, c, &opt, all);
}

static void check_case(kith_context **machines, const test_case *c) {
  kith_join_options opt = kith_join_options_init(c->eps);
  opt.index_dims = c->index_dims;
  opt.cell_side = c->cell_side;
  opt.skip_invalid = c->skip_invalid;
  opt.metric = c->metric;
  opt.radius = c->radius;
  opt.box = c->n_box ? c->box : NULL;
  opt.n_box = c->n_box;
  opt.eps_of = c->eps_of;
  reference all = reference_of_all(&c->a, second(c) ? &c->b : &c->a, &opt);
  check_options(machines, c, &opt, &all);
  if (!second(c))
    check_kinds(machines, c, opt, &all);
  reference_free(&all);
}

static void check_large(bool gpu, bool hybrid, bool all) {
  test_case c = {0};
  snprintf(c.name, sizeof c.name, "many points");
  if (gpu)
    check(large_box_is_right(), &c, "the GPU", "table in a box");
  if (gpu && all)
    check(large_tiles_are_right(), &c, "the GPU", "tables in many dimensions");
  if (hybrid)
    check(large_sharing_is_right(), &c, "CPU and GPU", "table");
}

/* conformance [cpu|cuda|hybrid [EVERY]]: on the CPU, on a GPU, or on both; 77 means that there is no GPU.
 * EVERY: only every so many cases, for tools that are slow. */
int main(int argc, char **argv) {
  bool gpu = argc > 1 && strcmp(argv[1], "cuda") == 0;
  bool hybrid = argc > 1 && strcmp(argv[1], "hybrid") == 0;
  if ((gpu || hybrid) && !has_gpu())
    return 77;
  uint32_t every = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
  uint32_t first = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
  machines_used = gpu ? GPUS : hybrid ? HYBRIDS : CPUS;
  n_machines = gpu      ? sizeof GPUS / sizeof *GPUS
               : hybrid ? sizeof HYBRIDS / sizeof *HYBRIDS
                        : sizeof CPUS / sizeof *CPUS;
  kith_context *machines[MAX_MACHINES] = {NULL};
  for (int m = 0; m < n_machines; m++)
    machines[m] = machine_open(m);
  big_gpu = gpu ? machines[0] : NULL;
  test_case c;
  for (uint32_t i = 0; case_make(i, &c); i++) {
    if (c.name[0] && i % every == first)
      check_case(machines, &c);
    case_free(&c);
  }
  check_large(gpu, hybrid, every == 1);
  for (int m = 0; m < n_machines; m++)
    kith_context_destroy(machines[m]);
  printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
  return failed != 0;
}
