#include "codegen/cpu/expr_to_vector.h"

#include "codegen/cpu/memory.h"
#include "codegen/cpu/vector_math.h"

// An expression with more operations than this that are long code calls functions for them: code, and the time to make it, grow with what is written.
enum { MOST_INLINE = 24 };

typedef struct emitter {
  uly_llvm *ir;
  const uly_expr *expr;
  LLVMTypeRef real; // of float nodes
  bool calls;
} emitter;

static LLVMValueRef to_real(const emitter *e, LLVMValueRef v) {
  uly_llvm *ir = e->ir;
  LLVMTypeRef from = uly_llvm_element(v), to = uly_llvm_like(ir, v, e->real);
  if (from == e->real) return v;
  if (from == ir->f32) return LLVMBuildFPExt(ir->b, v, to, "");
  if (from == ir->f64) return LLVMBuildFPTrunc(ir->b, v, to, "");
  if (from == ir->i1) return LLVMBuildUIToFP(ir->b, v, to, "");
  return LLVMBuildSIToFP(ir->b, v, to, "");
}

static LLVMValueRef to_int(uly_llvm *ir, LLVMValueRef v) {
  LLVMTypeRef from = uly_llvm_element(v), to = uly_llvm_like(ir, v, ir->i64);
  if (from == ir->i1) return LLVMBuildZExt(ir->b, v, to, "");
  if (from == ir->i64) return v;
  LLVMTypeRef types[] = {to, LLVMTypeOf(v)};
  unsigned id = LLVMLookupIntrinsicID("llvm.fptosi.sat", 15);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(ir->module, id, types, 2);
  return LLVMBuildCall2(ir->b, LLVMIntrinsicGetType(ir->context, id, types, 2), f, &v, 1, "");
}

static LLVMValueRef compare_ints(uly_llvm *ir, LLVMIntPredicate predicate, LLVMValueRef a, int64_t b) {
  return LLVMBuildICmp(ir->b, predicate, a, uly_llvm_int(LLVMTypeOf(a), b), "");
}

// Constants are scalars until they meet a vector, which division leaves to itself.
static bool is_constant(LLVMValueRef v, int64_t *out_value) {
  if (!LLVMIsAConstantInt(v)) return false;
  *out_value = LLVMConstIntGetSExtValue(v);
  return true;
}

static int power_of_two(int64_t d) { return d > 0 && (d & (d - 1)) == 0 ? __builtin_ctzll((unsigned long long)d) : -1; }

// The quotient rounded down. Without constants: divisors 0 and −1 would trap, so 1 stands in for them.
LLVMValueRef uly_expr_floor_div(uly_llvm *ir, LLVMValueRef a, LLVMValueRef b) {
  int64_t d;
  bool constant = is_constant(b, &d);
  uly_llvm_match(ir, &a, &b);
  LLVMTypeRef type = LLVMTypeOf(a);
  if (constant && power_of_two(d) >= 0) return LLVMBuildAShr(ir->b, a, uly_llvm_int(type, power_of_two(d)), "");
  if (constant && d > 0) { // a − (d − 1) rounds down where a is negative
    LLVMValueRef low = LLVMBuildAnd(ir->b, LLVMBuildAShr(ir->b, a, uly_llvm_int(type, 63), ""), uly_llvm_int(type, d - 1), "");
    return LLVMBuildSDiv(ir->b, LLVMBuildSub(ir->b, a, low, ""), b, "");
  }
  LLVMValueRef zero = LLVMConstNull(type), one = uly_llvm_int(type, 1);
  LLVMValueRef special = LLVMBuildOr(ir->b, compare_ints(ir, LLVMIntEQ, b, 0), compare_ints(ir, LLVMIntEQ, b, -1), "");
  LLVMValueRef divisor = LLVMBuildSelect(ir->b, special, one, b, "");
  LLVMValueRef q = LLVMBuildSDiv(ir->b, a, divisor, ""), r = LLVMBuildSub(ir->b, a, LLVMBuildMul(ir->b, q, divisor, ""), "");
  LLVMValueRef signs = LLVMBuildXor(ir->b, r, divisor, "");
  LLVMValueRef round = LLVMBuildAnd(ir->b, compare_ints(ir, LLVMIntNE, r, 0), compare_ints(ir, LLVMIntSLT, signs, 0), "");
  q = LLVMBuildAdd(ir->b, q, LLVMBuildSExt(ir->b, round, type, ""), "");
  LLVMValueRef edge = LLVMBuildSelect(ir->b, compare_ints(ir, LLVMIntEQ, b, 0), zero, LLVMBuildNeg(ir->b, a, ""), "");
  return LLVMBuildSelect(ir->b, special, edge, q, "");
}

LLVMValueRef uly_expr_floor_mod(uly_llvm *ir, LLVMValueRef a, LLVMValueRef b) {
  int64_t d;
  bool constant = is_constant(b, &d);
  LLVMValueRef quotient = uly_expr_floor_div(ir, a, b);
  uly_llvm_match(ir, &a, &b);
  LLVMTypeRef type = LLVMTypeOf(a);
  if (constant && power_of_two(d) >= 0) return LLVMBuildAnd(ir->b, a, uly_llvm_int(type, d - 1), "");
  LLVMValueRef r = LLVMBuildSub(ir->b, a, LLVMBuildMul(ir->b, quotient, b, ""), "");
  return constant && d != 0 ? r : LLVMBuildSelect(ir->b, compare_ints(ir, LLVMIntEQ, b, 0), LLVMConstNull(type), r, "");
}

// mix(x) of uly_scalar_hash, on i32.
static LLVMValueRef mix(uly_llvm *ir, LLVMValueRef x) {
  static const struct {
    int shift;
    uint32_t factor;
  } rounds[] = {{16, 0x7feb352du}, {15, 0x846ca68bu}};
  LLVMTypeRef type = LLVMTypeOf(x);
  for (int i = 0; i < 2; i++) {
    x = LLVMBuildXor(ir->b, x, LLVMBuildLShr(ir->b, x, uly_llvm_int(type, rounds[i].shift), ""), "");
    x = LLVMBuildMul(ir->b, x, uly_llvm_int(type, (int32_t)rounds[i].factor), "");
  }
  return LLVMBuildXor(ir->b, x, LLVMBuildLShr(ir->b, x, uly_llvm_int(type, 16), ""), "");
}

static LLVMValueRef hash(uly_llvm *ir, LLVMValueRef a, LLVMValueRef b) {
  LLVMTypeRef half = uly_llvm_like(ir, a, ir->i32);
  LLVMValueRef up = uly_llvm_int(LLVMTypeOf(a), 32);
  LLVMValueRef x = mix(ir, LLVMBuildAdd(ir->b, LLVMBuildTrunc(ir->b, a, half, ""), uly_llvm_int(half, (int32_t)0x9e3779b9u), ""));
  x = mix(ir, LLVMBuildXor(ir->b, x, LLVMBuildTrunc(ir->b, LLVMBuildLShr(ir->b, a, up, ""), half, ""), ""));
  x = mix(ir, LLVMBuildAdd(ir->b, x, LLVMBuildTrunc(ir->b, b, half, ""), ""));
  x = mix(ir, LLVMBuildXor(ir->b, x, LLVMBuildTrunc(ir->b, LLVMBuildLShr(ir->b, b, up, ""), half, ""), ""));
  return LLVMBuildZExt(ir->b, x, LLVMTypeOf(a), "");
}

// a ** b of ints, b < 0 gives 0: squarings over the exponent's six low bits are all that fits 64 bits unless |a| ≤ 1.
static LLVMValueRef int_power(uly_llvm *ir, LLVMValueRef a, LLVMValueRef b) {
  LLVMTypeRef type = LLVMTypeOf(a);
  LLVMValueRef result = uly_llvm_int(type, 1), square = a;
  LLVMValueRef odd = LLVMBuildAnd(ir->b, b, uly_llvm_int(type, 1), ""), large = compare_ints(ir, LLVMIntSGT, b, 63);
  b = LLVMBuildSelect(ir->b, large, LLVMBuildOr(ir->b, odd, uly_llvm_int(type, 62), ""), b, "");
  for (int bit = 0; bit < 6; bit++) {
    LLVMValueRef taken = compare_ints(ir, LLVMIntNE, LLVMBuildAnd(ir->b, b, uly_llvm_int(type, 1 << bit), ""), 0);
    result = LLVMBuildSelect(ir->b, taken, LLVMBuildMul(ir->b, result, square, ""), result, "");
    square = LLVMBuildMul(ir->b, square, square, "");
  }
  return LLVMBuildSelect(ir->b, compare_ints(ir, LLVMIntSLT, b, 0), LLVMConstNull(type), result, "");
}

static LLVMValueRef emit_int(uly_llvm *ir, uly_scalar op, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef smaller;
  switch (op) {
  case ULY_SC_NEG: return LLVMBuildNeg(ir->b, a, "");
  case ULY_SC_ADD: return LLVMBuildAdd(ir->b, a, b, "");
  case ULY_SC_SUB: return LLVMBuildSub(ir->b, a, b, "");
  case ULY_SC_MUL: return LLVMBuildMul(ir->b, a, b, "");
  case ULY_SC_FDIV: return uly_expr_floor_div(ir, a, b);
  case ULY_SC_MOD: return uly_expr_floor_mod(ir, a, b);
  case ULY_SC_POW: return int_power(ir, a, b);
  case ULY_SC_HASH: return hash(ir, a, b);
  case ULY_SC_ABS: return LLVMBuildSelect(ir->b, compare_ints(ir, LLVMIntSLT, a, 0), LLVMBuildNeg(ir->b, a, ""), a, "");
  case ULY_SC_FLOOR:
  case ULY_SC_CEIL:
  case ULY_SC_INT: return a;
  case ULY_SC_MIN:
  case ULY_SC_MAX:
    smaller = LLVMBuildICmp(ir->b, LLVMIntSLT, a, b, "");
    return LLVMBuildSelect(ir->b, smaller, op == ULY_SC_MIN ? a : b, op == ULY_SC_MIN ? b : a, "");
  default: ULY_ASSERT(false && "an operation on ints"); return NULL;
  }
}

// NaN where either is.
static LLVMValueRef min_max(uly_llvm *ir, bool min, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef first = LLVMBuildFCmp(ir->b, min ? LLVMRealOLT : LLVMRealOGT, a, b, "");
  LLVMValueRef nan = LLVMBuildFCmp(ir->b, LLVMRealUNO, a, a, "");
  return LLVMBuildSelect(ir->b, LLVMBuildOr(ir->b, first, nan, ""), a, b, "");
}

// a − b · floor(a / b), with the exact remainder's sign and size where rounding left it outside.
static LLVMValueRef float_mod(uly_llvm *ir, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef q = uly_llvm_call1(ir, "llvm.floor", LLVMBuildFDiv(ir->b, a, b, ""));
  LLVMValueRef r = uly_llvm_fma(ir, LLVMBuildFNeg(ir->b, q, ""), b, a), zero = LLVMConstNull(LLVMTypeOf(a));
  LLVMValueRef b_negative = LLVMBuildFCmp(ir->b, LLVMRealOLT, b, zero, "");
  LLVMValueRef wrong = LLVMBuildAnd(ir->b, LLVMBuildFCmp(ir->b, LLVMRealONE, r, zero, ""),
                                    LLVMBuildXor(ir->b, LLVMBuildFCmp(ir->b, LLVMRealOLT, r, zero, ""), b_negative, ""), "");
  return LLVMBuildSelect(ir->b, wrong, LLVMBuildFAdd(ir->b, r, b, ""), r, "");
}

static LLVMValueRef emit_real(uly_llvm *ir, uly_scalar op, LLVMValueRef a, LLVMValueRef b) {
  switch (op) {
  case ULY_SC_NEG: return LLVMBuildFNeg(ir->b, a, "");
  case ULY_SC_ADD: return LLVMBuildFAdd(ir->b, a, b, "");
  case ULY_SC_SUB: return LLVMBuildFSub(ir->b, a, b, "");
  case ULY_SC_MUL: return LLVMBuildFMul(ir->b, a, b, "");
  case ULY_SC_DIV: return LLVMBuildFDiv(ir->b, a, b, "");
  case ULY_SC_FDIV: return uly_llvm_call1(ir, "llvm.floor", LLVMBuildFDiv(ir->b, a, b, ""));
  case ULY_SC_MOD: return float_mod(ir, a, b);
  case ULY_SC_POW: return uly_math_pow(ir, a, b);
  case ULY_SC_MIN:
  case ULY_SC_MAX: return min_max(ir, op == ULY_SC_MIN, a, b);
  case ULY_SC_ABS: return uly_llvm_call1(ir, "llvm.fabs", a);
  case ULY_SC_EXP: return uly_math_exp(ir, a);
  case ULY_SC_EXP2: return uly_math_exp2(ir, a);
  case ULY_SC_LOG: return uly_math_log(ir, a);
  case ULY_SC_LOG2: return uly_math_log2(ir, a);
  case ULY_SC_SQRT: return uly_llvm_call1(ir, "llvm.sqrt", a);
  case ULY_SC_RSQRT: return LLVMBuildFDiv(ir->b, uly_llvm_real(LLVMTypeOf(a), 1.0), uly_llvm_call1(ir, "llvm.sqrt", a), "");
  case ULY_SC_SIN: return uly_math_sin(ir, a);
  case ULY_SC_COS: return uly_math_cos(ir, a);
  case ULY_SC_TANH: return uly_math_tanh(ir, a);
  case ULY_SC_SIGMOID: return uly_math_sigmoid(ir, a);
  case ULY_SC_ERF: return uly_math_erf(ir, a);
  default: ULY_ASSERT(false && "an operation on floats"); return NULL;
  }
}

static bool is_long(uly_scalar op) { return op == ULY_SC_POW || (op >= ULY_SC_EXP && op <= ULY_SC_LOG2) || (op >= ULY_SC_SIN && op <= ULY_SC_ERF); }

static bool calls_functions(const uly_expr *expr) {
  int32_t n = 0;
  for (int32_t i = 0; i < expr->n_nodes; i++) n += is_long((uly_scalar)expr->nodes[i].op);
  return n > MOST_INLINE;
}

// A call of the function that computes |op| on values of a's type.
static LLVMValueRef call_real(uly_llvm *ir, uly_scalar op, LLVMValueRef *args, unsigned n) {
  char name[64];
  LLVMTypeRef type = LLVMTypeOf(args[0]), types[] = {type, type};
  snprintf(name, sizeof name, "uly_math_%d_%s_%d", (int)op, uly_llvm_is_wide(ir, args[0]) ? "f64" : "f32", uly_llvm_is_vector(args[0]) ? ir->lanes : 1);
  LLVMValueRef f = LLVMGetNamedFunction(ir->module, name);
  if (!f) {
    f = LLVMAddFunction(ir->module, name, LLVMFunctionType(type, types, n, false));
    LLVMSetLinkage(f, LLVMInternalLinkage);
    uly_llvm_attribute(ir, f, "noinline");
    uly_llvm_attribute(ir, f, "nounwind");
    uly_llvm inner;
    uly_llvm_init(&inner, ir->arena, ir->module, ir->lanes);
    uly_llvm_enter(&inner, f);
    LLVMBuildRet(inner.b, emit_real(&inner, op, LLVMGetParam(f, 0), n > 1 ? LLVMGetParam(f, 1) : NULL));
    uly_llvm_finish(&inner);
  }
  return LLVMBuildCall2(ir->b, LLVMGlobalGetValueType(f), f, args, n, "");
}

static LLVMValueRef emit_bool(uly_llvm *ir, uly_scalar op, LLVMValueRef a, LLVMValueRef b) {
  switch (op) {
  case ULY_SC_NOT: return LLVMBuildNot(ir->b, a, "");
  case ULY_SC_AND: return LLVMBuildAnd(ir->b, a, b, "");
  case ULY_SC_OR: return LLVMBuildOr(ir->b, a, b, "");
  default: ULY_ASSERT(false && "an operation on bools"); return NULL;
  }
}

static LLVMValueRef emit_compare(uly_llvm *ir, uly_scalar op, LLVMValueRef a, LLVMValueRef b) {
  static const struct {
    LLVMIntPredicate i;
    LLVMRealPredicate f;
  } predicates[ULY_N_SCALARS] = {
      [ULY_SC_LT] = {LLVMIntSLT, LLVMRealOLT}, [ULY_SC_LE] = {LLVMIntSLE, LLVMRealOLE}, [ULY_SC_GT] = {LLVMIntSGT, LLVMRealOGT},
      [ULY_SC_GE] = {LLVMIntSGE, LLVMRealOGE}, [ULY_SC_EQ] = {LLVMIntEQ, LLVMRealOEQ},  [ULY_SC_NE] = {LLVMIntNE, LLVMRealUNE},
  };
  LLVMTypeKind kind = LLVMGetTypeKind(uly_llvm_element(a));
  if (kind == LLVMFloatTypeKind || kind == LLVMDoubleTypeKind) return LLVMBuildFCmp(ir->b, predicates[op].f, a, b, "");
  return LLVMBuildICmp(ir->b, predicates[op].i, a, b, "");
}

static LLVMValueRef emit_if(uly_llvm *ir, LLVMValueRef condition, LLVMValueRef a, LLVMValueRef b) {
  uly_llvm_match(ir, &a, &b);
  if (uly_llvm_is_vector(condition)) a = uly_llvm_splat(ir, a), b = uly_llvm_splat(ir, b);
  return LLVMBuildSelect(ir->b, condition, a, b, "");
}

static LLVMValueRef emit_constant(const emitter *e, const uly_expr_node *node) {
  switch ((uly_scalar_type)node->type) {
  case ULY_SCALAR_BOOL: return uly_llvm_int(e->ir->i1, node->value.i != 0);
  case ULY_SCALAR_INT: return uly_llvm_int(e->ir->i64, node->value.i);
  case ULY_SCALAR_FLOAT: return uly_llvm_real(e->real, node->value.f);
  }
  return NULL;
}

static LLVMValueRef emit_op(const emitter *e, const uly_expr_node *node, LLVMValueRef *args) {
  uly_llvm *ir = e->ir;
  uly_scalar op = (uly_scalar)node->op;
  uly_scalar_type types[ULY_EXPR_MAX_ARGS], type, arg_type;
  for (int i = 0; i < node->n_args; i++) types[i] = (uly_scalar_type)e->expr->nodes[node->args[i]].type;
  bool fits = uly_scalar_result_type(op, types, node->n_args, &type, &arg_type);
  ULY_ASSERT(fits && type == (uly_scalar_type)node->type);
  if (op == ULY_SC_FLOAT) return to_real(e, args[0]);
  if (uly_scalar_get(op)->class == ULY_SCALAR_STORED) {
    LLVMValueRef stored = uly_memory_stored(ir, uly_scalar_dtype(op), args[0]);
    return type == ULY_SCALAR_FLOAT ? to_real(e, stored) : stored;
  }
  if ((op == ULY_SC_FLOOR || op == ULY_SC_CEIL) && arg_type == ULY_SCALAR_FLOAT)
    args[0] = uly_llvm_call1(ir, op == ULY_SC_FLOOR ? "llvm.floor" : "llvm.ceil", args[0]);
  if (type == ULY_SCALAR_INT && node->n_args == 1 && arg_type != ULY_SCALAR_INT) return to_int(ir, args[0]);
  for (int i = op == ULY_SC_IF; i < node->n_args && arg_type == ULY_SCALAR_FLOAT; i++) args[i] = to_real(e, args[i]);
  if (op == ULY_SC_IF) return emit_if(ir, args[0], args[1], args[2]);
  bool divides = type == ULY_SCALAR_INT && (op == ULY_SC_FDIV || op == ULY_SC_MOD);
  if (node->n_args == 2 && !divides) uly_llvm_match(ir, &args[0], &args[1]);
  LLVMValueRef b = node->n_args > 1 ? args[1] : NULL;
  if (op >= ULY_SC_LT && op <= ULY_SC_NE) return emit_compare(ir, op, args[0], b);
  if (type == ULY_SCALAR_BOOL) return emit_bool(ir, op, args[0], b);
  if (type != ULY_SCALAR_FLOAT) return emit_int(ir, op, args[0], b);
  return is_long(op) && e->calls ? call_real(ir, op, args, node->n_args) : emit_real(ir, op, args[0], b);
}

static emitter begin(uly_llvm *ir, const uly_expr *expr) { return (emitter){ir, expr, expr->wide ? ir->f64 : ir->f32, calls_functions(expr)}; }

static LLVMValueRef emit_node(const emitter *e, int32_t i, const LLVMValueRef *values, const uly_expr_leaves *leaves) {
  const uly_expr_node *node = &e->expr->nodes[i];
  LLVMValueRef args[ULY_EXPR_MAX_ARGS];
  for (int j = 0; j < node->n_args; j++) args[j] = values[node->args[j]];
  if (node->op == ULY_SC_CONST) return emit_constant(e, node);
  if (node->n_args && node->op != ULY_SC_LOAD) return emit_op(e, node, args);
  LLVMValueRef leaf = leaves->leaf(leaves->context, e->ir, node, args);
  return node->type == ULY_SCALAR_FLOAT ? to_real(e, leaf) : leaf;
}

LLVMValueRef uly_expr_node_to_vector(uly_llvm *ir, const uly_expr *expr, int32_t i, const LLVMValueRef *values, const uly_expr_leaves *leaves) {
  emitter e = begin(ir, expr);
  return emit_node(&e, i, values, leaves);
}

LLVMValueRef uly_expr_to_vector(uly_llvm *ir, const uly_expr *expr, const uly_expr_leaves *leaves) {
  LLVMValueRef *values = ULY_NEW_ARRAY(ir->arena, LLVMValueRef, expr->n_nodes);
  emitter e = begin(ir, expr);
  ULY_ASSERT(expr->n_nodes > 0);
  for (int32_t i = 0; i < expr->n_nodes; i++) values[i] = emit_node(&e, i, values, leaves);
  return values[expr->n_nodes - 1];
}
