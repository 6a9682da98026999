/* Places for the instruction set avx512. */
#define PLACES_KERNEL kith_places_avx512
#include "space/places_body.h"
