// Functions that are odd, periodic or of two arguments. sin, cos and pow work in f64 whatever their arguments are.
#include <math.h>

#include "codegen/cpu/vector_math.h"

// (tanh(x) / x − 1) / x² in x², |x| up to 5/8 and 0.55
static const double tanh_f32[] = {-3.3333334e-01, 1.3333331e-01, -5.396757e-02, 2.185906e-02, -8.786493e-03, 3.2951338e-03, -8.5202773e-04};
static const double tanh_f64[] = {-0.3333333333333333,     0.13333333333333333,    -0.053968253968252625,  0.021869488536057247,    -0.008863235526183403,
                                  0.0035921279523890705,   -0.0014558331607022348, 0.0005900154271291456,  -0.00023904812628545614, 9.65372920808768e-05,
                                  -3.8068171504597405e-05, 1.3341844917615226e-05, -3.0087819063055317e-06};
// (sin(x) / x − 1) / x² and (cos(x) − 1 + x² / 2) / x⁴ in x², |x| up to π / 4
static const double sin_f64[] = {-0.16666666666666666,   0.008333333333333331,   -0.0001984126984126494, 2.7557319219243677e-06,
                                 -2.505210619936182e-08, 1.6058526388142101e-10, -7.586389554705215e-13};
static const double cos_f64[] = {0.041666666666666664,  -0.0013888888888888887,  2.4801587301584578e-05, -2.755731922134973e-07,
                                 2.087675577268547e-09, -1.1470457979362018e-11, 4.745700902269626e-14};
// erf(x) / x − 1 in x², |x| up to 0.92 and 1
static const double erf_f32[] = {1.2837917e-01, -3.7612638e-01, 1.1283788e-01, -2.686583e-02, 5.22238e-03, -8.507305e-04, 1.14634924e-04, -1.0324888e-05};
static const double erf_f64[] = {0.1283791670955126,     -0.37612638903183754,    0.11283791670955126,     -0.026866170645131218,  0.005223977625441674,
                                 -0.0008548327023403001, 0.00012055332978879483,  -1.4925650236967501e-05, 1.6462110782018636e-06, -1.636576864883207e-07,
                                 1.4806027146128752e-08, -1.2277734486795524e-09, 9.323723518153027e-11,   -6.1967364287877e-12,   2.8067128195611264e-13};
// −log(erfc(x)) on [0.92, 4]
static const double erf_tail_f32[] = {-1.6600869e-04, 1.1294652e+00,  6.334695e-01,  1.0811052e-01, -2.4975587e-02,
                                      4.0944954e-03,  -4.0950227e-04, 1.6541717e-05, 3.557007e-07};
// erfc(x) · exp(x²) on [1, 6] in (x − 2) / (x + 2)
static const double erfcx_f64[] = {0.25539567631050575,    -0.4271858474139585,     0.24165819424246585,     -0.07897858101570611,   0.0037328924043978336,
                                   0.006997461736971578,   -0.00084714325299195,    -0.0009819769411038642,  4.355558686575482e-05,  0.00017435947400205157,
                                   2.7527175557227246e-05, -2.7562209161129353e-05, -1.3998283772784976e-05, 1.3058577122278017e-06, 4.011749647325067e-06,
                                   1.272567661840228e-06,  -1.1352571477273627e-06};

#define N(array) (int)(sizeof(array) / sizeof(array)[0])

static LLVMValueRef real_like(LLVMValueRef x, double c) { return uly_llvm_real(LLVMTypeOf(x), c); }
static LLVMValueRef mul(uly_llvm *ir, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildFMul(ir->b, a, b, ""); }
static LLVMValueRef least(uly_llvm *ir, LLVMValueRef x, double most) {
  return LLVMBuildSelect(ir->b, uly_math_compare(ir, LLVMRealOGT, x, most), real_like(x, most), x, "");
}

static LLVMValueRef copy_sign(uly_llvm *ir, LLVMValueRef magnitude, LLVMValueRef sign) {
  LLVMValueRef args[] = {magnitude, sign};
  return uly_llvm_call(ir, "llvm.copysign", LLVMTypeOf(magnitude), args, 2);
}

static LLVMValueRef widened(uly_llvm *ir, LLVMValueRef x) { return LLVMBuildFPExt(ir->b, x, uly_llvm_like(ir, x, ir->f64), ""); }
static LLVMValueRef narrowed(uly_llvm *ir, LLVMValueRef x) { return LLVMBuildFPTrunc(ir->b, x, uly_llvm_like(ir, x, ir->f32), ""); }

// Small arguments by a polynomial, others by 1 − 2 / (e^2x + 1).
LLVMValueRef uly_math_tanh(uly_llvm *ir, LLVMValueRef x) {
  bool wide = uly_llvm_is_wide(ir, x);
  LLVMValueRef m = uly_llvm_call1(ir, "llvm.fabs", x), z = mul(ir, x, x);
  LLVMValueRef p = wide ? uly_llvm_polynomial(ir, z, tanh_f64, N(tanh_f64)) : uly_llvm_polynomial(ir, z, tanh_f32, N(tanh_f32));
  LLVMValueRef small = uly_llvm_fma(ir, mul(ir, z, x), p, x);
  LLVMValueRef e = uly_math_exp(ir, LLVMBuildFAdd(ir->b, m, m, ""));
  LLVMValueRef q = LLVMBuildFDiv(ir->b, real_like(x, 2.0), LLVMBuildFAdd(ir->b, e, real_like(x, 1.0), ""), "");
  LLVMValueRef large = copy_sign(ir, LLVMBuildFSub(ir->b, real_like(x, 1.0), q, ""), x);
  return LLVMBuildSelect(ir->b, uly_math_compare(ir, LLVMRealOLT, m, wide ? 0.55 : 0.625), small, large, "");
}

LLVMValueRef uly_math_erf(uly_llvm *ir, LLVMValueRef x) {
  bool wide = uly_llvm_is_wide(ir, x);
  LLVMValueRef m = uly_llvm_call1(ir, "llvm.fabs", x), z = mul(ir, x, x), t = least(ir, m, wide ? 6.0 : 4.0), tail;
  LLVMValueRef p = wide ? uly_llvm_polynomial(ir, z, erf_f64, N(erf_f64)) : uly_llvm_polynomial(ir, z, erf_f32, N(erf_f32));
  LLVMValueRef small = uly_llvm_fma(ir, x, p, x);
  if (wide) {
    LLVMValueRef two = real_like(x, 2.0), u = LLVMBuildFDiv(ir->b, LLVMBuildFSub(ir->b, t, two, ""), LLVMBuildFAdd(ir->b, t, two, ""), "");
    tail = mul(ir, uly_math_exp(ir, LLVMBuildFNeg(ir->b, mul(ir, t, t), "")), uly_llvm_polynomial(ir, u, erfcx_f64, N(erfcx_f64)));
  } else {
    tail = uly_math_exp(ir, LLVMBuildFNeg(ir->b, uly_llvm_polynomial(ir, t, erf_tail_f32, N(erf_tail_f32)), ""));
  }
  LLVMValueRef large = copy_sign(ir, LLVMBuildFSub(ir->b, real_like(x, 1.0), tail, ""), x);
  return LLVMBuildSelect(ir->b, uly_math_compare(ir, LLVMRealOLT, m, wide ? 1.0 : 0.92), small, large, "");
}

// sin(x + quarter · π / 2). x − n · π/2 in three parts: the first difference is exact, whatever n is.
static LLVMValueRef sine(uly_llvm *ir, LLVMValueRef x, int64_t quarter) {
  LLVMTypeRef type = LLVMTypeOf(x), ints = uly_llvm_like(ir, x, ir->i64);
  LLVMValueRef n_int, n = uly_math_round(ir, mul(ir, x, uly_llvm_real(type, 0x1.45f306dc9c883p-1)), &n_int);
  LLVMValueRef r = uly_llvm_fma_const(ir, n, -0x1.921fb54442d18p+0, x);
  r = uly_llvm_fma_const(ir, n, -0x1.1a62633145c07p-54, r);
  r = uly_llvm_fma_const(ir, n, 0x1.f1976b7ed8fbcp-110, r);
  LLVMValueRef z = mul(ir, r, r), one = uly_llvm_real(type, 1.0), half = uly_llvm_real(type, -0.5);
  LLVMValueRef s = uly_llvm_fma(ir, mul(ir, z, r), uly_llvm_polynomial(ir, z, sin_f64, N(sin_f64)), r);
  LLVMValueRef c = uly_llvm_fma(ir, mul(ir, z, z), uly_llvm_polynomial(ir, z, cos_f64, N(cos_f64)), mul(ir, z, half));
  c = LLVMBuildFAdd(ir->b, c, one, "");
  n_int = LLVMBuildAdd(ir->b, n_int, uly_llvm_int(ints, quarter), "");
  LLVMValueRef zero = LLVMConstNull(ints);
  LLVMValueRef odd = LLVMBuildICmp(ir->b, LLVMIntNE, LLVMBuildAnd(ir->b, n_int, uly_llvm_int(ints, 1), ""), zero, "");
  LLVMValueRef negative = LLVMBuildICmp(ir->b, LLVMIntNE, LLVMBuildAnd(ir->b, n_int, uly_llvm_int(ints, 2), ""), zero, "");
  LLVMValueRef y = LLVMBuildSelect(ir->b, odd, c, s, "");
  y = LLVMBuildSelect(ir->b, negative, LLVMBuildFNeg(ir->b, y, ""), y, "");
  LLVMValueRef reducible = uly_math_compare(ir, LLVMRealOLT, uly_llvm_call1(ir, "llvm.fabs", x), 0x1p50);
  return LLVMBuildSelect(ir->b, reducible, y, uly_llvm_real(type, (double)NAN), "");
}

static LLVMValueRef sine_any(uly_llvm *ir, LLVMValueRef x, int64_t quarter) {
  return uly_llvm_is_wide(ir, x) ? sine(ir, x, quarter) : narrowed(ir, sine(ir, widened(ir, x), quarter));
}

LLVMValueRef uly_math_sin(uly_llvm *ir, LLVMValueRef x) { return sine_any(ir, x, 0); }
LLVMValueRef uly_math_cos(uly_llvm *ir, LLVMValueRef x) { return sine_any(ir, x, 1); }

// |x|^y with the sign and the exceptions of C's pow.
static LLVMValueRef power(uly_llvm *ir, LLVMValueRef x, LLVMValueRef y) {
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef one = uly_llvm_real(type, 1.0), nan = uly_llvm_real(type, (double)NAN);
  LLVMValueRef p = uly_math_exp(ir, mul(ir, y, uly_math_log(ir, uly_llvm_call1(ir, "llvm.fabs", x))));
  LLVMValueRef whole = LLVMBuildFCmp(ir->b, LLVMRealOEQ, uly_llvm_call1(ir, "llvm.floor", y), y, "");
  LLVMValueRef half = mul(ir, y, uly_llvm_real(type, 0.5));
  LLVMValueRef odd = LLVMBuildAnd(ir->b, whole, LLVMBuildFCmp(ir->b, LLVMRealUNE, uly_llvm_call1(ir, "llvm.floor", half), half, ""), "");
  p = LLVMBuildSelect(ir->b, odd, copy_sign(ir, p, x), p, "");
  LLVMValueRef finite_negative = LLVMBuildAnd(ir->b, uly_math_compare(ir, LLVMRealOLT, x, 0.0), uly_math_compare(ir, LLVMRealOGT, x, -(double)INFINITY), "");
  p = LLVMBuildSelect(ir->b, LLVMBuildAnd(ir->b, finite_negative, LLVMBuildNot(ir->b, whole, ""), ""), nan, p, "");
  LLVMValueRef minus_one = LLVMBuildAnd(ir->b, uly_math_compare(ir, LLVMRealOEQ, x, -1.0),
                                        uly_math_compare(ir, LLVMRealOEQ, uly_llvm_call1(ir, "llvm.fabs", y), (double)INFINITY), "");
  LLVMValueRef is_one = LLVMBuildOr(ir->b, uly_math_compare(ir, LLVMRealOEQ, x, 1.0), uly_math_compare(ir, LLVMRealOEQ, y, 0.0), "");
  return LLVMBuildSelect(ir->b, LLVMBuildOr(ir->b, is_one, minus_one, ""), one, p, "");
}

LLVMValueRef uly_math_pow(uly_llvm *ir, LLVMValueRef x, LLVMValueRef y) {
  uly_llvm_match(ir, &x, &y);
  return uly_llvm_is_wide(ir, x) ? power(ir, x, y) : narrowed(ir, power(ir, widened(ir, x), widened(ir, y)));
}
