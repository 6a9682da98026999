/* Records: small files that are there as a whole or not at all, and that tell when they are damaged.
 *
 * A record is written under another name, forced to the disk, and renamed; its checksum covers all of it. Only
 * the checkpoint includes this, and output.c for the folder. */
#ifndef KITH_SINK_RECORD_H
#define KITH_SINK_RECORD_H

#include <stdbool.h>
#include <stdint.h>

typedef enum kith_record_found { KITH_RECORD_NONE, KITH_RECORD_DAMAGED, KITH_RECORD_WHOLE } kith_record_found;

/* What a record is of, and what is in it. */
typedef struct kith_record {
  uint64_t kind; /* its layout, and whatever else must be the same for it to be read */
  void *data;
  uint64_t bytes;
} kith_record;

/* Puts a record in place of an older one. Returns 0 or an errno; the older one then stays. */
int kith_record_write(int folder, const char *name, const kith_record *record);

/* Fills record->data; a record of another kind or size counts as damaged. */
kith_record_found kith_record_read(int folder, const char *name, const kith_record *record);

/* Removes a record, and one that was being written when a process was killed. */
void kith_record_remove(int folder, const char *name);

/* Forces the names in a folder to the disk. Returns 0 or an errno. */
int kith_sync_folder(int folder);

#endif
