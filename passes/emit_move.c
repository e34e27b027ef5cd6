// emit: copies.
#include "passes/emit.h"

typedef struct run {
  int32_t dims[ULY_MOVE_DIMS]; // logical dims of the loops, -1 where a loop has one step
  uint32_t first;              // steps of the first loop: the work items
  uint32_t bytes;
} run;

// How many trailing dims are dense on both sides, and their elements.
static int32_t count_dense(uly_program *p, int32_t rank, const int32_t *order, const uint32_t *sizes, const uly_move_end *from, const uly_move_end *to,
                           uint32_t *out_elements) {
  uint32_t n = uly_program_const(p, 1);
  int32_t dense = 0;
  for (; dense < rank; dense++) {
    int32_t d = order[rank - 1 - dense];
    bool cut = (from->place.segmented && from->place.segments.dim == d) || (to->peers && to->cut == d);
    if (cut || from->place.stride[d] != n || to->place.stride[d] != n) break;
    n = uly_mul(p, n, sizes[d]);
  }
  *out_elements = n;
  return dense;
}

// All is one run, which threads share: the dims in front of those whose sizes are known, at least one, are one loop.
static void cut_run(uly_program *p, uly_dtype dtype, int32_t rank, const int32_t *order, const uint32_t *sizes, run *out) {
  int32_t outer = rank;
  uint32_t n = uly_program_const(p, 1);
  while (outer > 1 && p->nodes[sizes[order[outer - 1]]].kind == ULY_NODE_CONST) n = uly_mul(p, n, sizes[order[--outer]]);
  out->bytes = uly_scale(p, n, uly_dtype_bytes(dtype));
  out->dims[0] = order[outer - 1];
  while (outer > 0) out->first = uly_mul(p, out->first, sizes[order[--outer]]);
}

// Trailing dims that are dense on both sides are one run of bytes; the others are the loops.
static void find_run(uly_program *p, uly_dtype dtype, int32_t rank, const int32_t *order, const uint32_t *sizes, const uly_move_end *from,
                     const uly_move_end *to, run *out) {
  uint32_t n;
  int32_t loops = rank - count_dense(p, rank, order, sizes, from, to, &n);
  out->first = loops ? sizes[order[0]] : uly_program_const(p, 1);
  out->bytes = uly_scale(p, n, uly_dtype_bytes(dtype));
  _Static_assert((int)ULY_GRAPH_MAX_DIMS <= (int)ULY_MOVE_DIMS, "a loop for every dim");
  for (int32_t i = 0; i < ULY_MOVE_DIMS; i++) out->dims[i] = i < loops ? order[i] : -1;
  if (!loops && rank) cut_run(p, dtype, rank, order, sizes, out);
}

static int32_t loop_of(const run *r, int32_t dim) {
  for (int32_t i = 0; i < ULY_MOVE_DIMS; i++)
    if (r->dims[i] == dim) return i;
  return -1;
}

// Of all loops: a kernel that has one number a peer reads them all.
static void set_strides(uly_call_builder *c, int32_t slot, const run *r, int32_t bytes, const uint32_t *stride, int32_t axis) {
  uly_program *p = c->e->program;
  for (int32_t i = 0; i < ULY_MOVE_DIMS; i++)
    uly_call_set_peers(c, slot + i, r->dims[i] < 0 ? uly_program_const(p, 0) : uly_scale(p, stride[r->dims[i]], bytes), axis);
}

static void set_source(uly_call_builder *c, const run *r, int32_t bytes, const uly_place *from) {
  uly_program *p = c->e->program;
  const uly_segments *cut = &from->segments;
  int32_t axis = from->segmented ? cut->axis : -1;
  uly_call_set_op(c, ULY_MOVE_SRC, from->operand, ULY_READ);
  uly_call_set_val(c, ULY_MOVE_SRC_EACH, uly_program_const(p, from->segmented));
  uly_call_set_val(c, ULY_MOVE_SRC_DIM, uly_program_const(p, from->segmented ? loop_of(r, cut->dim) : -1));
  set_strides(c, ULY_MOVE_SRC_0, r, bytes, from->stride, axis);
  if (!from->segmented) return;
  uly_call_set_peers(c, ULY_MOVE_SRC_OFFSET, uly_scale(p, cut->offset, bytes), axis);
  uly_call_set_peers(c, ULY_MOVE_SRC_FIRST, cut->first, axis);
  uly_call_set_peers(c, ULY_MOVE_SRC_COUNT, cut->count, axis);
  if (cut->base) uly_call_set_val(c, ULY_MOVE_SRC_BASE, cut->base);
}

static void set_destination(uly_call_builder *c, const run *r, int32_t bytes, const uly_move_end *to) {
  uly_program *p = c->e->program;
  int32_t axis = to->peers && to->peer_strides ? to->axis : -1;
  uly_call_set_op(c, ULY_MOVE_DST, to->place.operand, ULY_WRITE);
  uly_call_set_val(c, ULY_MOVE_DST_EACH, uly_program_const(p, axis >= 0));
  uly_call_set_val(c, ULY_MOVE_DST_DIM, uly_program_const(p, to->peers && to->cut >= 0 ? loop_of(r, to->cut) : -1));
  set_strides(c, ULY_MOVE_DST_0, r, bytes, to->place.stride, axis);
  if (to->peers && to->offset != ULY_NONE)
    uly_call_set_peers(c, ULY_MOVE_DST_OFFSET, uly_scale(p, to->offset, bytes), axis);
  else if (axis >= 0)
    uly_call_set_peers(c, ULY_MOVE_DST_OFFSET, uly_program_const(p, 0), axis);
  if (!to->peers || to->cut < 0) return;
  uly_call_set_peers(c, ULY_MOVE_DST_FIRST, to->first, to->axis);
  uly_call_set_peers(c, ULY_MOVE_DST_COUNT, to->count, to->axis);
}

void uly_emit_move(uly_emitter *e, MlirOperation op, uly_dtype dtype, int32_t rank, const int32_t *order, const uint32_t *sizes, const uly_move_end *from,
                   const uly_move_end *to) {
  uly_program *p = e->program;
  run r;
  find_run(p, dtype, rank, order, sizes, from, to, &r);
  uly_call_builder c = uly_call_begin(e, op, ULY_KERNEL_MOVE, ULY_MOVE_N_OPS, ULY_MOVE_N_VALS);
  int32_t bytes = uly_dtype_bytes(dtype);
  uly_call_set_val(&c, ULY_MOVE_N0, r.first);
  for (int32_t i = 1; i < ULY_MOVE_DIMS; i++) uly_call_set_val(&c, ULY_MOVE_N0 + i, r.dims[i] >= 0 ? sizes[r.dims[i]] : uly_program_const(p, 1));
  uly_call_set_val(&c, ULY_MOVE_BYTES, r.bytes);
  set_source(&c, &r, bytes, &from->place);
  set_destination(&c, &r, bytes, to);
  uly_call_end(&c, r.first, ULY_NONE, "move");
}

void uly_emit_copy(uly_emitter *e, MlirOperation op, const uly_type *type, const uly_place *from, const uly_place *to) {
  uly_layout layout = uly_layout_of(e->program, &e->ir->names, type), rows = uly_layout_row_major(e->program, type);
  uly_move_end source = {.place = *from}, target = {.place = *to};
  uint32_t n;
  bool stored = count_dense(e->program, layout.rank, layout.order, layout.local, &source, &target, &n) > 0;
  bool written = count_dense(e->program, layout.rank, rows.order, layout.local, &source, &target, &n) > 0;
  // In storage order, but where only the dims that the spec writes last make runs.
  uly_emit_move(e, op, type->tensor.dtype, layout.rank, !stored && written ? rows.order : layout.order, layout.local, &source, &target);
}

uly_place uly_emit_row_major(uly_emitter *e, MlirOperation op, const uly_type *type, const uly_place *from) {
  uly_layout layout = uly_layout_row_major(e->program, type);
  uint32_t bytes = uly_scale(e->program, layout.elements, uly_dtype_bytes(type->tensor.dtype));
  uly_place to = {.operand = uly_emit_buffer_operand(e, uly_emit_bytes(e, bytes, 0, "dense"))};
  memcpy(to.stride, layout.stride, sizeof to.stride);
  uly_emit_copy(e, op, type, from, &to);
  return to;
}

bool uly_is_flat(uly_emitter *e, const uly_layout *layout, const uint32_t *stride, int32_t first, int32_t end) {
  for (int32_t i = first; i + 1 < end; i++) {
    int32_t d = layout->order[i], next = layout->order[i + 1];
    if (stride[d] != uly_mul(e->program, stride[next], layout->local[next])) return false;
  }
  return true;
}

bool uly_place_is_dense(uly_emitter *e, const uly_type *type, const uly_place *place, int32_t n) {
  uly_layout layout = uly_layout_row_major(e->program, type);
  for (int32_t d = layout.rank - n; d < layout.rank; d++)
    if (place->stride[d] != layout.stride[d] && !uly_dim_equal(type->tensor.dims[d], uly_dim_const(1))) return false;
  return true;
}

uly_place uly_emit_dense(uly_emitter *e, MlirOperation op, const uly_type *type, uly_place place, int32_t n) {
  return uly_place_is_dense(e, type, &place, n) ? place : uly_emit_row_major(e, op, type, &place);
}
