// Operations of the dialect have no effects but their results. So in this order, until nothing changes:
//   invariant  one that uses nothing of its loop moves in front of it: gathers of what masks capture, angles of rope. Parameters and tables that are others in each
//              iteration stay
//   equal      one that says the same as an earlier one in scope gives its results
//   inverse    a cast or a view whose operand is made by such operations alone from a value that already is what it makes gives that value
//   dead       one without uses goes away
// Exchanges are looked at operand by operand.
#include "passes/pipeline.h"

static bool is_inside(MlirOperation op, MlirOperation loop) {
  for (MlirOperation at = op; !mlirOperationIsNull(at); at = mlirOperationGetParentOperation(at))
    if (mlirOperationEqual(at, loop)) return true;
  return false;
}

static bool defined_inside(MlirValue value, MlirOperation loop) {
  if (mlirValueIsAOpResult(value)) return is_inside(mlirOpResultGetOwner(value), loop);
  return is_inside(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(value)), loop);
}

// ---- invariant

static bool is_invariant(MlirOperation op, MlirOperation loop) {
  uly_kind kind = uly_op_kind(op);
  if (kind == ULY_KIND_OTHER || uly_op_n_items(op) != 1) return false;
  for (int i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (defined_inside(mlirOperationGetOperand(op, i), loop)) return false;
  return true;
}

static bool hoist(uly_ops ops) {
  bool changed = false;
  for (int i = 0; i < ops.n; i++) {
    MlirOperation loop = mlirOperationGetParentOperation(ops.at[i]);
    while (!mlirOperationIsNull(loop) && uly_op_is(loop, "scf.for") && is_invariant(ops.at[i], loop)) {
      mlirOperationMoveBefore(ops.at[i], loop);
      loop = mlirOperationGetParentOperation(ops.at[i]);
      changed = true;
    }
  }
  return changed;
}

// ---- equal

static bool same_results(MlirOperation a, MlirOperation b) {
  if (mlirOperationGetNumResults(a) != mlirOperationGetNumResults(b)) return false;
  for (int i = 0; i < mlirOperationGetNumResults(a); i++)
    if (!mlirTypeEqual(mlirValueGetType(uly_op_result(a, i)), mlirValueGetType(uly_op_result(b, i)))) return false;
  return true;
}

static bool same_operation(MlirOperation a, MlirOperation b) {
  if (!mlirIdentifierEqual(mlirOperationGetName(a), mlirOperationGetName(b))) return false;
  if (mlirOperationGetNumOperands(a) != mlirOperationGetNumOperands(b) || mlirOperationGetNumAttributes(a) != mlirOperationGetNumAttributes(b)) return false;
  for (int i = 0; i < mlirOperationGetNumOperands(a); i++)
    if (!mlirValueEqual(mlirOperationGetOperand(a, i), mlirOperationGetOperand(b, i))) return false;
  for (int i = 0; i < mlirOperationGetNumAttributes(a); i++) {
    MlirNamedAttribute attr = mlirOperationGetAttribute(a, i);
    if (!mlirAttributeEqual(attr.attribute, uly_op_attr(b, uly_ir_name(attr.name).ptr))) return false;
  }
  return same_results(a, b);
}

// Is |earlier|, which comes first in program order, known wherever |op| is?
static bool in_scope(MlirOperation earlier, MlirOperation op) {
  MlirBlock block = mlirOperationGetBlock(earlier);
  for (MlirOperation at = op; !mlirOperationIsNull(at); at = mlirOperationGetParentOperation(at)) {
    MlirBlock of = mlirOperationGetBlock(at);
    if (!mlirBlockIsNull(of) && mlirBlockEqual(of, block)) return true;
  }
  return false;
}

// A parameter or table of a loop is another one in each iteration; the same elsewhere is counted differently.
static bool may_share(MlirOperation a, MlirOperation b) {
  if (uly_op_n_items(a) == 1) return true;
  return mlirBlockEqual(mlirOperationGetBlock(a), mlirOperationGetBlock(b));
}

static size_t hash_operation(MlirOperation op) {
  size_t h = (uintptr_t)mlirOperationGetName(op).ptr;
  for (int i = 0; i < mlirOperationGetNumOperands(op); i++) h = h * 31 + (uintptr_t)mlirOperationGetOperand(op, i).ptr;
  for (int i = 0; i < mlirOperationGetNumAttributes(op); i++) h = h * 31 + (uintptr_t)mlirOperationGetAttribute(op, i).attribute.ptr;
  return h ^ h >> 17;
}

// Each is compared with those of its hash: |first| and |last| by hash, |next| by operation, −1 for none.
static bool merge_equal(const uly_ir *ir, uly_ops ops) {
  bool changed = false;
  size_t n = 64;
  while (n < 2 * (size_t)ops.n) n *= 2;
  int *first = ULY_NEW_ARRAY(ir->arena, int, n), *last = ULY_NEW_ARRAY(ir->arena, int, n), *next = ULY_NEW_ARRAY(ir->arena, int, ops.n + 1);
  memset(first, -1, n * sizeof *first);
  for (int i = 0; i < ops.n; i++) {
    if (uly_op_kind(ops.at[i]) == ULY_KIND_OTHER) continue;
    size_t h = hash_operation(ops.at[i]) & (n - 1);
    for (int j = uly_op_unused(ops.at[i]) ? -1 : first[h]; j >= 0; j = next[j]) {
      if (!same_operation(ops.at[j], ops.at[i]) || !in_scope(ops.at[j], ops.at[i]) || !may_share(ops.at[j], ops.at[i])) continue;
      for (int k = 0; k < mlirOperationGetNumResults(ops.at[i]); k++) mlirValueReplaceAllUsesOfWith(uly_op_result(ops.at[i], k), uly_op_result(ops.at[j], k));
      changed = true;
      break;
    }
    next[i] = -1;
    *(first[h] < 0 ? &first[h] : &next[last[h]]) = i;
    last[h] = i;
  }
  return changed;
}

// ---- inverse

// Operations that give their operand's elements in the same order.
static bool keeps_order(uly_kind kind) { return uly_kind_is_cast(kind) || kind == ULY_KIND_HEADS || kind == ULY_KIND_MERGE || kind == ULY_KIND_RESHAPE; }

// Where |value| is made by such operations alone from a value of type |type|: that value, else null.
static MlirValue undo(MlirValue value, MlirType type) {
  for (MlirOperation op = uly_value_op(value); !mlirOperationIsNull(op) && keeps_order(uly_op_kind(op)); op = uly_value_op(value)) {
    int result = (int)mlirOpResultGetResultNumber(value);
    value = mlirOperationGetOperand(op, result);
    if (mlirTypeEqual(mlirValueGetType(value), type)) return value;
  }
  return (MlirValue){NULL};
}

static bool fold_inverse(uly_ops ops) {
  bool changed = false;
  for (int i = 0; i < ops.n; i++) {
    if (!keeps_order(uly_op_kind(ops.at[i]))) continue;
    for (int k = 0; k < mlirOperationGetNumResults(ops.at[i]); k++) {
      MlirValue result = uly_op_result(ops.at[i], k), same = undo(result, mlirValueGetType(result));
      if (mlirValueIsNull(same) || mlirOpOperandIsNull(mlirValueGetFirstUse(result))) continue;
      mlirValueReplaceAllUsesOfWith(result, same);
      changed = true;
    }
  }
  return changed;
}

// ---- dead

// An exchange some of whose results nobody reads, without those.
static void shrink_exchange(const uly_ir *ir, MlirOperation op) {
  MlirValue operands[ULY_EXCHANGE_SLOTS];
  MlirType types[ULY_EXCHANGE_SLOTS];
  int kept[ULY_EXCHANGE_SLOTS], n = 0;
  for (int i = 0; i < mlirOperationGetNumResults(op); i++) {
    if (mlirOpOperandIsNull(mlirValueGetFirstUse(uly_op_result(op, i)))) continue;
    operands[n] = mlirOperationGetOperand(op, i);
    types[n] = mlirValueGetType(uly_op_result(op, i));
    kept[n++] = i;
  }
  if (n == mlirOperationGetNumResults(op)) return;
  uly_op_spec spec = {.name = "uly.exchange",
                      .loc = mlirOperationGetLocation(op),
                      .operands = operands,
                      .n_operands = n,
                      .results = types,
                      .n_results = n,
                      .attrs = {uly_ir_attr(ir, "axis", uly_op_attr(op, "axis"))},
                      .before = op};
  MlirOperation less = uly_op_build(ir, &spec);
  for (int i = 0; i < n; i++) mlirValueReplaceAllUsesOfWith(uly_op_result(op, kept[i]), uly_op_result(less, i));
  uly_op_erase(op);
}

static bool erase_dead(const uly_ir *ir, uly_ops ops) {
  bool changed = false;
  for (int i = ops.n; i-- > 0;) { // users before what they use
    uly_kind kind = uly_op_kind(ops.at[i]);
    if (kind == ULY_KIND_OTHER) continue;
    if (uly_op_unused(ops.at[i])) {
      uly_op_erase(ops.at[i]);
      changed = true;
    } else if (kind == ULY_KIND_EXCHANGE) {
      shrink_exchange(ir, ops.at[i]);
    }
  }
  return changed;
}

bool uly_pass_fold_collectives(uly_ir *ir, MlirOperation module) {
  for (bool changed = true; changed;) {
    changed = hoist(uly_ir_collect(ir, module));
    changed |= merge_equal(ir, uly_ir_collect(ir, module));
    changed |= fold_inverse(uly_ir_collect(ir, module));
    changed |= erase_dead(ir, uly_ir_collect(ir, module));
  }
  return true;
}
