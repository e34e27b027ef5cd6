// Compiled by clang once for each CPU level. ULY_LEVEL names the level; every external name gets it as a suffix, since all levels are linked into one program.
#define NAME_(name, level) name##_##level
#define NAME(name, level) NAME_(name, level)
#define TEXT_(text) #text
#define TEXT(text) TEXT_(text)
#define uly_gemm NAME(uly_gemm, ULY_LEVEL)
#define uly_pack NAME(uly_pack, ULY_LEVEL)
#define uly_hook_gemm_epilogue NAME(uly_hook_gemm_epilogue, ULY_LEVEL)

#include "tests/numerics/gemm_native.h"

#include "codegen/cpu/templates/gemm.c"
#include "codegen/cpu/templates/pack.c"
#include "tests/numerics/gemm_case.h"

vf uly_hook_gemm_epilogue(const uly_call *call, int32_t part, int64_t i0, int64_t i1, int64_t c, int64_t n, vf a0, vf a1) {
  const float *bias = ptr(call, GEMM_HOOK_BIAS + part), *residual = ptr(call, GEMM_HOOK_RESIDUAL + part);
  residual += i0 * val(call, GEMM_HOOK_S + part) + i1 * val(call, GEMM_HOOK_B + part);
  vf y = a0;
  for (int64_t l = 0; l < n; l++) {
    switch ((gemm_epilogue)val(call, GEMM_HOOK_KIND + part)) {
    case GEMM_NONE: break;
    case GEMM_BIAS: y[l] = a0[l] + bias[c + l]; break;
    case GEMM_RESIDUAL: y[l] = a0[l] + bias[c + l] + residual[c + l]; break;
    case GEMM_PRODUCT: y[l] = a0[l] * (a1[l] + bias[c + l]); break;
    }
  }
  return y;
}

static void store_lanes(int64_t dtype, void *to, int64_t n, const float *from) { lane_store(dtype, to, n, vf_load(from)); }
static void load_lanes(int64_t dtype, const void *from, int64_t n, float *to) { vf_store(to, lane_load(dtype, from, n)); }

#ifdef __AMX_BF16__
enum { TILES = 1 };
#else
enum { TILES = 0 };
#endif
const gemm_native NAME(gemm_native, ULY_LEVEL) = {TEXT(ULY_LEVEL), uly_gemm, uly_pack, VL, TILES, store_lanes, load_lanes};
