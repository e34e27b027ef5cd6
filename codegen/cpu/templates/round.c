// out[i] = the ranks' parts of an exact sum (rowsum.c), added and rounded once; calling convention in kernel_abi.h.
// Bits: none, the sum is exact, so the ranks' order does not matter either. It becomes f32, and that what is stored.

#include "codegen/cpu/templates/exact_sum.h"
#include "codegen/cpu/templates/lane_floats.h"

ULY_CONST(int64_t, uly_round_dtype); // of floats
ULY_CONST(int64_t, uly_round_ints);  // parts and result are i64, without limbs

ULY_INLINE void add_ints(const uly_call *call, const uly_arg *parts) {
  int64_t *out = ptr(call, ULY_ROUND_OUT);
  for (int64_t i = call->lo; i < call->hi; i++) {
    uint64_t sum = 0;
    for (int64_t p = 0; p < parts->n; p++) sum += (uint64_t)((const int64_t *)parts->p[p])[i];
    out[i] = (int64_t)sum;
  }
}

ULY_KERNEL(uly_kernel_round) {
  const uly_arg *parts = &call->op[ULY_ROUND_PARTS];
  if (uly_round_ints) {
    add_ints(call, parts);
    return;
  }
  char *out = ptr(call, ULY_ROUND_OUT);
  for (int64_t i = call->lo; i < call->hi; i++) {
    int64_t sum[ULY_EXACT_LIMBS] = {0};
    for (int64_t p = 0; p < parts->n; p++) {
      const int64_t *part = (const int64_t *)parts->p[p] + i * ULY_EXACT_LIMBS;
      for (int j = 0; j < EXACT_VALUE_LIMBS; j++) sum[j] += part[j];
      sum[EXACT_VALUE_LIMBS] |= part[EXACT_VALUE_LIMBS];
    }
    lane_store(uly_round_dtype, out + i * lane_bytes(uly_round_dtype), 1, vf_splat(exact_round(sum)));
  }
}
