// emit: linear layers. A fused function has one result a part: rope ← heads ← map ← linear (two of them: gate and up), or nll ← map ← linear; what is not there left out.
#include "passes/emit.h"

typedef struct part {
  MlirOperation linear[2];
  MlirOperation map, heads, rope, nll;
} part;

static part read_part(const uly_site *site, int i) {
  part p = {0};
  MlirOperation op = uly_value_op(uly_site_return(site, i));
  if (uly_op_kind(op) == ULY_KIND_NLL) p.nll = op, op = uly_value_op(uly_op_operand(op, 0));
  if (uly_op_kind(op) == ULY_KIND_ROPE) p.rope = op, op = uly_value_op(uly_op_operand(op, 0));
  if (uly_op_kind(op) == ULY_KIND_HEADS) p.heads = op, op = uly_value_op(uly_op_operand(op, 0));
  if (uly_op_kind(op) == ULY_KIND_MAP) {
    int n = 0;
    p.map = op;
    for (int j = 0; j < (int)mlirOperationGetNumOperands(op); j++) {
      MlirOperation def = uly_value_op(uly_op_operand(op, j));
      if (!mlirOperationIsNull(def) && uly_op_kind(def) == ULY_KIND_LINEAR && n < 2) p.linear[n++] = def;
    }
    return p;
  }
  p.linear[0] = op;
  return p;
}

static int64_t const_dim(const uly_type *type, int32_t d) { return type->tensor.dims[d].add; }

static uly_gemm_part describe(const uly_site *site, const part *p, MlirValue result) {
  uly_ir *ir = site->e->ir;
  uly_type w = uly_type_of(ir, uly_op_operand(p->linear[0], 1)), y = uly_type_of(ir, result);
  uly_gemm_part d = {
      .mode = mlirOperationIsNull(p->linear[1]) ? ULY_GEMM_PLAIN : ULY_GEMM_PAIR, .n_groups = 1, .group = const_dim(&w, 0), .out = y.tensor.dtype};
  if (!mlirOperationIsNull(p->heads)) {
    uly_type split = uly_type_of(ir, uly_op_result(p->heads, 0));
    d.n_groups = const_dim(&split, split.tensor.rank - 2), d.group = const_dim(&split, split.tensor.rank - 1);
  }
  if (!mlirOperationIsNull(p->rope)) {
    uly_type angle = uly_type_of(ir, uly_op_operand(p->rope, 1));
    d.rope = 2 * const_dim(&angle, angle.tensor.rank - 1);
    d.mode = uly_str_is(uly_op_str(p->rope, "pairs"), "half") ? ULY_GEMM_ROPE_HALF : ULY_GEMM_ROPE_INTERLEAVED;
  }
  return d;
}

// ---- weights

static uint32_t part_bytes(uly_emitter *e, const uly_gemm_part *d, int64_t k, uly_dtype w) {
  return uly_program_const(e->program, uly_part_panels(d->mode, d->n_groups, d->group, d->rope) * uly_panel_bytes(k, uly_dtype_bytes(w)));
}

static void emit_pack(const uly_site *site, const part *p, const uly_gemm_part *d, const uly_gemm_desc *gemm, uly_operand to) {
  uly_emitter *e = site->e;
  uly_call_builder c = uly_call_begin(e, site->call, ULY_KERNEL_PACK, ULY_PACK_N_OPS, ULY_PACK_N_VALS);
  c.desc->u.pack = (uly_pack_desc){.k = gemm->k, .mode = d->mode, .group = d->group, .rope = d->rope, .dtype = gemm->w};
  uint32_t one = uly_program_const(e->program, 1);
  for (int i = 0; i < 2 && !mlirOperationIsNull(p->linear[i]); i++) {
    uly_place w = uly_site_place(site, uly_op_operand(p->linear[i], 1));
    if (w.segmented || (w.stride[0] != one && w.stride[1] != one)) w = uly_site_dense(site, uly_op_operand(p->linear[i], 1), 2);
    uly_call_set_op(&c, ULY_PACK_W0 + i, w.operand, ULY_READ);
    uly_call_set_val(&c, ULY_PACK_COLUMN_0 + i, w.stride[0]);
    uly_call_set_val(&c, ULY_PACK_TERM_0 + i, w.stride[1]);
  }
  uly_call_set_op(&c, ULY_PACK_OUT, to, ULY_WRITE);
  uly_call_end(&c, uly_program_const(e->program, uly_part_panels(d->mode, d->n_groups, d->group, d->rope)), ULY_NONE, "pack");
}

// How many loops the weights of the call follow, -1 where one of them is computed in the run.
static int weight_loops(const uly_site *site, const part *parts, int n) {
  int most = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < 2 && !mlirOperationIsNull(parts[i].linear[j]); j++) {
      uly_place w = uly_site_place(site, uly_op_operand(parts[i].linear[j], 1));
      if (!uly_emit_at_load(site->e, &w)) return -1;
      int loops = uly_emit_loops_of(&w.operand);
      if (loops > most) most = loops;
    }
  return most;
}

// The packed weights of all parts, as the kernel's operand: packed at load where that knows them, else in every run.
static uly_operand emit_weights(const uly_site *site, const part *parts, const uly_gemm_desc *gemm) {
  uly_emitter *e = site->e;
  int loops = e->load_loops;
  e->load_loops = weight_loops(site, parts, gemm->n_parts);
  uint32_t bytes = uly_program_const(e->program, 0), offset = bytes;
  for (int i = 0; i < gemm->n_parts; i++) bytes = uly_add(e->program, bytes, part_bytes(e, &gemm->parts[i], gemm->k, gemm->w));
  uly_operand weights = uly_emit_buffer_operand(e, uly_emit_bytes(e, bytes, 0, "weights"));
  for (int i = 0; i < gemm->n_parts; i++) {
    uly_operand to = weights;
    to.offset = offset;
    emit_pack(site, &parts[i], &gemm->parts[i], gemm, to);
    offset = uly_add(e->program, offset, part_bytes(e, &gemm->parts[i], gemm->k, gemm->w));
  }
  e->load_loops = loops;
  return weights;
}

// ---- operands

static void set_input(uly_call_builder *c, const uly_site *site, MlirValue x, const uly_space *space) {
  uly_emitter *e = c->e;
  MlirValue outside = uly_op_operand(site->call, (int)mlirBlockArgumentGetArgNumber(x));
  uly_place place = uly_emit_place(e, outside);
  int32_t last = space->layout.rank - 1;
  bool offset = place.segmented && place.segments.offset != uly_program_const(e->program, 0);
  if (place.segmented && (place.segments.dim != last || offset || last > 2)) place = uly_emit_whole(e, outside);
  if (!place.segmented && !(uly_place_is_dense(e, &space->type, &place, 1) && uly_is_flat(e, &space->layout, place.stride, 1, last))) {
    uly_place from = place;
    place = uly_emit_buffer(e, &space->type, "rows");
    uly_emit_copy(e, site->call, &space->type, &from, &place);
  }
  int32_t axis = place.segmented ? place.segments.axis : -1;
  uint32_t zero = uly_program_const(e->program, 0), one = uly_program_const(e->program, 1);
  uly_call_set_op(c, ULY_GEMM_X, place.operand, ULY_READ);
  uly_call_set_peers(c, ULY_GEMM_X_S, last > 0 ? place.stride[space->layout.order[0]] : zero, axis);
  uly_call_set_peers(c, ULY_GEMM_X_B, last > 1 ? place.stride[space->layout.order[last - 1]] : zero, axis);
  uly_call_set_peers(c, ULY_GEMM_X_K, place.segmented ? place.segments.count : space->layout.local[last], axis);
  uly_call_set_val(c, ULY_GEMM_ROWS, last > 0 ? space->layout.local[space->layout.order[0]] : one);
  uint32_t batch = one; // all dims between the first and the last
  for (int32_t i = 1; i < last; i++) batch = uly_mul(e->program, batch, space->layout.local[space->layout.order[i]]);
  uly_call_set_val(c, ULY_GEMM_BATCH, batch);
}

static void set_angles(uly_call_builder *c, const uly_site *site, const part *p, const uly_space *space) {
  uly_place cosines = uly_site_place(site, uly_op_operand(p->rope, 1)), sines = uly_site_place(site, uly_op_operand(p->rope, 2));
  uly_call_set_op(c, ULY_GEMM_COS, cosines.operand, ULY_READ);
  uly_call_set_op(c, ULY_GEMM_SIN, sines.operand, ULY_READ);
  uly_call_set_val(c, ULY_GEMM_ROPE_S, cosines.stride[space->layout.order[0]]);
  if (space->layout.rank > 2) uly_call_set_val(c, ULY_GEMM_ROPE_B, cosines.stride[space->layout.order[1]]);
}

static void set_message(uly_call_builder *c, const uly_sending *s, int i, int exchange_operand, const uly_space *space) {
  if (i == 0) uly_call_set_op(c, ULY_GEMM_OUT, uly_emit_peers(s), ULY_WRITE);
  uly_call_set_peers(c, ULY_GEMM_OUT_S, s->stride[space->layout.order[0]], s->axis);
  uly_call_set_peers(c, ULY_GEMM_OUT_B, space->layout.rank > 2 ? s->stride[space->layout.order[1]] : uly_program_const(c->e->program, 0), s->axis);
  uly_call_set_peers(c, ULY_GEMM_OUT_C + i, s->part_offset[exchange_operand], s->axis);
  uly_call_set_peers(c, ULY_GEMM_OUT_G0 + i, s->part_first[exchange_operand], s->axis);
  uly_call_set_peers(c, ULY_GEMM_OUT_GN + i, s->part_count[exchange_operand], s->axis);
}

static void set_output(uly_call_builder *c, const uly_site *site, int i, const uly_space *space) {
  int j;
  MlirValue result = uly_op_result(site->call, i);
  MlirOperation exchange = uly_emit_message_of(c->e, result, &j);
  if (!mlirOperationIsNull(exchange) && c->desc->u.gemm.message) {
    uly_sending *s = uly_emit_sending(c->e, exchange);
    ULY_ASSERT(s->to_heads);
    set_message(c, s, i, j, space);
    s->written |= 1u << j;
    return;
  }
  int32_t last = space->layout.rank - 1;
  uly_place to = uly_emit_dest(c->e, result);
  if (last > 2 && !uly_is_flat(c->e, &space->layout, to.stride, 1, last)) {
    uly_type type = uly_type_of(c->e->ir, result);
    to = uly_emit_buffer(c->e, &type, "rows");
  }
  uly_emit_set_place(c->e, result, to);
  uly_call_set_op(c, ULY_GEMM_OUT + i, to.operand, ULY_WRITE);
  if (last > 0) uly_call_set_val(c, ULY_GEMM_OUT_S + i, to.stride[space->layout.order[0]]);
  if (last > 1) uly_call_set_val(c, ULY_GEMM_OUT_B + i, to.stride[space->layout.order[last - 1]]);
}

// The output of a linear whose rows go into a loss: their statistics, which the loss is then made of.
static uly_operand set_stats(uly_call_builder *c, const uly_site *site, MlirOperation nll, const uly_space *space) {
  uly_program *p = c->e->program;
  uly_type logits = uly_type_of(c->e->ir, uly_op_operand(nll, 0)), labels = uly_type_of(c->e->ir, uly_op_operand(nll, 1));
  uly_place at = uly_site_place(site, uly_op_operand(nll, 1));
  uint32_t row = uly_program_const(p, uly_nll_row(uly_nll_tiles(const_dim(&logits, logits.tensor.rank - 1)))), batch = c->vals[ULY_GEMM_BATCH].node;
  uint32_t elements = uly_mul(p, uly_mul(p, c->vals[ULY_GEMM_ROWS].node, batch), row);
  uly_operand stats = uly_emit_buffer_operand(c->e, uly_emit_bytes(c->e, uly_scale(p, elements, (int64_t)sizeof(float)), 0, "statistics"));
  c->desc->u.gemm.labels = uly_dtype_bytes(labels.tensor.dtype);
  uly_call_set_op(c, ULY_GEMM_LABELS, at.operand, ULY_READ);
  for (int32_t i = 0; i < labels.tensor.rank; i++) uly_call_set_val(c, ULY_GEMM_LABELS_S + i, at.stride[space->layout.order[i]]);
  uly_call_set_op(c, ULY_GEMM_OUT, stats, ULY_WRITE);
  uly_call_set_val(c, ULY_GEMM_OUT_S, batch);
  uly_call_set_val(c, ULY_GEMM_OUT_B, uly_program_const(p, 1));
  return stats;
}

static void set_epilogue(uly_call_builder *c, const uly_site *site, const part *p, const uly_space *space, uly_hook *hook) {
  uly_hook_input inputs[2] = {0};
  int n = mlirOperationIsNull(p->linear[1]) ? 1 : 2;
  bool biased = false;
  for (int i = 0; i < n; i++) {
    inputs[i].value = uly_op_result(p->linear[i], 0);
    if (mlirOperationGetNumOperands(p->linear[i]) == 3) inputs[i].shift = uly_op_operand(p->linear[i], 2), biased = true;
  }
  // A rotation and a loss take what the operation before them stores.
  MlirOperation next = mlirOperationIsNull(p->rope) ? p->nll : p->rope;
  uly_dtype dtype = mlirOperationIsNull(next) ? ULY_F32 : uly_type_of(c->e->ir, uly_op_operand(next, 0)).tensor.dtype;
  if (mlirOperationIsNull(p->map) && !biased && dtype == ULY_F32) return;
  uly_hook_build(c, site, p->map, space, inputs, n, hook);
  uly_hook_store(c, dtype, hook);
}

// Whether the result goes into an exchange that gives each rank its heads, of which the kernel knows where they begin.
static bool feeds_message(const uly_site *site, const part *p) {
  int j;
  MlirOperation exchange = uly_emit_message_of(site->e, uly_op_result(site->call, 0), &j);
  if (mlirOperationIsNull(exchange) || mlirOperationIsNull(p->heads)) return false;
  uly_type from = uly_type_of(site->e->ir, uly_op_operand(exchange, j)), to = uly_type_of(site->e->ir, uly_op_result(exchange, j));
  for (int32_t a = 0; a < to.n_axes; a++)
    if (!uly_dist_equal(from.dist[a], to.dist[a])) return to.dist[a].dim == to.tensor.rank - 2;
  return false;
}

bool uly_emit_gemm(const uly_site *site) {
  uly_emitter *e = site->e;
  part parts[ULY_GEMM_MAX_PARTS];
  int n = (int)mlirOperationGetNumResults(site->call);
  for (int i = 0; i < n; i++) parts[i] = read_part(site, i);
  MlirOperation first = parts[0].linear[0];
  uly_type x = uly_type_of(e->ir, uly_op_operand(first, 0)), w = uly_type_of(e->ir, uly_op_operand(first, 1)), y = uly_type_of(e->ir, uly_op_result(first, 0));
  uly_space in = uly_space_of(e, &x), out = uly_space_of(e, &y);
  uly_gemm_desc gemm = {
      .k = const_dim(&x, x.tensor.rank - 1), .n_parts = n, .message = feeds_message(site, &parts[0]), .x = x.tensor.dtype, .w = w.tensor.dtype};
  for (int i = 0; i < n; i++) gemm.parts[i] = describe(site, &parts[i], uly_site_return(site, i));
  uly_operand weights = emit_weights(site, parts, &gemm);
  uly_call_builder c = uly_call_begin(e, site->call, ULY_KERNEL_GEMM, ULY_GEMM_N_OPS, ULY_GEMM_N_VALS);
  c.desc->u.gemm = gemm;
  set_input(&c, site, uly_op_operand(parts[0].linear[0], 0), &in);
  uly_call_set_op(&c, ULY_GEMM_W, weights, ULY_READ);
  int64_t column_items = 0;
  for (int i = 0; i < n; i++) {
    const uly_gemm_part *d = &gemm.parts[i];
    if (!mlirOperationIsNull(parts[i].rope)) set_angles(&c, site, &parts[i], &in);
    set_epilogue(&c, site, &parts[i], &out, &c.desc->u.gemm.parts[i].epilogue);
    column_items += uly_cdiv(uly_part_panels(d->mode, d->n_groups, d->group, d->rope), ULY_GEMM_ITEM_PANELS);
  }
  uly_operand stats;
  if (!mlirOperationIsNull(parts[0].nll))
    stats = set_stats(&c, site, parts[0].nll, &in);
  else
    for (int i = 0; i < n; i++) set_output(&c, site, i, &in);
  uint32_t rows = uly_mul(e->program, c.vals[ULY_GEMM_ROWS].node, c.vals[ULY_GEMM_BATCH].node);
  uint32_t row_items = uly_program_op(e->program, ULY_NODE_CDIV, rows, uly_program_const(e->program, ULY_GEMM_ITEM_ROWS));
  uly_call_end(&c, uly_scale(e->program, row_items, column_items), uly_program_const(e->program, ULY_GEMM_SCRATCH_BYTES), "linear");
  return mlirOperationIsNull(parts[0].nll) || uly_emit_nll_of(site, parts[0].nll, &stats);
}
