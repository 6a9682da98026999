/* Writing a set of points: .npy (C order), .fbin or .csv, beside the target and renamed when complete. */
#ifndef KITH_CLI_POINTS_FILE_H
#define KITH_CLI_POINTS_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum points_format { POINTS_NPY, POINTS_FBIN, POINTS_CSV, POINTS_UNKNOWN } points_format;

typedef struct points_file {
  const char *path;
  char *temporary; /* NULL once renamed or removed */
  FILE *file;
  points_format format;
  uint64_t n;
  uint32_t dim;
  bool wide; /* float64, not float32 */
} points_file;

/* The format that a name asks for by its ending. */
points_format points_format_of(const char *path);

/* Creates the file under a temporary name: fill path, format, n, dim and wide first. All return an exit code,
 * after saying what was wrong. */
int points_file_create(points_file *out);
int points_file_append(points_file *out, double *values, uint64_t rows); /* spoils values */
int points_file_commit(points_file *out);

/* Removes what was not committed. */
void points_file_discard(points_file *out);

#endif
