/* Times one join through the public header:
 *
 *   kith_bench FILE EPS count|degrees|table|sorted REPEATS [THREADS [ENGINE [WORD]...]]
 *
 * ENGINE is cpu (the default), cuda, hybrid, auto, or device: a GPU with the points, and the table, in its own
 * memory. A WORD is a metric, such as manhattan; a periodic box, such as box=1,1,1 or box=1,1,1,90,90,60; an
 * algorithm (grid, ego); how engines share (dynamic, static-queries, static-candidates); CELLS,ORDER,THREADS of
 * the kernel point, such as lid-unicomp,queue,8; a technique to do without (no-reorder, no-sortidu, no-shortc);
 * brute: all with all; how many columns are indexed, such as k=4; or the side of the cells in units of eps,
 * such as side=1; or a file for the timeline of the last run, such as trace=t.json. What the library refuses
 * ends the program with its message.
 *
 * One process, one context. The first run is cold (pages of the file, first use of the threads) and reported
 * apart from the others. REPEATS 0 means: one run for each line on standard input, each answered by a line;
 * bench.py interleaves kith and its peers that way, so that a busy machine slows all of them alike. At the
 * end one JSON object is printed. */
#include <kith.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MAX_RUNS = 1000, MAX_BOX = 9 };

typedef struct bench {
  kith_context *ctx;
  const kith_points *points;
  kith_join_options options;
  const char *space; /* as it was asked for */
  double box[MAX_BOX];
  int table;
  uint64_t *degrees; /* NULL: they are not asked for */
  double cold;
  int n_warm;
  double warm[MAX_RUNS];
  uint64_t pairs;
  double best;             /* the fastest warm run ... */
  kith_join_report report; /* ... and its report */
} bench;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what, const char *why) {
  fprintf(stderr, "kith_bench: %s: %s\n", what, why);
  exit(1);
}

static kith_status call(bench *b, kith_table **table, kith_join_report *report) {
  if (b->table)
    return kith_join_table(b->ctx, b->points, NULL, &b->options, table, report);
  if (b->degrees)
    return kith_join_degrees(b->ctx, b->points, NULL, &b->options, b->degrees, report);
  uint64_t pairs;
  return kith_join_count(b->ctx, b->points, NULL, &b->options, &pairs, report);
}

/* Freeing the table is not part of the time, for kith as for its peers. */
static double join(bench *b, kith_join_report *report) {
  kith_table *table = NULL;
  double start = now();
  kith_status status = call(b, &table, report);
  double seconds = now() - start;
  if (status != KITH_OK)
    fail("join", kith_message(b->ctx));
  b->pairs = report->pairs;
  kith_table_destroy(table);
  return seconds;
}

static void run_cold(bench *b) {
  b->report = kith_join_report_init();
  b->cold = join(b, &b->report);
}

static void run_warm(bench *b) {
  kith_join_report report = kith_join_report_init();
  double seconds = join(b, &report);
  if (b->n_warm == 0 || seconds < b->best) {
    b->best = seconds;
    b->report = report;
  }
  b->warm[b->n_warm++] = seconds;
}

/* The other side of bench.py's interleaving; the first line asks for the cold run. */
static void run_paced(bench *b) {
  char line[16];
  int cold = 1;
  while (b->n_warm < MAX_RUNS && fgets(line, sizeof line, stdin)) {
    (cold ? run_cold : run_warm)(b);
    cold = 0;
    puts("done");
    fflush(stdout);
  }
}

static void run_all(bench *b, long repeats) {
  run_cold(b);
  while (b->n_warm < repeats && b->n_warm < MAX_RUNS)
    run_warm(b);
}

static void print_report(const kith_join_report *r) {
  printf("\"report\": {\"algorithm\": \"%s\", \"tested\": %" PRIu64 ", \"inside\": %" PRIu64
         ", \"cells\": %" PRIu64 ", \"index_dims\": %" PRIu32 ", \"cell_side\": %.9g, \"seconds_plan\": %.6f, "
         "\"seconds_index\": %.6f, \"seconds_join\": %.6f",
         r->algorithm, r->tested, r->inside, r->cells, r->index_dims, r->cell_side, r->seconds_plan,
         r->seconds_index, r->seconds_join);
  for (uint32_t i = 0; i < r->n_engines; i++) {
    const kith_engine_report *e = &r->engines[i];
    printf("%s{\"name\": \"%s\", \"batches\": %" PRIu64 ", \"queries\": %" PRIu64 ", \"candidates\": %" PRIu64
           ", \"pairs\": %" PRIu64 ", \"busy\": %.6f}",
           i ? ", " : ", \"engines\": [", e->name, e->batches, e->queries, e->candidates, e->pairs,
           e->busy_seconds);
  }
  if (r->n_engines)
    printf("], \"imbalance\": %.4f", r->imbalance);
  printf("}");
}

static void print_json(const bench *b, const char *what) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const kith_points *p = b->points;
  uint64_t input = p->n * p->dim * (p->dtype == KITH_F32 ? sizeof(float) : sizeof(double));
  uint64_t result = b->table     ? (p->n + 1) * sizeof(uint64_t) + b->pairs * sizeof(uint32_t)
                    : b->degrees ? p->n * sizeof(uint64_t)
                                 : 0;
  printf("{\"peer\": \"kith\", \"what\": \"%s\", \"version\": \"%s\", \"engine\": \"%s\", \"isa\": \"%s\", "
         "\"threads\": "
         "%" PRIu32 ", \"n\": %" PRIu64 ", \"dim\": %" PRIu32
         ", \"eps\": %.9g, \"space\": \"%s\", \"pairs\": %" PRIu64 ", ",
         what, kith_version(), b->report.engine, kith_isa(b->ctx), kith_threads(b->ctx), p->n, p->dim,
         b->options.eps, b->space, b->pairs);
  printf("\"input_bytes\": %" PRIu64 ", \"result_bytes\": %" PRIu64 ", \"peak_bytes\": %" PRIu64
         ", \"max_rss_bytes\": %" PRIu64 ", ",
         input, result, b->report.peak_bytes, (uint64_t)usage.ru_maxrss * 1024);
  print_report(&b->report);
  printf(", \"cold\": %.6f, \"seconds\": [", b->cold);
  for (int i = 0; i < b->n_warm; i++)
    printf("%s%.6f", i ? ", " : "", b->warm[i]);
  puts("]}");
}

static int place_in(const char *word, const char *const *list) {
  for (int i = 0; list[i]; i++)
    if (strcmp(word, list[i]) == 0)
      return i;
  fail(word, "unknown");
  return -1;
}

/* The point kernel as "cells,order,threads", such as "lid-unicomp,queue,8". */
static void choose_point_kernel(kith_join_options *options, char *choice) {
  static const char *const cells[] = {"full", "unicomp", "lid-unicomp", NULL};
  static const char *const orders[] = {"input", "workload", "queue", NULL};
  const char *cell_word = strtok(choice, ",");
  const char *order_word = strtok(NULL, ",");
  const char *threads = strtok(NULL, ",");
  if (!threads)
    fail("usage", "CELLS,ORDER,THREADS");
  options->kernel = KITH_KERNEL_POINT;
  options->cells = (kith_cells)place_in(cell_word, cells);
  options->order = (kith_order)place_in(order_word, orders);
  options->threads_per_query = (uint32_t)strtoul(threads, NULL, 10);
}

static void choose_box(bench *b, const char *values) {
  char *end = NULL;
  for (const char *at = values; *at; at = *end == ',' ? end + 1 : end) {
    if (b->options.n_box == MAX_BOX)
      fail(values, "too many values for a box");
    b->box[b->options.n_box++] = strtod(at, &end);
    if (end == at || (*end && *end != ','))
      fail(values, "a box is numbers, separated by commas");
  }
  b->options.box = b->box;
}

static void choose_space(bench *b, const char *space) {
  static const char *const metrics[] = {"euclidean", "manhattan", "chebyshev", "cosine",
                                        "angular",   "haversine", NULL};
  static const char BOX[] = "box=";
  b->space = space;
  if (strncmp(space, BOX, strlen(BOX)) == 0)
    choose_box(b, space + strlen(BOX));
  else
    b->options.metric = (kith_metric)place_in(space, metrics);
}

static int is_in(const char *word, const char *const *list) {
  while (*list && strcmp(word, *list) != 0)
    list++;
  return *list != NULL;
}

/* The switches of the techniques for many dimensions; 0: the word is none of them. */
static int choose_technique(kith_join_options *options, const char *word) {
  static const char *const names[] = {"no-reorder", "no-sortidu", "no-shortc", "brute", NULL};
  int *const switches[] = {&options->no_reorder, &options->no_sortidu, &options->no_shortc, &options->brute};
  if (!is_in(word, names))
    return 0;
  *switches[place_in(word, names)] = 1;
  return 1;
}

/* The number in a word such as "k=4"; 0: the word is not of that name. */
static int read_number(const char *word, const char *name, double *value) {
  size_t length = strlen(name);
  if (strncmp(word, name, length) != 0 || word[length] != '=')
    return 0;
  char *end = NULL;
  *value = strtod(word + length + 1, &end);
  if (end == word + length + 1 || *end)
    fail(word, "a number is expected");
  return 1;
}

/* How to index; 0: the word is not about that. */
static int choose_index(kith_join_options *options, const char *word) {
  double k = 0;
  if (!read_number(word, "k", &k))
    return read_number(word, "side", &options->cell_side);
  options->index_dims = (uint32_t)k;
  if (k < 1 || k > UINT32_MAX || options->index_dims != k)
    fail(word, "a number of columns is expected");
  return 1;
}

/* What follows the engine. */
static void choose(bench *b, char *word) {
  static const char *const partitions[] = {"dynamic", "static-queries", "static-candidates", NULL};
  static const char *const algorithms[] = {"auto", "grid", "ego", NULL};
  static const char TRACE[] = "trace=";
  if (strncmp(word, TRACE, strlen(TRACE)) == 0)
    b->options.trace = word + strlen(TRACE);
  else if (strchr(word, ',') && !strchr(word, '='))
    choose_point_kernel(&b->options, word);
  else if (is_in(word, partitions))
    b->options.partition = (kith_partition)place_in(word, partitions);
  else if (is_in(word, algorithms))
    b->options.algorithm = (kith_algorithm)place_in(word, algorithms);
  else if (!choose_technique(&b->options, word) && !choose_index(&b->options, word))
    choose_space(b, word);
}

/* What is asked for. */
static void choose_result(bench *b, const char *what, int on_device) {
  b->table = strcmp(what, "table") == 0 || strcmp(what, "sorted") == 0;
  b->options.sorted = strcmp(what, "sorted") == 0;
  b->options.on_device = on_device && b->table;
  if (strcmp(what, "degrees") != 0)
    return;
  b->degrees = malloc((b->points->n + 1) * sizeof *b->degrees);
  if (!b->degrees)
    fail(what, "out of memory");
}

int main(int argc, char **argv) {
  static const char *const results[] = {"count", "degrees", "table", "sorted", NULL};
  if (argc < 5 || !is_in(argv[3], results))
    fail("usage", "kith_bench FILE EPS count|degrees|table|sorted REPEATS [THREADS [ENGINE [WORD]...]]");

  static bench b;
  kith_context_options options = kith_context_options_init();
  options.threads = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : 0;
  const char *engine = argc > 6 ? argv[6] : "cpu";
  b.options = kith_join_options_init(strtod(argv[2], NULL));
  int on_device = strcmp(engine, "device") == 0;
  options.engine = on_device ? "cuda" : engine;
  if (kith_context_create(&options, &b.ctx) != KITH_OK)
    fail("context", b.ctx ? kith_message(b.ctx) : "out of memory");
  kith_file *file;
  if (kith_file_open(b.ctx, argv[1], NULL, &file) != KITH_OK)
    fail(argv[1], kith_message(b.ctx));

  b.points = kith_file_points(file);
  kith_points copy = {0};
  if (on_device) {
    if (kith_points_upload(b.ctx, b.points, &copy) != KITH_OK)
      fail("upload", kith_message(b.ctx));
    b.points = &copy;
  }
  choose_result(&b, argv[3], on_device);
  b.space = "euclidean";
  for (int i = 7; i < argc; i++)
    choose(&b, argv[i]);
  long repeats = strtol(argv[4], NULL, 10);
  if (repeats > 0)
    run_all(&b, repeats);
  else
    run_paced(&b);
  print_json(&b, argv[3]);

  free(b.degrees);
  kith_points_release(&copy);
  kith_file_close(file);
  kith_context_destroy(b.ctx);
  return 0;
}
