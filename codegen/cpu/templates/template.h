// What every CPU kernel template shares. Templates are C, compiled by clang to bitcode for each CPU level when ulyc is built, and specialised when a spec is compiled:
// constants (declared with ULY_CONST) are replaced by the kernel's, hooks (declared below) by functions that codegen/cpu/expr_to_vector.c emits, and
// everything is inlined. So they also compile natively, with constants and hooks written in C, which is how unit tests and benchmarks run them.
//
// A vector vf has VL floats. The bits contract of ARCHITECTURE.md holds for every template: nothing here may let local row counts, ranks or threads
// change a result's bits.
#ifndef ULY_CODEGEN_CPU_TEMPLATES_TEMPLATE_H
#define ULY_CODEGEN_CPU_TEMPLATES_TEMPLATE_H

#include "runtime/abi.h"
#include "runtime/kernel_abi.h"

#if defined(__AVX512F__)
#define VL 16
#else
#define VL 8
#endif

typedef float vf __attribute__((vector_size(VL * 4), aligned(4)));
typedef int32_t vi __attribute__((vector_size(VL * 4), aligned(4)));
typedef double vd __attribute__((vector_size(VL * 8), aligned(8)));
typedef int64_t vl __attribute__((vector_size(VL * 8), aligned(8)));

#define ULY_INLINE static inline __attribute__((always_inline))
#define ULY_KERNEL(name)                                                                                                                                       \
  void name(const uly_call *call);                                                                                                                             \
  void name(const uly_call *call)

// A number fixed when the kernel is specialised: an external constant without a definition, so that the optimiser cannot assume its value earlier.
#define ULY_CONST(type, name) extern const type name

ULY_INLINE int64_t val(const uly_call *call, int slot) { return call->val[slot][0]; }
ULY_INLINE void *ptr(const uly_call *call, int slot) { return call->op[slot].p[0]; }

// Hooks. n: valid lanes, 1 … VL; others are neither loaded nor stored. Indices are local; the hook adds the starts it needs.
//   rows:      in(…) → value; out(…, y) stores; map(…) loads, computes, stores
//   gemm:      epilogue(part, …, a0, a1) → value
//   attention: the score of VL queries q0 … q0 + VL − 1 (global rows, q_offset added; b and h global too) and key k. live: all ones in lanes that are valid and
//              unmasked; what a score would load or find out of range in other lanes is not looked at. mask returns all ones or all zeros a lane;
//              range classifies keys [k0, k1) for queries [q0, q1): EMPTY and FULL are promises about every pair, PARTIAL is always right
//   rowsum:    term(…) → value; int_term(…) → the same where it is an int or bool
//   nll:       in(…) → value
typedef enum uly_range { ULY_RANGE_EMPTY, ULY_RANGE_FULL, ULY_RANGE_PARTIAL } uly_range;
vf uly_hook_rows_in(const uly_call *call, int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4, int64_t c, int64_t n);
void uly_hook_rows_out(const uly_call *call, int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4, int64_t c, int64_t n, vf y);
void uly_hook_rows_map(const uly_call *call, int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4, int64_t c, int64_t n);
vf uly_hook_gemm_epilogue(const uly_call *call, int32_t part, int64_t i0, int64_t i1, int64_t c, int64_t n, vf a0, vf a1);
vf uly_hook_attention_score(const uly_call *call, int64_t b, int64_t h, int64_t q0, int64_t k, vi live, vf s);
vi uly_hook_attention_mask(const uly_call *call, int64_t b, int64_t h, int64_t q0, int64_t k, int64_t n);
int32_t uly_hook_attention_range(const uly_call *call, int64_t b, int64_t h, int64_t q0, int64_t q1, int64_t k0, int64_t k1);
vl uly_hook_rowsum_int_term(const uly_call *call, int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4, int64_t c, int64_t n);
vf uly_hook_rowsum_term(const uly_call *call, int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4, int64_t c, int64_t n);
vf uly_hook_nll_in(const uly_call *call, int64_t i0, int64_t i1, int64_t i2, int64_t i3, int64_t i4, int64_t c, int64_t n);

#endif
