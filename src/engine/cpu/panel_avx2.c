/* The kernels of panels for the instruction set avx2. */
#include "engine/cpu/simd/avx2.h"

#define PANEL_TABLE kith_panel_avx2
#define PANEL_QUERIES 4
#define PANEL_VECTORS 3
#include "engine/cpu/panel_body.h"
