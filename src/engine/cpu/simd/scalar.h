/* The vector vocabulary in plain C, one lane: right on any 64-bit little-endian machine.
 *
 * vf: LANES floats. vu: LANES 32-bit counts or ids. vd: D_LANES doubles. vb: B_LANES times 8 bytes. Masks
 * have one bit per lane.
 * vorder: how to move the lanes of a mask to the front. */
#ifndef KITH_SIMD_H
#define KITH_SIMD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 1, D_LANES = 1, B_LANES = 1 };
typedef float vf;
typedef uint32_t vu;
typedef double vd;
typedef uint64_t vb;
typedef uint32_t vorder;

static inline vf vf_load(const float *p) { return *p; }
static inline void vf_store(float *p, vf a) { *p = a; }
static inline vf vf_set(float x) { return x; }
static inline vf vf_sub(vf a, vf b) { return a - b; }
static inline vf vf_muladd(vf a, vf b, vf c) { return a * b + c; }
static inline vf vf_add(vf a, vf b) { return a + b; }
static inline vf vf_abs(vf a) { return fabsf(a); }
/* The larger of a, which is not negative, and |b|. */
static inline vf vf_max_abs(vf a, vf b) { return fabsf(b) > a ? fabsf(b) : a; }
static inline vf vf_min_abs(vf a, vf b) { return fabsf(b) < a ? fabsf(b) : a; }
static inline vf vf_lower_behind(vf a, vf bound, vf by) { return a > bound ? a - by : a; }
static inline vf vf_min(vf a, vf b) { return a < b ? a : b; }
static inline vf vf_max(vf a, vf b) { return a > b ? a : b; }
static inline float vf_reduce_min(vf a) { return a; }
static inline float vf_reduce_max(vf a) { return a; }
static inline uint32_t vf_mask_le(vf a, vf b) { return a <= b; }
static inline uint32_t vf_mask_lt(vf a, vf b) { return a < b; }

/* Packing stores LANES values, those of the order first; what follows them has no meaning. */
static inline vorder v_order(uint32_t mask) { return mask; }
static inline void vf_pack(float *out, vf a, vorder order) {
  (void)order;
  *out = a;
}

static inline vu vu_zero(void) { return 0; }
/* first, first + 1, ... */
static inline vu vu_from(uint32_t first) { return first; }
static inline void vu_store(uint32_t *p, vu a) { *p = a; }
static inline void vu_pack(uint32_t *out, vu a, vorder order) {
  (void)order;
  *out = a;
}
static inline vu vu_load(const uint32_t *p) { return *p; }
static inline vu vu_count_negative(vu count, vf a) { return count + (a < 0); }
static inline uint32_t vu_sum(vu a) { return a; }
static inline uint32_t vu_mask_gt(const uint32_t *ids, uint32_t bound) { return *ids > bound; }
/* Stores the lanes of the mask, one behind the other, and nothing beyond them. */
static inline void vu_compress(uint32_t *out, vu ids, uint32_t mask) {
  if (mask)
    *out = ids;
}

static inline vd vd_load_f32(const float *p) { return *p; }
static inline vd vd_load_f64(const double *p) { return *p; }
static inline vd vd_set(double x) { return x; }
static inline vd vd_sub(vd a, vd b) { return a - b; }
static inline vd vd_mul(vd a, vd b) { return a * b; }
static inline vd vd_add(vd a, vd b) { return a + b; }
static inline vd vd_abs(vd a) { return fabs(a); }
static inline vd vd_max(vd a, vd b) { return a > b ? a : b; }
static inline vd vd_min(vd a, vd b) { return a < b ? a : b; }
static inline uint32_t vd_mask_le(vd a, vd b) { return a <= b; }
static inline void vd_store(double *p, vd a) { *p = a; }
static inline void vd_store_f32(float *p, vd a) { *p = (float)a; }
/* LANES doubles less an origin, as floats. */
static inline vf vf_load_narrow(const double *p, vd origin) { return (float)(*p - origin); }

static inline vb vb_load(const uint8_t *p) {
  vb a;
  memcpy(&a, p, sizeof a);
  return a;
}
/* The same 8 bytes in every lane, the same byte everywhere, and a signed number in every lane. */
static inline vb vb_repeat(const uint8_t *p) { return vb_load(p); }
static inline vb vb_set_byte(uint8_t x) { return x * UINT64_C(0x0101010101010101); }
static inline vb vb_set_sum(int64_t x) { return (vb)x; }
static inline vb vb_or(vb a, vb b) { return a | b; }
/* Byte by byte, modulo 256. */
static inline vb vb_add_bytes(vb a, vb b) {
  const vb top = UINT64_C(0x8080808080808080);
  return ((a & ~top) + (b & ~top)) ^ ((a ^ b) & top);
}
/* The sum of the absolute differences of 8 bytes, added to the number in the lane. */
static inline vb vb_add_sad(vb sum, vb a, vb b) {
  for (int i = 0; i < 64; i += 8) {
    int t = (int)(a >> i & 255) - (int)(b >> i & 255);
    sum += (vb)(t < 0 ? -t : t);
  }
  return sum;
}
/* The largest of most and a - b modulo 256, byte by byte. */
static inline vb vb_max_less(vb most, vb a, vb b) {
  vb result = 0;
  for (int i = 0; i < 64; i += 8) {
    uint8_t t = (uint8_t)((a >> i) - (b >> i));
    uint8_t m = (uint8_t)(most >> i);
    result |= (vb)(t > m ? t : m) << i;
  }
  return result;
}
/* Lanes whose number is negative, or at most a bound; lanes of which no byte exceeds the bound. */
static inline uint32_t vb_mask_negative(vb a) { return (uint32_t)(a >> 63); }
static inline uint32_t vb_mask_sum_le(vb a, vb bound) { return (int64_t)a <= (int64_t)bound; }
static inline uint32_t vb_mask_within(vb a, vb bound) { return vb_max_less(bound, a, 0) == bound; }

#endif
