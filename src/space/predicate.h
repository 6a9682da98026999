/* The predicate: when a pair belongs to the result. One definition for every engine.
 *
 * Definition: with t = (double)a - (double)b in every dimension, the size of the difference is, by norm,
 *     KITH_NORM_2    D2 = sum of t * t      (of which the distance is the root)
 *     KITH_NORM_1    D  = sum of |t|
 *     KITH_NORM_MAX  D  = max of |t|
 * over the dimensions in input order, every operation rounded to double, none fused; the pair belongs iff its
 * size is <= limit: eps * eps rounded for norm 2, eps for the others. Other metrics are embedded: their points
 * become others (unit vectors), to which norm 2 applies with a limit of its own (space.h).
 *
 * Filter: for float32 input a kernel may compute s ~ size - limit in float32. For norms 2 and 1 the sum starts
 * at -limit: s = -limit;  for each dimension: t = a - b;  s = fma(t, t, s) (or s + t * t), or s + |t| and for
 * norm max s = max |t| - limit. With u = 2^-24, norm 2 (limit is eps2): rounding eps2 to float32 costs u *
 * eps2; each t carries a relative error u, so the squares together 2u * D2, and unfused products u * D2 more;
 * each of the dim sums costs u times its result. Partial sums never fall, so they lie in [-eps2, max(s, 0)].
 * For a pair with D2 <= eps2 that adds up to at most (dim + 4) u eps2, and for one with D2 > eps2 to (dim + 4)
 * u D2, whence s >= -(dim + 4) u eps2. So with band = (dim + 6) u eps2, s < -band proves that the pair belongs
 * and s > band that it does not; inside the band the definition decides. For norm 1 the same argument gives
 * (dim + 2) u eps, for norm max 3 u eps. The filter is used only while the limit is so far from the ends of
 * float32's range that underflow costs less than the 2u to spare; overflow gives s = +inf, which rightly
 * rejects. Both assume rounding to nearest and no flushing of subnormals (docs/exactness.md has the whole
 * proof).
 *
 * For float64 input the kernel sees coordinates rounded to float32 after subtracting an origin o close to the
 * queries: |q - o| <= h (in the norm). Coordinates of q and p then carry errors of at most u |q_c - o_c| and
 * u |p_c - o_c| <= u (|q_c - o_c| + |t_c|), so t_c one of 2u |q_c - o_c| + 2u |t_c|, and D2 one of
 * 4u D2 + 4u h sqrt(D2) (Cauchy-Schwarz) where it was 2u D2: the band grows to (dim + 9) u eps2 + 4.01 u h eps.
 * The argument for D2 > eps2 needs D2 - 4u h sqrt(D2) to rise with D2, which holds for h < 2^20 eps. The other
 * norms sum or compare the t_c themselves, which adds 2u h: (dim + 9) u eps + 2.01 u h.
 *
 * Includes nothing but kith.h; everything to its right on the data path may include it. */
#ifndef KITH_SPACE_PREDICATE_H
#define KITH_SPACE_PREDICATE_H

#include "kith.h"

#include <math.h>
#include <stdbool.h>

/* Functions that kernels on a GPU call, too. */
#ifdef __CUDACC__
#define KITH_DEVICE __host__ __device__
#else
#define KITH_DEVICE
#endif

typedef enum kith_norm { KITH_NORM_2 = 0, KITH_NORM_1 = 1, KITH_NORM_MAX = 2 } kith_norm;

typedef struct kith_predicate {
  kith_norm norm;
  double limit;    /* of the size, by the definition; may be infinite: then every pair belongs */
  double reach;    /* no pair belongs whose coordinates differ by more in any dimension */
  bool everything; /* every pair belongs */
  float minus_limit;
  float band; /* of the filter */
  bool filter;
} kith_predicate;

/* a + b * c, rounded twice: compilers for GPUs fuse the two operations unless they are told not to. */
static inline KITH_DEVICE double kith_add_product(double a, double b, double c) {
#ifdef __CUDA_ARCH__
  return __dadd_rn(a, __dmul_rn(b, c));
#else
  return a + b * c;
#endif
}

/* One step of the definition: the size so far, and the difference in the next dimension. */
static inline KITH_DEVICE double kith_norm_add(kith_norm norm, double size, double t) {
  if (norm == KITH_NORM_2)
    return kith_add_product(size, t, t);
  t = fabs(t);
  return norm == KITH_NORM_1 ? size + t : t > size ? t : size;
}

/* The distance of that size, and the size of a distance. */
static inline KITH_DEVICE double kith_norm_distance(kith_norm norm, double size) {
  return norm == KITH_NORM_2 ? sqrt(size) : size;
}
static inline KITH_DEVICE double kith_norm_size(kith_norm norm, double distance) {
  return norm == KITH_NORM_2 ? distance * distance : distance;
}

static inline KITH_DEVICE kith_predicate kith_predicate_of(kith_norm norm, double limit, uint32_t dim) {
  kith_predicate predicate = {.norm = norm, .limit = limit, .everything = isinf(limit)};
  /* t * t may round or underflow to at most the limit for t slightly above its root: 2^-536 is a safe bound for
   * the underflow, 2^-40 more than covers the rounding. */
  double eps = kith_norm_distance(norm, limit);
  predicate.reach = predicate.everything ? INFINITY : (eps + 0x1p-536) * (1 + 0x1p-40);
  predicate.filter = limit >= 1e-30 && limit <= 1e30;
  predicate.minus_limit = predicate.filter ? (float)-limit : 0.0F;
  predicate.band = predicate.filter ? (float)((dim + 6) * 0x1p-24 * limit) : 0.0F;
  return predicate;
}

/* The Euclidean one. */
static inline KITH_DEVICE kith_predicate kith_predicate_make(double eps, uint32_t dim) {
  return kith_predicate_of(KITH_NORM_2, eps * eps, dim);
}

/* The band for float64 input, with queries at most h from the origin, in the norm. Returns false if h is so
 * large beside eps that too many pairs would lie in it. */
static inline KITH_DEVICE bool kith_predicate_narrow(kith_predicate *predicate, uint32_t dim, double h) {
  double eps = kith_norm_distance(predicate->norm, predicate->limit);
  if (!predicate->filter || !(h <= 1024 * eps))
    return false;
  double spread = predicate->norm == KITH_NORM_2 ? 4.01 * h * eps : 2.01 * h;
  predicate->band = (float)(0x1p-24 * ((dim + 9) * predicate->limit + spread));
  return true;
}

#endif
