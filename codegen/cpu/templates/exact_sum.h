// Sums of f32 as integers: the value of |limbs| is Σ_j limbs[j] · 2^(32 j − 149), limbs signed, not normalised. A term touches two limbs with at most 32 bits each, so
// 2^31 terms fit. The last limb holds flags of what is not finite.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_EXACT_SUM_H
#define ULY_CODEGEN_CPU_TEMPLATES_EXACT_SUM_H

#include <stdbool.h>

#include "codegen/cpu/templates/template.h"

enum { EXACT_VALUE_LIMBS = ULY_EXACT_LIMBS - 1, EXACT_NAN = 1, EXACT_PLUS_INF = 2, EXACT_MINUS_INF = 4 };

typedef union f32_bits {
  float f;
  uint32_t u;
} f32_bits;

ULY_INLINE void exact_add(int64_t *limbs, uint32_t bits) {
  uint32_t exponent = bits >> 23 & 255, fraction = bits & 0x7fffff;
  if (exponent == 255) {
    limbs[EXACT_VALUE_LIMBS] |= fraction ? EXACT_NAN : bits >> 31 ? EXACT_MINUS_INF : EXACT_PLUS_INF;
    return;
  }
  uint64_t m = exponent ? fraction | 0x800000 : fraction;
  uint32_t place = exponent ? exponent - 1 : 0; // of m's lowest bit, counted from 2^−149
  m <<= place & 31;
  int64_t low = (int64_t)(m & 0xffffffff), high = (int64_t)(m >> 32), sign = -(int64_t)(bits >> 31);
  limbs[place >> 5] += (low ^ sign) - sign;
  limbs[(place >> 5) + 1] += (high ^ sign) - sign;
}

// Bits [first, first + n) of a magnitude of normalised limbs, n ≤ 32; bits below 0 are 0.
ULY_INLINE uint64_t exact_bits(const uint64_t *limbs, int first, int n) {
  uint64_t low = limbs[first >> 5], high = (first >> 5) + 1 < ULY_EXACT_LIMBS ? limbs[(first >> 5) + 1] : 0;
  return (high << 32 | low) >> (first & 31) & ((1ull << n) - 1);
}

// Rounded once, to nearest even.
ULY_INLINE float exact_round(const int64_t *limbs) {
  int64_t flags = limbs[EXACT_VALUE_LIMBS], carry = 0;
  f32_bits r = {.u = 0x7fc00000};
  if (flags & EXACT_NAN || (flags & EXACT_PLUS_INF && flags & EXACT_MINUS_INF)) return r.f;
  r.u = flags & EXACT_MINUS_INF ? 0xff800000 : 0x7f800000;
  if (flags) return r.f;
  uint64_t m[ULY_EXACT_LIMBS];
  for (int j = 0; j < EXACT_VALUE_LIMBS; j++) { // carries up: the last limb's decides the sign
    carry += limbs[j];
    m[j] = (uint64_t)carry & 0xffffffff;
    carry >>= 32;
  }
  bool negative = carry < 0;
  m[EXACT_VALUE_LIMBS] = (uint64_t)carry & 0xffffffff;
  if (negative) {
    uint64_t borrow = 1;
    for (int j = 0; j < ULY_EXACT_LIMBS; j++) {
      borrow += ~m[j] & 0xffffffff;
      m[j] = borrow & 0xffffffff;
      borrow >>= 32;
    }
  }
  int limb = ULY_EXACT_LIMBS - 1;
  while (limb > 0 && !m[limb]) limb--;
  int top = m[limb] ? 32 * limb + 31 - __builtin_clz((uint32_t)m[limb]) : -1;
  if (top < 24) { // exact: subnormal, or the smallest normal numbers
    r.u = (uint32_t)m[0];
  } else {
    uint64_t kept = exact_bits(m, top - 23, 24);
    bool half = exact_bits(m, top - 24, 1), sticky = exact_bits(m, (top - 24) & ~31, (top - 24) & 31);
    for (int j = 0; j < (top - 24) >> 5; j++) sticky |= m[j] != 0;
    kept += half && (sticky || (kept & 1));
    uint64_t bits = ((uint64_t)(top - 22) << 23) + (kept - 0x800000); // a carry moves into the exponent
    r.u = bits >= 0x7f800000 ? 0x7f800000 : (uint32_t)bits;
  }
  r.u |= (uint32_t)negative << 31;
  return r.f;
}

#endif
