/* What the property tests share: random numbers, sets of points, tables that are easy to compare.
 *
 * Sets are small and calls that must succeed are wrapped, so that a test reads as the property it states. */
#ifndef KITH_TEST_SUPPORT_H
#define KITH_TEST_SUPPORT_H

#include "conformance/reference.h"
#include "kith.h"

#include <stdbool.h>
#include <stdint.h>

/* Notes whether a property held; the first failures are printed with their place. */
#define CHECK(condition, ...) check_at((condition), __FILE__, __LINE__, __VA_ARGS__)
void check_at(bool ok, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
extern unsigned checks_passed, checks_failed;

/* SplitMix64: the same numbers on every machine. */
uint64_t random_bits(uint64_t *state);
double random_unit(uint64_t *state);                    /* [0, 1) */
uint64_t random_below(uint64_t *state, uint64_t bound); /* [0, bound) */

/* A set of points in C order that owns its values. */
typedef struct cloud {
  kith_points points;
  void *memory;
} cloud;

cloud cloud_new(uint64_t n, uint32_t dim, kith_dtype dtype);
void cloud_free(cloud *c);
void cloud_set(cloud *c, uint64_t i, uint32_t column, double value);
double cloud_get(const cloud *c, uint64_t i, uint32_t column);

/* Values quantised to multiples of 1/64 in [0, 1): many ties and duplicates, and exact translations. */
cloud cloud_random(uint64_t n, uint32_t dim, kith_dtype dtype, uint64_t seed);

/* Rows of a in the order given by rows[n]. */
cloud cloud_pick(const cloud *a, const uint64_t *rows, uint64_t n);

/* A context that the machine can give, or NULL where it lacks the instruction set (isa NULL: the best). */
kith_context *context_new(const char *isa, uint32_t threads, uint64_t memory_bytes);

/* The table of a join that must succeed, rows by id. */
kith_table *table_of(kith_context *ctx, const kith_points *a, const kith_points *b, kith_join_options options);

uint64_t row_length(const kith_table *table, uint64_t i);
bool row_holds(const kith_table *table, uint64_t i, uint32_t id); /* for rows by id */
bool same_table(const kith_table *x, const kith_table *y);        /* byte for byte */
bool equals_reference(const kith_table *table, const reference *want);

/* A stream, put together again as a table. Give collect_batch and this to kith_join_stream. */
typedef struct collected {
  uint64_t n_rows, n_pairs, batches, largest_batch;
  uint64_t *offsets;
  uint32_t *neighbors;
  double *distances;
  bool broken; /* a gap in the rows, or no memory */
} collected;

int collect_batch(void *user, const kith_batch *batch);
kith_table collected_table(const collected *all); /* a view */
void collected_free(collected *all);

/* The groups of tests. */
void test_answers(void);
void test_random_joins(void);
void test_pairs_at_eps(void);
void test_boxes(void);
void test_extremes(void);
void test_radii(void);
void test_large_tables(void);
void test_sparse_tables(void);
void test_no_context(void);
void test_cancel(void);
void test_failing_allocations(void);
void test_budgets(void);
void test_large_stream(void);
void test_crowds(void);

#endif
