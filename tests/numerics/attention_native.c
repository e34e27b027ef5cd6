// Compiled once a level, with -DULY_LEVEL=v3, v4 or amx; and once more with -DSPECIAL, which gives the constants values as a compiled model does.
#include "tests/numerics/attention_native.h"

#include <math.h>

#include "tests/numerics/attention_rules.h"

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#ifdef SPECIAL
#define NAME(name) PASTE(attention_special##name, ULY_LEVEL)
#define uly_attention_dh NAME(_dh)
#define uly_attention_dv NAME(_dv)
#define uly_attention_group NAME(_group)
#define uly_attention_scale NAME(_scale)
#define uly_attention_dtype NAME(_dtype)
#define uly_attention_has_score NAME(_has_score)
#define uly_attention_has_mask NAME(_has_mask)
#define uly_attention_has_sink NAME(_has_sink)
#define uly_attention_has_lse NAME(_has_lse)
#else
#define NAME(name) PASTE(attention_native##name, ULY_LEVEL)
#endif
#define uly_attention_fwd NAME()
#define uly_hook_attention_score NAME(_score)
#define uly_hook_attention_mask NAME(_mask)
#define uly_hook_attention_range NAME(_range)

#include "codegen/cpu/templates/attention_fwd.c"

#ifdef SPECIAL
const int64_t uly_attention_dh = ATTENTION_SPECIAL_DH, uly_attention_dv = ATTENTION_SPECIAL_DV, uly_attention_group = ATTENTION_SPECIAL_GROUP,
#ifdef __AMX_BF16__
              uly_attention_dtype = LANE_BF16;
#else
              uly_attention_dtype = LANE_F32;
#endif
const double uly_attention_scale = ATTENTION_SPECIAL_SCALE;
const int32_t uly_attention_has_score = 0, uly_attention_has_mask = 1, uly_attention_has_sink = 0, uly_attention_has_lse = 1;
#endif

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
  if (call->op[HOOK_COUNT].n) ++*(int64_t *)ptr(call, HOOK_COUNT);
  if (mode == RANGES_NONE || (mode == RANGES_SOME && (q0 + k0 * 3 + (k1 - k0)) % 3 == 0)) return ULY_RANGE_PARTIAL;
  const int kind = attention_range(val(call, HOOK_MASK), val(call, HOOK_MASK_A), val(call, HOOK_MASK_B), documents(call, b), h, q0, q1, k0, k1);
  return kind > 0 ? ULY_RANGE_FULL : kind < 0 ? ULY_RANGE_EMPTY : ULY_RANGE_PARTIAL;
}
