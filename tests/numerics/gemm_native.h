// The linear-layer templates compiled natively at one CPU level, with hooks in C. Constants are variables here (gemm_native_constants), set before a
// call.
#ifndef ULY_TESTS_NUMERICS_GEMM_NATIVE_H
#define ULY_TESTS_NUMERICS_GEMM_NATIVE_H

#include <stdbool.h>

#include "runtime/abi.h"
#include "runtime/kernel_abi.h"

typedef struct gemm_native {
  const char *name;
  uly_kernel gemm, pack;
  int64_t lanes;
  bool tiles; // bf16 alone
  // The first |n| lanes, from f32 to memory of a dtype and back.
  void (*store)(int64_t dtype, void *to, int64_t n, const float *from);
  void (*load)(int64_t dtype, const void *from, int64_t n, float *to);
} gemm_native;
extern const gemm_native gemm_native_v3, gemm_native_v4, gemm_native_amx;

// Operands and values of the test's hooks.
enum { GEMM_HOOK_BIAS = ULY_GEMM_N_OPS, GEMM_HOOK_RESIDUAL = GEMM_HOOK_BIAS + ULY_GEMM_MAX_PARTS, GEMM_HOOK_N_OPS = GEMM_HOOK_RESIDUAL + ULY_GEMM_MAX_PARTS };
enum {
  GEMM_HOOK_S = ULY_GEMM_N_VALS,
  GEMM_HOOK_B = GEMM_HOOK_S + ULY_GEMM_MAX_PARTS,
  GEMM_HOOK_KIND = GEMM_HOOK_B + ULY_GEMM_MAX_PARTS,
  GEMM_HOOK_N_VALS = GEMM_HOOK_KIND + ULY_GEMM_MAX_PARTS
};

#endif
