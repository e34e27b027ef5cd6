// Vectors of floats from and to memory that holds f32, bf16 or f16: widened when read, rounded once when written, to nearest even; NaN stays one. f16 below its normal numbers is
// read and written exactly in every mode of the processor; bf16 below its own are those of f32, which count as 0.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_LANE_FLOATS_H
#define ULY_CODEGEN_CPU_TEMPLATES_LANE_FLOATS_H

#include "codegen/cpu/templates/lane_math.h"

enum {
#define DTYPE(id, name, code, ...) LANE_##id = code,
#include "runtime/base/dtype.def"
};

ULY_INLINE int64_t lane_bytes(int64_t dtype) { return dtype == LANE_F32 ? 4 : 2; }
ULY_INLINE const void *lane_place(int64_t dtype, const void *p, int64_t i) { return (const char *)p + i * lane_bytes(dtype); }

#if VL == 16
typedef __m256i lane_halves;
#else
typedef __m128i lane_halves;
#endif

// The first |n| of VL, 1 … VL; the others are neither read (0) nor written.
ULY_INLINE lane_halves halves_load(const void *p, int64_t n) {
#if VL == 16
  return n == VL ? _mm256_loadu_si256(p) : _mm256_maskz_loadu_epi16((__mmask16)((1u << n) - 1), p);
#else
  if (n == VL) return _mm_loadu_si128(p);
  uint16_t first[VL] = {0};
  ULY_PLAIN
  for (int64_t i = 0; i < n; i++) first[i] = ((const uint16_t *)p)[i];
  return _mm_loadu_si128((const void *)first);
#endif
}

// One lane is stored as such: see uly_memory_store.
ULY_INLINE void halves_store(void *p, int64_t n, lane_halves h) {
#if VL == 16
  if (n == VL)
    _mm256_storeu_si256(p, h);
  else if (n == 1)
    *(uint16_t *)p = (uint16_t)_mm256_extract_epi16(h, 0);
  else
    _mm256_mask_storeu_epi16(p, (__mmask16)((1u << n) - 1), h);
#else
  if (n == VL) {
    _mm_storeu_si128(p, h);
    return;
  }
  uint16_t first[VL];
  _mm_storeu_si128((void *)first, h);
  ULY_PLAIN
  for (int64_t i = 0; i < n; i++) ((uint16_t *)p)[i] = first[i];
#endif
}

ULY_INLINE vf bf16_widen(lane_halves h) {
#if VL == 16
  return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16);
#else
  return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16);
#endif
}

// As memory.c has it in hooks.
ULY_INLINE lane_halves bf16_narrow(vf x) {
  const vi bits = (vi)x, rounded = bits + 0x7fff + ((bits >> 16) & 1);
  const vi kept = (vi)vf_select(x != x, (vf)(bits | 0x400000), (vf)rounded) >> 16;
#if VL == 16
  return _mm512_cvtepi32_epi16((__m512i)kept);
#else
  const __m256i low = (__m256i)(kept & 0xffff);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 8));
#endif
}

ULY_INLINE vf f16_widen(lane_halves h) {
#if VL == 16
  return (vf)_mm512_cvtph_ps(h);
#else
  return (vf)_mm256_cvtph_ps(h);
#endif
}

ULY_INLINE lane_halves f16_narrow(vf x) {
#if VL == 16
  return _mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT);
#else
  return _mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT);
#endif
}

// |dtype| is a constant where the code is hot.
ULY_INLINE vf lane_load(int64_t dtype, const void *p, int64_t n) {
  if (dtype == LANE_BF16) return bf16_widen(halves_load(p, n));
  if (dtype == LANE_F16) return f16_widen(halves_load(p, n));
  return vf_load_first(p, n);
}

ULY_INLINE void lane_store(int64_t dtype, void *p, int64_t n, vf x) {
  if (dtype == LANE_BF16)
    halves_store(p, n, bf16_narrow(x));
  else if (dtype == LANE_F16)
    halves_store(p, n, f16_narrow(x));
  else
    vf_store_first(p, n, x);
}

#endif
