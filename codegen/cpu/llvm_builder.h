// Building LLVM IR for hooks: what every emitter here needs of the LLVM C API. Values are scalars, or vectors of `lanes` elements; everything that
// takes a value works on both, so that what is the same for all lanes is computed once.
#ifndef ULY_CODEGEN_CPU_LLVM_BUILDER_H
#define ULY_CODEGEN_CPU_LLVM_BUILDER_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"

typedef struct uly_llvm {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef b;
  LLVMValueRef function; // being built
  uly_arena *arena;
  int lanes;
  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr, none;
} uly_llvm;

void uly_llvm_init(uly_llvm *ir, uly_arena *arena, LLVMModuleRef module, int lanes);
void uly_llvm_finish(uly_llvm *ir);

// Starts the body of |function| in a new block.
void uly_llvm_enter(uly_llvm *ir, LLVMValueRef function);
LLVMBasicBlockRef uly_llvm_block(uly_llvm *ir); // appended, not entered
void uly_llvm_attribute(uly_llvm *ir, LLVMValueRef function, const char *name);
LLVMValueRef uly_llvm_param(uly_llvm *ir, unsigned i);

bool uly_llvm_is_vector(LLVMValueRef v);
LLVMTypeRef uly_llvm_element(LLVMValueRef v); // its type, or its elements'
LLVMTypeRef uly_llvm_vector_of(const uly_llvm *ir, LLVMTypeRef element);
LLVMTypeRef uly_llvm_like(const uly_llvm *ir, LLVMValueRef v, LLVMTypeRef element); // |element|, or a vector of it where v is one
unsigned uly_llvm_bytes(LLVMTypeRef element);
bool uly_llvm_is_wide(const uly_llvm *ir, LLVMValueRef v); // its elements are f64

// Constants of a scalar or vector type.
LLVMValueRef uly_llvm_int(LLVMTypeRef type, int64_t value);
LLVMValueRef uly_llvm_real(LLVMTypeRef type, double value);
LLVMValueRef uly_llvm_iota(uly_llvm *ir, LLVMTypeRef element); // 0, 1 … lanes − 1

LLVMValueRef uly_llvm_splat(uly_llvm *ir, LLVMValueRef v); // a scalar in every lane; a vector as it is
// Both vectors where one is.
void uly_llvm_match(uly_llvm *ir, LLVMValueRef *a, LLVMValueRef *b);

// |name| as in "llvm.fma", overloaded on |overload| where not NULL.
LLVMValueRef uly_llvm_call(uly_llvm *ir, const char *name, LLVMTypeRef overload, LLVMValueRef *args, unsigned n_args);
LLVMValueRef uly_llvm_call1(uly_llvm *ir, const char *name, LLVMValueRef a); // overloaded on a's type
LLVMValueRef uly_llvm_fma(uly_llvm *ir, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);
LLVMValueRef uly_llvm_fma_const(uly_llvm *ir, LLVMValueRef a, double b, LLVMValueRef c); // a · b + c
// Σ coefficients[i] · x^i by Horner's rule.
LLVMValueRef uly_llvm_polynomial(uly_llvm *ir, LLVMValueRef x, const double *coefficients, int n);

// A load of memory that no kernel writes while it runs: its place in the call, captured tensors.
LLVMValueRef uly_llvm_load_invariant(uly_llvm *ir, LLVMTypeRef type, LLVMValueRef pointer);
LLVMValueRef uly_llvm_offset(uly_llvm *ir, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef index); // &pointer[index]

#endif
