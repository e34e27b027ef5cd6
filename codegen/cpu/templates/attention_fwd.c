// Attention forward: o[s, b, h, :] = Σ_t softmax_t(score(q·k · scale)) v[t, b, h / group, :] and its LSE; calling convention in kernel_abi.h, oracle
// runtime/reference/ref_attention.c. Any Dh, Dv, S, T ≥ 1; no backward. q, k, v and o may be bf16 or f16: inside everything is f32.
//
// Lanes are queries. An item is up to ITEM_ROWS queries of a head; panels of NR queries hold Q^T (scaled) and O^T packed [panel][D][NR]. For each block of
// KEY_BLOCK keys, K and V rows are copied to scratch once; then each panel computes S^T (KEY_TILE keys × NV vectors in registers), turns it into P^T, and
// adds V^T P^T to O^T. There is nothing to reduce across lanes, so a query's bits cannot depend on its neighbours.
//
// Part of the bits contract: key blocks counted from key 0, ascending keys in every sum, the rescale of each lane by its own maximum, vf_exp2. Free: NR, tiles, unrolling,
// ITEM_ROWS, which blocks or keys without an unmasked pair are skipped.
//
// A masked score is FLOOR and its p is −0: V may hold anything in masked rows. Where a block of V has a NaN or Inf, its masked keys are left out one by one.
// The caller sets FTZ and DAZ.
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

// KEY_TILE × NV and VALUE_TILE × NV accumulators of the two products; STEP values of the sums' index are unrolled.
#if VL == 16
enum { NV = 2, KEY_TILE = 8, VALUE_TILE = 8, STEP = 4, SOFTEN_STEP = 4 };
#else
enum { NV = 3, KEY_TILE = 4, VALUE_TILE = 4, STEP = 2, SOFTEN_STEP = 2 };
#endif
enum {
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
  float *qt, *ot;     // [panel][Dh][NR], [panel][value_rows][NR]
  float *m, *l, *top; // [panel][NR]: reference of the exponentials, sum, largest score yet (kept with a sink)
  float *kb, *vb, *p; // [key][Dh], [key][value_rows], [key][NR]
  bool wild;          // this block of V has a NaN or Inf
} item;

// Dv rounded up to tiles: columns that do not exist are 0.
ULY_INLINE int64_t value_rows(void) { return (uly_attention_dv + VALUE_TILE - 1) / VALUE_TILE * VALUE_TILE; }
ULY_INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
ULY_INLINE int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
ULY_INLINE int64_t panel_rows(const item *it, int64_t panel) { return min64(it->rows - panel * NR, NR); }
ULY_INLINE int64_t global_batch(const item *it) { return it->b + val(it->call, ULY_ATTENTION_B0); }
ULY_INLINE int64_t global_head(const item *it) { return it->h + val(it->call, ULY_ATTENTION_H0); }

ULY_INLINE const char *at_element(const void *p, int64_t i) { return lane_place(uly_attention_dtype, p, i); }

ULY_INLINE void place_scratch(item *it) {
  float *p = it->call->scratch;
  it->qt = p, p += MAX_PANELS * NR * uly_attention_dh;
  it->ot = p, p += MAX_PANELS * NR * value_rows();
  it->m = p, p += MAX_PANELS * NR;
  it->l = p, p += MAX_PANELS * NR;
  it->top = p, p += MAX_PANELS * NR;
  it->p = p, p += MAX_KEYS * NR;
  it->vb = p, p += MAX_KEYS * value_rows();
  it->kb = p;
}

// Items go head by head, the largest row block first: under a causal mask the long ones start early.
ULY_INLINE item find_item(const uly_call *call, int64_t index) {
  int64_t s = val(call, ULY_ATTENTION_S), heads = val(call, ULY_ATTENTION_H), blocks = uly_cdiv(s, ITEM_ROWS);
  item it = {.call = call, .keys = val(call, ULY_ATTENTION_T)};
  int64_t bh = index / blocks;
  it.b = bh / heads;
  it.h = bh % heads;
  it.row = (blocks - 1 - index % blocks) * ITEM_ROWS;
  it.rows = min64(s - it.row, ITEM_ROWS);
  it.n_panels = uly_cdiv(it.rows, NR);
  int64_t offset = val(call, ULY_ATTENTION_OFFSET);
  it.q = it.row + (call->op[ULY_ATTENTION_Q_OFFSET].n ? ((const int32_t *)ptr(call, ULY_ATTENTION_Q_OFFSET))[it.b * offset] : offset);
  int64_t kv = global_head(&it) / uly_attention_group - val(call, ULY_ATTENTION_K0);
  it.k = at_element(ptr(call, ULY_ATTENTION_K), it.b * val(call, ULY_ATTENTION_K_B) + kv * val(call, ULY_ATTENTION_K_H));
  it.v = at_element(ptr(call, ULY_ATTENTION_V), it.b * val(call, ULY_ATTENTION_V_B) + kv * val(call, ULY_ATTENTION_V_H));
  place_scratch(&it);
  return it;
}

static __attribute__((noinline)) void transpose_queries(const void *const *from, void *const *to, int64_t n_columns, vf factor) {
  lane_transpose(uly_attention_dtype, from, LANE_F32, to, VL, n_columns, factor);
}

// Q^T, times scale (and log2 e, unless a score comes between). Lanes past the last row repeat it.
ULY_INLINE void pack_queries(const item *it) {
  const uly_call *call = it->call;
  const char *q = at_element(ptr(call, ULY_ATTENTION_Q), it->b * val(call, ULY_ATTENTION_Q_B) + it->h * val(call, ULY_ATTENTION_Q_H));
  const float scale = (float)(uly_attention_has_score ? uly_attention_scale : uly_attention_scale * 0x1.71547652b82fep+0);
  const int64_t stride = val(call, ULY_ATTENTION_Q_S);
  ULY_PLAIN
  for (int64_t i = 0; i < it->n_panels * NR; i += VL) {
    const void *from[VL];
    void *to[VL];
    float *out = it->qt + i / NR * NR * uly_attention_dh + i % NR;
    for (int64_t d = 0; d < uly_attention_dh; d += VL) {
      ULY_PLAIN
      for (int64_t j = 0; j < VL; j++) {
        from[j] = at_element(q, (it->row + min64(i + j, it->rows - 1)) * stride + d);
        to[j] = out + min64(d + j, uly_attention_dh - 1) * NR;
      }
      transpose_queries(from, to, min64(uly_attention_dh - d, VL), vf_splat(scale));
    }
  }
}

// A sink counts as a key with value 0 before the first one.
ULY_INLINE void clear_state(const item *it) {
  vf m = vf_splat(FLOOR), l = vf_splat(0.0f);
  if (uly_attention_has_sink) {
    float sink = ((const float *)ptr(it->call, ULY_ATTENTION_SINK))[global_head(it)] * LOG2E;
    if (!(sink <= FLOOR)) m = vf_splat(sink), l = vf_splat(1.0f);
  }
  ULY_PLAIN
  for (int64_t i = 0; i < it->n_panels * NR; i += VL) {
    vf_store(it->m + i, m);
    vf_store(it->l + i, l);
    vf_store(it->top + i, vf_splat(FLOOR));
  }
  ULY_PLAIN
  for (int64_t i = 0; i < it->n_panels * NR * value_rows(); i += VL) vf_store(it->ot + i, vf_splat(0.0f));
}

ULY_INLINE void copy_row(float *to, int64_t dtype, const void *from, int64_t n) {
  for (int64_t c = 0; c < n; c += VL) vf_store_first(to + c, min64(n - c, VL), lane_load(dtype, lane_place(dtype, from, c), min64(n - c, VL)));
}

// Stays 0, or becomes NaN where the row has a NaN or Inf.
ULY_INLINE vf probe_row(vf seen, const float *row, int64_t n) {
  ULY_PLAIN
  for (int64_t c = 0; c < n; c += VL) seen = vf_fma(vf_load_first(row + c, min64(n - c, VL)), vf_splat(0.0f), seen);
  return seen;
}

// Copies keys [first, first + n) of K and V. Key tiles past the end repeat the last key, which changes no maximum; V has zeros there and in columns that do not exist.
ULY_INLINE void load_block(item *it, int64_t first, int64_t n) {
  const int64_t k_s = val(it->call, ULY_ATTENTION_K_S), v_s = val(it->call, ULY_ATTENTION_V_S), width = value_rows();
  vf seen = vf_splat(0.0f);
  for (int64_t i = 0; i < n; i++) {
    copy_row(it->kb + i * uly_attention_dh, uly_attention_dtype, at_element(it->k, (first + i) * k_s), uly_attention_dh);
    copy_row(it->vb + i * width, uly_attention_dtype, at_element(it->v, (first + i) * v_s), uly_attention_dv);
    ULY_PLAIN
    for (int64_t c = uly_attention_dv; c < width; c++) it->vb[i * width + c] = 0.0f;
    if (uly_attention_has_mask) seen = probe_row(seen, it->vb + i * width, uly_attention_dv);
  }
  for (int64_t i = n; i < round_up(n, KEY_TILE); i++) copy_row(it->kb + i * uly_attention_dh, LANE_F32, it->kb + (n - 1) * uly_attention_dh, uly_attention_dh);
  ULY_PLAIN
  for (int64_t c = n * width; c < round_up(n, STEP) * width; c++) it->vb[c] = 0.0f;
  it->wild = vi_any(seen != vf_splat(0.0f));
}

// S^T of KEY_TILE keys and one panel, written to P; |top| takes the maxima.
ULY_INLINE void score_tile(const float *qt, const float *k, float *s, vf *top) {
  vf acc[KEY_TILE][NV];
  ULY_UNROLL
  for (int i = 0; i < KEY_TILE; i++) {
    ULY_UNROLL
    for (int j = 0; j < NV; j++) acc[i][j] = vf_splat(0.0f);
  }
#pragma clang loop unroll_count(STEP)
  for (int64_t d = 0; d < uly_attention_dh; d++) {
    vf q[NV];
    ULY_UNROLL
    for (int j = 0; j < NV; j++) q[j] = vf_load(qt + d * NR + j * VL);
    ULY_UNROLL
    for (int i = 0; i < KEY_TILE; i++) {
      vf x = vf_splat(k[i * uly_attention_dh + d]);
      ULY_UNROLL
      for (int j = 0; j < NV; j++) acc[i][j] = vf_fma(x, q[j], acc[i][j]);
    }
  }
  ULY_UNROLL
  for (int i = 0; i < KEY_TILE; i++) {
    ULY_UNROLL
    for (int j = 0; j < NV; j++) {
      top[j] = vf_max(acc[i][j], top[j]);
      vf_store(s + i * NR + j * VL, acc[i][j]);
    }
  }
}

// Score and mask of keys [lo, hi), counted in the block that starts at key |first|; |top| takes the maxima of what is left. Keys are the inner loop, so that what
// depends on queries alone is computed once.
ULY_INLINE void adjust_scores(const item *it, int64_t panel, int64_t first, int64_t lo, int64_t hi, bool masked, vf *top) {
  const int64_t q = it->q + panel * NR, b = global_batch(it), h = global_head(it), rows = panel_rows(it, panel);
  ULY_PLAIN
  for (int64_t j = 0; j < NV; j++) {
    const int64_t n = min64(rows - j * VL, VL);
    vf highest = vf_splat(FLOOR);
    if (n > 0) {
      ULY_PLAIN
      for (int64_t t = lo; t < hi; t++) {
        float *place = it->p + t * NR + j * VL;
        vf s = vf_load(place);
        vi live = vi_first(n);
        if (masked) live &= uly_hook_attention_mask(it->call, b, h, q + j * VL, first + t, n);
        if (uly_attention_has_score) s = uly_hook_attention_score(it->call, b, h, q + j * VL, first + t, live, s) * LOG2E;
        s = vf_select(live, s, vf_splat(FLOOR));
        vf_store(place, s);
        highest = vf_max(s, highest);
      }
    } else {
      for (int64_t t = lo; t < hi; t++) vf_store(it->p + t * NR + j * VL, vf_splat(FLOOR));
    }
    top[j] = highest;
  }
}

// Moves the reference of lanes whose maximum outgrew it. Other lanes are multiplied by exactly 1.
ULY_INLINE void rescale(const item *it, int64_t panel, const vf *top) {
  vf alpha[NV];
  ULY_UNROLL
  for (int j = 0; j < NV; j++) {
    float *m = it->m + panel * NR + j * VL, *l = it->l + panel * NR + j * VL;
    vf old = vf_load(m);
    vi taken = top[j] > old + LAZY;
    vf now = vf_select(taken, top[j], old);
    alpha[j] = vf_select(taken, vf_exp2(old - now), vf_splat(1.0f));
    vf_store(m, now);
    vf_store(l, vf_load(l) * alpha[j]);
  }
  float *o = it->ot + panel * NR * value_rows();
#pragma clang loop unroll_count(2)
  for (int64_t d = 0; d < value_rows(); d++) {
    ULY_UNROLL
    for (int j = 0; j < NV; j++) vf_store(o + d * NR + j * VL, vf_load(o + d * NR + j * VL) * alpha[j]);
  }
}

// A block's maxima: the reference follows where a lane has outgrown it.
ULY_INLINE void note_maxima(const item *it, int64_t panel, const vf *top) {
  vi outgrown = {0};
  ULY_UNROLL
  for (int j = 0; j < NV; j++) {
    float *highest = it->top + panel * NR + j * VL;
    if (uly_attention_has_sink) vf_store(highest, vf_max(top[j], vf_load(highest)));
    outgrown |= top[j] > vf_load(it->m + panel * NR + j * VL) + LAZY;
  }
  if (vi_any(outgrown)) rescale(it, panel, top);
}

// P = 2^(S − m) for keys [lo, hi), −0 where masked, and 0 up to a whole step.
ULY_INLINE void soften(const item *it, int64_t panel, int64_t lo, int64_t hi, bool masked) {
  ULY_PLAIN
  for (int64_t j = 0; j < NR; j += VL) {
    vf m = vf_load(it->m + panel * NR + j), l = vf_load(it->l + panel * NR + j);
#pragma clang loop unroll_count(SOFTEN_STEP)
    for (int64_t t = lo; t < hi; t++) {
      float *place = it->p + t * NR + j;
      vf s = vf_load(place), p = vf_exp2(s - m);
      if (masked) p = vf_select(s == FLOOR, vf_splat(-0.0f), p);
      l += p;
      vf_store(place, p);
    }
    vf_store(it->l + panel * NR + j, l);
  }
  ULY_PLAIN
  for (int64_t t = hi * NR; t < round_up(hi, STEP) * NR; t += VL) vf_store(it->p + t, vf_splat(0.0f));
}

// O^T += V^T P^T for VALUE_TILE columns from |d| on; |hi| and |lo| are whole steps.
ULY_INLINE void value_tile(const item *it, float *o, int64_t d, int64_t lo, int64_t hi) {
  vf acc[VALUE_TILE][NV];
  ULY_UNROLL
  for (int i = 0; i < VALUE_TILE; i++) {
    ULY_UNROLL
    for (int j = 0; j < NV; j++) acc[i][j] = vf_load(o + (d + i) * NR + j * VL);
  }
  const float *v = it->vb + d;
  const int64_t width = value_rows();
  ULY_PLAIN
  for (int64_t t0 = lo; t0 < hi; t0 += STEP) {
    ULY_UNROLL
    for (int u = 0; u < STEP; u++) {
      const int64_t t = t0 + u;
      vf p[NV];
      ULY_UNROLL
      for (int j = 0; j < NV; j++) p[j] = vf_load(it->p + t * NR + j * VL);
      ULY_UNROLL
      for (int i = 0; i < VALUE_TILE; i++) {
        vf x = vf_splat(v[t * width + i]);
        ULY_UNROLL
        for (int j = 0; j < NV; j++) acc[i][j] = vf_fma(x, p[j], acc[i][j]);
      }
    }
  }
  ULY_UNROLL
  for (int i = 0; i < VALUE_TILE; i++) {
    ULY_UNROLL
    for (int j = 0; j < NV; j++) vf_store(o + (d + i) * NR + j * VL, acc[i][j]);
  }
}

// The same sums one column at a time, leaving out masked keys: their values may be NaN or Inf.
ULY_INLINE void value_column(const item *it, float *o, int64_t d, int64_t lo, int64_t hi) {
  ULY_PLAIN
  for (int64_t j = 0; j < NV; j++) {
    vf acc = vf_load(o + d * NR + j * VL);
    ULY_PLAIN
    for (int64_t t = lo; t < hi; t++) {
      vf p = vf_load(it->p + t * NR + j * VL);
      acc = vf_select((vi)p == INT32_MIN, acc, vf_fma(vf_splat(it->vb[t * value_rows() + d]), p, acc));
    }
    vf_store(o + d * NR + j * VL, acc);
  }
}

// Keys [lo, hi) of the block that starts at key |first|, |lo| a multiple of TRIM; |masked|: not all of their pairs are allowed.
ULY_INLINE void add_keys(const item *it, int64_t panel, int64_t first, int64_t lo, int64_t hi, bool masked) {
  vf top[NV];
  ULY_UNROLL
  for (int j = 0; j < NV; j++) top[j] = vf_splat(FLOOR);
  const float *qt = it->qt + panel * NR * uly_attention_dh;
  ULY_PLAIN
  for (int64_t t = lo; t < hi; t += KEY_TILE) score_tile(qt, it->kb + t * uly_attention_dh, it->p + t * NR, top);
  if (masked)
    adjust_scores(it, panel, first, lo, hi, true, top);
  else if (uly_attention_has_score)
    adjust_scores(it, panel, first, lo, hi, false, top);
  note_maxima(it, panel, top);
  if (masked)
    soften(it, panel, lo, hi, true);
  else
    soften(it, panel, lo, hi, false);

  float *o = it->ot + panel * NR * value_rows();
  if (masked && it->wild) {
    for (int64_t d = 0; d < uly_attention_dv; d++) value_column(it, o, d, lo, hi);
    return;
  }
  ULY_PLAIN
  for (int64_t d = 0; d < uly_attention_dv; d += VALUE_TILE) value_tile(it, o, d, lo, round_up(hi, STEP));
}

// What a panel's queries see of the keys up to |end|.
typedef struct stretch {
  int64_t end;
  int32_t kind;
} stretch;

ULY_INLINE int32_t classify(const item *it, int64_t panel, int64_t k0, int64_t k1) {
  int64_t q = it->q + panel * NR;
  return uly_hook_attention_range(it->call, global_batch(it), global_head(it), q, q + panel_rows(it, panel), k0, k1);
}

// The longest aligned stretch of keys from |key| on that is all allowed or all masked, or one block: long stretches cost O(log T).
ULY_INLINE stretch find_stretch(const item *it, int64_t panel, int64_t key) {
  if (!uly_attention_has_mask) return (stretch){it->keys, ULY_RANGE_FULL};
  int64_t block = key / KEY_BLOCK, left = uly_cdiv(it->keys, KEY_BLOCK) - block, n = 1;
  while (n < left && (block & n) == 0) n *= 2;
  for (;; n /= 2) {
    int64_t end = min64(key + n * KEY_BLOCK, it->keys);
    int32_t kind = classify(it, panel, key, end);
    if (kind != ULY_RANGE_PARTIAL || n == 1) return (stretch){end, kind};
  }
}

// The part [lo, hi) of a partly masked block that is left without the granules at its ends that no query of the panel sees.
ULY_INLINE void trim_block(const item *it, int64_t panel, int64_t first, int64_t n, int64_t *lo, int64_t *hi) {
  *lo = n;
  *hi = 0;
  ULY_PLAIN
  for (int64_t t = 0; t < n; t += TRIM) {
    int64_t end = min64(t + TRIM, n);
    if (classify(it, panel, first + t, first + end) == ULY_RANGE_EMPTY) continue;
    *lo = min64(*lo, t);
    *hi = end;
  }
}

ULY_INLINE void visit_keys(item *it) {
  stretch seen[MAX_PANELS] = {{0, 0}};
  for (int64_t key = 0; key < it->keys;) {
    bool needed = false;
    int64_t next = it->keys;
    ULY_PLAIN
    for (int64_t panel = 0; panel < it->n_panels; panel++) {
      if (key >= seen[panel].end) seen[panel] = find_stretch(it, panel, key);
      needed |= seen[panel].kind != ULY_RANGE_EMPTY;
      next = min64(next, seen[panel].end);
    }
    if (!needed) {
      key = next;
      continue;
    }
    int64_t n = min64(it->keys - key, KEY_BLOCK);
    load_block(it, key, n);
    ULY_PLAIN
    for (int64_t panel = 0; panel < it->n_panels; panel++) {
      if (seen[panel].kind == ULY_RANGE_EMPTY) continue;
      const bool masked = uly_attention_has_mask && seen[panel].kind == ULY_RANGE_PARTIAL;
      int64_t lo = 0, hi = n;
      if (masked) trim_block(it, panel, key, n, &lo, &hi);
      if (lo < hi) add_keys(it, panel, key, lo, hi, masked);
    }
    key += KEY_BLOCK;
  }
}

// Natural log of the sum into m. A row without keys has −inf, with or without a sink.
ULY_INLINE void find_lse(const item *it, int64_t panel) {
  ULY_PLAIN
  for (int64_t j = 0; j < NR; j += VL) {
    float *m = it->m + panel * NR + j;
    vf l = vf_load(it->l + panel * NR + j);
    vi nothing = l == vf_splat(0.0f);
    if (uly_attention_has_sink) nothing |= (vf_load(it->top + panel * NR + j) == FLOOR) & (l == vf_splat(1.0f));
    vd lse = __builtin_convertvector(vf_load(m), vd) * 0x1.62e42fefa39efp-1 + vd_log(l);
    vf_store(m, vf_select(nothing, vf_splat(-__builtin_inff()), __builtin_convertvector(lse, vf)));
  }
}

static __attribute__((noinline)) void transpose_results(const void *const *from, void *const *to, int64_t n_rows, int64_t n_columns, vf factor) {
  lane_transpose(LANE_F32, from, uly_attention_dtype, to, n_rows, n_columns, factor);
}

// O / l, by rows, to where they belong. A row without keys has l = 0 or the sink's 1, and O = 0.
ULY_INLINE void store_rows(const item *it, int64_t panel) {
  const uly_call *call = it->call;
  const uly_arg *out = &call->op[ULY_ATTENTION_OUT];
  const int64_t *first = call->val[ULY_ATTENTION_O_ROW], stride = val(call, ULY_ATTENTION_O_S);
  const int64_t at = it->b * val(call, ULY_ATTENTION_O_B) + it->h * val(call, ULY_ATTENTION_O_H), rows = panel_rows(it, panel);
  const float *o = it->ot + panel * NR * value_rows();
  int64_t peer = 0;
  for (int64_t i = 0; i < rows; i += VL) {
    vf l = vf_load(it->l + panel * NR + i), inverse = vf_splat(1.0f) / vf_select(l == vf_splat(0.0f), vf_splat(1.0f), l);
    const int64_t n = min64(rows - i, VL);
    char *row[VL];
    void *to[VL];
    ULY_PLAIN
    for (int64_t j = 0; j < n; j++) {
      const int64_t s = it->row + panel * NR + i + j;
      while (peer + 1 < out->n && first[peer + 1] <= s) peer++;
      row[j] = (char *)out->p[peer] + ((s - first[peer]) * stride + at) * lane_bytes(uly_attention_dtype);
    }
    for (int64_t d = 0; d < uly_attention_dv; d += VL) {
      const int64_t n_values = min64(uly_attention_dv - d, VL);
      const void *from[VL];
      ULY_PLAIN
      for (int64_t j = 0; j < VL; j++) from[j] = o + (d + min64(j, n_values - 1)) * NR + i;
      ULY_PLAIN
      for (int64_t j = 0; j < n; j++) to[j] = row[j] + d * lane_bytes(uly_attention_dtype);
      transpose_results(from, to, n_values, n, inverse);
    }
  }
}

ULY_INLINE void store_lse(const item *it, int64_t panel) {
  const uly_call *call = it->call;
  float *lse = (float *)ptr(call, ULY_ATTENTION_LSE) + it->b * val(call, ULY_ATTENTION_L_B) + it->h * val(call, ULY_ATTENTION_L_H);
  const int64_t stride = val(call, ULY_ATTENTION_L_S);
  ULY_PLAIN
  for (int64_t i = 0; i < panel_rows(it, panel); i++) lse[(it->row + panel * NR + i) * stride] = it->m[panel * NR + i];
}

ULY_KERNEL(uly_attention_fwd) {
  for (int64_t index = call->lo; index < call->hi; index++) {
    item it = find_item(call, index);
    pack_queries(&it);
    clear_state(&it);
    visit_keys(&it);
    ULY_PLAIN
    for (int64_t panel = 0; panel < it.n_panels; panel++) {
      store_rows(&it, panel);
      if (!uly_attention_has_lse) continue;
      find_lse(&it, panel);
      store_lse(&it, panel);
    }
  }
}
