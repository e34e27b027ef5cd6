// Every value has a buffer of 8-byte cells, dense and row-major, written by one step:
//   INPUT, PARAM   read and widened where they stand
//   TABLE          copied from where the file has it
//   REPEAT         copies of the initial values, LOOP, copies of those into the body's arguments, the body, copies of what it yields, END. The copies are its results
//   others         a call of the one kernel there is (ref_kernel.c), with what it computes as the step's values
// Ranks, where there are several, all compute everything.
#include "codegen/reference/ref_program.h"

#include <math.h>

#include "codegen/reference/step_words.h"
#include "frontend/graph_print.h"

typedef struct emitter {
  uly_arena *arena;
  uly_program *program;
  const uly_graph *graph;
  const uly_graph_entry *entry;
  uly_diags *diags;
  uint32_t entry_row;
  uint32_t *buffers;  // by value id
  uint32_t **carried; // by id of a repeat: a buffer a carried value
  int64_t loop_counts[ULY_MAX_LOOPS];
  int n_loops;
} emitter;

// ---- sizes and tables

static uint32_t constant(emitter *e, int64_t value) { return uly_program_const(e->program, value); }
static uint32_t multiply(emitter *e, uint32_t a, uint32_t b) { return uly_program_op(e->program, ULY_NODE_MUL, a, b); }

static uint32_t size_of(emitter *e, uly_dim dim) {
  if (uly_dim_is_const(dim)) return constant(e, dim.add);
  uint32_t symbol = uly_program_node(e->program, (uly_node){.kind = ULY_NODE_SYM, .value = dim.symbol});
  return uly_program_op(e->program, ULY_NODE_ADD, multiply(e, symbol, constant(e, dim.mul)), constant(e, dim.add));
}

// The product of dims [0, end).
static uint32_t product_of(emitter *e, const uly_tensor_type *type, int32_t end) {
  uint32_t n = constant(e, 1);
  for (int32_t d = 0; d < end; d++) n = multiply(e, n, size_of(e, type->dims[d]));
  return n;
}

static uint32_t bytes_of(emitter *e, const uly_tensor_type *type) { return multiply(e, product_of(e, type, type->rank), constant(e, 8)); }

static uint32_t add_buffer(emitter *e, const uly_tensor_type *type, const char *name) {
  return uly_program_add_buffers(
      e->program, (uly_buffer){.phase = ULY_PHASE_FORWARD, .bytes = bytes_of(e, type), .slots = 1, .name = uly_program_name(e->program, uly_str_of(name))});
}

static uly_span chars_of(emitter *e, uly_str name) {
  uint32_t row = uly_program_name(e->program, name); // the table may move
  return e->program->names[row];
}

static uly_operand operand_of(uly_operand_kind kind, uint32_t index, uint32_t access) {
  return (uly_operand){.kind = kind, .index = index, .offset = ULY_NONE, .access = access};
}

static uint32_t add_tensor(emitter *e, uly_tensor_role role, uly_span names, const uly_tensor_type *type, uint32_t line) {
  uly_tensor t = {.role = role,
                  .dtype = type->dtype,
                  .entry = role == ULY_PARAM ? ULY_NONE : e->entry_row,
                  .rank = (uint32_t)type->rank,
                  .names = names,
                  .init = NAN,
                  .spec_line = line};
  if (role == ULY_OUTPUT && uly_dtype_get(type->dtype)->is_float) t.dtype = ULY_F64;
  for (int32_t d = 0; d < type->rank; d++) t.dims[d] = t.local[d] = size_of(e, type->dims[d]), t.start[d] = constant(e, 0);
  return uly_program_add_tensors(e->program, t);
}

// ---- probes: every value, where it is dense

static void add_probe(emitter *e, const uly_graph_value *v, uint32_t buffer, uly_str operation) {
  uly_program *p = e->program;
  uly_operand operand = operand_of(ULY_OPERAND_BUFFER, buffer, ULY_READ);
  uly_probe probe = {.value = (uint32_t)v->id,
                     .step = p->n_steps - 1,
                     .operand = uly_program_add_operands(p, operand),
                     .dtype = uly_dtype_get(v->type.dtype)->is_float ? ULY_F64 : ULY_I64,
                     .spec_dtype = v->type.dtype,
                     .offset = ULY_NONE,
                     .rank = (uint32_t)v->type.rank,
                     .axis = ULY_NONE,
                     .name = uly_program_name(p, operation),
                     .spec_line = v->loc.line,
                     .spec_column = v->loc.column};
  uint32_t stride = constant(e, 1);
  for (int32_t d = v->type.rank - 1; d >= 0; d--) {
    probe.dims[d] = probe.local[d] = size_of(e, v->type.dims[d]);
    probe.start[d] = constant(e, 0);
    probe.stride[d] = stride;
    stride = multiply(e, stride, probe.dims[d]);
  }
  uly_program_add_probes(p, probe);
}

// ---- steps

typedef struct words {
  emitter *e;
  uly_span span;
} words;

static void add_node(words *w, uint32_t node) {
  uint32_t row = uly_program_add_values(w->e->program, (uly_call_value){node, ULY_NONE});
  if (!w->span.count++) w->span.first = row;
}
static void add_int(words *w, int64_t value) { add_node(w, constant(w->e, value)); }
static void add_float(words *w, double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  add_int(w, bits);
}

static void add_type(words *w, const uly_tensor_type *type) {
  add_int(w, type->dtype);
  add_int(w, type->rank);
  for (int32_t d = 0; d < type->rank; d++) add_node(w, size_of(w->e, type->dims[d]));
}

// Sizes of symbols are numbers by the time they are read.
static void add_expr(words *w, const uly_expr *expr) {
  add_int(w, expr->n_nodes);
  for (int32_t i = 0; i < expr->n_nodes; i++) {
    const uly_expr_node *n = &expr->nodes[i];
    bool size = n->op == ULY_SC_SIZE;
    add_int(w, size ? ULY_SC_CONST : n->op);
    add_int(w, n->type);
    add_int(w, n->n_args);
    for (int j = 0; j < n->n_args; j++) add_int(w, n->args[j]);
    add_int(w, size ? 0 : n->index);
    if (size)
      add_node(w, uly_program_node(w->e->program, (uly_node){.kind = ULY_NODE_SYM, .value = n->index}));
    else if (n->op == ULY_SC_CONST && n->type == ULY_SCALAR_FLOAT)
      add_float(w, n->value.f);
    else
      add_int(w, n->op == ULY_SC_CONST ? n->value.i : 0);
  }
}

// Numbers that are sizes: the lowest ints stand for their nodes.
typedef struct sizes {
  emitter *e;
  uint32_t node[ULY_REF_NUMBERS];
  int n;
} sizes;

static int64_t stand_in(sizes *s, uly_dim dim) {
  ULY_ASSERT(s->n < ULY_REF_NUMBERS);
  s->node[s->n] = size_of(s->e, dim);
  return INT64_MIN + s->n++;
}

static void add_attributes(words *w, const uly_graph_value *v) {
  sizes s = {.e = w->e};
  int64_t ints[ULY_REF_NUMBERS] = {0};
  double floats[ULY_REF_NUMBERS] = {0};
  switch (v->op) {
#define I(...) __VA_ARGS__
#define F(...) __VA_ARGS__
#define SIZE(dim) stand_in(&s, dim)
#define REF(id, function, i, f)                                                                                                                                \
  case ULY_OP_##id: {                                                                                                                                          \
    const int64_t own_ints[] = {i};                                                                                                                            \
    const double own_floats[] = {f};                                                                                                                           \
    memcpy(ints, own_ints, sizeof own_ints);                                                                                                                   \
    memcpy(floats, own_floats, sizeof own_floats);                                                                                                             \
    break;                                                                                                                                                     \
  }
#include "runtime/reference/reference.def"
#undef I
#undef F
#undef SIZE
  default: break;
  }
  for (int i = 0; i < ULY_REF_NUMBERS; i++)
    if (ints[i] < INT64_MIN + s.n)
      add_node(w, s.node[ints[i] - INT64_MIN]);
    else
      add_int(w, ints[i]);
  for (int i = 0; i < ULY_REF_NUMBERS; i++) add_float(w, floats[i]);
}

// Returns the expressions' nodes, which the kernel needs room for.
static int64_t add_exprs(words *w, const uly_graph_value *v) {
  const uly_expr *exprs[2];
  int n = 0;
  int64_t nodes = 0;
  if (v->op == ULY_OP_MAP) exprs[n++] = &v->u.map.expr;
  if (v->op == ULY_OP_ATTENTION) exprs[n++] = &v->u.attention->mask;
  if (v->op == ULY_OP_ATTENTION && v->u.attention->has_score) exprs[n++] = &v->u.attention->score;
  add_int(w, n);
  for (int i = 0; i < n; i++) add_expr(w, exprs[i]), nodes += exprs[i]->n_nodes;
  for (int32_t i = 0; v->op == ULY_OP_MAP && i < v->n_operands; i++)
    for (int32_t d = 0; d < v->operands[i]->type.rank; d++) add_int(w, v->u.map.access[i].dim[d]);
  return nodes;
}

static int step_kind(uly_op op) {
  switch (op) {
#define REF(id, function, ints, floats)                                                                                                                        \
  case ULY_OP_##id: return ULY_REF_##id;
#include "runtime/reference/reference.def"
  default: break;
  }
  ULY_ASSERT(false); // every operation has a definition
  return 0;
}

static void add_step(emitter *e, const words *w, uly_span operands, uint32_t items, uint32_t scratch, const char *name, uint32_t line) {
  uly_program_add_steps(e->program, (uly_step){.kind = ULY_STEP_KERNEL,
                                               .items = items,
                                               .scratch = scratch,
                                               .predicate = ULY_NONE,
                                               .operands = operands,
                                               .values = w->span,
                                               .name = uly_program_name(e->program, uly_str_of(name)),
                                               .spec_line = line});
}

static uly_span add_operands(emitter *e, const uly_operand *operands, int n) {
  uly_span span = {e->program->n_operands, (uint32_t)n};
  for (int i = 0; i < n; i++) uly_program_add_operands(e->program, operands[i]);
  return span;
}

// Widens what the caller holds into cells, or the other way round.
static void add_copy(emitter *e, uly_ref_step_kind kind, uly_operand from, uly_operand to, const uly_tensor_type *type, const char *name, uint32_t line) {
  words w = {.e = e};
  from.access = ULY_READ, to.access = ULY_WRITE;
  add_int(&w, kind);
  add_int(&w, 0);
  add_type(&w, type);
  add_step(e, &w, add_operands(e, (uly_operand[]){to, from}, 2), product_of(e, type, type->rank - 1), constant(e, 64), name, line);
}

static void emit_input(emitter *e, const uly_graph_value *v) {
  uly_operand tensor = operand_of(ULY_OPERAND_TENSOR, e->program->entries[e->entry_row].tensors.first + (uint32_t)v->u.arg.index, ULY_READ);
  add_copy(e, ULY_REF_READ, tensor, operand_of(ULY_OPERAND_BUFFER, e->buffers[v->id], ULY_WRITE), &v->type, "input", v->loc.line);
}

// Entries share a parameter that has the same names.
static uint32_t param_row(emitter *e, const uly_graph_value *v) {
  uly_program *p = e->program;
  uint32_t n = (uint32_t)v->u.param.n_names;
  for (uint32_t t = 0; t < p->n_tensors; t++) {
    const uly_tensor *have = &p->tensors[t];
    bool same = have->role == ULY_PARAM && have->names.count == n;
    for (uint32_t i = 0; same && i < n; i++) {
      uly_span name = p->names[have->names.first + i];
      same = uly_str_equal((uly_str){p->chars + name.first, name.count}, v->u.param.names[i]);
    }
    if (same) return t;
  }
  for (uint32_t i = 0; i < n; i++) uly_program_name(p, v->u.param.names[i]);
  uly_span names = {p->n_names, n};
  for (uint32_t i = 0; i < n; i++) uly_program_add_names(p, chars_of(e, v->u.param.names[i]));
  uint32_t row = add_tensor(e, ULY_PARAM, names, &v->type, v->loc.line);
  p->tensors[row].init = v->u.param.init;
  p->tensors[row].flags = v->u.param.train ? ULY_TENSOR_TRAINABLE : 0;
  return row;
}

// Strides of what there is one of an iteration of the open repeats.
static void set_slots(const emitter *e, uly_operand *operand) {
  int64_t stride = 1;
  for (int d = e->n_loops - 1; d >= 0; d--) operand->slot[d] = (int32_t)stride, stride *= e->loop_counts[d];
}

static void emit_param(emitter *e, const uly_graph_value *v) {
  uly_operand tensor = operand_of(ULY_OPERAND_TENSOR, param_row(e, v), ULY_READ);
  if (v->u.param.n_names > 1) set_slots(e, &tensor);
  add_copy(e, ULY_REF_READ, tensor, operand_of(ULY_OPERAND_BUFFER, e->buffers[v->id], ULY_WRITE), &v->type, "param", v->loc.line);
}

static void copy_bytes(emitter *e, const uly_tensor_type *type, uly_operand from, uly_operand to, const char *name, uint32_t line) {
  from.access = ULY_READ, to.access = ULY_WRITE;
  uly_program_add_steps(e->program, (uly_step){.kind = ULY_STEP_COPY,
                                               .items = bytes_of(e, type),
                                               .scratch = ULY_NONE,
                                               .predicate = ULY_NONE,
                                               .operands = add_operands(e, (uly_operand[]){from, to}, 2),
                                               .name = uly_program_name(e->program, uly_str_of(name)),
                                               .spec_line = line});
}

// A table's numbers are cells as they stand in the file.
static void emit_table(emitter *e, const uly_graph_value *v) {
  int32_t n = v->u.table.n_numbers;
  uint64_t *cells = ULY_NEW_ARRAY(e->arena, uint64_t, n);
  for (int32_t i = 0; i < n; i++) {
    const uly_number *number = &v->u.table.numbers[i];
    memcpy(&cells[i], number->type == ULY_SCALAR_FLOAT ? (const void *)&number->f : (const void *)&number->i, sizeof *cells);
  }
  uly_operand table = operand_of(ULY_OPERAND_BUFFER, uly_program_add_constants(e->program, cells, (uint32_t)n, ULY_STR("table")), ULY_READ);
  if (n > 1) set_slots(e, &table);
  copy_bytes(e, &v->type, table, operand_of(ULY_OPERAND_BUFFER, e->buffers[v->id], ULY_WRITE), "table", v->loc.line);
}

static void emit_operation(emitter *e, const uly_graph_value *v) {
  words w = {.e = e};
  uly_operand operands[1 + ULY_MAX_OPERANDS] = {operand_of(ULY_OPERAND_BUFFER, e->buffers[v->id], ULY_WRITE)};
  for (int32_t i = 0; i < v->n_operands; i++) operands[1 + i] = operand_of(ULY_OPERAND_BUFFER, e->buffers[v->operands[i]->id], ULY_READ);
  add_int(&w, step_kind(v->op));
  add_int(&w, v->n_operands);
  add_type(&w, &v->type);
  for (int32_t i = 0; i < v->n_operands; i++) add_type(&w, &v->operands[i]->type);
  add_attributes(&w, v);
  // Tensors, nodes and their numbers, accesses, and a number a key of an attention.
  int64_t fixed = 1024 + v->n_operands * 128 + add_exprs(&w, v) * (int64_t)(sizeof(uly_expr_node) + sizeof(uly_number));
  uint32_t keys = v->op == ULY_OP_ATTENTION ? size_of(e, v->operands[1]->type.dims[1]) : constant(e, 0);
  uint32_t scratch = uly_program_op(e->program, ULY_NODE_ADD, multiply(e, keys, constant(e, 8)), constant(e, fixed));
  add_step(e, &w, add_operands(e, operands, 1 + v->n_operands), product_of(e, &v->type, v->type.rank - 1), scratch, uly_op_name(v->op), v->loc.line);
}

// ---- repeats

static void move(emitter *e, const uly_tensor_type *type, uint32_t from, uint32_t to, uint32_t line) {
  copy_bytes(e, type, operand_of(ULY_OPERAND_BUFFER, from, ULY_READ), operand_of(ULY_OPERAND_BUFFER, to, ULY_WRITE), "carry", line);
}

static void emit_region(emitter *e, const uly_graph_region *region);

static void emit_repeat(emitter *e, const uly_graph_value *v) {
  uly_program *p = e->program;
  const uly_graph_region *body = v->u.repeat.body;
  uint32_t *carried = e->carried[v->id] = ULY_NEW_ARRAY(e->arena, uint32_t, v->n_operands), line = v->loc.line;
  for (int32_t i = 0; i < v->n_operands; i++) {
    carried[i] = add_buffer(e, &v->operands[i]->type, "carried");
    move(e, &v->operands[i]->type, e->buffers[v->operands[i]->id], carried[i], line);
  }
  uly_step step = {.kind = ULY_STEP_LOOP,
                   .items = constant(e, v->u.repeat.count),
                   .scratch = ULY_NONE,
                   .predicate = ULY_NONE,
                   .name = uly_program_name(p, ULY_STR("repeat")),
                   .spec_line = line};
  uint32_t loop = uly_program_add_steps(p, step);
  ULY_ASSERT(e->n_loops < ULY_MAX_LOOPS);
  e->loop_counts[e->n_loops++] = v->u.repeat.count;
  for (int32_t j = 0; j < body->n_values; j++) {
    const uly_graph_value *arg = body->values[j];
    if (arg->op != ULY_OP_BODY_ARG) continue;
    e->buffers[arg->id] = add_buffer(e, &arg->type, "argument");
    move(e, &arg->type, carried[arg->u.arg.index], e->buffers[arg->id], line);
  }
  emit_region(e, body);
  for (int32_t j = 0; j < body->n_yields; j++) move(e, &body->yields[j]->type, e->buffers[body->yields[j]->id], carried[j], line);
  e->n_loops--;
  step.kind = ULY_STEP_END, step.b = loop;
  uint32_t end = uly_program_add_steps(p, step); // the table may move
  p->steps[loop].b = end;
}

// ---- values

static void emit_value(emitter *e, const uly_graph_value *v) {
  if (v->op == ULY_OP_BODY_ARG) return; // the repeat's
  if (v->op == ULY_OP_RESULT) {
    ULY_ASSERT(v->operands[0]->op == ULY_OP_REPEAT); // nothing else has several
    e->buffers[v->id] = e->carried[v->operands[0]->id][v->u.arg.index];
    add_probe(e, v, e->buffers[v->id], ULY_STR("repeat"));
    return;
  }
  if (v->op == ULY_OP_REPEAT) {
    emit_repeat(e, v);
    e->buffers[v->id] = e->carried[v->id][0];
  } else {
    e->buffers[v->id] = add_buffer(e, &v->type, uly_op_name(v->op));
    if (v->op == ULY_OP_INPUT)
      emit_input(e, v);
    else if (v->op == ULY_OP_PARAM)
      emit_param(e, v);
    else if (v->op == ULY_OP_TABLE)
      emit_table(e, v);
    else
      emit_operation(e, v);
  }
  add_probe(e, v, e->buffers[v->id], uly_str_of(uly_op_name(v->op)));
}

static void emit_region(emitter *e, const uly_graph_region *region) {
  for (int32_t i = 0; i < region->n_values && !e->diags->n_errors; i++) emit_value(e, region->values[i]);
}

// ---- entries

static int compare_rows(const void *a, const void *b) { return (*(const uint32_t *)a > *(const uint32_t *)b) - (*(const uint32_t *)a < *(const uint32_t *)b); }

static uly_span params_of(emitter *e, uly_span steps) {
  uly_program *p = e->program;
  uint32_t *rows = ULY_NEW_ARRAY(e->arena, uint32_t, steps.count + 1), n = 0;
  for (uint32_t s = steps.first; s < steps.first + steps.count; s++)
    for (uint32_t k = 0; k < p->steps[s].operands.count; k++) {
      const uly_operand *o = &p->operands[p->steps[s].operands.first + k];
      if (o->kind == ULY_OPERAND_TENSOR && p->tensors[o->index].role == ULY_PARAM) rows[n++] = o->index;
    }
  qsort(rows, n, sizeof *rows, compare_rows);
  uly_span span = {p->n_indices, 0};
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || rows[i] != rows[i - 1]) uly_program_add_indices(p, rows[i]), span.count++;
  return span;
}

static uly_span own_name(emitter *e, uly_str name) {
  uly_span chars = chars_of(e, name);
  return (uly_span){uly_program_add_names(e->program, chars), 1};
}

static void emit_entry(emitter *e, const uly_graph_entry *entry) {
  uly_program *p = e->program;
  e->entry = entry;
  e->buffers = ULY_NEW_ARRAY(e->arena, uint32_t, entry->n_values + 1);
  e->carried = ULY_NEW_ARRAY(e->arena, uint32_t *, entry->n_values + 1);
  uly_entry row = {.name = uly_program_name(p, entry->name), .when = ULY_NONE, .tensors = {p->n_tensors, 0}};
  p->used_symbols = 0;
  e->entry_row = p->n_entries;
  for (int32_t i = 0; i < entry->n_inputs; i++) {
    uint32_t tensor = add_tensor(e, ULY_INPUT, own_name(e, entry->inputs[i].name), &entry->inputs[i].type, entry->inputs[i].loc.line);
    p->tensors[tensor].id_limit = entry->inputs[i].id_limit;
  }
  uint32_t first_output = p->n_tensors, first_step = p->n_steps, first_probe = p->n_probes;
  for (int32_t i = 0; i < entry->n_results; i++)
    add_tensor(e, ULY_OUTPUT, own_name(e, entry->results[i].name), &entry->results[i].value->type, entry->results[i].loc.line);
  row.tensors.count = p->n_tensors - row.tensors.first;
  uly_program_add_entries(p, row);
  emit_region(e, &entry->body);
  for (int32_t i = 0; i < entry->n_results && !e->diags->n_errors; i++) {
    const uly_graph_result *result = &entry->results[i];
    uly_operand from = operand_of(ULY_OPERAND_BUFFER, e->buffers[result->value->id], ULY_READ);
    uly_operand to = operand_of(ULY_OPERAND_TENSOR, first_output + (uint32_t)i, ULY_WRITE);
    add_copy(e, ULY_REF_WRITE, from, to, &result->value->type, "result", result->loc.line);
  }
  uly_entry *done = &p->entries[e->entry_row];
  done->steps[ULY_PHASE_FORWARD] = (uly_span){first_step, p->n_steps - first_step};
  uly_span params = params_of(e, done->steps[ULY_PHASE_FORWARD]);
  done->params = params;
  done->symbols = p->used_symbols;
  done->probes = (uly_span){first_probe, p->n_probes - first_probe};
}

uly_program *uly_ref_program(uly_arena *arena, const uly_graph *graph, uly_diags *diags) {
  emitter e = {.arena = arena, .program = uly_program_create(arena), .graph = graph, .diags = diags};
  uly_kernel_desc *kernel = ULY_NEW(arena, uly_kernel_desc);
  kernel->kind = ULY_KERNEL_REFERENCE;
  uly_program_add_kernels(e.program, kernel);
  for (int32_t s = 0; s < graph->n_symbols; s++) {
    uly_span name = chars_of(&e, graph->symbols[s]);
    uly_program_add_symbols(e.program, (uly_symbol){name, 1});
  }
  for (int32_t a = 0; a < graph->n_axes; a++) {
    uly_span name = chars_of(&e, graph->axes[a].name);
    uly_program_add_axes(e.program, (uly_axis){name});
  }
  for (int32_t i = 0; i < graph->n_entries && !diags->n_errors; i++) emit_entry(&e, &graph->entries[i]);
  if (diags->n_errors) return NULL;
  uly_program_plan_buffers(e.program);
  return e.program;
}
