// fuse: decides what is one kernel, and moves it into a private function that is called. In an entry remain calls, views (heads, merge, cut), gathers, slices and
// collectives.
//
//   %q0 = linear(%n, %wq)  %q1 = heads(%q0)  %q = rope(%q1, %cos, %sin)     the same for k and v      %e:3 = exchange(%q, %k, %v)
//   becomes   %m:3 = func.call @k1_gemm(%n, %wq, %cos, %sin, %wk, %wv)      %e:3 = exchange(%m#0, %m#1, %m#2)
#include "passes/fuse.h"
#include "passes/pipeline.h"

uly_map uly_map_read(const uly_fuse *fuse, MlirOperation op) {
  uly_map map = {.n_operands = (int)mlirOperationGetNumOperands(op)};
  ULY_ASSERT(map.n_operands <= ULY_MAX_OPERANDS);
  uly_status status = uly_expr_parse(fuse->ir->arena, uly_op_str(op, "expr"), fuse->ir->names.symbols, fuse->ir->names.n_symbols, &map.expr);
  ULY_ASSERT(status == ULY_OK); // the verifier has read it
  for (int i = 0; i < map.n_operands; i++) {
    map.operands[i] = mlirOperationGetOperand(op, i);
    int32_t rank = uly_type_of(fuse->ir, map.operands[i]).tensor.rank;
    for (int32_t d = 0; d < rank; d++) map.access[i].dim[d] = (int8_t)uly_op_access(op, i, d);
  }
  return map;
}

MlirOperation uly_map_build(const uly_fuse *fuse, const uly_map *map, MlirValue like, MlirOperation before) {
  const uly_ir *ir = fuse->ir;
  MlirAttribute access[ULY_MAX_OPERANDS];
  for (int i = 0; i < map->n_operands; i++) {
    int32_t rank = uly_type_of(ir, map->operands[i]).tensor.rank;
    int64_t dims[ULY_GRAPH_MAX_DIMS];
    for (int32_t d = 0; d < rank; d++) dims[d] = map->access[i].dim[d];
    access[i] = uly_ir_i64s(ir, dims, rank);
  }
  MlirType type = mlirValueGetType(like);
  uly_str text = uly_expr_print(ir->arena, &map->expr, ir->names.symbols, ir->names.n_symbols);
  uly_op_spec spec = {.name = "uly.map",
                      .loc = mlirOperationGetLocation(uly_value_op(like)),
                      .operands = map->operands,
                      .n_operands = map->n_operands,
                      .results = &type,
                      .n_results = 1,
                      .before = before,
                      .attrs = {uly_ir_attr(ir, "expr", uly_ir_str(ir, text)), uly_ir_attr(ir, "access", uly_ir_array(ir, access, map->n_operands))}};
  MlirAttribute load = uly_op_attr(uly_value_op(like), "uly.load");
  if (!mlirAttributeIsNull(load)) spec.attrs[2] = uly_ir_attr(ir, "uly.load", load);
  return uly_op_build(ir, &spec);
}

bool uly_map_is_pointwise(const uly_ir *ir, MlirOperation map, int operand) {
  uly_type in = uly_type_of(ir, mlirOperationGetOperand(map, operand)), out = uly_type_of(ir, uly_op_result(map, 0));
  if (in.tensor.rank != out.tensor.rank) return false;
  for (int32_t d = 0; d < in.tensor.rank; d++)
    if (uly_op_access(map, operand, d) != d || !uly_dim_equal(in.tensor.dims[d], out.tensor.dims[d])) return false;
  return true;
}

MlirOperation uly_single_user(const uly_fuse *fuse, MlirValue value) {
  if (fuse->ir->unfused) return (MlirOperation){NULL};
  MlirOpOperand use = mlirValueGetFirstUse(value);
  if (mlirOpOperandIsNull(use) || !mlirOpOperandIsNull(mlirOpOperandGetNextUse(use))) return (MlirOperation){NULL};
  MlirOperation user = mlirOpOperandGetOwner(use), def = uly_value_op(value);
  if (mlirOperationIsNull(def) || !mlirBlockEqual(mlirOperationGetBlock(user), mlirOperationGetBlock(def))) return (MlirOperation){NULL};
  return uly_same_phase(user, def) ? user : (MlirOperation){NULL};
}

static void fuse_block(uly_fuse *fuse, MlirBlock block) {
  uly_ops ops = uly_block_ops(fuse->ir, block);
  for (int i = 0; i < ops.n; i++)
    if (uly_op_is(ops.at[i], "scf.for")) fuse_block(fuse, uly_op_body(ops.at[i]));
  if (!fuse->ir->unfused) uly_compose_maps(fuse, block);
  uly_fuse_linears(fuse, block);
  uly_fuse_rows(fuse, block);
}

bool uly_pass_fuse(uly_ir *ir, MlirOperation module) {
  uly_fuse fuse = {.ir = ir};
  uly_outliner_init(&fuse.outliner, ir, module);
  uly_ops ops = uly_block_ops(ir, uly_op_body(module));
  for (int i = 0; i < ops.n; i++)
    if (uly_op_has(ops.at[i], "uly.entry")) fuse_block(&fuse, uly_op_body(ops.at[i]));
  return ir->diags->n_errors == 0;
}
