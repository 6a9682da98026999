/* The options table and its parser: see options.h. */
#include "options.h"

#include "errors.h"
#include "values.h"

#include <math.h>
#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOINS = COMMAND_JOIN | COMMAND_PLAN, READS = JOINS | COMMAND_INFO, REPORTS = READS | COMMAND_DEVICES };

#define FIELD(name) .field = offsetof(cli_options, name)
#define GIVEN(name) .given_field = offsetof(cli_options, name)

static const char PAIRS[] = "Which pairs";
static const char SPACE[] = "Space";
static const char RESULT[] = "Result";
static const char INPUT[] = "Input";
static const char POINTS[] = "Points";
static const char MACHINE[] = "Machine";
static const char TUNING[] = "Experiments (the result does not depend on them)";

/* One option a paragraph reads better than the formatter's wall. */
/* clang-format off */
const option_entry OPTIONS[] = {
    {JOINS, "eps", 0, "E", OPTION_REAL, FIELD(eps), GIVEN(eps_given), .low = 0, .high = INFINITY,
     .group = PAIRS, .help = "the distance, inclusive; 0 finds duplicates (required)"},
    {JOINS, "eps-column", 0, "C", OPTION_TEXT, FIELD(eps_column), .group = PAIRS,
     .help = "instead: a column of A with each point's own distance"},
    {JOINS, "self", 0, NULL, OPTION_FLAG, FIELD(self), .group = PAIRS,
     .help = "also the pairs (i, i); one set only"},
    {JOINS, "half", 0, NULL, OPTION_FLAG, FIELD(half), .group = PAIRS,
     .help = "every pair once, i < j; one set only"},

    {JOINS, "metric", 0, "M", OPTION_CHOICE, FIELD(metric),
     .choices = "euclidean|manhattan|chebyshev|cosine|angular|haversine", .group = SPACE,
     .help = "euclidean manhattan chebyshev cosine angular haversine"},
    {JOINS, "radius", 0, "R", OPTION_REAL, FIELD(radius), .low = 1e-300, .high = 1e300, .group = SPACE,
     .help = "haversine: eps is in the unit of R (default: in degrees)"},
    {JOINS, "box", 0, "B", OPTION_TEXT, FIELD(box), .group = SPACE,
     .help = "periodic: a length for each column, such as 10,10,0\n"
             "(0: open); triclinic: lengths and angles, such as\n"
             "10,10,10,90,90,60, or three vectors, 9 numbers; or\n"
             "'file': the box that the file carries"},

    {JOINS, "what", 0, "R", OPTION_CHOICE, FIELD(what), .choices = "count|degrees|neighbors|pairs",
     .group = RESULT, .help = "count, degrees, neighbors or pairs (default: count)"},
    {JOINS, "output", 'o', "FILE", OPTION_TEXT, FIELD(output), .group = RESULT,
     .help = "degrees .npy; neighbors .npz; pairs .npy .csv .tsv .txt -"},
    {JOINS, "sorted", 0, NULL, OPTION_FLAG, FIELD(sorted), .group = RESULT,
     .help = "the neighbours of a point in the order of their ids"},
    {JOINS, "distances", 0, NULL, OPTION_FLAG, FIELD(distances), .group = RESULT,
     .help = "the distance with every neighbour or pair"},
    {JOINS, "checkpoint", 0, "D", OPTION_TEXT, FIELD(checkpoint), .group = RESULT,
     .help = "record the work in folder D; the same command resumes it"},
    {JOINS, "checkpoint-seconds", 0, "S", OPTION_REAL, FIELD(checkpoint_seconds), .low = 0.001, .high = 1e9,
     .group = RESULT, .help = "about how often it is recorded (default: 5)"},

    {COMMAND_GEN, "n", 'n', "N", OPTION_COUNT, FIELD(n), GIVEN(n_given), .low = 0, .high = 4294967295.0,
     .group = POINTS, .help = "number of points: 2000000, 2e6 or 2M (required)"},
    {COMMAND_GEN, "dim", 'd', "D", OPTION_COUNT, FIELD(dim), .low = 1, .high = 4096, .group = POINTS,
     .help = "number of dimensions (default: 2)"},
    {COMMAND_GEN, "seed", 0, "S", OPTION_COUNT, FIELD(seed), .low = 0, .high = 18446744073709551615.0,
     .group = POINTS, .help = "the same seed gives the same points (default: 1)"},
    {COMMAND_GEN, "lambda", 0, "L", OPTION_REAL, FIELD(lambda), GIVEN(lambda_given), .low = 0.01, .high = 1e9,
     .group = POINTS, .help = "expo: the rate; the mean is about 1/L (default: 40)"},
    {COMMAND_GEN, "dtype", 0, "T", OPTION_CHOICE, FIELD(dtype), .choices = "f4|f8", .group = POINTS,
     .help = "f4 (float32) or f8 (float64) (default: f4)"},
    {COMMAND_GEN, "output", 'o', "FILE", OPTION_TEXT, FIELD(output), .group = POINTS,
     .help = "the file to write: .npy, .fbin or .csv (required)"},

    {READS, "columns", 0, "C", OPTION_TEXT, FIELD(columns), .group = INPUT,
     .help = "the columns to use: names (ra,dec) or numbers from 0 (0,3)"},
    {JOINS, "columns-b", 0, "C", OPTION_TEXT, FIELD(columns_b), .group = INPUT,
     .help = "the columns of B, where they differ from those of A"},
    {READS, "format", 0, "F", OPTION_CHOICE, FIELD(format), .low = 1, .choices = "npy|text|fbin|gro|xyz|hdf5|fits",
     .group = INPUT, .help = "npy text fbin gro xyz hdf5 fits (default: by the ending)"},
    {JOINS, "skip-invalid", 0, NULL, OPTION_FLAG, FIELD(skip_invalid), .group = INPUT,
     .help = "leave out rows with NaN or infinity, of zeros only\n"
             "(cosine, angular), with a latitude beyond the poles, or\n"
             "too many boxes away (--box); ids stay the same"},

    {JOINS | COMMAND_DEVICES, "threads", 0, "N", OPTION_COUNT, FIELD(threads), .low = 1, .high = 4096, .group = MACHINE,
     .help = "number of threads (default: all cores)"},
    {JOINS, "memory", 0, "SIZE", OPTION_SIZE, FIELD(memory), .low = 1, .high = 1e18, .group = MACHINE,
     .help = "memory to use: 2G, 512MiB (default: 60 % of what is free)"},
    {JOINS, "engine", 0, "E", OPTION_CHOICE, FIELD(engine), .choices = "auto|cpu|cuda|hybrid", .group = MACHINE,
     .help = "auto, cpu, cuda or hybrid (both share the join);\nsee 'kith devices' (default: auto)"},
    {JOINS, "device", 0, "D", OPTION_TEXT, FIELD(device), .group = MACHINE,
     .help = "which GPU, counted from 0 (default: 0); several share a\njoin: 0,1 or all"},
    {JOINS, "device-memory", 0, "SIZE", OPTION_SIZE, FIELD(device_memory), .low = 1, .high = 1e18,
     .group = MACHINE, .help = "memory of the GPU to use (default: what is free)"},

    {JOINS, "partition", 0, "P", OPTION_CHOICE, FIELD(partition),
     .choices = "dynamic|static-queries|static-candidates", .group = MACHINE,
     .help = "how engines share: dynamic, static-queries or\nstatic-candidates (default: dynamic)"},

    {JOINS, "batch-rows", 0, "N", OPTION_COUNT, FIELD(batch_rows), .low = 1, .high = 4294967295.0,
     .group = TUNING, .help = "at most N points a batch when the result is written"},
    {JOINS, "index-dims", 0, "K", OPTION_COUNT, FIELD(index_dims), .low = 1, .high = 8, .group = TUNING,
     .help = "dimensions in the grid, those of largest variance"},
    {JOINS, "cell-side", 0, "S", OPTION_REAL, FIELD(cell_side), .low = 0.25, .high = 64, .group = TUNING,
     .help = "side of the grid's cells, in units of eps"},
    {JOINS, "algorithm", 0, "A", OPTION_CHOICE, FIELD(algorithm), .choices = "auto|grid|ego", .group = TUNING,
     .help = "auto, grid or ego: Super-EGO, on the CPU (default: auto)"},
    {JOINS, "brute", 0, NULL, OPTION_FLAG, FIELD(brute), .group = TUNING,
     .help = "join all with all, in panels, without a grid"},
    {JOINS, "no-reorder", 0, NULL, OPTION_FLAG, FIELD(no_reorder), .group = TUNING,
     .help = "take columns as they come, not by variance (REORDER)"},
    {JOINS, "no-sortidu", 0, NULL, OPTION_FLAG, FIELD(no_sortidu), .group = TUNING,
     .help = "no order by what is not indexed (SORTIDU)"},
    {JOINS, "no-shortc", 0, NULL, OPTION_FLAG, FIELD(no_shortc), .group = TUNING,
     .help = "no early end of a distance (SHORTC)"},
    {JOINS, "kernel", 0, "K", OPTION_CHOICE, FIELD(kernel), .choices = "auto|tile|point", .group = TUNING,
     .help = "on a GPU: auto, tile or point (default: auto)"},
    {JOINS, "cells", 0, "P", OPTION_CHOICE, FIELD(cells), .choices = "full|unicomp|lid-unicomp",
     .group = TUNING, .help = "point: full, unicomp or lid-unicomp (default: full)"},
    {JOINS, "order", 0, "O", OPTION_CHOICE, FIELD(order), .choices = "input|workload|queue", .group = TUNING,
     .help = "point: input, workload or queue (default: input)"},
    {JOINS, "threads-per-query", 0, "N", OPTION_COUNT, FIELD(threads_per_query), .low = 1, .high = 32,
     .group = TUNING, .help = "point: 1, 2, 4, 8, 16 or 32 (default: 1)"},

    {COMMAND_JOIN, "trace", 0, "FILE", OPTION_TEXT, FIELD(trace), .group = "Report",
     .help = "what ran when, for chrome://tracing or Perfetto"},
    {COMMAND_DEVICES, "calibrate", 0, NULL, OPTION_FLAG, FIELD(calibrate), .group = "Report",
     .help = "measure the engines, so that plans can compare them"},
    {REPORTS, "json", 0, NULL, OPTION_FLAG, FIELD(json), .group = "Report",
     .help = "one JSON object instead of text"},
    {JOINS, "quiet", 'q', NULL, OPTION_FLAG, FIELD(quiet), .group = "Report",
     .help = "no progress, no summary; a count is the bare number"},
    {REPORTS | COMMAND_GEN, "help", 'h', NULL, OPTION_FLAG, FIELD(help), .group = "Report",
     .help = "this text"},
    {0},
};
/* clang-format on */

enum { N_OPTIONS = sizeof OPTIONS / sizeof OPTIONS[0] };

static void *field_of(cli_options *options, size_t offset) { return (char *)options + offset; }

/* "one|two|three" as "one, two or three". */
static void list_choices(const char *choices, char *out, size_t size) {
  size_t used = 0;
  for (const char *at = choices; *at && used < size; at += *at == '|') {
    size_t length = strcspn(at, "|");
    const char *before = at == choices ? "" : strchr(at, '|') ? ", " : " or ";
    used += (size_t)snprintf(out + used, size - used, "%s%.*s", before, (int)length, at);
    at += length;
  }
}

static int refuse_range(const char *command, const option_entry *entry, const char *text) {
  if (isinf(entry->high))
    return cli_usage(command, "--%s is '%s', but must be a finite number of at least %g", entry->name, text,
                     entry->low);
  return cli_usage(command, "--%s is '%s', but must be from %.15g to %.15g", entry->name, text, entry->low,
                   entry->high);
}

static int refuse_kind(const char *command, const option_entry *entry, const char *text) {
  static const char *const wanted[] = {
      [OPTION_COUNT] = "a whole number such as 1000, 1e6 or 2M",
      [OPTION_SIZE] = "a size such as 2G, 512MiB or a number of bytes",
      [OPTION_REAL] = "a number",
  };
  return cli_usage(command, "--%s is '%s', which is not %s", entry->name, text, wanted[entry->kind]);
}

static int take_number(cli_options *options, const char *command, const option_entry *entry, const char *text) {
  uint64_t whole = 0;
  double number = 0;
  bool ok = entry->kind == OPTION_COUNT  ? value_count(text, &whole)
            : entry->kind == OPTION_SIZE ? value_size(text, &whole)
                                         : value_real(text, &number);
  if (!ok)
    return refuse_kind(command, entry, text);
  double size = entry->kind == OPTION_REAL ? number : (double)whole;
  if (!(size >= entry->low && size <= entry->high && isfinite(size)))
    return refuse_range(command, entry, text);
  if (entry->kind == OPTION_REAL)
    *(double *)field_of(options, entry->field) = number;
  else
    *(uint64_t *)field_of(options, entry->field) = whole;
  return CLI_OK;
}

static int take_choice(cli_options *options, const char *command, const option_entry *entry, const char *text) {
  int position = value_choice(text, entry->choices);
  if (position < 0) {
    char list[128] = "";
    list_choices(entry->choices, list, sizeof list);
    return cli_usage(command, "--%s is '%s', but must be %s", entry->name, text, list);
  }
  *(int *)field_of(options, entry->field) = position + (int)entry->low;
  return CLI_OK;
}

/* Takes one option; `text` is its argument (owned by this call) or NULL. */
static int take(cli_options *options, const char *command, const option_entry *entry, char *text) {
  int code = CLI_OK;
  if (entry->kind == OPTION_FLAG) {
    *(bool *)field_of(options, entry->field) = true;
  } else if (entry->kind == OPTION_TEXT) {
    char **field = field_of(options, entry->field);
    if (!text || !*text)
      code = cli_usage(command, "--%s is empty", entry->name);
    else {
      free(*field);
      *field = text;
      text = NULL;
    }
  } else if (entry->kind == OPTION_CHOICE) {
    code = take_choice(options, command, entry, text);
  } else {
    code = take_number(options, command, entry, text);
  }
  free(text);
  if (entry->given_field)
    *(bool *)field_of(options, entry->given_field) = true;
  return code;
}

static const char *nearest_option(command_id id, const char *typed) {
  const char *best = NULL;
  unsigned best_distance = 0;
  for (const option_entry *entry = OPTIONS; entry->name; entry++) {
    unsigned distance = value_distance(typed, entry->name);
    if (!(entry->commands & id) || !value_similar(typed, entry->name) || (best && distance >= best_distance))
      continue;
    best = entry->name;
    best_distance = distance;
  }
  return best;
}

static int refuse_option(command_id id, const char *command, poptContext parser, int error) {
  const char *bad = poptBadOption(parser, 0);
  if (error == POPT_ERROR_NOARG)
    return cli_usage(command, "option %s needs a value", bad);
  if (error != POPT_ERROR_BADOPT)
    return cli_usage(command, "option %s: %s", bad, poptStrerror(error));
  char typed[64] = "";
  snprintf(typed, sizeof typed, "%s", bad + strspn(bad, "-"));
  typed[strcspn(typed, "=")] = '\0';
  const char *near = bad[1] == '-' ? nearest_option(id, typed) : NULL;
  if (near)
    return cli_usage(command, "unknown option '%s' (did you mean '--%s'?)", bad, near);
  return cli_usage(command, "unknown option '%s'", bad);
}

static int take_arguments(cli_options *options, const char *command, poptContext parser) {
  const char **arguments = poptGetArgs(parser);
  for (; arguments && *arguments; arguments++) {
    if (options->n_arguments == MAX_ARGUMENTS)
      return cli_usage(command, "too many arguments: '%s' is one more than is understood", *arguments);
    char *copy = strdup(*arguments);
    if (!copy)
      return cli_fail(CLI_MEMORY, "out of memory");
    options->arguments[options->n_arguments++] = copy;
  }
  return CLI_OK;
}

static int take_all(cli_options *options, command_id id, const char *command, poptContext parser) {
  int next;
  while ((next = poptGetNextOpt(parser)) > 0) {
    const option_entry *entry = &OPTIONS[next - 1];
    char *text = entry->argument ? poptGetOptArg(parser) : NULL;
    if (entry->argument && !text)
      return cli_usage(command, "option --%s needs a value", entry->name);
    int code = take(options, command, entry, text);
    if (code || options->help)
      return code;
  }
  if (next < -1)
    return refuse_option(id, command, parser, next);
  return take_arguments(options, command, parser);
}

int options_parse(cli_options *options, command_id id, int argc, const char **argv) {
  *options = (cli_options){.dim = 2, .seed = 1, .lambda = 40};
  struct poptOption table[N_OPTIONS + 1] = {0};
  int used = 0;
  for (int i = 0; OPTIONS[i].name; i++)
    if (OPTIONS[i].commands & id)
      table[used++] = (struct poptOption){.longName = OPTIONS[i].name,
                                          .shortName = OPTIONS[i].letter,
                                          .argInfo = OPTIONS[i].argument ? POPT_ARG_STRING : POPT_ARG_NONE,
                                          .val = i + 1};
  poptContext parser = poptGetContext("kith", argc, argv, table, 0);
  if (!parser)
    return cli_fail(CLI_MEMORY, "out of memory");
  int code = take_all(options, id, argv[0], parser);
  poptFreeContext(parser);
  return code;
}

void options_free(cli_options *options) {
  for (int i = 0; i < options->n_arguments; i++)
    free(options->arguments[i]);
  free(options->output);
  free(options->checkpoint);
  free(options->device);
  free(options->trace);
  free(options->eps_column);
  free(options->box);
  free(options->columns);
  free(options->columns_b);
}
