// emit: the module's tables, and one entry after the other.
#include "passes/emit.h"
#include "passes/pipeline.h"

// Entry |i| of func.func's argument or result attributes.
static MlirAttribute item_attr(MlirOperation func, const char *list, intptr_t i, const char *name) {
  MlirAttribute all = uly_op_attr(func, list);
  return mlirAttributeIsNull(all) ? all : uly_ir_dict_get(mlirArrayAttrGetElement(all, i), name);
}

static void add_tensor(uly_emitter *e, uly_tensor_role role, const char *list, intptr_t i, MlirType mlir_type, uint32_t line) {
  uly_type type;
  uly_str error;
  bool ok = uly_type_read(e->ir, mlir_type, &type, &error);
  ULY_ASSERT(ok);
  MlirAttribute name = item_attr(e->entry, list, i, "uly.name"), limit = item_attr(e->entry, list, i, "uly.id_limit");
  uly_span names = {uly_emit_name(e, mlirAttributeIsNull(name) ? ULY_STR("out") : uly_attr_str(name)), 1};
  uint32_t row = uly_emit_tensor(e, role, names, &type, line);
  e->program->tensors[row].id_limit = mlirAttributeIsNull(limit) ? 0 : mlirIntegerAttrGetValueInt(limit);
  if (role == ULY_INPUT) uly_emit_set_place(e, mlirBlockGetArgument(uly_op_body(e->entry), i), uly_emit_tensor_place(e, row, &type));
}

// Results that no operation could write in place.
static void emit_results(uly_emitter *e, MlirOperation ret) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(ret); i++) {
    MlirValue v = mlirOperationGetOperand(ret, i);
    uly_place from = uly_emit_place(e, v);
    uint32_t tensor = e->first_output + (uint32_t)i;
    if (from.operand.kind == ULY_OPERAND_TENSOR && from.operand.index == tensor) continue;
    uly_type type = uly_type_of(e->ir, v);
    uly_place to = uly_emit_tensor_place(e, tensor, &type);
    uly_emit_copy(e, ret, &type, &from, &to);
  }
}

static int compare_rows(const void *a, const void *b) { return (*(const uint32_t *)a > *(const uint32_t *)b) - (*(const uint32_t *)a < *(const uint32_t *)b); }

// The parameters that |steps| read, ascending, as a span of the index table.
static uly_span used_params(uly_emitter *e, const uly_span *phases) {
  uint32_t *rows = ULY_NEW_ARRAY(e->arena, uint32_t, e->program->n_operands + 1), n = 0;
  for (int phase = 0; phase < ULY_N_PHASES; phase++)
    for (uint32_t s = phases[phase].first; s < phases[phase].first + phases[phase].count; s++) {
      uly_span operands = e->program->steps[s].operands;
      for (uint32_t i = operands.first; i < operands.first + operands.count; i++) {
        const uly_operand *o = &e->program->operands[i];
        if (o->kind == ULY_OPERAND_TENSOR && e->program->tensors[o->index].role == ULY_PARAM) rows[n++] = o->index;
      }
    }
  qsort(rows, n, sizeof *rows, compare_rows);
  uly_span span = {e->program->n_indices, 0};
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || rows[i] != rows[i - 1]) uly_program_add_indices(e->program, rows[i]), span.count++;
  return span;
}

static void emit_entry(uly_emitter *e, MlirOperation func) {
  MlirBlock body = uly_op_body(func);
  MlirOperation ret = mlirBlockGetTerminator(body);
  uint32_t line = uly_op_loc(e->ir, func).line;
  uly_entry entry = {.name = uly_program_name(e->program, uly_op_str(func, "sym_name")), .when = ULY_NONE, .tensors = {e->program->n_tensors, 0}};
  e->entry = func;
  e->entry_row = e->program->n_entries;
  e->first_step = e->program->n_steps;
  e->when = uly_program_const(e->program, 1);
  e->program->used_symbols = 0;
  for (intptr_t i = 0; i < mlirBlockGetNumArguments(body); i++) add_tensor(e, ULY_INPUT, "arg_attrs", i, mlirValueGetType(mlirBlockGetArgument(body, i)), line);
  e->first_output = e->program->n_tensors;
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(ret); i++)
    add_tensor(e, ULY_OUTPUT, "res_attrs", i, mlirValueGetType(mlirOperationGetOperand(ret, i)), line);
  entry.tensors.count = e->program->n_tensors - entry.tensors.first;
  uly_emit_number_values(e);
  uint32_t first_probe = e->program->n_probes;
  uly_emit_block(e, body);
  emit_results(e, ret);
  entry.steps[ULY_PHASE_FORWARD] = (uly_span){e->first_step, e->program->n_steps - e->first_step};
  entry.steps[ULY_PHASE_LOAD] = uly_emit_load_steps(e);
  entry.params = used_params(e, entry.steps);
  entry.symbols = e->program->used_symbols;
  if (e->program->nodes[e->when].kind != ULY_NODE_CONST) entry.when = e->when;
  e->n_sendings = 0;
  entry.probes = (uly_span){first_probe, e->program->n_probes - first_probe};
  uly_program_add_entries(e->program, entry);
}

uly_program *uly_emit(uly_ir *ir, MlirOperation module) {
  uly_emitter e = {.ir = ir, .arena = ir->arena, .program = uly_program_create(ir->arena), .module = module};
  for (int32_t s = 0; s < ir->names.n_symbols; s++) uly_program_add_symbols(e.program, (uly_symbol){uly_emit_chars(&e, ir->names.symbols[s]), 1});
  for (int32_t a = 0; a < ir->names.n_axes; a++) uly_program_add_axes(e.program, (uly_axis){uly_emit_chars(&e, ir->names.axes[a].name)});
  uly_ops ops = uly_block_ops(ir, uly_op_body(module));
  for (int i = 0; i < ops.n; i++)
    if (uly_op_has(ops.at[i], "uly.entry")) emit_entry(&e, ops.at[i]);
  return ir->diags->n_errors ? NULL : e.program;
}
