/* Places for the instruction set scalar. */
#define PLACES_KERNEL kith_places_scalar
#include "space/places_body.h"
