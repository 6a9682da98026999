/* Loops for the instruction set avx512. */
#define LOOPS_TABLE kith_space_loops_avx512
#include "space/loops_body.h"
