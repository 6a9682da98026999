/* A context for every test of a program, which has to give back what it took. */
#ifndef KITH_TESTS_UNIT_FIXTURE_H
#define KITH_TESTS_UNIT_FIXTURE_H

#include "support.h"

static kith_context *ctx;

static int setup(void **state) {
  (void)state;
  ctx = open_context(3);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  int leaked = kith_memory_left(&ctx->memory) != ctx->memory.limit;
  kith_context_destroy(ctx);
  return leaked;
}

#endif
