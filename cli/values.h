/* Values as people type them: counts, sizes, real numbers, one word of a list. No state. */
#ifndef KITH_CLI_VALUES_H
#define KITH_CLI_VALUES_H

#include <stdbool.h>
#include <stdint.h>

/* "2000000", "2e6", "2M", "1.5k": a whole number (k = 10^3, M = 10^6, G = 10^9). */
bool value_count(const char *text, uint64_t *out);

/* "2G", "512M", "1.5GiB", "4096": bytes (k M G T are powers of 1000, Ki Mi Gi Ti of 1024, B may follow). */
bool value_size(const char *text, uint64_t *out);

/* A real number, NaN and infinity included: the caller says what it allows. */
bool value_real(const char *text, double *out);

/* The position of text among words "one|two|three", or -1. */
int value_choice(const char *text, const char *words);

/* How many single-letter edits lead from a to b (swapped neighbours count as one). */
unsigned value_distance(const char *a, const char *b);

/* Whether a mistyped word is near enough to be suggested. */
bool value_similar(const char *typed, const char *word);

#endif
