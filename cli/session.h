/* A session: a context and the files it works on, opened and closed together; used by join, plan and info.
 * gen makes one without files, to fail as the others do. */
#ifndef KITH_CLI_SESSION_H
#define KITH_CLI_SESSION_H

#include "kith.h"
#include "options.h"
#include "progress.h"

#include <stdbool.h>

typedef struct session {
  kith_context *ctx;
  kith_file *file_a, *file_b;
  const kith_points *a, *b;  /* b is NULL where one set is joined with itself */
  struct space_parts *space; /* the box and the radii, if there are any (space.h) */
  const cli_options *options;
  progress_line progress;
  const char *checkpoint; /* where the running join is recorded, or NULL */
  double began, load_seconds;
} session;

/* Seconds on a clock that never jumps. */
double session_clock(void);

/* Opens path_a, and path_b unless NULL. Returns an exit code, after saying what was wrong; close the session
 * in either case. */
int session_open(session *s, const cli_options *options, const char *path_a, const char *path_b);
void session_close(session *s);

/* Whether the result itself goes to standard output. */
bool session_writes_stdout(const cli_options *options);

/* The exit code for a status; writing: what failed was to be written, not read. */
int session_exit_code(kith_status status, bool writing);

/* What to call an open file in a message. */
const char *session_file_name(const kith_file *file);

/* Reports a failed call on the open points; writing: the call was to write a file. Returns the exit code. */
int session_fail(session *s, kith_status status, bool writing);

/* The options of a join, from those of the command. */
kith_join_options session_join_options(const session *s, const cli_options *options);

/* Checks the arguments of a join (from arguments[first]) before anything is opened. Returns an exit code. */
int session_check_join(const cli_options *options, const char *command, int first);

#endif
