// What an attention kernel works on, and its numbers: see attention_fwd.c.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_ATTENTION_ITEM_H
#define ULY_CODEGEN_CPU_TEMPLATES_ATTENTION_ITEM_H

#include <stdbool.h>

#include "codegen/cpu/templates/lane_math.h"
#include "codegen/cpu/templates/lane_transpose.h"

ULY_CONST(int64_t, uly_attention_dh);
ULY_CONST(int64_t, uly_attention_dv);
ULY_CONST(int64_t, uly_attention_group); // query heads a kv head
ULY_CONST(double, uly_attention_scale);
ULY_CONST(int64_t, uly_attention_dtype);     // of q, k, v and o
ULY_CONST(int32_t, uly_attention_has_score); // 0: the hook is not called
ULY_CONST(int32_t, uly_attention_has_mask);  // 0: neither mask nor range is called
ULY_CONST(int32_t, uly_attention_has_sink);
ULY_CONST(int32_t, uly_attention_has_lse);

enum {
#if VL == 16
  NV = 2,
#else
  NV = 3,
#endif
  NR = NV * VL,
  ITEM_ROWS = ULY_ATTENTION_ITEM_ROWS,
  MAX_PANELS = (ITEM_ROWS + NR - 1) / NR,
  KEY_BLOCK = ULY_ATTENTION_KEY_BLOCK,
  MAX_KEYS = KEY_BLOCK + 8, // whole tiles and steps
  TRIM = 16                 // granule of the keys of a partly masked block
};
#define FLOOR (-1e30f)
#define LAZY 8.0f // a lane is rescaled when its maximum grew by this factor's log2
#define LOG2E 0x1.715476p+0f

typedef struct item {
  const uly_call *call;
  int64_t b, h, row; // local batch and head, first row
  int64_t rows, n_panels;
  int64_t q; // the first row's position: row + q_offset
  int64_t keys;
  const char *k, *v;
  float *ot;                  // [panel][value_rows][NR]
  float *m, *l, *top;         // [panel][NR]: reference of the exponentials, sum, largest score yet (kept with a sink)
  float *p;                   // [key][NR]
  void *qt, *kb, *vb, *pairs; // as the products want them
  bool wild;                  // this block of V has a NaN or Inf
} item;

ULY_INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
ULY_INLINE int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
ULY_INLINE int64_t panel_rows(const item *it, int64_t panel) { return min64(it->rows - panel * NR, NR); }
ULY_INLINE int64_t global_batch(const item *it) { return it->b + val(it->call, ULY_ATTENTION_B0); }
ULY_INLINE int64_t global_head(const item *it) { return it->h + val(it->call, ULY_ATTENTION_H0); }

ULY_INLINE const char *at_element(const void *p, int64_t i) { return lane_place(uly_attention_dtype, p, i); }

#endif
