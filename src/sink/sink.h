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

/* How far a file has come: all that a sink needs to go on with it in another process. */
enum { KITH_SINK_REGIONS = 3 };
typedef struct kith_sink_state {
  uint64_t rows, pairs; /* taken */
  uint64_t inode;       /* of the unfinished file */
  uint64_t bytes;       /* its size */
  struct {
    uint64_t at, crc;
  } regions[KITH_SINK_REGIONS]; /* that grow side by side */
} kith_sink_state;

/* For sinks made by kith_sink_file. keep, before begin: the unfinished file outlives the sink, under a name
 * made of the tag, and is continued from `state` (all zero: begun anew). is_in_place, after keep: whether the
 * file of `state` is complete and has its name already. resume, after begin: true if the sink now stands where
 * `state` says; false, if the file is not what the state says, and the sink at its beginning. save: forces all
 * that was taken to the disk. */
void kith_sink_keep(kith_sink *sink, uint64_t tag, const kith_sink_state *state);
bool kith_sink_is_in_place(const kith_sink *sink);
bool kith_sink_resume(kith_sink *sink, const kith_sink_state *state);
kith_status kith_sink_save(kith_sink *sink, kith_sink_state *state);

/* Writes an array of n 64-bit counts as .npy (int64). Refuses a path that does not end in .npy. */
kith_status kith_write_counts(kith_context *ctx, const char *path, const uint64_t *counts, uint64_t n);

/* Checks early, before any work, that `path` could be written for `what`: ending, and that its folder exists
 * and is writable. */
kith_status kith_check_output(kith_context *ctx, kith_what what, const char *path);

#endif
