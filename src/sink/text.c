/* Pairs as lines of text: "i,j" or "i,j,distance".
 *
 *   .csv   commas    a first line "i,j" or "i,j,distance": what spreadsheets and pandas.read_csv expect
 *   .tsv   tabs      the same first line
 *   .txt   blanks    no first line: what numpy.loadtxt, gnuplot and awk expect
 *   "-"    commas    no first line, for pipes: `kith ... | sort | uniq`, `wc -l` counts pairs
 *
 * Distances have the fewest digits that read back exactly; the decimal point is a point in every locale. */
#include "sink/decimal.h"
#include "sink/file_sink.h"

#include <string.h>

enum { LINE_BYTES = 3 * KITH_DECIMAL_BYTES };

typedef struct pairs_text {
  kith_file_sink file;
  kith_appender appender;
  kith_text_style style;
} pairs_text;

static kith_status text_begin(kith_sink *sink, const kith_shape *shape) {
  pairs_text *self = (pairs_text *)sink;
  kith_status status = kith_file_sink_begin(&self->file, shape, KITH_IN_ORDER, 0);
  if (!status)
    status = kith_file_sink_region(&self->file, &self->appender, 0, false);
  if (status || !self->style.header)
    return status;
  char header[] = "i,j,distance\n";
  header[1] = header[3] = self->style.separator;
  if (!shape->distances)
    strcpy(header + 3, "\n");
  return kith_appender_append(&self->appender, header, strlen(header));
}

/* The lines of the `at`-th row of the batch. Its number is formatted once and copied as a whole block,
 * whose tail the next number overwrites. */
static kith_status append_row(pairs_text *self, const kith_batch *batch, uint64_t at) {
  const char separator = self->style.separator;
  const double *distances = self->file.shape.distances ? batch->distances : NULL;
  char prefix[KITH_DECIMAL_BYTES] = {0};
  char *end = kith_decimal_integer(prefix, batch->first_row + at);
  *end++ = separator;
  size_t prefix_length = (size_t)(end - prefix);
  for (uint64_t k = batch->offsets[at]; k < batch->offsets[at + 1]; k++) {
    kith_status status = kith_appender_reserve(&self->appender, LINE_BYTES);
    if (status)
      return status;
    char *line = (char *)kith_appender_end(&self->appender), *text = line + prefix_length;
    memcpy(line, prefix, sizeof prefix);
    text = kith_decimal_integer(text, batch->neighbors[k]);
    if (distances) {
      *text++ = separator;
      text = kith_decimal_double(text, distances[k]);
    }
    *text++ = '\n';
    self->appender.filled += (size_t)(text - line);
  }
  return KITH_OK;
}

static kith_status text_take(kith_sink *sink, const kith_batch *batch) {
  pairs_text *self = (pairs_text *)sink;
  kith_status status = kith_file_sink_count(&self->file, batch);
  for (uint64_t r = 0; !status && r < batch->n_rows; r++)
    if (batch->offsets[r + 1] > batch->offsets[r])
      status = append_row(self, batch, r);
  return status;
}

static kith_status text_finish(kith_sink *sink) {
  pairs_text *self = (pairs_text *)sink;
  kith_status status = kith_appender_flush(&self->appender);
  return status ? status : kith_file_sink_commit(&self->file);
}

static void text_destroy(kith_sink *sink) {
  pairs_text *self = (pairs_text *)sink;
  kith_appender_close(&self->appender);
  kith_file_sink_destroy(&self->file);
}

kith_status kith_sink_pairs_text(kith_context *ctx, const char *path, kith_text_style style, kith_sink **out) {
  static const kith_sink CALLS = {
      .begin = text_begin, .take = text_take, .finish = text_finish, .destroy = text_destroy};
  kith_status status = kith_file_sink_create(ctx, path, &CALLS, sizeof(pairs_text), out);
  if (!status)
    ((pairs_text *)*out)->style = style;
  return status;
}
