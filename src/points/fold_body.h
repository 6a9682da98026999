/* The smallest and largest of many values, for one type: points.c includes this for float and for double.
 *
 * Include with FOLD_TYPE, FOLD_BITS (an unsigned integer of its width) and FOLD_NAME(name) defined; they are
 * undefined again in the end. */

static inline FOLD_TYPE FOLD_NAME(smaller)(FOLD_TYPE a, FOLD_TYPE b) { return a < b ? a : b; }

static inline FOLD_TYPE FOLD_NAME(larger)(FOLD_TYPE a, FOLD_TYPE b) { return a > b ? a : b; }

/* Folds `rows` (1 or UNROLL) times `lanes` values; returns bits that are all zero if they are finite. */
static inline FOLD_BITS FOLD_NAME(fold_lanes)(const FOLD_TYPE *values, uint32_t rows, uint32_t lanes,
                                              FOLD_TYPE *low, FOLD_TYPE *high) {
  FOLD_BITS bad = 0;
  for (uint32_t lane = 0; lane < lanes; lane++) {
    FOLD_TYPE least = values[lane], most = least, zero = least - least;
    for (uint32_t row = 1; row < rows; row++) {
      FOLD_TYPE value = values[row * lanes + lane];
      zero += value - value;
      least = FOLD_NAME(smaller)(value, least);
      most = FOLD_NAME(larger)(value, most);
    }
    FOLD_BITS bits;
    memcpy(&bits, &zero, sizeof bits);
    bad |= bits;
    low[lane] = FOLD_NAME(smaller)(least, low[lane]);
    high[lane] = FOLD_NAME(larger)(most, high[lane]);
  }
  return bad;
}

/* Folds `count` values that follow each other, value k into entry k % dim of min and max. Returns whether
 * all are finite; if not, min and max are unspecified. The values run through `lanes` accumulators, a
 * multiple of dim, so that the inner loop has neither a branch nor a dependency and becomes vector code. */
static bool FOLD_NAME(fold)(const FOLD_TYPE *values, uint64_t count, uint32_t dim, double *min, double *max) {
  FOLD_TYPE low[KITH_MAX_DIM + FOLD_LANES], high[KITH_MAX_DIM + FOLD_LANES];
  uint32_t lanes = (FOLD_LANES + dim - 1) / dim * dim;
  for (uint32_t lane = 0; lane < lanes; lane++) {
    low[lane] = INFINITY;
    high[lane] = -INFINITY;
  }
  FOLD_BITS bad = 0;
  uint64_t at = 0;
  for (; count - at >= (uint64_t)UNROLL * lanes; at += (uint64_t)UNROLL * lanes)
    bad |= FOLD_NAME(fold_lanes)(values + at, UNROLL, lanes, low, high);
  for (; at < count; at += lanes)
    bad |=
        FOLD_NAME(fold_lanes)(values + at, 1, count - at < lanes ? (uint32_t)(count - at) : lanes, low, high);
  for (uint32_t lane = 0; lane < lanes; lane++) {
    keep_lower(&min[lane % dim], (double)low[lane]);
    keep_higher(&max[lane % dim], (double)high[lane]);
  }
  return bad == 0;
}

#undef FOLD_TYPE
#undef FOLD_BITS
#undef FOLD_NAME
