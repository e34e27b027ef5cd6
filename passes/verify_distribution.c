// Checks that every operation may be on each rank what its types say: rules.c an operation and axis, and here what goes in and out of entries. Errors are at the line
// of the spec that made the operation. Runs in every compilation, and after every pass in tests; a module that is not distributed yet has only its shapes and
// attributes checked.
#include "passes/pipeline.h"
#include "passes/rules.h"

static bool check_states(uly_ir *ir, const uly_view *view, bool distributed) {
  for (int i = 0; i < view->n_in + view->n_out; i++) {
    const uly_type *type = i < view->n_in ? &view->in[i] : &view->out[i - view->n_in];
    if (uly_type_is_global(type) != distributed) continue;
    uly_op_error(ir, view->op, "uly.%s: %s %d is %s", uly_kind_get(view->kind).name, i < view->n_in ? "operand" : "result", i < view->n_in ? i : i - view->n_in,
                 distributed ? "not distributed, but other values of this module are" : "distributed, but other values of this module are not");
    return false;
  }
  return true;
}

static bool check_op(uly_ir *ir, MlirOperation op, bool distributed) {
  uly_view view;
  if (!uly_dialect_check(ir, op) || !uly_view_read(ir, op, &view)) return false;
  uly_str shapes = uly_view_check_shapes(ir, &view);
  if (shapes.len) {
    uly_op_error(ir, op, "uly.%s: %.*s", uly_kind_get(view.kind).name, ULY_STR_ARG(shapes));
    return false;
  }
  if (ir->names.n_axes == 0) return true;
  if (!check_states(ir, &view, distributed)) return false;
  for (int32_t x = 0; distributed && x < ir->names.n_axes; x++) {
    int operand;
    uly_str error = uly_rule_check(ir, &view, x, &operand);
    if (!error.len) continue;
    if (operand >= 0)
      uly_op_error_value(ir, op, mlirOperationGetOperand(op, operand), "%.*s", ULY_STR_ARG(error));
    else
      uly_op_error(ir, op, "%.*s", ULY_STR_ARG(error));
    return false;
  }
  return true;
}

// What callers pass and get: split where a dim has the axis' symbol, else whole.
static bool check_boundary(uly_ir *ir, MlirOperation op, MlirValue value, const char *what, int i) {
  uly_type type;
  uly_str error;
  if (!uly_type_read(ir, mlirValueGetType(value), &type, &error)) {
    uly_op_error(ir, op, "type of %s %d: %.*s", what, i, ULY_STR_ARG(error));
    return false;
  }
  if (uly_type_is_global(&type)) return true;
  for (int32_t x = 0; x < type.n_axes; x++) {
    int32_t row = uly_type_row_dim(&ir->names, &type.tensor, x);
    uly_dist need = row < 0 ? uly_dist_of(ULY_DIST_REPLICATED) : uly_dist_split(row);
    if (uly_dist_equal(type.dist[x], need)) continue;
    uly_str axis = ir->names.axes[x].name, is = uly_dist_print(ir->arena, type.dist[x]), text = uly_dist_print(ir->arena, need);
    if (uly_dist_is_partial(type.dist[x]))
      uly_op_error_value(ir, op, value, "over %.*s: %s %d is a partial sum: a reduction is missing", ULY_STR_ARG(axis), what, i);
    else
      uly_op_error_value(ir, op, value, "over %.*s: %s %d of an entry is `%.*s`, but callers hold `%.*s`", ULY_STR_ARG(axis), what, i, ULY_STR_ARG(is),
                         ULY_STR_ARG(text));
    return false;
  }
  return true;
}

static bool check_entry(uly_ir *ir, MlirOperation func) {
  MlirBlock body = uly_op_body(func);
  if (mlirBlockIsNull(body)) {
    uly_op_error(ir, func, "an entry has a body");
    return false;
  }
  MlirOperation ret = mlirBlockGetTerminator(body);
  bool ok = true;
  for (int i = 0; i < mlirBlockGetNumArguments(body); i++) ok = check_boundary(ir, func, mlirBlockGetArgument(body, i), "argument", i) && ok;
  for (int i = 0; i < mlirOperationGetNumOperands(ret); i++) ok = check_boundary(ir, ret, mlirOperationGetOperand(ret, i), "result", i) && ok;
  return ok;
}

// Does any value of the module say how it is distributed?
static bool is_distributed(uly_ir *ir, uly_ops ops) {
  for (int i = 0; i < ops.n; i++)
    for (int j = 0; j < mlirOperationGetNumResults(ops.at[i]); j++) {
      uly_type type;
      uly_str error;
      if (uly_type_read(ir, mlirValueGetType(mlirOperationGetResult(ops.at[i], j)), &type, &error) && !uly_type_is_global(&type)) return true;
    }
  return false;
}

bool uly_pass_verify_distribution(uly_ir *ir, MlirOperation module) {
  uly_ops ops = uly_ir_collect(ir, module);
  bool distributed = is_distributed(ir, ops), ok = true;
  for (int i = 0; i < ops.n; i++) {
    if (uly_op_kind(ops.at[i]) != ULY_KIND_OTHER) ok = check_op(ir, ops.at[i], distributed) && ok;
    if (uly_op_is(ops.at[i], "func.func") && uly_op_has(ops.at[i], "uly.entry")) ok = check_entry(ir, ops.at[i]) && ok;
  }
  return ok;
}
