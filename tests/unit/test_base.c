/* The memory budget and the team of threads, against the promises of their headers. */
#include "fixture.h"

#include "base/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* ---- the memory budget ---- */

static void test_memory_limits(void **state) {
  (void)state;
  kith_memory memory = {.limit = 1000};
  void *a = kith_alloc(&memory, 600);
  assert_non_null(a);
  assert_int_equal((uintptr_t)a % 64, 0);
  memset(a, 1, 600);
  assert_null(kith_alloc(&memory, 401));
  assert_null(kith_alloc(&memory, UINT64_MAX));
  assert_null(kith_alloc(&memory, UINT64_MAX - 63));
  void *b = kith_alloc(&memory, 400);
  assert_non_null(b);
  assert_int_equal(kith_memory_left(&memory), 0);
  void *nothing = kith_alloc(&memory, 0);
  assert_non_null(nothing);
  kith_free(a);
  assert_int_equal(kith_memory_left(&memory), 600);
  assert_int_equal(atomic_load(&memory.peak), 1000);
  kith_free(b);
  kith_free(nothing);
  kith_free(NULL);
  assert_int_equal(kith_memory_left(&memory), 1000);
}

static void test_memory_results(void **state) {
  (void)state;
  kith_memory memory = {.limit = 1000};
  void *result = kith_alloc_result(&memory, 5 << 20);
  assert_non_null(result);
  memset(result, 1, 5 << 20);
  assert_int_equal(kith_memory_left(&memory), 1000);    /* exempt from the budget */
  assert_int_equal(atomic_load(&memory.peak), 5 << 20); /* but seen by the peak */
  void *work = kith_alloc(&memory, 1000);
  assert_non_null(work);
  assert_int_equal(atomic_load(&memory.peak), (5 << 20) + 1000);
  kith_release_result(result);
  assert_int_equal(atomic_load(&memory.results), 0);
  kith_free(work);
  memory = (kith_memory){0}; /* the result no longer needs it */
  kith_free(result);
  kith_release_result(NULL);
  assert_int_equal(atomic_load(&memory.results), 0);
}

static void test_memory_failing(void **state) {
  (void)state;
  kith_memory memory = {.limit = 1000};
  kith_memory_fail_nth(2);
  void *a = kith_alloc(&memory, 10);
  void *b = kith_alloc_result(&memory, 10);
  void *c = kith_alloc(&memory, 10);
  assert_true(a && !b && c);
  kith_memory_fail_nth(1);
  kith_memory_fail_nth(0);
  void *d = kith_alloc(&memory, 10);
  assert_non_null(d);
  kith_free(a);
  kith_free(c);
  kith_free(d);
  assert_int_equal(kith_memory_left(&memory), 1000);
}

typedef struct contest {
  kith_memory memory;
  atomic_bool exceeded;
} contest;

static void allocate_often(void *argument, uint64_t item) {
  contest *c = argument;
  for (int i = 0; i < 1000; i++) {
    void *block = kith_alloc(&c->memory, 1 + random_below(&item, 1500));
    if (atomic_load(&c->memory.used) > c->memory.limit)
      atomic_store(&c->exceeded, true);
    kith_free(block);
  }
}

/* Many threads at once never exceed the limit, and leave nothing behind. */
static void test_memory_threads(void **state) {
  (void)state;
  kith_context *on = open_context(8);
  contest c = {.memory = {.limit = 4000}};
  kith_each(on, 24, allocate_often, &c);
  assert_false(atomic_load(&c.exceeded));
  assert_true(atomic_load(&c.memory.peak) <= 4000 && atomic_load(&c.memory.peak) > 1000);
  assert_int_equal(kith_memory_left(&c.memory), 4000);
  kith_context_destroy(on);
}

/* ---- the threads ---- */

enum { MAX_ITEMS = 1000 };

typedef struct roll {
  _Atomic uint32_t visits[MAX_ITEMS];
  pthread_t caller;
  atomic_bool stranger; /* item 0 ran on another thread */
} roll;

static void visit_item(void *argument, uint64_t item) {
  roll *r = argument;
  atomic_fetch_add(&r->visits[item], 1);
  if (item == 0 && !pthread_equal(pthread_self(), r->caller))
    atomic_store(&r->stranger, true);
}

/* Every item is visited once, call after call, by more threads than there are items or cores. */
static void test_team(void **state) {
  (void)state;
  static const uint64_t SIZES[] = {0, 1, 2, 3, 17, MAX_ITEMS};
  for (uint32_t threads = 1; threads <= 16; threads *= 2) {
    kith_context *on = open_context(threads);
    for (uint32_t round = 0; round < 300; round++) {
      static roll r;
      uint64_t n = SIZES[round % 6];
      memset(&r, 0, sizeof r);
      r.caller = pthread_self();
      kith_each(on, n, visit_item, &r);
      uint64_t wrong = atomic_load(&r.stranger);
      for (uint64_t i = 0; i < MAX_ITEMS; i++)
        wrong += atomic_load(&r.visits[i]) != (i < n);
      assert_int_equal(wrong, 0);
    }
    kith_context_destroy(on);
  }
}

typedef struct strike {
  kith_context *on;
  _Atomic uint32_t visits;
} strike;

static void cancel_third(void *argument, uint64_t item) {
  strike *s = argument;
  (void)item;
  uint32_t before = atomic_fetch_add(&s->visits, 1);
  if (before == 2)
    kith_cancel(s->on);
  while (before > 2 && !kith_cancelled(s->on)) /* the third may be slow to cancel */
    sched_yield();
}

/* Of a job that heeds cancellation, only what was begun is done; the next one does not even begin. */
static void test_team_cancelled(void **state) {
  (void)state;
  for (uint32_t threads = 1; threads <= 16; threads *= 2) {
    strike s = {.on = open_context(threads)};
    kith_each_unless_cancelled(s.on, MAX_ITEMS, cancel_third, &s);
    assert_in_range(s.visits, 3, 3 + threads);
    s.visits = 0;
    kith_each_unless_cancelled(s.on, MAX_ITEMS, cancel_third, &s);
    assert_int_equal(s.visits, 0);
    kith_each(s.on, MAX_ITEMS, cancel_third, &s);
    assert_int_equal(s.visits, MAX_ITEMS);
    kith_context_destroy(s.on);
  }
}

/* Shares cover everything, once, in order. */
static void test_shares(void **state) {
  (void)state;
  static const uint64_t SIZES[] = {0, 1, 2, 63, 64, 65, 1000, 123457, UINT32_MAX};
  for (size_t s = 0; s < sizeof SIZES / sizeof *SIZES; s++)
    for (uint64_t grain = 1; grain <= 4096; grain *= 8) {
      uint64_t n = SIZES[s], shares = kith_shares(ctx, n, grain);
      assert_true(shares >= 1 && (shares == 1 || n / shares >= grain));
      assert_int_equal(kith_share_begin(n, 0, shares), 0);
      assert_int_equal(kith_share_begin(n, shares, shares), n);
      for (uint64_t i = 0; i < shares; i++)
        assert_true(kith_share_begin(n, i, shares) <= kith_share_begin(n, i + 1, shares));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_memory_limits, setup, teardown),
      cmocka_unit_test_setup_teardown(test_memory_results, setup, teardown),
      cmocka_unit_test_setup_teardown(test_memory_failing, setup, teardown),
      cmocka_unit_test_setup_teardown(test_memory_threads, setup, teardown),
      cmocka_unit_test_setup_teardown(test_team, setup, teardown),
      cmocka_unit_test_setup_teardown(test_team_cancelled, setup, teardown),
      cmocka_unit_test_setup_teardown(test_shares, setup, teardown),
  };
  return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
