// See pack_panel.h. Transposes in registers: stores of 4 bytes would be slower than reading the weights.
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

void uly_pack_panel(int64_t dtype, const void *w, int64_t row, int64_t n, int64_t n_k, void *out) {
  if (dtype == LANE_BF16) pack(LANE_BF16, w, row, n, n_k, out);
  else if (dtype == LANE_F16) pack(LANE_F16, w, row, n, n_k, out);
  else pack(LANE_F32, w, row, n, n_k, out);
}
