/* The definition in any space: norms, a limit for every query, images in a periodic box. For the kernels with
 * ANY_SPACE; the others know one limit, Euclidean space, and of a box that the grid wraps around its periods.
 */
#ifndef KITH_ENGINE_CUDA_SPACE_CUH
#define KITH_ENGINE_CUDA_SPACE_CUH

#include "engine/cuda/index.cuh"

namespace kith_cuda {

/* Whether a pair may have two images within the limit. */
inline bool has_ties(const kith_cuda_spec &spec) {
  return spec.lattice.n > 0 && spec.doubt < spec.predicate.limit;
}

/* Whether a join needs these kernels for the points as they are; for images in a periodic box, every one does.
 */
inline bool needs_general(const kith_cuda_spec &spec) {
  return spec.predicate.norm != KITH_NORM_2 || spec.limits || has_ties(spec);
}

/* Whether each pair is looked at once, from the side of the query that comes first. */
inline bool meets_once(const kith_cuda_spec &spec) { return spec.counts && spec.one_set && !spec.limits; }

/* Whether the rows of a grid may wrap around a periodic box; else candidates near its faces have images.
 * Without ties the reach is less than half of every side, whatever the rounding. */
inline bool may_wrap(const kith_cuda_spec &spec) {
  return spec.lattice.n > 0 && !spec.lattice.skewed && !needs_general(spec) && spec.a.dim <= KITH_GRID_DIMS;
}

/* How many of the last dimensions may be periodic axes that such a grid leaves uncut: differences along them
 * are folded. With five that are cut there are rows enough to look for. */
constexpr uint32_t most_folds(uint32_t dim) { return dim > 5 && dim <= KITH_GRID_DIMS ? dim - 5 : 0; }
enum { MOST_FOLDS = most_folds(KITH_GRID_DIMS) };

/* A candidate as it is seen in the image of a shift: moved by the shift's opposite. */
struct image {
  uint32_t source; /* its position */
  uint32_t shift;  /* in the list of shifts */
};

/* The side of a box in two float32 numbers. */
struct box_side {
  float rounded, rest;
};

/* The pass over images, in a periodic box: box.cuh. */
struct image_args {
  const image *list;    /* by position; NULL: candidates are as they are */
  const double *coords; /* of the images, where there are at most 8 dimensions */
  const kith_shift *shifts;
  double rounding;  /* what moving may do to coordinates, for the band */
  uint32_t *filled; /* FILL: pairs that are in the rows already, by id */
};

/* What a join in such a space needs to know beside the predicate, whose limit is the largest of all. */
struct space_args {
  const double *limits; /* by id of the query; NULL: all have the predicate's */
  bool symmetric;       /* COUNT: pairs are looked at once, and counted in both orders */
  bool ties;            /* a pair may have two images within the limit, */
  double doubt;         /* if its size is larger than this: then the nearer one counts */
  image_args images;
  kith_lattice lattice; /* n is 0: there is no box */
  /* A periodic box that the grid wraps around: */
  double period[KITH_GRID_DIMS]; /* its sides along the dimensions, 0 where it is open; */
  box_side side[KITH_GRID_DIMS]; /* the same; */
  double periods;                /* all together; */
  double folded;                 /* those of axes that are not cut; */
  float fold[MOST_FOLDS];        /* each of them, in the last dimensions; infinite: not one */
};

/* The size of the difference of two points, by the definition; the second is in the image of a shift. Points
 * are anything that [c] gives their coordinates of. */
template <typename P>
__device__ double size_of(const P &query, const P &candidate, uint32_t dim, kith_norm norm,
                          const kith_lattice &lattice, const kith_shift &shift) {
  double size = 0;
  for (uint32_t c = 0, i = 0; c < dim; c++) {
    double t = __dsub_rn((double)query[c], (double)candidate[c]);
    if (i < lattice.n && lattice.axis[i] == c)
      t = __dadd_rn(t, shift.by[i++]);
    size = kith_norm_add(norm, size, t);
  }
  return size;
}

/* All images of a pair that may be within reach: calls see(shift) until it says no. */
template <typename P, typename F>
__device__ void each_image(const P &query, const P &candidate, const kith_lattice &lattice, double reach,
                           F see) {
  kith_differences differences;
  differences.reach = reach;
  for (uint32_t i = 0; i < lattice.n; i++) {
    uint32_t c = lattice.axis[i];
    differences.low[i] = differences.high[i] = __dsub_rn((double)query[c], (double)candidate[c]);
  }
  kith_shift_walk walk;
  bool more = kith_shift_first(&lattice, &differences, &walk);
  while (more && see(walk.shift))
    more = kith_shift_next(&lattice, &differences, &walk);
}

/* Whether no other image of a pair is nearer, and no equally near one comes first. */
template <typename T>
__device__ __noinline__ bool is_nearest(const T *query, const T *candidate, uint32_t dim,
                                        const kith_predicate &predicate, const kith_lattice &lattice,
                                        const kith_shift &found) {
  double size = size_of(query, candidate, dim, predicate.norm, lattice, found);
  bool nearest = true;
  each_image(query, candidate, lattice, predicate.reach, [&](const kith_shift &shift) {
    if (kith_shift_equals(&lattice, &shift, &found))
      return true;
    double other = size_of(query, candidate, dim, predicate.norm, lattice, shift);
    nearest = !(other < size || (other == size && kith_shift_before(&lattice, &shift, &found)));
    return nearest;
  });
  return nearest;
}

} // namespace kith_cuda
#endif
