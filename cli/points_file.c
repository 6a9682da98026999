/* Writing a set of points: see points_file.h. */
#include "points_file.h"

#include "errors.h"
#include "signals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

points_format points_format_of(const char *path) {
  static const char *const endings[] = {[POINTS_NPY] = ".npy", [POINTS_FBIN] = ".fbin", [POINTS_CSV] = ".csv"};
  const char *ending = strrchr(path, '.');
  for (int format = 0; ending && format < POINTS_UNKNOWN; format++)
    if (strcmp(ending, endings[format]) == 0)
      return (points_format)format;
  return POINTS_UNKNOWN;
}

static int fail(const points_file *out) {
  if (signals_caught()) /* a write that was cut short by it */
    return signals_fail();
  return cli_fail(CLI_OUTPUT, "%s: cannot write: %s", out->path, strerror(errno));
}

static void write_npy_header(const points_file *out) {
  char header[128];
  int length =
      snprintf(header, sizeof header, "{'descr': '<%s', 'fortran_order': False, 'shape': (%" PRIu64 ", %u), }",
               out->wide ? "f8" : "f4", out->n, out->dim);
  /* 10 bytes of magic, version and length come first; all of it ends on a multiple of 64 with a newline. */
  int padded = (10 + length + 1 + 63) / 64 * 64 - 10;
  fwrite("\x93NUMPY\x01\x00", 1, 8, out->file);
  fputc(padded & 255, out->file);
  fputc(padded >> 8, out->file);
  fprintf(out->file, "%-*s\n", padded - 1, header);
}

static void write_fbin_header(const points_file *out) {
  int32_t shape[2] = {(int32_t)out->n, (int32_t)out->dim};
  fwrite(shape, sizeof shape[0], 2, out->file);
}

/* mkstemp makes the file private; the result gets the rights that any new file would get. */
static void set_usual_mode(int descriptor) {
  mode_t mask = umask(0);
  umask(mask);
  (void)!fchmod(descriptor, 0666 & ~mask);
}

int points_file_create(points_file *out) {
  struct stat target;
  if (stat(out->path, &target) == 0 && !S_ISREG(target.st_mode))
    return cli_fail(CLI_OUTPUT, "%s: cannot write: it exists and is not a file", out->path);
  if (asprintf(&out->temporary, "%s.XXXXXX", out->path) < 0) {
    out->temporary = NULL;
    return cli_fail(CLI_MEMORY, "out of memory");
  }
  int descriptor = mkstemp(out->temporary);
  if (descriptor < 0) {
    int code = fail(out);
    free(out->temporary);
    out->temporary = NULL;
    return code;
  }
  set_usual_mode(descriptor);
  out->file = fdopen(descriptor, "wb");
  if (!out->file) {
    close(descriptor);
    return fail(out);
  }
  if (out->format == POINTS_NPY)
    write_npy_header(out);
  else if (out->format == POINTS_FBIN)
    write_fbin_header(out);
  return CLI_OK;
}

static void append_text(points_file *out, const double *values, uint64_t rows) {
  int digits = out->wide ? 17 : 9; /* enough to read back the same number */
  for (uint64_t i = 0; i < rows; i++)
    for (uint32_t c = 0; c < out->dim; c++) {
      double value = values[i * out->dim + c];
      fprintf(out->file, "%.*g%c", digits, out->wide ? value : (double)(float)value,
              c + 1 < out->dim ? ',' : '\n');
    }
}

int points_file_append(points_file *out, double *values, uint64_t rows) {
  uint64_t count = rows * out->dim;
  if (out->format == POINTS_CSV) {
    append_text(out, values, rows);
  } else if (out->wide) {
    fwrite(values, sizeof values[0], count, out->file);
  } else {
    /* Rounded in place: a float32 never overtakes the float64 still to be read. */
    for (uint64_t i = 0; i < count; i++) {
      float narrow = (float)values[i];
      memcpy((char *)values + i * sizeof narrow, &narrow, sizeof narrow);
    }
    fwrite(values, sizeof(float), count, out->file);
  }
  return ferror(out->file) ? fail(out) : CLI_OK;
}

int points_file_commit(points_file *out) {
  int closed = fclose(out->file);
  out->file = NULL;
  if (closed != 0 || rename(out->temporary, out->path) != 0)
    return fail(out);
  free(out->temporary);
  out->temporary = NULL;
  return CLI_OK;
}

void points_file_discard(points_file *out) {
  if (out->file)
    fclose(out->file);
  if (out->temporary)
    unlink(out->temporary);
  free(out->temporary);
  *out = (points_file){0};
}
