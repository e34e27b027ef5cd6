// emit: collectives. All are one exchange record: bytes(i → j) = unit · rows(i) · cols(j).
//
//   rows to heads   rank i sends its rows of j's heads     rows = s_i    cols = Σ over operands of heads(j) · width    [s_i][batch][q heads | k heads | v heads][width]
//   heads to rows   rank i sends its heads of j's rows     rows = Σ heads(i) · width    cols = s_j                    [s_j][batch][o heads | lse heads][width]
//   all-gather      everyone gets rank i's share           rows = n_i    cols = 1
#include "passes/emit.h"

static uint32_t one(uly_emitter *e) { return uly_program_const(e->program, 1); }
static uint32_t zero(uly_emitter *e) { return uly_program_const(e->program, 0); }

static int32_t axis_of(const uly_emitter *e, MlirOperation op) {
  uly_str name = uly_op_str(op, "axis");
  for (int32_t a = 0; a < e->ir->names.n_axes; a++)
    if (uly_str_equal(e->ir->names.axes[a].name, name)) return a;
  ULY_ASSERT(false && "a grid axis");
  return 0;
}

MlirOperation uly_emit_message_of(const uly_emitter *e, MlirValue value, int *out_operand) {
  MlirOpOperand use = mlirValueGetFirstUse(value);
  MlirOperation none = {NULL};
  if (e->ir->unfused || mlirOpOperandIsNull(use) || !mlirOpOperandIsNull(mlirOpOperandGetNextUse(use))) return none;
  MlirOperation user = mlirOpOperandGetOwner(use);
  if (uly_op_kind(user) != ULY_KIND_EXCHANGE) return none;
  *out_operand = (int)mlirOpOperandGetOperandNumber(use);
  return user;
}

static void add_step(uly_emitter *e, MlirOperation op, uly_step_kind kind, uint32_t exchange) {
  uly_emit_step(e, (uly_step){.kind = kind,
                              .a = exchange,
                              .items = zero(e),
                              .scratch = ULY_NONE,
                              .predicate = ULY_NONE,
                              .name = e->program->exchanges[exchange].name,
                              .spec_line = uly_op_loc(e->ir, op).line});
}

// Buffers, record and POST. |received|: units of the receive buffer; |sent|: of the send buffer.
static uint32_t add_exchange(uly_emitter *e, MlirOperation op, uly_exchange x, uint32_t received, uint32_t sent, const char *name) {
  x.receive = uly_emit_bytes(e, uly_mul(e->program, x.unit, received), ULY_BUFFER_RECEIVE, "receive");
  x.send = uly_emit_bytes(e, uly_mul(e->program, x.unit, sent), 0, "send");
  x.name = uly_program_name(e->program, uly_str_of(name));
  x.spec_line = uly_op_loc(e->ir, op).line;
  uint32_t row = uly_program_add_exchanges(e->program, x);
  add_step(e, op, ULY_STEP_POST, row);
  return row;
}

// ---- all-to-all

// Product of the sizes of dims [from, rank), or of the dims before |to| that are not |row|.
static uint32_t width_of(uly_emitter *e, const uly_layout *layout, int32_t from) {
  uint32_t n = one(e);
  for (int32_t d = from; d < layout->rank; d++) n = uly_mul(e->program, n, layout->local[d]);
  return n;
}

static uint32_t batch_of(uly_emitter *e, const uly_layout *layout, int32_t row, int32_t cut) {
  uint32_t n = one(e);
  for (int32_t d = 0; d < cut; d++)
    if (d != row) n = uly_mul(e->program, n, layout->local[d]);
  return n;
}

// Strides of a message row by row: dims before |cut| around rows of |row_elems| elements, dims behind it dense.
static void message_strides(uly_emitter *e, const uly_layout *layout, int32_t row, int32_t cut, uint32_t batch, uint32_t row_elems, uint32_t *stride) {
  uint32_t n = one(e);
  for (int32_t d = layout->rank - 1; d >= cut; d--) stride[d] = n, n = uly_mul(e->program, n, layout->local[d]);
  n = row_elems;
  for (int32_t d = cut - 1; d >= 0; d--)
    if (d != row) stride[d] = n, n = uly_mul(e->program, n, layout->local[d]);
  stride[row] = uly_mul(e->program, batch, row_elems);
}

typedef struct exchange_shape {
  uly_type in, out;
  int32_t row, cut;
} exchange_shape;

static exchange_shape shape_of(const uly_emitter *e, MlirOperation op, int j, int32_t axis) {
  exchange_shape s = {.in = uly_type_of(e->ir, uly_op_operand(op, j)), .out = uly_type_of(e->ir, uly_op_result(op, j))};
  s.row = uly_type_row_dim(&e->ir->names, &s.in.tensor, axis);
  s.cut = s.in.dist[axis].dim == s.row ? s.out.dist[axis].dim : s.in.dist[axis].dim;
  ULY_ASSERT(s.row >= 0 && s.row < s.cut);
  return s;
}

// What each operand takes of a message row: its heads at the receiver (rows to heads) or at the sender (heads to rows).
static void add_parts(uly_emitter *e, uly_sending *s) {
  uly_program *p = e->program;
  s->row_elems = zero(e);
  for (int j = 0; j < (int)mlirOperationGetNumResults(s->op); j++) {
    exchange_shape shape = shape_of(e, s->op, j, s->axis);
    const uly_type *heads = s->to_heads ? &shape.out : &shape.in;
    uly_layout layout = uly_layout_of(p, &e->ir->names, &shape.in);
    uly_layout_cut(p, s->axis, heads->tensor.dims[shape.cut], heads->dist[s->axis], &s->part_first[j], &s->part_count[j]);
    s->part_width[j] = width_of(e, &layout, shape.cut + 1);
    s->part_offset[j] = s->row_elems;
    s->row_elems = uly_add(p, s->row_elems, uly_mul(p, s->part_count[j], s->part_width[j]));
  }
}

static void start(uly_emitter *e, uly_sending *s) {
  uly_program *p = e->program;
  exchange_shape shape = shape_of(e, s->op, 0, s->axis);
  uly_layout in = uly_layout_of(p, &e->ir->names, &shape.in), out = uly_layout_of(p, &e->ir->names, &shape.out);
  s->to_heads = shape.in.dist[s->axis].dim == shape.row;
  s->batch = batch_of(e, &in, shape.row, shape.cut);
  add_parts(e, s);
  message_strides(e, &in, shape.row, shape.cut, s->batch, s->row_elems, s->stride);
  uint32_t before = uly_over_peers(p, ULY_NODE_PEER_BEFORE, s->row_elems, s->axis), all = uly_over_peers(p, ULY_NODE_PEER_SUM, s->row_elems, s->axis);
  uly_exchange x = {.axis = (uint32_t)s->axis, .unit = uly_scale(p, s->batch, uly_dtype_bytes(shape.in.tensor.dtype)), .dtype = shape.in.tensor.dtype};
  if (s->to_heads) {
    x.rows = in.local[shape.row], x.row_start = in.start[shape.row], x.cols = s->row_elems, x.col_start = before;
    s->exchange = add_exchange(e, s->op, x, uly_mul(p, in.global[shape.row], s->row_elems), uly_mul(p, in.local[shape.row], all), "rows to heads");
  } else {
    s->receiver_row = out.start[shape.row], s->receiver_rows = out.local[shape.row];
    x.rows = s->row_elems, x.row_start = before, x.cols = s->receiver_rows, x.col_start = s->receiver_row;
    s->exchange = add_exchange(e, s->op, x, uly_mul(p, all, s->receiver_rows), uly_mul(p, s->row_elems, in.global[shape.row]), "heads to rows");
  }
}

uly_sending *uly_emit_sending(uly_emitter *e, MlirOperation op) {
  for (int i = 0; i < e->n_sendings; i++)
    if (mlirOperationEqual(e->sendings[i]->op, op)) return e->sendings[i];
  ULY_MAKE_ROOM(e->arena, e->sendings, e->n_sendings, e->cap_sendings, 16);
  uly_sending *s = e->sendings[e->n_sendings++] = ULY_NEW(e->arena, uly_sending);
  s->op = op;
  s->axis = axis_of(e, op);
  start(e, s);
  return s;
}

uly_operand uly_emit_peers(const uly_sending *s) { return (uly_operand){.kind = ULY_OPERAND_PEERS, .index = s->exchange, .offset = ULY_NONE}; }

// Operand |j| was not written by the kernel that made it: copies it into the messages.
static void move_in(uly_emitter *e, uly_sending *s, int j) {
  exchange_shape shape = shape_of(e, s->op, j, s->axis);
  uly_layout in = uly_layout_of(e->program, &e->ir->names, &shape.in);
  uly_move_end from = {.place = uly_emit_whole(e, uly_op_operand(s->op, j))};
  uly_move_end to = {.place = {.operand = uly_emit_peers(s)}, .peers = true, .axis = s->axis, .offset = ULY_NONE, .peer_strides = s->to_heads};
  if (s->to_heads)
    to.cut = shape.cut, to.first = s->part_first[j], to.count = s->part_count[j], to.offset = s->part_offset[j];
  else
    to.cut = shape.row, to.first = s->receiver_row, to.count = s->receiver_rows, to.offset = s->part_offset[j];
  message_strides(e, &in, shape.row, shape.cut, s->batch, s->row_elems, to.place.stride);
  uly_emit_move(e, s->op, shape.in.tensor.dtype, in.rank, in.order, in.local, &from, &to);
}

static void set_result(uly_emitter *e, const uly_sending *s, int j) {
  exchange_shape shape = shape_of(e, s->op, j, s->axis);
  uly_layout in = uly_layout_of(e->program, &e->ir->names, &shape.in);
  uly_place place = {.operand = uly_emit_buffer_operand(e, e->program->exchanges[s->exchange].receive)};
  message_strides(e, &in, shape.row, shape.cut, s->batch, s->row_elems, place.stride);
  if (s->to_heads) {
    place = uly_emit_offset(e, place, s->part_offset[j], shape.in.tensor.dtype);
  } else {
    place.operand.kind = ULY_OPERAND_SEGMENTS, place.operand.index = s->exchange;
    place.segmented = true;
    place.segments = (uly_segments){.axis = s->axis, .dim = shape.cut, .first = s->part_first[j], .count = s->part_count[j], .offset = s->part_offset[j]};
  }
  uly_emit_set_place(e, uly_op_result(s->op, j), place);
}

bool uly_emit_exchange(uly_emitter *e, MlirOperation op) {
  uly_sending *s = uly_emit_sending(e, op);
  int n = (int)mlirOperationGetNumResults(op);
  for (int j = 0; j < n; j++)
    if (!(s->written & 1u << j)) move_in(e, s, j);
  add_step(e, op, ULY_STEP_SEND, s->exchange);
  add_step(e, op, ULY_STEP_WAIT, s->exchange);
  for (int j = 0; j < n; j++) set_result(e, s, j);
  return true;
}

// ---- all-gather

// Dims with |first| in front, the others in storage order.
static void order_with_first(const uly_layout *layout, int32_t first, int32_t *order) {
  int32_t n = 0;
  order[n++] = first;
  for (int32_t i = 0; i < layout->rank; i++)
    if (layout->order[i] != first) order[n++] = layout->order[i];
}

uly_place uly_emit_gather_shares(uly_emitter *e, MlirOperation op, int32_t axis, const uly_share *share, uint32_t *out_exchange) {
  uly_program *p = e->program;
  const uly_layout *layout = &share->layout;
  int32_t order[ULY_GRAPH_MAX_DIMS];
  order_with_first(layout, share->dim, order);
  uly_move_end source = {.place = share->from}, to = {.peers = true, .axis = axis, .cut = -1, .offset = ULY_NONE};
  uint32_t n = one(e);
  for (int32_t i = layout->rank - 1; i >= 0; i--) to.place.stride[order[i]] = n, n = i ? uly_mul(p, n, layout->local[order[i]]) : n;
  uly_exchange x = {.axis = (uint32_t)axis,
                    .unit = uly_scale(p, n, uly_dtype_bytes(share->dtype)),
                    .rows = layout->local[share->dim],
                    .row_start = share->before,
                    .cols = one(e),
                    .col_start = zero(e),
                    .dtype = share->dtype,
                    .flags = ULY_EXCHANGE_GATHER};
  uint32_t exchange = add_exchange(e, op, x, share->total, x.rows, "all-gather");
  to.place.operand = (uly_operand){.kind = ULY_OPERAND_PEERS, .index = exchange, .offset = ULY_NONE};
  uly_emit_move(e, op, share->dtype, layout->rank, order, layout->local, &source, &to);
  add_step(e, op, ULY_STEP_SEND, exchange);
  add_step(e, op, ULY_STEP_WAIT, exchange);
  to.place.operand = uly_emit_buffer_operand(e, p->exchanges[exchange].receive);
  if (out_exchange) *out_exchange = exchange;
  return to.place;
}

bool uly_emit_all_gather(uly_emitter *e, MlirOperation op) {
  int32_t axis = axis_of(e, op);
  uly_type type = uly_type_of(e->ir, uly_op_operand(op, 0));
  uly_layout layout = uly_layout_of(e->program, &e->ir->names, &type);
  int32_t dim = type.dist[axis].dim;
  if (type.dist[axis].kind != ULY_DIST_SPLIT) return uly_emit_unsupported(e, op, "gathering anything but a split");
  uly_share share = {.dtype = type.tensor.dtype, .layout = layout, .dim = dim, .before = layout.start[dim], .total = layout.global[dim]};
  share.from = uly_emit_whole(e, uly_op_operand(op, 0));
  uly_emit_set_place(e, uly_op_result(op, 0), uly_emit_gather_shares(e, op, axis, &share, NULL));
  return true;
}

uly_operand uly_emit_gather_bytes(uly_emitter *e, MlirOperation op, int32_t axis, uly_operand from, uint32_t bytes) {
  uly_program *p = e->program;
  uint32_t rank = uly_program_node(p, (uly_node){.kind = ULY_NODE_AXIS_RANK, .value = axis});
  uly_share share = {.dtype = ULY_U8, .layout = {.rank = 2, .order = {0, 1}, .local = {one(e), bytes}}, .before = rank, .total = uly_layout_axis_size(p, axis)};
  share.from = (uly_place){.operand = from, .stride = {bytes, one(e)}};
  uint32_t exchange;
  uly_emit_gather_shares(e, op, axis, &share, &exchange);
  return (uly_operand){.kind = ULY_OPERAND_SEGMENTS, .index = exchange, .offset = ULY_NONE};
}
