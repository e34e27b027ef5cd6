#include "tests/support/graph_reference.h"

#include <math.h>

#include "codegen/reference/ref_code.h"
#include "runtime/base/random.h"

typedef struct tensor {
  uly_ref_tensor t;
  uly_ref_tensor *carried; // REPEAT: by carried value
} tensor;

typedef struct walk {
  uly_arena *arena;
  const uly_graph_run *run;
  tensor *values;    // by id
  int64_t iteration; // over all open repeats, outermost slowest
} walk;

static int64_t size_at(uly_dim dim, const int64_t *sizes) { return dim.symbol < 0 ? dim.add : dim.mul * sizes[dim.symbol] + dim.add; }

int64_t uly_graph_elements(const uly_tensor_type *type, const int64_t *sizes, int64_t *out_dims) {
  int64_t count = 1;
  for (int32_t i = 0; i < type->rank; i++) {
    uly_dim dim = type->dims[i];
    int64_t size = size_at(dim, sizes);
    if (out_dims) out_dims[i] = size;
    count *= size;
  }
  return count;
}

static void shape(const walk *w, const uly_tensor_type *type, uly_ref_tensor *t) {
  t->rank = type->rank;
  t->is_int = !uly_dtype_get(type->dtype)->is_float;
  int64_t n = uly_graph_elements(type, w->run->sizes, t->dims);
  t->data = ULY_NEW_ARRAY(w->arena, uly_ref_cell, n + 1);
}

// Memory is made when a value is met first; a repeat's body computes in the same place each time.
static tensor *result_of(walk *w, const uly_graph_value *value) {
  tensor *t = &w->values[value->id];
  if (!t->t.data) shape(w, &value->type, &t->t);
  return t;
}

static const uly_ref_tensor *operand(const walk *w, const uly_graph_value *value, int32_t i) { return &w->values[value->operands[i]->id].t; }

static void fill(uly_ref_tensor *t, const double *from) {
  for (int64_t i = 0; i < uly_ref_product(t, 0, t->rank); i++) t->data[i] = t->is_int ? (uly_ref_cell){.i = (int64_t)from[i]} : (uly_ref_cell){.f = from[i]};
}

static void copy(const uly_ref_tensor *to, const uly_ref_tensor *from) {
  memcpy(to->data, from->data, sizeof *to->data * (size_t)uly_ref_product(to, 0, to->rank));
}

// ---- noise ----------------------------------------------------------------------------------------------------------------------------------------------------

static bool is_half(uly_dtype dtype) { return dtype == ULY_BF16 || dtype == ULY_F16; }

// What takes elements as they are does not round.
static bool rounds(const uly_graph_value *value) {
  switch (value->op) {
  case ULY_OP_MAP:
    return value->u.map.expr.n_nodes > 1 || (value->n_operands == 1 && is_half(value->type.dtype) && value->operands[0]->type.dtype != value->type.dtype);
  case ULY_OP_LINEAR:
  case ULY_OP_RMSNORM:
  case ULY_OP_LAYERNORM:
  case ULY_OP_ROPE:
  case ULY_OP_ATTENTION:
  case ULY_OP_SUM:
  case ULY_OP_SOFTMAX:
  case ULY_OP_NLL: return true;
  default: return false;
  }
}

// Changes every float by up to |unit| of itself and |small|.
static void shake(const walk *w, const uly_graph_value *value, const uly_ref_tensor *t, double unit, double small) {
  uint64_t key = w->run->noise * 0x9e3779b97f4a7c15u + (uint64_t)value->id * 0xbf58476d1ce4e5b9u + (uint64_t)w->iteration;
  for (int64_t i = 0; i < uly_ref_product(t, 0, t->rank); i++) t->data[i].f += (unit * fabs(t->data[i].f) + small) * uly_random_uniform(key, (uint64_t)i);
}

// Of halves a sixteenth of a rounding: sums are in f32, so there are as many roundings as values, not as terms. f16 has an absolute one too, below its normal numbers.
static void add_noise(const walk *w, const uly_graph_value *value, const uly_ref_tensor *t) {
  double unit = value->type.dtype == ULY_BF16 ? 0x1p-12 : value->type.dtype == ULY_F16 ? 0x1p-15 : 0x1p-23, small = value->type.dtype == ULY_F16 ? 0x1p-29 : 0;
  if (!t->is_int && rounds(value)) shake(w, value, t, unit, small);
}

// A row's mean is rounded before it is taken off: where the row's values are alike, that is all that is left, and rsqrt makes it larger.
static uly_ref_tensor with_rounded_mean(const walk *w, const uly_graph_value *value, const uly_ref_tensor *x) {
  uly_ref_tensor t = *x;
  t.data = ULY_NEW_ARRAY(w->arena, uly_ref_cell, uly_ref_product(x, 0, x->rank) + 1);
  copy(&t, x);
  shake(w, value, &t, 0x1p-23, 0);
  return t;
}

// ---- operations -----------------------------------------------------------------------------------------------------------------------------------------------

static uly_ref_function *const functions[ULY_N_OPS] = {
#define REF(id, function, ints, floats) [ULY_OP_##id] = uly_ref_##function,
#include "runtime/reference/reference.def"
};

static void set_numbers(const uly_graph_value *v, const int64_t *sizes, uly_ref_op *op) {
  switch (v->op) {
#define I(...) __VA_ARGS__
#define F(...) __VA_ARGS__
#define SIZE(dim) size_at(dim, sizes)
#define REF(id, function, ints, floats)                                                                                                                        \
  case ULY_OP_##id: {                                                                                                                                          \
    const int64_t i[] = {ints};                                                                                                                                \
    const double f[] = {floats};                                                                                                                               \
    memcpy(op->i, i, sizeof i);                                                                                                                                \
    memcpy(op->f, f, sizeof f);                                                                                                                                \
    return;                                                                                                                                                    \
  }
#include "runtime/reference/reference.def"
  default: return;
  }
}

static void add_expr(walk *w, uly_ref_exprs *exprs, const uly_expr *expr) {
  uly_number *work = ULY_NEW_ARRAY(w->arena, uly_number, expr->n_nodes);
  if (!exprs->n || expr->n_nodes > exprs->expr[0].n_nodes) exprs->work = work;
  exprs->expr[exprs->n++] = *expr;
}

static uly_status run_operation(walk *w, const uly_graph_value *value, const uly_ref_tensor *out) {
  uly_ref_tensor in[ULY_MAX_OPERANDS];
  uly_ref_access access[ULY_MAX_OPERANDS];
  uly_ref_op op = {.out = *out, .in = in, .n_in = value->n_operands};
  uly_ref_exprs exprs = {.access = access, .sizes = w->run->sizes, .out = value->type.dtype};
  for (int32_t i = 0; i < value->n_operands; i++) in[i] = *operand(w, value, i);
  if (!functions[value->op]) return ULY_UNSUPPORTED;
  if (w->run->noise && value->op == ULY_OP_LAYERNORM) in[0] = with_rounded_mean(w, value, &in[0]);
  set_numbers(value, w->run->sizes, &op);
  if (value->op == ULY_OP_MAP) {
    add_expr(w, &exprs, &value->u.map.expr);
    for (int32_t i = 0; i < value->n_operands; i++) memcpy(access[i].dim, value->u.map.access[i].dim, sizeof access[i].dim);
  } else if (value->op == ULY_OP_ATTENTION) {
    add_expr(w, &exprs, &value->u.attention->mask);
    if (value->u.attention->has_score) add_expr(w, &exprs, &value->u.attention->score);
    op.work = ULY_NEW_ARRAY(w->arena, double, in[1].dims[1] + 1);
  }
  uly_ref_exprs_attach(&exprs, &op);
  uly_ref_run(functions[value->op], &op);
  return op.fault.found ? ULY_FAULT : ULY_OK;
}

// ---- what stands for other values -----------------------------------------------------------------------------------------------------------------------------

static uly_status run_region(walk *w, const uly_graph_region *region);

static uly_status run_param(walk *w, const uly_graph_value *value) {
  int64_t at = value->u.param.n_names > 1 ? w->iteration : 0;
  const double *data = w->run->param(w->run->context, value->u.param.names[at], &value->type);
  if (!data) return ULY_INVALID_INPUT;
  fill(&result_of(w, value)->t, data);
  return ULY_OK;
}

static uly_status run_table(walk *w, const uly_graph_value *value) {
  uly_number number = value->u.table.numbers[w->iteration];
  uly_ref_cell *cell = result_of(w, value)->t.data;
  if (number.type == ULY_SCALAR_FLOAT)
    cell->f = number.f;
  else
    cell->i = number.i;
  return ULY_OK;
}

static uly_status run_repeat(walk *w, const uly_graph_value *value) {
  const uly_graph_region *body = value->u.repeat.body;
  int64_t outer = w->iteration;
  tensor *out = result_of(w, value);
  bool first = !out->carried;
  if (first) out->carried = ULY_NEW_ARRAY(w->arena, uly_ref_tensor, value->n_operands);
  for (int32_t i = 0; i < value->n_operands; i++) {
    if (first) shape(w, &value->operands[i]->type, &out->carried[i]);
    copy(&out->carried[i], operand(w, value, i));
  }
  for (int64_t i = 0; i < value->u.repeat.count; i++) {
    w->iteration = outer * value->u.repeat.count + i;
    for (int32_t j = 0; j < body->n_values; j++)
      if (body->values[j]->op == ULY_OP_BODY_ARG) copy(&result_of(w, body->values[j])->t, &out->carried[body->values[j]->u.arg.index]);
    ULY_TRY(run_region(w, body));
    for (int32_t j = 0; j < body->n_yields; j++) copy(&out->carried[j], &w->values[body->yields[j]->id].t);
  }
  w->iteration = outer;
  copy(&out->t, &out->carried[0]);
  return ULY_OK;
}

static void round_floats(uly_ref_tensor *t, uly_dtype dtype) {
  uint64_t element;
  for (int64_t i = 0; i < uly_ref_product(t, 0, t->rank); i++) {
    uly_dtype_store(dtype, &element, 0, t->data[i].f);
    t->data[i].f = uly_dtype_load(dtype, &element, 0);
  }
}

static uly_status compute(walk *w, const uly_graph_value *value) {
  if (value->op == ULY_OP_PARAM) return run_param(w, value);
  if (value->op == ULY_OP_TABLE) return run_table(w, value);
  if (value->op == ULY_OP_REPEAT) return run_repeat(w, value);
  tensor *out = result_of(w, value);
  switch (value->op) {
  case ULY_OP_INPUT: return fill(&out->t, w->run->inputs[value->u.arg.index]), ULY_OK;
  case ULY_OP_BODY_ARG: return ULY_OK;                                                                              // filled by the repeat
  case ULY_OP_RESULT: return copy(&out->t, &w->values[value->operands[0]->id].carried[value->u.arg.index]), ULY_OK; // of a repeat
  default: ULY_TRY(run_operation(w, value, &out->t));
  }
  if (w->run->noise) add_noise(w, value, &out->t);
  return ULY_OK;
}

static uly_status run_value(walk *w, const uly_graph_value *value) {
  ULY_TRY(compute(w, value));
  if (w->run->naive && (value->type.dtype == ULY_BF16 || value->type.dtype == ULY_F16)) round_floats(&w->values[value->id].t, value->type.dtype);
  return ULY_OK;
}

static uly_status run_region(walk *w, const uly_graph_region *region) {
  for (int32_t i = 0; i < region->n_values; i++) ULY_TRY(run_value(w, region->values[i]));
  return ULY_OK;
}

uly_status uly_graph_reference(uly_arena *arena, const uly_graph_run *run, double **out_results) {
  walk w = {.arena = arena, .run = run, .values = ULY_NEW_ARRAY(arena, tensor, run->entry->n_values)};
  ULY_TRY(run_region(&w, &run->entry->body));
  for (int32_t i = 0; i < run->entry->n_results; i++) {
    const uly_ref_tensor *t = &w.values[run->entry->results[i].value->id].t;
    int64_t n = uly_ref_product(t, 0, t->rank);
    out_results[i] = ULY_NEW_ARRAY(arena, double, n + 1);
    for (int64_t j = 0; j < n; j++) out_results[i][j] = t->is_int ? (double)t->data[j].i : t->data[j].f;
  }
  return ULY_OK;
}
