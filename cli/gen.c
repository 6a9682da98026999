/* kith gen: sets of points to try things on, the same on every machine. */
#include "commands.h"
#include "errors.h"
#include "points_file.h"
#include "random.h"
#include "signals.h"
#include "values.h"

#include <stdlib.h>
#include <string.h>

/* Values made and written at a time. */
enum { CHUNK = 1 << 16 };

static int check_kind(const cli_options *options) {
  if (options->n_arguments < 1)
    return cli_usage("gen", "which points? Write 'kith gen unif', expo, gauss or lattice");
  if (options->n_arguments > 1)
    return cli_usage("gen", "'%s' is not understood: gen takes one kind of points", options->arguments[1]);
  if (value_choice(options->arguments[0], DATA_KINDS) < 0)
    return cli_usage("gen", "unknown kind of points '%s': unif, expo, gauss or lattice", options->arguments[0]);
  return CLI_OK;
}

static int check(const cli_options *options) {
  int code = check_kind(options);
  if (code)
    return code;
  if (!options->n_given)
    return cli_usage("gen", "--n is missing: give the number of points, such as --n 2M");
  if (!options->output)
    return cli_usage("gen", "-o is missing: give the file to write, such as -o points.npy");
  if (options->lambda_given && strcmp(options->arguments[0], "expo") != 0)
    return cli_usage("gen", "--lambda is for expo only");
  points_format format = points_format_of(options->output);
  if (format == POINTS_UNKNOWN)
    return cli_usage("gen", "-o is '%s', but must end in .npy, .fbin or .csv", options->output);
  if (format == POINTS_FBIN && (options->dtype == 1 || options->n > INT32_MAX))
    return cli_usage("gen", "%s: .fbin holds at most 2^31 - 1 points of float32; use .npy", options->output);
  return CLI_OK;
}

static int write_points(const generator *g, points_file *file, double *values) {
  /* Even, so that a chunk begins with a new block of two random values. */
  uint64_t chunk = CHUNK / g->dim / 2 * 2;
  if (chunk < 2)
    chunk = 2;
  for (uint64_t first = 0; first < file->n; first += chunk) {
    uint64_t rows = file->n - first < chunk ? file->n - first : chunk;
    generator_fill(g, first, rows, values);
    int code = points_file_append(file, values, rows);
    if (code)
      return code;
    if (signals_caught())
      return signals_fail(NULL);
  }
  return points_file_commit(file);
}

int command_gen(const cli_options *options) {
  int code = check(options);
  if (code)
    return code;
  generator g = generator_init((data_kind)value_choice(options->arguments[0], DATA_KINDS), options);
  points_file file = {.path = options->output,
                      .format = points_format_of(options->output),
                      .n = options->n,
                      .dim = g.dim,
                      .wide = options->dtype == 1};
  double *values = malloc((CHUNK + 2 * (size_t)g.dim) * sizeof *values);
  code = values ? points_file_create(&file) : cli_fail(CLI_MEMORY, "out of memory");
  if (!code)
    code = write_points(&g, &file, values);
  points_file_discard(&file);
  free(values);
  return code;
}
