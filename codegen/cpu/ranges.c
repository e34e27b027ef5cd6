// A mask as interval arithmetic: uly_hook_attention_range, which says of queries [q0, q1) × keys [k0, k1) that all pairs are allowed (FULL), none is (EMPTY), or neither
// is known (PARTIAL). What depends on b and h alone is evaluated exactly, captured tensors included; tensors indexed by q or k are unknown. Straight-line
// scalar code; it never reads what depends on a pair, so it finds no faults that the mask would not.
//
// Ints are cq · q + ck · k + [lo, hi], so that a comparison of q with k plus what does not depend on them is exact. An end that might overflow makes the whole interval unknown.
#include "codegen/cpu/expr_to_vector.h"
#include "codegen/cpu/hooks.h"

typedef struct interval {
  bool fixed; // the same for all pairs: |point| is its value
  LLVMValueRef point;
  int64_t cq, ck; // ints
  LLVMValueRef lo, hi;
  LLVMValueRef yes, no; // bools: may be true, may be false
} interval;

typedef struct tile {
  uly_llvm *ir;
  LLVMValueRef q0, q1, k0, k1; // inclusive
} tile;

enum { EMPTY, FULL, PARTIAL };      // uly_range of templates/template.h
enum { MAX_COEFFICIENT = 1 << 15 }; // times a row number below 2^47 fits

static LLVMValueRef i64(const tile *t, int64_t v) { return LLVMConstInt(t->ir->i64, (unsigned long long)v, true); }
static LLVMValueRef flag(const tile *t, bool v) { return LLVMConstInt(t->ir->i1, v, false); }
static LLVMValueRef is(const tile *t, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildICmp(t->ir->b, p, a, b, ""); }
static LLVMValueRef either(const tile *t, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildOr(t->ir->b, a, b, ""); }
static LLVMValueRef both(const tile *t, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildAnd(t->ir->b, a, b, ""); }
static LLVMValueRef pick(const tile *t, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildSelect(t->ir->b, c, a, b, ""); }
static LLVMValueRef smaller(const tile *t, LLVMValueRef a, LLVMValueRef b) { return pick(t, is(t, LLVMIntSLT, a, b), a, b); }
static LLVMValueRef larger(const tile *t, LLVMValueRef a, LLVMValueRef b) { return pick(t, is(t, LLVMIntSLT, a, b), b, a); }

static interval span(LLVMValueRef lo, LLVMValueRef hi) { return (interval){.lo = lo, .hi = hi}; }
static interval unknown_int(const tile *t) { return span(i64(t, INT64_MIN), i64(t, INT64_MAX)); }
static interval unknown_bool(const tile *t) { return (interval){.yes = flag(t, true), .no = flag(t, true)}; }

// a op b, and |overflow| or-ed with whether it did.
static LLVMValueRef checked(const tile *t, const char *name, LLVMValueRef a, LLVMValueRef b, LLVMValueRef *overflow) {
  LLVMValueRef args[] = {a, b}, r = uly_llvm_call(t->ir, name, t->ir->i64, args, 2);
  *overflow = either(t, *overflow, LLVMBuildExtractValue(t->ir->b, r, 1, ""));
  return LLVMBuildExtractValue(t->ir->b, r, 0, "");
}

static interval known_unless(const tile *t, LLVMValueRef overflow, LLVMValueRef lo, LLVMValueRef hi) {
  return span(pick(t, overflow, i64(t, INT64_MIN), lo), pick(t, overflow, i64(t, INT64_MAX), hi));
}

static interval add(const tile *t, interval a, interval b) {
  LLVMValueRef overflow = flag(t, false);
  LLVMValueRef lo = checked(t, "llvm.sadd.with.overflow", a.lo, b.lo, &overflow), hi = checked(t, "llvm.sadd.with.overflow", a.hi, b.hi, &overflow);
  interval sum = known_unless(t, overflow, lo, hi);
  sum.cq = a.cq + b.cq, sum.ck = a.ck + b.ck;
  return sum;
}

// [c · lo, c · hi] of a coordinate for a constant c.
static interval scaled(const tile *t, int64_t c, LLVMValueRef lo, LLVMValueRef hi) {
  LLVMValueRef a = LLVMBuildMul(t->ir->b, i64(t, c), c < 0 ? hi : lo, ""), b = LLVMBuildMul(t->ir->b, i64(t, c), c < 0 ? lo : hi, "");
  return span(a, b);
}

// The value's smallest and largest over the tile: no coefficients.
static interval flat(const tile *t, interval a) {
  interval rest = span(a.lo, a.hi);
  if (a.cq) rest = add(t, rest, scaled(t, a.cq, t->q0, t->q1));
  if (a.ck) rest = add(t, rest, scaled(t, a.ck, t->k0, t->k1));
  return rest;
}

static interval limited(const tile *t, interval a) {
  bool small = llabs(a.cq) <= MAX_COEFFICIENT && llabs(a.ck) <= MAX_COEFFICIENT;
  return small ? a : unknown_int(t);
}

// A sum or product as the code for pairs has it: unknown where it may wrap in the tile.
static interval wrapping(const tile *t, interval a) {
  if (!a.cq && !a.ck) return a;
  interval over_tile = flat(t, a);
  LLVMValueRef wraps = both(t, is(t, LLVMIntEQ, over_tile.lo, i64(t, INT64_MIN)), is(t, LLVMIntEQ, over_tile.hi, i64(t, INT64_MAX)));
  interval r = known_unless(t, wraps, a.lo, a.hi);
  r.cq = a.cq, r.ck = a.ck;
  return r;
}

static interval negate(const tile *t, interval a) {
  LLVMValueRef overflow = flag(t, false), zero = i64(t, 0);
  LLVMValueRef lo = checked(t, "llvm.ssub.with.overflow", zero, a.hi, &overflow), hi = checked(t, "llvm.ssub.with.overflow", zero, a.lo, &overflow);
  interval r = known_unless(t, overflow, lo, hi);
  r.cq = -a.cq, r.ck = -a.ck;
  return r;
}

static interval multiply(const tile *t, interval a, interval b) {
  if (LLVMIsAConstantInt(a.lo) && a.lo == a.hi && !a.cq && !a.ck) {
    interval swap = a;
    a = b, b = swap;
  }
  int64_t cq = 0, ck = 0;
  if (LLVMIsAConstantInt(b.lo) && b.lo == b.hi && !b.cq && !b.ck) { // keeps a's coefficients
    int64_t c = LLVMConstIntGetSExtValue(b.lo);
    if (llabs(c) > MAX_COEFFICIENT)
      a = flat(t, a);
    else
      cq = a.cq * c, ck = a.ck * c;
  } else {
    a = flat(t, a), b = flat(t, b);
  }
  LLVMValueRef overflow = flag(t, false), x[2] = {a.lo, a.hi}, y[2] = {b.lo, b.hi}, lo = NULL, hi = NULL;
  for (int i = 0; i < 4; i++) {
    LLVMValueRef p = checked(t, "llvm.smul.with.overflow", x[i & 1], y[i >> 1], &overflow);
    lo = lo ? smaller(t, lo, p) : p;
    hi = hi ? larger(t, hi, p) : p;
  }
  interval r = known_unless(t, overflow, lo, hi);
  r.cq = cq, r.ck = ck;
  return limited(t, r);
}

// By a divisor that is the same for all pairs; unknown where it is not positive.
static interval divide(const tile *t, uly_scalar op, interval a, interval b) {
  if (!b.fixed) return op == ULY_SC_HASH ? span(i64(t, 0), i64(t, UINT32_MAX)) : unknown_int(t);
  LLVMValueRef d = b.point, bad = is(t, LLVMIntSLE, d, i64(t, 0));
  a = flat(t, a);
  LLVMValueRef lo = uly_expr_floor_div(t->ir, a.lo, d), hi = uly_expr_floor_div(t->ir, a.hi, d);
  if (op == ULY_SC_FDIV) return known_unless(t, bad, lo, hi);
  LLVMValueRef same = is(t, LLVMIntEQ, lo, hi);
  LLVMValueRef least = pick(t, same, uly_expr_floor_mod(t->ir, a.lo, d), i64(t, 0));
  LLVMValueRef most = pick(t, same, uly_expr_floor_mod(t->ir, a.hi, d), LLVMBuildSub(t->ir->b, d, i64(t, 1), ""));
  return known_unless(t, bad, least, most);
}

static interval absolute(const tile *t, interval a) {
  a = flat(t, a);
  interval n = negate(t, a);
  LLVMValueRef zero = i64(t, 0), positive = is(t, LLVMIntSGE, a.lo, zero), negative = is(t, LLVMIntSLE, a.hi, zero);
  LLVMValueRef lo = pick(t, positive, a.lo, pick(t, negative, n.lo, zero)), hi = pick(t, positive, a.hi, pick(t, negative, n.hi, larger(t, n.hi, a.hi)));
  return known_unless(t, is(t, LLVMIntEQ, a.lo, i64(t, INT64_MIN)), lo, hi);
}

static interval compare(const tile *t, uly_scalar op, interval a, interval b) {
  interval d = flat(t, limited(t, add(t, a, negate(t, b)))), r = {0};
  LLVMValueRef zero = i64(t, 0);
  switch (op) {
  case ULY_SC_LT: r.yes = is(t, LLVMIntSLT, d.lo, zero), r.no = is(t, LLVMIntSGE, d.hi, zero); break;
  case ULY_SC_LE: r.yes = is(t, LLVMIntSLE, d.lo, zero), r.no = is(t, LLVMIntSGT, d.hi, zero); break;
  case ULY_SC_GT: r.yes = is(t, LLVMIntSGT, d.hi, zero), r.no = is(t, LLVMIntSLE, d.lo, zero); break;
  case ULY_SC_GE: r.yes = is(t, LLVMIntSGE, d.hi, zero), r.no = is(t, LLVMIntSLT, d.lo, zero); break;
  default: {
    LLVMValueRef equal = both(t, is(t, LLVMIntSLE, d.lo, zero), is(t, LLVMIntSGE, d.hi, zero));
    LLVMValueRef differ = either(t, is(t, LLVMIntNE, d.lo, zero), is(t, LLVMIntNE, d.hi, zero));
    r.yes = op == ULY_SC_EQ ? equal : differ, r.no = op == ULY_SC_EQ ? differ : equal;
  }
  }
  return r;
}

static interval combine(const tile *t, uly_scalar op, interval a, interval b) {
  interval r = {0};
  LLVMValueRef same, differ;
  switch (op) {
  case ULY_SC_NOT: r.yes = a.no, r.no = a.yes; break;
  case ULY_SC_AND: r.yes = both(t, a.yes, b.yes), r.no = either(t, a.no, b.no); break;
  case ULY_SC_OR: r.yes = either(t, a.yes, b.yes), r.no = both(t, a.no, b.no); break;
  default:
    same = either(t, both(t, a.yes, b.yes), both(t, a.no, b.no)), differ = either(t, both(t, a.yes, b.no), both(t, a.no, b.yes));
    r.yes = op == ULY_SC_EQ ? same : differ, r.no = op == ULY_SC_EQ ? differ : same;
  }
  return r;
}

static interval choose(const tile *t, interval c, interval a, interval b, uly_scalar_type type) {
  interval r = {0};
  if (type == ULY_SCALAR_BOOL) {
    r.yes = either(t, both(t, c.yes, a.yes), both(t, c.no, b.yes)), r.no = either(t, both(t, c.yes, a.no), both(t, c.no, b.no));
    return r;
  }
  a = flat(t, a), b = flat(t, b);
  r.lo = pick(t, c.no, pick(t, c.yes, smaller(t, a.lo, b.lo), b.lo), a.lo);
  r.hi = pick(t, c.no, pick(t, c.yes, larger(t, a.hi, b.hi), b.hi), a.hi);
  return r;
}

static interval of_int(const tile *t, uly_scalar op, const interval *a) {
  interval x, y;
  switch (op) {
  case ULY_SC_NEG: return negate(t, a[0]);
  case ULY_SC_ADD: return wrapping(t, limited(t, add(t, a[0], a[1])));
  case ULY_SC_SUB: return wrapping(t, limited(t, add(t, a[0], negate(t, a[1]))));
  case ULY_SC_MUL: return wrapping(t, multiply(t, a[0], a[1]));
  case ULY_SC_FDIV:
  case ULY_SC_MOD: return divide(t, op, a[0], a[1]);
  case ULY_SC_HASH: return span(i64(t, 0), i64(t, UINT32_MAX));
  case ULY_SC_ABS: return absolute(t, a[0]);
  case ULY_SC_MIN:
  case ULY_SC_MAX:
    x = flat(t, a[0]), y = flat(t, a[1]);
    return op == ULY_SC_MIN ? span(smaller(t, x.lo, y.lo), smaller(t, x.hi, y.hi)) : span(larger(t, x.lo, y.lo), larger(t, x.hi, y.hi));
  default: return unknown_int(t);
  }
}

static interval of_load(const tile *t, uly_dtype dtype, uly_scalar_type type) {
  if (type == ULY_SCALAR_BOOL) return unknown_bool(t);
  if (dtype == ULY_I32) return span(i64(t, INT32_MIN), i64(t, INT32_MAX));
  return dtype == ULY_U8 ? span(i64(t, 0), i64(t, UINT8_MAX)) : unknown_int(t);
}

// A node that depends on q or k.
static interval of_node(const tile *t, const uly_attention_desc *desc, const uly_expr_node *node, const interval *nodes) {
  interval args[ULY_EXPR_MAX_ARGS];
  uly_scalar op = (uly_scalar)node->op;
  uly_scalar_type type = (uly_scalar_type)node->type, first = ULY_SCALAR_INT;
  const uly_expr_node *all = desc->mask.nodes;
  bool any_float = false;
  for (int j = 0; j < node->n_args; j++) {
    args[j] = nodes[node->args[j]];
    any_float |= all[node->args[j]].type == ULY_SCALAR_FLOAT;
  }
  if (node->n_args) first = (uly_scalar_type)all[node->args[0]].type;
  if (op == ULY_SC_COORD) {
    interval v = span(i64(t, 0), i64(t, 0));
    v.cq = node->index == ULY_COORD_Q, v.ck = node->index == ULY_COORD_K;
    return v;
  }
  if (op == ULY_SC_LOAD) return of_load(t, desc->captures[node->index].dtype, type);
  if (type == ULY_SCALAR_FLOAT) return (interval){0};
  if (any_float) return type == ULY_SCALAR_BOOL ? unknown_bool(t) : unknown_int(t);
  if (op == ULY_SC_IF) return choose(t, args[0], args[1], args[2], type);
  if (op == ULY_SC_INT || op == ULY_SC_FLOOR || op == ULY_SC_CEIL) {
    if (first == ULY_SCALAR_INT) return args[0];
    LLVMValueRef one = i64(t, 1), zero = i64(t, 0);
    return span(pick(t, args[0].no, zero, one), pick(t, args[0].yes, one, zero));
  }
  if (type == ULY_SCALAR_INT) return of_int(t, op, args);
  return first == ULY_SCALAR_BOOL ? combine(t, op, args[0], args[1]) : compare(t, op, args[0], args[1]);
}

static interval of_point(const tile *t, LLVMValueRef point, uly_scalar_type type) {
  interval v = {.fixed = true, .point = point};
  if (type == ULY_SCALAR_INT) v.lo = v.hi = point;
  if (type == ULY_SCALAR_BOOL) v.yes = point, v.no = LLVMBuildNot(t->ir->b, point, "");
  return v;
}

static bool is_fixed(const uly_expr_node *node, const interval *nodes) {
  bool fixed = !(node->op == ULY_SC_COORD && (node->index == ULY_COORD_Q || node->index == ULY_COORD_K));
  for (int j = 0; j < node->n_args; j++) fixed &= nodes[node->args[j]].fixed;
  return fixed;
}

// Parameters: call, b, h, q0, q1, k0, k1; ends exclusive.
void uly_ranges_define(uly_llvm *ir, const uly_attention_desc *desc) {
  LLVMValueRef one = LLVMConstInt(ir->i64, 1, false);
  tile t = {ir, uly_llvm_param(ir, 3), LLVMBuildSub(ir->b, uly_llvm_param(ir, 4), one, ""), uly_llvm_param(ir, 5),
            LLVMBuildSub(ir->b, uly_llvm_param(ir, 6), one, "")};
  uly_attention_site site = {.desc = desc, .call = uly_llvm_param(ir, 0), .b = uly_llvm_param(ir, 1), .h = uly_llvm_param(ir, 2), .q = t.q0, .k = t.k0};
  uly_expr_leaves leaves = {&site, uly_hooks_attention_leaf};
  const uly_expr *mask = &desc->mask;
  interval result = {.yes = flag(&t, true), .no = flag(&t, false)};
  interval *nodes = ULY_NEW_ARRAY(ir->arena, interval, mask->n_nodes + 1);
  LLVMValueRef *points = ULY_NEW_ARRAY(ir->arena, LLVMValueRef, mask->n_nodes + 1);
  for (int32_t i = 0; i < mask->n_nodes; i++) {
    const uly_expr_node *node = &mask->nodes[i];
    if (is_fixed(node, nodes)) {
      points[i] = uly_expr_node_to_vector(ir, mask, i, points, &leaves);
      nodes[i] = of_point(&t, points[i], (uly_scalar_type)node->type);
    } else {
      nodes[i] = of_node(&t, desc, node, nodes);
    }
    result = nodes[i];
  }
  LLVMValueRef mixed = pick(&t, result.yes, LLVMConstInt(ir->i32, PARTIAL, false), LLVMConstInt(ir->i32, EMPTY, false));
  LLVMBuildRet(ir->b, pick(&t, result.no, mixed, LLVMConstInt(ir->i32, FULL, false)));
}
