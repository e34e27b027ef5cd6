// emit: entries, loops and the place of every value. See emit.h; the operations are in the emit_*.c files.
#include "passes/emit.h"
#include "frontend/check.h"
#include "passes/fuse.h"

#include <math.h>

bool uly_emit_unsupported(uly_emitter *e, MlirOperation op, const char *what) {
  uly_op_error(e->ir, op, "not yet supported: %s", what);
  return false;
}

// ---- values

static uint32_t hash_pointer(const void *p) { return (uint32_t)(((uintptr_t)p >> 4) * 0x9e3779b1u); }

static uly_value_entry *find_value(const uly_emitter *e, const void *key) {
  uint32_t i = hash_pointer(key) & (e->cap_values - 1);
  while (e->values[i].key && e->values[i].key != key) i = (i + 1) & (e->cap_values - 1);
  return &e->values[i];
}

void uly_emit_set_place(uly_emitter *e, MlirValue value, uly_place place) {
  if (2 * (e->n_values + 1) > e->cap_values) {
    uly_value_entry *old = e->values;
    uint32_t n = e->cap_values;
    e->cap_values = n ? 2 * n : 128;
    e->values = ULY_NEW_ARRAY(e->arena, uly_value_entry, e->cap_values);
    for (uint32_t i = 0; i < n; i++)
      if (old[i].key) *find_value(e, old[i].key) = old[i];
  }
  uly_value_entry *entry = find_value(e, value.ptr);
  if (!entry->key) e->n_values++;
  *entry = (uly_value_entry){value.ptr, place};
}

uly_place uly_emit_place(uly_emitter *e, MlirValue value) {
  uly_value_entry *entry = find_value(e, value.ptr);
  ULY_ASSERT(entry->key);
  return entry->place;
}

bool uly_emit_find_place(const uly_emitter *e, MlirValue value, uly_place *out_place) {
  if (!e->n_values) return false;
  const uly_value_entry *entry = find_value(e, value.ptr);
  if (entry->key) *out_place = entry->place;
  return entry->key;
}

uint32_t uly_emit_bytes(uly_emitter *e, uint32_t bytes, uint32_t flags, const char *name) {
  uly_buffer b = {.phase = ULY_PHASE_FORWARD, .bytes = bytes, .slots = 1, .flags = flags, .name = uly_program_name(e->program, uly_str_of(name))};
  int32_t slot[ULY_MAX_LOOPS];
  if (e->load_loops >= 0) b.phase = ULY_PHASE_LOAD, b.slots = (uint32_t)uly_emit_slots(e, e->load_loops, slot);
  return uly_program_add_buffers(e->program, b);
}

uly_operand uly_emit_buffer_operand(const uly_emitter *e, uint32_t buffer) {
  uly_operand operand = {.kind = ULY_OPERAND_BUFFER, .index = buffer, .offset = ULY_NONE};
  if (e->load_loops > 0) uly_emit_slots(e, e->load_loops, operand.slot);
  return operand;
}

uly_place uly_emit_buffer(uly_emitter *e, const uly_type *type, const char *name) {
  uly_layout layout = uly_layout_of(e->program, &e->ir->names, type);
  uint32_t bytes = uly_scale(e->program, layout.elements, uly_dtype_bytes(type->tensor.dtype));
  uly_place place = {.operand = uly_emit_buffer_operand(e, uly_emit_bytes(e, bytes, 0, name))};
  memcpy(place.stride, layout.stride, sizeof place.stride);
  return place;
}

uly_place uly_emit_offset(uly_emitter *e, uly_place place, uint32_t elements, uly_dtype dtype) {
  uint32_t bytes = uly_scale(e->program, elements, uly_dtype_bytes(dtype));
  place.operand.offset = place.operand.offset == ULY_NONE ? bytes : uly_add(e->program, place.operand.offset, bytes);
  return place;
}

// ---- tensors of the entry and parameters

uint32_t uly_emit_tensor(uly_emitter *e, uly_tensor_role role, uly_span names, const uly_type *type, uint32_t line) {
  uly_layout layout = uly_layout_row_major(e->program, type);
  uly_tensor t = {.role = role,
                  .dtype = type->tensor.dtype,
                  .entry = role == ULY_PARAM ? ULY_NONE : e->entry_row,
                  .rank = (uint32_t)layout.rank,
                  .names = names,
                  .init = NAN,
                  .spec_line = line};
  for (int32_t d = 0; d < layout.rank; d++) t.dims[d] = layout.global[d], t.start[d] = layout.start[d], t.local[d] = layout.local[d];
  return uly_program_add_tensors(e->program, t);
}

uly_place uly_emit_tensor_place(uly_emitter *e, uint32_t tensor, const uly_type *type) {
  uly_place place = {.operand = {.kind = ULY_OPERAND_TENSOR, .index = tensor, .offset = ULY_NONE}};
  uly_layout layout = uly_layout_row_major(e->program, type);
  memcpy(place.stride, layout.stride, sizeof place.stride);
  return place;
}

uly_span uly_emit_chars(uly_emitter *e, uly_str name) {
  uint32_t row = uly_program_name(e->program, name);
  return e->program->names[row];
}

// A name's row of its own: a tensor's names follow each other, while shared rows may stand anywhere.
uint32_t uly_emit_name(uly_emitter *e, uly_str name) { return uly_program_add_names(e->program, uly_emit_chars(e, name)); }

// Whether parameter |t| goes by these names: then it is the same. Equal names are the same characters.
static bool has_names(const uly_emitter *e, const uly_tensor *t, const uly_span *names, uint32_t n) {
  if (t->role != ULY_PARAM || t->names.count != n) return false;
  for (uint32_t i = 0; i < n; i++)
    if (e->program->names[t->names.first + i].first != names[i].first || e->program->names[t->names.first + i].count != names[i].count) return false;
  return true;
}

// Entries share what has the same name: it must be the same thing.
static void check_same_type(uly_emitter *e, MlirOperation op, const uly_tensor *have, const uly_type *type) {
  bool same = have->dtype == type->tensor.dtype && have->rank == (uint32_t)type->tensor.rank;
  for (uint32_t d = 0; same && d < have->rank; d++) same = have->dims[d] == uly_layout_dim(e->program, type->tensor.dims[d]);
  if (same) return;
  uly_str name = uly_attr_str(mlirArrayAttrGetElement(uly_op_attr(op, "names"), 0));
  uly_op_error(e->ir, op, "parameter `%.*s` has another shape here than in line %u", ULY_STR_ARG(name), have->spec_line);
}

static uint32_t add_param(uly_emitter *e, MlirOperation op) {
  MlirAttribute names = uly_op_attr(op, "names");
  uint32_t n = (uint32_t)mlirArrayAttrGetNumElements(names);
  uly_type type = uly_type_of(e->ir, uly_op_result(op, 0));
  uly_span *chars = ULY_NEW_ARRAY(e->arena, uly_span, n);
  for (uint32_t i = 0; i < n; i++) chars[i] = uly_emit_chars(e, uly_attr_str(mlirArrayAttrGetElement(names, (intptr_t)i)));
  for (uint32_t t = 0; t < e->program->n_tensors; t++) {
    if (!has_names(e, &e->program->tensors[t], chars, n)) continue;
    check_same_type(e, op, &e->program->tensors[t], &type);
    return t;
  }
  uly_span span = {e->program->n_names, n};
  for (uint32_t i = 0; i < n; i++) uly_emit_name(e, uly_attr_str(mlirArrayAttrGetElement(names, (intptr_t)i)));
  uint32_t row = uly_emit_tensor(e, ULY_PARAM, span, &type, uly_op_loc(e->ir, op).line);
  e->program->tensors[row].init = uly_op_f64(op, "init", NAN);
  if (uly_op_has(op, "train")) e->program->tensors[row].flags = ULY_TENSOR_TRAINABLE;
  return row;
}

static bool emit_param(uly_emitter *e, MlirOperation op) {
  uly_type type = uly_type_of(e->ir, uly_op_result(op, 0));
  uly_place place = uly_emit_tensor_place(e, add_param(e, op), &type);
  if (uly_op_n_items(op) != 1) uly_emit_slots(e, e->n_loops, place.operand.slot);
  uly_emit_set_place(e, uly_op_result(op, 0), place);
  return true;
}

// ---- destinations

// Where an operand of |user| is |value|; -1 where nowhere.
static int operand_of(MlirOperation user, MlirValue value) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(user); i++)
    if (mlirValueEqual(mlirOperationGetOperand(user, i), value)) return (int)i;
  return -1;
}

static int position(MlirOperation op) {
  int n = 0;
  for (MlirOperation at = mlirBlockGetFirstOperation(mlirOperationGetBlock(op)); !mlirOperationEqual(at, op); at = mlirOperationGetNextInBlock(at)) n++;
  return n;
}

// The operation of |block| around |op|: itself, or the loop that it is in.
static MlirOperation ancestor_in(MlirBlock block, MlirOperation op) {
  while (!mlirBlockEqual(mlirOperationGetBlock(op), block)) op = mlirOperationGetParentOperation(op);
  return op;
}

static MlirOperation find_function(const uly_emitter *e, MlirOperation call);

// Whether |writer| reads |arg| only at the element that it writes: a call whose maps and norms take it index by index, and no linear or attention does.
static bool reads_in_place(const uly_emitter *e, MlirOperation writer, MlirValue arg) {
  if (!uly_op_is(writer, "func.call")) return false;
  MlirBlock body = uly_op_body(find_function(e, writer));
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(writer); i++) {
    if (!mlirValueEqual(mlirOperationGetOperand(writer, i), arg)) continue;
    MlirValue inside = mlirBlockGetArgument(body, i);
    for (MlirOpOperand use = mlirValueGetFirstUse(inside); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
      MlirOperation op = mlirOpOperandGetOwner(use);
      uly_kind kind = uly_op_kind(op);
      int at = (int)mlirOpOperandGetOperandNumber(use);
      bool norm = (kind == ULY_KIND_RMSNORM || kind == ULY_KIND_LAYERNORM || kind == ULY_KIND_SOFTMAX) && at == 0;
      if (!norm && !(kind == ULY_KIND_MAP && uly_map_is_pointwise(e->ir, op, at))) return false;
    }
  }
  return true;
}

// What such an operation makes stands where its operand does.
static bool is_view(uly_kind kind) {
  return kind == ULY_KIND_HEADS || kind == ULY_KIND_MERGE || kind == ULY_KIND_RESHAPE || kind == ULY_KIND_CUT || kind == ULY_KIND_SLICE;
}

// Whether the iteration has done with carried argument |arg| when |writer| runs, so that its result may take the argument's place.
static bool argument_is_dead(const uly_emitter *e, MlirValue arg, MlirBlock block, MlirOperation writer) {
  for (MlirOpOperand use = mlirValueGetFirstUse(arg); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = ancestor_in(block, mlirOpOperandGetOwner(use));
    if (mlirOperationEqual(user, writer) && reads_in_place(e, writer, arg)) continue;
    if (position(user) >= position(writer)) return false;
    if (is_view(uly_op_kind(user))) return false;
  }
  return true;
}

uly_place uly_emit_dest(uly_emitter *e, MlirValue value) {
  uly_type type = uly_type_of(e->ir, value);
  MlirOpOperand use = mlirValueGetFirstUse(value);
  MlirOperation def = uly_value_op(value);
  if (e->load_loops < 0 && !mlirOpOperandIsNull(use) && mlirOpOperandIsNull(mlirOpOperandGetNextUse(use))) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    int i = operand_of(user, value);
    if (uly_op_is(user, "func.return")) return uly_emit_tensor_place(e, e->first_output + (uint32_t)i, &type);
    MlirBlock block = mlirOperationGetBlock(def);
    if (uly_op_is(user, "scf.yield") && mlirBlockEqual(block, mlirOperationGetBlock(user))) {
      MlirValue arg = mlirBlockGetArgument(block, i + 1);
      if (argument_is_dead(e, arg, block, def)) return uly_emit_place(e, arg);
    }
  }
  char name[32];
  snprintf(name, sizeof name, "v%u", e->program->n_buffers);
  return uly_emit_buffer(e, &type, name);
}

uly_place uly_emit_whole(uly_emitter *e, MlirValue value) {
  uly_place place = uly_emit_place(e, value);
  if (!place.segmented) return place;
  uly_type type = uly_type_of(e->ir, value);
  uly_place whole = uly_emit_buffer(e, &type, "whole");
  MlirOperation def = uly_value_op(value);
  uly_emit_copy(e, def, &type, &place, &whole);
  uly_emit_set_place(e, value, whole);
  return whole;
}

// ---- loops

// Carried values live in one place. The initial value's own buffer is that place where nobody else reads it, and an outer loop does not start from it again.
static uly_place carried_place(uly_emitter *e, MlirOperation loop, MlirValue init) {
  uly_type type = uly_type_of(e->ir, init);
  uly_place place = uly_emit_whole(e, init);
  bool own = place.operand.kind == ULY_OPERAND_BUFFER && place.operand.offset == ULY_NONE && uly_value_n_uses(init) == 1 && !mlirValueIsABlockArgument(init);
  uly_kind kind = own ? uly_op_kind(uly_value_op(init)) : ULY_KIND_OTHER;
  own = own && mlirBlockEqual(mlirOperationGetBlock(uly_value_op(init)), mlirOperationGetBlock(loop));
  if (own && !uly_emit_at_load(e, &place) && !is_view(kind) && !uly_op_is(uly_value_op(init), "scf.for")) return place;
  uly_place carried = uly_emit_buffer(e, &type, "carried");
  uly_emit_copy(e, loop, &type, &place, &carried);
  return carried;
}

static bool same_memory(const uly_place *a, const uly_place *b) { return a->operand.kind == b->operand.kind && a->operand.index == b->operand.index; }

static bool same_place(const uly_place *a, const uly_place *b) { return same_memory(a, b) && a->operand.offset == b->operand.offset; }

// Brings the yields that stand elsewhere to their carried places, through copies of their own where they stand, or are a part of, what another
// copy overwrites.
static void emit_yields(uly_emitter *e, MlirBlock block) {
  MlirOperation yield = mlirBlockGetTerminator(block);
  intptr_t n = mlirOperationGetNumOperands(yield);
  uly_place *from = ULY_NEW_ARRAY(e->arena, uly_place, n + 1);
  for (intptr_t i = 0; i < n; i++) {
    MlirValue v = mlirOperationGetOperand(yield, i);
    uly_type type = uly_type_of(e->ir, v);
    from[i] = uly_emit_whole(e, v);
    uly_place to = uly_emit_place(e, mlirBlockGetArgument(block, i + 1));
    bool carried = false;
    for (intptr_t j = 0; j < n; j++) {
      uly_place other = uly_emit_place(e, mlirBlockGetArgument(block, j + 1));
      carried |= same_memory(&from[i], &other);
    }
    if (!carried || same_place(&from[i], &to)) continue;
    uly_place copy = uly_emit_buffer(e, &type, "swap");
    uly_emit_copy(e, yield, &type, &from[i], &copy);
    from[i] = copy;
  }
  for (intptr_t i = 0; i < n; i++) {
    uly_type type = uly_type_of(e->ir, mlirOperationGetOperand(yield, i));
    uly_place to = uly_emit_place(e, mlirBlockGetArgument(block, i + 1));
    if (!same_place(&from[i], &to)) uly_emit_copy(e, yield, &type, &from[i], &to);
  }
}

// Segments that the body reads are copied together once, before the loop.
static void gather_inputs(uly_emitter *e, MlirOperation loop) {
  uly_ops ops = uly_ir_collect(e->ir, loop);
  for (int i = 0; e->n_values && i < ops.n; i++)
    for (intptr_t j = 0; j < mlirOperationGetNumOperands(ops.at[i]); j++) {
      uly_value_entry *known = find_value(e, mlirOperationGetOperand(ops.at[i], j).ptr);
      if (known->key && known->place.segmented) uly_emit_whole(e, mlirOperationGetOperand(ops.at[i], j));
    }
}

static bool emit_repeat(uly_emitter *e, MlirOperation op) {
  int64_t count = uly_loop_count(op);
  MlirBlock body = uly_op_body(op);
  if (count < 0) return uly_emit_unsupported(e, op, "a repeat count that is not a constant");
  _Static_assert(ULY_GRAPH_MAX_LOOPS == ULY_MAX_LOOPS && ULY_MAX_ITERATIONS <= ULY_MAX_TURNS, "the frontend bounds the depth and the iterations");
  ULY_ASSERT(e->n_loops < ULY_MAX_LOOPS);
  intptr_t n = mlirOperationGetNumResults(op);
  gather_inputs(e, op);
  for (intptr_t i = 0; i < n; i++) {
    uly_place place = carried_place(e, op, mlirOperationGetOperand(op, 3 + i));
    uly_emit_set_place(e, mlirBlockGetArgument(body, i + 1), place);
    uly_emit_set_place(e, uly_op_result(op, (int)i), place);
  }
  uint32_t line = uly_op_loc(e->ir, op).line, name = uly_program_name(e->program, ULY_STR("repeat"));
  uly_step step = {
      .kind = ULY_STEP_LOOP, .items = uly_program_const(e->program, count), .scratch = ULY_NONE, .predicate = ULY_NONE, .name = name, .spec_line = line};
  uint32_t loop = uly_program_add_steps(e->program, step);
  e->loops[e->n_loops++] = (uly_emit_loop){.id = ++e->last_loop, .count = count};
  uly_emit_block(e, body);
  emit_yields(e, body);
  e->n_loops--;
  step.kind = ULY_STEP_END, step.b = loop;
  uint32_t end = uly_program_add_steps(e->program, step); // the table may move
  e->program->steps[loop].b = end;
  return true;
}

// ---- blocks

static MlirOperation find_function(const uly_emitter *e, MlirOperation call) {
  uly_str name = uly_ir_symbol_name(uly_op_attr(call, "callee"));
  for (MlirOperation op = mlirBlockGetFirstOperation(uly_op_body(e->module)); !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    if (uly_op_is(op, "func.func") && uly_str_equal(uly_op_str(op, "sym_name"), name)) return op;
  ULY_ASSERT(false && "a called function");
  return (MlirOperation){NULL};
}

static bool emit_call(uly_emitter *e, MlirOperation op) {
  static const struct {
    const char *kind;
    bool (*emit)(const uly_site *site);
  } kinds[] = {{"gemm", uly_emit_gemm}, {"attention", uly_emit_attention}, {"rows", uly_emit_rows}, {"rowsum", uly_emit_rowsum}, {"nll", uly_emit_nll}};
  uly_site site = {.e = e, .call = op, .function = find_function(e, op)};
  site.body = uly_op_body(site.function);
  uly_str kind = uly_op_str(site.function, "uly.kernel");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (uly_str_is(kind, kinds[i].kind)) return kinds[i].emit(&site);
  ULY_ASSERT(false && "a kind of kernel");
  return false;
}

static bool emit_op(uly_emitter *e, MlirOperation op) {
  uly_emit_enter_phase(e, op);
  if (uly_op_is(op, "func.call")) return emit_call(e, op);
  if (uly_op_is(op, "scf.for")) return emit_repeat(e, op);
  switch (uly_op_kind(op)) {
  case ULY_KIND_PARAM: return emit_param(e, op);
  case ULY_KIND_TABLE: return uly_emit_table(e, op);
  case ULY_KIND_HEADS:
  case ULY_KIND_MERGE:
  case ULY_KIND_RESHAPE:
  case ULY_KIND_CUT:
  case ULY_KIND_MAP: return uly_emit_view(e, op); // maps that are kernels are called
  case ULY_KIND_GATHER: return uly_emit_gather(e, op);
  case ULY_KIND_ROPE: return uly_emit_rope(e, op);
  case ULY_KIND_SLICE: return uly_emit_slice(e, op);
  case ULY_KIND_CONCAT: return uly_emit_concat(e, op);
  case ULY_KIND_SHIFT: return uly_emit_shift(e, op);
  case ULY_KIND_EXCHANGE: return uly_emit_exchange(e, op);
  case ULY_KIND_ALL_GATHER: return uly_emit_all_gather(e, op);
  case ULY_KIND_REDUCE: return uly_emit_reduce(e, op);
  case ULY_KIND_OTHER: return true; // constants of loops, terminators
  default: return uly_emit_unsupported(e, op, uly_kind_get(uly_op_kind(op)).name);
  }
}

void uly_emit_block(uly_emitter *e, MlirBlock block) {
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op))
    if (emit_op(e, op)) uly_emit_probes(e, op);
}
