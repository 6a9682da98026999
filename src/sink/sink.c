/* Sinks: the callback, the choice of a file's format, and what all file sinks share. See sink.h, file_sink.h.
 *
 * The ending of the name chooses the format. A device or pipe without a known ending takes the first format
 * listed for what is written: degrees as npy, neighbours as npz, pairs as the lines that "-" gets. */
#include "sink/sink.h"

#include "sink/file_sink.h"

#include <string.h>
#include <strings.h>

typedef struct callback_sink {
  kith_sink sink;
  kith_batch_fn take;
  void *user;
} callback_sink;

void kith_sink_destroy(kith_sink *sink) {
  if (sink)
    sink->destroy(sink);
}

static kith_status callback_begin(kith_sink *sink, const kith_shape *shape) {
  (void)sink, (void)shape;
  return KITH_OK;
}

static kith_status callback_take(kith_sink *sink, const kith_batch *batch) {
  callback_sink *self = (callback_sink *)sink;
  if (self->take(self->user, batch) == 0)
    return KITH_OK;
  return kith_fail(sink->ctx, KITH_ERR_CANCELLED, "the callback asked to stop");
}

static kith_status callback_finish(kith_sink *sink) {
  (void)sink;
  return KITH_OK;
}

static void callback_destroy(kith_sink *sink) { kith_free(sink); }

kith_status kith_sink_callback(kith_context *ctx, kith_batch_fn take, void *user, kith_sink **out) {
  *out = NULL;
  callback_sink *self = kith_alloc(&ctx->memory, sizeof *self);
  if (!self)
    return kith_fail_memory(ctx, sizeof *self, "the callback sink");
  *self = (callback_sink){.sink = {.begin = callback_begin,
                                   .take = callback_take,
                                   .finish = callback_finish,
                                   .destroy = callback_destroy,
                                   .ctx = ctx},
                          .take = take,
                          .user = user};
  *out = &self->sink;
  return KITH_OK;
}

kith_status kith_file_sink_create(kith_context *ctx, const char *path, const kith_sink *calls, uint64_t bytes,
                                  kith_sink **out) {
  *out = NULL;
  kith_file_sink *file = kith_alloc(&ctx->memory, bytes);
  if (!file)
    return kith_fail_memory(ctx, bytes, "the file sink");
  memset(file, 0, bytes);
  file->sink = *calls;
  file->sink.ctx = ctx;
  kith_status status = kith_output_create(ctx, path, &file->output);
  if (status)
    kith_free(file);
  else
    *out = &file->sink;
  return status;
}

kith_status kith_file_sink_begin(kith_file_sink *file, const kith_shape *shape, kith_access access,
                                 uint64_t expected_bytes) {
  file->shape = *shape;
  return kith_output_open(file->output, access, expected_bytes);
}

kith_status kith_file_sink_region(kith_file_sink *file, kith_appender *appender, uint64_t at, bool with_crc) {
  file->regions[file->n_regions++] = appender;
  return kith_appender_open(appender, file->output, at, with_crc);
}

void kith_sink_keep(kith_sink *sink, uint64_t tag, const kith_sink_state *state) {
  kith_file_sink *file = (kith_file_sink *)sink;
  kith_kept kept = {.tag = tag, .inode = state->inode, .bytes = state->bytes};
  kith_output_keep(file->output, &kept);
}

bool kith_sink_is_in_place(const kith_sink *sink) {
  return kith_output_is_in_place(((const kith_file_sink *)sink)->output);
}

bool kith_sink_resume(kith_sink *sink, const kith_sink_state *state) {
  kith_file_sink *file = (kith_file_sink *)sink;
  if (!kith_output_is_continued(file->output))
    return false;
  file->rows = state->rows;
  file->pairs = state->pairs;
  for (int i = 0; i < file->n_regions; i++) {
    file->regions[i]->at = state->regions[i].at;
    file->regions[i]->crc = (uint32_t)state->regions[i].crc;
    file->regions[i]->filled = 0;
  }
  return true;
}

kith_status kith_sink_save(kith_sink *sink, kith_sink_state *state) {
  kith_file_sink *file = (kith_file_sink *)sink;
  *state = (kith_sink_state){.rows = file->rows, .pairs = file->pairs};
  for (int i = 0; i < file->n_regions; i++) {
    kith_status status = kith_appender_flush(file->regions[i]);
    if (status)
      return status;
    state->regions[i].at = file->regions[i]->at;
    state->regions[i].crc = file->regions[i]->crc;
  }
  kith_kept kept = {0};
  kith_status status = kith_output_sync(file->output, &kept);
  state->inode = kept.inode;
  state->bytes = kept.bytes;
  return status;
}

kith_status kith_file_sink_count(kith_file_sink *file, const kith_batch *batch) {
  const kith_shape *shape = &file->shape;
  uint64_t pairs = batch->offsets[batch->n_rows];
  bool fits = batch->first_row == file->rows && batch->n_rows <= shape->n_rows - file->rows &&
              pairs <= shape->n_pairs - file->pairs && (!shape->distances || pairs == 0 || batch->distances);
  if (!fits)
    return kith_fail(file->sink.ctx, KITH_ERR_ARGUMENT,
                     "internal error: a batch does not fit the result that was announced");
  file->rows += batch->n_rows;
  file->pairs += pairs;
  return KITH_OK;
}

kith_status kith_file_sink_commit(kith_file_sink *file) {
  if (file->rows != file->shape.n_rows || file->pairs != file->shape.n_pairs)
    return kith_fail(file->sink.ctx, KITH_ERR_ARGUMENT,
                     "internal error: fewer rows or pairs came than were announced");
  return kith_output_commit(file->output);
}

void kith_file_sink_destroy(kith_file_sink *file) {
  kith_output_destroy(file->output);
  kith_free(file);
}

bool kith_ids_fit_int32(const kith_shape *shape) {
  return shape->n_rows <= INT32_MAX && shape->n_cols <= INT32_MAX;
}

typedef struct format_choice {
  kith_what what;
  const char *ending;
  kith_format format;
} format_choice;

static const format_choice CHOICES[] = {
    {KITH_DEGREES, ".npy", KITH_FORMAT_NPY}, {KITH_NEIGHBORS, ".npz", KITH_FORMAT_NPZ},
    {KITH_PAIRS, "-", KITH_FORMAT_LINES},    {KITH_PAIRS, ".npy", KITH_FORMAT_NPY},
    {KITH_PAIRS, ".csv", KITH_FORMAT_CSV},   {KITH_PAIRS, ".tsv", KITH_FORMAT_TSV},
    {KITH_PAIRS, ".txt", KITH_FORMAT_TXT},
};
enum { N_CHOICES = sizeof CHOICES / sizeof *CHOICES };

static const char *ending_of(const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  const char *dot = strrchr(name, '.');
  return dot ? dot : name;
}

static kith_status refuse_ending(kith_context *ctx, kith_what what, const char *path) {
  switch (what) {
  case KITH_DEGREES:
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "degrees are written as .npy; got '%s'", path);
  case KITH_NEIGHBORS:
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "neighbors are written as .npz; got '%s'", path);
  case KITH_PAIRS:
    return kith_fail(ctx, KITH_ERR_ARGUMENT,
                     "pairs are written as .npy, .csv, .tsv or .txt, or as text to '-'; got '%s'", path);
  case KITH_COUNT:
    break;
  }
  return kith_fail(ctx, KITH_ERR_ARGUMENT, "a count is one number: it is printed, not written to '%s'", path);
}

kith_status kith_choose_format(kith_context *ctx, kith_what what, const char *path, kith_format *format) {
  if (!path || !*path)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "the output has no name");
  const char *ending = ending_of(path);
  const format_choice *first = NULL;
  for (int i = 0; i < N_CHOICES; i++) {
    if (CHOICES[i].what != what)
      continue;
    if (!first)
      first = &CHOICES[i];
    if (strcasecmp(ending, CHOICES[i].ending) == 0) {
      *format = CHOICES[i].format;
      return KITH_OK;
    }
  }
  bool nameless = strcmp(path, "-") != 0 && ending[0] != '.' && kith_output_is_device(path);
  if (!first || !nameless)
    return refuse_ending(ctx, what, path);
  *format = first->format;
  return KITH_OK;
}

kith_status kith_check_output(kith_context *ctx, kith_what what, const char *path) {
  kith_format format;
  kith_status status = kith_choose_format(ctx, what, path, &format);
  if (status)
    return status;
  return kith_output_check(ctx, path, format == KITH_FORMAT_NPZ ? KITH_ANYWHERE : KITH_IN_ORDER);
}

kith_status kith_sink_file(kith_context *ctx, kith_what what, const char *path, kith_sink **out) {
  *out = NULL;
  kith_format format;
  kith_status status = kith_choose_format(ctx, what, path, &format);
  if (status)
    return status;
  if (what == KITH_DEGREES)
    return kith_fail(ctx, KITH_ERR_ARGUMENT, "internal error: degrees are not streamed");
  switch (format) {
  case KITH_FORMAT_NPY:
    return kith_sink_pairs_npy(ctx, path, out);
  case KITH_FORMAT_NPZ:
    return kith_sink_table_npz(ctx, path, out);
  case KITH_FORMAT_CSV:
    return kith_sink_pairs_text(ctx, path, (kith_text_style){.separator = ',', .header = true}, out);
  case KITH_FORMAT_TSV:
    return kith_sink_pairs_text(ctx, path, (kith_text_style){.separator = '\t', .header = true}, out);
  case KITH_FORMAT_TXT:
    return kith_sink_pairs_text(ctx, path, (kith_text_style){.separator = ' '}, out);
  case KITH_FORMAT_LINES:
    break;
  }
  return kith_sink_pairs_text(ctx, path, (kith_text_style){.separator = ','}, out);
}
