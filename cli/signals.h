/* Ctrl-C and SIGTERM: ask the running call to stop, once; the second time the system's default ends us. */
#ifndef KITH_CLI_SIGNALS_H
#define KITH_CLI_SIGNALS_H

#include "kith.h"

/* Installs the handlers; also ignores SIGPIPE, so that a closed pipe is an error that we can report. */
void signals_install(void);

/* Names the context whose calls are to be cancelled; NULL when there is none any more. */
void signals_watch(kith_context *ctx);

/* The signal that asked us to stop, or 0. */
int signals_caught(void);

/* Says "interrupted", and where to go on from if `checkpoint` is not NULL. Returns the exit code that belongs
 * to the signal caught. */
int signals_fail(const char *checkpoint);

#endif
