/* Sketches: see sketch.h. */
#include "index/sketch.h"

#include "points/points.h"

void kith_sketch_point(const kith_sketch *sketch, const kith_points *points, uint64_t row, float *out,
                       uint64_t stride) {
  for (uint32_t j = 0; j < sketch->split; j++) {
    uint32_t c = sketch->columns[j];
    out[j * stride] = (float)(kith_points_get(points, row, c) - sketch->low[c]);
  }
  uint32_t groups = kith_sketch_dims(sketch) - sketch->split;
  for (uint32_t g = 0; g < groups; g++) {
    double sum = 0;
    for (uint32_t j = sketch->split + g; j < sketch->dim; j += groups) {
      uint32_t c = sketch->columns[j];
      sum = kith_norm_add(sketch->norm, sum, kith_points_get(points, row, c) - sketch->low[c]);
    }
    out[(sketch->split + g) * stride] = (float)kith_norm_distance(sketch->norm, sum);
  }
}

/* A coordinate of a sketch is at most the diagonal of the box, and carries a relative error of 2^-24 and (the
 * norm) some 2^-41: with 9 dimensions and two points, their distance is off by at most 6 * 2^-24 diagonals, all
 * in the norm. The sum in float adds less than 2^-19 of itself. Where coordinates or squares might overflow it
 * is infinite, and nothing is left out. */
float kith_sketch_reach(const kith_sketch *sketch, const kith_predicate *predicate) {
  double size = 0;
  for (uint32_t c = 0; c < sketch->dim; c++)
    size = kith_norm_add(sketch->norm, size, sketch->high[c] - sketch->low[c]);
  double diagonal = kith_norm_distance(sketch->norm, size);
  double reach = predicate->reach + 0x1p-20 * diagonal;
  double limit = kith_norm_size(sketch->norm, reach) * (1 + 0x1p-16) + 0x1p-140;
  return diagonal < 1e36 && limit < 1e36 ? (float)limit : INFINITY;
}
