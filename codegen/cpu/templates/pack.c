// Weights into the panels that gemm.c reads: out[panel][k][16], padding lanes zero. Runs at load, an item a panel. Its oracle is uly_panel_at, element by
// element (tests/numerics/gemm_test.c). Weights are f32 [N, K] row-major.
//
// Constants, each a 64-bit integer: the fields of uly_pack_desc.
#include "codegen/cpu/templates/gemm_panels.h"
#include "codegen/cpu/templates/template.h"

ULY_CONST(int64_t, uly_pack_k);
ULY_CONST(int64_t, uly_pack_mode);
ULY_CONST(int64_t, uly_pack_n_groups);
ULY_CONST(int64_t, uly_pack_group);
ULY_CONST(int64_t, uly_pack_rope);

// One k after the other would touch 16 rows a step; blocks of k keep those lines in the first-level cache.
enum { BLOCK = 64 };

ULY_INLINE void pack_panel(const float *w, int64_t k_size, int64_t step, int64_t n, float *out) {
  for (int64_t k0 = 0; k0 < k_size; k0 += BLOCK) {
    int64_t k1 = k0 + BLOCK < k_size ? k0 + BLOCK : k_size;
    for (int64_t lane = 0; lane < ULY_PANEL; lane++) {
      const float *row = w + lane * step * k_size;
      if (lane < n)
        for (int64_t k = k0; k < k1; k++) out[k * ULY_PANEL + lane] = row[k];
      else
        for (int64_t k = k0; k < k1; k++) out[k * ULY_PANEL + lane] = 0;
    }
  }
}

ULY_KERNEL(uly_pack) {
  const int64_t k = uly_pack_k, mode = uly_pack_mode, group = uly_pack_group, rope = uly_pack_rope;
  int64_t per_group = uly_part_panels((uly_gemm_mode)mode, 1, group, rope);
  for (int64_t item = call->lo; item < call->hi; item++) {
    int64_t g = item / per_group;
    uly_panel p = uly_panel_at(mode, group, rope, item % per_group);
    const float *w = ptr(call, mode == ULY_GEMM_PAIR && p.second ? ULY_PACK_W1 : ULY_PACK_W0);
    float *out = ptr(call, ULY_PACK_OUT);
    pack_panel(w + (g * group + p.column) * k, k, p.step, p.n, out + item * k * ULY_PANEL);
  }
}
