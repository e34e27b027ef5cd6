// emit: kernels that go row by row: maps, norms, sums over the last dim, losses.
#include "passes/emit.h"

static int64_t const_cols(const uly_program *p, const uly_call_builder *c) {
  const uly_node *node = &p->nodes[c->vals[ULY_ROWS_COLS].node];
  return node->kind == ULY_NODE_CONST ? node->value : 0;
}

static bool emit_map(const uly_site *site, MlirOperation map) {
  uly_emitter *e = site->e;
  MlirValue result = uly_op_result(site->call, 0);
  uly_type type = uly_type_of(e->ir, result);
  uly_space space = uly_space_of(e, &type);
  uly_call_builder c = uly_call_begin(e, site->call, ULY_KERNEL_ROWS, ULY_ROWS_N_OPS, ULY_ROWS_N_VALS);
  uint32_t rows = uly_rows_set_space(&c, &space);
  c.desc->u.rows = (uly_rows_desc){.mode = ULY_ROWS_MAP, .cols = const_cols(e->program, &c)};
  uly_hook_build(&c, site, map, &space, NULL, 0, &c.desc->u.rows.in);
  uly_place to = uly_emit_dest(e, result);
  uly_emit_set_place(e, result, to);
  c.desc->u.rows.in.out = uly_hook_operand_of(&c, &to, &type, space.index, ULY_WRITE);
  uly_call_end(&c, rows, ULY_NONE, "map");
  return true;
}

static uly_rows_mode mode_of(MlirOperation op) {
  switch (uly_op_kind(op)) {
  case ULY_KIND_RMSNORM: return ULY_ROWS_RMSNORM;
  case ULY_KIND_LAYERNORM: return ULY_ROWS_LAYERNORM;
  case ULY_KIND_SOFTMAX: return ULY_ROWS_SOFTMAX;
  default: return ULY_ROWS_SUM;
  }
}

// The dims of a sum's result as indices of the space that is summed over.
static void result_index(const uly_space *space, MlirOperation op, int32_t rank, int32_t *index) {
  bool sum = uly_op_kind(op) == ULY_KIND_SUM, keep = uly_op_has(op, "keep");
  int32_t dim = (int32_t)uly_op_i64(op, "dim", -1);
  for (int32_t d = 0; d < rank; d++) {
    if (!sum)
      index[d] = space->index[d];
    else if (keep)
      index[d] = d == dim ? -1 : space->index[d];
    else
      index[d] = space->index[d < dim ? d : d + 1];
  }
}

// What the map behind a sum sees: its dims' indices are those of the result.
static uly_space result_space(uly_emitter *e, const uly_space *space, MlirOperation op) {
  uly_type type = uly_type_of(e->ir, uly_op_result(op, 0));
  uly_space out = {.type = type, .layout = uly_layout_of(e->program, &e->ir->names, &type)};
  result_index(space, op, type.tensor.rank, out.index);
  for (int32_t d = 0; d < type.tensor.rank; d++)
    if (out.index[d] < 0) out.index[d] = ULY_HOOK_INDICES - 1; // the kept dim: index 0 there
  return out;
}

bool uly_emit_rows(const uly_site *site) {
  uly_emitter *e = site->e;
  MlirOperation last = uly_value_op(uly_site_return(site, 0)), op = last;
  if (uly_op_kind(last) == ULY_KIND_MAP) {
    op = (MlirOperation){NULL};
    for (int i = 0; i < (int)mlirOperationGetNumOperands(last); i++)
      if (!mlirValueIsABlockArgument(uly_op_operand(last, i))) op = uly_value_op(uly_op_operand(last, i));
    if (mlirOperationIsNull(op)) return emit_map(site, last);
  }
  uly_type x = uly_type_of(e->ir, uly_op_operand(op, 0));
  uly_space space = uly_space_along(e, &x, x.tensor.rank - 1);
  uly_call_builder c = uly_call_begin(e, site->call, ULY_KERNEL_ROWS, ULY_ROWS_N_OPS, ULY_ROWS_N_VALS);
  uint32_t rows = uly_rows_set_space(&c, &space);
  uly_rows_desc *d = &c.desc->u.rows;
  *d = (uly_rows_desc){.mode = mode_of(op), .cols = const_cols(e->program, &c), .eps = uly_op_f64(op, "eps", 0)};
  uly_hook_input_of(&c, site, op, &space, &d->in);
  uly_hook_input y = {.value = uly_op_result(op, 0)};
  if (mlirOperationGetNumOperands(op) > 1) y.scale = uly_op_operand(op, 1);
  if (mlirOperationGetNumOperands(op) == 3) y.shift = uly_op_operand(op, 2);
  uly_space out = result_space(e, &space, op);
  uly_hook_build(&c, site, mlirOperationEqual(last, op) ? (MlirOperation){NULL} : last, &out, &y, 1, &d->out);
  MlirValue result = uly_op_result(site->call, 0);
  uly_type type = uly_type_of(e->ir, result);
  uly_place to = uly_emit_dest(e, result);
  uly_emit_set_place(e, result, to);
  int32_t index[ULY_GRAPH_MAX_DIMS];
  result_index(&space, op, type.tensor.rank, index);
  d->out.out = uly_hook_operand_of(&c, &to, &type, index, ULY_WRITE);
  uint32_t scratch = uly_scale(e->program, uly_add(e->program, c.vals[ULY_ROWS_COLS].node, uly_program_const(e->program, 64)), 4);
  uly_call_end(&c, rows, scratch, uly_rows_mode_name(d->mode));
  return true;
}

// ---- losses

bool uly_emit_nll_of(const uly_site *site, MlirOperation op, const uly_operand *stats) {
  uly_emitter *e = site->e;
  uly_type x = uly_type_of(e->ir, uly_op_operand(op, 0)), labels = uly_type_of(e->ir, uly_op_operand(op, 1));
  int32_t rank = labels.tensor.rank;
  uly_space space = uly_space_along(e, &x, rank);
  uly_call_builder c = uly_call_begin(e, site->call, ULY_KERNEL_NLL, ULY_NLL_N_OPS, ULY_NLL_N_VALS);
  uint32_t rows = uly_rows_set_space(&c, &space);
  c.desc->u.nll = (uly_nll_desc){.labels = labels.tensor.dtype, .ignore = uly_op_i64(op, "ignore", 0), .stats = stats != NULL};
  if (stats)
    uly_call_set_op(&c, ULY_NLL_STATS, *stats, ULY_READ);
  else
    uly_hook_input_of(&c, site, op, &space, &c.desc->u.nll.in);
  uint32_t tiles = uly_program_op(e->program, ULY_NODE_CDIV, c.vals[ULY_NLL_COLS].node, uly_program_const(e->program, ULY_NLL_TILE));
  uint32_t scratch = uly_scale(e->program, uly_add(e->program, tiles, uly_program_const(e->program, 1)), 2 * (int64_t)sizeof(float));
  MlirValue result = uly_op_result(site->call, 0);
  uly_place at = uly_site_place(site, uly_op_operand(op, 1)), to = uly_emit_dest(e, result);
  uly_emit_set_place(e, result, to);
  uly_call_set_op(&c, ULY_NLL_LABELS, at.operand, ULY_READ);
  uly_call_set_op(&c, ULY_NLL_OUT, to.operand, ULY_WRITE);
  for (int i = 0; i < ULY_HOOK_INDICES - 1; i++) uly_call_set_val(&c, ULY_NLL_DIM_0 + i, uly_program_const(e->program, -1));
  for (int32_t d = 0; d < rank; d++) {
    uly_call_set_val(&c, ULY_NLL_LABELS_0 + space.index[d], at.stride[d]);
    uly_call_set_val(&c, ULY_NLL_OUT_0 + space.index[d], to.stride[d]);
    uly_call_set_val(&c, ULY_NLL_START_0 + space.index[d], space.layout.start[d]);
    uly_call_set_val(&c, ULY_NLL_DIM_0 + space.index[d], uly_program_const(e->program, d));
  }
  uly_call_end(&c, rows, scratch, "loss");
  return true;
}

bool uly_emit_nll(const uly_site *site) { return uly_emit_nll_of(site, uly_value_op(uly_site_return(site, 0)), NULL); }
