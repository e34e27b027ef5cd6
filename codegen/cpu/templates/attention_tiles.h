// The products of attention_fwd.c in AMX tiles: q, k, v and o are bf16, P is rounded to bf16 for the second product, sums are f32.
//
// A tile is 16 rows of 64 bytes; those that products read lie one behind the other. S^T = K Q^T takes keys as they lie and pairs of Q's features,
// O^T += V^T P^T columns of V and pairs of keys. Part of the bits contract: sums go over CHUNK features or keys at once, chunks counted from the block's
// first key; keys that are left out count as zeros there.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_ATTENTION_TILES_H
#define ULY_CODEGEN_CPU_TEMPLATES_ATTENTION_TILES_H

#include "codegen/cpu/templates/amx.h"
#include "codegen/cpu/templates/attention_item.h"

enum { SOFTEN_STEP = 2, CHUNKS = KEY_BLOCK / CHUNK };

ULY_INLINE void begin_products(void) { tiles_begin(); }
ULY_INLINE void end_products(void) { tiles_end(); }

// Dh and Dv rounded up: features and columns that do not exist are 0.
ULY_INLINE int64_t depth(void) { return (uly_attention_dh + CHUNK - 1) / CHUNK * CHUNK; }
ULY_INLINE int64_t value_rows(void) { return (uly_attention_dv + TILE - 1) / TILE * TILE; }
ULY_INLINE int64_t chunk_of(int64_t key) { return key / CHUNK * CHUNK; }

// What scores are multiplied with behind the product: where one is to be changed, by scale before that; else by scale times log2 e when it is softened.
ULY_INLINE float score_factor(void) { return (float)uly_attention_scale; }
ULY_INLINE float soften_factor(void) { return uly_attention_has_score ? 1.0f : (float)(uly_attention_scale * 0x1.71547652b82fep+0); }

// Places for tiles, at |p|: pairs of Q [panel][chunk of features][NV] and of P [chunk of keys][NV], K [16 keys][chunk of features] and V^T [16 columns][chunk of keys].
ULY_INLINE void place_products(item *it, float *p) {
  tile *at = (tile *)p;
  it->pairs = at, at += CHUNKS * NV;
  it->qt = at, at += MAX_PANELS * NV * (depth() / CHUNK);
  it->kb = at, at += KEY_BLOCK / TILE * (depth() / CHUNK);
  it->vb = at;
}

// The first |n| of 32 halves, 0 … 32; the others are 0.
ULY_INLINE __m512i row_load(const void *p, int64_t n) { return n >= 32 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi16(((__mmask32)1 << n) - 1, p); }

// Lanes past the last row repeat it.
ULY_INLINE void pack_queries(const item *it) {
  const uly_call *call = it->call;
  const char *q = at_element(ptr(call, ULY_ATTENTION_Q), it->b * val(call, ULY_ATTENTION_Q_B) + it->h * val(call, ULY_ATTENTION_Q_H));
  const int64_t stride = val(call, ULY_ATTENTION_Q_S);
  ULY_PLAIN
  for (int64_t i = 0; i < it->n_panels * NR; i += TILE) {
    tile *out = (tile *)it->qt + i / NR * NV * (depth() / CHUNK) + i % NR / TILE;
    ULY_PLAIN
    for (int64_t d = 0; d < depth(); d += CHUNK) {
      vf r[VL];
      ULY_UNROLL
      for (int j = 0; j < TILE; j++) r[j] = (vf)row_load(at_element(q, (it->row + min64(i + j, it->rows - 1)) * stride + d), uly_attention_dh - d);
      lane_exchange(r);
      ULY_UNROLL
      for (int j = 0; j < TILE; j++) *(vf *)(out[d / CHUNK * NV] + j * CHUNK) = r[j];
    }
  }
}

// A tile of V^T: keys from |row| on in columns [d, d + 16). |n| of them are there; those behind them are 0, as their p is: Inf times that would be NaN.
// *inout_wild is not 0 once a NaN or Inf was seen.
ULY_INLINE void turn_values(const item *it, int64_t row, int64_t n, int64_t d, uint16_t *to, vi *inout_wild) {
  const int64_t v_s = val(it->call, ULY_ATTENTION_V_S);
  const __mmask16 columns = (__mmask16)((1u << min64(uly_attention_dv - d, TILE)) - 1);
  vf r[VL];
  ULY_UNROLL
  for (int i = 0; i < TILE; i++) {
    const __m256i low = _mm256_maskz_loadu_epi16(2 * i < n ? columns : 0, at_element(it->v, (row + min64(2 * i, n - 1)) * v_s + d));
    const __m256i high = _mm256_maskz_loadu_epi16(2 * i + 1 < n ? columns : 0, at_element(it->v, (row + min64(2 * i + 1, n - 1)) * v_s + d));
    const vi both = (vi)_mm512_cvtepu16_epi32(low) | (vi)_mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16);
    if (uly_attention_has_mask) *inout_wild |= ((both & 0x7f80) == 0x7f80) | ((both & 0x7f800000) == 0x7f800000);
    r[i] = (vf)both;
  }
  lane_exchange(r);
  ULY_UNROLL
  for (int i = 0; i < TILE; i++) *(vf *)(to + i * CHUNK) = r[i];
}

ULY_INLINE bool is_wild(uint16_t half) { return (half & 0x7f80) == 0x7f80; }

// Copies keys [first, first + n) of K and V. Under masks V's NaN and Inf are 0 here: see add_wild.
ULY_INLINE void load_block(item *it, int64_t first, int64_t n) {
  const int64_t k_s = val(it->call, ULY_ATTENTION_K_S);
  tile *kb = it->kb, *vb = it->vb;
  vi wild = {0};
  for (int64_t i = 0; i < n; i++)
    for (int64_t d = 0; d < depth(); d += CHUNK)
      _mm512_storeu_si512(kb[(i / TILE * depth() + d) / CHUNK] + i % TILE * CHUNK, row_load(at_element(it->k, (first + i) * k_s + d), uly_attention_dh - d));
  ULY_PLAIN
  for (int64_t t = 0; t < n; t += CHUNK) ULY_PLAIN
  for (int64_t d = 0; d < value_rows(); d += TILE) turn_values(it, first + t, n - t, d, vb[d / TILE * CHUNKS + t / CHUNK], &wild);
  it->wild = uly_attention_has_mask && vi_any(wild);
  if (!it->wild) return;
  for (int64_t i = 0; i < value_rows() * KEY_BLOCK; i++)
    if (is_wild(vb[0][i])) vb[0][i] = 0;
}

// S^T of a chunk of keys and one panel.
ULY_INLINE void score_chunk(const tile *q, const tile *k, float *s) {
  const int64_t n = depth() / CHUNK;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  ULY_PLAIN
  for (int64_t i = 0; i < n; i++) {
    _tile_loadd(4, k[i], 64);
    _tile_loadd(6, q[i * NV], 64);
    _tile_loadd(7, q[i * NV + 1], 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, k[n + i], 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, s, NR * 4);
  _tile_stored(1, s + TILE, NR * 4);
  _tile_stored(2, s + TILE * NR, NR * 4);
  _tile_stored(3, s + TILE * NR + TILE, NR * 4);
}

// The maxima of keys [lo, hi) with their factor, in four chains.
ULY_INLINE void find_maxima(const item *it, int64_t lo, int64_t hi, vf *top) {
  enum { CHAINS = 4 };
  ULY_PLAIN
  for (int j = 0; j < NV; j++) {
    const float *s = it->p + j * VL;
    vf most[CHAINS];
    ULY_UNROLL
    for (int i = 0; i < CHAINS; i++) most[i] = top[j];
    ULY_PLAIN
    for (int64_t t = lo; t < hi; t += CHAINS) {
      ULY_UNROLL
      for (int i = 0; i < CHAINS; i++) most[i] = vf_max(vf_load(s + min64(t + i, hi - 1) * NR) * soften_factor(), most[i]);
    }
    top[j] = vf_max(vf_max(most[0], most[1]), vf_max(most[2], most[3]));
  }
}

// S^T of keys [lo, hi), written to P without its factor; |top| takes the maxima with it, unless scores are |adjusted| first.
ULY_INLINE void score_keys(const item *it, int64_t panel, int64_t lo, int64_t hi, bool adjusted, vf *top) {
  const tile *q = (const tile *)it->qt + panel * NV * (depth() / CHUNK), *k = it->kb;
  ULY_PLAIN
  for (int64_t t = chunk_of(lo); t < hi; t += CHUNK) score_chunk(q, k + t / TILE * (depth() / CHUNK), it->p + t * NR);
  if (!adjusted) find_maxima(it, lo, hi, top);
}

// Two keys of VL queries, rounded: halves away from 0, as p is never below it. A NaN may be lost: the sum of the row has it too.
ULY_INLINE vf pair_up(vf low, vf high) {
  const vi l = (vi)low + 0x8000, h = (vi)high + 0x8000;
  return (vf)(((l >> 16) & 0xffff) | (h & ~0xffff));
}

// P = 2^(S − m) of a key and VL queries from |j| on, −0 where masked; added to |l|.
ULY_INLINE vf soften_key(const item *it, int64_t j, int64_t t, bool masked, vf m, vf *l) {
  float *place = it->p + t * NR + j;
  vf s = vf_load(place), p = vf_exp2(vf_fma(s, vf_splat(soften_factor()), -m));
  if (masked) p = vf_select(s == FLOOR, vf_splat(-0.0f), p);
  if (uly_attention_has_mask && it->wild) vf_store(place, p);
  *l += p;
  return p;
}

// Where the pair of |key| and its successor lies, for VL queries from |j| on.
ULY_INLINE vf *pair_place(const item *it, int64_t key, int64_t j) { return (vf *)(((tile *)it->pairs)[key / CHUNK * NV + j / TILE] + key % CHUNK / 2 * CHUNK); }

ULY_INLINE void clear_pairs(const item *it, int64_t lo, int64_t hi) {
  ULY_PLAIN
  for (int64_t t = lo; t < hi; t += 2) {
    ULY_UNROLL
    for (int64_t j = 0; j < NR; j += TILE) *pair_place(it, t, j) = vf_splat(0.0f);
  }
}

// P of keys [lo, hi), in whole chunks, with 0 for keys outside. A block's sum is that of its even keys and of its odd ones.
ULY_INLINE void soften(const item *it, int64_t panel, int64_t lo, int64_t hi, bool masked) {
  const int64_t whole = hi / 2 * 2;
  ULY_PLAIN
  for (int64_t j = 0; j < NR; j += VL) {
    const vf m = vf_load(it->m + panel * NR + j);
    vf even = vf_splat(0.0f), odd = vf_splat(0.0f);
#pragma clang loop unroll_count(SOFTEN_STEP)
    for (int64_t t = lo; t < whole; t += 2) {
      vf low = soften_key(it, j, t, masked, m, &even), high = soften_key(it, j, t + 1, masked, m, &odd);
      *pair_place(it, t, j) = pair_up(low, high);
    }
    if (whole < hi) *pair_place(it, whole, j) = pair_up(soften_key(it, j, whole, masked, m, &even), vf_splat(0.0f));
    vf_store(it->l + panel * NR + j, vf_load(it->l + panel * NR + j) + (even + odd));
  }
  clear_pairs(it, chunk_of(lo), lo);
  clear_pairs(it, round_up(hi, 2), round_up(hi, CHUNK));
}

// O^T += V^T P^T for 16 columns of V, or 32 where |two|.
ULY_INLINE void value_chunks(const item *it, float *o, int64_t d, int64_t lo, int64_t hi, bool two) {
  const tile *v = (const tile *)it->vb + d / TILE * CHUNKS, *p = it->pairs;
  float *to = o + d * NR;
  _tile_loadd(0, to, NR * 4);
  _tile_loadd(1, to + TILE, NR * 4);
  if (two) {
    _tile_loadd(2, to + TILE * NR, NR * 4);
    _tile_loadd(3, to + TILE * NR + TILE, NR * 4);
  }
  ULY_PLAIN
  for (int64_t i = lo / CHUNK; i < uly_cdiv(hi, CHUNK); i++) {
    _tile_loadd(4, v[i], 64);
    _tile_loadd(6, p[i * NV], 64);
    _tile_loadd(7, p[i * NV + 1], 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (!two) continue;
    _tile_loadd(5, v[CHUNKS + i], 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, to, NR * 4);
  _tile_stored(1, to + TILE, NR * 4);
  if (!two) return;
  _tile_stored(2, to + TILE * NR, NR * 4);
  _tile_stored(3, to + TILE * NR + TILE, NR * 4);
}

// What add_values left out of a block with a NaN or Inf: those times p, except where their key is masked.
static __attribute__((noinline)) void add_wild(const item *it, float *o, int64_t first, int64_t lo, int64_t hi) {
  const int64_t v_s = val(it->call, ULY_ATTENTION_V_S);
  for (int64_t t = lo; t < hi; t++)
    for (int64_t d = 0; d < uly_attention_dv; d++) {
      const uint16_t half = *(const uint16_t *)at_element(it->v, (first + t) * v_s + d);
      if (!is_wild(half)) continue;
      const vf v = (vf)vi_splat((int32_t)((uint32_t)half << 16));
      ULY_PLAIN
      for (int64_t j = 0; j < NR; j += VL) {
        vf p = vf_load(it->p + t * NR + j), acc = vf_load(o + d * NR + j);
        vf_store(o + d * NR + j, vf_select((vi)p == INT32_MIN, acc, vf_fma(v, p, acc)));
      }
    }
}

ULY_INLINE void add_values(const item *it, int64_t panel, int64_t first, int64_t lo, int64_t hi, bool masked) {
  (void)masked;
  float *o = it->ot + panel * NR * value_rows();
  int64_t d = 0;
  ULY_PLAIN
  for (; d + 2 * TILE <= value_rows(); d += 2 * TILE) value_chunks(it, o, d, lo, hi, true);
  if (d < value_rows()) value_chunks(it, o, d, lo, hi, false);
  if (it->wild) add_wild(it, o, first, lo, hi);
}

#endif
