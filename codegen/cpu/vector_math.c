#include "codegen/cpu/vector_math.h"

#include <math.h>

// Coefficients: near-minimax fits in 130 digits at Chebyshev nodes, or weighted least squares for the tail of erf.
// (e^r − 1 − r) / r² on ± ln 2 / 2
static const double exp_f32[] = {5.e-01, 1.6666667e-01, 4.1666463e-02, 8.3333105e-03, 1.3933667e-03, 1.989101e-04};
static const double exp_f64[] = {0.5,
                                 0.1666666666666667,
                                 0.04166666666666667,
                                 0.008333333333326124,
                                 0.0013888888888883742,
                                 0.00019841269874858612,
                                 2.4801587325574868e-05,
                                 2.7557255352032673e-06,
                                 2.7557273608709007e-07,
                                 2.51052370507603e-08,
                                 2.0914701283102664e-09};
// (2^r − 1) / r on ± 1/2
static const double exp2_f32[] = {6.931472e-01, 2.402265e-01, 5.550411e-02, 9.618057e-03, 1.3333502e-03, 1.5461468e-04, 1.529734e-05};
// (log(1 + f) − f) / f² and log2(1 + f) / f − 1 on [√½ − 1, √2 − 1]
static const double log_f32[] = {-4.9999997e-01, 3.333333e-01,   -2.5000784e-01, 2.000124e-01, -1.662659e-01,
                                 1.4204678e-01,  -1.3127954e-01, 1.2724282e-01,  -7.674625e-02};
static const double log2_f32[] = {4.4269505e-01, -7.213475e-01,  4.808979e-01,  -3.6067465e-01, 2.8857568e-01, -2.4044769e-01,
                                  2.0503849e-01, -1.7919114e-01, 1.7235075e-01, -1.6767691e-01, 9.483372e-02};
// (log((1 + s) / (1 − s)) − 2 s) / s³ in s²
static const double log_f64[] = {0.6666666666666666, 0.3999999999999999,  0.2857142857143563,  0.22222222219777607, 0.18181818605445013,
                                 0.1538457420874962, 0.13335678514714808, 0.11687233189552514, 0.11890045085576857};

#define N(array) (int)(sizeof(array) / sizeof(array)[0])

static LLVMTypeRef int_like(uly_llvm *ir, LLVMValueRef x) { return uly_llvm_like(ir, x, uly_llvm_is_wide(ir, x) ? ir->i64 : ir->i32); }

LLVMValueRef uly_math_compare(uly_llvm *ir, LLVMRealPredicate predicate, LLVMValueRef x, double c) {
  return LLVMBuildFCmp(ir->b, predicate, x, uly_llvm_real(LLVMTypeOf(x), c), "");
}

static LLVMValueRef select_real(uly_llvm *ir, LLVMValueRef condition, double c, LLVMValueRef otherwise) {
  return LLVMBuildSelect(ir->b, condition, uly_llvm_real(LLVMTypeOf(otherwise), c), otherwise, "");
}

// Keeps NaN.
static LLVMValueRef clamp(uly_llvm *ir, LLVMValueRef x, double least, double most) {
  x = select_real(ir, uly_math_compare(ir, LLVMRealOLT, x, least), least, x);
  return select_real(ir, uly_math_compare(ir, LLVMRealOGT, x, most), most, x);
}

// Adding 1.5 · 2^(digits − 1) leaves the nearest whole number in the low bits of the sum: defined for NaN too, unlike a conversion.
LLVMValueRef uly_math_round(uly_llvm *ir, LLVMValueRef x, LLVMValueRef *out_int) {
  LLVMTypeRef type = LLVMTypeOf(x), ints = int_like(ir, x);
  bool wide = uly_llvm_is_wide(ir, x);
  double magic = wide ? 0x1.8p52 : 0x1.8p23;
  LLVMValueRef sum = LLVMBuildFAdd(ir->b, x, uly_llvm_real(type, magic), "");
  int64_t magic_bits = wide ? 0x4338000000000000 : 0x4b400000;
  *out_int = LLVMBuildSub(ir->b, LLVMBuildBitCast(ir->b, sum, ints, ""), uly_llvm_int(ints, magic_bits), "");
  return LLVMBuildFSub(ir->b, sum, uly_llvm_real(type, magic), "");
}

// 2^n for a normal result.
static LLVMValueRef power_of_two(uly_llvm *ir, LLVMTypeRef type, LLVMValueRef n) {
  LLVMTypeRef ints = LLVMTypeOf(n);
  bool wide = (LLVMGetTypeKind(ints) == LLVMVectorTypeKind ? LLVMGetElementType(ints) : ints) == ir->i64;
  LLVMValueRef biased = LLVMBuildAdd(ir->b, n, uly_llvm_int(ints, wide ? 1023 : 127), "");
  return LLVMBuildBitCast(ir->b, LLVMBuildShl(ir->b, biased, uly_llvm_int(ints, wide ? 52 : 23), ""), type, "");
}

// p · 2^n for an integer n, |n| up to twice the largest exponent; overflows to infinity.
static LLVMValueRef scale(uly_llvm *ir, LLVMValueRef p, LLVMValueRef n) {
  LLVMValueRef half = LLVMBuildAShr(ir->b, n, uly_llvm_int(LLVMTypeOf(n), 1), "");
  p = LLVMBuildFMul(ir->b, p, power_of_two(ir, LLVMTypeOf(p), half), "");
  return LLVMBuildFMul(ir->b, p, power_of_two(ir, LLVMTypeOf(p), LLVMBuildSub(ir->b, n, half, "")), "");
}

// 1 + r + r² · polynomial
static LLVMValueRef exp_reduced(uly_llvm *ir, LLVMValueRef r) {
  LLVMTypeRef type = LLVMTypeOf(r);
  LLVMValueRef p = uly_llvm_is_wide(ir, r) ? uly_llvm_polynomial(ir, r, exp_f64, N(exp_f64)) : uly_llvm_polynomial(ir, r, exp_f32, N(exp_f32));
  p = uly_llvm_fma(ir, LLVMBuildFMul(ir->b, r, r, ""), p, r);
  return LLVMBuildFAdd(ir->b, p, uly_llvm_real(type, 1.0), "");
}

LLVMValueRef uly_math_exp(uly_llvm *ir, LLVMValueRef x) {
  LLVMTypeRef type = LLVMTypeOf(x);
  bool wide = uly_llvm_is_wide(ir, x);
  LLVMValueRef n_int;
  x = wide ? clamp(ir, x, -800.0, 800.0) : clamp(ir, x, -110.0, 100.0);
  LLVMValueRef n = uly_math_round(ir, LLVMBuildFMul(ir->b, x, uly_llvm_real(type, 0x1.71547652b82fep+0), ""), &n_int);
  LLVMValueRef r = uly_llvm_fma_const(ir, n, wide ? -0x1.62e42fefa39efp-1 : -0x1.62e43p-1, x); // −ln 2, high and low
  r = uly_llvm_fma_const(ir, n, wide ? -0x1.abc9e3b39803fp-56 : 0x1.05c61p-29, r);
  return scale(ir, exp_reduced(ir, r), n_int);
}

LLVMValueRef uly_math_exp2(uly_llvm *ir, LLVMValueRef x) {
  LLVMTypeRef type = LLVMTypeOf(x);
  bool wide = uly_llvm_is_wide(ir, x);
  LLVMValueRef n_int;
  x = wide ? clamp(ir, x, -1100.0, 1100.0) : clamp(ir, x, -160.0, 140.0);
  LLVMValueRef r = LLVMBuildFSub(ir->b, x, uly_math_round(ir, x, &n_int), ""), p;
  if (wide)
    p = exp_reduced(ir, LLVMBuildFMul(ir->b, r, uly_llvm_real(type, 0x1.62e42fefa39efp-1), ""));
  else
    p = uly_llvm_fma(ir, r, uly_llvm_polynomial(ir, r, exp2_f32, N(exp2_f32)), uly_llvm_real(type, 1.0));
  return scale(ir, p, n_int);
}

// x = 2^e · (1 + f), f in [√½ − 1, √2 − 1].
static void split(uly_llvm *ir, LLVMValueRef x, LLVMValueRef *out_e, LLVMValueRef *out_f) {
  LLVMTypeRef type = LLVMTypeOf(x), ints = int_like(ir, x);
  bool wide = uly_llvm_is_wide(ir, x);
  int64_t root_half = wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  LLVMValueRef shift = uly_llvm_int(ints, wide ? 52 : 23), bits = LLVMBuildBitCast(ir->b, x, ints, "");
  LLVMValueRef e = LLVMBuildAShr(ir->b, LLVMBuildSub(ir->b, bits, uly_llvm_int(ints, root_half), ""), shift, "");
  LLVMValueRef m = LLVMBuildBitCast(ir->b, LLVMBuildSub(ir->b, bits, LLVMBuildShl(ir->b, e, shift, ""), ""), type, "");
  *out_f = LLVMBuildFSub(ir->b, m, uly_llvm_real(type, 1.0), "");
  // An int of at most 11 bits, made a float without a conversion, which AVX2 lacks for 64 bits.
  LLVMValueRef magic = LLVMBuildAdd(ir->b, e, uly_llvm_int(ints, wide ? 0x4338000000000000 : 0x4b400000), "");
  *out_e = LLVMBuildFSub(ir->b, LLVMBuildBitCast(ir->b, magic, type, ""), uly_llvm_real(type, wide ? 0x1.8p52 : 0x1.8p23), "");
}

// What logarithms of other than positive normal numbers are.
static LLVMValueRef log_edges(uly_llvm *ir, LLVMValueRef x, LLVMValueRef y) {
  LLVMValueRef positive = uly_math_compare(ir, LLVMRealOGE, x, uly_llvm_is_wide(ir, x) ? 0x1p-1022 : 0x1p-126);
  LLVMValueRef zero = LLVMBuildSelect(ir->b, uly_math_compare(ir, LLVMRealOLT, x, 0.0), uly_llvm_real(LLVMTypeOf(x), (double)NAN),
                                      uly_llvm_real(LLVMTypeOf(x), -(double)INFINITY), "");
  y = LLVMBuildSelect(ir->b, positive, y, zero, "");
  LLVMValueRef kept = uly_math_compare(ir, LLVMRealUEQ, x, (double)INFINITY); // infinity or NaN
  return LLVMBuildSelect(ir->b, kept, x, y, "");
}

// log(1 + f) for a wide f.
static LLVMValueRef log_reduced(uly_llvm *ir, LLVMValueRef f) {
  LLVMTypeRef type = LLVMTypeOf(f);
  LLVMValueRef s = LLVMBuildFDiv(ir->b, f, LLVMBuildFAdd(ir->b, f, uly_llvm_real(type, 2.0), ""), "");
  LLVMValueRef z = LLVMBuildFMul(ir->b, s, s, ""), p = LLVMBuildFMul(ir->b, z, uly_llvm_polynomial(ir, z, log_f64, N(log_f64)), "");
  LLVMValueRef h = LLVMBuildFMul(ir->b, LLVMBuildFMul(ir->b, f, f, ""), uly_llvm_real(type, 0.5), ""); // log = f − (h − s · (h + p))
  return LLVMBuildFSub(ir->b, f, LLVMBuildFSub(ir->b, h, LLVMBuildFMul(ir->b, s, LLVMBuildFAdd(ir->b, h, p, ""), ""), ""), "");
}

LLVMValueRef uly_math_log(uly_llvm *ir, LLVMValueRef x) {
  LLVMValueRef e, f, y;
  split(ir, x, &e, &f);
  if (uly_llvm_is_wide(ir, x)) {
    y = uly_llvm_fma_const(ir, e, 0x1.abc9e3b39803fp-56, log_reduced(ir, f));
    y = uly_llvm_fma_const(ir, e, 0x1.62e42fefa39efp-1, y);
  } else {
    y = uly_llvm_fma(ir, LLVMBuildFMul(ir->b, f, f, ""), uly_llvm_polynomial(ir, f, log_f32, N(log_f32)), f);
    y = uly_llvm_fma_const(ir, e, -0x1.05c61p-29, y);
    y = uly_llvm_fma_const(ir, e, 0x1.62e43p-1, y);
  }
  return log_edges(ir, x, y);
}

LLVMValueRef uly_math_log2(uly_llvm *ir, LLVMValueRef x) {
  LLVMValueRef e, f, y;
  split(ir, x, &e, &f);
  if (uly_llvm_is_wide(ir, x)) {
    LLVMValueRef l = log_reduced(ir, f), high = LLVMBuildFMul(ir->b, l, uly_llvm_real(LLVMTypeOf(l), 0x1.71547652b82fep+0), "");
    y = LLVMBuildFAdd(ir->b, e, high, "");
  } else {
    y = uly_llvm_fma(ir, f, uly_llvm_polynomial(ir, f, log2_f32, N(log2_f32)), f);
    y = LLVMBuildFAdd(ir->b, e, y, "");
  }
  return log_edges(ir, x, y);
}

LLVMValueRef uly_math_sigmoid(uly_llvm *ir, LLVMValueRef x) {
  LLVMValueRef one = uly_llvm_real(LLVMTypeOf(x), 1.0);
  return LLVMBuildFDiv(ir->b, one, LLVMBuildFAdd(ir->b, one, uly_math_exp(ir, LLVMBuildFNeg(ir->b, x, "")), ""), "");
}
