/* Writing a set of points: see points_file.h. */
#include "points_file.h"

#include "errors.h"
#include "signals.h"
#include "sink/file_sink.h"

#include <stdio.h>
#include <string.h>

points_format points_format_of(const char *path) {
  static const char *const endings[] = {[POINTS_NPY] = ".npy", [POINTS_FBIN] = ".fbin", [POINTS_CSV] = ".csv"};
  const char *ending = strrchr(path, '.');
  for (int format = 0; ending && format < POINTS_UNKNOWN; format++)
    if (strcmp(ending, endings[format]) == 0)
      return (points_format)format;
  return POINTS_UNKNOWN;
}

static int exit_code(points_file *out, kith_status status) {
  return status ? session_fail(&out->session, status, true) : CLI_OK;
}

/* Puts the header there; returns its size, 0 for text. */
static uint64_t make_header(const points_file *out, unsigned char header[KITH_NPY_HEADER_BYTES]) {
  kith_npy_type type = {.descr = out->wide ? "<f8" : "<f4", .n_dims = 2, .dims = {out->n, out->dim}};
  int32_t shape[2] = {(int32_t)out->n, (int32_t)out->dim};
  switch (out->format) {
  case POINTS_NPY:
    kith_npy_header(header, &type);
    return KITH_NPY_HEADER_BYTES;
  case POINTS_FBIN:
    memcpy(header, shape, sizeof shape);
    return sizeof shape;
  default:
    return 0;
  }
}

static kith_status open_output(points_file *out) {
  unsigned char header[KITH_NPY_HEADER_BYTES];
  uint64_t header_bytes = make_header(out, header);
  uint64_t values_bytes = out->n * out->dim * (out->wide ? sizeof(double) : sizeof(float));
  uint64_t expected = out->format == POINTS_CSV ? 0 : header_bytes + values_bytes;
  kith_status status = kith_output_create(out->session.ctx, out->path, &out->output);
  if (!status)
    status = kith_output_open(out->output, KITH_IN_ORDER, expected);
  if (!status)
    status = kith_appender_open(&out->appender, out->output, 0, false);
  return status ? status : kith_appender_append(&out->appender, header, header_bytes);
}

int points_file_create(points_file *out) {
  kith_context_options options = kith_context_options_init();
  options.isa = "scalar"; /* nothing is computed, so KITH_ISA does not matter */
  kith_status status = kith_context_create(&options, &out->session.ctx);
  if (status)
    return exit_code(out, status);
  signals_watch(out->session.ctx);
  return exit_code(out, open_output(out));
}

static kith_status append_text(points_file *out, const double *values, uint64_t count) {
  enum { NUMBER_BYTES = 32 };      /* of at most 17 digits, with sign, point, exponent and what follows */
  int digits = out->wide ? 17 : 9; /* enough to read back the same number */
  for (uint64_t i = 0; i < count; i++) {
    kith_status status = kith_appender_reserve(&out->appender, NUMBER_BYTES);
    if (status)
      return status;
    int length =
        snprintf((char *)kith_appender_end(&out->appender), NUMBER_BYTES, "%.*g%c", digits,
                 out->wide ? values[i] : (double)(float)values[i], (i + 1) % out->dim != 0 ? ',' : '\n');
    out->appender.filled += (size_t)length;
  }
  return KITH_OK;
}

/* Rounds in place: a float32 never overtakes the float64 still to be read. */
static void narrow(double *values, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    float value = (float)values[i];
    memcpy((char *)values + i * sizeof value, &value, sizeof value);
  }
}

int points_file_append(points_file *out, double *values, uint64_t rows) {
  uint64_t count = rows * out->dim;
  if (out->format == POINTS_CSV)
    return exit_code(out, append_text(out, values, count));
  if (!out->wide)
    narrow(values, count);
  return exit_code(
      out, kith_appender_append(&out->appender, values, count * (out->wide ? sizeof(double) : sizeof(float))));
}

int points_file_commit(points_file *out) {
  kith_status status = kith_appender_flush(&out->appender);
  return exit_code(out, status ? status : kith_output_commit(out->output));
}

void points_file_discard(points_file *out) {
  kith_appender_close(&out->appender);
  kith_output_destroy(out->output);
  session_close(&out->session);
  *out = (points_file){0};
}
