// Weights [N, K], dense in one of the two, into the panels that gemm.c reads, of the same dtype, padding lanes zero. Runs at load, an item a panel. Its oracle is uly_panel_at,
// element by element (tests/numerics/gemm_test.c).
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

enum { PANELS = 8, TERMS = 64 };

ULY_INLINE bool is_second(int64_t per_group, int64_t item) {
  return uly_pack_mode == ULY_GEMM_PAIR && uly_panel_at(uly_pack_mode, uly_pack_group, uly_pack_rope, item % per_group).second;
}

// Terms [k, k + n_k) of panel |item|.
ULY_INLINE void pack_piece(const uly_call *call, int64_t per_group, int64_t item, int64_t k, int64_t n_k) {
  const int64_t bytes = lane_bytes(uly_pack_dtype), second = is_second(per_group, item);
  const int64_t column = val(call, ULY_PACK_COLUMN_0 + (int)second), term = val(call, ULY_PACK_TERM_0 + (int)second);
  uly_panel p = uly_panel_at(uly_pack_mode, uly_pack_group, uly_pack_rope, item % per_group);
  const char *w = ptr(call, ULY_PACK_W0 + (int)second);
  char *out = ptr(call, ULY_PACK_OUT);
  int64_t n = item / per_group * uly_pack_group + p.column;
  uly_pack_panel(uly_pack_dtype, w + (n * column + k * term) * bytes, p.step * column, term, p.n, n_k,
                 out + item * uly_panel_bytes(uly_pack_k, bytes) + k * ULY_PANEL * bytes);
}

ULY_KERNEL(uly_pack) {
  int64_t per_group = uly_part_panels((uly_gemm_mode)uly_pack_mode, 1, uly_pack_group, uly_pack_rope);
  // Rows of columns are read some panels at a time: a panel alone would touch a page for each of its terms.
  const bool across = val(call, ULY_PACK_TERM_0) != 1 || (uly_pack_mode == ULY_GEMM_PAIR && val(call, ULY_PACK_TERM_1) != 1);
  const int64_t panels = across ? PANELS : 1, terms = across ? TERMS : uly_pack_k;
  for (int64_t lo = call->lo; lo < call->hi; lo += panels)
    for (int64_t k = 0; k < uly_pack_k; k += terms)
      for (int64_t item = lo; item < call->hi && item < lo + panels; item++)
        pack_piece(call, per_group, item, k, uly_pack_k - k < terms ? uly_pack_k - k : terms);
}
