// Scalar expressions (frontend/expr.h) as LLVM IR: a node's value is a scalar where it is the same for all lanes, else a vector. bool is i1, int i64, float f32, or
// f64 where the expression is wide. No traps: a division of ints by zero gives 0, a float beyond 64 bits becomes the nearest int.
#ifndef ULY_CODEGEN_CPU_EXPR_TO_VECTOR_H
#define ULY_CODEGEN_CPU_EXPR_TO_VECTOR_H

#include "codegen/cpu/llvm_builder.h"
#include "frontend/expr.h"

// Gives the leaves: coordinates and sizes as i64, operands and loads in the node's type (floats f32 or f64). |args|: a LOAD's indices, i64.
typedef struct uly_expr_leaves {
  void *context;
  LLVMValueRef (*leaf)(void *context, uly_llvm *ir, const uly_expr_node *node, const LLVMValueRef *args);
} uly_expr_leaves;

LLVMValueRef uly_expr_to_vector(uly_llvm *ir, const uly_expr *expr, const uly_expr_leaves *leaves);
// One node, from |values| of the nodes before it.
LLVMValueRef uly_expr_node_to_vector(uly_llvm *ir, const uly_expr *expr, int32_t node, const LLVMValueRef *values, const uly_expr_leaves *leaves);

// Floor division and remainder of i64 values, as the language has them.
LLVMValueRef uly_expr_floor_div(uly_llvm *ir, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef uly_expr_floor_mod(uly_llvm *ir, LLVMValueRef a, LLVMValueRef b);

#endif
