// Typed loads and stores of hooks: elements of any dtype as the values of expr_to_vector.h (f32, i64 or i1), contiguous, the same for all lanes, or a stride apart;
// of |n| valid lanes. Where n becomes the number of lanes, a constant, the masks fold away.
#ifndef ULY_CODEGEN_CPU_MEMORY_H
#define ULY_CODEGEN_CPU_MEMORY_H

#include "codegen/cpu/llvm_builder.h"
#include "runtime/base/dtype.h"

// The lanes' elements: pointer[index], where index is a scalar for one element that all lanes share, or a vector; NULL: lane l at pointer[l].
typedef struct uly_location {
  uly_dtype dtype;
  LLVMValueRef pointer, index;
} uly_location;

LLVMValueRef uly_memory_load(uly_llvm *ir, uly_location place, LLVMValueRef lanes);          // |lanes|: vector of i1; others are 0
void uly_memory_store(uly_llvm *ir, uly_location place, LLVMValueRef n, LLVMValueRef value); // lanes below |n|; a place that lanes share takes lane 0
LLVMValueRef uly_memory_lanes(uly_llvm *ir, LLVMValueRef n);                                 // lanes below n
// What is read again where |value| was stored.
LLVMValueRef uly_memory_stored(uly_llvm *ir, uly_dtype dtype, LLVMValueRef value);

// What a call holds.
LLVMValueRef uly_memory_pointer(uly_llvm *ir, LLVMValueRef call, int32_t op); // its first pointer
LLVMValueRef uly_memory_value(uly_llvm *ir, LLVMValueRef call, int32_t slot); // its first number

#endif
