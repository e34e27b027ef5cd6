// Compiled by clang for each CPU level and each of ATTENTION_KINDS, which ATTENTION_WIDTH, ATTENTION_CAUSAL and ATTENTION_DTYPE name. One more object a level, without them, holds the table
// and the loop that measures the peak.
#define JOIN_(a, b, c, d, e) a##_##b##_##c##_##d##_##e
#define JOIN(a, b, c, d, e) JOIN_(a, b, c, d, e)
#define TEXT_(text) #text
#define TEXT(text) TEXT_(text)

#include "bench/attention_kernels.h"

#ifdef ATTENTION_WIDTH
#define LOCAL(name) JOIN(name, ATTENTION_WIDTH, ATTENTION_CAUSAL, ATTENTION_DTYPE, ULY_LEVEL)
#define uly_attention_fwd LOCAL(uly_attention)
#define uly_hook_attention_score LOCAL(uly_hook_attention_score)
#define uly_hook_attention_mask LOCAL(uly_hook_attention_mask)
#define uly_hook_attention_range LOCAL(uly_hook_attention_range)
#define uly_attention_dh LOCAL(uly_attention_dh)
#define uly_attention_dv LOCAL(uly_attention_dv)
#define uly_attention_group LOCAL(uly_attention_group)
#define uly_attention_scale LOCAL(uly_attention_scale)
#define uly_attention_dtype LOCAL(uly_attention_dtype)
#define uly_attention_has_score LOCAL(uly_attention_has_score)
#define uly_attention_has_mask LOCAL(uly_attention_has_mask)
#define uly_attention_has_sink LOCAL(uly_attention_has_sink)
#define uly_attention_has_lse LOCAL(uly_attention_has_lse)

#include "codegen/cpu/templates/attention_fwd.c"

const int64_t uly_attention_dh = ATTENTION_WIDTH, uly_attention_dv = ATTENTION_WIDTH, uly_attention_group = 1;
enum { f32 = LANE_F32, bf16 = LANE_BF16, f16 = LANE_F16 };
const int64_t uly_attention_dtype = ATTENTION_DTYPE;
const double uly_attention_scale = ATTENTION_WIDTH == 64 ? 0.125 : 0x1.6a09e667f3bcdp-4;
const int32_t uly_attention_has_score = 0, uly_attention_has_mask = ATTENTION_CAUSAL, uly_attention_has_sink = 0, uly_attention_has_lse = 1;

__attribute__((always_inline)) vf uly_hook_attention_score(const uly_call *call, int64_t b, int64_t h, int64_t q0, int64_t k, vi live, vf s) {
  (void)call, (void)b, (void)h, (void)q0, (void)k, (void)live;
  return s;
}

__attribute__((always_inline)) vi uly_hook_attention_mask(const uly_call *call, int64_t b, int64_t h, int64_t q0, int64_t k, int64_t n) {
  (void)call, (void)b, (void)h, (void)n;
  return ~vi_first(k - q0); // k <= q0 + lane
}

__attribute__((always_inline)) int32_t uly_hook_attention_range(const uly_call *call, int64_t b, int64_t h, int64_t q0, int64_t q1, int64_t k0, int64_t k1) {
  (void)call, (void)b, (void)h;
  return k1 - 1 <= q0 ? ULY_RANGE_FULL : k0 > q1 - 1 ? ULY_RANGE_EMPTY : ULY_RANGE_PARTIAL;
}

#else
#include "codegen/cpu/templates/lane_math.h"

#define X(width, causal, dtype) void JOIN(uly_attention, width, causal, dtype, v4)(const uly_call *call);
ATTENTION_KINDS(X)
#undef X
#define X(width, causal, dtype) void JOIN(uly_attention, width, causal, dtype, ULY_LEVEL)(const uly_call *call);
ATTENTION_KINDS(X)
#undef X

static double fma_loop(int64_t n) {
  enum { CHAINS = VL == 16 ? 24 : 12 };
  vf acc[CHAINS], a = vf_splat(1.0f), b = vf_splat(0.0f);
  ULY_UNROLL
  for (int i = 0; i < CHAINS; i++) acc[i] = b;
  for (int64_t k = 0; k < n; k++) {
    ULY_UNROLL
    for (int i = 0; i < CHAINS; i++) __asm__ volatile("vfmadd231ps %1, %2, %0" : "+v"(acc[i]) : "v"(a), "v"(b));
  }
  return 2.0 * (double)n * (int)CHAINS * (int)VL;
}

#define LEVEL_(level) attention_level_##level
#define LEVEL(level) LEVEL_(level)
#ifdef __AMX_BF16__ // all but bf16 is its base's
#define BASE v4
#else
#define BASE ULY_LEVEL
#endif
#define X(width, causal, dtype) JOIN(uly_attention, width, causal, dtype, ULY_LEVEL),
#define Y(width, causal, dtype) JOIN(uly_attention, width, causal, dtype, BASE),
const attention_level LEVEL(ULY_LEVEL) = {TEXT(ULY_LEVEL), {ATTENTION_KINDS_OF(Y, f32) ATTENTION_KINDS_OF(X, bf16) ATTENTION_KINDS_OF(Y, f16)}, fma_loop};
#endif
