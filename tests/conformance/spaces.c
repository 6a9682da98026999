/* The cases of other spaces: metrics, periodic boxes, a radius for every point. */
#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Radii: none, all the same, from 0 to eps by row, few of them not 0. */
typedef enum radii { ONE_EPS, SAME, MIXED, SPARSE } radii;

typedef struct row {
  shape s;
  uint64_t n;
  uint32_t dim;
  double eps;
  uint64_t n_b; /* 0: one set */
  kith_metric metric;
  double radius;
  uint32_t n_box;
  double box[9];
  radii radii;
  uint32_t index_dims;
  double cell_side;
} row;

static const row ROWS[] = {
    /* norms: dimensions, ties, far from the origin, extremes */
    {.s = UNIFORM, .n = 500, .dim = 1, .eps = 0.01, .metric = KITH_MANHATTAN},
    {.s = UNIFORM, .n = 900, .dim = 2, .eps = 0.05, .metric = KITH_MANHATTAN},
    {.s = UNIFORM, .n = 900, .dim = 3, .eps = 0.15, .metric = KITH_MANHATTAN},
    {.s = UNIFORM, .n = 300, .dim = 7, .eps = 1.1, .metric = KITH_MANHATTAN},
    {.s = UNIFORM, .n = 200, .dim = 16, .eps = 4, .metric = KITH_MANHATTAN},
    {.s = UNIFORM, .n = 150, .dim = 33, .eps = 9.5, .metric = KITH_MANHATTAN},
    {.s = UNIFORM, .n = 60, .dim = 257, .eps = 84, .metric = KITH_MANHATTAN},
    {.s = UNIFORM, .n = 30, .dim = 1024, .eps = 341, .metric = KITH_MANHATTAN},
    {.s = LATTICE, .n = 900, .dim = 2, .eps = 0.375, .metric = KITH_MANHATTAN},
    {.s = LATTICE,
     .n = 900,
     .dim = 3,
     .eps = 0.25,
     .metric = KITH_MANHATTAN,
     .index_dims = 3,
     .cell_side = 0.25},
    {.s = EXPO, .n = 1500, .dim = 2, .eps = 0.01, .metric = KITH_MANHATTAN, .index_dims = 2, .cell_side = 0.25},
    {.s = EQUAL, .n = 300, .dim = 2, .eps = 0, .metric = KITH_MANHATTAN},
    {.s = FAR, .n = 600, .dim = 3, .eps = 0.2, .metric = KITH_MANHATTAN},
    {.s = HUGE_VALUES, .n = 300, .dim = 2, .eps = 1e37, .metric = KITH_MANHATTAN},
    {.s = HUGE_VALUES, .n = 300, .dim = 3, .eps = 1e307, .metric = KITH_MANHATTAN},
    {.s = TINY, .n = 300, .dim = 2, .eps = 1e-43, .metric = KITH_MANHATTAN},
    {.s = TINY, .n = 300, .dim = 2, .eps = 1e-321, .metric = KITH_MANHATTAN},
    {.s = OUTLIERS, .n = 900, .dim = 3, .eps = 0.1, .n_b = 500, .metric = KITH_MANHATTAN},
    {.s = INVALID, .n = 500, .dim = 2, .eps = 0.05, .metric = KITH_MANHATTAN},
    {.s = UNIFORM, .n = 500, .dim = 1, .eps = 0.01, .metric = KITH_CHEBYSHEV},
    {.s = UNIFORM, .n = 900, .dim = 2, .eps = 0.05, .metric = KITH_CHEBYSHEV},
    {.s = UNIFORM, .n = 900, .dim = 3, .eps = 0.1, .metric = KITH_CHEBYSHEV},
    {.s = UNIFORM, .n = 300, .dim = 7, .eps = 0.4, .metric = KITH_CHEBYSHEV},
    {.s = UNIFORM, .n = 200, .dim = 16, .eps = 0.6, .metric = KITH_CHEBYSHEV},
    {.s = UNIFORM, .n = 150, .dim = 33, .eps = 0.8, .metric = KITH_CHEBYSHEV},
    {.s = UNIFORM, .n = 60, .dim = 257, .eps = 0.94, .metric = KITH_CHEBYSHEV},
    {.s = UNIFORM, .n = 30, .dim = 1024, .eps = 0.97, .metric = KITH_CHEBYSHEV},
    {.s = LATTICE, .n = 900, .dim = 2, .eps = 0.125, .metric = KITH_CHEBYSHEV},
    {.s = LATTICE,
     .n = 900,
     .dim = 3,
     .eps = 0.25,
     .metric = KITH_CHEBYSHEV,
     .index_dims = 3,
     .cell_side = 0.25},
    {.s = EXPO, .n = 1500, .dim = 2, .eps = 0.01, .metric = KITH_CHEBYSHEV, .index_dims = 2, .cell_side = 0.5},
    {.s = CLUSTERS, .n = 1500, .dim = 2, .eps = 0.01, .metric = KITH_CHEBYSHEV},
    {.s = FLAT, .n = 600, .dim = 3, .eps = 5, .metric = KITH_CHEBYSHEV},
    {.s = HUGE_VALUES, .n = 300, .dim = 3, .eps = 1e308, .metric = KITH_CHEBYSHEV},
    {.s = TINY, .n = 300, .dim = 2, .eps = 0, .metric = KITH_CHEBYSHEV},
    {.s = VERY_FAR, .n = 600, .dim = 2, .eps = 0.001, .n_b = 300, .metric = KITH_CHEBYSHEV},
    /* directions */
    {.s = DIRECTIONS, .n = 300, .dim = 1, .eps = 0.5, .metric = KITH_COSINE},
    {.s = DIRECTIONS, .n = 700, .dim = 2, .eps = 0.001, .metric = KITH_COSINE},
    {.s = DIRECTIONS, .n = 700, .dim = 3, .eps = 0.02, .metric = KITH_COSINE},
    {.s = DIRECTIONS, .n = 300, .dim = 16, .eps = 0.6, .metric = KITH_COSINE},
    {.s = DIRECTIONS, .n = 100, .dim = 64, .eps = 0.9, .metric = KITH_COSINE},
    {.s = DIRECTIONS, .n = 40, .dim = 1024, .eps = 1, .metric = KITH_COSINE},
    {.s = DIRECTIONS, .n = 300, .dim = 3, .eps = 0, .metric = KITH_COSINE},
    {.s = DIRECTIONS, .n = 300, .dim = 3, .eps = 2, .metric = KITH_COSINE},
    {.s = DIRECTIONS, .n = 300, .dim = 3, .eps = 1e-9, .n_b = 200, .metric = KITH_COSINE},
    {.s = HUGE_RAYS, .n = 400, .dim = 3, .eps = 0.05, .metric = KITH_COSINE},
    {.s = LATTICE, .n = 500, .dim = 2, .eps = 0.29289321881345254, .metric = KITH_COSINE},
    {.s = DIRECTIONS, .n = 700, .dim = 3, .eps = 10, .metric = KITH_ANGULAR},
    {.s = DIRECTIONS, .n = 300, .dim = 7, .eps = 60, .n_b = 200, .metric = KITH_ANGULAR},
    {.s = DIRECTIONS, .n = 100, .dim = 257, .eps = 88, .metric = KITH_ANGULAR},
    {.s = HUGE_RAYS, .n = 400, .dim = 2, .eps = 1, .metric = KITH_ANGULAR},
    {.s = DIRECTIONS, .n = 300, .dim = 3, .eps = 180, .metric = KITH_ANGULAR},
    {.s = DIRECTIONS, .n = 300, .dim = 3, .eps = 179.9, .metric = KITH_ANGULAR},
    {.s = LATTICE, .n = 500, .dim = 2, .eps = 45, .metric = KITH_ANGULAR},
    /* places */
    {.s = PLACES, .n = 900, .dim = 2, .eps = 5, .metric = KITH_HAVERSINE},
    {.s = PLACES, .n = 500, .dim = 2, .eps = 0.0001, .metric = KITH_HAVERSINE},
    {.s = PLACES, .n = 500, .dim = 2, .eps = 800, .n_b = 300, .metric = KITH_HAVERSINE, .radius = 6371.0088},
    {.s = PLACES, .n = 300, .dim = 2, .eps = 180, .metric = KITH_HAVERSINE},
    {.s = PLACES, .n = 300, .dim = 2, .eps = 179, .metric = KITH_HAVERSINE},
    {.s = POLES, .n = 900, .dim = 2, .eps = 0.5, .metric = KITH_HAVERSINE},
    {.s = POLES, .n = 500, .dim = 2, .eps = 0, .metric = KITH_HAVERSINE},
    {.s = PLACES, .n = 0, .dim = 2, .eps = 5, .metric = KITH_HAVERSINE},
    {.s = PLACES, .n = 0, .dim = 2, .eps = 5, .n_b = 300, .metric = KITH_HAVERSINE},
    {.s = DIRECTIONS, .n = 0, .dim = 3, .eps = 0.5, .n_b = 200, .metric = KITH_COSINE},
    /* a radius for every point */
    {.s = UNIFORM, .n = 900, .dim = 2, .eps = 0.1, .radii = SAME},
    {.s = UNIFORM, .n = 900, .dim = 2, .eps = 0.1, .radii = MIXED},
    {.s = UNIFORM, .n = 900, .dim = 3, .eps = 0.2, .radii = SPARSE},
    {.s = UNIFORM, .n = 500, .dim = 1, .eps = 0.05, .radii = MIXED},
    {.s = UNIFORM, .n = 200, .dim = 16, .eps = 1.6, .radii = MIXED},
    {.s = UNIFORM, .n = 600, .dim = 2, .eps = 0.1, .n_b = 700, .radii = MIXED},
    {.s = LATTICE, .n = 900, .dim = 2, .eps = 6.25, .radii = MIXED}, /* ties at many of them */
    {.s = LATTICE, .n = 900, .dim = 3, .eps = 0.25, .radii = SAME, .index_dims = 3, .cell_side = 0.25},
    {.s = EXPO, .n = 1500, .dim = 2, .eps = 0.02, .radii = MIXED, .index_dims = 2, .cell_side = 0.25},
    {.s = EQUAL, .n = 1300, .dim = 2, .eps = 0.1, .radii = MIXED},
    {.s = DUPLICATES, .n = 600, .dim = 2, .eps = 0, .radii = SAME},
    {.s = VERY_FAR, .n = 600, .dim = 2, .eps = 0.002, .radii = MIXED},
    {.s = HUGE_VALUES, .n = 300, .dim = 2, .eps = 1e160, .radii = MIXED},
    {.s = INVALID, .n = 500, .dim = 2, .eps = 0.05, .radii = MIXED},
    {.s = UNIFORM, .n = 600, .dim = 2, .eps = 0.1, .metric = KITH_MANHATTAN, .radii = MIXED},
    {.s = UNIFORM, .n = 600, .dim = 3, .eps = 0.1, .metric = KITH_CHEBYSHEV, .radii = MIXED},
    {.s = DIRECTIONS, .n = 500, .dim = 3, .eps = 2, .metric = KITH_COSINE, .radii = MIXED},
    {.s = PLACES,
     .n = 500,
     .dim = 2,
     .eps = 900,
     .metric = KITH_HAVERSINE,
     .radius = 6371.0088,
     .radii = MIXED},
    /* periodic boxes: dimensions, points inside and outside, open axes, many images, eps up to half of them */
    {.s = UNIFORM, .n = 500, .dim = 1, .eps = 0.01, .n_box = 1, .box = {1}},
    {.s = UNIFORM, .n = 300, .dim = 1, .eps = 0.5, .n_box = 1, .box = {1}},
    {.s = UNIFORM, .n = 500, .dim = 2, .eps = 0.05, .n_box = 2, .box = {1, 1}},
    {.s = UNIFORM, .n = 500, .dim = 3, .eps = 0.1, .n_box = 3, .box = {1, 1, 1}},
    {.s = UNIFORM, .n = 500, .dim = 3, .eps = 0.1, .n_box = 3, .box = {1, 0, 1}},
    {.s = UNIFORM, .n = 400, .dim = 3, .eps = 0.5, .n_box = 3, .box = {1, 1, 1}},
    {.s = UNIFORM, .n = 400, .dim = 3, .eps = 0.49999, .n_box = 3, .box = {1, 0, 3}},
    {.s = UNIFORM, .n = 300, .dim = 4, .eps = 0.2, .n_box = 4, .box = {1, 1, 0, 1}},
    {.s = UNIFORM, .n = 150, .dim = 5, .eps = 0.4, .n_box = 5, .box = {1, 1, 1, 1, 1}},
    {.s = UNIFORM, .n = 150, .dim = 9, .eps = 0.5, .n_box = 9, .box = {1, 0, 1, 0, 0, 0, 0, 1, 0}},
    {.s = UNIFORM, .n = 64, .dim = 8, .eps = 0.48, .n_box = 8, .box = {1, 1, 1, 1, 1, 1, 1, 1}},
    {.s = WIDE, .n = 400, .dim = 1, .eps = 0.03, .n_box = 1, .box = {0.7}},
    {.s = WIDE, .n = 500, .dim = 2, .eps = 0.05, .n_box = 2, .box = {0.7, 1.3}},
    {.s = WIDE, .n = 400, .dim = 3, .eps = 0.1, .n_box = 3, .box = {0.7, 1.3, 0.9}},
    {.s = WIDE, .n = 400, .dim = 3, .eps = 0.35, .n_b = 200, .n_box = 3, .box = {0.7, 1.3, 0}},
    {.s = UNIFORM, .n = 400, .dim = 2, .eps = 0.1, .n_b = 300, .n_box = 2, .box = {1, 1}},
    {.s = LATTICE, .n = 500, .dim = 1, .eps = 0.75, .n_box = 1, .box = {1.5}},
    {.s = LATTICE, .n = 500, .dim = 2, .eps = 0.125, .n_box = 2, .box = {1.5, 1.5}},
    {.s = LATTICE, .n = 500, .dim = 2, .eps = 0.75, .n_box = 2, .box = {1.5, 1.5}},
    {.s = LATTICE, .n = 400, .dim = 3, .eps = 0.75, .n_box = 3, .box = {1.5, 1.5, 1.5}},
    {.s = LATTICE, .n = 400, .dim = 3, .eps = 0.5, .n_box = 3, .box = {1, 1.25, 1.5}},
    {.s = LATTICE, .n = 300, .dim = 3, .eps = 0.5, .n_b = 300, .n_box = 3, .box = {1, 0, 1}},
    {.s = LATTICE,
     .n = 400,
     .dim = 3,
     .eps = 0.375,
     .n_box = 3,
     .box = {1.5, 1.5, 1.5},
     .index_dims = 3,
     .cell_side = 0.25},
    {.s = LATTICE, .n = 300, .dim = 2, .eps = 0.625, .n_box = 2, .box = {1.5, 1e12}},
    {.s = EQUAL, .n = 300, .dim = 2, .eps = 0.5, .n_box = 2, .box = {1, 1}},
    {.s = EQUAL, .n = 300, .dim = 2, .eps = 0, .n_box = 2, .box = {0.7, 1}},
    {.s = EXPO,
     .n = 1500,
     .dim = 2,
     .eps = 0.01,
     .n_box = 2,
     .box = {0.3, 0.4},
     .index_dims = 2,
     .cell_side = 0.25},
    {.s = OUTLIERS, .n = 500, .dim = 2, .eps = 0.2, .n_box = 2, .box = {5, 0}},
    {.s = PARETO, .n = 500, .dim = 2, .eps = 0.5, .n_box = 2, .box = {0, 5}},
    {.s = FAR, .n = 500, .dim = 2, .eps = 0.0625, .n_box = 2, .box = {1, 1}},
    {.s = VERY_FAR, .n = 400, .dim = 2, .eps = 0.001, .n_box = 2, .box = {0.01, 0.01}},
    {.s = INVALID, .n = 500, .dim = 2, .eps = 0.05, .n_box = 2, .box = {1, 1}},
    {.s = LATE, .n = 1800, .dim = 2, .eps = 0.05, .n_box = 2, .box = {1, 1}},
    /* not far outside, so that they may be wrapped as they are read */
    {.s = UNIFORM, .n = 500, .dim = 2, .eps = 0.05, .n_box = 2, .box = {0.7, 0.8}},
    /* slabs: two vectors at an angle, and an open axis */
    {.s = UNIFORM, .n = 500, .dim = 3, .eps = 0.1, .n_box = 9, .box = {1, 0, 0, 0.3, 0.9, 0, 0, 0, 0}},
    {.s = WIDE,
     .n = 400,
     .dim = 3,
     .eps = 0.25,
     .n_b = 200,
     .n_box = 9,
     .box = {0.7, 0, 0, 0.2, 0.6, 0, 0, 0, 0}},
    {.s = UNIFORM, .n = 400, .dim = 3, .eps = 0.2, .n_box = 9, .box = {1, 0, 0, 0, 0, 0, 0.4, 0, 0.8}},
    {.s = WIDE, .n = 400, .dim = 3, .eps = 0.4, .n_box = 6, .box = {1, 1, 0, 90, 90, 60}},
    {.s = LATTICE, .n = 400, .dim = 3, .eps = 0.625, .n_box = 9, .box = {1.5, 0, 0, 0.75, 1.5, 0, 0, 0, 0}},
    {.s = UNIFORM, .n = 400, .dim = 3, .eps = 0.1, .n_b = 300, .n_box = 3, .box = {0.7, 0.9, 0.8}},
    {.s = MIXED_SIGN, .n = 500, .dim = 2, .eps = 0.1, .n_box = 2, .box = {2, 1.7}},
    {.s = MIXED_SIGN, .n = 400, .dim = 3, .eps = 0.25, .n_b = 300, .n_box = 3, .box = {1.9, 2, 1.7}},
    {.s = LATTICE, .n = 500, .dim = 2, .eps = 0.125, .n_box = 2, .box = {1, 1.25}},
    {.s = LATTICE,
     .n = 400,
     .dim = 3,
     .eps = 0.375,
     .n_box = 3,
     .box = {1, 1, 1.25},
     .index_dims = 3,
     .cell_side = 0.25},
    {.s = EQUAL, .n = 1300, .dim = 2, .eps = 0.1, .n_box = 2, .box = {0.6, 0.5}},
    {.s = LATE, .n = 1800, .dim = 2, .eps = 0.05, .n_box = 2, .box = {0.8, 0.8}},
    {.s = WIDE, .n = 400, .dim = 1, .eps = 0.03, .n_box = 1, .box = {4.1}},
    {.s = UNIFORM, .n = 400, .dim = 3, .eps = 0.1, .n_box = 3, .box = {0.7, 0, 0.8}},
    {.s = MIXED_SIGN, .n = 400, .dim = 3, .eps = 0.0001, .n_b = 300, .n_box = 3, .box = {1.9, 0, 1.7}},
    /* pairs across faces at eps, to the last digit, in boxes of some hundred eps: the widest that are rounded
     */
    {.s = FACES, .n = 1300, .dim = 2, .eps = 0.003, .n_box = 2, .box = {1, 1}},
    {.s = FACES, .n = 1300, .dim = 2, .eps = 0.003, .n_box = 2, .box = {1, 1}, .index_dims = 1},
    {.s = FACES, .n = 1300, .dim = 2, .eps = 0.004, .n_b = 900, .n_box = 2, .box = {1, 1}, .index_dims = 1},
    {.s = FACES, .n = 1300, .dim = 3, .eps = 0.004, .n_box = 3, .box = {1, 1, 1}, .index_dims = 1},
    {.s = FACES, .n = 1300, .dim = 3, .eps = 0.005, .n_box = 3, .box = {1, 1, 1}, .index_dims = 2},
    {.s = FACES, .n = 1300, .dim = 3, .eps = 0.004, .n_box = 3, .box = {1, 0, 1}, .index_dims = 1},
    {.s = FACES, .n = 1300, .dim = 2, .eps = 0.05, .n_box = 2, .box = {1, 1}},
    {.s = FACES, .n = 1300, .dim = 3, .eps = 0.1, .n_box = 3, .box = {1, 1, 1}},
    {.s = FACES, .n = 600, .dim = 4, .eps = 0.2, .n_b = 600, .n_box = 4, .box = {1, 1, 1, 1}},
    {.s = FACES, .n = 900, .dim = 3, .eps = 0.005, .n_box = 6, .box = {1, 1, 1, 90, 90, 60}, .index_dims = 1},
    {.s = UNIFORM, .n = 1, .dim = 2, .eps = 0.5, .n_box = 2, .box = {1, 1}},
    {.s = UNIFORM, .n = 0, .dim = 2, .eps = 0.5, .n_box = 2, .box = {1, 1}},
    {.s = MIXED_SIGN, .n = 500, .dim = 3, .eps = 0.2, .n_box = 3, .box = {2, 1, 2}},
    /* enough points for rows that wrap around the box, and for others that do not */
    {.s = UNIFORM, .n = 2000, .dim = 1, .eps = 0.001, .n_box = 1, .box = {1}},
    {.s = UNIFORM, .n = 1500, .dim = 2, .eps = 0.03, .n_box = 2, .box = {1, 1}},
    {.s = UNIFORM, .n = 1000, .dim = 3, .eps = 0.08, .n_box = 3, .box = {1, 1, 1}},
    {.s = WIDE, .n = 1000, .dim = 3, .eps = 0.06, .n_b = 800, .n_box = 3, .box = {0.7, 1.3, 0.9}},
    {.s = UNIFORM, .n = 600, .dim = 4, .eps = 0.14, .n_box = 4, .box = {1, 0, 1, 1}},
    {.s = UNIFORM, .n = 200, .dim = 6, .eps = 0.3, .n_box = 6, .box = {1, 1, 1, 1, 1, 1}},
    {.s = LATTICE, .n = 1000, .dim = 3, .eps = 0.125, .n_box = 3, .box = {1.5, 1.25, 1.5}},
    {.s = EXPO, .n = 1000, .dim = 3, .eps = 0.01, .n_box = 3, .box = {0.3, 0, 0.4}},
    /* axes that the grid does not cut, or cuts in two: differences are folded there */
    {.s = UNIFORM, .n = 500, .dim = 3, .eps = 0.1, .n_box = 3, .box = {1, 1, 1}, .index_dims = 1},
    {.s = UNIFORM, .n = 300, .dim = 6, .eps = 0.3, .n_box = 6, .box = {1, 1, 1, 1, 1, 1}, .index_dims = 2},
    {.s = UNIFORM, .n = 200, .dim = 9, .eps = 0.45, .n_box = 9, .box = {1, 0, 1, 0, 0, 0, 0, 1, 1}},
    {.s = UNIFORM, .n = 400, .dim = 2, .eps = 0.52, .n_box = 2, .box = {1.1, 1.2}, .index_dims = 2},
    {.s = UNIFORM, .n = 500, .dim = 2, .eps = 0.008, .n_box = 2, .box = {1, 1}, .index_dims = 1},
    {.s = WIDE,
     .n = 300,
     .dim = 4,
     .eps = 0.3,
     .n_b = 200,
     .n_box = 4,
     .box = {0.7, 1.3, 0, 0.9},
     .index_dims = 1},
    {.s = LATTICE, .n = 500, .dim = 3, .eps = 0.125, .n_box = 3, .box = {1.5, 1.25, 1.5}, .index_dims = 1},
    {.s = LATTICE, .n = 400, .dim = 3, .eps = 0.5, .n_box = 3, .box = {1.25, 1.5, 1.5}, .index_dims = 2},
    {.s = UNIFORM,
     .n = 400,
     .dim = 3,
     .eps = 0.2,
     .n_box = 3,
     .box = {1, 1, 1},
     .index_dims = 1,
     .radii = MIXED},
    {.s = EQUAL, .n = 1300, .dim = 2, .eps = 0.25, .n_box = 2, .box = {1, 1}, .index_dims = 1},
    /* vectors that are not lower triangular: box and points are turned; some of it exactly, with ties */
    {.s = UNIFORM, .n = 400, .dim = 3, .eps = 0.1, .n_box = 9, .box = {0, 0.5, 0.5, 0.5, 0, 0.5, 0.5, 0.5, 0}},
    {.s = WIDE,
     .n = 300,
     .dim = 3,
     .eps = 0.3,
     .n_box = 9,
     .box = {0.9, 0.1, -0.2, 0.3, 0.8, 0.4, -0.1, 0.2, 1.1}},
    {.s = WIDE, .n = 300, .dim = 3, .eps = 0.1, .n_b = 200, .n_box = 9, .box = {1, 2, 3, 4, 5, 6, 7, 8, 10}},
    {.s = MIXED_SIGN, .n = 300, .dim = 3, .eps = 0.3, .n_box = 9, .box = {1, 1, 0, -1, 1, 0, 0, 0, 0}},
    {.s = MIXED_SIGN, .n = 300, .dim = 3, .eps = 0.4, .n_box = 9, .box = {0.6, 0.8, 0, 0, 0, 0, 0, 0, 0}},
    {.s = UNIFORM, .n = 300, .dim = 3, .eps = 0.2, .n_box = 9, .box = {0, 0, 0, 0, 0, 0, 0.2, 0.3, 0.6}},
    {.s = UNIFORM, .n = 300, .dim = 3, .eps = 0.2, .n_box = 6, .box = {1, 0, 1, 60, 70, 80}},
    {.s = LATTICE, .n = 300, .dim = 3, .eps = 0.5, .n_box = 9, .box = {0, 0, 1, 0, -1.25, 0, 1.5, 0, 0}},
    {.s = LATTICE, .n = 300, .dim = 3, .eps = 0.375, .n_box = 9, .box = {-1, 0, 0, 0.5, 1, 0, 0, 0, 1}},
    {.s = INVALID, .n = 300, .dim = 3, .eps = 0.1, .n_box = 9, .box = {0, 1, 1, 1, 0, 1, 1, 1, 0}},
    {.s = HUGE_VALUES,
     .n = 300,
     .dim = 3,
     .eps = 1e100,
     .n_box = 9,
     .box = {0, 1e101, 0, 1e101, 1, 0, 0, 0, 0}},
    {.s = UNIFORM,
     .n = 300,
     .dim = 3,
     .eps = 0.2,
     .n_box = 9,
     .box = {0, 1, 1, 1, 0, 1, 1, 1, 0},
     .radii = MIXED},
    /* with angles, and as vectors */
    {.s = UNIFORM, .n = 400, .dim = 3, .eps = 0.1, .n_box = 6, .box = {1, 1, 1, 90, 90, 60}},
    {.s = UNIFORM, .n = 400, .dim = 3, .eps = 0.1, .n_box = 6, .box = {1, 1, 1, 90, 90, 90}},
    {.s = UNIFORM, .n = 300, .dim = 3, .eps = 0.2, .n_box = 6, .box = {1, 1.1, 0.9, 70, 80, 110}},
    {.s = WIDE, .n = 300, .dim = 3, .eps = 0.25, .n_box = 6, .box = {1, 1.1, 0.9, 70, 80, 110}},
    {.s = WIDE, .n = 300, .dim = 3, .eps = 0.43, .n_box = 6, .box = {1, 1, 2, 90, 90, 120}},
    {.s = WIDE,
     .n = 200,
     .dim = 3,
     .eps = 0.3,
     .n_b = 200,
     .n_box = 9,
     .box = {2, 0, 0, 3.3, 1, 0, -2.1, 1.7, 1}},
    {.s = LATTICE, .n = 300, .dim = 3, .eps = 0.5, .n_box = 9, .box = {1.5, 0, 0, 0.75, 1.5, 0, 0.75, 0.75, 1}},
    {.s = LATTICE, .n = 300, .dim = 3, .eps = 0.25, .n_box = 9, .box = {1, 0, 0, 0.5, 1, 0, 0.5, 0.5, 1}},
    /* a box and a radius for every point */
    {.s = UNIFORM, .n = 500, .dim = 2, .eps = 0.1, .n_box = 2, .box = {1, 1}, .radii = MIXED},
    {.s = WIDE,
     .n = 300,
     .dim = 3,
     .eps = 0.35,
     .n_b = 300,
     .n_box = 3,
     .box = {0.7, 1.3, 0.9},
     .radii = MIXED},
    {.s = LATTICE, .n = 400, .dim = 2, .eps = 0.75, .n_box = 2, .box = {1.5, 1.5}, .radii = SPARSE},
    {.s = WIDE, .n = 300, .dim = 3, .eps = 0.25, .n_box = 6, .box = {1, 1.1, 0.9, 70, 80, 110}, .radii = MIXED},
};
enum { N_ROWS = sizeof ROWS / sizeof *ROWS };

static double *make_radii(const row *r) {
  double *eps_of = r->radii == ONE_EPS ? NULL : malloc((r->n + 1) * sizeof *eps_of);
  for (uint64_t i = 0; eps_of && i < r->n; i++) {
    double share = r->radii == SAME     ? 1
                   : r->radii == SPARSE ? (i % 50 == 7 ? 1 : 0)
                                        : (double)(i * 7919 % 101) / 100;
    eps_of[i] = r->eps * share;
  }
  return eps_of;
}

int space_case_make(uint32_t i, test_case *c) {
  static const char *const metrics[] = {"euclidean", "manhattan", "chebyshev",
                                        "cosine",    "angular",   "haversine"};
  static const char *const radii_names[] = {"", " same radii", " mixed radii", " few radii"};
  if (i >= 2 * N_ROWS)
    return 0;
  const row *r = &ROWS[i / 2];
  kith_dtype dtype = i % 2 ? KITH_F64 : KITH_F32;
  kith_dtype other = i % 4 < 2 ? dtype : KITH_F64;
  int layout = (int)(i / 2 % 3);
  *c = (test_case){.eps = r->eps,
                   .index_dims = r->index_dims,
                   .cell_side = r->cell_side,
                   .metric = r->metric,
                   .radius = r->radius,
                   .n_box = r->n_box,
                   .skip_invalid = 1,
                   .eps_of = make_radii(r)};
  memcpy(c->box, r->box, sizeof c->box);
  c->a = make_points(r->s, r->n, r->dim, dtype, layout, i + 1, &c->memory[0]);
  if (r->n_b)
    c->b = make_points(r->s, r->n_b, r->dim, other, 0, i + 77, &c->memory[1]);
  snprintf(c->name, sizeof c->name, "%s%s %s n=%llu%s dim=%u eps=%g box=%u(%g) %s", metrics[r->metric],
           radii_names[r->radii], shape_name(r->s), (unsigned long long)r->n, r->n_b ? " x b" : "", r->dim,
           r->eps, r->n_box, r->box[0], dtype == KITH_F32 ? "f32" : "f64");
  return 1;
}
