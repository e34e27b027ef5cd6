// What is computed from parameters and constants alone is computed once, when the model is loaded. This pass marks it (uly.load); fuse keeps what is marked apart from what
// is not, and emit makes load steps of it.
//
//   %1 = "uly.map"(%w) {expr = "1.0 + x0"}          becomes   %1 = "uly.map"(%w) {expr = "1.0 + x0", uly.load}     %w a parameter, also one with a name an iteration
//   %2 = "uly.rmsnorm"(%x, %1)                                stays
// An operation belongs to load where all its operands do and its results are the same at every bind: their dims are constants, and no expression reads a symbol.
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

bool uly_pass_mark_load(uly_ir *ir, MlirOperation module) {
  uly_ops ops = uly_ir_collect(ir, module); // operands before users
  for (int i = 0; i < ops.n; i++)
    if (belongs_to_load(ir, ops.at[i])) uly_op_set(ops.at[i], "uly.load", uly_ir_unit(ir));
  return true;
}
