// What is computed from parameters and constants alone is computed once, when the model is loaded. This pass marks it (uly.load); fuse keeps what is marked apart from what
// is not, and emit makes load steps of it.
//
//   %1 = "uly.map"(%w) {expr = "1.0 + x0"}          becomes   %1 = "uly.map"(%w) {expr = "1.0 + x0", uly.load}     %w a parameter, also one with a name an iteration
//   %2 = "uly.rmsnorm"(%x, %1)                                stays
// An operation belongs to load where all its operands do and its results are the same at every bind: their dims are constants, and no expression reads a symbol.
//
// What load only turns, for linears to read as weights, they read where it stands: packing takes either order. It is marked too (uly.view), and has no kernel.
#include "frontend/expr.h"
#include "passes/pipeline.h"

static bool reads_symbol(const uly_ir *ir, MlirOperation map) {
  uly_expr expr;
  if (uly_expr_parse(ir->arena, uly_op_str(map, "expr"), ir->names.symbols, ir->names.n_symbols, &expr) != ULY_OK) return true;
  for (int32_t i = 0; i < expr.n_nodes; i++)
    if (expr.nodes[i].op == ULY_SC_SIZE) return true;
  return false;
}

static bool has_constant_dims(const uly_ir *ir, MlirValue value) {
  uly_type type = uly_type_of(ir, value);
  for (int32_t d = 0; d < type.tensor.rank; d++)
    if (!uly_dim_is_const(type.tensor.dims[d])) return false;
  return true;
}

static bool is_known(uly_kind kind) { return kind == ULY_KIND_PARAM || kind == ULY_KIND_TABLE; }

static bool belongs_to_load(const uly_ir *ir, MlirOperation op) {
  uly_kind kind = uly_op_kind(op);
  if (kind == ULY_KIND_OTHER || is_known(kind)) return false;
  for (int i = 0; i < mlirOperationGetNumOperands(op); i++) {
    MlirOperation def = uly_value_op(mlirOperationGetOperand(op, i));
    if (mlirOperationIsNull(def) || (!is_known(uly_op_kind(def)) && !uly_op_has(def, "uly.load"))) return false;
  }
  for (int i = 0; i < mlirOperationGetNumResults(op); i++)
    if (!has_constant_dims(ir, uly_op_result(op, i))) return false;
  return kind != ULY_KIND_MAP || !reads_symbol(ir, op);
}

// ---- views

// Does |map| give its operand's elements as they are, its dims in another order?
static bool is_turned(const uly_ir *ir, MlirOperation map) {
  uly_expr expr;
  if (mlirOperationGetNumOperands(map) != 1) return false;
  uly_type in = uly_type_of(ir, mlirOperationGetOperand(map, 0)), out = uly_type_of(ir, uly_op_result(map, 0));
  if (in.tensor.rank != out.tensor.rank || in.tensor.dtype != out.tensor.dtype) return false;
  if (uly_expr_parse(ir->arena, uly_op_str(map, "expr"), ir->names.symbols, ir->names.n_symbols, &expr) != ULY_OK) return false;
  uint32_t dims = 0;
  for (int32_t d = 0; d < in.tensor.rank; d++)
    if (uly_op_access(map, 0, d) >= 0) dims |= 1u << uly_op_access(map, 0, d);
  return expr.n_nodes == 1 && expr.nodes[0].op == ULY_SC_OPERAND && dims == (1u << in.tensor.rank) - 1;
}

// Is |value| read as the weights of linears, or slices of it are, and not otherwise?
static bool makes_weights(MlirValue value) {
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    uly_kind kind = uly_op_kind(user);
    bool weights = kind == ULY_KIND_LINEAR ? mlirOpOperandGetOperandNumber(use) == 1 : kind == ULY_KIND_SLICE && makes_weights(uly_op_result(user, 0));
    if (!weights) return false;
  }
  return true;
}

bool uly_pass_mark_load(uly_ir *ir, MlirOperation module) {
  uly_ops ops = uly_ir_collect(ir, module); // operands before users
  for (int i = 0; i < ops.n; i++)
    if (belongs_to_load(ir, ops.at[i])) uly_op_set(ops.at[i], "uly.load", uly_ir_unit(ir));
  for (int i = 0; i < ops.n && !ir->unfused; i++)
    if (uly_op_has(ops.at[i], "uly.load") && uly_op_kind(ops.at[i]) == ULY_KIND_MAP && is_turned(ir, ops.at[i]) && makes_weights(uly_op_result(ops.at[i], 0)))
      uly_op_set(ops.at[i], "uly.view", uly_ir_unit(ir));
  return true;
}
