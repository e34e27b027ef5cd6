// Compiled by clang for each CPU level and each LINEAR_KIND; LINEAR_MODE and LINEAR_EPILOGUE say what it is. One more object a level, without LINEAR_KIND, holds the
// table of them and the loop that measures the peak.
#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)

#include "bench/linear_kernels.h"

#ifdef LINEAR_KIND
#define LOCAL(name) JOIN(name, LINEAR_KIND, ULY_LEVEL)
#define uly_gemm LOCAL(uly_gemm)
#define uly_pack LOCAL(uly_pack)
#define uly_hook_gemm_epilogue LOCAL(uly_hook_gemm_epilogue)
#define uly_gemm_n_parts LOCAL(uly_gemm_n_parts)
#define uly_gemm_message LOCAL(uly_gemm_message)
#define uly_gemm_labels LOCAL(uly_gemm_labels)
#define uly_gemm_part_mode LOCAL(uly_gemm_part_mode)
#define uly_gemm_part_rope LOCAL(uly_gemm_part_rope)
#define uly_gemm_part_has_epilogue LOCAL(uly_gemm_part_has_epilogue)
#define uly_pack_mode LOCAL(uly_pack_mode)
#define uly_pack_rope LOCAL(uly_pack_rope)

#include "codegen/cpu/templates/gemm.c"
#include "codegen/cpu/templates/pack.c"

#ifndef LINEAR_LABELS
#define LINEAR_LABELS 0
#endif
enum { ROPE = LINEAR_MODE == ULY_GEMM_ROPE_HALF ? LINEAR_HEAD : 0 };
const int64_t uly_gemm_n_parts = 1, uly_gemm_message = 0, uly_gemm_labels = LINEAR_LABELS, uly_pack_mode = LINEAR_MODE, uly_pack_rope = ROPE;
const int64_t uly_gemm_part_mode[ULY_GEMM_MAX_PARTS] = {LINEAR_MODE}, uly_gemm_part_rope[ULY_GEMM_MAX_PARTS] = {ROPE};
const int64_t uly_gemm_part_has_epilogue[ULY_GEMM_MAX_PARTS] = {LINEAR_EPILOGUE};

ULY_INLINE vf linear_epilogue(const uly_call *call, int64_t i0, int64_t c, int64_t n, vf a0, vf a1) {
  if (LINEAR_MODE == ULY_GEMM_PAIR) return a0 / (vf_splat(1.0f) + vf_exp2(a0 * vf_splat(-0x1.715476p0f))) * a1;
  const float *bias = (const float *)ptr(call, LINEAR_BIAS) + c;
  const float *residual = (const float *)ptr(call, LINEAR_RESIDUAL) + i0 * val(call, LINEAR_RESIDUAL_S) + c;
  return a0 + vf_load_first(bias, n) + vf_load_first(residual, n);
}
__attribute__((always_inline)) vf uly_hook_gemm_epilogue(const uly_call *call, int32_t part, int64_t i0, int64_t i1, int64_t c, int64_t n, vf a0, vf a1) {
  (void)part, (void)i1;
  return linear_epilogue(call, i0, c, n, a0, a1);
}

#else
#include "codegen/cpu/templates/lane_math.h"

#define X(name, mode, epilogue)                                                                                                                                \
  void JOIN(uly_gemm, name, ULY_LEVEL)(const uly_call *call);                                                                                                  \
  void JOIN(uly_pack, name, ULY_LEVEL)(const uly_call *call);
LINEAR_KINDS(X)
#undef X

static double fma_loop(int64_t n) {
  enum { CHAINS = VL == 16 ? 24 : 12 };
  vf acc[CHAINS], a = vf_splat(1.0f), b = vf_splat(0.0f);
  ULY_UNROLL
  for (int i = 0; i < CHAINS; i++) acc[i] = b;
  __asm__ volatile("" : "+v"(a), "+v"(b));
  for (int64_t k = 0; k < n; k++) {
    ULY_UNROLL
    for (int i = 0; i < CHAINS; i++) {
      acc[i] = vf_fma(a, b, acc[i]);
      __asm__ volatile("" : "+v"(acc[i]));
    }
  }
  return 2.0 * (double)(VL * CHAINS * n);
}

#define X(name, mode, epilogue) JOIN(uly_gemm, name, ULY_LEVEL),
#define Y(name, mode, epilogue) JOIN(uly_pack, name, ULY_LEVEL),
#define LEVEL_TABLE_(level) linear_level_##level
#define LEVEL_TABLE(level) LEVEL_TABLE_(level)
#ifdef __AMX_BF16__
#define BASE &linear_level_v4
#else
#define BASE NULL
#endif
const linear_level LEVEL_TABLE(ULY_LEVEL) = {{LINEAR_KINDS(X)}, {LINEAR_KINDS(Y)}, BASE, fma_loop};
#endif
