/* How fast the engines of this machine are: see calibrate.h and section 6 of kith.h. */
#include "ops/calibrate.h"

#include "base/replace.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the file -------------------------------------------------------------------------------------------- */

enum { PATH_BYTES = KITH_PATH_BYTES, KEY_BYTES = 1024 };

/* $KITH_SPEEDS, else kith/speeds.txt in the user's cache; false: there is no place for it. */
static bool find_path(char *path, bool make_folders) {
  const char *named = getenv("KITH_SPEEDS");
  const char *cache = getenv("XDG_CACHE_HOME");
  const char *home = getenv("HOME");
  if (named && *named)
    return snprintf(path, PATH_BYTES, "%s", named) < PATH_BYTES;
  char folder[PATH_BYTES - 16];
  int length = cache && *cache ? snprintf(folder, sizeof folder, "%s", cache)
               : home && *home ? snprintf(folder, sizeof folder, "%s/.cache", home)
                               : -1;
  if (length < 0 || (size_t)length >= sizeof folder - 8)
    return false;
  if (make_folders)
    mkdir(folder, 0700);
  snprintf(folder + length, sizeof folder - (size_t)length, "/kith");
  if (make_folders)
    mkdir(folder, 0700);
  return snprintf(path, PATH_BYTES, "%s/speeds.txt", folder) < PATH_BYTES;
}

/* What the speeds are those of. */
static void describe_machine(const kith_context *ctx, char *key) {
  int used = snprintf(key, KEY_BYTES, "kith %s, threads %u", kith_version(), ctx->threads);
  kith_device device;
  for (uint32_t i = 0; used < KEY_BYTES && kith_device_describe(i, &device) == KITH_OK; i++)
    used += snprintf(key + used, (size_t)(KEY_BYTES - used), "; %s: %s", device.name, device.description);
}

static void read_speeds(FILE *in, const char *key, kith_speeds *speeds) {
  char line[KEY_BYTES + 2];
  if (!fgets(line, sizeof line, in))
    return;
  line[strcspn(line, "\n")] = '\0';
  if (strcmp(line, key) != 0)
    return;
  kith_speed *s = speeds->list;
  while (speeds->n < KITH_MAX_SPEEDS && fgets(line, sizeof line, in)) {
    unsigned long long points;
    unsigned long long pairs;
    if (sscanf(line, "%15s %u %llu %llu %lf", s->engine, &s->dim, &points, &pairs, &s->seconds) != 5 ||
        !(s->seconds > 0))
      break;
    s->points = points;
    s->pairs = pairs;
    s++;
    speeds->n++;
  }
}

void kith_speeds_load(const kith_context *ctx, kith_speeds *speeds) {
  char path[PATH_BYTES];
  char key[KEY_BYTES];
  *speeds = (kith_speeds){0};
  FILE *in = find_path(path, false) ? fopen(path, "r") : NULL;
  if (!in)
    return;
  describe_machine(ctx, key);
  read_speeds(in, key, speeds);
  fclose(in);
}

static kith_status fail_store(kith_context *ctx, const kith_replace *file, int error) {
  const char *why = error == EEXIST ? "it is there, and no ordinary file" : strerror(error);
  return kith_fail(ctx, KITH_ERR_IO, "%s: the speeds cannot be kept: %s", file->path, why);
}

static kith_status open_store(kith_context *ctx, kith_replace *file) {
  char path[PATH_BYTES];
  if (!find_path(path, true))
    return kith_fail(ctx, KITH_ERR_IO, "there is no folder to keep the speeds in: set HOME or KITH_SPEEDS");
  int error = kith_replace_open(file, path);
  return error ? fail_store(ctx, file, error) : KITH_OK;
}

static void write_speeds(const kith_context *ctx, const kith_speeds *speeds, FILE *out) {
  char key[KEY_BYTES];
  describe_machine(ctx, key);
  fprintf(out, "%s\n", key);
  for (uint32_t i = 0; i < speeds->n; i++) {
    const kith_speed *s = &speeds->list[i];
    fprintf(out, "%s %u %llu %llu %.9g\n", s->engine, s->dim, (unsigned long long)s->points,
            (unsigned long long)s->pairs, s->seconds);
  }
}

/* ---- measuring ------------------------------------------------------------------------------------------- */

enum { REFERENCE_POINTS = 200000, REFERENCES = 5 };

/* Points around a corner, as in the literature (exponential, rate 40), with some hundred neighbours each. */
static const struct reference {
  uint32_t dim;
  double eps;
} references[REFERENCES] = {{2, 0.0006}, {3, 0.0025}, {4, 0.005}, {6, 0.01}, {8, 0.016}};

static void make_points(float *values, uint64_t n) {
  uint64_t state = 1;
  for (uint64_t i = 0; i < n; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    values[i] = (float)(-log1p(-(double)(state >> 11) * 0x1p-53) / 40);
  }
}

/* The fastest of three runs; the first one wakes everything up. */
static kith_status time_table(kith_context *engine, const kith_points *points, double eps, kith_speed *speed) {
  kith_join_options options = kith_join_options_init(eps);
  speed->seconds = INFINITY;
  for (int run = 0; run < 3; run++) {
    kith_join_report report = kith_join_report_init();
    kith_table *table;
    kith_status status = kith_join_table(engine, points, NULL, &options, &table, &report);
    if (status)
      return status;
    kith_table_destroy(table);
    speed->pairs = report.pairs;
    speed->seconds = fmin(speed->seconds, report.seconds_join);
  }
  return KITH_OK;
}

/* What stops the call that measures stops what it measures. */
static int stop_with(void *measuring, const kith_progress *progress) {
  (void)progress;
  return kith_cancelled(measuring);
}

static kith_status measure_engine(kith_context *ctx, const char *name, float *values, kith_speeds *speeds) {
  kith_context_options options = kith_context_options_init();
  options.engine = name;
  options.threads = ctx->threads;
  options.memory_bytes = ctx->memory.limit;
  options.progress = stop_with;
  options.progress_user = ctx;
  kith_context *engine = NULL;
  kith_status status = kith_context_create(&options, &engine);
  for (int r = 0; r < REFERENCES && !status; r++) {
    kith_points points = kith_points_f32(values, REFERENCE_POINTS, references[r].dim);
    kith_speed *speed = &speeds->list[speeds->n++];
    *speed = (kith_speed){.dim = references[r].dim, .points = points.n};
    snprintf(speed->engine, sizeof speed->engine, "%s", name);
    status = kith_cancelled(ctx) ? KITH_ERR_CANCELLED : time_table(engine, &points, references[r].eps, speed);
  }
  if (status)
    kith_fail(ctx, status, "the engine %s: %s", name, kith_message(engine));
  kith_context_destroy(engine);
  return status;
}

static bool has_gpu(void) {
  kith_device device;
  for (uint32_t i = 1; kith_device_describe(i, &device) == KITH_OK; i++)
    if (device.usable)
      return true;
  return false;
}

static kith_status measure_all(kith_context *ctx, kith_speeds *speeds) {
  uint64_t n = (uint64_t)REFERENCE_POINTS * references[REFERENCES - 1].dim;
  float *values = kith_alloc(&ctx->memory, n * sizeof *values);
  if (!values)
    return kith_fail_memory(ctx, n * sizeof *values, "points to measure with");
  make_points(values, n);
  kith_status status = measure_engine(ctx, "cpu", values, speeds);
  if (!status && has_gpu())
    status = measure_engine(ctx, "cuda", values, speeds);
  kith_free(values);
  return status;
}

kith_status kith_calibrate(kith_context *ctx, kith_speeds *out) {
  kith_status status = kith_call_begin(ctx);
  if (status)
    return status;
  kith_speeds speeds = {0};
  kith_replace file = {.out = NULL};
  if ((status = open_store(ctx, &file)))
    return kith_call_end(ctx, status);
  status = measure_all(ctx, &speeds);
  errno = 0; /* of what fails from here on */
  if (!status && file.out)
    write_speeds(ctx, &speeds, file.out);
  int error = kith_replace_close(&file, !status);
  if (!status && error)
    status = fail_store(ctx, &file, error);
  if (!status && out)
    *out = speeds;
  return kith_call_end(ctx, status);
}

/* ---- predicting ------------------------------------------------------------------------------------------ */

static double work_of(double points, double pairs) { return pairs + 8 * points; }

double kith_speeds_predict(const kith_speeds *speeds, const char *engine, uint32_t dim, double points,
                           double pairs) {
  const kith_speed *nearest = NULL;
  for (uint32_t i = 0; i < speeds->n; i++) {
    const kith_speed *s = &speeds->list[i];
    bool nearer = !nearest || abs((int)s->dim - (int)dim) < abs((int)nearest->dim - (int)dim);
    if (strcmp(s->engine, engine) == 0 && nearer)
      nearest = s;
  }
  if (!nearest)
    return 0;
  double reference = work_of((double)nearest->points, (double)nearest->pairs);
  return nearest->seconds * work_of(points, pairs) / reference;
}
