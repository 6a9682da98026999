/* What libFuzzer calls, and replay.c in its place. KITH_FUZZ_FILES is the folder of small files in every
 * format. */
#ifndef KITH_TESTS_FUZZ_H
#define KITH_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

#endif
