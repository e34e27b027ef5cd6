#include "codegen/cpu/memory.h"

#include "runtime/abi.h"
#include "runtime/base/status.h"

static LLVMTypeRef stored_type(const uly_llvm *ir, uly_dtype dtype) {
  switch (dtype) {
  case ULY_F32: return ir->f32;
  case ULY_F64: return ir->f64;
  case ULY_F16:
  case ULY_BF16: return ir->i16;
  case ULY_I32: return ir->i32;
  case ULY_I64: return ir->i64;
  case ULY_U8:
  case ULY_BOOL: return ir->i8;
  case ULY_N_DTYPES: break;
  }
  ULY_ASSERT(false && "a dtype");
  return NULL;
}

// A stored element as a value.
static LLVMValueRef decode(uly_llvm *ir, uly_dtype dtype, LLVMValueRef v) {
  LLVMTypeRef f32 = uly_llvm_like(ir, v, ir->f32), i32 = uly_llvm_like(ir, v, ir->i32), i64 = uly_llvm_like(ir, v, ir->i64);
  switch (dtype) {
  case ULY_F16: return LLVMBuildFPExt(ir->b, LLVMBuildBitCast(ir->b, v, uly_llvm_like(ir, v, ir->f16), ""), f32, "");
  case ULY_BF16: return LLVMBuildBitCast(ir->b, LLVMBuildShl(ir->b, LLVMBuildZExt(ir->b, v, i32, ""), uly_llvm_int(i32, 16), ""), f32, "");
  case ULY_I32: return LLVMBuildSExt(ir->b, v, i64, "");
  case ULY_U8: return LLVMBuildZExt(ir->b, v, i64, "");
  case ULY_BOOL: return LLVMBuildICmp(ir->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), "");
  default: return v;
  }
}

static LLVMValueRef to_f32(uly_llvm *ir, LLVMValueRef v) {
  LLVMTypeRef from = uly_llvm_element(v), to = uly_llvm_like(ir, v, ir->f32);
  if (from == ir->f32) return v;
  if (from == ir->f64) return LLVMBuildFPTrunc(ir->b, v, to, "");
  return from == ir->i1 ? LLVMBuildUIToFP(ir->b, v, to, "") : LLVMBuildSIToFP(ir->b, v, to, "");
}

// To nearest even; NaN stays one.
static LLVMValueRef to_bf16(uly_llvm *ir, LLVMValueRef v) {
  LLVMTypeRef i32 = uly_llvm_like(ir, v, ir->i32), i16 = uly_llvm_like(ir, v, ir->i16);
  LLVMValueRef bits = LLVMBuildBitCast(ir->b, v, i32, ""), shift = uly_llvm_int(i32, 16);
  LLVMValueRef odd = LLVMBuildAnd(ir->b, LLVMBuildLShr(ir->b, bits, shift, ""), uly_llvm_int(i32, 1), "");
  LLVMValueRef rounded = LLVMBuildAdd(ir->b, LLVMBuildAdd(ir->b, bits, uly_llvm_int(i32, 0x7fff), ""), odd, "");
  LLVMValueRef quiet = LLVMBuildOr(ir->b, bits, uly_llvm_int(i32, 0x400000), "");
  bits = LLVMBuildSelect(ir->b, LLVMBuildFCmp(ir->b, LLVMRealUNO, v, v, ""), quiet, rounded, "");
  return LLVMBuildTrunc(ir->b, LLVMBuildLShr(ir->b, bits, shift, ""), i16, "");
}

static LLVMValueRef to_int(uly_llvm *ir, uly_dtype dtype, LLVMValueRef v) {
  LLVMTypeRef from = uly_llvm_element(v), to = uly_llvm_like(ir, v, stored_type(ir, dtype));
  ULY_ASSERT(from == ir->i1 || from == ir->i64); // conversions of floats are written in expressions
  if (from == ir->i1) return LLVMBuildZExt(ir->b, v, to, "");
  if (dtype == ULY_BOOL) return LLVMBuildZExt(ir->b, LLVMBuildICmp(ir->b, LLVMIntNE, v, LLVMConstNull(LLVMTypeOf(v)), ""), to, "");
  return dtype == ULY_I64 ? v : LLVMBuildTrunc(ir->b, v, to, "");
}

static LLVMValueRef encode(uly_llvm *ir, uly_dtype dtype, LLVMValueRef v) {
  switch (dtype) {
  case ULY_F32: return to_f32(ir, v);
  case ULY_BF16: return to_bf16(ir, to_f32(ir, v));
  case ULY_F16: return LLVMBuildBitCast(ir->b, LLVMBuildFPTrunc(ir->b, to_f32(ir, v), uly_llvm_like(ir, v, ir->f16), ""), uly_llvm_like(ir, v, ir->i16), "");
  case ULY_F64: return uly_llvm_element(v) == ir->f64 ? v : LLVMBuildFPExt(ir->b, to_f32(ir, v), uly_llvm_like(ir, v, ir->f64), "");
  default: return to_int(ir, dtype, v);
  }
}

LLVMValueRef uly_memory_stored(uly_llvm *ir, uly_dtype dtype, LLVMValueRef value) { return decode(ir, dtype, encode(ir, dtype, value)); }

// An intrinsic on memory: overloaded on the value's and the pointers' types; the pointer is argument |pointer|.
static LLVMValueRef masked(uly_llvm *ir, const char *name, LLVMTypeRef value, LLVMValueRef *args, unsigned n_args, unsigned pointer, unsigned align) {
  LLVMTypeRef types[] = {value, LLVMTypeOf(args[pointer])};
  unsigned id = LLVMLookupIntrinsicID(name, __builtin_strlen(name));
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(ir->module, id, types, 2);
  LLVMValueRef call = LLVMBuildCall2(ir->b, LLVMIntrinsicGetType(ir->context, id, types, 2), f, args, n_args, "");
  unsigned kind = LLVMGetEnumAttributeKindForName("align", 5);
  LLVMAddCallSiteAttribute(call, pointer + 1, LLVMCreateEnumAttribute(ir->context, kind, align));
  return call;
}

LLVMValueRef uly_memory_lanes(uly_llvm *ir, LLVMValueRef n) {
  LLVMValueRef limit = uly_llvm_splat(ir, LLVMBuildTrunc(ir->b, n, ir->i32, ""));
  return LLVMBuildICmp(ir->b, LLVMIntULT, uly_llvm_iota(ir, ir->i32), limit, "");
}

LLVMValueRef uly_memory_load(uly_llvm *ir, uly_location place, LLVMValueRef lanes) {
  LLVMTypeRef element = stored_type(ir, place.dtype), vector = uly_llvm_vector_of(ir, element);
  unsigned align = uly_llvm_bytes(element);
  LLVMValueRef v;
  if (!place.index) {
    LLVMValueRef args[] = {place.pointer, lanes, LLVMConstNull(vector)};
    v = masked(ir, "llvm.masked.load", vector, args, 3, 0, align);
  } else if (uly_llvm_is_vector(place.index)) {
    LLVMValueRef args[] = {uly_llvm_offset(ir, element, place.pointer, place.index), lanes, LLVMConstNull(vector)};
    v = masked(ir, "llvm.masked.gather", vector, args, 3, 0, align);
  } else {
    v = LLVMBuildLoad2(ir->b, element, uly_llvm_offset(ir, element, place.pointer, place.index), "");
    LLVMSetAlignment(v, align);
  }
  return decode(ir, place.dtype, v);
}

static void store_first(uly_llvm *ir, LLVMTypeRef element, LLVMValueRef pointer, LLVMValueRef value) {
  if (uly_llvm_is_vector(value)) value = LLVMBuildExtractElement(ir->b, value, LLVMConstInt(ir->i32, 0, false), "");
  LLVMSetAlignment(LLVMBuildStore(ir->b, value, pointer), uly_llvm_bytes(element));
}

void uly_memory_store(uly_llvm *ir, uly_location place, LLVMValueRef n, LLVMValueRef value) {
  LLVMTypeRef element = stored_type(ir, place.dtype), vector = uly_llvm_vector_of(ir, element);
  value = encode(ir, place.dtype, value);
  LLVMValueRef pointer = place.index ? uly_llvm_offset(ir, element, place.pointer, place.index) : place.pointer;
  if (place.index && !uly_llvm_is_vector(place.index)) {
    store_first(ir, element, pointer, value);
    return;
  }
  // LLVM 22 writes four bytes where a mask is known to have one lane and the value is an i32 cut to fewer bits.
  bool cut = !place.index && uly_llvm_bytes(element) < 4;
  LLVMBasicBlockRef done = NULL;
  if (cut) {
    LLVMBasicBlockRef one = uly_llvm_block(ir), more = uly_llvm_block(ir);
    done = uly_llvm_block(ir);
    LLVMBuildCondBr(ir->b, LLVMBuildICmp(ir->b, LLVMIntEQ, n, LLVMConstInt(ir->i64, 1, false), ""), one, more);
    LLVMPositionBuilderAtEnd(ir->b, one);
    store_first(ir, element, pointer, value);
    LLVMBuildBr(ir->b, done);
    LLVMPositionBuilderAtEnd(ir->b, more);
  }
  LLVMValueRef args[] = {uly_llvm_splat(ir, value), pointer, uly_memory_lanes(ir, n)};
  masked(ir, place.index ? "llvm.masked.scatter" : "llvm.masked.store", vector, args, 3, 1, uly_llvm_bytes(element));
  if (cut) {
    LLVMBuildBr(ir->b, done);
    LLVMPositionBuilderAtEnd(ir->b, done);
  }
}

static LLVMValueRef field(uly_llvm *ir, LLVMValueRef pointer, size_t offset, LLVMTypeRef type) {
  return uly_llvm_load_invariant(ir, type, uly_llvm_offset(ir, ir->i8, pointer, LLVMConstInt(ir->i64, offset, false)));
}

LLVMValueRef uly_memory_pointer(uly_llvm *ir, LLVMValueRef call, int32_t op) {
  LLVMValueRef args = field(ir, call, offsetof(uly_call, op), ir->ptr);
  LLVMValueRef pointers = field(ir, args, (size_t)op * sizeof(uly_arg) + offsetof(uly_arg, p), ir->ptr);
  return field(ir, pointers, 0, ir->ptr);
}

LLVMValueRef uly_memory_value(uly_llvm *ir, LLVMValueRef call, int32_t slot) {
  LLVMValueRef numbers = field(ir, field(ir, call, offsetof(uly_call, val), ir->ptr), (size_t)slot * sizeof(int64_t *), ir->ptr);
  return field(ir, numbers, 0, ir->i64);
}
