/* The body of loops.h: include with LOOPS_TABLE defined as the name of the table to make. */
#include "space/loops.h"

#include "space/places_body.h"
#include "space/wrap_body.h"

const kith_space_loops LOOPS_TABLE = {.find_places = find_places, .wrap_columns = wrap_columns};
