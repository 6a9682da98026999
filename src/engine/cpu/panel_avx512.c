/* The kernels of panels for the instruction set avx512. */
#include "engine/cpu/simd/avx512.h"

#define PANEL_TABLE kith_panel_avx512
#define PANEL_QUERIES 8
#define PANEL_VECTORS 3
#include "engine/cpu/panel_body.h"
