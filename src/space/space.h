/* The space of a join: what distance means, and where the points lie in it.
 *
 * Index and engines know norms and coordinates only (predicate.h). The space turns what was asked for into
 * that:
 *
 *   euclidean, manhattan, chebyshev   the norms 2, 1 and max, on the points as they are
 *   cosine, angular                   norm 2, on unit vectors a / |a|: |u - v|^2 = 2 (1 - cos)
 *   haversine                         norm 2, on unit vectors (cos lat cos lon, cos lat sin lon, sin lat)
 *   a periodic box                    norm 2, on points moved into the brick of the lattice (lattice.h)
 *
 * Embedding is part of the definition (docs/exactness.md): it is done once, in double, with operations that
 * round alike everywhere. May include points, base. */
#ifndef KITH_SPACE_SPACE_H
#define KITH_SPACE_SPACE_H

#include "points/points.h"
#include "space/lattice.h"

typedef struct kith_space {
  kith_metric metric;
  double radius; /* KITH_HAVERSINE; 0: distances are in degrees */
  kith_norm norm;
  uint32_t dim; /* of the points as they are joined */
  kith_lattice lattice;
} kith_space;

/* The name of a metric, as options have it. */
const char *kith_metric_name(kith_metric metric);

/* The space that options ask for, for points of dim columns; KITH_ERR_ARGUMENT, and why, if there is none. */
kith_status kith_space_make(kith_context *ctx, const kith_join_options *options, uint32_t dim,
                            kith_space *space);

/* Whether points become unit vectors. */
static inline bool kith_space_is_embedded(const kith_space *space) {
  return space->metric == KITH_COSINE || space->metric == KITH_ANGULAR || space->metric == KITH_HAVERSINE;
}

/* The limit on the size of a difference, for a distance eps; infinite where every pair belongs. */
double kith_space_limit(const kith_space *space, double eps);

/* The distance to report for a size. */
double kith_space_distance(const kith_space *space, double size);

/* What a look at points would find: those of a periodic box that lie in it have been looked at, to see that. */
typedef struct kith_seen {
  bool known; /* there are rows, all of them valid, of at most KITH_MAX_AXES columns */
  double min[KITH_MAX_AXES], max[KITH_MAX_AXES];
} kith_seen;

/* Points as they lie in their space. */
typedef struct kith_placed {
  kith_points points; /* the view itself where nothing changes, else of `owned`, */
  void *owned;        /* which the caller releases with kith_free */
  bool turned;        /* with their box */
  bool unwrapped;     /* some lie outside of the box, nearby: readers wrap them (lattice.h) */
  kith_seen seen;     /* about the points in the brick; of unwrapped ones the brick itself */
} kith_placed;

/* Rows without a place in the space (NaN, a zero vector, a latitude beyond the poles) are refused with
 * KITH_ERR_POINTS, under the name of the set, or become NaN if they are to be skipped. */
typedef struct kith_placing {
  const char *name;
  bool skip_invalid;
  bool may_wrap_later; /* readers are able to wrap */
} kith_placing;

/* Finds the places of points. */
kith_status kith_space_embed(kith_context *ctx, const kith_space *space, const kith_points *points,
                             const kith_placing *how, kith_placed *placed);

#endif
