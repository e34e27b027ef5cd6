// Bodies for the hooks that a template declares (templates/template.h), from a kernel's description: one LLVM function each, always inlined.
#ifndef ULY_CODEGEN_CPU_HOOKS_H
#define ULY_CODEGEN_CPU_HOOKS_H

#include "codegen/cpu/llvm_builder.h"
#include "passes/program.h"

// Defines every hook that ir->module declares. Hooks that the kernel does not have get bodies that are never reached.
void uly_hooks_define(uly_llvm *ir, const uly_kernel_desc *desc);

// ---- for ranges.c

// Where an expression of an attention is evaluated: query q and those after it, key k. |valid|: lanes that count, NULL: all. A captured tensor's index out of
// range in one of them is ULY_FAULT_CAPTURE_RANGE and gives 0.
typedef struct uly_attention_site {
  const uly_attention_desc *desc;
  LLVMValueRef call, b, h, q, k, s, valid;
  LLVMValueRef queries; // q in each lane
} uly_attention_site;
// A leaf of a mask or score; context: the site.
LLVMValueRef uly_hooks_attention_leaf(void *site, uly_llvm *ir, const uly_expr_node *node, const LLVMValueRef *args);

// ranges.c: classifies a tile, in the body of uly_hook_attention_range.
void uly_ranges_define(uly_llvm *ir, const uly_attention_desc *desc);

#endif
