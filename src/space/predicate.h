/* The predicate: when a pair belongs to the result. One definition for every engine.
 *
 * Definition: D2 = sum over the dimensions, in input order, of t * t with t = (double)a - (double)b, every
 * operation rounded to double, none fused; the pair belongs iff D2 <= eps2 with eps2 = eps * eps rounded.
 *
 * Filter: for float32 input a kernel may compute s ~ D2 - eps2 in float32, starting the sum at -eps2:
 *     s = -eps2;  for each dimension: t = a - b;  s = fma(t, t, s)   (or s + t * t)
 * With u = 2^-24: rounding eps2 to float32 costs u * eps2; each t carries a relative error u, so the squares
 * together 2u * D2, and unfused products u * D2 more; each of the dim sums costs u times its result. Partial
 * sums never fall, so they lie in [-eps2, max(s, 0)]. For a pair with D2 <= eps2 that adds up to at most
 * (dim + 4) u eps2, and for one with D2 > eps2 to (dim + 4) u D2, whence s >= -(dim + 4) u eps2. So with band =
 * (dim + 6) u eps2, s < -band proves that the pair belongs and s > band that it does not; inside the band the
 * definition decides. The filter is used only while eps2 is so far from the ends of float32's range that
 * underflow costs less than the 2u to spare; overflow gives s = +inf, which rightly rejects. Both assume
 * rounding to nearest and no flushing of subnormals (docs/exactness.md has the whole proof).
 *
 * For float64 input the kernel sees coordinates rounded to float32 after subtracting an origin o close to the
 * queries: |q - o| <= h (Euclidean). Coordinates of q and p then carry errors of at most u |q_c - o_c| and
 * u |p_c - o_c| <= u (|q_c - o_c| + |t_c|), so t_c one of 2u |q_c - o_c| + 2u |t_c|, and D2 one of
 * 4u D2 + 4u h sqrt(D2) (Cauchy-Schwarz) where it was 2u D2: the band grows to (dim + 9) u eps2 + 4.01 u h eps.
 * The argument for D2 > eps2 needs D2 - 4u h sqrt(D2) to rise with D2, which holds for h < 2^20 eps.
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

typedef struct kith_predicate {
  double eps2;     /* of the definition; may be infinite: then every pair belongs */
  double reach;    /* no pair belongs whose coordinates differ by more in any dimension */
  bool everything; /* every pair belongs */
  float minus_eps2;
  float band; /* of the filter */
  bool filter;
} kith_predicate;

static inline KITH_DEVICE kith_predicate kith_predicate_make(double eps, uint32_t dim) {
  double eps2 = eps * eps;
  kith_predicate predicate = {.eps2 = eps2, .everything = isinf(eps2)};
  /* t * t may round or underflow to at most eps2 for t slightly above eps: 2^-536 is a safe bound for the
   * underflow, 2^-40 more than covers the rounding. */
  predicate.reach = predicate.everything ? INFINITY : (eps + 0x1p-536) * (1 + 0x1p-40);
  predicate.filter = eps2 >= 1e-30 && eps2 <= 1e30;
  predicate.minus_eps2 = predicate.filter ? (float)-eps2 : 0.0F;
  predicate.band = predicate.filter ? (float)((dim + 6) * 0x1p-24 * eps2) : 0.0F;
  return predicate;
}

/* The band for float64 input, with queries at most h from the origin. Returns false if h is so large beside eps
 * that too many pairs would lie in it. */
static inline KITH_DEVICE bool kith_predicate_narrow(kith_predicate *predicate, uint32_t dim, double h) {
  double eps = sqrt(predicate->eps2);
  if (!predicate->filter || !(h <= 1024 * eps))
    return false;
  predicate->band = (float)(0x1p-24 * ((dim + 9) * predicate->eps2 + 4.01 * h * eps));
  return true;
}

#endif
