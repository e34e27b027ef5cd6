// Weights [N, K] row-major into the panels that gemm.c reads, of the same dtype, padding lanes zero. Runs at load, an item a panel. Its oracle is uly_panel_at, element by
// element (tests/numerics/gemm_test.c).
//
// Constants, each a 64-bit integer: fields of uly_pack_desc.
#include "codegen/cpu/templates/gemm_panels.h"
#include "codegen/cpu/templates/lane_floats.h"
#include "codegen/cpu/templates/pack_panel.h"

ULY_CONST(int64_t, uly_pack_k);
ULY_CONST(int64_t, uly_pack_mode);
ULY_CONST(int64_t, uly_pack_group);
ULY_CONST(int64_t, uly_pack_rope);
ULY_CONST(int64_t, uly_pack_dtype);

ULY_KERNEL(uly_pack) {
  const int64_t k = uly_pack_k, mode = uly_pack_mode, group = uly_pack_group, rope = uly_pack_rope;
  const int64_t bytes = lane_bytes(uly_pack_dtype);
  int64_t per_group = uly_part_panels((uly_gemm_mode)mode, 1, group, rope);
  for (int64_t item = call->lo; item < call->hi; item++) {
    int64_t g = item / per_group;
    uly_panel p = uly_panel_at(mode, group, rope, item % per_group);
    const char *w = ptr(call, mode == ULY_GEMM_PAIR && p.second ? ULY_PACK_W1 : ULY_PACK_W0);
    char *out = ptr(call, ULY_PACK_OUT);
    uly_pack_panel(uly_pack_dtype, w + (g * group + p.column) * k * bytes, p.step * k, p.n, k, out + item * uly_panel_bytes(k, bytes));
  }
}
