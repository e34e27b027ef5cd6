// emit: attention. q, k and v are read where the exchange put them; o is written into the messages of the reverse exchange where that is its only use.
#include "passes/emit.h"

enum { BATCH, ROW, HEAD, FEATURE }; // logical dims of q, k, v and o

// Of row, batch and head: three values from |slot| on.
static void set_strides(uly_call_builder *c, int slot, const uly_place *place) {
  uly_call_set_val(c, slot, place->stride[ROW]);
  uly_call_set_val(c, slot + 1, place->stride[BATCH]);
  uly_call_set_val(c, slot + 2, place->stride[HEAD]);
}

static void set_qkv(uly_call_builder *c, const uly_site *site, MlirOperation op, int i) {
  uly_place place = uly_site_dense(site, uly_op_operand(op, i), 1);
  uly_call_set_op(c, ULY_ATTENTION_Q + i, place.operand, ULY_READ);
  set_strides(c, ULY_ATTENTION_Q_S + 3 * i, &place);
}

static uly_expr parse(const uly_emitter *e, uly_str text) {
  uly_expr expr;
  uly_status status = uly_expr_parse(e->arena, text, e->ir->names.symbols, e->ir->names.n_symbols, &expr);
  ULY_ASSERT(status == ULY_OK);
  return expr;
}

static void set_sizes(uly_call_builder *c, const uly_expr *expr, int32_t *size) {
  for (int32_t i = 0; i < expr->n_nodes; i++)
    if (expr->nodes[i].op == ULY_SC_SIZE) {
      uint32_t symbol = uly_program_node(c->e->program, (uly_node){.kind = ULY_NODE_SYM, .value = expr->nodes[i].index});
      size[expr->nodes[i].index] = uly_call_add_val(c, symbol);
    }
}

static void set_captures(uly_call_builder *c, const uly_site *site, MlirOperation op, uly_attention_desc *d) {
  int64_t first = uly_op_i64(op, "captures", 0), n = mlirOperationGetNumOperands(op);
  uint32_t zero = uly_program_const(c->e->program, 0);
  ULY_ASSERT(n - first <= ULY_HOOK_MAX_OPERANDS);
  for (int64_t i = first; i < n; i++) {
    MlirValue value = uly_op_operand(op, i);
    uly_type type = uly_type_of(c->e->ir, value);
    uly_layout layout = uly_layout_of(c->e->program, &c->e->ir->names, &type);
    uly_place place = uly_site_place(site, value);
    uly_capture *capture = &d->captures[d->n_captures++];
    *capture = (uly_capture){.op = uly_call_add_op(c, place.operand, ULY_READ), .dtype = type.tensor.dtype, .rank = type.tensor.rank};
    for (int32_t k = 0; k < type.tensor.rank; k++) {
      capture->stride[k] = uly_call_add_val(c, place.stride[k]);
      capture->dim[k] = uly_call_add_val(c, layout.local[k]);
      capture->start[k] = layout.start[k] == zero ? -1 : uly_call_add_val(c, layout.start[k]);
    }
  }
}

static void describe(uly_call_builder *c, const uly_site *site, MlirOperation op) {
  uly_attention_desc *d = &c->desc->u.attention;
  uly_emitter *e = c->e;
  uly_type q = uly_type_of(e->ir, uly_op_operand(op, 0)), k = uly_type_of(e->ir, uly_op_operand(op, 1)), v = uly_type_of(e->ir, uly_op_operand(op, 2));
  *d = (uly_attention_desc){.dh = q.tensor.dims[FEATURE].add,
                            .dv = v.tensor.dims[FEATURE].add,
                            .group = q.tensor.dims[HEAD].add / k.tensor.dims[HEAD].add,
                            .scale = uly_op_f64(op, "scale", 1),
                            .dtype = q.tensor.dtype,
                            .has_score = uly_op_has(op, "score"),
                            .mask = parse(e, uly_op_str(op, "mask"))};
  for (int i = 0; i < ULY_MAX_SYMBOLS; i++) d->size[i] = -1;
  set_sizes(c, &d->mask, d->size);
  if (d->has_score) {
    d->score = parse(e, uly_op_str(op, "score"));
    set_sizes(c, &d->score, d->size);
  }
  set_captures(c, site, op, d);
  int64_t sink = uly_op_i64(op, "sink", -1), offset = uly_op_i64(op, "q_offset", -1);
  d->has_sink = sink >= 0;
  if (sink >= 0) uly_call_set_op(c, ULY_ATTENTION_SINK, uly_site_dense(site, uly_op_operand(op, sink), 1).operand, ULY_READ);
  uly_call_set_val(c, ULY_ATTENTION_OFFSET, uly_program_const(e->program, uly_op_i64(op, "q_offset_value", 0)));
  if (offset < 0) return;
  uly_place at = uly_site_place(site, uly_op_operand(op, offset));
  uly_call_set_op(c, ULY_ATTENTION_Q_OFFSET, at.operand, ULY_READ);
  uly_call_set_val(c, ULY_ATTENTION_OFFSET, uly_type_of(e->ir, uly_op_operand(op, offset)).tensor.rank ? at.stride[0] : uly_program_const(e->program, 0));
}

static void set_sizes_of(uly_call_builder *c, MlirOperation op) {
  uly_emitter *e = c->e;
  uly_type q = uly_type_of(e->ir, uly_op_operand(op, 0)), k = uly_type_of(e->ir, uly_op_operand(op, 1));
  uly_layout lq = uly_layout_of(e->program, &e->ir->names, &q), lk = uly_layout_of(e->program, &e->ir->names, &k);
  uly_call_set_val(c, ULY_ATTENTION_S, lq.local[ROW]);
  uly_call_set_val(c, ULY_ATTENTION_T, lk.local[ROW]);
  uly_call_set_val(c, ULY_ATTENTION_B, lq.local[BATCH]);
  uly_call_set_val(c, ULY_ATTENTION_B0, lq.start[BATCH]);
  uly_call_set_val(c, ULY_ATTENTION_H, lq.local[HEAD]);
  uly_call_set_val(c, ULY_ATTENTION_H0, lq.start[HEAD]);
  uly_call_set_val(c, ULY_ATTENTION_K0, lk.start[HEAD]);
}

static void set_output(uly_call_builder *c, const uly_site *site) {
  uly_emitter *e = c->e;
  MlirValue o = uly_op_result(site->call, 0), lse = uly_op_result(site->call, 1);
  int j;
  MlirOperation exchange = uly_emit_message_of(e, o, &j);
  uly_sending *s = mlirOperationIsNull(exchange) ? NULL : uly_emit_sending(e, exchange);
  if (s && !s->to_heads) {
    s->written |= 1u << j;
    uly_operand peers = uly_emit_peers(s);
    peers.offset = uly_scale(e->program, s->part_offset[j], uly_dtype_bytes(c->desc->u.attention.dtype));
    uly_call_set_op(c, ULY_ATTENTION_OUT, peers, ULY_WRITE);
    uly_call_set_peers(c, ULY_ATTENTION_O_ROW, s->receiver_row, s->axis);
    uly_call_set_val(c, ULY_ATTENTION_O_S, uly_mul(e->program, s->batch, s->row_elems));
    uly_call_set_val(c, ULY_ATTENTION_O_B, s->row_elems);
    uly_call_set_val(c, ULY_ATTENTION_O_H, s->part_width[j]);
  } else {
    uly_place to = uly_emit_dest(e, o);
    uly_emit_set_place(e, o, to);
    uly_call_set_op(c, ULY_ATTENTION_OUT, to.operand, ULY_WRITE);
    set_strides(c, ULY_ATTENTION_O_S, &to);
  }
  c->desc->u.attention.has_lse = uly_value_n_uses(lse) > 0;
  if (!c->desc->u.attention.has_lse) return;
  uly_place to = uly_emit_dest(e, lse);
  uly_emit_set_place(e, lse, to);
  uly_call_set_op(c, ULY_ATTENTION_LSE, to.operand, ULY_WRITE);
  set_strides(c, ULY_ATTENTION_L_S, &to);
}

bool uly_emit_attention(const uly_site *site) {
  uly_emitter *e = site->e;
  MlirOperation op = uly_value_op(uly_site_return(site, 0));
  uly_call_builder c = uly_call_begin(e, site->call, ULY_KERNEL_ATTENTION, ULY_ATTENTION_N_OPS, ULY_ATTENTION_N_VALS);
  for (int i = 0; i < 3; i++) set_qkv(&c, site, op, i);
  describe(&c, site, op);
  set_sizes_of(&c, op);
  set_output(&c, site);
  uly_program *p = e->program;
  uint32_t blocks = uly_program_op(p, ULY_NODE_CDIV, c.vals[ULY_ATTENTION_S].node, uly_program_const(p, ULY_ATTENTION_ITEM_ROWS));
  uint32_t items = uly_mul(p, uly_mul(p, c.vals[ULY_ATTENTION_B].node, c.vals[ULY_ATTENTION_H].node), blocks);
  const uly_attention_desc *d = &c.desc->u.attention;
  uly_call_end(&c, items, uly_program_const(p, uly_attention_scratch(d->dh, d->dv)), "attention");
  return true;
}
