/* A session: see session.h. */
#include "session.h"

#include "errors.h"
#include "paths.h"
#include "signals.h"
#include "space.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double session_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_stdin(const char *path) { return strcmp(path, "-") == 0; }

bool session_writes_stdout(const cli_options *options) {
  const char *output = options->output;
  return output ? strcmp(output, "-") == 0 || strcmp(output, "/dev/stdout") == 0 : options->what == KITH_PAIRS;
}

const char *session_file_name(const kith_file *file) {
  return is_stdin(kith_file_path(file)) ? "standard input" : kith_file_path(file);
}

int session_exit_code(kith_status status, bool writing) {
  switch (status) {
  case KITH_OK:
    return CLI_OK;
  case KITH_ERR_ARGUMENT:
    return CLI_USAGE;
  case KITH_ERR_FORMAT:
  case KITH_ERR_POINTS:
    return CLI_INPUT;
  case KITH_ERR_IO:
    return writing ? CLI_OUTPUT : CLI_INPUT;
  case KITH_ERR_MEMORY:
  case KITH_ERR_BUDGET:
    return CLI_MEMORY;
  case KITH_ERR_UNSUPPORTED:
    return CLI_UNSUPPORTED;
  case KITH_ERR_CANCELLED:
    return CLI_INTERRUPTED;
  }
  return CLI_FAILED;
}

/* Reports what the library says of a file. Where that is about a column, the library counts those that were
 * chosen; the reader knows those of the file. */
static int fail_file(const session *s, int code, const kith_file *file, const char *says, const char *hint) {
  static const char COLUMN[] = ", column ";
  char name[64];
  char *rest = NULL;
  const char *at = strstr(says, COLUMN);
  unsigned long column = at ? strtoul(at + strlen(COLUMN), &rest, 10) : 0;
  if (!at || rest == at + strlen(COLUMN))
    return cli_fail(code, "%s: %s%s", session_file_name(file), says, hint);
  space_column_name(s, file, (uint32_t)column, name, sizeof name);
  return cli_fail(code, "%s: %.*s%s%s%s%s", session_file_name(file), (int)(at - says), says, COLUMN, name, rest,
                  hint);
}

/* The file that a message is about. The library knows its inputs as a and b; the user knows them as files, and
 * may have given such a name to something else. */
static const kith_file *file_of_message(const session *s, kith_status status, const char *message) {
  const char *folder = s->options ? s->options->checkpoint : NULL;
  const char *trace = s->options ? s->options->trace : NULL;
  if (strncmp(message, "a: ", 3) != 0 && strncmp(message, "b: ", 3) != 0)
    return NULL;
  char name[] = {message[0], '\0'};
  if (status != KITH_ERR_POINTS &&
      ((folder && strcmp(folder, name) == 0) || (trace && strcmp(trace, name) == 0)))
    return NULL;
  return message[0] == 'a' ? s->file_a : s->file_b;
}

int session_fail(session *s, kith_status status, bool writing) {
  progress_clear(&s->progress);
  /* Once a signal came, whatever failed next failed because of it. */
  if (signals_caught() || status == KITH_ERR_CANCELLED)
    return signals_fail(s->checkpoint && access(s->checkpoint, F_OK) == 0 ? s->checkpoint : NULL);
  int code = session_exit_code(status, writing);
  const char *message = s->ctx ? kith_message(s->ctx) : "";
  if (!*message)
    message = status == KITH_ERR_MEMORY ? "out of memory" : kith_status_name(status);
  const kith_file *file = file_of_message(s, status, message);
  const char *hint = status == KITH_ERR_POINTS ? " (--skip-invalid)" : "";
  if (file)
    return fail_file(s, code, file, message + 3, hint);
  return cli_fail(code, "%s%s", message, hint);
}

static kith_status create_context(session *s, const cli_options *options) {
  static const char *const engines[] = {"auto", "cpu", "cuda", "hybrid"};
  /* Pairs on the same terminal as the progress line would be torn apart by it. */
  bool pairs_on_terminal = isatty(STDOUT_FILENO) && session_writes_stdout(options);
  s->progress.wanted = !options->quiet && !pairs_on_terminal && isatty(STDERR_FILENO);
  kith_context_options context = kith_context_options_init();
  context.threads = (uint32_t)options->threads;
  context.memory_bytes = options->memory;
  context.engine = engines[options->engine];
  context.devices = options->device;
  context.device_memory_bytes = options->device_memory;
  context.progress = progress_update;
  context.progress_user = &s->progress;
  return kith_context_create(&context, &s->ctx);
}

static kith_status open_file(session *s, const cli_options *options, const char *path, kith_file **out) {
  static const char *const formats[] = {NULL, "npy", "text", "fbin", "gro", "xyz", "hdf5", "fits"};
  kith_file_options file = kith_file_options_init();
  file.format = formats[options->format];
  file.columns = out == &s->file_b && options->columns_b ? options->columns_b : options->columns;
  char *with_radius = NULL;
  if (out == &s->file_a && file.columns && options->eps_column) {
    with_radius = space_columns(options);
    if (!with_radius)
      return KITH_ERR_MEMORY;
    file.columns = with_radius;
  }
  kith_status status = kith_file_open(s->ctx, path, &file, out);
  free(with_radius);
  return status;
}

int session_open(session *s, const cli_options *options, const char *path_a, const char *path_b) {
  *s = (session){.options = options, .began = session_clock()};
  kith_status status = create_context(s, options);
  if (status)
    return session_fail(s, status, false);
  signals_watch(s->ctx);
  double before = session_clock();
  status = open_file(s, options, path_a, &s->file_a);
  if (!status && path_b)
    status = open_file(s, options, path_b, &s->file_b);
  if (status)
    return session_fail(s, status, false);
  s->load_seconds = session_clock() - before;
  s->a = kith_file_points(s->file_a);
  s->b = path_b ? kith_file_points(s->file_b) : NULL;
  progress_clear(&s->progress);
  return space_open(s, options);
}

void session_close(session *s) {
  signals_watch(NULL);
  progress_clear(&s->progress);
  space_close(s);
  kith_file_close(s->file_a);
  kith_file_close(s->file_b);
  kith_context_destroy(s->ctx);
}

kith_join_options session_join_options(const session *s, const cli_options *options) {
  kith_join_options join = kith_join_options_init(options->eps);
  join.self_pairs = options->self;
  join.half = options->half;
  join.sorted = options->sorted;
  join.distances = options->distances;
  join.skip_invalid = options->skip_invalid;
  join.batch_rows = options->batch_rows;
  join.index_dims = (uint32_t)options->index_dims;
  join.cell_side = options->cell_side;
  join.kernel = (kith_kernel)options->kernel;
  join.cells = (kith_cells)options->cells;
  join.order = (kith_order)options->order;
  join.threads_per_query = (uint32_t)options->threads_per_query;
  space_join_options(s, options, &join);
  join.brute = options->brute;
  join.no_reorder = options->no_reorder;
  join.no_sortidu = options->no_sortidu;
  join.no_shortc = options->no_shortc;
  join.partition = (kith_partition)options->partition;
  join.trace = options->trace;
  join.algorithm = (kith_algorithm)options->algorithm;
  join.checkpoint = options->checkpoint;
  join.checkpoint_seconds = options->checkpoint_seconds;
  return join;
}

/* What is written in batches, to a file, can be recorded. */
static int check_checkpoint(const cli_options *options, const char *command) {
  if (!options->checkpoint)
    return options->checkpoint_seconds > 0 ? cli_usage(command, "--checkpoint-seconds needs --checkpoint")
                                           : CLI_OK;
  if (options->what < KITH_NEIGHBORS)
    return cli_usage(command,
                     "--checkpoint needs --what neighbors or pairs: a count or degrees are not written in "
                     "batches");
  if (!options->output || session_writes_stdout(options))
    return cli_usage(command, "--checkpoint needs a file to write: add -o FILE");
  return CLI_OK;
}

int session_check_join(const cli_options *options, const char *command, int first) {
  int n_files = options->n_arguments - first;
  if (n_files < 1)
    return cli_usage(command, "no file of points given");
  if (n_files > 2)
    return cli_usage(command, "'%s' is one file too many: a join takes one set or two",
                     options->arguments[first + 2]);
  bool two = n_files == 2;
  if (two && is_stdin(options->arguments[first]) && is_stdin(options->arguments[first + 1]))
    return cli_usage(command, "standard input can be read only once, but '-' is given twice");
  if (!options->eps_given && !options->eps_column)
    return cli_usage(command, "--eps is missing: give the distance, such as --eps 0.01");
  if (options->eps_given && options->eps_column)
    return cli_usage(command, "--eps and --eps-column exclude each other");
  if (options->eps_column && options->columns && space_radius_is_listed(options))
    return cli_usage(command, "--eps-column %s is one of the --columns, too: a radius is no coordinate",
                     options->eps_column);
  if (options->radius > 0 && options->metric != KITH_HAVERSINE)
    return cli_usage(command, "--radius needs --metric haversine");
  if (two && (options->self || options->half))
    return cli_usage(command, "--%s is for one set only, but two are given", options->self ? "self" : "half");
  if (options->self && options->half)
    return cli_usage(command, "--self and --half exclude each other");
  if (!two && options->columns_b)
    return cli_usage(command, "--columns-b is given, but there is no second file");
  if (options->what == KITH_COUNT && options->output)
    return cli_usage(command, "-o needs a result to write: add --what degrees, neighbors or pairs");
  for (int i = first; options->output && i < options->n_arguments; i++)
    if (paths_would_replace(options->output, options->arguments[i]))
      return cli_usage(command, "-o %s would replace the points that it is made from", options->output);
  for (int i = first; options->trace && i < options->n_arguments; i++)
    if (paths_would_replace(options->trace, options->arguments[i]))
      return cli_usage(command, "--trace %s would replace the points that are joined", options->trace);
  if (options->trace && options->output && paths_are_one(options->trace, options->output))
    return cli_usage(command, "--trace and -o name the same file, %s", options->trace);
  if (options->trace && is_stdin(options->trace))
    return cli_usage(command, "--trace needs a file to write, not '-'");
  if (options->what < KITH_NEIGHBORS && (options->distances || options->sorted))
    return cli_usage(command, "--%s needs --what neighbors or pairs",
                     options->distances ? "distances" : "sorted");
  return check_checkpoint(options, command);
}
