/* Places for the instruction set avx2. */
#define PLACES_KERNEL kith_places_avx2
#include "space/places_body.h"
