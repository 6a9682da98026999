/* A small file that takes the place of another, or none, once it is complete: written under a name of its own
 * in the same folder, then renamed. What is there and no ordinary file (a device, a folder) is never replaced.
 */
#ifndef KITH_BASE_REPLACE_H
#define KITH_BASE_REPLACE_H

#include <stdbool.h>
#include <stdio.h>

enum { KITH_PATH_BYTES = 4096 };

typedef struct kith_replace {
  char path[KITH_PATH_BYTES], fresh[KITH_PATH_BYTES + 8];
  FILE *out; /* NULL: not open */
} kith_replace;

/* 0, or an errno. */
int kith_replace_open(kith_replace *file, const char *path);

/* Puts the file in its place, or, if it is not to be kept, leaves everything as it was. 0, or an errno: where
 * writing has failed before, the one that it left, so set it to 0 before. */
int kith_replace_close(kith_replace *file, bool keep);

#endif
