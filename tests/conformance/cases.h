/* The list of cases that every engine must answer alike. */
#ifndef KITH_TEST_CASES_H
#define KITH_TEST_CASES_H

#include "kith.h"

#include <stdbool.h>

typedef enum shape {
  UNIFORM,     /* [0, 1) */
  EXPO,        /* dense at the origin */
  LATTICE,     /* many ties exactly at eps */
  EQUAL,       /* all points the same */
  DUPLICATES,  /* few distinct points */
  COLLINEAR,   /* a diagonal line */
  OUTLIER,     /* a cloud, and one point far away */
  OUTLIERS,    /* heavy tails: Cauchy */
  PARETO,      /* tails so heavy that every scale from 1 to 1e20 is crowded */
  FAR,         /* a small cloud far from the origin */
  VERY_FAR,    /* so far that float64 has steps of 2^-13 left */
  TINY,        /* denormal coordinates (float32) */
  HUGE_VALUES, /* near the largest numbers of the type */
  CLUSTERS,    /* tight clusters far apart */
  FLAT,        /* one wide column, the others nearly constant */
  INVALID,     /* some rows are NaN or infinite */
  LATE,        /* likewise, but none of the first 1400 */
  FACES,       /* thousandths close to the faces of a box of side 1, on both sides of them */
  MIXED_SIGN,  /* straddles zero, with both zeros */
  DIRECTIONS,  /* vectors of very different lengths, some of them zero */
  HUGE_RAYS,   /* vectors whose squares overflow, and others whose squares vanish */
  PLACES,      /* longitudes and latitudes, some of them several times around */
  POLES,       /* places near the poles */
  WIDE,        /* [-2, 2) */
} shape;

const char *shape_name(shape s);

typedef struct test_case {
  char name[128];
  kith_points a;
  kith_points b; /* b.n is 0 and b.data NULL: one set */
  double eps;
  uint32_t index_dims; /* forced, or 0 */
  double cell_side;
  int skip_invalid;
  kith_metric metric;
  double radius;
  double box[9];
  uint32_t n_box;
  double *eps_of;  /* owned */
  void *memory[2]; /* what a and b view */
} test_case;

/* Makes case i; returns 0 past the last. Release with case_free. */
int case_make(uint32_t i, test_case *c);
void case_free(test_case *c);

/* The cases with a metric, a box or a radius per point (spaces.c); they follow the others. */
int space_case_make(uint32_t i, test_case *c);

/* Fills a set of points; layout 0: rows, 1: columns (Fortran), 2: rows with a gap. */
kith_points make_points(shape s, uint64_t n, uint32_t dim, kith_dtype dtype, int layout, uint64_t seed,
                        void **memory);

/* Joins on a GPU that are too large for the reference (large.c): in a box that the grid wraps around; shared
 * with the CPU; and in many dimensions, where all points meet all in many tiles. */
bool large_box_is_right(void);
bool large_sharing_is_right(void);
bool large_tiles_are_right(void);

#endif
