// part[i1, i2, i3, i4, c] = Σ_i0 term(i0, i1, i2, i3, i4, c), exactly: this rank's share of a sum over a split dim; calling convention in kernel_abi.h. round.c adds the ranks' parts.
// Ints and bools are added as 64-bit ints, which wrap, without limbs.
// Bits: none, the sum is exact. An item is 16 columns.

#include "codegen/cpu/templates/exact_sum.h"

ULY_CONST(int64_t, uly_rowsum_ints);

enum { COLUMNS = 16 };

typedef struct outer {
  int64_t i1, i2, i3, i4;
} outer;

ULY_INLINE outer outer_of(const uly_call *call, int64_t at) {
  const int64_t n2 = val(call, ULY_ROWSUM_N2), n3 = val(call, ULY_ROWSUM_N3), n4 = val(call, ULY_ROWSUM_N4);
  return (outer){at / n4 / n3 / n2, at / n4 / n3 % n2, at / n4 % n3, at % n4};
}

ULY_INLINE void add_columns(const uly_call *call, int64_t i0, const outer *o, int64_t c, int64_t n, int64_t *limbs) {
  union {
    vf v;
    uint32_t u[VL];
  } terms = {uly_hook_rowsum_term(call, i0, o->i1, o->i2, o->i3, o->i4, c, n)};
#pragma clang loop vectorize(disable) unroll(disable)
  for (int64_t j = 0; j < n; j++) exact_add(limbs + j * ULY_EXACT_LIMBS, terms.u[j]);
}

// Columns [c, c + n) of part |sum|: wrapping adds, in any order.
ULY_INLINE void sum_ints(const uly_call *call, const outer *o, int64_t c, int64_t n, int64_t *sum) {
  const int64_t n0 = val(call, ULY_ROWSUM_N0);
  for (int64_t j = 0; j < n; j += VL) {
    int64_t m = n - j < VL ? n - j : VL;
    typedef uint64_t vu __attribute__((vector_size(VL * 8), aligned(8)));
    union {
      vu v;
      uint64_t u[VL];
    } total = {{0}};
    for (int64_t i0 = 0; i0 < n0; i0++) total.v += (vu)uly_hook_rowsum_int_term(call, i0, o->i1, o->i2, o->i3, o->i4, c + j, m);
    for (int64_t k = 0; k < m; k++) sum[j + k] = (int64_t)total.u[k];
  }
}

ULY_KERNEL(uly_kernel_rowsum) {
  const int64_t n0 = val(call, ULY_ROWSUM_N0), cols = val(call, ULY_ROWSUM_COLS), blocks = uly_cdiv(cols, COLUMNS);
  for (int64_t item = call->lo; item < call->hi; item++) {
    const outer o = outer_of(call, item / blocks);
    int64_t c = item % blocks * COLUMNS, n = cols - c < COLUMNS ? cols - c : COLUMNS;
    if (uly_rowsum_ints) {
      sum_ints(call, &o, c, n, (int64_t *)ptr(call, ULY_ROWSUM_OUT) + (item / blocks * cols + c));
      continue;
    }
    int64_t *limbs = (int64_t *)ptr(call, ULY_ROWSUM_OUT) + (item / blocks * cols + c) * ULY_EXACT_LIMBS;
    for (int64_t j = 0; j < n * ULY_EXACT_LIMBS; j++) limbs[j] = 0;
    for (int64_t i0 = 0; i0 < n0; i0++)
      for (int64_t j = 0; j < n; j += VL) add_columns(call, i0, &o, c + j, n - j < VL ? n - j : VL, limbs + j * ULY_EXACT_LIMBS);
  }
}
