// A checked spec as IR: a function an entry, an operation a value, scf.for for repeat. Everything is global; nothing is decided here but where values of bf16 and f16 are
// rounded. That is where a value has this type: what follows stores it so, or computes as if it had. Maps and sums that only maps read keep f32, and so do maps that only
// make weights of norms and biases, which are applied in f32; casts round.
//
//   func.func @llama(%tokens: tensor<?x?xi32, "B,S"> {uly.name = "tokens"}) -> (tensor<?x?x256xf32, "B,S"> {uly.name = "logits"}) attributes {uly.entry}
#include <math.h>

#include "passes/pipeline.h"

typedef struct builder {
  uly_ir *ir;
  const uly_graph_entry *entry;
  MlirValue *values; // by id
  bool *rounds;      // by id: read by something that takes it as it is stored
} builder;

static MlirType type_of(const builder *b, const uly_tensor_type *tensor) {
  uly_type type = uly_type_global(&b->ir->names, tensor);
  return uly_type_build(b->ir, &type);
}

static bool is_half(uly_dtype dtype) { return dtype == ULY_BF16 || dtype == ULY_F16; }

static bool is_cast(const uly_graph_value *v) {
  const uly_expr *expr = &v->u.map.expr;
  bool bare = expr->n_nodes == 1 || (expr->n_nodes == 2 && expr->nodes[1].op == ULY_SC_FLOAT);
  return v->n_operands == 1 && bare && v->operands[0]->type.dtype != v->type.dtype;
}

static uly_dtype result_dtype(const builder *b, const uly_graph_value *v) {
  if (!is_half(v->type.dtype) || b->rounds[v->id]) return v->type.dtype;
  if (v->op == ULY_OP_SUM) return ULY_F32;
  if (v->op != ULY_OP_MAP || is_cast(v)) return v->type.dtype;
  bool moves = v->n_operands == 1 && v->u.map.expr.n_nodes == 1; // as precise as what it moves
  return moves ? uly_type_of(b->ir, b->values[v->operands[0]->id]).tensor.dtype : ULY_F32;
}

static MlirType result_type(const builder *b, const uly_graph_value *v) {
  uly_tensor_type tensor = v->type;
  tensor.dtype = result_dtype(b, v);
  return type_of(b, &tensor);
}

// ---- where values are read

static bool reads_in_f32(const uly_graph_value *v, int32_t operand) {
  return v->op == ULY_OP_MAP || ((v->op == ULY_OP_RMSNORM || v->op == ULY_OP_LAYERNORM) && operand > 0) || (v->op == ULY_OP_LINEAR && operand == 2);
}

static void mark_region(const builder *b, const uly_graph_region *region) {
  for (int32_t i = 0; i < region->n_values; i++) {
    const uly_graph_value *v = region->values[i];
    for (int32_t j = 0; j < v->n_operands; j++) b->rounds[v->operands[j]->id] |= !reads_in_f32(v, j);
    if (v->op == ULY_OP_REPEAT) mark_region(b, v->u.repeat.body);
  }
  for (int32_t i = 0; i < region->n_yields; i++) b->rounds[region->yields[i]->id] = true;
}

// ---- attributes

static int add_map(const builder *b, const uly_graph_value *v, MlirNamedAttribute *attrs) {
  const uly_ir *ir = b->ir;
  MlirAttribute rows[ULY_MAX_OPERANDS];
  for (int32_t i = 0; i < v->n_operands; i++) {
    int64_t dims[ULY_GRAPH_MAX_DIMS];
    for (int32_t d = 0; d < v->operands[i]->type.rank; d++) dims[d] = v->u.map.access[i].dim[d];
    rows[i] = uly_ir_i64s(ir, dims, v->operands[i]->type.rank);
  }
  attrs[0] = uly_ir_attr(ir, "expr", uly_ir_str(ir, uly_expr_print(ir->arena, &v->u.map.expr, ir->names.symbols, ir->names.n_symbols)));
  attrs[1] = uly_ir_attr(ir, "access", uly_ir_array(ir, rows, v->n_operands));
  return 2;
}

static int add_attention(const builder *b, const uly_graph_value *v, MlirNamedAttribute *attrs) {
  const uly_ir *ir = b->ir;
  const uly_attention_attrs *a = v->u.attention;
  int n = 0;
  attrs[n++] = uly_ir_attr(ir, "mask", uly_ir_str(ir, uly_expr_print(ir->arena, &a->mask, ir->names.symbols, ir->names.n_symbols)));
  if (a->has_score) attrs[n++] = uly_ir_attr(ir, "score", uly_ir_str(ir, uly_expr_print(ir->arena, &a->score, ir->names.symbols, ir->names.n_symbols)));
  attrs[n++] = uly_ir_attr(ir, "scale", uly_ir_f64(ir, a->scale));
  if (a->sink >= 0) attrs[n++] = uly_ir_attr(ir, "sink", uly_ir_i64(ir, a->sink));
  if (a->q_offset >= 0) attrs[n++] = uly_ir_attr(ir, "q_offset", uly_ir_i64(ir, a->q_offset));
  if (a->q_offset < 0 && a->q_offset_value) attrs[n++] = uly_ir_attr(ir, "q_offset_value", uly_ir_i64(ir, a->q_offset_value));
  attrs[n++] = uly_ir_attr(ir, "captures", uly_ir_i64(ir, a->captures >= 0 ? a->captures : v->n_operands));
  return n;
}

static int add_table(const builder *b, const uly_graph_value *v, MlirNamedAttribute *attrs) {
  int32_t n = v->u.table.n_numbers;
  int64_t *ints = ULY_NEW_ARRAY(b->ir->arena, int64_t, n);
  double *floats = ULY_NEW_ARRAY(b->ir->arena, double, n);
  for (int32_t i = 0; i < n; i++) ints[i] = v->u.table.numbers[i].i, floats[i] = v->u.table.numbers[i].f;
  attrs[0] = uly_ir_attr(b->ir, "numbers", v->type.dtype == ULY_F64 ? mlirDenseF64ArrayGet(b->ir->context, n, floats) : uly_ir_i64s(b->ir, ints, n));
  return 1;
}

static int add_param(const builder *b, const uly_graph_value *v, MlirNamedAttribute *attrs) {
  const uly_ir *ir = b->ir;
  int n = 0;
  attrs[n++] = uly_ir_attr(ir, "names", uly_ir_strs(ir, v->u.param.names, v->u.param.n_names));
  if (!isnan(v->u.param.init)) attrs[n++] = uly_ir_attr(ir, "init", uly_ir_f64(ir, v->u.param.init));
  if (v->u.param.train) attrs[n++] = uly_ir_attr(ir, "train", uly_ir_unit(ir));
  return n;
}

static int add_attrs(const builder *b, const uly_graph_value *v, MlirNamedAttribute *attrs) {
  const uly_ir *ir = b->ir;
  int n = 0;
  switch (v->op) {
  case ULY_OP_PARAM: return add_param(b, v, attrs);
  case ULY_OP_TABLE: return add_table(b, v, attrs);
  case ULY_OP_MAP: return add_map(b, v, attrs);
  case ULY_OP_ATTENTION: return add_attention(b, v, attrs);
  case ULY_OP_RMSNORM:
  case ULY_OP_LAYERNORM: attrs[n++] = uly_ir_attr(ir, "eps", uly_ir_f64(ir, v->u.norm.eps)); break;
  case ULY_OP_ROPE: attrs[n++] = uly_ir_attr(ir, "pairs", uly_ir_str(ir, v->u.rope.interleaved ? ULY_STR("interleaved") : ULY_STR("half"))); break;
  case ULY_OP_NLL: attrs[n++] = uly_ir_attr(ir, "ignore", uly_ir_i64(ir, v->u.nll.ignore)); break;
  case ULY_OP_SUM:
    attrs[n++] = uly_ir_attr(ir, "dim", uly_ir_i64(ir, v->u.sum.dim));
    if (v->u.sum.keep) attrs[n++] = uly_ir_attr(ir, "keep", uly_ir_unit(ir));
    break;
  case ULY_OP_SLICE:
    attrs[n++] = uly_ir_attr(ir, "dim", uly_ir_i64(ir, v->u.slice.dim));
    attrs[n++] = uly_ir_attr(ir, "begin", uly_ir_dim(ir, v->u.slice.begin));
    attrs[n++] = uly_ir_attr(ir, "end", uly_ir_dim(ir, v->u.slice.end));
    if (v->u.slice.drop) attrs[n++] = uly_ir_attr(ir, "drop", uly_ir_unit(ir));
    break;
  case ULY_OP_SHIFT:
    attrs[n++] = uly_ir_attr(ir, "dim", uly_ir_i64(ir, v->u.shift.dim));
    attrs[n++] = uly_ir_attr(ir, "n", uly_ir_i64(ir, v->u.shift.n));
    attrs[n++] = uly_ir_attr(ir, "fill", uly_ir_f64(ir, v->u.shift.fill));
    break;
  default: break;
  }
  return n;
}

// ---- values

static void build_region(builder *b, const uly_graph_region *region, MlirBlock block, const MlirValue *arguments, const char *terminator, MlirLocation loc);

static void build_repeat(builder *b, const uly_graph_value *v, MlirBlock block) {
  const uly_ir *ir = b->ir;
  MlirLocation loc = uly_ir_loc(ir, v->loc);
  int32_t n = v->n_operands;
  ULY_ASSERT(n > 0 && v->u.repeat.body->n_yields == n);
  MlirType types[1 + ULY_MAX_OPERANDS] = {mlirIndexTypeGet(ir->context)};
  MlirLocation locs[1 + ULY_MAX_OPERANDS] = {loc};
  MlirValue operands[3 + ULY_MAX_OPERANDS], arguments[ULY_MAX_OPERANDS];
  const int64_t bounds[3] = {0, v->u.repeat.count, 1};
  for (int i = 0; i < 3; i++) {
    uly_op_spec spec = {.name = "arith.constant", .loc = loc, .results = types, .n_results = 1, .block = block};
    spec.attrs[0] = uly_ir_attr(ir, "value", mlirIntegerAttrGet(types[0], bounds[i]));
    operands[i] = uly_op_result(uly_op_build(ir, &spec), 0);
  }
  for (int32_t i = 0; i < n; i++) {
    operands[3 + i] = b->values[v->operands[i]->id];
    types[1 + i] = mlirValueGetType(operands[3 + i]);
    locs[1 + i] = loc;
  }
  MlirBlock body = mlirBlockCreate(1 + n, types, locs);
  for (int32_t i = 0; i < n; i++) arguments[i] = mlirBlockGetArgument(body, 1 + i);
  build_region(b, v->u.repeat.body, body, arguments, "scf.yield", loc);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, body);
  uly_op_spec spec = {.name = "scf.for",
                      .loc = loc,
                      .operands = operands,
                      .n_operands = 3 + n,
                      .results = types + 1,
                      .n_results = n,
                      .regions = &region,
                      .n_regions = 1,
                      .block = block};
  MlirOperation loop = uly_op_build(ir, &spec);
  uly_op_set_number(ir, loop, 0, v->id);
  b->values[v->id] = uly_op_result(loop, 0);
}

// Another result of a repeat.
static void build_result(builder *b, const uly_graph_value *v) {
  MlirOperation op = mlirOpResultGetOwner(b->values[v->operands[0]->id]);
  uly_op_set_number(b->ir, op, v->u.arg.index, v->id);
  b->values[v->id] = uly_op_result(op, v->u.arg.index);
}

static void build_op(builder *b, const uly_graph_value *v, MlirBlock block) {
  uly_kind_info info = uly_kind_get((uly_kind)v->op);
  MlirValue operands[ULY_MAX_OPERANDS];
  MlirType results[2] = {result_type(b, v)};
  char name[32];
  snprintf(name, sizeof name, "uly.%s", info.name);
  for (int32_t i = 0; i < v->n_operands; i++) operands[i] = b->values[v->operands[i]->id];
  uly_op_spec spec = {.name = name,
                      .loc = uly_ir_loc_of(b->ir, v->loc, &v->id, 1),
                      .operands = operands,
                      .n_operands = v->n_operands,
                      .results = results,
                      .n_results = 1,
                      .block = block};
  if (v->op == ULY_OP_ATTENTION) { // the log-sum-exp: a number a query and head
    uly_tensor_type lse = v->operands[0]->type;
    lse.dtype = ULY_F32;
    lse.rank--;
    results[spec.n_results++] = type_of(b, &lse);
  }
  add_attrs(b, v, spec.attrs);
  b->values[v->id] = uly_op_result(uly_op_build(b->ir, &spec), 0);
}

static void build_value(builder *b, const uly_graph_value *v, MlirBlock block, const MlirValue *arguments) {
  switch (v->op) {
  case ULY_OP_INPUT:
  case ULY_OP_BODY_ARG: b->values[v->id] = arguments[v->u.arg.index]; break;
  case ULY_OP_RESULT: build_result(b, v); break;
  case ULY_OP_REPEAT: build_repeat(b, v, block); break;
  default: build_op(b, v, block); break;
  }
}

static void build_region(builder *b, const uly_graph_region *region, MlirBlock block, const MlirValue *arguments, const char *terminator, MlirLocation loc) {
  for (int32_t i = 0; i < region->n_values; i++) build_value(b, region->values[i], block, arguments);
  MlirValue yields[ULY_MAX_OPERANDS];
  ULY_ASSERT(region->n_yields <= ULY_MAX_OPERANDS);
  for (int32_t i = 0; i < region->n_yields; i++) yields[i] = b->values[region->yields[i]->id];
  uly_op_spec spec = {.name = terminator, .loc = loc, .operands = yields, .n_operands = region->n_yields, .block = block};
  uly_op_build(b->ir, &spec);
}

// ---- entries

static MlirAttribute named(const builder *b, uly_str name, int64_t id_limit) {
  const uly_ir *ir = b->ir;
  MlirNamedAttribute attrs[2] = {uly_ir_attr(ir, "uly.name", uly_ir_str(ir, name)), uly_ir_attr(ir, "uly.id_limit", uly_ir_i64(ir, id_limit))};
  return mlirDictionaryAttrGet(ir->context, id_limit ? 2 : 1, attrs);
}

static bool build_entry(uly_ir *ir, const uly_graph_entry *entry, MlirBlock module) {
  builder b = {.ir = ir, .entry = entry};
  b.values = ULY_NEW_ARRAY(ir->arena, MlirValue, entry->n_values);
  b.rounds = ULY_NEW_ARRAY(ir->arena, bool, entry->n_values);
  mark_region(&b, &entry->body);
  int32_t n_in = entry->n_inputs, n_out = entry->n_results;
  MlirType *in = ULY_NEW_ARRAY(ir->arena, MlirType, n_in), *out = ULY_NEW_ARRAY(ir->arena, MlirType, n_out);
  MlirLocation *locs = ULY_NEW_ARRAY(ir->arena, MlirLocation, n_in);
  MlirAttribute *in_attrs = ULY_NEW_ARRAY(ir->arena, MlirAttribute, n_in), *out_attrs = ULY_NEW_ARRAY(ir->arena, MlirAttribute, n_out);
  MlirValue *arguments = ULY_NEW_ARRAY(ir->arena, MlirValue, n_in), *results = ULY_NEW_ARRAY(ir->arena, MlirValue, n_out);
  for (int32_t i = 0; i < n_in; i++) {
    in[i] = type_of(&b, &entry->inputs[i].type);
    locs[i] = uly_ir_loc(ir, entry->inputs[i].loc);
    in_attrs[i] = named(&b, entry->inputs[i].name, entry->inputs[i].id_limit);
  }
  for (int32_t i = 0; i < n_out; i++) b.rounds[entry->results[i].value->id] = true;
  MlirBlock block = mlirBlockCreate(n_in, in, locs);
  for (int32_t i = 0; i < n_in; i++) arguments[i] = mlirBlockGetArgument(block, i);
  for (int32_t i = 0; i < entry->body.n_values; i++) build_value(&b, entry->body.values[i], block, arguments);
  for (int32_t i = 0; i < n_out; i++) {
    results[i] = b.values[entry->results[i].value->id];
    out[i] = mlirValueGetType(results[i]);
    out_attrs[i] = named(&b, entry->results[i].name, 0);
  }
  MlirLocation loc = uly_ir_loc(ir, n_out ? entry->results[0].loc : (uly_loc){0});
  uly_op_spec ret = {.name = "func.return", .loc = loc, .operands = results, .n_operands = n_out, .block = block};
  uly_op_build(ir, &ret);
  MlirRegion region = mlirRegionCreate();
  mlirRegionAppendOwnedBlock(region, block);
  MlirAttribute type = mlirTypeAttrGet(mlirFunctionTypeGet(ir->context, n_in, in, n_out, out));
  uly_op_spec func = {.name = "func.func",
                      .loc = loc,
                      .regions = &region,
                      .n_regions = 1,
                      .block = module,
                      .attrs = {uly_ir_attr(ir, "sym_name", uly_ir_str(ir, entry->name)), uly_ir_attr(ir, "function_type", type),
                                uly_ir_attr(ir, "arg_attrs", uly_ir_array(ir, in_attrs, n_in)),
                                uly_ir_attr(ir, "res_attrs", uly_ir_array(ir, out_attrs, n_out)), uly_ir_attr(ir, "uly.entry", uly_ir_unit(ir))}};
  if (entry->is_model) func.attrs[5] = uly_ir_attr(ir, "uly.model", uly_ir_unit(ir));
  uly_op_build(ir, &func);
  return true;
}

bool uly_pass_build_ir(uly_ir *ir, MlirOperation module) {
  if (!ir->graph) return true; // IR text
  uly_names names = {.symbols = ir->graph->symbols, .n_symbols = ir->graph->n_symbols, .axes = ir->graph->axes, .n_axes = ir->graph->n_axes};
  uly_ir_write_names(ir, module, &names);
  bool ok = true;
  for (int32_t i = 0; i < ir->graph->n_entries; i++) ok = build_entry(ir, &ir->graph->entries[i], uly_op_body(module)) && ok;
  return ok;
}
