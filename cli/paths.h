/* Names of files, compared before anything is written. */
#ifndef KITH_CLI_PATHS_H
#define KITH_CLI_PATHS_H

#include <stdbool.h>

/* Whether writing a file would replace points, whose name may choose a part of a file: "traj.gro[3]". */
bool paths_would_replace(const char *written, const char *points);

/* Whether two files to be written, which may not exist yet, are one. */
bool paths_are_one(const char *a, const char *b);

#endif
