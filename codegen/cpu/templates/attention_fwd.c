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
#ifdef __AMX_BF16__
#include "codegen/cpu/templates/attention_tiles.h"
#else
#include "codegen/cpu/templates/attention_vectors.h"
#endif

ULY_INLINE void place_scratch(item *it) {
  float *p = it->call->scratch;
  it->ot = p, p += MAX_PANELS * NR * value_rows();
  it->m = p, p += MAX_PANELS * NR;
  it->l = p, p += MAX_PANELS * NR;
  it->top = p, p += MAX_PANELS * NR;
  it->p = p, p += MAX_KEYS * NR;
  place_products(it, p);
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
        if (uly_attention_has_score) s = uly_hook_attention_score(it->call, b, h, q + j * VL, first + t, live, s * score_factor()) * LOG2E;
        vf_store(place, vf_select(live, s, vf_splat(FLOOR)));
        highest = vf_max(vf_select(live, s * soften_factor(), vf_splat(FLOOR)), highest);
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

// Keys [lo, hi) of the block that starts at key |first|, |lo| a multiple of TRIM; |masked|: not all of their pairs are allowed.
ULY_INLINE void add_keys(const item *it, int64_t panel, int64_t first, int64_t lo, int64_t hi, bool masked) {
  vf top[NV];
  ULY_UNROLL
  for (int j = 0; j < NV; j++) top[j] = vf_splat(FLOOR);
  score_keys(it, panel, lo, hi, masked || uly_attention_has_score, top);
  if (masked)
    adjust_scores(it, panel, first, lo, hi, true, top);
  else if (uly_attention_has_score)
    adjust_scores(it, panel, first, lo, hi, false, top);
  note_maxima(it, panel, top);
  if (masked)
    soften(it, panel, lo, hi, true);
  else
    soften(it, panel, lo, hi, false);
  add_values(it, panel, first, lo, hi, masked);
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
  begin_products();
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
  end_products();
}
