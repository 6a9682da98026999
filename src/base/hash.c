/* The hash: see hash.h.
 *
 * Four lanes take 8 bytes each in turn, so that their multiplications overlap; a step is a bijection of the
 * lane for every input and of the input for every lane, so that one changed word always changes the result of
 * its lane. About 5 GB/s a thread on a Xeon of 2 cores. */
#include "base/hash.h"

#include <string.h>

enum { LANES = 4 };
static const uint64_t INPUT = 0x9e3779b97f4a7c15; /* odd, bits well mixed: the golden ratio, */
static const uint64_t LANE = 0xd1342543de82ef95;  /* and a multiplier with good spectra */

static uint64_t step(uint64_t lane, uint64_t word) {
  lane ^= word * INPUT;
  return (lane << 29 | lane >> 35) * LANE;
}

/* Lets every bit of the input reach every bit of the result. */
static uint64_t spread(uint64_t h) {
  h = (h ^ h >> 32) * LANE;
  h = (h ^ h >> 29) * INPUT;
  return h ^ h >> 32;
}

uint64_t kith_hash(const void *data, uint64_t bytes, uint64_t seed) {
  const unsigned char *at = data;
  uint64_t lanes[LANES] = {seed, seed + 1, seed + 2, seed + 3}, words[LANES];
  uint64_t left = bytes;
  for (; left >= sizeof words; at += sizeof words, left -= sizeof words) {
    memcpy(words, at, sizeof words);
    for (int i = 0; i < LANES; i++)
      lanes[i] = step(lanes[i], words[i]);
  }
  memset(words, 0, sizeof words);
  if (left > 0)
    memcpy(words, at, left);
  uint64_t hash = spread(bytes + seed);
  for (int i = 0; i < LANES; i++)
    hash = spread(hash ^ step(lanes[i], words[i])) + (uint64_t)i;
  return hash;
}
