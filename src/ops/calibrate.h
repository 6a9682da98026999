/* How fast the engines of this machine are: measured once by short joins, kept in a file, and used to predict
 * what a join would take on each of them, and what part of it each should have.
 *
 * The model is that of the literature on hybrid joins: the time of a reference join, in about as many
 * dimensions, scaled by the work. Work is what is found (pairs) and what is asked (points).
 *
 * May include kith.h and base. The operations include it. */
#ifndef KITH_OPS_CALIBRATE_H
#define KITH_OPS_CALIBRATE_H

#include "base/context.h"

/* What is known of this machine: n is 0 if it was never measured. */
void kith_speeds_load(const kith_context *ctx, kith_speeds *speeds);

/* The seconds of a neighbour table of so many points and pairs on an engine; 0: nothing is known of it. */
double kith_speeds_predict(const kith_speeds *speeds, const char *engine, uint32_t dim, double points,
                           double pairs);

#endif
