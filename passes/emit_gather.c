// emit: gathers of a table's rows.
#include "passes/emit.h"

// Where the rows of a table go: its last |n| dims dense.
static uly_place gather_dest(uly_emitter *e, MlirValue result, int32_t n) {
  uly_type type = uly_type_of(e->ir, result);
  uly_place to = uly_emit_dest(e, result);
  if (uly_place_is_dense(e, &type, &to, n)) return to;
  uly_layout layout = uly_layout_row_major(e->program, &type);
  to = uly_emit_buffer(e, &type, "gathered");
  memcpy(to.stride, layout.stride, sizeof to.stride);
  return to;
}

// The call's index space is that of the ids, in storage order.
static uint32_t set_ids(uly_call_builder *c, const uly_layout *ids, const uly_place *from, const uly_place *to, int32_t bytes) {
  uly_program *p = c->e->program;
  uint32_t items = uly_program_const(p, 1), zero = uly_program_const(p, 0);
  _Static_assert((int)ULY_GRAPH_MAX_DIMS <= (int)ULY_GATHER_DIMS, "an index for every dim");
  for (int32_t i = 0; i < ULY_GATHER_DIMS; i++) {
    int32_t d = i < ids->rank ? ids->order[i] : -1;
    uint32_t size = d < 0 ? uly_program_const(p, 1) : ids->local[d];
    uly_call_set_val(c, ULY_GATHER_N0 + i, size);
    uly_call_set_val(c, ULY_GATHER_START_0 + i, d < 0 ? zero : ids->start[d]);
    uly_call_set_val(c, ULY_GATHER_DIM_0 + i, uly_program_const(p, d));
    uly_call_set_val(c, ULY_GATHER_IDS_0 + i, d < 0 ? zero : from->stride[d]);
    uly_call_set_val(c, ULY_GATHER_OUT_0 + i, d < 0 ? zero : uly_scale(p, to->stride[d], bytes));
    items = uly_mul(p, items, size);
  }
  return items;
}

bool uly_emit_gather(uly_emitter *e, MlirOperation op) {
  uly_program *p = e->program;
  uly_type w = uly_type_of(e->ir, uly_op_operand(op, 0)), ids = uly_type_of(e->ir, uly_op_operand(op, 1));
  uly_layout li = uly_layout_of(p, &e->ir->names, &ids), lw = uly_layout_of(p, &e->ir->names, &w);
  uly_place table = uly_emit_dense(e, op, &w, uly_emit_whole(e, uly_op_operand(op, 0)), lw.rank - 1), index = uly_emit_whole(e, uly_op_operand(op, 1));
  uly_place to = gather_dest(e, uly_op_result(op, 0), lw.rank - 1);
  uly_emit_set_place(e, uly_op_result(op, 0), to);
  int32_t bytes = uly_dtype_bytes(w.tensor.dtype);
  uint32_t row = uly_program_const(p, bytes);
  for (int32_t d = 1; d < lw.rank; d++) row = uly_mul(p, row, lw.local[d]);
  uly_call_builder c = uly_call_begin(e, op, ULY_KERNEL_GATHER, ULY_GATHER_N_OPS, ULY_GATHER_N_VALS);
  c.desc->u.gather.ids = ids.tensor.dtype;
  uly_call_set_op(&c, ULY_GATHER_IDS, index.operand, ULY_READ);
  uly_call_set_op(&c, ULY_GATHER_W, table.operand, ULY_READ);
  uly_call_set_op(&c, ULY_GATHER_OUT, to.operand, ULY_WRITE);
  uint32_t items = set_ids(&c, &li, &index, &to, bytes);
  uly_call_set_val(&c, ULY_GATHER_ROW_BYTES, row);
  uly_call_set_val(&c, ULY_GATHER_W_0, uly_scale(p, table.stride[0], bytes));
  uly_call_set_val(&c, ULY_GATHER_LIMIT, lw.global[0]);
  uly_call_end(&c, items, ULY_NONE, "gather");
  return true;
}
