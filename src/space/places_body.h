/* Places on the sphere, for loops_body.h. */
#include "space/degrees.h"

static void sines_of(const double *degrees, uint32_t n, double *sine, double *cosine) {
  for (uint32_t i = 0; i < n; i++) {
    kith_sine_cosine both = kith_sine_cosine_of_turn(degrees[i]);
    sine[i] = both.sine;
    cosine[i] = both.cosine;
  }
}

static void find_places(const double *lon, const double *lat, uint32_t n, double *places) {
  double along_sine[KITH_PLACES], along_cosine[KITH_PLACES];
  double up_sine[KITH_PLACES], up_cosine[KITH_PLACES];
  sines_of(lon, n, along_sine, along_cosine);
  sines_of(lat, n, up_sine, up_cosine);
  for (uint32_t i = 0; i < n; i++) {
    places[3 * i] = up_cosine[i] * along_cosine[i];
    places[3 * i + 1] = up_cosine[i] * along_sine[i];
    places[3 * i + 2] = up_sine[i];
  }
}
