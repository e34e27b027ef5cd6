// out[row] = log Σ_c exp(x[row, c]) − x[row, labels[row]], 0 where the label is the one to ignore; calling convention in kernel_abi.h. x is the in hook's value, or gemm.c has left its
// statistics. Another label outside of x is a fault and gives 0. Bits: nll_tile.h. Oracle: runtime/reference.
#include "codegen/cpu/templates/fault.h"
#include "codegen/cpu/templates/nll_tile.h"

ULY_CONST(int64_t, uly_nll_wide); // labels are i64, else i32
ULY_CONST(int64_t, uly_nll_ignore);
ULY_CONST(int64_t, uly_nll_stats);

typedef struct row {
  const uly_call *call;
  int64_t i[5], cols, rows;
} row;

ULY_INLINE vf value(const row *r, int64_t c, int64_t n) { return uly_hook_nll_in(r->call, r->i[0], r->i[1], r->i[2], r->i[3], r->i[4], c, n); }

ULY_INLINE int64_t offset(const row *r, int slot) {
  int64_t sum = 0;
  ULY_UNROLL
  for (int d = 0; d < 5; d++) sum += r->i[d] * val(r->call, slot + d);
  return sum;
}

ULY_INLINE int64_t label_of(const row *r) {
  const void *labels = ptr(r->call, ULY_NLL_LABELS);
  int64_t i = offset(r, ULY_NLL_LABELS_0);
  return uly_nll_wide ? ((const int64_t *)labels)[i] : ((const int32_t *)labels)[i];
}

ULY_INLINE void find_stats(const row *r, float *stats) {
  int64_t tiles = uly_nll_tiles(r->cols);
  vf x[NLL_VECTORS];
  ULY_PLAIN
  for (int64_t t = 0; t < tiles; t++) {
    int64_t c = t * ULY_NLL_TILE, left = r->cols - c;
    if (left >= ULY_NLL_TILE) {
      ULY_UNROLL
      for (int j = 0; j < NLL_VECTORS; j++) x[j] = value(r, c + j * VL, VL);
    } else {
      ULY_PLAIN
      for (int j = 0; j < NLL_VECTORS; j++) {
        int64_t n = left - j * VL < VL ? left - j * VL : VL;
        x[j] = n <= 0 ? vf_splat(NLL_NOTHING) : vf_select(vi_first(n), value(r, c + j * VL, n), vf_splat(NLL_NOTHING));
      }
    }
    nll_tile(x, &stats[t], &stats[tiles + t]);
  }
}

ULY_INLINE void take_stats(const row *r, int64_t item, float *stats) {
  const float *all = ptr(r->call, ULY_NLL_STATS);
  ULY_PLAIN
  for (int64_t i = 0; i < uly_nll_row(uly_nll_tiles(r->cols)); i++) stats[i] = all[i * r->rows + item];
}

ULY_INLINE float loss(const row *r, int64_t item) {
  int64_t label = label_of(r), tiles = uly_nll_tiles(r->cols);
  float *stats = r->call->scratch;
  if (label == uly_nll_ignore) return 0.0f;
  if (label < 0 || label >= r->cols) {
    report_index(r->call, label, r->cols, ULY_NLL_START_0, 5, r->i);
    return 0.0f;
  }
  if (uly_nll_stats) {
    take_stats(r, item, stats);
    return nll_loss(stats, tiles, stats[2 * tiles]);
  }
  find_stats(r, stats);
  return nll_loss(stats, tiles, value(r, label, 1)[0]);
}

ULY_KERNEL(uly_kernel_nll) {
  row r = {.call = call, .cols = val(call, ULY_NLL_COLS), .rows = 1};
  ULY_UNROLL
  for (int d = 0; d < 5; d++) r.rows *= val(call, ULY_NLL_N0 + d);
  for (int64_t item = call->lo; item < call->hi; item++) {
    int64_t at = item;
    ULY_UNROLL
    for (int d = 4; d > 0; d--) r.i[d] = at % val(call, ULY_NLL_N0 + d), at /= val(call, ULY_NLL_N0 + d);
    r.i[0] = at;
    ((float *)ptr(call, ULY_NLL_OUT))[offset(&r, ULY_NLL_OUT_0)] = loss(&r, item);
  }
}
