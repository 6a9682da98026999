/* The progress line: one line on a terminal, redrawn in place, gone when the work is done. */
#ifndef KITH_CLI_PROGRESS_H
#define KITH_CLI_PROGRESS_H

#include "kith.h"

#include <stdbool.h>

typedef struct progress_line {
  bool wanted; /* standard error is a terminal, and nobody asked for quiet */
  bool drawn;  /* there is a line to clear */
  double last; /* when it was drawn last, in the call's seconds */
} progress_line;

/* The library's callback; user is the progress_line. */
int progress_update(void *user, const kith_progress *progress);

/* Clears the line, so that other text can follow. */
void progress_clear(progress_line *line);

#endif
