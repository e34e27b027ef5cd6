// Elementwise tensor code: one MAP, an expression over the elements of operands that stretch to each other.
#include "frontend/checker.h"

uly_scalar_type uly_map_scalar_type(uly_dtype dtype) {
  return uly_dtype_get(dtype)->is_float ? ULY_SCALAR_FLOAT : dtype == ULY_BOOL ? ULY_SCALAR_BOOL : ULY_SCALAR_INT;
}

uly_map_builder uly_map_begin(uly_checker *c) { return (uly_map_builder){.c = c, .b = uly_expr_begin(c->arena)}; }

int32_t uly_map_operand(uly_map_builder *m, uly_value tensor) {
  uly_scalar_type type = uly_map_scalar_type(tensor.u.tensor->type.dtype);
  int32_t i = 0;
  while (i < m->n && m->operands[i].u.tensor != tensor.u.tensor) i++;
  if (i == ULY_MAX_OPERANDS) {
    m->failed = true;
    return -1;
  }
  if (i == m->n) m->operands[m->n++] = tensor;
  return uly_expr_leaf(m->b, ULY_SC_OPERAND, type, i);
}

// ---- numbers that differ between iterations

// The open repeat whose iterations |varying| has an item for, and the region inside of it.
static uly_region *region_of(uly_checker *c, const uly_value *varying) {
  uly_region *region = c->region;
  for (const uly_loop *loop = c->loop; loop; loop = loop->parent, region = region->parent)
    if (loop->total == varying->u.list.n) return region;
  return NULL;
}

bool uly_map_is_table(const uly_checker *c, const uly_value *value) {
  if (value->kind != ULY_VALUE_VARYING || !region_of((uly_checker *)(uintptr_t)c, value)) return false;
  uly_scalar_type type = value->u.list.items[0].u.number.type;
  for (int32_t i = 0; i < value->u.list.n; i++)
    if (value->u.list.items[i].kind != ULY_VALUE_NUMBER || value->u.list.items[i].u.number.type != type) return false;
  return type != ULY_SCALAR_BOOL;
}

static bool same_numbers(const uly_graph_value *table, const uly_number *numbers, int32_t n) {
  if (table->op != ULY_OP_TABLE || table->u.table.n_numbers != n) return false;
  for (int32_t i = 0; i < n; i++)
    if (memcmp(&table->u.table.numbers[i].f, &numbers[i].f, sizeof(double)) != 0 || table->u.table.numbers[i].i != numbers[i].i ||
        table->u.table.numbers[i].type != numbers[i].type)
      return false;
  return true;
}

uly_graph_value *uly_map_table(uly_checker *c, uly_loc loc, const uly_value *varying) {
  int32_t n = varying->u.list.n;
  uly_region *region = region_of(c, varying);
  uly_number *numbers = ULY_NEW_ARRAY(c->arena, uly_number, n);
  for (int32_t i = 0; i < n; i++) numbers[i] = varying->u.list.items[i].u.number;
  for (int32_t i = 0; i < region->n; i++)
    if (same_numbers(region->values[i], numbers, n)) return region->values[i];
  uly_tensor_type type = {.dtype = numbers[0].type == ULY_SCALAR_FLOAT ? ULY_F64 : ULY_I64};
  uly_graph_value *value = uly_build_in(c, region, ULY_OP_TABLE, loc, &type, NULL, 0);
  value->u.table.numbers = numbers;
  value->u.table.n_numbers = n;
  return value;
}

int32_t uly_map_value(uly_map_builder *m, uly_loc loc, const uly_value *value) {
  if (value->kind == ULY_VALUE_TENSOR) return uly_map_operand(m, *value);
  if (m->has_tensors && uly_map_is_table(m->c, value)) return uly_map_operand(m, uly_build_tensor(uly_map_table(m->c, loc, value), true));
  return uly_eval_node(m->c, m->b, *value);
}

// ---- the result

static uly_value end_size(uly_map_builder *m, int32_t node) {
  uly_expr *expr = ULY_NEW(m->c->arena, uly_expr);
  *expr = uly_expr_end(m->b, node);
  return (uly_value){.kind = ULY_VALUE_SIZE, .u.size = expr};
}

static bool common_shape(uly_map_builder *m, uly_scope *scope, uly_loc loc, uly_tensor_type *type) {
  *type = m->operands[0].u.tensor->type;
  for (int32_t i = 1; i < m->n; i++) {
    const uly_tensor_type *other = &m->operands[i].u.tensor->type;
    if (uly_shape_broadcast(type, other, type)) continue;
    uly_str a = uly_shape_text(m->c, type), b = uly_shape_text(m->c, other);
    ULY_CHECK_ERROR(m->c, scope, loc, ULY_D(BROADCAST), ULY_STR_ARG(a), ULY_STR_ARG(b));
    return false;
  }
  return true;
}

static bool fits_i32(int64_t i) { return i >= INT32_MIN && i <= INT32_MAX; }

// Ints that may not fit 32 bits: what 64-bit operations give.
static bool is_wide_int(const uly_map_builder *m, const uly_expr *expr) {
  for (int32_t i = 0; i < m->n; i++) {
    const uly_graph_value *table = m->operands[i].u.tensor;
    for (int32_t j = 0; table->op == ULY_OP_TABLE && j < table->u.table.n_numbers; j++)
      if (!fits_i32(table->u.table.numbers[j].i)) return true;
  }
  for (int32_t i = 0; i < expr->n_nodes; i++) {
    const uly_expr_node *node = &expr->nodes[i];
    if (node->op == ULY_SC_FLOOR || node->op == ULY_SC_CEIL || node->op == ULY_SC_HASH || node->op == ULY_SC_SIZE) return true;
    if (node->op == ULY_SC_INT && expr->nodes[node->args[0]].type == ULY_SCALAR_FLOAT) return true;
    if (node->op == ULY_SC_CONST && node->type == ULY_SCALAR_INT && !fits_i32(node->value.i)) return true;
  }
  return false;
}

// The dtype of the result, by the rules of the language. Weak floats give way.
static bool result_dtype(uly_map_builder *m, uly_scope *scope, uly_loc loc, const uly_expr *expr, uly_dtype *out, bool *out_weak) {
  uly_scalar_type scalar = (uly_scalar_type)expr->nodes[expr->n_nodes - 1].type;
  bool has_int = false, has_i64 = false, has_strong = false, has_weak = false;
  uly_dtype strong = ULY_F32, weak = m->c->dtype;
  for (int32_t i = 0; i < m->n; i++) {
    uly_dtype dtype = m->operands[i].u.tensor->type.dtype;
    if (m->operands[i].u.tensor->op == ULY_OP_TABLE) continue; // a number like those that are written
    if (!uly_dtype_get(dtype)->is_float) {
      has_int |= dtype != ULY_BOOL;
      has_i64 |= dtype == ULY_I64;
    } else if (m->operands[i].weak) {
      if (!has_weak) weak = dtype;
      has_weak = true;
    } else if (has_strong && dtype != strong) {
      ULY_CHECK_ERROR(m->c, scope, loc, ULY_D(MIXED_DTYPES), uly_dtype_name(strong), uly_dtype_name(dtype));
      return false;
    } else {
      strong = dtype;
      has_strong = true;
    }
  }
  uly_dtype floats = has_strong ? strong : has_int ? ULY_F32 : weak;
  if (has_int && has_strong && strong != ULY_F32 && scalar == ULY_SCALAR_FLOAT) {
    ULY_CHECK_ERROR(m->c, scope, loc, ULY_D(INT_WITH_HALF), uly_dtype_name(strong));
    return false;
  }
  *out = scalar == ULY_SCALAR_BOOL ? ULY_BOOL : scalar == ULY_SCALAR_FLOAT ? floats : has_i64 || is_wide_int(m, expr) ? ULY_I64 : ULY_I32;
  *out_weak = scalar == ULY_SCALAR_FLOAT && !has_strong && !has_int;
  return true;
}

static void align(uly_access *access, const uly_tensor_type *operand, const uly_tensor_type *result) {
  for (int32_t d = 0; d < ULY_GRAPH_MAX_DIMS; d++) access->dim[d] = -1;
  for (int32_t d = 0; d < operand->rank; d++) {
    int32_t at = result->rank - operand->rank + d;
    if (uly_dim_equal(operand->dims[d], result->dims[at])) access->dim[d] = (int8_t)at;
  }
}

uly_value uly_map_end(uly_map_builder *m, uly_scope *scope, uly_loc loc, int32_t node) {
  const uly_expr_node *result = uly_expr_node_at(m->b, node);
  uly_tensor_type type;
  bool weak;
  if (result->op == ULY_SC_CONST) return (uly_value){.kind = ULY_VALUE_NUMBER, .u.number = uly_expr_node_value(result)};
  if (m->n == 0) return end_size(m, node);
  if (m->failed || !common_shape(m, scope, loc, &type)) {
    if (m->failed) ULY_CHECK_ERROR(m->c, scope, loc, ULY_D(TOO_MANY_OPERANDS), ULY_MAX_OPERANDS);
    return uly_poison();
  }
  uly_expr expr = uly_expr_end(m->b, node);
  if (!result_dtype(m, scope, loc, &expr, &type.dtype, &weak)) return uly_poison();
  if (expr.n_nodes == 1 && expr.nodes[0].op == ULY_SC_OPERAND && uly_tensor_type_equal(&m->operands[expr.nodes[0].index].u.tensor->type, &type))
    return m->operands[expr.nodes[0].index];
  uly_graph_value *operands[ULY_MAX_OPERANDS];
  for (int32_t i = 0; i < m->n; i++) operands[i] = m->operands[i].u.tensor;
  uly_graph_value *value = uly_build_value(m->c, ULY_OP_MAP, loc, &type, operands, m->n);
  value->u.map.expr = expr;
  for (int32_t i = 0; i < m->n; i++) align(&value->u.map.access[i], &operands[i]->type, &type);
  return uly_build_tensor(value, weak);
}

uly_value uly_map_cast(uly_checker *c, uly_loc loc, uly_value x, uly_dtype dtype) {
  uly_graph_value *from = x.u.tensor;
  if (from->type.dtype == dtype) return uly_build_tensor(from, false);
  uly_map_builder m = uly_map_begin(c);
  int32_t node = uly_map_operand(&m, x);
  uly_scalar_type have = uly_map_scalar_type(from->type.dtype), want = uly_map_scalar_type(dtype);
  if (want == ULY_SCALAR_BOOL && have != ULY_SCALAR_BOOL)
    node = uly_expr_op(m.b, ULY_SC_NE, (int32_t[]){node, uly_expr_const_int(m.b, 0)}, 2);
  else if (want != have)
    node = uly_expr_op(m.b, want == ULY_SCALAR_FLOAT ? ULY_SC_FLOAT : ULY_SC_INT, &node, 1);
  uly_tensor_type type = from->type;
  type.dtype = dtype;
  uly_graph_value *value = uly_build_value(c, ULY_OP_MAP, loc, &type, &from, 1);
  value->u.map.expr = uly_expr_end(m.b, node);
  align(&value->u.map.access[0], &from->type, &type);
  return uly_build_tensor(value, false);
}

uly_value uly_map_move(uly_checker *c, uly_loc loc, uly_value x, const uly_tensor_type *type, const int8_t *access) {
  uly_map_builder m = uly_map_begin(c);
  int32_t node = uly_map_operand(&m, x);
  uly_graph_value *value = uly_build_value(c, ULY_OP_MAP, loc, type, &x.u.tensor, 1);
  value->u.map.expr = uly_expr_end(m.b, node);
  for (int32_t d = 0; d < ULY_GRAPH_MAX_DIMS; d++) value->u.map.access[0].dim[d] = d < x.u.tensor->type.rank ? access[d] : -1;
  return uly_build_tensor(value, x.weak);
}

// MAPs without operands stand once, outside all repeats.
static uly_value sourceless(uly_checker *c, uly_loc loc, const uly_tensor_type *type, const uly_expr *expr, bool weak) {
  uly_region *region = uly_build_outermost(c, NULL, 0);
  for (int32_t i = 0; i < region->n; i++) {
    uly_graph_value *other = region->values[i];
    if (other->op == ULY_OP_MAP && other->n_operands == 0 && uly_tensor_type_equal(&other->type, type) && uly_expr_equal(&other->u.map.expr, expr))
      return uly_build_tensor(other, weak);
  }
  uly_graph_value *value = uly_build_in(c, region, ULY_OP_MAP, loc, type, NULL, 0);
  value->u.map.expr = *expr;
  return uly_build_tensor(value, weak);
}

uly_value uly_map_index(uly_checker *c, uly_loc loc, const uly_tensor_type *type, int32_t dim) {
  uly_expr_builder *b = uly_expr_begin(c->arena);
  uly_expr expr = uly_expr_end(b, uly_expr_leaf(b, ULY_SC_COORD, ULY_SCALAR_INT, ULY_COORD_I0 + dim));
  return sourceless(c, loc, type, &expr, false);
}

uly_value uly_map_fill(uly_checker *c, uly_loc loc, const uly_tensor_type *type, double value) {
  uly_expr_builder *b = uly_expr_begin(c->arena);
  uly_expr expr = uly_expr_end(b, uly_expr_const_float(b, value));
  return sourceless(c, loc, type, &expr, true);
}
