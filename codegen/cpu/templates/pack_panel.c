// See pack_panel.h. Where terms are dense it transposes in registers: stores of 4 bytes would be slower than reading the weights.
#include "codegen/cpu/templates/pack_panel.h"

#include "codegen/cpu/templates/lane_transpose.h"

// Terms [k, k + n_k) of lanes [0, VL), n_k at most VL, of which the first |n| have rows. |out|: the panel, from these lanes on.
ULY_INLINE void pack_square(int64_t dtype, const char *w, int64_t row, int64_t n, int64_t k, int64_t n_k, char *out) {
  vf r[VL];
  const int64_t bytes = lane_bytes(dtype);
  ULY_UNROLL
  for (int i = 0; i < VL; i++) r[i] = i < n ? lane_load(dtype, w + (i * row + k) * bytes, n_k) : vf_splat(0.0f);
  lane_exchange(r);
  ULY_UNROLL
  for (int i = 0; i < VL; i++) {
    if (i >= n_k) continue;
    if (dtype != LANE_BF16) {
      lane_store(dtype, out + (k + i) * ULY_PANEL * bytes, VL, r[i]);
    } else if (i % 2 == 0) { // bits of two terms in a lane; behind an odd last one stands 0
      vi even = (vi)r[i], odd = (vi)r[i + 1];
      *(vi *)(out + (k + i) / 2 * ULY_PANEL * 4) = (even >> 16 & 0xffff) | (odd & (int32_t)0xffff0000);
    }
  }
}

ULY_INLINE void pack(int64_t dtype, const char *w, int64_t row, int64_t n, int64_t n_k, char *out) {
  const int64_t lane_step = dtype == LANE_F16 ? 2 : 4; // bytes from lane to lane
  for (int64_t k = 0; k < n_k; k += VL)
    for (int64_t lane = 0; lane < ULY_PANEL; lane += VL)
      pack_square(dtype, w + lane * row * lane_bytes(dtype), row, n - lane, k, n_k - k < VL ? n_k - k : VL, out + lane * lane_step);
}

// ---- terms that are dense over the lanes: nothing to transpose

// Lanes [0, |n|) of a term, 0 behind them, from elements that stand |column| apart.
ULY_INLINE vf term_load(int64_t dtype, const char *w, int64_t column, int64_t n) {
  if (n <= 0) return vf_splat(0.0f);
  if (n > VL) n = VL;
  if (column == 1) return lane_load(dtype, w, n);
  char near[VL * 4];
  const int64_t bytes = lane_bytes(dtype);
  ULY_PLAIN
  for (int64_t i = 0; i < n; i++) __builtin_memcpy(near + i * bytes, w + i * column * bytes, (size_t)bytes);
  return lane_load(dtype, near, n);
}

ULY_INLINE void pack_terms(int64_t dtype, const char *w, int64_t column, int64_t term, int64_t n, int64_t n_k, char *out) {
  const int64_t bytes = lane_bytes(dtype);
  for (int64_t k = 0; k < n_k; k += dtype == LANE_BF16 ? 2 : 1)
    for (int64_t lane = 0; lane < ULY_PANEL; lane += VL) {
      const char *at = w + (k * term + lane * column) * bytes;
      vf even = term_load(dtype, at, column, n - lane);
      if (dtype != LANE_BF16) {
        lane_store(dtype, out + (k * ULY_PANEL + lane) * bytes, VL, even);
      } else {
        vf odd = term_load(dtype, at + term * bytes, column, k + 1 < n_k ? n - lane : 0);
        *(vi *)(out + (k / 2 * ULY_PANEL + lane) * 4) = ((vi)even >> 16 & 0xffff) | ((vi)odd & (int32_t)0xffff0000);
      }
    }
}

// |dtype| is a constant here.
ULY_INLINE void pack_any(int64_t dtype, const char *w, int64_t column, int64_t term, int64_t n, int64_t n_k, char *out) {
  if (term == 1)
    pack(dtype, w, column, n, n_k, out);
  else if (column == 1)
    pack_terms(dtype, w, 1, term, n, n_k, out);
  else
    pack_terms(dtype, w, column, term, n, n_k, out);
}

void uly_pack_panel(int64_t dtype, const void *w, int64_t column, int64_t term, int64_t n, int64_t n_k, void *out) {
  if (dtype == LANE_BF16)
    pack_any(LANE_BF16, w, column, term, n, n_k, out);
  else if (dtype == LANE_F16)
    pack_any(LANE_F16, w, column, term, n, n_k, out);
  else
    pack_any(LANE_F32, w, column, term, n, n_k, out);
}
