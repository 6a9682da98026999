/* Neighbour counts at a glance: see degrees.h. */
#include "degrees.h"

#include "report.h"

#include <string.h>

enum { BAR = 50 };

static int bin_of(uint64_t degree) { return degree ? 64 - __builtin_clzll(degree) : 0; }

static uint64_t bin_low(int bin) { return bin ? UINT64_C(1) << (bin - 1) : 0; }

static uint64_t bin_high(int bin) { return bin ? bin_low(bin) + (bin_low(bin) - 1) : 0; }

void degrees_summarize(const uint64_t *degrees, uint64_t n, degree_summary *summary) {
  *summary = (degree_summary){.n = n, .min = n ? UINT64_MAX : 0};
  uint64_t total = 0;
  for (uint64_t i = 0; i < n; i++) {
    uint64_t degree = degrees[i];
    total += degree;
    summary->min = degree < summary->min ? degree : summary->min;
    summary->max = degree > summary->max ? degree : summary->max;
    summary->bins[bin_of(degree)]++;
  }
  summary->mean = n ? (double)total / (double)n : 0;
}

void degrees_print(const degree_summary *summary, FILE *out) {
  char low[TEXT_BYTES], high[TEXT_BYTES], range[2 * TEXT_BYTES], points[TEXT_BYTES], bar[BAR + 1];
  uint64_t most = 1;
  for (int bin = 0; bin < DEGREE_BINS; bin++)
    most = summary->bins[bin] > most ? summary->bins[bin] : most;
  fprintf(out, "\n%17s  %13s\n", "neighbours", "points");
  if (summary->n == 0)
    return;
  for (int bin = bin_of(summary->min); bin <= bin_of(summary->max); bin++) {
    text_count(low, bin_low(bin));
    if (bin > 1)
      snprintf(range, sizeof range, "%s-%s", low, text_count(high, bin_high(bin)));
    else
      snprintf(range, sizeof range, "%s", low);
    /* A bin that is not empty shows at least one mark. */
    size_t length = (size_t)((double)BAR * (double)summary->bins[bin] / (double)most);
    length += length == 0 && summary->bins[bin] > 0;
    memset(bar, '#', length);
    bar[length] = '\0';
    fprintf(out, "%17s  %13s%s%s\n", range, text_count(points, summary->bins[bin]), length ? "  " : "", bar);
  }
}

json_t *degrees_json(const degree_summary *summary) {
  json_t *bins = json_array();
  for (int bin = bin_of(summary->min); summary->n && bin <= bin_of(summary->max); bin++)
    json_array_append_new(bins,
                          JSON_OBJECT({"from", json_count(bin_low(bin))}, {"to", json_count(bin_high(bin))},
                                      {"points", json_count(summary->bins[bin])}));
  return JSON_OBJECT({"min", json_count(summary->min)}, {"mean", json_number(summary->mean)},
                     {"max", json_count(summary->max)}, {"histogram", bins});
}
