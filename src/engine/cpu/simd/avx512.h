/* The vector vocabulary in AVX-512 (F, DQ, BW, VL): see scalar.h for the meaning of each word. */
#ifndef KITH_SIMD_H
#define KITH_SIMD_H

#include <immintrin.h>
#include <stdint.h>

enum { LANES = 16, D_LANES = 8, B_LANES = 8 };
typedef __m512 vf;
typedef __m512i vu;
typedef __m512d vd;
typedef __m512i vb;
typedef __mmask16 vorder;

static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
static inline vf vf_set(float x) { return _mm512_set1_ps(x); }
static inline vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vf_muladd(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_abs(vf a) { return _mm512_abs_ps(a); }
/* vrangeps 0x0B: the larger absolute value, sign cleared, in one instruction. */
static inline vf vf_max_abs(vf a, vf b) { return _mm512_range_ps(a, b, 0x0B); }
/* vrangeps 0x0A: the smaller absolute value, sign cleared, in one instruction. */
static inline vf vf_min_abs(vf a, vf b) { return _mm512_range_ps(a, b, 0x0A); }
/* Lowers by so much what exceeds a bound. */
static inline vf vf_lower_behind(vf a, vf bound, vf by) {
  return _mm512_mask_sub_ps(a, _mm512_cmp_ps_mask(a, bound, _CMP_GT_OQ), a, by);
}
static inline vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline float vf_reduce_min(vf a) { return _mm512_reduce_min_ps(a); }
static inline float vf_reduce_max(vf a) { return _mm512_reduce_max_ps(a); }
static inline uint32_t vf_mask_le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
static inline uint32_t vf_mask_lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }

static inline vorder v_order(uint32_t mask) { return (vorder)mask; }
static inline void vf_pack(float *out, vf a, vorder order) {
  _mm512_storeu_ps(out, _mm512_maskz_compress_ps(order, a));
}

static inline vu vu_zero(void) { return _mm512_setzero_si512(); }
static inline vu vu_from(uint32_t first) {
  return _mm512_add_epi32(_mm512_set1_epi32((int)first),
                          _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
static inline void vu_store(uint32_t *p, vu a) { _mm512_storeu_si512(p, a); }
static inline void vu_pack(uint32_t *out, vu a, vorder order) {
  vu_store(out, _mm512_maskz_compress_epi32(order, a));
}
static inline vu vu_load(const uint32_t *p) { return _mm512_loadu_si512(p); }
/* Compared, not shifted: shifts share their port with ranges. */
static inline vu vu_count_negative(vu count, vf a) {
  __mmask16 negative = _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_LT_OQ);
  return _mm512_mask_sub_epi32(count, negative, count, _mm512_set1_epi32(-1));
}
static inline uint32_t vu_sum(vu a) { return (uint32_t)_mm512_reduce_add_epi32(a); }
static inline uint32_t vu_mask_gt(const uint32_t *ids, uint32_t bound) {
  return _mm512_cmpgt_epu32_mask(vu_load(ids), _mm512_set1_epi32((int)bound));
}
/* Compressing in a register and storing under a mask is several times faster than compressing to memory. */
static inline void vu_compress(uint32_t *out, vu ids, uint32_t mask) {
  __mmask16 front = (__mmask16)((1U << __builtin_popcount(mask)) - 1);
  _mm512_mask_storeu_epi32(out, front, _mm512_maskz_compress_epi32((__mmask16)mask, ids));
}

static inline vd vd_load_f32(const float *p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
static inline vd vd_load_f64(const double *p) { return _mm512_loadu_pd(p); }
static inline vd vd_set(double x) { return _mm512_set1_pd(x); }
static inline vd vd_sub(vd a, vd b) { return _mm512_sub_pd(a, b); }
static inline vd vd_mul(vd a, vd b) { return _mm512_mul_pd(a, b); }
static inline vd vd_add(vd a, vd b) { return _mm512_add_pd(a, b); }
static inline vd vd_abs(vd a) { return _mm512_abs_pd(a); }
static inline vd vd_max(vd a, vd b) { return _mm512_max_pd(a, b); }
static inline vd vd_min(vd a, vd b) { return _mm512_min_pd(a, b); }
static inline uint32_t vd_mask_le(vd a, vd b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
static inline void vd_store(double *p, vd a) { _mm512_storeu_pd(p, a); }
static inline void vd_store_f32(float *p, vd a) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(a)); }
static inline vf vf_load_narrow(const double *p, vd origin) {
  __m256 low = _mm512_cvtpd_ps(vd_sub(vd_load_f64(p), origin));
  __m256 high = _mm512_cvtpd_ps(vd_sub(vd_load_f64(p + D_LANES), origin));
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

static inline vb vb_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
static inline vb vb_repeat(const uint8_t *p) {
  return _mm512_castpd_si512(_mm512_broadcastsd_pd(_mm_load_sd((const double *)(const void *)p)));
}
static inline vb vb_set_byte(uint8_t x) { return _mm512_set1_epi8((char)x); }
static inline vb vb_set_sum(int64_t x) { return _mm512_set1_epi64(x); }
static inline vb vb_or(vb a, vb b) { return _mm512_or_si512(a, b); }
static inline vb vb_add_bytes(vb a, vb b) { return _mm512_add_epi8(a, b); }
static inline vb vb_add_sad(vb sum, vb a, vb b) { return _mm512_add_epi64(sum, _mm512_sad_epu8(a, b)); }
static inline vb vb_max_less(vb most, vb a, vb b) { return _mm512_max_epu8(most, _mm512_sub_epi8(a, b)); }
static inline uint32_t vb_mask_negative(vb a) { return _mm512_movepi64_mask(a); }
static inline uint32_t vb_mask_sum_le(vb a, vb bound) { return _mm512_cmple_epi64_mask(a, bound); }
static inline uint32_t vb_mask_within(vb a, vb bound) {
  return _mm512_testn_epi64_mask(_mm512_subs_epu8(a, bound), _mm512_set1_epi8(-1));
}

#endif
