// emit: rope that no linear took in, as elementwise code over R / 2 columns: first partners, second partners, and a copy of what is not turned.
#include "passes/emit.h"

typedef struct turn {
  uly_emitter *e;
  MlirOperation op;
  uly_type x, half; // half: x with R / 2 columns
  uly_place from, to, cosines, sines;
  int64_t rope;
  bool interleaved;
} turn;

static uly_place partner(const turn *t, uly_place place, int which) {
  int32_t d = t->x.tensor.rank - 1;
  uly_program *p = t->e->program;
  uint32_t at = uly_scale(p, place.stride[d], which ? (t->interleaved ? 1 : t->rope / 2) : 0);
  if (which) place = uly_emit_offset(t->e, place, at, t->x.tensor.dtype);
  if (t->interleaved) place.stride[d] = uly_scale(p, place.stride[d], 2);
  return place;
}

// y0 = x0 cos − x1 sin;  y1 = x1 cos + x0 sin
static void turn_one(const turn *t, int which) {
  uly_emitter *e = t->e;
  uly_space space = uly_space_of(e, &t->half);
  uly_call_builder c = uly_call_begin(e, t->op, ULY_KERNEL_ROWS, ULY_ROWS_N_OPS, ULY_ROWS_N_VALS);
  uint32_t rows = uly_rows_set_space(&c, &space);
  c.desc->u.rows = (uly_rows_desc){.mode = ULY_ROWS_MAP, .cols = t->rope / 2};
  uly_hook *h = &c.desc->u.rows.in;
  *h = uly_hook_empty(0);
  int32_t angle_index[ULY_GRAPH_MAX_DIMS] = {space.index[0], space.index[1], ULY_HOOK_INDICES - 1};
  uly_type angle = uly_type_of(e->ir, uly_op_operand(t->op, 1));
  for (int i = 0; i < 2; i++) {
    uly_place place = partner(t, t->from, i);
    h->operands[i] = uly_hook_operand_of(&c, &place, &t->half, space.index, ULY_READ);
  }
  h->operands[2] = uly_hook_operand_of(&c, &t->cosines, &angle, angle_index, ULY_READ);
  h->operands[3] = uly_hook_operand_of(&c, &t->sines, &angle, angle_index, ULY_READ);
  h->n_operands = 4;
  uly_place to = partner(t, t->to, which);
  h->out = uly_hook_operand_of(&c, &to, &t->half, space.index, ULY_WRITE);
  uly_expr_builder *b = uly_expr_begin(e->arena);
  int32_t x[4];
  for (int32_t i = 0; i < 4; i++) x[i] = uly_expr_leaf(b, ULY_SC_OPERAND, ULY_SCALAR_FLOAT, i);
  int32_t own = uly_expr_op(b, ULY_SC_MUL, (int32_t[]){x[which], x[2]}, 2), other = uly_expr_op(b, ULY_SC_MUL, (int32_t[]){x[1 - which], x[3]}, 2);
  h->expr = uly_expr_end(b, uly_expr_op(b, which ? ULY_SC_ADD : ULY_SC_SUB, (int32_t[]){own, other}, 2));
  uly_call_end(&c, rows, ULY_NONE, "rope");
}

bool uly_emit_rope(uly_emitter *e, MlirOperation op) {
  turn t = {.e = e,
            .op = op,
            .x = uly_type_of(e->ir, uly_op_operand(op, 0)),
            .from = uly_emit_whole(e, uly_op_operand(op, 0)),
            .cosines = uly_emit_whole(e, uly_op_operand(op, 1)),
            .sines = uly_emit_whole(e, uly_op_operand(op, 2)),
            .interleaved = !uly_str_is(uly_op_str(op, "pairs"), "half")};
  uly_type angle = uly_type_of(e->ir, uly_op_operand(op, 1));
  int32_t last = t.x.tensor.rank - 1;
  if (t.x.tensor.rank != 4 || angle.tensor.rank != 3) return uly_emit_unsupported(e, op, "rope of anything but [B, S, H, Dh] by angles [B, S, R / 2]");
  t.rope = 2 * angle.tensor.dims[2].add;
  t.to = uly_emit_dest(e, uly_op_result(op, 0));
  uly_emit_set_place(e, uly_op_result(op, 0), t.to);
  t.half = t.x;
  t.half.tensor.dims[last] = uly_dim_const(t.rope / 2);
  turn_one(&t, 0);
  turn_one(&t, 1);
  int64_t width = t.x.tensor.dims[last].add;
  if (width == t.rope) return true;
  uly_type rest = t.x;
  rest.tensor.dims[last] = uly_dim_const(width - t.rope);
  uint32_t skip = uly_program_const(e->program, t.rope);
  uly_place from = uly_emit_offset(e, t.from, uly_mul(e->program, skip, t.from.stride[last]), t.x.tensor.dtype);
  uly_place to = uly_emit_offset(e, t.to, uly_mul(e->program, skip, t.to.stride[last]), t.x.tensor.dtype);
  uly_emit_copy(e, op, &rest, &from, &to);
  return true;
}
