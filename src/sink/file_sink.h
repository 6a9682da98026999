/* What the sinks that write files share: an output, the promised shape, and the check that it is kept.
 *
 * Owns: the table of formats (their constructors). Only files of this folder include it, and the command for
 * the header of an npy file (cli/points_file.c). A format's own struct starts with a kith_file_sink, whose
 * first member is the kith_sink, so that one pointer serves as all three. */
#ifndef KITH_SINK_FILE_SINK_H
#define KITH_SINK_FILE_SINK_H

#include "sink/output.h"
#include "sink/sink.h"

typedef struct kith_file_sink {
  kith_sink sink; /* first */
  kith_output *output;
  kith_shape shape;
  uint64_t rows, pairs; /* taken so far */
  kith_appender *regions[KITH_SINK_REGIONS];
  int n_regions;
} kith_file_sink;

/* Allocates `bytes` (the format's struct, cleared) with the functions of `calls` and an output for `path`. */
kith_status kith_file_sink_create(kith_context *ctx, const char *path, const kith_sink *calls, uint64_t bytes,
                                  kith_sink **out);

/* Keeps the shape and opens the output; access and size as in kith_output_open(). */
kith_status kith_file_sink_begin(kith_file_sink *file, const kith_shape *shape, kith_access access,
                                 uint64_t expected_bytes);

/* Opens an appender of the format's, and remembers it: all that the sink takes must go through these. */
kith_status kith_file_sink_region(kith_file_sink *file, kith_appender *appender, uint64_t at, bool with_crc);

/* Counts a batch in, refusing one that is out of order or exceeds the shape: file sizes and places were laid
 * out from the shape, and a breach would write a corrupt file. */
kith_status kith_file_sink_count(kith_file_sink *file, const kith_batch *batch);

/* Commits, if all rows and pairs have come. */
kith_status kith_file_sink_commit(kith_file_sink *file);

/* Discards what was not committed and frees the sink. */
void kith_file_sink_destroy(kith_file_sink *file);

/* True if all ids fit int32, which scipy prefers. */
bool kith_ids_fit_int32(const kith_shape *shape);

/* The header of an npy array of at most 2 dimensions; always of this size, so that layouts are known early. */
enum { KITH_NPY_HEADER_BYTES = 128 };

typedef struct kith_npy_type {
  const char *descr; /* as numpy writes it: "<i4" */
  int n_dims;
  uint64_t dims[2];
} kith_npy_type;

void kith_npy_header(unsigned char header[KITH_NPY_HEADER_BYTES], const kith_npy_type *type);

/* The formats. */
typedef struct kith_text_style {
  char separator;
  bool header; /* a first line with the names of the columns */
} kith_text_style;

kith_status kith_sink_pairs_npy(kith_context *ctx, const char *path, kith_sink **out);
kith_status kith_sink_table_npz(kith_context *ctx, const char *path, kith_sink **out);
kith_status kith_sink_pairs_text(kith_context *ctx, const char *path, kith_text_style style, kith_sink **out);

/* The format of `what` in a file called `path`. */
typedef enum kith_format {
  KITH_FORMAT_NPY,
  KITH_FORMAT_NPZ,
  KITH_FORMAT_CSV,
  KITH_FORMAT_TSV,
  KITH_FORMAT_TXT,
  KITH_FORMAT_LINES
} kith_format;

kith_status kith_choose_format(kith_context *ctx, kith_what what, const char *path, kith_format *format);

#endif
