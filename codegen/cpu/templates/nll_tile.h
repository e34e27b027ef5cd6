// Statistics of a row of logits, tile by tile of ULY_NLL_TILE columns, and the loss that they give. Shared by gemm.c, which makes them of sums, and nll.c.
//
// Bits: a tile is 64 columns from a multiple of 64 on; its largest element does not depend on an order, its exponentials are added lane by lane, vectors ascending, then lanes by halves.
// Tiles are added in the same way. Columns that are not there count as −Inf and add 0.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_NLL_TILE_H
#define ULY_CODEGEN_CPU_TEMPLATES_NLL_TILE_H

#include "codegen/cpu/templates/lane_math.h"

enum { NLL_VECTORS = ULY_NLL_TILE / VL };

#define NLL_NOTHING (-__builtin_inff())

ULY_INLINE float nll_largest(vf x) {
#if VL == 16
  return _mm512_reduce_max_ps((__m512)x);
#else
  __m256 a = (__m256)x;
  __m128 h = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  h = _mm_max_ps(h, _mm_movehl_ps(h, h));
  return _mm_cvtss_f32(_mm_max_ss(h, _mm_movehdup_ps(h)));
#endif
}

ULY_INLINE float nll_add_lanes(vf s) {
#if VL == 16
  typedef float v8 __attribute__((vector_size(32)));
  v8 h = __builtin_shufflevector(s, s, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(s, s, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  vf h = s;
#endif
  return ((h[0] + h[4]) + (h[2] + h[6])) + ((h[1] + h[5]) + (h[3] + h[7]));
}

// exp(x − m) for x ≤ m. NaN stays; so far below that exp2 would not know it, 0.
ULY_INLINE vf nll_exp(vf x, vf m) { return vf_exp2(vf_max(vf_splat(-200.0f), (x - m) * vf_splat(0x1.715476p0f))); }

ULY_INLINE float nll_finite(float m) { return m > -__FLT_MAX__ ? m : -__FLT_MAX__; } // so that −Inf − m is −Inf

ULY_INLINE void nll_tile(const vf x[NLL_VECTORS], float *largest, float *sum) {
  vf m = x[0], s = {0};
  ULY_UNROLL
  for (int j = 1; j < NLL_VECTORS; j++) m = vf_max(m, x[j]);
  *largest = nll_finite(nll_largest(m));
  m = vf_splat(*largest);
  ULY_UNROLL
  for (int j = 0; j < NLL_VECTORS; j++) s += nll_exp(x[j], m);
  *sum = nll_add_lanes(s);
}

// log Σ exp(x) − target of a row whose statistics are there. NaN where one of x is NaN or +Inf, or all are −Inf.
ULY_INLINE float nll_loss(const float *stats, int64_t tiles, float target) {
  const float *largest = stats, *sums = stats + tiles;
  vf most = vf_splat(NLL_NOTHING), total = {0};
  ULY_PLAIN
  for (int64_t t = 0; t < tiles; t += VL) {
    int64_t n = tiles - t < VL ? tiles - t : VL;
    most = vf_max(most, vf_select(vi_first(n), vf_load_first(largest + t, n), vf_splat(NLL_NOTHING)));
  }
  vf m = vf_splat(nll_finite(nll_largest(most)));
  ULY_PLAIN
  for (int64_t t = 0; t < tiles; t += VL) {
    int64_t n = tiles - t < VL ? tiles - t : VL;
    total += vf_load_first(sums + t, n) * nll_exp(vf_select(vi_first(n), vf_load_first(largest + t, n), vf_splat(NLL_NOTHING)), m);
  }
  float sum = nll_add_lanes(total);
  double log = vd_log(vf_splat(sum))[0];
  return sum == 0.0f ? __builtin_nanf("") : (float)((double)m[0] + log - (double)target);
}

#endif
