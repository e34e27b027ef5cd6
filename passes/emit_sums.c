// emit: exact sums over rows, and of ints: each rank's part, the parts of all ranks, and their sum, rounded once.
#include "passes/emit.h"

// Index 0 is the summed dim; the others are those of the result, in its order, the last of them the columns.
static uly_space rowsum_space(uly_emitter *e, const uly_type *x, const uly_type *y, MlirOperation op) {
  uly_space space = {.type = *x, .layout = uly_layout_of(e->program, &e->ir->names, x)};
  uly_layout result = uly_layout_of(e->program, &e->ir->names, y);
  int32_t n = 0, others = x->tensor.rank - 1, dim = (int32_t)uly_op_i64(op, "dim", 0);
  bool keep = uly_op_has(op, "keep");
  for (int32_t i = 0; i < result.rank; i++) {
    int32_t d = result.order[i];
    if (keep && d == dim) continue;
    space.index[keep || d < dim ? d : d + 1] = ++n == others ? ULY_HOOK_INDICES - 1 : n;
  }
  space.index[dim] = 0;
  return space;
}

// Bytes of what a rank adds up.
static uint32_t parts_bytes(uly_emitter *e, uint32_t count, bool ints) { return uly_scale(e->program, count, ints ? 8 : ULY_EXACT_LIMBS * 8); }

// Where a kernel that takes no strides writes |result|.
static uly_place stored_dest(uly_emitter *e, MlirValue result) {
  uly_type type = uly_type_of(e->ir, result);
  uly_layout layout = uly_layout_of(e->program, &e->ir->names, &type);
  uly_place to = uly_emit_dest(e, result);
  for (int32_t d = 0; d < layout.rank; d++)
    if (to.stride[d] != layout.stride[d] && !uly_dim_equal(type.tensor.dims[d], uly_dim_const(1))) return uly_emit_buffer(e, &type, "sum");
  return to;
}

static void emit_round(uly_emitter *e, MlirOperation op, MlirValue result, uly_operand parts, uint32_t count) {
  uly_call_builder c = uly_call_begin(e, op, ULY_KERNEL_ROUND, ULY_ROUND_N_OPS, ULY_ROUND_N_VALS);
  uly_type type = uly_type_of(e->ir, result);
  c.desc->u.round.dtype = type.tensor.dtype;
  uly_place to = stored_dest(e, result);
  uly_emit_set_place(e, result, to);
  uly_call_set_op(&c, ULY_ROUND_PARTS, parts, ULY_READ);
  uly_call_set_op(&c, ULY_ROUND_OUT, to.operand, ULY_WRITE);
  uly_call_set_val(&c, ULY_ROUND_COUNT, count);
  uly_call_end(&c, count, ULY_NONE, "round");
}

static uint32_t result_count(uly_emitter *e, MlirValue value) {
  uly_type type = uly_type_of(e->ir, value);
  return uly_layout_of(e->program, &e->ir->names, &type).elements;
}

bool uly_emit_rowsum(const uly_site *site) {
  uly_emitter *e = site->e;
  uly_program *p = e->program;
  MlirOperation op = uly_value_op(uly_site_return(site, 0));
  MlirValue result = uly_op_result(site->call, 0);
  uly_type x = uly_type_of(e->ir, uly_op_operand(op, 0)), y = uly_type_of(e->ir, result);
  uly_space space = rowsum_space(e, &x, &y, op);
  bool ints = y.tensor.dtype == ULY_I64, partial = false;
  uly_call_builder c = uly_call_begin(e, site->call, ULY_KERNEL_ROWSUM, ULY_ROWSUM_N_OPS, ULY_ROWSUM_N_VALS);
  uly_rows_set_space(&c, &space);
  uly_hook_input_of(&c, site, op, &space, &c.desc->u.rowsum.term);
  c.desc->u.rowsum.ints = ints;
  for (int32_t a = 0; a < y.n_axes; a++) partial |= uly_dist_is_partial(y.dist[a]);
  uint32_t count = result_count(e, result);
  uly_place parts = ints && !partial ? stored_dest(e, result) : uly_emit_buffer(e, &y, "parts");
  if (!ints) p->buffers[parts.operand.index].bytes = parts_bytes(e, count, ints);
  uly_call_set_op(&c, ULY_ROWSUM_OUT, parts.operand, ULY_WRITE);
  uint32_t outer = uly_program_const(p, 1);
  for (int i = ULY_ROWSUM_N1; i < ULY_ROWSUM_COLS; i++) outer = uly_mul(p, outer, c.vals[i].node);
  uint32_t blocks = uly_program_op(p, ULY_NODE_CDIV, c.vals[ULY_ROWSUM_COLS].node, uly_program_const(p, 16));
  uly_call_end(&c, uly_mul(p, outer, blocks), ULY_NONE, "row sum");
  if (partial || ints)
    uly_emit_set_place(e, result, parts); // ints are added; of floats and of other ranks uly.reduce takes it from there
  else
    emit_round(e, site->call, result, parts.operand, count);
  return true;
}

bool uly_emit_reduce(uly_emitter *e, MlirOperation op) {
  MlirValue in = uly_op_operand(op, 0), out = uly_op_result(op, 0);
  uly_type type = uly_type_of(e->ir, in);
  uint32_t count = result_count(e, out), bytes = parts_bytes(e, count, type.tensor.dtype == ULY_I64);
  uly_place parts = uly_emit_place(e, in);
  int32_t axis = -1;
  for (int32_t a = 0; a < type.n_axes; a++)
    if (uly_dist_is_partial(type.dist[a])) axis = a;
  ULY_ASSERT(axis >= 0);
  uly_operand gathered = uly_emit_gather_bytes(e, op, axis, parts.operand, bytes);
  emit_round(e, op, out, gathered, count);
  return true;
}
