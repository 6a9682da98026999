/* Writing a set of points: .npy (C order), .fbin or .csv; all of it, or nothing.
 *
 * kith.h reads points but does not write them, since only gen makes any. So this file, alone in the command,
 * looks inside the library: a file of points is to appear, follow links, be refused and be cancelled exactly as
 * the result of a join does, and src/sink/output.h is the one place that knows how. The command is linked with
 * the static library of the same source, so the two cannot differ in version. */
#ifndef KITH_CLI_POINTS_FILE_H
#define KITH_CLI_POINTS_FILE_H

#include "session.h"
#include "sink/output.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum points_format { POINTS_NPY, POINTS_FBIN, POINTS_CSV, POINTS_UNKNOWN } points_format;

typedef struct points_file {
  const char *path;
  points_format format;
  uint64_t n;
  uint32_t dim;
  bool wide; /* float64, not float32 */
  /* from here on its own */
  session session; /* without files */
  kith_output *output;
  kith_appender appender;
} points_file;

/* The format that a name asks for by its ending. */
points_format points_format_of(const char *path);

/* Opens the file: fill path, format, n, dim and wide first, clear the rest. All return an exit code, after
 * saying what was wrong. */
int points_file_create(points_file *out);
int points_file_append(points_file *out, double *values, uint64_t rows); /* spoils values */
int points_file_commit(points_file *out);

/* Removes what was not committed. */
void points_file_discard(points_file *out);

#endif
