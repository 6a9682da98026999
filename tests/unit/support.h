/* What unit tests share: a context of the CPU, and random numbers that are the same everywhere. */
#ifndef KITH_TESTS_UNIT_SUPPORT_H
#define KITH_TESTS_UNIT_SUPPORT_H

#include "base/context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static inline kith_context *open_context(uint32_t threads) {
  kith_context_options options = kith_context_options_init();
  options.engine = "cpu";
  options.threads = threads;
  options.memory_bytes = 256 << 20;
  kith_context *ctx;
  assert_int_equal(kith_context_create(&options, &ctx), KITH_OK);
  return ctx;
}

static inline uint64_t random_bits(uint64_t *state) {
  *state += UINT64_C(0x9E3779B97F4A7C15);
  uint64_t x = *state;
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

static inline double random_unit(uint64_t *state) { return (double)(random_bits(state) >> 11) * 0x1p-53; }

static inline uint32_t random_below(uint64_t *state, uint32_t bound) {
  return (uint32_t)(random_bits(state) % bound);
}

#endif
