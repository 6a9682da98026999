/* The trace: see trace.h. */
#include "base/trace.h"

#include "base/clock.h"
#include "base/replace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MAX_EVENTS = 1 << 16, MAX_NAMES = 64 };

/* Tracks [first, first + n) are lanes of one name. */
typedef struct track_name {
  char name[32];
  uint32_t first, n;
} track_name;

struct kith_trace {
  kith_replace file;
  double began;
  pthread_mutex_t lock;
  track_name names[MAX_NAMES];
  uint32_t n_names, n_tracks;
  uint64_t n_events; /* more than MAX_EVENTS: the rest is left out */
  kith_trace_event events[MAX_EVENTS];
};

static kith_status fail_trace(kith_context *ctx, const kith_trace *trace, int error, const char *after) {
  const char *why = error == EEXIST ? "it is there, and no ordinary file" : strerror(error);
  return kith_fail(ctx, KITH_ERR_IO, "%s: the trace cannot be written: %s%s", trace->file.path, why, after);
}

kith_status kith_trace_open(kith_context *ctx, const char *path) {
  if (!path)
    return KITH_OK;
  kith_trace *trace = kith_alloc(&ctx->memory, sizeof *trace);
  if (!trace)
    return kith_fail_memory(ctx, sizeof *trace, "the trace");
  memset(trace, 0, offsetof(kith_trace, events));
  int error = kith_replace_open(&trace->file, path);
  if (error) {
    kith_status status = fail_trace(ctx, trace, error, "");
    kith_free(trace);
    return status;
  }
  trace->began = kith_seconds();
  pthread_mutex_init(&trace->lock, NULL);
  ctx->trace = trace;
  return KITH_OK;
}

uint32_t kith_trace_tracks(kith_context *ctx, const char *name, uint32_t n) {
  kith_trace *trace = ctx->trace;
  if (!trace)
    return 0;
  pthread_mutex_lock(&trace->lock);
  for (uint32_t i = 0; i < trace->n_names; i++)
    if (trace->names[i].n == n && strcmp(trace->names[i].name, name) == 0) {
      pthread_mutex_unlock(&trace->lock);
      return trace->names[i].first;
    }
  uint32_t first = trace->n_tracks;
  trace->n_tracks += n;
  if (trace->n_names < MAX_NAMES) {
    track_name *names = &trace->names[trace->n_names++];
    *names = (track_name){.first = first, .n = n};
    snprintf(names->name, sizeof names->name, "%s", name);
  }
  pthread_mutex_unlock(&trace->lock);
  return first;
}

void kith_trace_add(kith_context *ctx, const kith_trace_event *event) {
  kith_trace *trace = ctx->trace;
  if (!trace)
    return;
  pthread_mutex_lock(&trace->lock);
  if (trace->n_events < MAX_EVENTS)
    trace->events[trace->n_events] = *event;
  trace->n_events++;
  pthread_mutex_unlock(&trace->lock);
}

static double microseconds(const kith_trace *trace, double when) { return 1e6 * (when - trace->began); }

static void write_names(const kith_trace *trace, FILE *out) {
  for (uint32_t i = 0; i < trace->n_names; i++)
    for (uint32_t k = 0; k < trace->names[i].n; k++) {
      fprintf(out, "{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"%s",
              trace->names[i].first + k, trace->names[i].name);
      if (trace->names[i].n > 1)
        fprintf(out, " lane %u", k);
      fprintf(out, "\"}},\n");
    }
}

static void write_events(const kith_trace *trace, FILE *out) {
  uint64_t n = trace->n_events < MAX_EVENTS ? trace->n_events : MAX_EVENTS;
  for (uint64_t i = 0; i < n; i++) {
    const kith_trace_event *e = &trace->events[i];
    fprintf(out,
            "{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"name\":\"%s\",\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"queries\":%llu,\"candidates\":%llu,\"pairs\":%llu}},\n",
            e->track, e->name, microseconds(trace, e->began), 1e6 * (e->ended - e->began),
            (unsigned long long)e->queries, (unsigned long long)e->candidates, (unsigned long long)e->pairs);
  }
}

static void write_trace(const kith_trace *trace, FILE *out) {
  fprintf(out, "{\"traceEvents\":[\n");
  write_names(trace, out);
  write_events(trace, out);
  fprintf(out,
          "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"kith\"}}\n],\n"
          "\"displayTimeUnit\":\"ms\",\"otherData\":{\"events_left_out\":%llu}}\n",
          (unsigned long long)(trace->n_events > MAX_EVENTS ? trace->n_events - MAX_EVENTS : 0));
}

kith_status kith_trace_close(kith_context *ctx, kith_status status) {
  kith_trace *trace = ctx ? ctx->trace : NULL; /* a call without a context ends here, too */
  if (!trace)
    return status;
  errno = 0; /* of what fails from here on */
  if (!status)
    write_trace(trace, trace->file.out);
  int error = kith_replace_close(&trace->file, !status);
  if (!status && error)
    status = fail_trace(ctx, trace, error, "; the join itself is done");
  ctx->trace = NULL;
  pthread_mutex_destroy(&trace->lock);
  kith_free(trace);
  return status;
}
