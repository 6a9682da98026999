/* The context: see context.h and section 1 of kith.h. */
#include "base/context.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/team.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double REPORT_SECONDS = 0.1;
static const double BUDGET_SHARE = 0.6;

const char *kith_version(void) { return KITH_VERSION; }

const char *kith_status_name(kith_status status) {
  switch (status) {
  case KITH_OK:
    return "KITH_OK";
  case KITH_ERR_ARGUMENT:
    return "KITH_ERR_ARGUMENT";
  case KITH_ERR_MEMORY:
    return "KITH_ERR_MEMORY";
  case KITH_ERR_BUDGET:
    return "KITH_ERR_BUDGET";
  case KITH_ERR_IO:
    return "KITH_ERR_IO";
  case KITH_ERR_FORMAT:
    return "KITH_ERR_FORMAT";
  case KITH_ERR_POINTS:
    return "KITH_ERR_POINTS";
  case KITH_ERR_CANCELLED:
    return "KITH_ERR_CANCELLED";
  case KITH_ERR_UNSUPPORTED:
    return "KITH_ERR_UNSUPPORTED";
  }
  return "KITH_ERR_UNKNOWN";
}

/* The lanes and the sink of one call may fail at the same time. */
static pthread_mutex_t message_lock = PTHREAD_MUTEX_INITIALIZER;

kith_status kith_fail(kith_context *ctx, kith_status status, const char *format, ...) {
  if (!ctx) /* where other arguments are looked at before the context */
    return status;
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&message_lock);
  vsnprintf(ctx->message, sizeof ctx->message, format, arguments);
  pthread_mutex_unlock(&message_lock);
  va_end(arguments);
  return status;
}

void kith_copy_message(const kith_context *ctx, char *out, size_t size) {
  pthread_mutex_lock(&message_lock);
  snprintf(out, size, "%.*s", (int)size - 1, ctx->message);
  pthread_mutex_unlock(&message_lock);
}

/* A number of bytes for people. */
typedef struct size_text {
  char text[24];
} size_text;

static size_text text_of_size(uint64_t bytes) {
  size_text size;
  if (bytes < 1 << 10)
    snprintf(size.text, sizeof size.text, "%u B", (unsigned)bytes);
  else if (bytes < 1 << 20)
    snprintf(size.text, sizeof size.text, "%.4g KiB", (double)bytes / (1 << 10));
  else
    snprintf(size.text, sizeof size.text, "%.4g MiB", (double)bytes / (1 << 20));
  return size;
}

kith_status kith_fail_memory(kith_context *ctx, uint64_t bytes, const char *what) {
  uint64_t left = kith_memory_left(&ctx->memory);
  if (bytes > left)
    return kith_fail(ctx, KITH_ERR_BUDGET,
                     "%s needs %s, but only %s of the memory budget of %s are left; allow more memory", what,
                     text_of_size(bytes).text, text_of_size(left).text, text_of_size(ctx->memory.limit).text);
  return kith_fail(ctx, KITH_ERR_MEMORY, "out of memory: the system refused %s for %s",
                   text_of_size(bytes).text, what);
}

kith_context_options kith_context_options_init(void) {
  return (kith_context_options){.struct_size = sizeof(kith_context_options)};
}

static kith_status choose_engine(kith_context *ctx, const char *engine) {
  static const char *const names[] = {"auto", "cpu", "cuda", "hybrid"};
  for (int i = KITH_ENGINE_AUTO; i <= KITH_ENGINE_HYBRID; i++)
    if (strcmp(engine ? engine : "auto", names[i]) == 0) {
      ctx->engine = (kith_engine_choice)i;
      return KITH_OK;
    }
  return kith_fail(ctx, KITH_ERR_ARGUMENT, "unknown engine '%s': auto, cpu, cuda or hybrid", engine);
}

/* "all", or numbers with commas between them. */
static kith_status choose_devices(kith_context *ctx, const kith_context_options *opt) {
  kith_gpus *gpus = &ctx->gpus;
  gpus->memory_bytes = opt->device_memory_bytes;
  if (!opt->devices) {
    gpus->list[gpus->n++].device = opt->device;
    return KITH_OK;
  }
  gpus->all = strcmp(opt->devices, "all") == 0;
  if (gpus->all)
    return KITH_OK;
  const char *at = opt->devices;
  do {
    char *end;
    unsigned long device = isdigit((unsigned char)*at) ? strtoul(at, &end, 10) : 1024;
    if (device > 1023 || (*end && *end != ','))
      return kith_fail(ctx, KITH_ERR_ARGUMENT, "'%s' are no GPUs: numbers from 0, as in 0 or 0,1, or all",
                       opt->devices);
    if (gpus->n == KITH_MAX_GPUS)
      return kith_fail(ctx, KITH_ERR_ARGUMENT, "'%s' are more than %d GPUs", opt->devices, KITH_MAX_GPUS);
    gpus->list[gpus->n++].device = (uint32_t)device;
    at = *end ? end + 1 : NULL;
  } while (at);
  return KITH_OK;
}

static kith_status choose_isa(kith_context *ctx, const char *name) {
  const char *from = name ? "" : "KITH_ISA: ";
  if (!name)
    name = getenv("KITH_ISA");
  if (!name || !*name) {
    ctx->isa = kith_cpu_best_isa();
    return KITH_OK;
  }
  if (!kith_isa_from_name(name, &ctx->isa))
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "%sunknown instruction set '%s': scalar, avx2 or avx512", from,
                     name);
  if (ctx->isa > kith_cpu_best_isa())
    return kith_fail(ctx, KITH_ERR_UNSUPPORTED, "this processor or build lacks %s; the best it has is %s", name,
                     kith_isa_name(kith_cpu_best_isa()));
  return KITH_OK;
}

static kith_status check_options(kith_context *ctx, const kith_context_options *options) {
  enum { MOST_THREADS = 4096 };
  if (options && options->struct_size == 0)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "the options say nothing: begin with kith_context_options_init()");
  if (ctx->threads > MOST_THREADS)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "%u threads are too many: at most %d", ctx->threads, MOST_THREADS);
  return KITH_OK;
}

kith_status kith_context_create(const kith_context_options *options, kith_context **out) {
  kith_context_options opt = kith_context_options_init();
  if (options)
    memcpy(&opt, options, options->struct_size < sizeof opt ? options->struct_size : sizeof opt);
  if (!out)
    return KITH_ERR_ARGUMENT;
  kith_context *ctx = *out = calloc(1, sizeof *ctx);
  if (!ctx)
    return KITH_ERR_MEMORY;
  ctx->threads = opt.threads ? opt.threads : kith_cpu_cores();
  ctx->memory.limit =
      opt.memory_bytes ? opt.memory_bytes : (uint64_t)(BUDGET_SHARE * (double)kith_system_memory_free());
  ctx->progress = opt.progress;
  ctx->progress_user = opt.progress_user;
  kith_status status = check_options(ctx, options);
  if (!status)
    status = choose_engine(ctx, opt.engine);
  if (!status)
    status = choose_devices(ctx, &opt);
  if (!status)
    status = choose_isa(ctx, opt.isa);
  ctx->is_useless = status != KITH_OK;
  return status;
}

void kith_context_destroy(kith_context *ctx) {
  if (!ctx)
    return;
  for (uint32_t i = 0; i < ctx->gpus.n; i++)
    if (ctx->gpus.list[i].session)
      ctx->gpus.close(ctx->gpus.list[i].session);
  kith_team_destroy(ctx);
  free(ctx);
}

const char *kith_message(const kith_context *ctx) {
  return ctx ? ctx->message : "there is no context: kith_context_create() failed or was not called";
}

void kith_cancel(kith_context *ctx) {
  if (ctx)
    atomic_store(&ctx->cancel, true);
}

uint64_t kith_peak_bytes(const kith_context *ctx) { return ctx ? atomic_load(&ctx->memory.peak) : 0; }

const char *kith_isa(const kith_context *ctx) { return ctx ? kith_isa_name(ctx->isa) : ""; }

uint32_t kith_threads(const kith_context *ctx) { return ctx ? ctx->threads : 0; }

kith_status kith_call_begin(kith_context *ctx) {
  if (!ctx || ctx->is_useless) /* its message stays */
    return KITH_ERR_ARGUMENT;
  ctx->message[0] = '\0';
  atomic_store(&ctx->memory.peak, atomic_load(&ctx->memory.used) + atomic_load(&ctx->memory.results));
  ctx->call_began = ctx->last_report = kith_seconds();
  ctx->fraction_base = ctx->fraction_span = ctx->fraction_resumed = 0;
  ctx->stage = "";
  return KITH_OK;
}

void kith_stage_begin(kith_context *ctx, const char *stage, double span) {
  ctx->stage = stage;
  ctx->fraction_base += ctx->fraction_span;
  double left = 1 - ctx->fraction_base;
  ctx->fraction_span = span < left ? span : left;
}

void kith_stage_resume(kith_context *ctx, const char *stage, double span) {
  kith_stage_begin(ctx, stage, span);
  ctx->fraction_resumed += ctx->fraction_span;
}

bool kith_stage_report(kith_context *ctx, double fraction, uint64_t pairs) {
  if (kith_cancelled(ctx))
    return false;
  double now = kith_seconds();
  if (!ctx->progress || now - ctx->last_report < REPORT_SECONDS)
    return true;
  ctx->last_report = now;
  kith_progress progress = {.stage = ctx->stage,
                            .fraction = ctx->fraction_base + ctx->fraction_span * fraction,
                            .pairs = pairs,
                            .seconds = now - ctx->call_began,
                            .resumed = ctx->fraction_resumed};
  if (ctx->progress(ctx->progress_user, &progress) != 0)
    kith_cancel(ctx);
  return !kith_cancelled(ctx);
}

kith_status kith_check_cancel(kith_context *ctx) {
  return kith_cancelled(ctx) ? kith_fail(ctx, KITH_ERR_CANCELLED, "cancelled") : KITH_OK;
}

kith_status kith_call_end(kith_context *ctx, kith_status status) {
  if (status == KITH_ERR_CANCELLED)
    atomic_store(&ctx->cancel, false);
  return status;
}
