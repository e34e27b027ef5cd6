// Building LLVM IR for hooks: what every emitter here needs of the LLVM C API. Values are scalars, or vectors of `lanes` elements; everything that
// takes a value works on both, so that what is the same for all lanes is computed once.
#ifndef ULY_CODEGEN_CPU_LLVM_BUILDER_H
#define ULY_CODEGEN_CPU_LLVM_BUILDER_H

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"

typedef struct uly_ir {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef b;
  LLVMValueRef function; // being built
  uly_arena *arena;
  int lanes;
  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr, none;
} uly_ir;

void uly_ir_init(uly_ir *ir, uly_arena *arena, LLVMModuleRef module, int lanes);
void uly_ir_finish(uly_ir *ir);

// Starts the body of |function| in a new block.
void uly_ir_enter(uly_ir *ir, LLVMValueRef function);
LLVMBasicBlockRef uly_ir_block(uly_ir *ir); // appended, not entered
void uly_ir_attribute(uly_ir *ir, LLVMValueRef function, const char *name);
LLVMValueRef uly_ir_param(uly_ir *ir, unsigned i);

bool uly_ir_is_vector(LLVMValueRef v);
LLVMTypeRef uly_ir_element(LLVMValueRef v); // its type, or its elements'
LLVMTypeRef uly_ir_vector_of(const uly_ir *ir, LLVMTypeRef element);
LLVMTypeRef uly_ir_like(const uly_ir *ir, LLVMValueRef v, LLVMTypeRef element); // |element|, or a vector of it where v is one
unsigned uly_ir_bytes(LLVMTypeRef element);
bool uly_ir_is_wide(const uly_ir *ir, LLVMValueRef v); // its elements are f64

// Constants of a scalar or vector type.
LLVMValueRef uly_ir_int(LLVMTypeRef type, int64_t value);
LLVMValueRef uly_ir_real(LLVMTypeRef type, double value);
LLVMValueRef uly_ir_iota(uly_ir *ir, LLVMTypeRef element); // 0, 1 … lanes − 1

LLVMValueRef uly_ir_splat(uly_ir *ir, LLVMValueRef v); // a scalar in every lane; a vector as it is
// Both vectors where one is.
void uly_ir_match(uly_ir *ir, LLVMValueRef *a, LLVMValueRef *b);

// |name| as in "llvm.fma", overloaded on |overload| where not NULL.
LLVMValueRef uly_ir_call(uly_ir *ir, const char *name, LLVMTypeRef overload, LLVMValueRef *args, unsigned n_args);
LLVMValueRef uly_ir_call1(uly_ir *ir, const char *name, LLVMValueRef a); // overloaded on a's type
LLVMValueRef uly_ir_fma(uly_ir *ir, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);
LLVMValueRef uly_ir_fma_const(uly_ir *ir, LLVMValueRef a, double b, LLVMValueRef c); // a · b + c
// Σ coefficients[i] · x^i by Horner's rule.
LLVMValueRef uly_ir_polynomial(uly_ir *ir, LLVMValueRef x, const double *coefficients, int n);

// A load of memory that no kernel writes while it runs: its place in the call, captured tensors.
LLVMValueRef uly_ir_load_invariant(uly_ir *ir, LLVMTypeRef type, LLVMValueRef pointer);
LLVMValueRef uly_ir_offset(uly_ir *ir, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef index); // &pointer[index]

#endif
