/* Places on the sphere from longitudes and latitudes, many at a time. One body, compiled once per instruction
 * set: nothing is fused and nothing is reordered, so all of them give the same bits. */
#ifndef KITH_SPACE_PLACES_H
#define KITH_SPACE_PLACES_H

#include <stdint.h>

enum { KITH_PLACES = 256 };

/* n <= KITH_PLACES places: x, y, z of place i to places[3 * i]. Degrees are below 360 (kith_turn_of). */
typedef void kith_places_kernel(const double *lon, const double *lat, uint32_t n, double *places);

extern kith_places_kernel kith_places_scalar, kith_places_avx2, kith_places_avx512;

#endif
