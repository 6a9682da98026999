/* Loops for the instruction set scalar. */
#define LOOPS_TABLE kith_space_loops_scalar
#include "space/loops_body.h"
