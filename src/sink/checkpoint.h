/* Checkpoints: a join that writes a file is recorded while it runs, so that the same join, begun again after
 * the process was killed, goes on from there and writes the same bytes.
 *
 * Owns: a folder with
 *   kith.lock      held while a process is at work
 *   kith.state     what join it is, and how far its file has come (kith_sink_state)
 *   kith.degrees   the number of neighbours of every row, as far as they are counted
 * The unfinished file itself lies beside its target, since only there can it be renamed (output.h).
 *
 * Order of things: what the sink has taken is forced to the disk, then a new state takes the place of the old
 * one (record.h). So at any moment there is a state whose file is on the disk, or none. The file gets its name
 * before the state is removed: a state without its file either finds it, complete, under its final name, or is
 * void.
 *
 * May include sinks and base. The operations include it. */
#ifndef KITH_SINK_CHECKPOINT_H
#define KITH_SINK_CHECKPOINT_H

#include "sink/sink.h"

typedef struct kith_checkpoint kith_checkpoint;

/* What makes two joins the same, part by part: a hash each, and how a message calls it. The last part follows
 * from the others, and is named only where it alone differs. */
enum { KITH_IDENTITY_PARTS = 24 };
typedef struct kith_identity {
  uint32_t n;
  const char *names[KITH_IDENTITY_PARTS];
  uint64_t hashes[KITH_IDENTITY_PARTS];
} kith_identity;

/* Takes hold of a folder, which is made if it is not there. Refuses one that another process holds. */
kith_status kith_checkpoint_open(kith_context *ctx, const char *folder, kith_checkpoint **out);

/* Says what join this is, and begins to record it, about every so many seconds. Refuses (KITH_ERR_ARGUMENT) if
 * the folder has the record of another one, and names what differs. */
kith_status kith_checkpoint_adopt(kith_checkpoint *checkpoint, const kith_identity *identity, double seconds);

/* True once it is adopted, and until the file is complete: there is something to go on from. */
bool kith_checkpoint_is_live(const kith_checkpoint *checkpoint);

/* What was found and could not be used: damaged, or without its file. The join began anew. */
bool kith_checkpoint_was_damaged(const kith_checkpoint *checkpoint);

/* Rows and pairs that need not be found again; what the sink expects next, once it has begun. */
uint64_t kith_checkpoint_rows(const kith_checkpoint *checkpoint);
uint64_t kith_checkpoint_pairs(const kith_checkpoint *checkpoint);

/* Wraps a sink made by kith_sink_file, which is destroyed with the new one. The checkpoint outlives both. */
kith_status kith_sink_checkpoint(kith_checkpoint *checkpoint, kith_sink *file, kith_sink **out);

/* Degrees, as far as they are counted: values[0] is how many queries are, in an order that `order` stands for,
 * and values[1 + i] what they add to row i; n values in all. load is false if there are none of that order. */
bool kith_checkpoint_load_degrees(const kith_checkpoint *checkpoint, uint64_t order, uint64_t *values,
                                  uint64_t n);
kith_status kith_checkpoint_save_degrees(kith_checkpoint *checkpoint, uint64_t order, uint64_t *values,
                                         uint64_t n);

/* Lets go of the folder; NULL is legal. */
void kith_checkpoint_close(kith_checkpoint *checkpoint);

#endif
