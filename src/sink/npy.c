/* npy files: the header, pairs as rows of an array, an array of counts.
 *
 * Version 1.0 of the format: magic, length, a Python dictionary padded with blanks to 128 bytes (numpy wants a
 * multiple of 64). Everything is known when writing begins, so the files are written from front to back. */
#include "sink/file_sink.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void kith_npy_header(unsigned char header[KITH_NPY_HEADER_BYTES], const kith_npy_type *type) {
  enum { PREAMBLE = 10, DICTIONARY = KITH_NPY_HEADER_BYTES - PREAMBLE };
  static const unsigned char MAGIC[PREAMBLE] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, DICTIONARY, 0};
  char shape[64] = "()", dictionary[DICTIONARY + 1];
  if (type->n_dims == 1)
    snprintf(shape, sizeof shape, "(%" PRIu64 ",)", type->dims[0]);
  else if (type->n_dims == 2)
    snprintf(shape, sizeof shape, "(%" PRIu64 ", %" PRIu64 ")", type->dims[0], type->dims[1]);
  int length = snprintf(dictionary, sizeof dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                        type->descr, shape);
  memcpy(header, MAGIC, PREAMBLE);
  memset(header + PREAMBLE, ' ', DICTIONARY - 1);
  memcpy(header + PREAMBLE, dictionary, (size_t)length);
  header[KITH_NPY_HEADER_BYTES - 1] = '\n';
}

/* One row's neighbours, to be written as pairs. */
typedef struct neighbor_run {
  uint64_t row;
  const uint32_t *neighbors;
  const double *distances;
  size_t count;
} neighbor_run;

typedef struct pairs_npy {
  kith_file_sink file;
  kith_appender appender;
  size_t pair_bytes;
  void (*expand)(void *to, const neighbor_run *run);
} pairs_npy;

static void expand_int32(void *to, const neighbor_run *run) {
  uint64_t *pairs = to; /* one store per pair: row in the lower half, as little-endian hosts have it */
  for (size_t k = 0; k < run->count; k++)
    pairs[k] = run->row | (uint64_t)run->neighbors[k] << 32;
}

static void expand_int64(void *to, const neighbor_run *run) {
  uint64_t *pairs = to;
  for (size_t k = 0; k < run->count; k++) {
    pairs[2 * k] = run->row;
    pairs[2 * k + 1] = run->neighbors[k];
  }
}

static void expand_float64(void *to, const neighbor_run *run) {
  double *pairs = to, row = (double)run->row;
  for (size_t k = 0; k < run->count; k++) {
    pairs[3 * k] = row;
    pairs[3 * k + 1] = run->neighbors[k];
    pairs[3 * k + 2] = run->distances[k];
  }
}

static kith_status append_header(kith_appender *appender, const kith_npy_type *type) {
  unsigned char header[KITH_NPY_HEADER_BYTES];
  kith_npy_header(header, type);
  return kith_appender_append(appender, header, sizeof header);
}

static kith_status pairs_begin(kith_sink *sink, const kith_shape *shape) {
  pairs_npy *self = (pairs_npy *)sink;
  kith_npy_type type = {.n_dims = 2, .dims = {shape->n_pairs, shape->distances ? 3 : 2}};
  if (shape->distances) {
    type.descr = "<f8";
    self->pair_bytes = 24;
    self->expand = expand_float64;
  } else if (kith_ids_fit_int32(shape)) {
    type.descr = "<i4";
    self->pair_bytes = 8;
    self->expand = expand_int32;
  } else {
    type.descr = "<i8";
    self->pair_bytes = 16;
    self->expand = expand_int64;
  }
  uint64_t bytes = KITH_NPY_HEADER_BYTES + shape->n_pairs * self->pair_bytes;
  kith_status status = kith_file_sink_begin(&self->file, shape, KITH_IN_ORDER, bytes);
  if (!status)
    status = kith_file_sink_region(&self->file, &self->appender, 0, false);
  return status ? status : append_header(&self->appender, &type);
}

static kith_status append_run(pairs_npy *self, neighbor_run run, uint64_t left) {
  while (left > 0) {
    kith_status status = kith_appender_reserve(&self->appender, self->pair_bytes);
    if (status)
      return status;
    uint64_t fits = (KITH_APPENDER_BYTES - self->appender.filled) / self->pair_bytes;
    run.count = left < fits ? left : fits;
    self->expand(kith_appender_end(&self->appender), &run);
    self->appender.filled += run.count * self->pair_bytes;
    run.neighbors += run.count;
    run.distances = run.distances ? run.distances + run.count : NULL;
    left -= run.count;
  }
  return KITH_OK;
}

static kith_status pairs_take(kith_sink *sink, const kith_batch *batch) {
  pairs_npy *self = (pairs_npy *)sink;
  kith_status status = kith_file_sink_count(&self->file, batch);
  for (uint64_t r = 0; !status && r < batch->n_rows; r++) {
    uint64_t from = batch->offsets[r], count = batch->offsets[r + 1] - from;
    neighbor_run run = {.row = batch->first_row + r};
    if (count == 0)
      continue;
    run.neighbors = batch->neighbors + from;
    run.distances = batch->distances ? batch->distances + from : NULL;
    status = append_run(self, run, count);
  }
  return status;
}

static kith_status pairs_finish(kith_sink *sink) {
  pairs_npy *self = (pairs_npy *)sink;
  kith_status status = kith_appender_flush(&self->appender);
  return status ? status : kith_file_sink_commit(&self->file);
}

static void pairs_destroy(kith_sink *sink) {
  pairs_npy *self = (pairs_npy *)sink;
  kith_appender_close(&self->appender);
  kith_file_sink_destroy(&self->file);
}

kith_status kith_sink_pairs_npy(kith_context *ctx, const char *path, kith_sink **out) {
  static const kith_sink CALLS = {
      .begin = pairs_begin, .take = pairs_take, .finish = pairs_finish, .destroy = pairs_destroy};
  return kith_file_sink_create(ctx, path, &CALLS, sizeof(pairs_npy), out);
}

kith_status kith_write_counts(kith_context *ctx, const char *path, const uint64_t *counts, uint64_t n) {
  kith_npy_type type = {.descr = "<i8", .n_dims = 1, .dims = {n}};
  kith_output *output = NULL;
  kith_appender appender = {0};
  kith_format format;
  kith_status status = kith_choose_format(ctx, KITH_DEGREES, path, &format);
  if (status)
    return status;
  if ((status = kith_output_create(ctx, path, &output)) ||
      (status = kith_output_open(output, KITH_IN_ORDER, KITH_NPY_HEADER_BYTES + n * sizeof *counts)) ||
      (status = kith_appender_open(&appender, output, 0, false)) ||
      (status = append_header(&appender, &type)) ||
      (status = kith_appender_append(&appender, counts, n * sizeof *counts)) ||
      (status = kith_appender_flush(&appender)))
    goto done;
  status = kith_output_commit(output);
done:
  kith_appender_close(&appender);
  kith_output_destroy(output);
  return status;
}
