/* Estimates: run a sample of the queries, and infer what all of them will find and cost. */
#ifndef KITH_PLAN_ESTIMATE_H
#define KITH_PLAN_ESTIMATE_H

#include "engine/engine.h"

typedef struct kith_estimate {
  double pairs;  /* as KITH_DO_COUNT counts them */
  double error;  /* standard error of pairs; 0 if all queries were run */
  double tested; /* for KITH_DO_COUNT */
  double inside;
  double seconds; /* of KITH_DO_COUNT on all lanes */
} kith_estimate;

/* Takes at most about half a second. */
kith_status kith_estimate_run(kith_context *ctx, kith_engine *engine, kith_estimate *estimate);

#endif
