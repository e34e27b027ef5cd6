#include "passes/outline.h"

void uly_outliner_init(uly_outliner *outliner, uly_ir *ir, MlirOperation module) { *outliner = (uly_outliner){.ir = ir, .module = module}; }

typedef struct value_list {
  MlirValue at[ULY_OUTLINE_MAX_VALUES];
  int n;
} value_list;

static int find(const value_list *list, MlirValue value) {
  for (int i = 0; i < list->n; i++)
    if (mlirValueEqual(list->at[i], value)) return i;
  return -1;
}

static bool in_group(const uly_group *group, MlirOperation op) {
  for (int i = 0; i < group->n_ops; i++)
    if (mlirOperationEqual(group->ops[i], op)) return true;
  return false;
}

// Values that the group reads and does not make, in the order of first use.
static void find_inputs(const uly_group *group, value_list *inputs) {
  for (int i = 0; i < group->n_ops; i++)
    for (intptr_t j = 0; j < mlirOperationGetNumOperands(group->ops[i]); j++) {
      MlirValue v = mlirOperationGetOperand(group->ops[i], j);
      MlirOperation def = uly_value_op(v);
      if ((mlirOperationIsNull(def) || !in_group(group, def)) && find(inputs, v) < 0) {
        ULY_ASSERT(inputs->n < ULY_OUTLINE_MAX_VALUES);
        inputs->at[inputs->n++] = v;
      }
    }
}

// The function's body: copies of the group's operations on the block's arguments.
static void fill_body(const uly_outliner *o, const uly_group *group, const value_list *inputs, MlirBlock block) {
  value_list old = *inputs, fresh = {.n = inputs->n};
  for (int i = 0; i < inputs->n; i++) fresh.at[i] = mlirBlockGetArgument(block, i);
  for (int i = 0; i < group->n_ops; i++) {
    MlirOperation copy = mlirOperationClone(group->ops[i]);
    for (intptr_t j = 0; j < mlirOperationGetNumOperands(copy); j++) {
      int at = find(&old, mlirOperationGetOperand(copy, j));
      ULY_ASSERT(at >= 0);
      mlirOperationSetOperand(copy, j, fresh.at[at]);
    }
    mlirBlockAppendOwnedOperation(block, copy);
    for (intptr_t j = 0; j < mlirOperationGetNumResults(copy); j++) {
      ULY_ASSERT(old.n < ULY_OUTLINE_MAX_VALUES);
      old.at[old.n++] = mlirOperationGetResult(group->ops[i], j);
      fresh.at[fresh.n++] = mlirOperationGetResult(copy, j);
    }
  }
  MlirValue results[ULY_OUTLINE_MAX_VALUES];
  for (int i = 0; i < group->n_results; i++) results[i] = fresh.at[find(&old, group->results[i])];
  uly_op_build(o->ir, &(uly_op_spec){.name = "func.return",
                                     .loc = mlirOperationGetLocation(group->ops[group->n_ops - 1]),
                                     .operands = results,
                                     .n_operands = group->n_results,
                                     .block = block});
}

static MlirOperation build_function(const uly_outliner *o, const uly_group *group, const value_list *inputs, uly_str name) {
  MlirType in[ULY_OUTLINE_MAX_VALUES], out[ULY_OUTLINE_MAX_VALUES];
  MlirLocation locs[ULY_OUTLINE_MAX_VALUES], loc = mlirOperationGetLocation(group->ops[group->n_ops - 1]);
  for (int i = 0; i < inputs->n; i++) in[i] = mlirValueGetType(inputs->at[i]), locs[i] = loc;
  for (int i = 0; i < group->n_results; i++) out[i] = mlirValueGetType(group->results[i]);
  MlirType type = mlirFunctionTypeGet(o->ir->context, inputs->n, in, group->n_results, out);
  MlirRegion region = mlirRegionCreate();
  MlirBlock block = mlirBlockCreate(inputs->n, in, locs);
  mlirRegionAppendOwnedBlock(region, block);
  fill_body(o, group, inputs, block);
  return uly_op_build(
      o->ir, &(uly_op_spec){.name = "func.func",
                            .loc = loc,
                            .regions = &region,
                            .n_regions = 1,
                            .block = uly_op_body(o->module),
                            .attrs = {uly_ir_attr(o->ir, "sym_name", uly_ir_str(o->ir, name)), uly_ir_attr(o->ir, "function_type", mlirTypeAttrGet(type)),
                                      uly_ir_attr(o->ir, "sym_visibility", uly_ir_str(o->ir, ULY_STR("private"))),
                                      uly_ir_attr(o->ir, "uly.kernel", uly_ir_str(o->ir, uly_str_of(group->kind)))}});
}

// The name of the function with this body, made if it is new.
static uly_str function_for(uly_outliner *o, const uly_group *group, const value_list *inputs) {
  MlirOperation function = build_function(o, group, inputs, ULY_STR("k"));
  uly_str body = uly_ir_print_text(o->ir, function);
  for (int i = 0; i < o->n; i++)
    if (uly_str_equal(o->functions[i].body, body)) {
      uly_op_erase(function);
      return o->functions[i].name;
    }
  uly_str name = uly_str_format(o->ir->arena, "k%d_%s", o->n, group->kind);
  ULY_MAKE_ROOM(o->ir->arena, o->functions, o->n, o->cap, 16);
  o->functions[o->n++] = (uly_outlined){body, name};
  uly_op_set(function, "sym_name", uly_ir_str(o->ir, name));
  return name;
}

// Forgets the group's operations, which stand around |at|.
static void forget(const uly_group *group, uly_ops ops, int at) {
  int left = group->n_ops;
  for (int d = 0; left && (at - d >= 0 || at + d < ops.n); d++)
    for (int side = 0; side < (d ? 2 : 1); side++) {
      int i = side ? at - d : at + d;
      if (i < 0 || i >= ops.n || mlirOperationIsNull(ops.at[i]) || !in_group(group, ops.at[i])) continue;
      ops.at[i] = (MlirOperation){NULL};
      left--;
    }
}

MlirOperation uly_outline(uly_outliner *o, const uly_group *group, uly_ops ops, int at) {
  value_list inputs = {0};
  find_inputs(group, &inputs);
  uly_str name = function_for(o, group, &inputs);
  MlirType types[ULY_OUTLINE_MAX_VALUES];
  for (int i = 0; i < group->n_results; i++) types[i] = mlirValueGetType(group->results[i]);
  MlirOperation last = group->ops[group->n_ops - 1];
  MlirAttribute load = uly_op_attr(last, "uly.load");
  MlirOperation call = uly_op_build(o->ir, &(uly_op_spec){.name = "func.call",
                                                          .loc = mlirOperationGetLocation(last),
                                                          .operands = inputs.at,
                                                          .n_operands = inputs.n,
                                                          .results = types,
                                                          .n_results = group->n_results,
                                                          .before = group->anchor,
                                                          .attrs = {uly_ir_attr(o->ir, "callee", uly_ir_symbol(o->ir, name))}});
  uly_op_set(call, "uly.load", load);
  mlirOperationSetLocation(call, uly_ir_loc(o->ir, uly_op_loc(o->ir, last)));
  for (int i = 0; i < group->n_results; i++)
    uly_op_set_number(o->ir, call, i, uly_op_number(uly_value_op(group->results[i]), (int)mlirOpResultGetResultNumber(group->results[i])));
  for (int i = 0; i < group->n_results; i++) mlirValueReplaceAllUsesOfWith(group->results[i], uly_op_result(call, i));
  forget(group, ops, at);
  for (int i = group->n_ops - 1; i >= 0; i--) uly_op_erase(group->ops[i]);
  return call;
}
