// Compiled once a level, with -DULY_LEVEL=v3 or v4.
#include "tests/numerics/attention_native.h"

#include <math.h>

#include "tests/numerics/attention_rules.h"

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define uly_attention_fwd PASTE(attention_native, ULY_LEVEL)
#define uly_hook_attention_score PASTE(attention_native_score, ULY_LEVEL)
#define uly_hook_attention_mask PASTE(attention_native_mask, ULY_LEVEL)
#define uly_hook_attention_range PASTE(attention_native_range, ULY_LEVEL)

#include "codegen/cpu/templates/attention_fwd.c"

static const int32_t *documents(const uly_call *call, int64_t b) { return (const int32_t *)ptr(call, HOOK_DOCUMENTS) + b * val(call, HOOK_DOCUMENT_ROW); }

static bool allowed(const uly_call *call, int64_t b, int64_t h, int64_t q, int64_t k) {
  return attention_allowed(val(call, HOOK_MASK), val(call, HOOK_MASK_A), val(call, HOOK_MASK_B), documents(call, b), h, q, k);
}

// Lanes past |n| are junk on purpose.
vi uly_hook_attention_mask(const uly_call *call, int64_t b, int64_t h, int64_t q0, int64_t k, int64_t n) {
  vi m;
  for (int i = 0; i < VL; i++) m[i] = i < n ? -(int32_t)allowed(call, b, h, q0 + i, k) : -(i & 1);
  return m;
}

// Lanes that are not live become NaN on purpose.
vf uly_hook_attention_score(const uly_call *call, int64_t b, int64_t h, int64_t q0, int64_t k, vi live, vf s) {
  (void)b;
  const float *table = call->op[HOOK_TABLE].n ? ptr(call, HOOK_TABLE) : NULL;
  const int64_t offset = val(call, ULY_ATTENTION_OFFSET);
  for (int i = 0; i < VL; i++) {
    if (!live[i]) {
      s[i] = NAN;
      continue;
    }
    switch (val(call, HOOK_SCORE)) {
    case SCORE_SOFTCAP: s[i] = 5.0f * tanhf(s[i] / 5.0f); break;
    case SCORE_ALIBI: s[i] -= (float)attention_slope(h) * (float)(q0 + i - k); break;
    case SCORE_TABLE: s[i] += table[(q0 + i - offset) * val(call, HOOK_TABLE_ROW) + k]; break;
    default: break;
    }
  }
  return s;
}

int32_t uly_hook_attention_range(const uly_call *call, int64_t b, int64_t h, int64_t q0, int64_t q1, int64_t k0, int64_t k1) {
  const int64_t mode = val(call, HOOK_RANGES);
  if (mode == RANGES_NONE || (mode == RANGES_SOME && (q0 + k0 * 3 + (k1 - k0)) % 3 == 0)) return ULY_RANGE_PARTIAL;
  bool some = false, all = true;
  for (int64_t q = q0; q < q1; q++)
    for (int64_t k = k0; k < k1; k++) {
      bool yes = allowed(call, b, h, q, k);
      some |= yes;
      all &= yes;
      if (some && !all) return ULY_RANGE_PARTIAL;
    }
  return all ? ULY_RANGE_FULL : ULY_RANGE_EMPTY;
}
