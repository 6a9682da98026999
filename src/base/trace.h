/* The trace: what ran when, for a person to look at (chrome://tracing, Perfetto).
 *
 * A track is a line of the picture: a lane of an engine, a stream, the transfers of a GPU. Events are kept in
 * memory of the context, up to a limit, while a call that is to be traced runs, and written when it ends.
 * Without a trace all of this does nothing. Thread-safe, but for open and close. */
#ifndef KITH_BASE_TRACE_H
#define KITH_BASE_TRACE_H

#include "base/context.h"

typedef struct kith_trace_event {
  uint32_t track;
  const char *name;
  double began, ended;
  uint64_t queries, candidates, pairs;
} kith_trace_event;

/* Begins a trace that is to be written to `path`; NULL: none. */
kith_status kith_trace_open(kith_context *ctx, const char *path);

/* n tracks with a name, the same if it is asked for twice; returns the number of the first. */
uint32_t kith_trace_tracks(kith_context *ctx, const char *name, uint32_t n);

void kith_trace_add(kith_context *ctx, const kith_trace_event *event);

/* Writes the trace if the call has succeeded (status is KITH_OK), and releases it. */
kith_status kith_trace_close(kith_context *ctx, kith_status status);

#endif
