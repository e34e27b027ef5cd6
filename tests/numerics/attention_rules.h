// Masks and scores of the attention tests: one definition for the kernel's hooks and for the oracle. Coordinates are global, q_offset added.
#ifndef ULY_TESTS_NUMERICS_ATTENTION_RULES_H
#define ULY_TESTS_NUMERICS_ATTENTION_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/kernel_abi.h"

typedef enum attention_mask {
  MASK_FULL,
  MASK_CAUSAL,
  MASK_WINDOW,
  MASK_SINK_WINDOW,
  MASK_PREFIX,
  MASK_NONE,
  MASK_DOCUMENTS,
  MASK_STRIPES,
  MASK_SCATTERED,
  MASK_EVERY_THIRD_ROW,
  N_MASKS
} attention_mask;
typedef enum attention_score { SCORE_NONE, SCORE_SOFTCAP, SCORE_ALIBI, SCORE_TABLE, N_SCORES } attention_score;
// Ranges exact, always PARTIAL, or exact with some PARTIAL instead: the results must be the same.
typedef enum attention_ranges { RANGES_EXACT, RANGES_NONE, RANGES_SOME, N_RANGES } attention_ranges;

// Captures and values of the hooks.
enum {
  HOOK_DOCUMENTS = ULY_ATTENTION_N_OPS /* i32 [b][max(S, T)] */,
  HOOK_TABLE /* f32 [S][T] */,
  HOOK_COUNT /* i64: calls of the range hook, or absent */,
  HOOK_N_OPS
};
enum { HOOK_MASK = ULY_ATTENTION_N_VALS, HOOK_MASK_A, HOOK_MASK_B, HOOK_SCORE, HOOK_RANGES, HOOK_DOCUMENT_ROW, HOOK_TABLE_ROW, HOOK_N_VALS };

static inline bool attention_allowed(int64_t mask, int64_t a, int64_t b, const int32_t *documents, int64_t h, int64_t q, int64_t k) {
  switch (mask) {
  case MASK_FULL: return true;
  case MASK_CAUSAL: return k <= q;
  case MASK_WINDOW: return 0 <= q - k && q - k < a;
  case MASK_SINK_WINDOW: return k <= q && (k < b || q - k < a);
  case MASK_PREFIX: return k < a || k <= q;
  case MASK_NONE: return false;
  case MASK_DOCUMENTS: return documents[q] == documents[k] && k <= q;
  case MASK_STRIPES: return (k / a + q / (a + 3) + h) % 2 == 0;
  case MASK_SCATTERED: return (q * 7 + k * 13 + h * 5 + q * k) % 11 > 4;
  case MASK_EVERY_THIRD_ROW: return q % 3 == 0;
  default: return false;
  }
}

// What the mask says of all pairs of [q0, q1) and [k0, k1): 1 all, −1 none, 0 some.
static inline int attention_range(int64_t mask, int64_t a, int64_t b, const int32_t *documents, int64_t h, int64_t q0, int64_t q1, int64_t k0, int64_t k1) {
  if (mask == MASK_CAUSAL) return k1 - 1 <= q0 ? 1 : k0 > q1 - 1 ? -1 : 0;
  if (mask == MASK_WINDOW) {
    const int64_t least = q0 - (k1 - 1), most = q1 - 1 - k0;
    return least >= 0 && most < a ? 1 : most < 0 || least >= a ? -1 : 0;
  }
  bool some = false, all = true;
  for (int64_t q = q0; q < q1; q++)
    for (int64_t k = k0; k < k1; k++) {
      const bool yes = attention_allowed(mask, a, b, documents, h, q, k);
      some |= yes;
      all &= yes;
      if (some && !all) return 0;
    }
  return all ? 1 : -1;
}

static inline double attention_slope(int64_t h) { return 0.0625 * (double)(1 + h % 5); }

#endif
