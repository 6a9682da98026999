/* Neighbour counts at a glance: smallest, largest, and how many points have how many neighbours. */
#ifndef KITH_CLI_DEGREES_H
#define KITH_CLI_DEGREES_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

enum { DEGREE_BINS = 65 };

/* Bin 0 counts the points without neighbours, bin k those with 2^(k-1) to 2^k - 1 of them. */
typedef struct degree_summary {
  uint64_t n, min, max;
  double mean;
  uint64_t bins[DEGREE_BINS];
} degree_summary;

void degrees_summarize(const uint64_t *degrees, uint64_t n, degree_summary *summary);
void degrees_print(const degree_summary *summary, FILE *out);
json_t *degrees_json(const degree_summary *summary);

#endif
