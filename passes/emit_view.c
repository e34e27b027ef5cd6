// emit: values that stand where others do (heads, merge, reshape, cut, slice, what load turns), or are put together from parts of others (concat, shift).
#include "frontend/dim_groups.h"
#include "passes/emit.h"

static uint32_t constant(uly_emitter *e, int64_t value) { return uly_program_const(e->program, value); }
static uint32_t op2(uly_emitter *e, uly_node_kind kind, uint32_t a, uint32_t b) { return uly_program_op(e->program, kind, a, b); }

// |place| from index |at| of dim |dim| on.
static uly_place from_index(uly_emitter *e, uly_place place, const uly_type *type, int32_t dim, uint32_t at) {
  return uly_emit_offset(e, place, uly_mul(e->program, at, place.stride[dim]), type->tensor.dtype);
}

// The axis that cuts dim |dim|, −1 without one.
static int32_t axis_that_cuts(const uly_type *type, int32_t dim) {
  for (int32_t a = 0; a < type->n_axes; a++)
    if (uly_dist_cuts(type->dist[a], dim)) return a;
  return -1;
}

// ---- reshape, of which heads and merge are two

typedef struct regroup {
  uly_emitter *e;
  uly_type in, out;
  uly_layout from, to;
  uly_dim_group groups[ULY_MAX_DIM_GROUPS];
  int32_t n;
} regroup;

static regroup regroup_of(uly_emitter *e, MlirOperation op) {
  regroup r = {.e = e, .in = uly_type_of(e->ir, uly_op_operand(op, 0)), .out = uly_type_of(e->ir, uly_op_result(op, 0))};
  r.from = uly_layout_of(e->program, &e->ir->names, &r.in);
  r.to = uly_layout_of(e->program, &e->ir->names, &r.out);
  r.n = uly_dim_groups(&r.in.tensor, &r.out.tensor, r.groups);
  ULY_ASSERT(r.n >= 0);
  return r;
}

static bool is_one(const uly_type *type, int32_t d) { return uly_dim_equal(type->tensor.dims[d], uly_dim_const(1)); }

// Whether a group's dims stand in memory as one dim would.
static bool is_flat(const regroup *r, const uly_place *place, const uly_dim_group *g) {
  uint32_t next = ULY_NONE;
  for (int32_t d = g->in_end - 1; d >= g->in; d--) {
    if (is_one(&r->in, d)) continue;
    if (next != ULY_NONE && place->stride[d] != next) return false;
    next = uly_mul(r->e->program, place->stride[d], r->from.local[d]);
  }
  return true;
}

static bool all_flat(const regroup *r, const uly_place *place) {
  for (int32_t i = 0; i < r->n; i++)
    if (!is_flat(r, place, &r->groups[i])) return false;
  return true;
}

// Segments stay where they cut the outermost dim of a group that becomes one dim, and nothing else is regrouped: heads that are merged.
static bool keeps_segments(const regroup *r, const uly_place *place) {
  for (int32_t i = 0; i < r->n; i++) {
    const uly_dim_group *g = &r->groups[i];
    bool cut = g->in <= place->segments.dim && place->segments.dim < g->in_end, one = g->out_end == g->out + 1;
    if (cut ? !one || place->segments.dim != g->in : !one || g->in_end != g->in + 1) return false;
  }
  return all_flat(r, place);
}

static void set_strides(const regroup *r, const uly_place *from, const uly_dim_group *g, uly_place *to) {
  uint32_t stride = constant(r->e, 1);
  for (int32_t d = g->in; d < g->in_end; d++)
    if (!is_one(&r->in, d)) stride = from->stride[d];
  for (int32_t d = g->out_end - 1; d >= g->out; d--) to->stride[d] = stride, stride = uly_mul(r->e->program, stride, r->to.local[d]);
}

static void set_segments(const regroup *r, const uly_place *from, const uly_dim_group *g, uly_place *to) {
  if (!from->segmented || from->segments.dim != g->in) return;
  to->segments.dim = g->out;
  for (int32_t d = g->in + 1; d < g->in_end; d++) {
    to->segments.first = uly_mul(r->e->program, to->segments.first, r->from.local[d]);
    to->segments.count = uly_mul(r->e->program, to->segments.count, r->from.local[d]);
  }
}

static void emit_reshape(uly_emitter *e, MlirOperation op) {
  regroup r = regroup_of(e, op);
  uly_place from = uly_emit_place(e, uly_op_operand(op, 0));
  if (from.segmented && !keeps_segments(&r, &from)) from = uly_emit_whole(e, uly_op_operand(op, 0));
  if (!all_flat(&r, &from)) from = uly_emit_row_major(e, op, &r.in, &from);
  uly_place to = from;
  for (int32_t i = 0; i < r.n; i++) {
    set_strides(&r, &from, &r.groups[i], &to);
    set_segments(&r, &from, &r.groups[i], &to);
  }
  uly_emit_set_place(e, uly_op_result(op, 0), to);
}

// ---- cut

static void emit_cut(uly_emitter *e, MlirOperation op) {
  uly_type in = uly_type_of(e->ir, uly_op_operand(op, 0)), out = uly_type_of(e->ir, uly_op_result(op, 0));
  uly_layout from = uly_layout_of(e->program, &e->ir->names, &in), to = uly_layout_of(e->program, &e->ir->names, &out);
  uly_place place = uly_emit_whole(e, uly_op_operand(op, 0));
  for (int32_t d = 0; d < to.rank; d++)
    if (to.start[d] != from.start[d]) place = from_index(e, place, &in, d, op2(e, ULY_NODE_SUB, to.start[d], from.start[d]));
  uly_emit_set_place(e, uly_op_result(op, 0), place);
}

// ---- dims in another order

static void emit_turned(uly_emitter *e, MlirOperation op) {
  uly_place from = uly_emit_whole(e, uly_op_operand(op, 0)), to = from;
  int32_t rank = uly_type_of(e->ir, uly_op_operand(op, 0)).tensor.rank;
  for (int32_t d = 0; d < rank; d++) to.stride[uly_op_access(op, 0, d)] = from.stride[d];
  uly_emit_set_place(e, uly_op_result(op, 0), to);
}

bool uly_emit_view(uly_emitter *e, MlirOperation op) {
  switch (uly_op_kind(op)) {
  case ULY_KIND_CUT: emit_cut(e, op); break;
  case ULY_KIND_MAP: emit_turned(e, op); break;
  default: emit_reshape(e, op);
  }
  return true;
}

// ---- slices

// The result's place from that of the sliced value: the dim is gone, or begins elsewhere.
static uly_place drop_dim(uly_place place, int32_t dim, bool drop) {
  for (int32_t d = dim; drop && d + 1 < ULY_GRAPH_MAX_DIMS; d++) place.stride[d] = place.stride[d + 1];
  return place;
}

// The entry runs only where |node| is not negative; elsewhere it names the operation's line.
static void require(uly_emitter *e, MlirOperation op, uint32_t node) {
  uint32_t holds = op2(e, ULY_NODE_MAX, constant(e, 0), uly_add(e->program, node, constant(e, 1))), line = constant(e, -(int64_t)uly_op_loc(e->ir, op).line);
  uint32_t when = uly_program_node(e->program, (uly_node){.kind = ULY_NODE_SELECT, .a = holds, .b = constant(e, 1), .c = line});
  e->when = op2(e, ULY_NODE_MIN, e->when, when);
}

typedef struct range {
  int32_t dim;
  uint32_t begin, end;
} range;

// What every rank holds of the range, on all of them. The value is cut along the range's dim.
static uly_place gather_range(uly_emitter *e, MlirOperation op, const uly_type *type, int32_t axis, const range *r, uly_place from) {
  uly_program *p = e->program;
  uly_layout layout = uly_layout_of(p, &e->ir->names, type);
  uint32_t start = layout.start[r->dim], local = layout.local[r->dim], zero = constant(e, 0);
  uint32_t low = op2(e, ULY_NODE_MAX, r->begin, start), stop = op2(e, ULY_NODE_MIN, r->end, uly_add(p, start, local));
  uint32_t count = op2(e, ULY_NODE_MAX, op2(e, ULY_NODE_SUB, stop, low), zero);
  uint32_t at = uly_program_node(p, (uly_node){.kind = ULY_NODE_SELECT, .a = count, .b = op2(e, ULY_NODE_SUB, low, start), .c = zero});
  layout.local[r->dim] = count;
  uly_share share = {.dtype = type->tensor.dtype,
                     .layout = layout,
                     .dim = r->dim,
                     .before = uly_over_peers(e->program, ULY_NODE_PEER_BEFORE, count, axis),
                     .total = op2(e, ULY_NODE_SUB, r->end, r->begin)};
  share.from = from_index(e, from, type, r->dim, at);
  return uly_emit_gather_shares(e, op, axis, &share, NULL);
}

bool uly_emit_slice(uly_emitter *e, MlirOperation op) {
  uly_program *p = e->program;
  uly_type type = uly_type_of(e->ir, uly_op_operand(op, 0));
  uly_dim begin = {0}, end = {0};
  bool ok = uly_op_dim(e->ir, op, "begin", &begin) && uly_op_dim(e->ir, op, "end", &end);
  ULY_ASSERT(ok);
  range r = {.dim = (int32_t)uly_op_i64(op, "dim", 0), .begin = uly_layout_dim(p, begin), .end = uly_layout_dim(p, end)};
  int32_t axis = axis_that_cuts(&type, r.dim);
  require(e, op, r.begin);
  require(e, op, op2(e, ULY_NODE_SUB, r.end, r.begin));
  require(e, op, op2(e, ULY_NODE_SUB, uly_layout_dim(p, type.tensor.dims[r.dim]), r.end));
  uly_place from = uly_emit_whole(e, uly_op_operand(op, 0));
  from = axis < 0 ? from_index(e, from, &type, r.dim, r.begin) : gather_range(e, op, &type, axis, &r, from);
  uly_emit_set_place(e, uly_op_result(op, 0), drop_dim(from, r.dim, uly_op_has(op, "drop")));
  return true;
}

// ---- concat

bool uly_emit_concat(uly_emitter *e, MlirOperation op) {
  uly_program *p = e->program;
  uly_type out = uly_type_of(e->ir, uly_op_result(op, 0));
  uly_layout layout = uly_layout_of(p, &e->ir->names, &out);
  int32_t last = out.tensor.rank - 1;
  uly_place whole = uly_emit_dest(e, uly_op_result(op, 0));
  uint32_t at = constant(e, 0);
  for (int i = 0; i < (int)mlirOperationGetNumOperands(op); i++) {
    uly_type in = uly_type_of(e->ir, uly_op_operand(op, i));
    uly_move_end from = {.place = uly_emit_place(e, uly_op_operand(op, i))}, to = {.place = from_index(e, whole, &out, last, at)};
    for (int32_t d = 0; d < last; d++)
      if (!uly_dim_equal(in.tensor.dims[d], out.tensor.dims[d])) from.place.stride[d] = constant(e, 0);
    layout.local[last] = uly_layout_dim(p, in.tensor.dims[last]);
    uly_emit_move(e, op, out.tensor.dtype, layout.rank, layout.order, layout.local, &from, &to);
    at = uly_add(p, at, layout.local[last]);
  }
  uly_emit_set_place(e, uly_op_result(op, 0), whole);
  return true;
}

// ---- shift: row s is row s − n. A rank has most of its rows itself. Those that it has not are among the last (n > 0) or first |n| of other ranks, which everyone gives to all:
//
//   n = 2      rank 0 [a b c d]   rank 1 [e f g h]   rank 2 [i]          all get [c d | g h | i]
//                     [· · a b]          [c d e f]          [g]          · is fill

typedef struct shift {
  uly_emitter *e;
  MlirOperation op;
  uly_type type;
  uly_layout layout;
  int32_t dim, axis;
  bool forward;
  uint32_t by, rows, given; // |n|; rows here; how many of them others may need
  uly_place from, to;
} shift;

// |count| rows of |from| to row |at| of the result.
static void move_rows(const shift *s, const uly_place *from, uint32_t count, uint32_t at) {
  uly_layout layout = s->layout;
  layout.local[s->dim] = count;
  uly_move_end source = {.place = *from}, target = {.place = from_index(s->e, s->to, &s->type, s->dim, at)};
  uly_emit_move(s->e, s->op, s->type.tensor.dtype, layout.rank, layout.order, layout.local, &source, &target);
}

// What other ranks have, as a value in segments whose rows are counted as everywhere, from the one that the result's first missing row is.
static uly_place gather_rows(const shift *s) {
  uly_emitter *e = s->e;
  uint32_t start = s->layout.start[s->dim], end = uly_add(e->program, start, s->rows), kept = op2(e, ULY_NODE_SUB, s->rows, s->given);
  uly_share share = {.dtype = s->type.tensor.dtype, .layout = s->layout, .dim = s->dim};
  share.layout.local[s->dim] = s->given;
  share.before = uly_over_peers(e->program, ULY_NODE_PEER_BEFORE, s->given, s->axis);
  share.total = uly_over_peers(e->program, ULY_NODE_PEER_SUM, s->given, s->axis);
  share.from = s->forward ? from_index(e, s->from, &s->type, s->dim, kept) : s->from;
  uint32_t exchange;
  uly_place place = uly_emit_gather_shares(e, s->op, s->axis, &share, &exchange);
  place.operand.kind = ULY_OPERAND_SEGMENTS, place.operand.index = exchange;
  place.segmented = true;
  place.segments = (uly_segments){.axis = s->axis, .dim = s->dim, .count = s->given, .offset = constant(e, 0)};
  place.segments.first = s->forward ? uly_add(e->program, start, kept) : start;
  place.segments.base = s->forward ? op2(e, ULY_NODE_SUB, start, s->by) : uly_add(e->program, op2(e, ULY_NODE_SUB, end, s->given), s->by);
  return place;
}

static uly_expr constant_expr(uly_emitter *e, uly_dtype dtype, double value) {
  uly_expr_builder *b = uly_expr_begin(e->arena);
  bool is_float = uly_dtype_get(dtype)->is_float;
  int32_t node = is_float ? uly_expr_const_float(b, value) : dtype == ULY_BOOL ? uly_expr_const_bool(b, value != 0) : uly_expr_const_int(b, (int64_t)value);
  return uly_expr_end(b, node);
}

static void fill_rows(const shift *s, uint32_t count, uint32_t at) {
  uly_emitter *e = s->e;
  uly_space space = uly_space_of(e, &s->type);
  space.layout.local[s->dim] = count;
  uly_call_builder c = uly_call_begin(e, s->op, ULY_KERNEL_ROWS, ULY_ROWS_N_OPS, ULY_ROWS_N_VALS);
  uint32_t rows = uly_rows_set_space(&c, &space);
  uly_hook *h = &c.desc->u.rows.in;
  *h = uly_hook_empty(0);
  h->expr = constant_expr(e, s->type.tensor.dtype, uly_op_f64(s->op, "fill", 0));
  uly_place to = from_index(e, s->to, &s->type, s->dim, at);
  h->out = uly_hook_operand_of(&c, &to, &s->type, space.index, ULY_WRITE);
  uly_call_end(&c, rows, ULY_NONE, "fill");
}

// How many of the result's rows lie before row 0, or behind the last.
static uint32_t count_missing(const shift *s) {
  uly_emitter *e = s->e;
  uint32_t start = s->layout.start[s->dim], end = uly_add(e->program, start, s->rows);
  uint32_t outside = op2(e, ULY_NODE_SUB, s->by, s->forward ? start : op2(e, ULY_NODE_SUB, s->layout.global[s->dim], end));
  return op2(e, ULY_NODE_MIN, op2(e, ULY_NODE_MAX, outside, constant(e, 0)), s->given);
}

bool uly_emit_shift(uly_emitter *e, MlirOperation op) {
  const int64_t most = INT64_C(1) << 60; // beyond every size, and small enough to be added to one
  int64_t n = uly_op_i64(op, "n", 0);
  shift s = {.e = e, .op = op, .type = uly_type_of(e->ir, uly_op_operand(op, 0)), .dim = (int32_t)uly_op_i64(op, "dim", 0), .forward = n > 0};
  s.by = constant(e, n > most || n < -most ? most : n < 0 ? -n : n);
  s.layout = uly_layout_of(e->program, &e->ir->names, &s.type);
  s.axis = axis_that_cuts(&s.type, s.dim);
  s.rows = s.layout.local[s.dim];
  s.given = op2(e, ULY_NODE_MIN, s.by, s.rows);
  s.from = uly_emit_whole(e, uly_op_operand(op, 0));
  s.to = uly_emit_dest(e, uly_op_result(op, 0));
  uint32_t kept = op2(e, ULY_NODE_SUB, s.rows, s.given), missing = count_missing(&s), zero = constant(e, 0);
  if (s.axis >= 0) {
    uly_place others = gather_rows(&s);
    move_rows(&s, &others, s.given, s.forward ? zero : kept);
  }
  uly_place own = s.forward ? s.from : from_index(e, s.from, &s.type, s.dim, s.given);
  move_rows(&s, &own, kept, s.forward ? s.given : zero);
  fill_rows(&s, missing, s.forward ? zero : op2(e, ULY_NODE_SUB, s.rows, missing));
  uly_emit_set_place(e, uly_op_result(op, 0), s.to);
  return true;
}
