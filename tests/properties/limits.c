/* What happens when a call is stopped, an allocation fails, or memory is short: an honest status, a message,
 * nothing left behind, and a context that answers the next call as if nothing had been. */
#include "support.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Internal, for tests: the n-th allocation from now fails (0: none). */
extern void kith_memory_fail_nth(uint64_t n);

/* ---- every call of the library that allocates, under one signature ---- */

/* What the calls work on, and where files go. */
typedef struct workplace {
  cloud a, b;
  double eps;
  char folder[64];
  char inputs[3][96]; /* files that hold a */
} workplace;

typedef struct outcome {
  kith_status status;
  uint64_t answer; /* pairs, points or so: a number that must be right on success */
} outcome;

typedef struct operation {
  const char *name;
  outcome (*run)(kith_context *ctx, const workplace *w);
  bool is_join;
} operation;

static outcome run_count(kith_context *ctx, const workplace *w) {
  kith_join_options options = kith_join_options_init(w->eps);
  outcome o = {0};
  o.status = kith_join_count(ctx, &w->a.points, NULL, &options, &o.answer, NULL);
  return o;
}

static outcome run_count_two(kith_context *ctx, const workplace *w) {
  kith_join_options options = kith_join_options_init(w->eps);
  outcome o = {0};
  o.status = kith_join_count(ctx, &w->a.points, &w->b.points, &options, &o.answer, NULL);
  return o;
}

static outcome run_degrees(kith_context *ctx, const workplace *w) {
  kith_join_options options = kith_join_options_init(w->eps);
  uint64_t *degrees = calloc(w->a.points.n + 1, sizeof *degrees);
  outcome o = {0};
  o.status = kith_join_degrees(ctx, &w->a.points, NULL, &options, degrees, NULL);
  for (uint64_t i = 0; i < w->a.points.n; i++)
    o.answer += degrees[i];
  free(degrees);
  return o;
}

static outcome run_table(kith_context *ctx, const workplace *w) {
  kith_join_options options = kith_join_options_init(w->eps);
  options.distances = 1;
  kith_table *table;
  outcome o = {.status = kith_join_table(ctx, &w->a.points, NULL, &options, &table, NULL)};
  CHECK(!o.status == !!table, "a table comes with success, and only then");
  o.answer = table ? table->n_pairs : 0;
  kith_table_destroy(table);
  return o;
}

static outcome run_ego_table(kith_context *ctx, const workplace *w) {
  kith_join_options options = kith_join_options_init(w->eps);
  options.algorithm = KITH_ALGORITHM_EGO;
  kith_table *table;
  outcome o = {.status = kith_join_table(ctx, &w->a.points, &w->b.points, &options, &table, NULL)};
  o.answer = table ? table->n_pairs : 0;
  kith_table_destroy(table);
  return o;
}

static outcome run_sorted_table_two(kith_context *ctx, const workplace *w) {
  kith_join_options options = kith_join_options_init(w->eps);
  options.sorted = 1;
  kith_table *table;
  outcome o = {.status = kith_join_table(ctx, &w->a.points, &w->b.points, &options, &table, NULL)};
  o.answer = table ? table->n_pairs : 0;
  kith_table_destroy(table);
  return o;
}

static outcome run_stream(kith_context *ctx, const workplace *w) {
  kith_join_options options = kith_join_options_init(w->eps);
  options.batch_rows = 50;
  collected all = {0};
  outcome o = {.status = kith_join_stream(ctx, &w->a.points, NULL, &options, collect_batch, &all, NULL)};
  o.answer = all.n_pairs;
  collected_free(&all);
  return o;
}

/* The number of entries in the folder for results; removes them. */
static unsigned sweep(const workplace *w) {
  char path[80];
  snprintf(path, sizeof path, "%s/out", w->folder);
  unsigned n = 0;
  DIR *dir = opendir(path);
  for (struct dirent *entry; dir && (entry = readdir(dir));)
    if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2) {
      n++;
      unlinkat(dirfd(dir), entry->d_name, 0);
    }
  if (dir)
    closedir(dir);
  return n;
}

static outcome run_write(kith_context *ctx, const workplace *w, kith_what what, const char *name) {
  char path[96];
  snprintf(path, sizeof path, "%s/out/%s", w->folder, name);
  kith_join_options options = kith_join_options_init(w->eps);
  kith_join_report report = kith_join_report_init();
  outcome o = {.status = kith_join_write(ctx, &w->a.points, NULL, &options, what, path, &report)};
  struct stat info;
  CHECK((stat(path, &info) == 0) == (o.status == KITH_OK), "%s is there after success, and only then", name);
  CHECK(sweep(w) == (o.status == KITH_OK), "nothing but %s is left behind", name);
  o.answer = report.pairs;
  return o;
}

static outcome run_write_degrees(kith_context *ctx, const workplace *w) {
  return run_write(ctx, w, KITH_DEGREES, "degrees.npy");
}

static outcome run_write_neighbors(kith_context *ctx, const workplace *w) {
  return run_write(ctx, w, KITH_NEIGHBORS, "neighbors.npz");
}

static outcome run_write_pairs(kith_context *ctx, const workplace *w) {
  return run_write(ctx, w, KITH_PAIRS, "pairs.npy");
}

static outcome run_write_text(kith_context *ctx, const workplace *w) {
  return run_write(ctx, w, KITH_PAIRS, "pairs.csv");
}

static outcome run_plan(kith_context *ctx, const workplace *w) {
  kith_join_options options = kith_join_options_init(w->eps);
  kith_plan plan = kith_plan_init();
  outcome o = {.status = kith_plan_join(ctx, &w->a.points, NULL, &options, KITH_NEIGHBORS, 1, &plan)};
  o.answer = plan.n_candidates;
  return o;
}

static outcome run_stats(kith_context *ctx, const workplace *w) {
  kith_column_stats stats[16] = {{0}};
  uint64_t invalid = 0;
  outcome o = {.status = kith_points_stats(ctx, &w->a.points, stats, &invalid)};
  o.answer = invalid + (uint64_t)(stats[0].max * 64);
  return o;
}

static outcome run_open(kith_context *ctx, const workplace *w, int input) {
  kith_file *file;
  outcome o = {.status = kith_file_open(ctx, w->inputs[input], NULL, &file)};
  CHECK(!o.status == !!file, "a file comes with success, and only then");
  o.answer = file ? kith_file_points(file)->n : 0;
  kith_file_close(file);
  return o;
}

static outcome run_open_npy(kith_context *ctx, const workplace *w) { return run_open(ctx, w, 0); }
static outcome run_open_text(kith_context *ctx, const workplace *w) { return run_open(ctx, w, 1); }
static outcome run_open_fbin(kith_context *ctx, const workplace *w) { return run_open(ctx, w, 2); }

static const operation OPERATIONS[] = {
    {"count", run_count, true},
    {"count of two sets", run_count_two, true},
    {"degrees", run_degrees, true},
    {"table", run_table, true},
    {"sorted table of two sets", run_sorted_table_two, true},
    {"table in epsilon grid order", run_ego_table, true},
    {"stream", run_stream, true},
    {"write degrees", run_write_degrees, true},
    {"write neighbours", run_write_neighbors, true},
    {"write pairs", run_write_pairs, true},
    {"write text", run_write_text, true},
    {"plan", run_plan, true},
    {"stats", run_stats, false},
    {"open npy", run_open_npy, false},
    {"open text", run_open_text, false},
    {"open fbin", run_open_fbin, false},
};
enum { N_OPERATIONS = sizeof OPERATIONS / sizeof *OPERATIONS };

/* ---- the workplace ---- */

static void write_bytes(const char *path, const char *mode, const void *bytes, size_t n) {
  FILE *file = fopen(path, mode);
  if (!file || (n && fwrite(bytes, 1, n, file) != n) || fclose(file) != 0)
    abort();
}

static void write_npy(const char *path, const cloud *a) {
  char header[129];
  char dict[118];
  snprintf(dict, sizeof dict, "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %u), }",
           (unsigned long long)a->points.n, a->points.dim);
  snprintf(header, sizeof header, "%cNUMPY%c%c%c%c%-117s\n", 0x93, 1, ' ', 118, ' ', dict);
  header[7] = header[9] = 0; /* minor version, and the high byte of the header's length */
  write_bytes(path, "wb", header, 128);
  write_bytes(path, "ab", a->points.data, a->points.n * a->points.dim * sizeof(float));
}

static void write_fbin(const char *path, const cloud *a) {
  int32_t shape[2] = {(int32_t)a->points.n, (int32_t)a->points.dim};
  write_bytes(path, "wb", shape, sizeof shape);
  write_bytes(path, "ab", a->points.data, a->points.n * a->points.dim * sizeof(float));
}

static void write_csv(const char *path, const cloud *a) {
  FILE *file = fopen(path, "w");
  if (!file)
    abort();
  fputs("x,y\n", file);
  for (uint64_t i = 0; i < a->points.n; i++)
    fprintf(file, "%.9g,%.9g\n", cloud_get(a, i, 0), cloud_get(a, i, 1));
  if (fclose(file) != 0)
    abort();
}

static workplace workplace_new(uint64_t n) {
  workplace w = {.a = cloud_random(n, 2, KITH_F32, 1), .b = cloud_random(n / 2, 2, KITH_F64, 2), .eps = 0.1};
  strcpy(w.folder, "/tmp/kith_properties_XXXXXX");
  char out[80];
  if (!mkdtemp(w.folder))
    abort();
  snprintf(out, sizeof out, "%s/out", w.folder);
  if (mkdir(out, 0700) != 0)
    abort();
  static const char *const NAMES[] = {"a.npy", "a.csv", "a.fbin"};
  for (int i = 0; i < 3; i++)
    snprintf(w.inputs[i], sizeof w.inputs[i], "%s/%s", w.folder, NAMES[i]);
  write_npy(w.inputs[0], &w.a);
  write_csv(w.inputs[1], &w.a);
  write_fbin(w.inputs[2], &w.a);
  return w;
}

static void workplace_free(workplace *w) {
  char out[80];
  sweep(w);
  snprintf(out, sizeof out, "%s/out", w->folder);
  rmdir(out);
  for (int i = 0; i < 3; i++)
    unlink(w->inputs[i]);
  CHECK(rmdir(w->folder) == 0, "%s holds files that nobody asked for", w->folder);
  cloud_free(&w->a);
  cloud_free(&w->b);
}

/* ---- no context ---- */

/* A caller that overlooked a failed kith_context_create gets a status and a sentence. */
static void check_no_context(const workplace *w) {
  for (int o = 0; o < N_OPERATIONS; o++) {
    outcome nothing = OPERATIONS[o].run(NULL, w);
    CHECK(nothing.status == KITH_ERR_ARGUMENT, "%s without a context: %s", OPERATIONS[o].name,
          kith_status_name(nothing.status));
  }
  CHECK(*kith_message(NULL), "no context has a sentence");
  CHECK(kith_peak_bytes(NULL) == 0 && kith_threads(NULL) == 0 && !*kith_isa(NULL), "no context uses nothing");
  CHECK(kith_context_create(NULL, NULL) == KITH_ERR_ARGUMENT, "no place for a context");
  kith_cancel(NULL);
  kith_context_destroy(NULL);
}

/* The same where there is nothing else either. */
static void check_nothing(void) {
  CHECK(kith_join_count(NULL, NULL, NULL, NULL, NULL, NULL) == KITH_ERR_ARGUMENT, "count of nothing");
  CHECK(kith_join_degrees(NULL, NULL, NULL, NULL, NULL, NULL) == KITH_ERR_ARGUMENT, "degrees of nothing");
  CHECK(kith_join_table(NULL, NULL, NULL, NULL, NULL, NULL) == KITH_ERR_ARGUMENT, "table of nothing");
  CHECK(kith_join_stream(NULL, NULL, NULL, NULL, NULL, NULL, NULL) == KITH_ERR_ARGUMENT, "stream of nothing");
  CHECK(kith_join_write(NULL, NULL, NULL, NULL, KITH_PAIRS, NULL, NULL) == KITH_ERR_ARGUMENT,
        "a file of nothing");
  CHECK(kith_plan_join(NULL, NULL, NULL, NULL, KITH_COUNT, 0, NULL) == KITH_ERR_ARGUMENT, "plan of nothing");
  CHECK(kith_points_stats(NULL, NULL, NULL, NULL) == KITH_ERR_ARGUMENT, "statistics of nothing");
  CHECK(kith_file_open(NULL, NULL, NULL, NULL) == KITH_ERR_ARGUMENT, "no file");
  CHECK(kith_device_describe(0, NULL) == KITH_ERR_ARGUMENT, "no place for a device");
}

/* A context whose options make no sense is there to say so, whatever it is asked for. */
static void check_useless_context(const workplace *w, kith_context_options options, const char *says) {
  kith_context *ctx;
  CHECK(kith_context_create(&options, &ctx) == KITH_ERR_ARGUMENT, "a context that %s", says);
  for (int o = 0; o < N_OPERATIONS; o++) {
    outcome nothing = OPERATIONS[o].run(ctx, w);
    CHECK(nothing.status == KITH_ERR_ARGUMENT && strstr(kith_message(ctx), says), "%s: %s", OPERATIONS[o].name,
          kith_message(ctx));
  }
  kith_context_destroy(ctx);
}

static void check_useless_contexts(const workplace *w) {
  kith_context_options options = {0};
  check_useless_context(w, options, "say nothing");
  options = kith_context_options_init();
  options.threads = 1000000;
  check_useless_context(w, options, "too many");
  options = kith_context_options_init();
  options.isa = "sse9";
  check_useless_context(w, options, "unknown instruction set");
}

/* Options of a join that were forgotten in part, or never set. */
static void check_useless_options(const workplace *w) {
  static const double box[] = {1, 1, 1};
  kith_context *ctx = context_new(NULL, 1, 64 << 20);
  uint64_t pairs;
  kith_join_options options = {.eps = 0.1};
  CHECK(kith_join_count(ctx, &w->a.points, NULL, &options, &pairs, NULL) == KITH_ERR_ARGUMENT, "a size of 0");
  CHECK(*kith_message(ctx), "a size of 0 has a sentence");
  options = kith_join_options_init(0.1);
  options.box = box;
  CHECK(kith_join_count(ctx, &w->a.points, NULL, &options, &pairs, NULL) == KITH_ERR_ARGUMENT, "n_box is 0");
  CHECK(strstr(kith_message(ctx), "n_box"), "%s", kith_message(ctx));
  options.box = NULL;
  options.n_box = 3;
  CHECK(kith_join_count(ctx, &w->a.points, NULL, &options, &pairs, NULL) == KITH_ERR_ARGUMENT, "no box");
  kith_context_destroy(ctx);
}

/* A file that could not be opened has nothing, and can be closed. */
static void check_no_file(void) {
  double box[9];
  CHECK(!kith_file_points(NULL) && !kith_file_column(NULL, 0) && !*kith_file_path(NULL), "no file has points");
  CHECK(kith_file_box(NULL, box) == 0 && !kith_file_is_mapped(NULL), "no file has a box");
  kith_file_close(NULL);
}

void test_no_context(void) {
  workplace w = workplace_new(200);
  check_no_context(&w);
  check_nothing();
  check_useless_contexts(&w);
  check_useless_options(&w);
  check_no_file();
  workplace_free(&w);
}

/* ---- cancelling ---- */

/* A request made before the call stops that call, and only that one. */
static void check_cancelled_before(const workplace *w) {
  kith_context *ctx = context_new(NULL, 2, 64 << 20);
  for (int o = 0; o < N_OPERATIONS; o++) {
    if (!OPERATIONS[o].is_join)
      continue;
    outcome good = OPERATIONS[o].run(ctx, w);
    kith_cancel(ctx);
    outcome stopped = OPERATIONS[o].run(ctx, w);
    CHECK(stopped.status == KITH_ERR_CANCELLED && *kith_message(ctx), "%s, cancelled before: %s",
          OPERATIONS[o].name, kith_status_name(stopped.status));
    outcome again = OPERATIONS[o].run(ctx, w);
    CHECK(!good.status && !again.status && good.answer == again.answer && !*kith_message(ctx),
          "%s after it was cancelled: %s", OPERATIONS[o].name, kith_status_name(again.status));
  }
  kith_context_destroy(ctx);
}

/* Stops at a given batch: by its return value, or by kith_cancel. */
typedef struct stopper {
  kith_context *ctx;
  uint64_t batches, stop_at;
  bool by_cancel;
} stopper;

static int stop_at_batch(void *user, const kith_batch *batch) {
  stopper *s = user;
  (void)batch;
  if (++s->batches < s->stop_at)
    return 0;
  if (!s->by_cancel)
    return -1;
  kith_cancel(s->ctx);
  return 0;
}

static void check_cancelled_by_batch(const workplace *w) {
  kith_context *ctx = context_new(NULL, 2, 64 << 20);
  kith_join_options options = kith_join_options_init(w->eps);
  options.batch_rows = 4;
  for (uint64_t at = 1; at <= 20; at += 3)
    for (int by_cancel = 0; by_cancel < 2; by_cancel++) {
      stopper s = {.ctx = ctx, .stop_at = at, .by_cancel = by_cancel};
      kith_status status = kith_join_stream(ctx, &w->a.points, NULL, &options, stop_at_batch, &s, NULL);
      CHECK(status == KITH_ERR_CANCELLED && *kith_message(ctx), "stopped by batch %llu: %s",
            (unsigned long long)at, kith_status_name(status));
      CHECK(by_cancel || s.batches == at, "no batch after the one that stopped");
      outcome o = run_count(ctx, w);
      CHECK(!o.status, "count after a stopped stream: %s", kith_status_name(o.status));
    }
  kith_context_destroy(ctx);
}

typedef struct observer {
  kith_progress last;
  unsigned calls;
  unsigned stop_after;
  bool steady; /* fractions within [0, 1] and never falling, known stages, always the same thread */
  pthread_t thread;
} observer;

static int observe(void *user, const kith_progress *progress) {
  static const char *const STAGES[] = {"index", "count", "join", "write"};
  observer *o = user;
  bool known = false;
  for (int s = 0; s < 4; s++)
    known |= strcmp(progress->stage, STAGES[s]) == 0;
  o->steady &= known && progress->fraction >= o->last.fraction && progress->fraction <= 1 &&
               progress->seconds >= o->last.seconds && pthread_equal(o->thread, pthread_self());
  o->last = *progress;
  return ++o->calls >= o->stop_after;
}

/* Progress comes ten times a second: the join must take longer than that, however fast the machine is. */
static void check_cancelled_by_progress(void) {
  observer o = {.stop_after = 2, .steady = true, .thread = pthread_self()};
  kith_context_options options = kith_context_options_init();
  options.threads = 2;
  options.isa = "scalar";
  options.progress = observe;
  options.progress_user = &o;
  kith_context *ctx;
  CHECK(kith_context_create(&options, &ctx) == KITH_OK, "context");
  kith_join_options join = kith_join_options_init(0.4);
  kith_status status = KITH_OK;
  for (uint64_t n = 8000; status == KITH_OK && n < 4000000; n *= 2) {
    cloud a = cloud_random(n, 3, KITH_F64, n);
    uint64_t pairs;
    o.last = (kith_progress){0};
    o.calls = 0;
    status = kith_join_count(ctx, &a.points, NULL, &join, &pairs, NULL);
    cloud_free(&a);
  }
  CHECK(status == KITH_ERR_CANCELLED && o.calls == 2, "stopped by progress: %s", kith_status_name(status));
  CHECK(o.steady, "progress never falls, and comes on the calling thread");
  kith_context_destroy(ctx);
}

void test_cancel(void) {
  workplace w = workplace_new(200);
  check_cancelled_before(&w);
  check_cancelled_by_batch(&w);
  check_cancelled_by_progress();
  workplace_free(&w);
}

/* ---- failing allocations ---- */

/* Every allocation of the call fails once, in turn. Three successes in a row mean that there are no more. */
static void check_failing(kith_context *ctx, const operation *op, const workplace *w) {
  enum { MOST = 1000 };
  kith_memory_fail_nth(0);
  outcome good = op->run(ctx, w);
  CHECK(good.status == KITH_OK, "%s: %s", op->name, kith_message(ctx));
  unsigned successes = 0, failures = 0;
  for (uint64_t n = 1; n < MOST && successes < 3; n++) {
    kith_memory_fail_nth(n);
    outcome o = op->run(ctx, w);
    kith_memory_fail_nth(0);
    successes = o.status == KITH_OK ? successes + 1 : 0;
    failures += o.status != KITH_OK;
    if (o.status == KITH_OK) {
      CHECK(o.answer == good.answer, "%s, allocation %u fails: wrong answer", op->name, (unsigned)n);
      continue;
    }
    CHECK((o.status == KITH_ERR_MEMORY || o.status == KITH_ERR_BUDGET) && *kith_message(ctx),
          "%s, allocation %u fails: %s \"%s\"", op->name, (unsigned)n, kith_status_name(o.status),
          kith_message(ctx));
    o = op->run(ctx, w);
    CHECK(o.status == KITH_OK && o.answer == good.answer, "%s after allocation %u failed: %s", op->name,
          (unsigned)n, kith_status_name(o.status));
  }
  CHECK(successes == 3, "%s does not come to an end", op->name);
  /* npy and fbin are mapped; everything else needs memory that can be refused. */
  CHECK(failures > 0 || strncmp(op->name, "open", 4) == 0, "%s allocates past the budget", op->name);
}

void test_failing_allocations(void) {
  workplace w = workplace_new(150);
  kith_context *ctx = context_new(NULL, 2, 64 << 20);
  for (int o = 0; o < N_OPERATIONS; o++)
    check_failing(ctx, &OPERATIONS[o], &w);
  kith_context_destroy(ctx);
  workplace_free(&w);
}

/* ---- budgets ---- */

/* From a budget that holds nothing to one that holds everything: a right answer, or a refusal that says so. */
static void check_budgets(const operation *op, const workplace *w, uint32_t threads) {
  kith_context *rich = context_new(NULL, threads, 64 << 20);
  outcome good = op->run(rich, w);
  unsigned refused = 0, granted = 0;
  for (double budget = 1 << 10; budget <= 4 << 20; budget *= 1.17) {
    kith_context *poor = context_new(NULL, threads, (uint64_t)budget);
    outcome o = op->run(poor, w);
    bool right = o.status == KITH_OK && o.answer == good.answer;
    CHECK(right || (o.status == KITH_ERR_BUDGET && *kith_message(poor)),
          "%s with %.0f bytes on %u threads: %s \"%s\"", op->name, budget, threads, kith_status_name(o.status),
          kith_message(poor));
    granted += o.status == KITH_OK;
    refused += o.status != KITH_OK;
    kith_context_destroy(poor);
  }
  CHECK(granted > 0 && (refused > 0 || !op->is_join), "%s on %u threads: %u granted, %u refused", op->name,
        threads, granted, refused);
  kith_context_destroy(rich);
}

/* The smallest budget that suffices, and just below it: there a refusal must still name the budget, although
 * what was freed on the way out would nearly have been enough. */
static void check_edge_of_budget(const operation *op, const workplace *w) {
  uint64_t refused = 1 << 10, granted = 4 << 20;
  while (granted - refused > 8) {
    kith_context *ctx = context_new(NULL, 1, (refused + granted) / 2);
    if (op->run(ctx, w).status == KITH_OK)
      granted = (refused + granted) / 2;
    else
      refused = (refused + granted) / 2;
    kith_context_destroy(ctx);
  }
  for (uint64_t less = 8; less < 400; less += 16) {
    kith_context *ctx = context_new(NULL, 1, granted - less);
    kith_status status = op->run(ctx, w).status;
    CHECK(status == KITH_ERR_BUDGET, "%s with %llu bytes too little: %s \"%s\"", op->name,
          (unsigned long long)less, kith_status_name(status), kith_message(ctx));
    kith_context_destroy(ctx);
  }
}

void test_budgets(void) {
  workplace w = workplace_new(200);
  for (int o = 0; o < N_OPERATIONS; o++)
    if (OPERATIONS[o].is_join)
      check_edge_of_budget(&OPERATIONS[o], &w);
  for (int o = 0; o < N_OPERATIONS; o++)
    for (uint32_t threads = 1; threads <= 3; threads += 2)
      check_budgets(&OPERATIONS[o], &w, threads);
  workplace_free(&w);
}

/* ---- a result of ten times the budget ---- */

/* Digests that do not need the table: pairs, and the sum of all neighbours' ids. */
typedef struct digest {
  const uint64_t *degrees;
  uint64_t rows, pairs, id_sum;
  bool lengths_right;
} digest;

static int digest_batch(void *user, const kith_batch *batch) {
  digest *d = user;
  d->lengths_right &= batch->first_row == d->rows;
  for (uint64_t r = 0; r < batch->n_rows; r++)
    d->lengths_right &= batch->offsets[r + 1] - batch->offsets[r] == d->degrees[d->rows + r];
  for (uint64_t k = 0; k < batch->offsets[batch->n_rows]; k++)
    d->id_sum += batch->neighbors[k];
  d->rows += batch->n_rows;
  d->pairs += batch->offsets[batch->n_rows];
  return 0;
}

void test_large_stream(void) {
  enum { N = 12000, BUDGET = 3 << 20 };
  kith_context *ctx = context_new(NULL, 2, BUDGET);
  cloud a = cloud_random(N, 2, KITH_F32, 5);
  kith_join_options options = kith_join_options_init(0.16);
  kith_join_report report = kith_join_report_init();
  uint64_t *degrees = calloc(N, sizeof *degrees);
  digest d = {.degrees = degrees, .lengths_right = true};
  CHECK(kith_join_degrees(ctx, &a.points, NULL, &options, degrees, NULL) == KITH_OK, "%s", kith_message(ctx));
  uint64_t pairs = 0, id_sum = 0; /* the join is symmetric: id i occurs degrees[i] times */
  for (uint64_t i = 0; i < N; i++) {
    pairs += degrees[i];
    id_sum += i * degrees[i];
  }
  CHECK(pairs * sizeof(uint32_t) >= 10 * (uint64_t)BUDGET, "only %llu pairs", (unsigned long long)pairs);
  CHECK(kith_join_stream(ctx, &a.points, NULL, &options, digest_batch, &d, &report) == KITH_OK, "%s",
        kith_message(ctx));
  CHECK(d.lengths_right && d.rows == N && d.pairs == pairs && d.id_sum == id_sum,
        "a stream of 10 x the budget");
  CHECK(report.peak_bytes <= BUDGET && report.batches > 1, "%llu bytes in %llu batches",
        (unsigned long long)report.peak_bytes, (unsigned long long)report.batches);
  free(degrees);
  cloud_free(&a);
  kith_context_destroy(ctx);
}
