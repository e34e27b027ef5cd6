// Values of the graph under construction, in regions: the entry's body, and that of each open repeat.
#include "frontend/checker.h"
#include "frontend/graph_print.h"

static void append(uly_checker *c, uly_region *region, uly_graph_value *value) {
  if (region->n == region->cap) {
    int32_t cap = region->cap ? region->cap * 2 : 16;
    region->values = uly_arena_grow(c->arena, region->values, sizeof *region->values * (size_t)region->cap, sizeof *region->values * (size_t)cap);
    region->cap = cap;
  }
  region->values[region->n++] = value;
  value->id = region->depth; // until numbered: how many repeats are around it
  if (++c->n_values > ULY_MAX_VALUES && !c->exhausted) {
    c->exhausted = true;
    uly_diag_add(c->diags, value->loc, ULY_D(TOO_MANY_VALUES), ULY_MAX_VALUES);
  }
}

// dtypes that kernels compute with today: f32, and others as data.
static void note_dtype(uly_checker *c, const uly_graph_value *value) {
  if (value->type.dtype == ULY_BF16 || value->type.dtype == ULY_F16)
    uly_check_unsupported(c, value->loc, "values of dtype %s", uly_dtype_name(value->type.dtype));
}

uly_graph_value *uly_build_in(uly_checker *c, uly_region *region, uly_op op, uly_loc loc, const uly_tensor_type *type, uly_graph_value *const *operands, int n) {
  static const bool lowered[] = {
#define OP(id, name, n_operands, n_results, split, is_lowered, doc) is_lowered,
#include "frontend/ops.def"
  };
  ULY_ASSERT(n <= ULY_MAX_OPERANDS);
  uly_graph_value *value = ULY_NEW(c->arena, uly_graph_value);
  value->op = op;
  value->loc = loc;
  value->type = *type;
  value->n_operands = n;
  for (int i = 0; i < n; i++) value->operands[i] = operands[i];
  append(c, region, value);
  if (!lowered[op]) uly_check_unsupported(c, loc, "%s", uly_op_name(op));
  note_dtype(c, value);
  if (!uly_shape_fits(type) && !c->exhausted) {
    uly_str text = uly_shape_text(c, type);
    c->exhausted = true;
    uly_diag_add(c->diags, loc, ULY_D(TENSOR_TOO_LARGE), ULY_STR_ARG(text), ULY_MAX_TENSOR_LOG2_BYTES);
  }
  return value;
}

uly_graph_value *uly_build_value(uly_checker *c, uly_op op, uly_loc loc, const uly_tensor_type *type, uly_graph_value *const *operands, int n) {
  return uly_build_in(c, c->region, op, loc, type, operands, n);
}

uly_value uly_build_tensor(uly_graph_value *value, bool weak) { return (uly_value){.kind = ULY_VALUE_TENSOR, .weak = weak, .u.tensor = value}; }

uly_graph_value *uly_build_result(uly_checker *c, uly_graph_value *of, int32_t index, const uly_tensor_type *type) {
  if (index == 0) return of;
  uly_graph_value *result = uly_build_value(c, ULY_OP_RESULT, of->loc, type, &of, 1);
  result->u.arg.index = index;
  return result;
}

uly_region *uly_build_region(uly_checker *c) {
  uly_region *region = ULY_NEW(c->arena, uly_region);
  region->parent = c->region;
  region->depth = c->region ? c->region->depth + 1 : 0;
  return region;
}

uly_region *uly_build_outermost(uly_checker *c, uly_graph_value *const *operands, int n) {
  int32_t depth = 0;
  for (int i = 0; i < n; i++)
    if (operands[i]->id > depth) depth = operands[i]->id;
  uly_region *region = c->region;
  while (region->depth > depth) region = region->parent;
  return region;
}

static void number(uly_graph_region *region, int32_t *next) {
  for (int32_t i = 0; i < region->n_values; i++) {
    uly_graph_value *value = region->values[i];
    if (value->op == ULY_OP_REPEAT) number(value->u.repeat.body, next);
    value->id = (*next)++;
  }
}

void uly_build_finish(uly_checker *c, uly_graph_entry *entry) {
  entry->body.values = c->region->values;
  entry->body.n_values = c->region->n;
  number(&entry->body, &entry->n_values);
}
