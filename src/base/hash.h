/* A 64-bit hash to tell contents apart and to notice damage. Not cryptographic: nobody is kept from forging.
 *
 * Everything may include it. */
#ifndef KITH_BASE_HASH_H
#define KITH_BASE_HASH_H

#include <stdint.h>

/* The hash of bytes; another seed gives another function. */
uint64_t kith_hash(const void *data, uint64_t bytes, uint64_t seed);

#endif
