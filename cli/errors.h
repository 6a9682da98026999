/* How the command fails: one sentence on standard error, and a documented exit code. */
#ifndef KITH_CLI_ERRORS_H
#define KITH_CLI_ERRORS_H

/* Exit codes; scripts rely on them, so they never change. */
enum {
  CLI_OK = 0,
  CLI_FAILED = 1,
  CLI_USAGE = 2,
  CLI_INPUT = 3,
  CLI_OUTPUT = 4,
  CLI_MEMORY = 5,
  CLI_UNSUPPORTED = 6,
  CLI_INTERRUPTED = 130,
  CLI_TERMINATED = 143,
};

/* The same codes in words, for --help and the man page; ends with a NULL meaning. */
typedef struct cli_exit_code {
  int code;
  const char *meaning;
} cli_exit_code;

extern const cli_exit_code CLI_EXIT_CODES[];

/* Prints "kith: " and the sentence as one line, whatever the names in it hold; returns code. */
int cli_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A usage error: the sentence, then where to read on. command may be NULL. Returns CLI_USAGE. */
int cli_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes sure that the descriptors of standard input, output and error are taken. Where the caller closed one,
 * the next file to be opened would get its number, and a message meant for a person would end up in a result.
 */
void cli_open_standard(void);

/* Flushes standard output. A summary that was lost (full disk, closed pipe) is a failure too, since a script
 * may live on it: returns code, or CLI_OUTPUT where code was 0 and the text did not arrive. `written` is NULL,
 * or the file that is complete nevertheless: the message says so. */
int cli_finish_stdout(int code, const char *written);

#endif
