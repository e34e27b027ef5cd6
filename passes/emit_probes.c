// emit: probes. A value of the graph can be looked at where a step leaves it in memory: as the result of an operation or of the kernel that took the operation in, and again where
// a collective has brought it in another distribution. What fusion keeps in registers, and the addends of a partial sum, cannot.
#include "passes/emit.h"

static void number_region(uly_emitter *e, const uly_graph_region *region) {
  for (int32_t i = 0; i < region->n_values; i++) {
    e->numbered[region->values[i]->id] = region->values[i];
    if (region->values[i]->op == ULY_OP_REPEAT) number_region(e, region->values[i]->u.repeat.body);
  }
}

void uly_emit_number_values(uly_emitter *e) {
  const uly_graph *graph = e->ir->graph;
  uly_str name = uly_op_str(e->entry, "sym_name");
  e->numbered = NULL, e->n_numbered = 0;
  for (int32_t i = 0; graph && i < graph->n_entries; i++) {
    if (!uly_str_equal(graph->entries[i].name, name)) continue;
    e->n_numbered = graph->entries[i].n_values;
    e->numbered = ULY_NEW_ARRAY(e->arena, const uly_graph_value *, e->n_numbered + 1);
    number_region(e, &graph->entries[i].body);
  }
}

static int32_t number_of_input(const uly_emitter *e, MlirValue argument) {
  if (!mlirBlockEqual(mlirBlockArgumentGetOwner(argument), uly_op_body(e->entry))) return -1; // what a loop carries
  for (int32_t i = 0; i < e->n_numbered; i++)
    if (e->numbered[i] && e->numbered[i]->op == ULY_OP_INPUT && e->numbered[i]->u.arg.index == (int32_t)mlirBlockArgumentGetArgNumber(argument)) return i;
  return -1;
}

// Which value of the graph |value| is: collectives change where it stands, not what it is.
static int32_t number_of(const uly_emitter *e, MlirValue value) {
  while (!mlirValueIsABlockArgument(value)) {
    MlirOperation op = uly_value_op(value);
    int result = (int)mlirOpResultGetResultNumber(value);
    if (!uly_kind_is_cast(uly_op_kind(op))) return uly_op_number(op, result);
    value = mlirOperationGetOperand(op, result);
  }
  return number_of_input(e, value);
}

static bool is_same_tensor(const uly_tensor_type *a, const uly_tensor_type *b) {
  if (a->rank != b->rank || uly_dtype_get(a->dtype)->is_float != uly_dtype_get(b->dtype)->is_float) return false;
  for (int32_t d = 0; d < a->rank; d++)
    if (!uly_dim_equal(a->dims[d], b->dims[d])) return false;
  return true;
}

static bool is_whole(const uly_type *type) {
  for (int32_t a = 0; a < type->n_axes; a++)
    if (uly_dist_is_partial(type->dist[a]) || type->dist[a].kind == ULY_DIST_FLAT) return false;
  return true;
}

static uly_probe make_probe(uly_emitter *e, const uly_graph_value *v, const uly_type *type, const uly_place *place) {
  uly_program *p = e->program;
  uly_layout layout = uly_layout_of(p, &e->ir->names, type);
  uly_operand operand = place->operand;
  operand.access = ULY_READ;
  uly_op made_by = v->op == ULY_OP_RESULT ? v->operands[0]->op : v->op;
  uly_probe probe = {.value = (uint32_t)v->id,
                     .operand = uly_program_add_operands(p, operand),
                     .dtype = type->tensor.dtype,
                     .spec_dtype = v->type.dtype,
                     .rank = (uint32_t)layout.rank,
                     .offset = ULY_NONE,
                     .axis = ULY_NONE,
                     .name = uly_program_name(p, uly_str_of(uly_kind_get((uly_kind)made_by).name)),
                     .spec_line = v->loc.line,
                     .spec_column = v->loc.column};
  for (int32_t d = 0; d < layout.rank; d++) {
    bool cut = place->segmented && place->segments.dim == d;
    probe.dims[d] = layout.global[d];
    probe.start[d] = cut ? place->segments.first : layout.start[d];
    probe.local[d] = cut ? place->segments.count : layout.local[d];
    probe.stride[d] = place->stride[d];
  }
  if (place->segmented) probe.axis = (uint32_t)place->segments.axis, probe.cut = (uint32_t)place->segments.dim, probe.offset = place->segments.offset;
  return probe;
}

static void add_load_probe(uly_emitter *e, uly_load_probe probe) {
  ULY_MAKE_ROOM(e->arena, e->load_probes, e->n_load_probes, e->cap_load_probes, 32);
  e->load_probes[e->n_load_probes++] = probe;
}

static void add_probe(uly_emitter *e, MlirValue result) {
  uly_program *p = e->program;
  int32_t number = number_of(e, result);
  uly_place place;
  if (number < 0 || number >= e->n_numbered || !e->numbered[number] || !uly_emit_find_place(e, result, &place)) return;
  bool tensor = place.operand.kind == ULY_OPERAND_TENSOR;
  if (tensor && p->tensors[place.operand.index].role != ULY_OUTPUT) return; // what the caller gave
  uly_type type = uly_type_of(e->ir, result);
  if (!is_same_tensor(&type.tensor, &e->numbered[number]->type) || !is_whole(&type)) return;
  bool load = e->load_loops >= 0;
  if (load ? !e->n_load_steps : p->n_steps == e->first_step) return;
  uly_probe probe = make_probe(e, e->numbered[number], &type, &place);
  probe.step = p->n_steps - 1;
  uint32_t row = uly_program_add_probes(p, probe);
  if (load) add_load_probe(e, (uly_load_probe){row, e->n_load_steps - 1}); // which step that is turns out once the phase is put together
}

void uly_emit_probes(uly_emitter *e, MlirOperation op) {
  if (!e->numbered || uly_op_kind(op) == ULY_KIND_PARAM || uly_op_kind(op) == ULY_KIND_TABLE) return;
  uly_emit_enter_phase(e, op); // a loop's body may have left another
  for (intptr_t i = 0; i < mlirOperationGetNumResults(op); i++) add_probe(e, uly_op_result(op, (int)i));
}
