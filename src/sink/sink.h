/* Sinks: what becomes of a neighbour table that streams by, batch by batch, in row order.
 *
 * A sink sees: begin (the exact shape of the whole result), take (each batch, in row order), finish (commit).
 * destroy without a successful finish undoes everything: no file remains. All run on one thread at a time.
 * The producer may destroy a sink at any point; destroy(NULL) is legal. */
#ifndef KITH_SINK_SINK_H
#define KITH_SINK_SINK_H

#include "base/context.h"

typedef struct kith_shape {
  uint64_t n_rows;  /* queries */
  uint64_t n_cols;  /* candidates: ids are below this */
  uint64_t n_pairs; /* exact */
  bool distances;
} kith_shape;

typedef struct kith_sink kith_sink;
struct kith_sink {
  kith_status (*begin)(kith_sink *sink, const kith_shape *shape);
  kith_status (*take)(kith_sink *sink, const kith_batch *batch);
  kith_status (*finish)(kith_sink *sink);
  void (*destroy)(kith_sink *sink);
  kith_context *ctx; /* for messages and memory */
};

void kith_sink_destroy(kith_sink *sink);

/* Batches to a user's function. */
kith_status kith_sink_callback(kith_context *ctx, kith_batch_fn take, void *user, kith_sink **out);

/* A neighbour table as .npz, pairs as .npy, pairs as text (.csv .tsv .txt or "-"), chosen by `what` and the
 * ending of `path`; an ending that does not fit `what` is refused. Nothing is created before begin(). */
kith_status kith_sink_file(kith_context *ctx, kith_what what, const char *path, kith_sink **out);

/* Writes an array of n 64-bit counts as .npy (int64). Refuses a path that does not end in .npy. */
kith_status kith_write_counts(kith_context *ctx, const char *path, const uint64_t *counts, uint64_t n);

/* Checks early, before any work, that `path` could be written for `what`: ending, and that its folder exists
 * and is writable. */
kith_status kith_check_output(kith_context *ctx, kith_what what, const char *path);

#endif
