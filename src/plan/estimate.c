/* Estimates: see estimate.h.
 *
 * The sample is pieces of consecutive query positions, one from each of equal strata of the index: the index
 * is in spatial order, so the strata cover dense and thin regions in their proportions. Pieces are visited
 * with a large stride, so that running out of time still leaves a sample of the whole. */
#include "plan/estimate.h"

#include "base/clock.h"

#include <math.h>

enum { PIECES = 251, PIECE = 64, STRIDE = 89 }; /* PIECES is prime, so the stride visits all of them */
static const double MAX_SECONDS = 0.4;
static const double MAX_SECONDS_ALL = 0.01; /* of all pairs, a sample of the queries is no small part */

static kith_work piece_of(uint64_t n, uint32_t piece) {
  uint32_t begin = (uint32_t)(n * piece / PIECES);
  uint32_t end = (uint32_t)(n * (piece + 1) / PIECES);
  uint32_t middle = begin + (end - begin) / 2;
  if (end - begin > PIECE && n > (uint64_t)PIECES * PIECE) {
    begin = middle - PIECE / 2;
    end = begin + PIECE;
  }
  return (kith_work){.operation = KITH_DO_COUNT, .begin = begin, .end = end, .end_row = UINT64_MAX};
}

/* The standard error of a stratified mean: neighbouring strata are alike, so half the squared difference of
 * neighbours tells the variance within a stratum, and does not charge for the variance between them. */
static double stratified_error(const double *found, uint32_t n) {
  double sum = 0;
  for (uint32_t i = 1; i < n; i++)
    sum += (found[i] - found[i - 1]) * (found[i] - found[i - 1]);
  return n > 1 ? sqrt(sum / (2 * (n - 1)) / n) : 0;
}

/* An engine that cannot be given pieces counts all of it. */
static kith_status count_all(kith_engine *engine, kith_estimate *estimate) {
  double began = kith_seconds();
  kith_tally tally = {0};
  kith_work work = {.operation = KITH_DO_COUNT, .end = engine->n_queries, .end_row = UINT64_MAX};
  kith_status status = engine->run(engine, 0, &work, &tally);
  *estimate = (kith_estimate){.pairs = (double)tally.pairs,
                              .tested = (double)tally.tested,
                              .inside = (double)tally.inside,
                              .seconds = kith_seconds() - began};
  return status;
}

kith_status kith_estimate_run(kith_context *ctx, kith_engine *engine, kith_estimate *estimate) {
  if (engine->whole)
    return count_all(engine, estimate);
  *estimate = (kith_estimate){0};
  double began = kith_seconds();
  kith_tally tally = {0};
  double queries = 0;
  double found[PIECES]; /* pairs per query, by place in the index */
  for (uint32_t i = 0; i < PIECES; i++)
    found[i] = -1;
  double limit = engine->all_pairs ? MAX_SECONDS_ALL : MAX_SECONDS;
  for (uint32_t done = 0; done < PIECES && (done < 8 || kith_seconds() - began < limit); done++) {
    uint32_t piece = done * STRIDE % PIECES;
    kith_work work = piece_of(engine->n_queries, piece);
    if (work.begin == work.end)
      continue;
    uint64_t before = tally.pairs;
    kith_status status = engine->run(engine, 0, &work, &tally);
    if (status || kith_cancelled(ctx))
      return status ? status : kith_check_cancel(ctx);
    found[piece] = (double)(tally.pairs - before) / (work.end - work.begin);
    queries += work.end - work.begin;
  }
  uint32_t n_found = 0;
  for (uint32_t i = 0; i < PIECES; i++)
    if (found[i] >= 0)
      found[n_found++] = found[i];
  double n = engine->n_queries;
  double scale = queries > 0 ? n / queries : 0;
  estimate->pairs = (double)tally.pairs * scale;
  estimate->tested = (double)tally.tested * scale;
  estimate->inside = (double)tally.inside * scale;
  estimate->seconds = (kith_seconds() - began) * scale / engine->lanes;
  estimate->error = queries < n ? n * stratified_error(found, n_found) : 0;
  return KITH_OK;
}
