/* Checkpoints: see checkpoint.h. */
#include "sink/checkpoint.h"

#include "base/clock.h"
#include "base/hash.h"
#include "sink/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char LOCK[] = "kith.lock";
static const char STATE[] = "kith.state";
static const char DEGREES[] = "kith.degrees";
static const uint64_t STATE_KIND = 0x6b6974682d636b31; /* changes with the struct below */

typedef struct state {
  uint64_t identity[KITH_IDENTITY_PARTS];
  uint64_t n_pairs; /* in the whole result, once a file has been begun */
  kith_sink_state file;
} state;

struct kith_checkpoint {
  kith_context *ctx;
  int folder, lock;
  kith_record_found found;
  bool is_locked;   /* by this process */
  bool made_folder; /* it is ours to remove */
  bool damaged, live, complete;
  double seconds, saved_at;
  state state;
  char path[]; /* of the folder, as given */
};

/* ---- the folder ---------------------------------------------------------------------------------------- */

static kith_status fail(const kith_checkpoint *c, int error) {
  return kith_fail(c->ctx, KITH_ERR_IO, "%s: the checkpoint cannot be kept there: %s", c->path,
                   strerror(error));
}

/* Takes the lock. A process that ends removes the file, so the one that was locked must still be the one that
 * is there. */
static int take_lock(kith_checkpoint *c) {
  for (;;) {
    struct stat mine, there;
    c->lock = openat(c->folder, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (c->lock < 0 || flock(c->lock, LOCK_EX | LOCK_NB) != 0)
      return errno;
    if (fstat(c->lock, &mine) == 0 && fstatat(c->folder, LOCK, &there, 0) == 0 && mine.st_ino == there.st_ino)
      return 0;
    close(c->lock);
  }
}

/* That the folder was made is written into the lock, for the process that will end the work. */
static int note_folder(kith_checkpoint *c, bool made) {
  struct stat info;
  if (made && write(c->lock, "made\n", 5) != 5)
    return errno;
  c->made_folder = fstat(c->lock, &info) == 0 && info.st_size > 0;
  return 0;
}

static int open_folder(kith_checkpoint *c) {
  bool made = mkdir(c->path, 0777) == 0;
  if (!made && errno != EEXIST)
    return errno;
  c->folder = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (c->folder < 0)
    return errno;
  int error = take_lock(c);
  c->is_locked = error == 0;
  if (error)
    return error;
  kith_record record = {.kind = STATE_KIND, .data = &c->state, .bytes = sizeof c->state};
  c->found = kith_record_read(c->folder, STATE, &record);
  if (c->found != KITH_RECORD_WHOLE)
    c->state = (state){0};
  return note_folder(c, made);
}

kith_status kith_checkpoint_open(kith_context *ctx, const char *folder, kith_checkpoint **out) {
  size_t length = strlen(folder) + 1;
  kith_checkpoint *c = *out = kith_alloc(&ctx->memory, sizeof *c + length);
  if (!c)
    return kith_fail_memory(ctx, sizeof *c + length, "the checkpoint");
  *c = (kith_checkpoint){.ctx = ctx, .folder = -1, .lock = -1};
  memcpy(c->path, folder, length);
  int error = open_folder(c);
  if (!error)
    return KITH_OK;
  kith_status status = error != EWOULDBLOCK
                           ? fail(c, error)
                           : kith_fail(ctx, KITH_ERR_IO,
                                       "%s: another process is at work on this checkpoint; let "
                                       "it end, or name another folder",
                                       folder);
  kith_checkpoint_close(c);
  *out = NULL;
  return status;
}

/* Leaves the folder as it was found, unless there is something in it to go on from. */
void kith_checkpoint_close(kith_checkpoint *c) {
  if (!c)
    return;
  bool is_empty = c->complete || (c->is_locked && !c->live && c->found == KITH_RECORD_NONE);
  if (is_empty) {
    unlinkat(c->folder, LOCK, 0);
    if (c->made_folder)
      rmdir(c->path);
  }
  if (c->lock >= 0)
    close(c->lock);
  if (c->folder >= 0)
    close(c->folder);
  kith_free(c);
}

/* ---- the state ----------------------------------------------------------------------------------------- */

bool kith_checkpoint_is_live(const kith_checkpoint *c) { return c->live; }

bool kith_checkpoint_was_damaged(const kith_checkpoint *c) { return c->damaged; }

uint64_t kith_checkpoint_rows(const kith_checkpoint *c) { return c->state.file.rows; }

uint64_t kith_checkpoint_pairs(const kith_checkpoint *c) { return c->state.file.pairs; }

static kith_status write_state(kith_checkpoint *c) {
  kith_record record = {.kind = STATE_KIND, .data = &c->state, .bytes = sizeof c->state};
  int error = kith_record_write(c->folder, STATE, &record);
  c->saved_at = kith_seconds();
  return error ? fail(c, error) : KITH_OK;
}

/* Names the parts that differ, with commas between; returns how many. */
static int list_differences(const kith_checkpoint *c, const kith_identity *identity, char *text, size_t size) {
  int n = 0;
  size_t used = 0;
  text[0] = '\0';
  for (uint32_t i = 0; i < identity->n; i++) {
    bool follows = i + 1 == identity->n && n > 0;
    if (c->state.identity[i] == identity->hashes[i] || follows)
      continue;
    int length = snprintf(text + used, size - used, "%s%s", n++ ? ", " : "", identity->names[i]);
    used = used + (size_t)length < size ? used + (size_t)length : size - 1;
  }
  return n;
}

kith_status kith_checkpoint_adopt(kith_checkpoint *c, const kith_identity *identity, double seconds) {
  char differences[512];
  if (c->found == KITH_RECORD_WHOLE && list_differences(c, identity, differences, sizeof differences) > 0)
    return kith_fail(c->ctx, KITH_ERR_ARGUMENT,
                     "%s: holds the checkpoint of another join, which differs in: %s; repeat that join, name "
                     "another folder, or remove this one, and the file .NAME.*.part beside that join's output "
                     "NAME",
                     c->path, differences);
  c->damaged = c->found == KITH_RECORD_DAMAGED;
  c->seconds = seconds;
  c->live = true;
  memcpy(c->state.identity, identity->hashes, identity->n * sizeof *identity->hashes);
  return write_state(c);
}

/* A number that only this join has. */
static uint64_t tag_of(const kith_checkpoint *c) {
  return kith_hash(c->state.identity, sizeof c->state.identity, 0);
}

bool kith_checkpoint_load_degrees(const kith_checkpoint *c, uint64_t order, uint64_t *values, uint64_t n) {
  kith_record record = {.kind = tag_of(c) ^ order, .data = values, .bytes = n * sizeof *values};
  return kith_record_read(c->folder, DEGREES, &record) == KITH_RECORD_WHOLE;
}

kith_status kith_checkpoint_save_degrees(kith_checkpoint *c, uint64_t order, uint64_t *values, uint64_t n) {
  kith_record record = {.kind = tag_of(c) ^ order, .data = values, .bytes = n * sizeof *values};
  int error = kith_record_write(c->folder, DEGREES, &record);
  return error ? fail(c, error) : KITH_OK;
}

/* ---- the sink ------------------------------------------------------------------------------------------ */

typedef struct checkpoint_sink {
  kith_sink sink;
  kith_checkpoint *checkpoint;
  kith_sink *file;
  bool in_place; /* an earlier process was killed when the file had its name already */
} checkpoint_sink;

static kith_status save(checkpoint_sink *self) {
  kith_status status = kith_sink_save(self->file, &self->checkpoint->state.file);
  return status ? status : write_state(self->checkpoint);
}

static void begin_anew(kith_checkpoint *c) {
  c->damaged = c->damaged || c->state.file.inode != 0;
  c->state.file = (kith_sink_state){0};
}

static kith_status checkpoint_begin(kith_sink *sink, const kith_shape *shape) {
  checkpoint_sink *self = (checkpoint_sink *)sink;
  kith_checkpoint *c = self->checkpoint;
  if (c->state.n_pairs != shape->n_pairs)
    begin_anew(c);
  c->state.n_pairs = shape->n_pairs;
  kith_sink_keep(self->file, tag_of(c), &c->state.file);
  self->in_place = c->state.file.rows == shape->n_rows && kith_sink_is_in_place(self->file);
  if (self->in_place)
    return KITH_OK;
  kith_status status = self->file->begin(self->file, shape);
  if (status)
    return status;
  if (!kith_sink_resume(self->file, &c->state.file))
    begin_anew(c);
  return save(self);
}

static kith_status checkpoint_take(kith_sink *sink, const kith_batch *batch) {
  checkpoint_sink *self = (checkpoint_sink *)sink;
  kith_status status = self->file->take(self->file, batch);
  if (!status && kith_seconds() - self->checkpoint->saved_at >= self->checkpoint->seconds)
    status = save(self);
  return status;
}

/* All rows are recorded first: should the process be killed when the file has its name, it is known by its
 * inode. */
static kith_status checkpoint_finish(kith_sink *sink) {
  checkpoint_sink *self = (checkpoint_sink *)sink;
  kith_checkpoint *c = self->checkpoint;
  kith_status status = KITH_OK;
  if (!self->in_place && !(status = save(self)))
    status = self->file->finish(self->file);
  if (status)
    return status;
  kith_record_remove(c->folder, DEGREES);
  kith_record_remove(c->folder, STATE);
  c->live = false;
  c->complete = true;
  return KITH_OK;
}

static void checkpoint_destroy(kith_sink *sink) {
  kith_sink_destroy(((checkpoint_sink *)sink)->file);
  kith_free(sink);
}

kith_status kith_sink_checkpoint(kith_checkpoint *checkpoint, kith_sink *file, kith_sink **out) {
  kith_context *ctx = checkpoint->ctx;
  checkpoint_sink *self = kith_alloc(&ctx->memory, sizeof *self);
  *out = NULL;
  if (!self)
    return kith_fail_memory(ctx, sizeof *self, "the checkpoint");
  *self = (checkpoint_sink){.sink = {.begin = checkpoint_begin,
                                     .take = checkpoint_take,
                                     .finish = checkpoint_finish,
                                     .destroy = checkpoint_destroy,
                                     .ctx = ctx},
                            .checkpoint = checkpoint,
                            .file = file};
  *out = &self->sink;
  return KITH_OK;
}
