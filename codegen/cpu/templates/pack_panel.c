// See pack_panel.h. Transposes in registers: stores of 4 bytes would be slower than reading the weights.
#include "codegen/cpu/templates/pack_panel.h"

#include "codegen/cpu/templates/lane_transpose.h"

// Terms [0, n_k) of lanes [0, VL), n_k at most VL, of which the first |n| have rows.
ULY_INLINE void pack_square(const float *w, int64_t row, int64_t n, int64_t n_k, float *out) {
  vf r[VL];
  ULY_UNROLL
  for (int i = 0; i < VL; i++) r[i] = i < n ? vf_load_first(w + i * row, n_k) : vf_splat(0.0f);
  lane_exchange(r);
  ULY_UNROLL
  for (int i = 0; i < VL; i++)
    if (i < n_k) vf_store(out + i * ULY_PANEL, r[i]);
}

void uly_pack_panel(const float *w, int64_t row, int64_t n, int64_t n_k, float *out) {
  for (int64_t k = 0; k < n_k; k += VL)
    for (int64_t lane = 0; lane < ULY_PANEL; lane += VL) pack_square(w + lane * row + k, row, n - lane, n_k - k < VL ? n_k - k : VL, out + k * ULY_PANEL + lane);
}
