/* The vector vocabulary in AVX2 with FMA: see scalar.h for the meaning of each word. */
#ifndef KITH_SIMD_H
#define KITH_SIMD_H

#include <immintrin.h>
#include <stdint.h>

enum { LANES = 8, D_LANES = 4, B_LANES = 4 };
typedef __m256 vf;
typedef __m256i vu;
typedef __m256d vd;
typedef __m256i vb;
typedef __m256i vorder;

static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vf_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
static inline vf vf_set(float x) { return _mm256_set1_ps(x); }
static inline vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf vf_muladd(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a); }
static inline vf vf_max_abs(vf a, vf b) { return _mm256_max_ps(a, vf_abs(b)); }
static inline vf vf_min_abs(vf a, vf b) { return _mm256_min_ps(a, _mm256_andnot_ps(_mm256_set1_ps(-0.0F), b)); }
static inline vf vf_lower_behind(vf a, vf bound, vf by) {
  return _mm256_sub_ps(a, _mm256_and_ps(_mm256_cmp_ps(a, bound, _CMP_GT_OQ), by));
}
static inline vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline float vf_reduce_min(vf a) {
  __m128 half = _mm_min_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  half = _mm_min_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_min_ss(half, _mm_shuffle_ps(half, half, 1)));
}
static inline float vf_reduce_max(vf a) {
  __m128 half = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  half = _mm_max_ps(half, _mm_movehl_ps(half, half));
  return _mm_cvtss_f32(_mm_max_ss(half, _mm_shuffle_ps(half, half, 1)));
}
static inline uint32_t vf_mask_le(vf a, vf b) {
  return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ));
}
static inline uint32_t vf_mask_lt(vf a, vf b) {
  return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

/* A permutation whose indices are 3-bit numbers picked by pext. */
static inline vorder v_order(uint32_t mask) {
  uint64_t bytes = _pdep_u64(mask, UINT64_C(0x0101010101010101)) * 0xFF;
  uint64_t picked = _pext_u64(UINT64_C(0x0706050403020100), bytes);
  return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)picked));
}
static inline void vf_pack(float *out, vf a, vorder order) {
  _mm256_storeu_ps(out, _mm256_permutevar8x32_ps(a, order));
}

static inline vu vu_zero(void) { return _mm256_setzero_si256(); }
static inline vu vu_from(uint32_t first) {
  return _mm256_add_epi32(_mm256_set1_epi32((int)first), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline void vu_store(uint32_t *p, vu a) { _mm256_storeu_si256((__m256i *)p, a); }
static inline void vu_pack(uint32_t *out, vu a, vorder order) {
  vu_store(out, _mm256_permutevar8x32_epi32(a, order));
}
static inline vu vu_load(const uint32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline vu vu_count_negative(vu count, vf a) {
  return _mm256_add_epi32(count, _mm256_srli_epi32(_mm256_castps_si256(a), 31));
}
static inline uint32_t vu_sum(vu a) {
  __m128i half = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  half = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4E));
  return (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(half, _mm_shuffle_epi32(half, 0xB1)));
}
/* Unsigned comparison as signed, after flipping the top bits. */
static inline uint32_t vu_mask_gt(const uint32_t *ids, uint32_t bound) {
  __m256i flip = _mm256_set1_epi32(INT32_MIN);
  __m256i greater = _mm256_cmpgt_epi32(_mm256_xor_si256(vu_load(ids), flip),
                                       _mm256_xor_si256(_mm256_set1_epi32((int)bound), flip));
  return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(greater));
}
static inline void vu_compress(uint32_t *out, vu ids, uint32_t mask) {
  __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256i front = _mm256_cmpgt_epi32(_mm256_set1_epi32(__builtin_popcount(mask)), lane);
  _mm256_maskstore_epi32((int *)out, front, _mm256_permutevar8x32_epi32(ids, v_order(mask)));
}

static inline vd vd_load_f32(const float *p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
static inline vd vd_load_f64(const double *p) { return _mm256_loadu_pd(p); }
static inline vd vd_set(double x) { return _mm256_set1_pd(x); }
static inline vd vd_sub(vd a, vd b) { return _mm256_sub_pd(a, b); }
static inline vd vd_mul(vd a, vd b) { return _mm256_mul_pd(a, b); }
static inline vd vd_add(vd a, vd b) { return _mm256_add_pd(a, b); }
static inline vd vd_abs(vd a) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a); }
static inline vd vd_max(vd a, vd b) { return _mm256_max_pd(a, b); }
static inline vd vd_min(vd a, vd b) { return _mm256_min_pd(a, b); }
static inline uint32_t vd_mask_le(vd a, vd b) {
  return (uint32_t)_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LE_OQ));
}
static inline void vd_store(double *p, vd a) { _mm256_storeu_pd(p, a); }
static inline void vd_store_f32(float *p, vd a) { _mm_storeu_ps(p, _mm256_cvtpd_ps(a)); }
static inline vf vf_load_narrow(const double *p, vd origin) {
  return _mm256_set_m128(_mm256_cvtpd_ps(vd_sub(vd_load_f64(p + D_LANES), origin)),
                         _mm256_cvtpd_ps(vd_sub(vd_load_f64(p), origin)));
}

static inline vb vb_load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
static inline vb vb_repeat(const uint8_t *p) {
  return _mm256_castpd_si256(_mm256_broadcast_sd((const double *)(const void *)p));
}
static inline vb vb_set_byte(uint8_t x) { return _mm256_set1_epi8((char)x); }
static inline vb vb_set_sum(int64_t x) { return _mm256_set1_epi64x(x); }
static inline vb vb_or(vb a, vb b) { return _mm256_or_si256(a, b); }
static inline vb vb_add_bytes(vb a, vb b) { return _mm256_add_epi8(a, b); }
static inline vb vb_add_sad(vb sum, vb a, vb b) { return _mm256_add_epi64(sum, _mm256_sad_epu8(a, b)); }
static inline vb vb_max_less(vb most, vb a, vb b) { return _mm256_max_epu8(most, _mm256_sub_epi8(a, b)); }
static inline uint32_t vb_mask_negative(vb a) { return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(a)); }
static inline uint32_t vb_mask_sum_le(vb a, vb bound) {
  return ~vb_mask_negative(_mm256_cmpgt_epi64(a, bound)) & 15U;
}
static inline uint32_t vb_mask_within(vb a, vb bound) {
  return vb_mask_negative(_mm256_cmpeq_epi64(_mm256_max_epu8(a, bound), bound));
}

#endif
