// emit: kernels that go row by row (maps, norms, sums over the last dim, losses), exact sums over rows, and gathers of a table's rows.
#include "passes/emit.h"

static bool is_null(MlirOperation op) { return mlirOperationIsNull(op); }
static MlirValue operand(MlirOperation op, int i) { return mlirOperationGetOperand(op, i); }

static int64_t const_cols(const uly_program *p, const uly_call_builder *c) {
  const uly_node *node = &p->nodes[c->vals[ULY_ROWS_COLS].node];
  return node->kind == ULY_NODE_CONST ? node->value : 0;
}

static MlirOperation map_before(MlirOperation op) {
  MlirValue x = operand(op, 0);
  return mlirValueIsABlockArgument(x) ? (MlirOperation){NULL} : uly_value_op(x);
}

// The input of a norm or sum: the map before it, or the argument itself.
static void set_input(uly_call_builder *c, const uly_site *site, MlirOperation op, const uly_space *space, uly_hook *hook) {
  MlirOperation before = map_before(op);
  if (is_null(before))
    uly_hook_load(c, site, operand(op, 0), space, hook);
  else {
    uly_hook_build(c, site, before, space, NULL, 0, hook);
    uly_hook_store(c, uly_type_of(c->e->ir, operand(op, 0)).tensor.dtype, hook);
  }
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
    if (!sum) index[d] = space->index[d];
    else if (keep) index[d] = d == dim ? -1 : space->index[d];
    else index[d] = space->index[d < dim ? d : d + 1];
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
      if (!mlirValueIsABlockArgument(operand(last, i))) op = uly_value_op(operand(last, i));
    if (is_null(op)) return emit_map(site, last);
  }
  uly_type x = uly_type_of(e->ir, operand(op, 0));
  uly_space space = uly_space_along(e, &x, x.tensor.rank - 1);
  uly_call_builder c = uly_call_begin(e, site->call, ULY_KERNEL_ROWS, ULY_ROWS_N_OPS, ULY_ROWS_N_VALS);
  uint32_t rows = uly_rows_set_space(&c, &space);
  uly_rows_desc *d = &c.desc->u.rows;
  *d = (uly_rows_desc){.mode = mode_of(op), .cols = const_cols(e->program, &c), .eps = uly_op_f64(op, "eps", 0)};
  set_input(&c, site, op, &space, &d->in);
  uly_hook_input y = {.value = uly_op_result(op, 0)};
  if (mlirOperationGetNumOperands(op) > 1) y.scale = operand(op, 1);
  if (mlirOperationGetNumOperands(op) == 3) y.shift = operand(op, 2);
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
  uly_type x = uly_type_of(e->ir, operand(op, 0)), labels = uly_type_of(e->ir, operand(op, 1));
  int32_t rank = labels.tensor.rank;
  uly_space space = uly_space_along(e, &x, rank);
  uly_call_builder c = uly_call_begin(e, site->call, ULY_KERNEL_NLL, ULY_NLL_N_OPS, ULY_NLL_N_VALS);
  uint32_t rows = uly_rows_set_space(&c, &space);
  c.desc->u.nll = (uly_nll_desc){.labels = labels.tensor.dtype, .ignore = uly_op_i64(op, "ignore", 0), .stats = stats != NULL};
  if (stats) uly_call_set_op(&c, ULY_NLL_STATS, *stats, ULY_READ);
  else set_input(&c, site, op, &space, &c.desc->u.nll.in);
  uint32_t tiles = uly_program_op(e->program, ULY_NODE_CDIV, c.vals[ULY_NLL_COLS].node, uly_program_const(e->program, ULY_NLL_TILE));
  uint32_t scratch = uly_scale(e->program, uly_add(e->program, tiles, uly_program_const(e->program, 1)), 2 * (int64_t)sizeof(float));
  MlirValue result = uly_op_result(site->call, 0);
  uly_place at = uly_site_place(site, operand(op, 1)), to = uly_emit_dest(e, result);
  uly_emit_set_place(e, result, to);
  uly_call_set_op(&c, ULY_NLL_LABELS, at.operand, ULY_READ);
  uly_call_set_op(&c, ULY_NLL_OUT, to.operand, ULY_WRITE);
  for (int i = 0; i < 5; i++) uly_call_set_val(&c, ULY_NLL_DIM_0 + i, uly_program_const(e->program, -1));
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

// ---- exact sums over rows, and of ints

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
  uly_type x = uly_type_of(e->ir, operand(op, 0)), y = uly_type_of(e->ir, result);
  uly_space space = rowsum_space(e, &x, &y, op);
  bool ints = y.tensor.dtype == ULY_I64, partial = false;
  uly_call_builder c = uly_call_begin(e, site->call, ULY_KERNEL_ROWSUM, ULY_ROWSUM_N_OPS, ULY_ROWSUM_N_VALS);
  uly_rows_set_space(&c, &space);
  set_input(&c, site, op, &space, &c.desc->u.rowsum.term);
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
  MlirValue in = operand(op, 0), out = uly_op_result(op, 0);
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

// ---- gathers

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
  uly_type w = uly_type_of(e->ir, operand(op, 0)), ids = uly_type_of(e->ir, operand(op, 1));
  uly_layout li = uly_layout_of(p, &e->ir->names, &ids), lw = uly_layout_of(p, &e->ir->names, &w);
  uly_place table = uly_emit_dense(e, op, &w, uly_emit_whole(e, operand(op, 0)), lw.rank - 1), index = uly_emit_whole(e, operand(op, 1));
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
