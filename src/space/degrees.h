/* Sine and cosine of angles in degrees: the same bits on every machine and every engine.
 *
 * Nothing of libm but fmod, which is exact, and no contraction: so a C compiler and a GPU give the same
 * numbers. The angle is reduced exactly, to at most 45 degrees either side of a multiple of 90 (multiples of 90
 * below 360 are small integers, and the difference of numbers within a factor of two is exact). It is turned
 * into radians as a sum y + low, good to 2^-75, and Taylor's series follow: up to y^17 and y^18, where what is
 * left out is below 2^-63 of the result for y <= pi / 4. The error is below 0.8 units in the last place.
 *
 * Includes nothing but predicate.h. */
#ifndef KITH_SPACE_DEGREES_H
#define KITH_SPACE_DEGREES_H

#include "space/predicate.h"

/* An angle in radians, as y + low. */
typedef struct kith_radians {
  double y, low;
} kith_radians;

/* t * pi / 180. The head of the factor has 24 bits and so has that of t, hence their products are exact. */
static inline KITH_DEVICE kith_radians kith_radians_of(double t) {
  const double head = 0x1.1df46ap-6;
  const double tail = 0x1.294e9c8ae0ec6p-33;
  double t_head = (double)(float)t;
  double large = t_head * head;
  double small = (t - t_head) * head + t * tail;
  double y = large + small;
  return (kith_radians){y, (large - y) + small};
}

static inline KITH_DEVICE double kith_sine_of(kith_radians angle) {
  double y = angle.y;
  double z = y * y;
  double series = 1.0 / 355687428096000;
  series = series * z - 1.0 / 1307674368000;
  series = series * z + 1.0 / 6227020800;
  series = series * z - 1.0 / 39916800;
  series = series * z + 1.0 / 362880;
  series = series * z - 1.0 / 5040;
  series = series * z + 1.0 / 120;
  series = series * z - 1.0 / 6;
  return y + (y * (z * series) + angle.low * (1 - 0.5 * z));
}

static inline KITH_DEVICE double kith_cosine_of(kith_radians angle) {
  double z = angle.y * angle.y;
  double series = -1.0 / 6402373705728000;
  series = series * z + 1.0 / 20922789888000;
  series = series * z - 1.0 / 87178291200;
  series = series * z + 1.0 / 479001600;
  series = series * z - 1.0 / 3628800;
  series = series * z + 1.0 / 40320;
  series = series * z - 1.0 / 720;
  series = series * z + 1.0 / 24;
  double half = 0.5 * z;
  double near = 1 - half; /* what its rounding loses comes back below */
  return near + (((1 - near) - half) + (z * (z * series) - angle.y * angle.low));
}

typedef struct kith_sine_cosine {
  double sine, cosine;
} kith_sine_cosine;

/* For |degrees| < 360: quarter turns in |degrees|, 0 to 4, and what is left, some 45 degrees either way at
 * most. Nothing here branches, and quarters are doubles, so that loops over it become vectors. */
static inline KITH_DEVICE kith_sine_cosine kith_sine_cosine_of_turn(double degrees) {
  double angle = fabs(degrees);
  double quarters = (int)(angle * (1.0 / 90) + 0.5);
  kith_radians left = kith_radians_of(angle - 90.0 * quarters);
  double sine = kith_sine_of(left);
  double cosine = kith_cosine_of(left);
  double odd = quarters == 1 || quarters == 3 ? 1 : 0;
  double s = odd != 0 ? cosine : sine;
  double c = odd != 0 ? sine : cosine;
  double sine_sign = quarters == 2 || quarters == 3 ? -1 : 1;
  double cosine_sign = quarters == 1 || quarters == 2 ? -1 : 1;
  return (kith_sine_cosine){(degrees < 0 ? -sine_sign : sine_sign) * s, cosine_sign * c};
}

/* For finite degrees, the turn that is left when whole ones are taken away: exact. */
static inline KITH_DEVICE double kith_turn_of(double degrees) {
  return fabs(degrees) >= 360 ? copysign(fmod(fabs(degrees), 360.0), degrees) : degrees;
}

static inline KITH_DEVICE kith_sine_cosine kith_sine_cosine_degrees(double degrees) {
  return kith_sine_cosine_of_turn(kith_turn_of(degrees));
}

static inline KITH_DEVICE double kith_sin_degrees(double degrees) {
  return kith_sine_cosine_degrees(degrees).sine;
}

static inline KITH_DEVICE double kith_cos_degrees(double degrees) {
  return kith_sine_cosine_degrees(degrees).cosine;
}

#endif
