/* The kernels of panels for the instruction set scalar. */
#include "engine/cpu/simd/scalar.h"

#define PANEL_TABLE kith_panel_scalar
#define PANEL_QUERIES 4
#define PANEL_VECTORS 4
#include "engine/cpu/panel_body.h"
