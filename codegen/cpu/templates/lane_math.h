// Vector helpers of the templates: broadcast, select, and own exp2 and log, because bits may not depend on a libm.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_LANE_MATH_H
#define ULY_CODEGEN_CPU_TEMPLATES_LANE_MATH_H

#include <immintrin.h>
#include <stdbool.h>

#include "codegen/cpu/templates/template.h"

#define ULY_UNROLL _Pragma("clang loop unroll(full)")
#define ULY_PLAIN _Pragma("clang loop unroll(disable) vectorize(disable)") // off the hot path: less code to compile

ULY_INLINE vf vf_load(const float *p) { return *(const vf *)p; }
ULY_INLINE void vf_store(float *p, vf x) { *(vf *)p = x; }

ULY_INLINE vf vf_splat(float x) {
#if VL == 16
  return (vf)_mm512_set1_ps(x);
#else
  return (vf)_mm256_set1_ps(x);
#endif
}

ULY_INLINE vi vi_splat(int32_t x) {
#if VL == 16
  return (vi)_mm512_set1_epi32(x);
#else
  return (vi)_mm256_set1_epi32(x);
#endif
}

ULY_INLINE vf vf_fma(vf a, vf b, vf c) { return __builtin_elementwise_fma(a, b, c); }

// |m| is all ones or all zeros a lane.
ULY_INLINE vf vf_select(vi m, vf yes, vf no) { return (vf)(((vi)yes & m) | ((vi)no & ~m)); }

// The larger one; |b| where either is NaN.
ULY_INLINE vf vf_max(vf a, vf b) { return vf_select(a > b, a, b); }

ULY_INLINE bool vi_any(vi m) { return __builtin_reduce_or(m) != 0; }

// All ones in the first |n| lanes.
ULY_INLINE vi vi_first(int64_t n) {
#if VL == 16
  const vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#else
  const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};
#endif
  return lane < vi_splat((int32_t)(n < 0 ? 0 : n < VL ? n : VL));
}

// The first |n| of VL numbers, 1 … VL; the others are neither read nor written.
ULY_INLINE vf vf_load_first(const float *p, int64_t n) {
  if (n == VL) return vf_load(p);
#if VL == 16
  return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#else
  return (vf)_mm256_maskload_ps(p, (__m256i)vi_first(n));
#endif
}

ULY_INLINE void vf_store_first(float *p, int64_t n, vf x) {
  if (n == VL) {
    vf_store(p, x);
    return;
  }
#if VL == 16
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)x);
#else
  _mm256_maskstore_ps(p, (__m256i)vi_first(n), (__m256)x);
#endif
}

// 2^x for x < 128: an integer below (AVX-512: scalef takes it itself) or the nearest one, and a polynomial of degree 5 of what is left, relative error below 2e-7; exactly 1 at 0. NaN
// stays, results below 2^-126 are 0 (under FTZ). Not the same bits at every CPU level.
ULY_INLINE vf vf_exp2(vf x) {
#if VL == 16
  const float c[6] = {0x1p+0f, 0x1.62e4bap-1f, 0x1.ebdb5cp-3f, 0x1.c91ce6p-5f, 0x1.277846p-7f, 0x1.e975p-10f};
  const vf f = (vf)_mm512_reduce_ps((__m512)x, _MM_FROUND_TO_NEG_INF);
#else
  const float c[6] = {0x1p+0f, 0x1.62e428p-1f, 0x1.ebf918p-3f, 0x1.c6b6e4p-5f, 0x1.3d0c52p-7f, 0x1.5c08e6p-10f};
  const vf n = __builtin_elementwise_roundeven(x), f = x - n;
#endif
  vf p = vf_splat(c[5]);
  ULY_UNROLL
  for (int i = 4; i >= 0; i--) p = vf_fma(p, f, vf_splat(c[i]));
#if VL == 16
  return (vf)_mm512_scalef_ps((__m512)p, (__m512)x);
#else
  vi exponent = (vi)_mm256_slli_epi32(_mm256_cvtps_epi32((__m256)n), 23); // 0 for NaN
  return (vf)(((vi)p + exponent) & ~(vi)(x < vf_splat(-126.0f)));
#endif
}

// Natural logarithm of normal x > 0, in float64: absolute error below 1e-9. NaN and Inf give NaN.
ULY_INLINE vd vd_log(vf x) {
  vi bits = (vi)x, e = (bits - 0x3f3504f3) >> 23;
  vf mantissa = (vf)(bits - (e << 23)) + (x - x); // in [sqrt(1/2), sqrt(2)]
  vd m = __builtin_convertvector(mantissa, vd), z = (m - 1.0) / (m + 1.0), z2 = z * z;
  vd series = 1.0 + z2 * (1.0 / 3 + z2 * (1.0 / 5 + z2 * (1.0 / 7 + z2 * (1.0 / 9 + z2 * (1.0 / 11)))));
  return __builtin_convertvector(e, vd) * 0x1.62e42fefa39efp-1 + 2.0 * z * series;
}

#endif
