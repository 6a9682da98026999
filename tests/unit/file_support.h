/* What the tests of the readers share: a context, a folder, files in it, and what opening them must give. */
#ifndef KITH_TESTS_FILE_SUPPORT_H
#define KITH_TESTS_FILE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/context.h"
#include "points/points.h"

/* Made by set_up, for a group of tests; they go with tear_down. */
extern kith_context *ctx;
extern char folder[];
int set_up(void **state);
int tear_down(void **state);

kith_context *make_context(uint32_t threads, uint64_t memory);

/* The path of a file in the test's folder; valid until the second next call. */
const char *path_of(const char *name);
const char *write_bytes(const char *name, const void *bytes, size_t n);
const char *write_text(const char *name, const char *text);

/* Opens a file, which must succeed. */
kith_file *open_with(const char *path, const char *columns, const char *format);

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Opening must fail with the status, and the message must hold each of the words (NULL: no more). */
void expect_failure(const char *path, const char *columns, const char *format, kith_status expected,
                    const char *const *words);

void check_values(const kith_points *points, uint64_t n, uint32_t dim, const double *values);

/* Opens, compares the values, closes; returns whether the file was mapped. */
int check_file(const char *path, const char *columns, uint64_t n, uint32_t dim, const double *values);

/* Fails the first allocation, then the second, and so on, until the file opens; more than `least` of them. */
void fail_allocations(const char *path, const char *columns, uint64_t least);

#endif
