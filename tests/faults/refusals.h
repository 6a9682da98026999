/* Stands between the library and the system: counts what is asked for, and refuses one request of them.
 *
 * The linker leads every call of malloc, calloc, realloc, aligned_alloc, strdup, mmap, fopen and pthread_create
 * in the objects of the program here (--wrap: CMakeLists.txt), and the calls that give back what they gave.
 * What HDF5 and CFITSIO ask for themselves is theirs. */
#ifndef KITH_TESTS_REFUSALS_H
#define KITH_TESTS_REFUSALS_H

#include <stdbool.h>
#include <stdint.h>

/* The n-th request from now is refused (0: none), as a system out of memory would. */
void refuse_nth(uint64_t n);

/* Whether that has happened. */
bool has_refused(void);

/* What was given and has not come back. */
typedef struct holdings {
  int64_t blocks, maps, files, threads;
} holdings;

holdings holdings_now(void);
bool holdings_equal(holdings a, holdings b);

#endif
