// The products of attention_fwd.c in vectors of f32, whatever q, k and v are.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_ATTENTION_VECTORS_H
#define ULY_CODEGEN_CPU_TEMPLATES_ATTENTION_VECTORS_H

#include "codegen/cpu/templates/attention_item.h"

// KEY_TILE × NV and VALUE_TILE × NV accumulators of the two products; STEP values of the sums' index are unrolled.
#if VL == 16
enum { KEY_TILE = 8, VALUE_TILE = 8, STEP = 4, SOFTEN_STEP = 4 };
#else
enum { KEY_TILE = 4, VALUE_TILE = 4, STEP = 2, SOFTEN_STEP = 2 };
#endif

// Dv rounded up to tiles: columns that do not exist are 0.
ULY_INLINE int64_t value_rows(void) { return (uly_attention_dv + VALUE_TILE - 1) / VALUE_TILE * VALUE_TILE; }
ULY_INLINE void begin_products(void) {}
ULY_INLINE void end_products(void) {}
ULY_INLINE float score_factor(void) { return 1.0f; } // Q was scaled
ULY_INLINE float soften_factor(void) { return 1.0f; }

// Places for [panel][Dh][NR], [key][value_rows] and [key][Dh], at |p|.
ULY_INLINE void place_products(item *it, float *p) {
  it->qt = p, p += MAX_PANELS * NR * uly_attention_dh;
  it->vb = p, p += MAX_KEYS * value_rows();
  it->kb = p;
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
    float *out = (float *)it->qt + i / NR * NR * uly_attention_dh + i % NR;
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
  float *kb = it->kb, *vb = it->vb;
  vf seen = vf_splat(0.0f);
  for (int64_t i = 0; i < n; i++) {
    copy_row(kb + i * uly_attention_dh, uly_attention_dtype, at_element(it->k, (first + i) * k_s), uly_attention_dh);
    copy_row(vb + i * width, uly_attention_dtype, at_element(it->v, (first + i) * v_s), uly_attention_dv);
    ULY_PLAIN
    for (int64_t c = uly_attention_dv; c < width; c++) vb[i * width + c] = 0.0f;
    if (uly_attention_has_mask) seen = probe_row(seen, vb + i * width, uly_attention_dv);
  }
  for (int64_t i = n; i < round_up(n, KEY_TILE); i++) copy_row(kb + i * uly_attention_dh, LANE_F32, kb + (n - 1) * uly_attention_dh, uly_attention_dh);
  ULY_PLAIN
  for (int64_t c = n * width; c < round_up(n, STEP) * width; c++) vb[c] = 0.0f;
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

ULY_INLINE void score_keys(const item *it, int64_t panel, int64_t lo, int64_t hi, bool adjusted, vf *top) {
  (void)adjusted;
  const float *qt = (const float *)it->qt + panel * NR * uly_attention_dh, *kb = it->kb;
  ULY_PLAIN
  for (int64_t t = lo; t < hi; t += KEY_TILE) score_tile(qt, kb + t * uly_attention_dh, it->p + t * NR, top);
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
  const float *v = (const float *)it->vb + d;
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
      acc = vf_select((vi)p == INT32_MIN, acc, vf_fma(vf_splat(((const float *)it->vb)[t * value_rows() + d]), p, acc));
    }
    vf_store(o + d * NR + j * VL, acc);
  }
}

ULY_INLINE void add_values(const item *it, int64_t panel, int64_t first, int64_t lo, int64_t hi, bool masked) {
  (void)first;
  float *o = it->ot + panel * NR * value_rows();
  if (masked && it->wild) {
    for (int64_t d = 0; d < uly_attention_dv; d++) value_column(it, o, d, lo, hi);
    return;
  }
  ULY_PLAIN
  for (int64_t d = 0; d < uly_attention_dv; d += VALUE_TILE) value_tile(it, o, d, lo, round_up(hi, STEP));
}

#endif
