/* A folder of its own for every test: what is made there, what must be there, what must not. */
#ifndef KITH_TESTS_SCRATCH_H
#define KITH_TESTS_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the folder, with an empty folder "out" in it, and goes there; the test ends if that cannot be done. */
void scratch_enter(void);

/* Removes it with all that is in it. */
void scratch_leave(void);

/* The number of entries in the folder "out", hidden ones included. */
unsigned scratch_entries(void);

/* Removes them. */
void scratch_sweep(void);

void scratch_write(const char *path, const void *bytes, size_t n);

/* Order matters in a digest. That of a file is 0 if there is none. */
uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t n);
uint64_t digest_file(const char *path);

#endif
