/* The schedule: hands work to the lanes of engines, and finished batches to a sink.
 *
 * May include engine and sink. The operations include it. */
#ifndef KITH_SCHEDULE_SCHEDULE_H
#define KITH_SCHEDULE_SCHEDULE_H

#include "engine/engine.h"
#include "sink/sink.h"

/* Runs the work over all positions of its range, cut into pieces that the lanes take as they become free.
 * Adds to the tally; reports progress and heeds cancellation. */
kith_status kith_schedule_run(kith_context *ctx, kith_engine *engine, const kith_work *work, kith_tally *tally);

/* A neighbour table on its way to a sink. */
typedef struct kith_stream {
  kith_engine *engine;
  kith_sink *sink;
  kith_work work;          /* KITH_DO_FILL over all positions; window and buffers are set per batch */
  const uint64_t *offsets; /* n_rows + 1, of the whole table */
  uint64_t n_rows;
  uint64_t first_row;   /* where to begin: those before are with the sink already */
  uint64_t batch_rows;  /* at most; 0: as many as fit */
  double batch_seconds; /* about what a batch may take; 0: any */
  bool distances;
} kith_stream;

typedef struct kith_stream_report {
  uint64_t batches;
  double sink_seconds; /* that the schedule waited for the sink */
} kith_stream_report;

/* Fills the table in windows of rows and gives each to the sink, which works on a thread of its own while the
 * next window is filled: two buffers, sized from what is left of the memory budget. Calls take and finish of
 * the sink; the caller has called begin. */
kith_status kith_schedule_stream(kith_context *ctx, const kith_stream *stream, kith_tally *tally,
                                 kith_stream_report *report);

/* Pairs that a batch may hold, for a table of so many; 0 if its longest row does not fit. */
uint64_t kith_stream_pairs_per_batch(const kith_context *ctx, uint64_t pairs, uint64_t longest_row,
                                     bool distances);

#endif
