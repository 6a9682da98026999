/* The deque that engines share: its order, and that every entry is done once. */
#include "schedule/deque.h"

#include "support.h"

#include <string.h>

enum { ENTRIES = 500 };

static void make_deque(kith_context *ctx, kith_blocks *blocks, kith_deque *deque) {
  uint64_t rng = 7;
  assert_int_equal(kith_blocks_allocate(ctx, ENTRIES, ENTRIES * 3, blocks), KITH_OK);
  for (uint32_t b = 0; b < ENTRIES; b++) {
    blocks->begin[b] = 3 * b;
    blocks->candidates[b] = random_bits(&rng) % 1000;
  }
  blocks->begin[ENTRIES] = 3 * ENTRIES;
  assert_int_equal(kith_deque_make(ctx, blocks, deque), KITH_OK);
}

static void entries_descend(void **state) {
  (void)state;
  kith_context *ctx = open_context(1);
  kith_blocks blocks;
  kith_deque deque;
  make_deque(ctx, &blocks, &deque);
  for (uint32_t e = 1; e < ENTRIES; e++)
    assert_true(blocks.candidates[deque.blocks[e - 1]] >= blocks.candidates[deque.blocks[e]]);
  assert_int_equal(deque.queries[ENTRIES], 3 * ENTRIES);
  assert_int_equal(kith_deque_find(&deque, deque.queries, 0.5), ENTRIES / 2);
  assert_int_equal(kith_deque_find(&deque, deque.queries, 0), 0);
  assert_int_equal(kith_deque_find(&deque, deque.queries, 1), ENTRIES);
  uint32_t half = kith_deque_find(&deque, deque.work, 0.5);
  assert_true(half > 0 && half < ENTRIES / 2);
  kith_deque_release(&deque);
  kith_blocks_release(&blocks);
  kith_context_destroy(ctx);
}

/* What the threads of the next test share. */
typedef struct takers {
  kith_deque *deque;
  _Atomic uint32_t done[ENTRIES];
} takers;

typedef struct taker {
  takers *all;
  kith_end end;
  uint64_t rng;
} taker;

/* Gives back one slice of three. */
static void *take_at_random(void *argument) {
  taker *t = argument;
  kith_slice slice;
  kith_appetite appetite = {.pairs = UINT64_MAX};
  while (appetite.work = (double)(random_bits(&t->rng) % 40000),
         kith_deque_take(t->all->deque, t->end, appetite, &slice)) {
    if (random_bits(&t->rng) % 3 == 0) {
      kith_deque_give_back(t->all->deque, slice);
      continue;
    }
    for (uint32_t e = slice.begin; e < slice.end; e++)
      atomic_fetch_add(&t->all->done[e], 1);
    kith_deque_done(t->all->deque);
  }
  return NULL;
}

static void every_entry_is_done_once(void **state) {
  (void)state;
  enum { TAKERS = 6, ROUNDS = 20 };
  kith_context *ctx = open_context(1);
  kith_blocks blocks;
  kith_deque deque;
  make_deque(ctx, &blocks, &deque);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    static takers all;
    memset(&all, 0, sizeof all);
    all.deque = &deque;
    kith_deque_open(&deque, round % 2 ? (int64_t)round * 20 : -1, (uint32_t[2]){TAKERS / 2, TAKERS / 2});
    taker each[TAKERS];
    pthread_t threads[TAKERS];
    for (uint32_t i = 0; i < TAKERS; i++) {
      each[i] = (taker){.all = &all, .end = i % 2 ? KITH_LIGHT_END : KITH_HEAVY_END, .rng = round * 100 + i};
      assert_int_equal(pthread_create(&threads[i], NULL, take_at_random, &each[i]), 0);
    }
    for (uint32_t i = 0; i < TAKERS; i++)
      pthread_join(threads[i], NULL);
    assert_true(kith_deque_is_done(&deque));
    for (uint32_t e = 0; e < ENTRIES; e++)
      assert_int_equal(all.done[e], 1);
  }
  kith_deque_release(&deque);
  kith_blocks_release(&blocks);
  kith_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entries_descend),
      cmocka_unit_test(every_entry_is_done_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
