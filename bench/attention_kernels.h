// Attention as attention_bench times it: the template specialised for a width, with and without a causal mask, at each CPU level.
#ifndef ULY_BENCH_ATTENTION_KERNELS_H
#define ULY_BENCH_ATTENTION_KERNELS_H

#include "runtime/abi.h"

// width, causal
#define ATTENTION_KINDS(X) X(64, 0) X(64, 1) X(128, 0) X(128, 1)
typedef enum attention_kind {
#define X(width, causal) ATTENTION_##width##_##causal,
  ATTENTION_KINDS(X)
#undef X
      N_ATTENTION_KINDS
} attention_kind;

typedef struct attention_level {
  const char *name;
  uly_kernel kernel[N_ATTENTION_KINDS];
  double (*fma_loop)(int64_t n); // returns operations done
} attention_level;
extern const attention_level attention_level_v3, attention_level_v4;

#endif
