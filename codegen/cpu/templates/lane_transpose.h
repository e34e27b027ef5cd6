// Transposes VL × VL floats in registers, log2 VL rounds of exchanges.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_LANE_TRANSPOSE_H
#define ULY_CODEGEN_CPU_TEMPLATES_LANE_TRANSPOSE_H

#include "codegen/cpu/templates/lane_floats.h"

// Lane l of what row i keeps, and of what its partner i + s keeps, when they exchange blocks of s lanes.
#define ULY_LANE_LOW(l, s) (((l) & (s)) ? VL + (l) - (s) : (l))
#define ULY_LANE_HIGH(l, s) (((l) & (s)) ? VL + (l) : (l) + (s))
#define ULY_LANES_8(f, s) f(0, s), f(1, s), f(2, s), f(3, s), f(4, s), f(5, s), f(6, s), f(7, s)
#if VL == 16
#define ULY_LANES(f, s) ULY_LANES_8(f, s), f(8, s), f(9, s), f(10, s), f(11, s), f(12, s), f(13, s), f(14, s), f(15, s)
#else
#define ULY_LANES(f, s) ULY_LANES_8(f, s)
#endif
#define ULY_EXCHANGE(r, s)                                                                                                                                     \
  ULY_UNROLL                                                                                                                                                   \
  for (int i = 0; i < VL; i++)                                                                                                                                 \
    if (!(i & (s))) {                                                                                                                                          \
      const vf a = (r)[i], b = (r)[i + (s)];                                                                                                                   \
      (r)[i] = __builtin_shufflevector(a, b, ULY_LANES(ULY_LANE_LOW, s));                                                                                      \
      (r)[i + (s)] = __builtin_shufflevector(a, b, ULY_LANES(ULY_LANE_HIGH, s));                                                                               \
    }

// Row i, lane l becomes row l, lane i.
ULY_INLINE void lane_exchange(vf r[VL]){
#if VL == 16
    ULY_EXCHANGE(r, 8)
#endif
        ULY_EXCHANGE(r, 4) ULY_EXCHANGE(r, 2) ULY_EXCHANGE(r, 1)}

// to[c][i] = from[i][c] · factor[c] + 0 for i < n_rows and c < n_columns, at most VL each, from and to dtypes that are constants. from[i] is a pointer for every i < VL;
// what it points to past n_columns is not read.
ULY_INLINE void lane_transpose(int64_t from_dtype, const void *const *from, int64_t to_dtype, void *const *to, int64_t n_rows, int64_t n_columns, vf factor) {
  vf r[VL];
  ULY_UNROLL
  for (int i = 0; i < VL; i++) r[i] = lane_load(from_dtype, from[i], n_columns) * factor + vf_splat(0.0f);
  lane_exchange(r);
  ULY_UNROLL
  for (int i = 0; i < VL; i++)
    if (i < n_columns) lane_store(to_dtype, to[i], n_rows, r[i]);
}

#endif
