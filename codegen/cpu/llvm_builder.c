#include "codegen/cpu/llvm_builder.h"

#include <string.h>

#include "runtime/base/status.h"

void uly_llvm_init(uly_llvm *ir, uly_arena *arena, LLVMModuleRef module, int lanes) {
  LLVMContextRef c = LLVMGetModuleContext(module);
  *ir = (uly_llvm){.context = c, .module = module, .b = LLVMCreateBuilderInContext(c), .arena = arena, .lanes = lanes};
  ir->i1 = LLVMInt1TypeInContext(c), ir->i8 = LLVMInt8TypeInContext(c), ir->i16 = LLVMInt16TypeInContext(c);
  ir->i32 = LLVMInt32TypeInContext(c), ir->i64 = LLVMInt64TypeInContext(c);
  ir->f16 = LLVMHalfTypeInContext(c), ir->f32 = LLVMFloatTypeInContext(c), ir->f64 = LLVMDoubleTypeInContext(c);
  ir->ptr = LLVMPointerTypeInContext(c, 0), ir->none = LLVMVoidTypeInContext(c);
}

void uly_llvm_finish(uly_llvm *ir) { LLVMDisposeBuilder(ir->b); }

LLVMBasicBlockRef uly_llvm_block(uly_llvm *ir) { return LLVMAppendBasicBlockInContext(ir->context, ir->function, ""); }

void uly_llvm_enter(uly_llvm *ir, LLVMValueRef function) {
  ir->function = function;
  LLVMPositionBuilderAtEnd(ir->b, uly_llvm_block(ir));
}

void uly_llvm_attribute(uly_llvm *ir, LLVMValueRef function, const char *name) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  ULY_ASSERT(kind != 0);
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(ir->context, kind, 0));
}

LLVMValueRef uly_llvm_param(uly_llvm *ir, unsigned i) { return LLVMGetParam(ir->function, i); }

bool uly_llvm_is_vector(LLVMValueRef v) { return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind; }

static LLVMTypeRef element_of(LLVMTypeRef type) { return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type; }

LLVMTypeRef uly_llvm_element(LLVMValueRef v) { return element_of(LLVMTypeOf(v)); }

LLVMTypeRef uly_llvm_vector_of(const uly_llvm *ir, LLVMTypeRef element) { return LLVMVectorType(element, (unsigned)ir->lanes); }

LLVMTypeRef uly_llvm_like(const uly_llvm *ir, LLVMValueRef v, LLVMTypeRef element) { return uly_llvm_is_vector(v) ? uly_llvm_vector_of(ir, element) : element; }

bool uly_llvm_is_wide(const uly_llvm *ir, LLVMValueRef v) { return uly_llvm_element(v) == ir->f64; }

enum { MAX_LANES = 64 };

static LLVMValueRef fill(LLVMTypeRef type, LLVMValueRef scalar) {
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return scalar;
  LLVMValueRef lanes[MAX_LANES];
  unsigned n = LLVMGetVectorSize(type);
  ULY_ASSERT(n <= MAX_LANES);
  for (unsigned i = 0; i < n; i++) lanes[i] = scalar;
  return LLVMConstVector(lanes, n);
}

LLVMValueRef uly_llvm_int(LLVMTypeRef type, int64_t value) { return fill(type, LLVMConstInt(element_of(type), (unsigned long long)value, true)); }

LLVMValueRef uly_llvm_real(LLVMTypeRef type, double value) { return fill(type, LLVMConstReal(element_of(type), value)); }

LLVMValueRef uly_llvm_iota(uly_llvm *ir, LLVMTypeRef element) {
  LLVMValueRef lanes[MAX_LANES];
  for (int i = 0; i < ir->lanes; i++) lanes[i] = LLVMConstInt(element, (unsigned long long)i, true);
  return LLVMConstVector(lanes, (unsigned)ir->lanes);
}

LLVMValueRef uly_llvm_splat(uly_llvm *ir, LLVMValueRef v) {
  if (uly_llvm_is_vector(v)) return v;
  if (LLVMIsConstant(v)) return fill(uly_llvm_vector_of(ir, LLVMTypeOf(v)), v);
  LLVMTypeRef type = uly_llvm_vector_of(ir, LLVMTypeOf(v));
  LLVMValueRef one = LLVMBuildInsertElement(ir->b, LLVMGetPoison(type), v, LLVMConstInt(ir->i32, 0, false), "");
  return LLVMBuildShuffleVector(ir->b, one, LLVMGetPoison(type), LLVMConstNull(uly_llvm_vector_of(ir, ir->i32)), "");
}

void uly_llvm_match(uly_llvm *ir, LLVMValueRef *a, LLVMValueRef *b) {
  if (uly_llvm_is_vector(*a) == uly_llvm_is_vector(*b)) return;
  *a = uly_llvm_splat(ir, *a);
  *b = uly_llvm_splat(ir, *b);
}

LLVMValueRef uly_llvm_call(uly_llvm *ir, const char *name, LLVMTypeRef overload, LLVMValueRef *args, unsigned n_args) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  ULY_ASSERT(id != 0);
  LLVMTypeRef *types = overload ? &overload : NULL;
  size_t n_types = overload != NULL;
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(ir->module, id, types, n_types);
  return LLVMBuildCall2(ir->b, LLVMIntrinsicGetType(ir->context, id, types, n_types), f, args, n_args, "");
}

LLVMValueRef uly_llvm_call1(uly_llvm *ir, const char *name, LLVMValueRef a) { return uly_llvm_call(ir, name, LLVMTypeOf(a), &a, 1); }

LLVMValueRef uly_llvm_fma(uly_llvm *ir, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  LLVMValueRef args[] = {a, b, c};
  return uly_llvm_call(ir, "llvm.fma", LLVMTypeOf(a), args, 3);
}

LLVMValueRef uly_llvm_fma_const(uly_llvm *ir, LLVMValueRef a, double b, LLVMValueRef c) { return uly_llvm_fma(ir, a, uly_llvm_real(LLVMTypeOf(a), b), c); }

LLVMValueRef uly_llvm_polynomial(uly_llvm *ir, LLVMValueRef x, const double *coefficients, int n) {
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef sum = uly_llvm_real(type, coefficients[n - 1]);
  for (int i = n - 2; i >= 0; i--) sum = uly_llvm_fma(ir, sum, x, uly_llvm_real(type, coefficients[i]));
  return sum;
}

unsigned uly_llvm_bytes(LLVMTypeRef element) {
  switch (LLVMGetTypeKind(element)) {
  case LLVMHalfTypeKind: return 2;
  case LLVMFloatTypeKind: return 4;
  case LLVMDoubleTypeKind:
  case LLVMPointerTypeKind: return 8;
  default: return LLVMGetIntTypeWidth(element) / 8;
  }
}

LLVMValueRef uly_llvm_load_invariant(uly_llvm *ir, LLVMTypeRef type, LLVMValueRef pointer) {
  LLVMValueRef load = LLVMBuildLoad2(ir->b, type, pointer, "");
  LLVMMetadataRef node = LLVMMDNodeInContext2(ir->context, NULL, 0);
  LLVMSetMetadata(load, LLVMGetMDKindIDInContext(ir->context, "invariant.load", 14), LLVMMetadataAsValue(ir->context, node));
  LLVMTypeRef element = element_of(type);
  if (element != type) LLVMSetAlignment(load, uly_llvm_bytes(element));
  return load;
}

LLVMValueRef uly_llvm_offset(uly_llvm *ir, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef index) {
  return LLVMBuildGEP2(ir->b, element, pointer, &index, 1, "");
}
