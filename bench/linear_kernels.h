// Linear layers as linear_bench times them: the templates specialised for one part with one epilogue, K and N free.
#ifndef ULY_BENCH_LINEAR_KERNELS_H
#define ULY_BENCH_LINEAR_KERNELS_H

#include "runtime/abi.h"
#include "runtime/kernel_abi.h"

// name, mode, has_epilogue. RESIDUAL: a + bias + residual; SILU: silu(a0) · a1; ROPE: heads of 64, all turned; LOSS: statistics instead of columns.
#define LINEAR_KINDS(X)                                                                                                                                        \
  X(plain, ULY_GEMM_PLAIN, 0)                                                                                                                                  \
  X(residual, ULY_GEMM_PLAIN, 1)                                                                                                                               \
  X(silu, ULY_GEMM_PAIR, 1)                                                                                                                                    \
  X(rope, ULY_GEMM_ROPE_HALF, 0)                                                                                                                               \
  X(loss, ULY_GEMM_PLAIN, 0)
typedef enum linear_kind {
#define X(name, mode, epilogue) LINEAR_##name,
  LINEAR_KINDS(X)
#undef X
      N_LINEAR_KINDS
} linear_kind;

enum { LINEAR_HEAD = 64, LINEAR_BIAS = ULY_GEMM_N_OPS, LINEAR_RESIDUAL, LINEAR_N_OPS };
enum { LINEAR_RESIDUAL_S = ULY_GEMM_N_VALS, LINEAR_N_VALS };

typedef struct linear_level {
  uly_kernel gemm[N_LINEAR_KINDS], pack[N_LINEAR_KINDS];
  const struct linear_level *base; // of all dtypes but bf16, or NULL
  double (*fma_loop)(int64_t n);   // n · 24 dependent chains' steps; returns operations done
} linear_level;
extern const linear_level linear_level_v3, linear_level_v4, linear_level_amx;

#endif
