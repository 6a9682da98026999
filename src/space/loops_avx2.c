/* Loops for the instruction set avx2. */
#define LOOPS_TABLE kith_space_loops_avx2
#include "space/loops_body.h"
