// Attention as attention_bench times it: the template specialised for a width, with and without a causal mask, at each CPU level.
#ifndef ULY_BENCH_ATTENTION_KERNELS_H
#define ULY_BENCH_ATTENTION_KERNELS_H

#include "runtime/abi.h"

// width, causal, dtype of q, k, v and o
#define ATTENTION_KINDS_OF(X, dtype) X(64, 0, dtype) X(64, 1, dtype) X(128, 0, dtype) X(128, 1, dtype)
#define ATTENTION_KINDS(X) ATTENTION_KINDS_OF(X, f32) ATTENTION_KINDS_OF(X, bf16) ATTENTION_KINDS_OF(X, f16)
typedef enum attention_kind {
#define X(width, causal, dtype) ATTENTION_##width##_##causal##_##dtype,
  ATTENTION_KINDS(X)
#undef X
      N_ATTENTION_KINDS
} attention_kind;

typedef struct attention_level {
  const char *name;
  uly_kernel kernel[N_ATTENTION_KINDS];
  double (*fma_loop)(int64_t n); // returns operations done
} attention_level;
extern const attention_level attention_level_v3, attention_level_v4, attention_level_amx;

#endif
