// Elementary functions as LLVM IR over scalars and vectors of f32 or f64: polynomials, no library calls. A lane's result depends on its argument alone, so
// it has the same bits in every lane and in a scalar.
//
// Errors against the exact value, measured by tests/unit/expr_to_vector_test.c: f32 within 2.5 ulp; f64 within 1e-15, relative, for sin and cos absolute; pow of f64 within
// 2e-14, since the error of its logarithm is multiplied. sin and cos reduce arguments up to 2^50 exactly and give NaN beyond. Denormal f32 arguments and
// results count as zero.
#ifndef ULY_CODEGEN_CPU_VECTOR_MATH_H
#define ULY_CODEGEN_CPU_VECTOR_MATH_H

#include "codegen/cpu/llvm_builder.h"

LLVMValueRef uly_math_exp(uly_llvm *ir, LLVMValueRef x);
LLVMValueRef uly_math_exp2(uly_llvm *ir, LLVMValueRef x);
LLVMValueRef uly_math_log(uly_llvm *ir, LLVMValueRef x);
LLVMValueRef uly_math_log2(uly_llvm *ir, LLVMValueRef x);
LLVMValueRef uly_math_sin(uly_llvm *ir, LLVMValueRef x);
LLVMValueRef uly_math_cos(uly_llvm *ir, LLVMValueRef x);
LLVMValueRef uly_math_tanh(uly_llvm *ir, LLVMValueRef x);
LLVMValueRef uly_math_sigmoid(uly_llvm *ir, LLVMValueRef x);
LLVMValueRef uly_math_erf(uly_llvm *ir, LLVMValueRef x);
LLVMValueRef uly_math_pow(uly_llvm *ir, LLVMValueRef x, LLVMValueRef y); // as C's pow, f32 formed in f64

// Shared by the f32 and f64 halves.
LLVMValueRef uly_math_compare(uly_llvm *ir, LLVMRealPredicate predicate, LLVMValueRef x, double c);
LLVMValueRef uly_math_round(uly_llvm *ir, LLVMValueRef x,
                            LLVMValueRef *out_int); // to the nearest whole number, also as an int of the same width; |x| < 2^22 or 2^51

#endif
