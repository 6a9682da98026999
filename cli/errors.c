/* How the command fails: see errors.h. */
#include "errors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_BYTES = 4096 };

const cli_exit_code CLI_EXIT_CODES[] = {
    {CLI_OK, "success"},
    {CLI_FAILED, "any other failure"},
    {CLI_USAGE, "a bad command, option or argument"},
    {CLI_INPUT, "the input cannot be read, or holds NaN or infinity"},
    {CLI_OUTPUT, "the output, or the report on standard output, cannot be written"},
    {CLI_MEMORY, "the work or its result does not fit the memory allowed"},
    {CLI_UNSUPPORTED, "this build or machine cannot do it"},
    {CLI_INTERRUPTED, "interrupted (Ctrl-C, SIGINT)"},
    {CLI_TERMINATED, "terminated (SIGTERM)"},
    {0, NULL},
};

/* A file name may hold anything; a message is one line and carries no terminal controls. */
static void print_line(const char *sentence, const char *hint) {
  char line[MESSAGE_BYTES + 256];
  int length = snprintf(line, sizeof line, "kith: %s%s", sentence, hint);
  if (length < 0)
    return;
  for (char *at = line; *at; at++)
    if ((unsigned char)*at < ' ' || *at == 127)
      *at = '?';
  fprintf(stderr, "%s\n", line);
}

int cli_fail(int code, const char *format, ...) {
  char sentence[MESSAGE_BYTES];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  print_line(sentence, "");
  return code;
}

int cli_usage(const char *command, const char *format, ...) {
  char sentence[MESSAGE_BYTES], hint[128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  snprintf(hint, sizeof hint, "; try 'kith%s%s --help'", command ? " " : "", command ? command : "");
  print_line(sentence, hint);
  return CLI_USAGE;
}

/* Opened the wrong way round, so that using it is an error, as it is with a closed one. */
static void take_descriptor(int fd, int flags) {
  if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
    (void)!open("/dev/null", flags); /* takes the lowest free number, which is fd */
}

void cli_open_standard(void) {
  take_descriptor(STDIN_FILENO, O_WRONLY);
  take_descriptor(STDOUT_FILENO, O_RDONLY);
  take_descriptor(STDERR_FILENO, O_RDONLY);
}

int cli_finish_stdout(int code, const char *written) {
  errno = 0;
  int lost = fflush(stdout) != 0 || ferror(stdout);
  if (!lost || code != CLI_OK)
    return code;
  const char *why = errno ? strerror(errno) : "write failed";
  if (written)
    return cli_fail(CLI_OUTPUT, "%s is complete, but the report on it was lost: standard output: %s", written,
                    why);
  return cli_fail(CLI_OUTPUT, "cannot write to standard output: %s", why);
}
