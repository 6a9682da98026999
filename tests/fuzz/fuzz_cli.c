/* Feeds arbitrary command lines to the command, in this process.
 *
 * The bytes are the arguments behind "kith", one a line. They run in a scratch folder with a file of every
 * format, and are held to small work there: options_parse() is led through here by the linker, which makes
 * numbers small and paths local. Whatever they say, the exit code must be a documented one, a failure must
 * leave no file, and a success no temporary one. Standard input is empty and standard output goes nowhere;
 * -close_fd_mask=2 silences the messages too. */
#include "errors.h"
#include "faults/scratch.h"
#include "fuzz.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARGUMENTS = 64, MOST_POINTS = 200, MOST_DIMENSIONS = 70, MOST_THREADS = 2, MOST_MEMORY = 64 << 20 };

int kith_main(int argc, char **argv); /* the command's own main(), by another name */

static const char *const FILES[] = {"points.csv", "points.npy", "swapped.npy", "points.fbin",
                                    "points.gro", "points.xyz", "points.h5",   "points.fits"};

static void copy_file(const char *name) {
  char path[4096], bytes[1 << 14];
  snprintf(path, sizeof path, "%s/%s", KITH_FUZZ_FILES, name);
  FILE *file = fopen(path, "rb");
  if (!file)
    abort();
  scratch_write(name, bytes, fread(bytes, 1, sizeof bytes, file));
  fclose(file);
}

/* Once in the life of the process. */
static void set_up(void) {
  static int done;
  if (done)
    return;
  done = 1;
  scratch_enter();
  atexit(scratch_leave);
  for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
    copy_file(FILES[i]);
  if (!freopen("/dev/null", "r", stdin) || !freopen("/dev/null", "w", stdout))
    abort();
}

static void hold(uint64_t *value, uint64_t most) { *value = *value == 0 || *value > most ? most : *value; }

/* Inputs are read in the scratch folder only; others could wait for ever, or never end. */
static void keep_local(char *path) {
  if (path[0] == '/' || strstr(path, ".."))
    path[0] = '?';
}

/* Outputs go to the folder "out", whatever folder they name. */
static void redirect(char **output) {
  char *slash = strrchr(*output, '/'), *path;
  if (strcmp(*output, "-") == 0 || strcmp(*output, "/dev/stdout") == 0)
    return;
  if (asprintf(&path, "out/%s", slash ? slash + 1 : *output) < 0)
    abort();
  free(*output);
  *output = path;
}

int __real_options_parse(cli_options *options, command_id id, int argc, const char **argv);
int __wrap_options_parse(cli_options *options, command_id id, int argc, const char **argv);
int __wrap_options_parse(cli_options *options, command_id id, int argc, const char **argv) {
  int code = __real_options_parse(options, id, argc, argv);
  hold(&options->threads, MOST_THREADS);
  hold(&options->memory, MOST_MEMORY);
  hold(&options->n, MOST_POINTS);
  hold(&options->dim, MOST_DIMENSIONS);
  for (int i = 0; i < options->n_arguments; i++)
    keep_local(options->arguments[i]);
  if (options->output)
    redirect(&options->output);
  return code;
}

/* Cuts the text into arguments, in place. */
static int split(char *text, char *argv[MOST_ARGUMENTS + 1]) {
  int argc = 0;
  argv[argc++] = "kith";
  for (char *rest = text, *line; argc < MOST_ARGUMENTS && (line = strsep(&rest, "\n"));)
    argv[argc++] = line;
  argv[argc] = NULL;
  return argc;
}

static int is_documented(int code) {
  for (const cli_exit_code *known = CLI_EXIT_CODES; known->meaning; known++)
    if (known->code == code)
      return 1;
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
  set_up();
  char *text = strndup((const char *)bytes, n), *argv[MOST_ARGUMENTS + 1];
  if (!text)
    abort();
  int argc = split(text, argv);
  int code = kith_main(argc, argv);
  if (!is_documented(code) || scratch_entries() > (code == CLI_OK))
    abort();
  scratch_sweep();
  free(text);
  return 0;
}
