// Brackets: items of lists, elements of captured tensors, rows of tables, slices and new dims of tensors.
#include "frontend/checker.h"

static uly_value list_item(uly_checker *c, uly_scope *scope, uly_loc loc, void *context, const uly_value *args, int n) {
  const uly_value *list = context;
  (void)n;
  int64_t i = args[0].u.number.i, size = list->u.list.n;
  if (i >= -size && i < size) return list->u.list.items[i < 0 ? i + size : i];
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(LIST_INDEX), i, (int)size);
  return uly_poison();
}

enum { MAX_SELECTED_LIST = 64 };

// The query head as an index must be one of the list.
static bool heads_fit(uly_checker *c, uly_scope *scope, uly_loc loc, const uly_value *list, uly_value index) {
  const uly_expr_node *node = index.kind == ULY_VALUE_NODE ? uly_expr_node_at(c->builder, index.u.node) : NULL;
  if (!node || node->op != ULY_SC_COORD || node->index != ULY_COORD_H || c->heads <= list->u.list.n) return true;
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(LIST_INDEX), c->heads - 1, (int)list->u.list.n);
  return false;
}

// An index known only where code runs: a chain of selections. Outside of the list it is its last item.
static uly_value select_from_list(uly_checker *c, uly_scope *scope, uly_loc loc, const uly_value *list, uly_value index) {
  int32_t n = list->u.list.n;
  if (n > MAX_SELECTED_LIST) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(LIST_SIZE), n, MAX_SELECTED_LIST);
    return uly_poison();
  }
  if (!heads_fit(c, scope, loc, list, index)) return uly_poison();
  uly_value result = list->u.list.items[n - 1];
  for (int32_t i = n - 1; i-- > 0;) {
    uly_value equal[2] = {index, uly_static_int(i)};
    uly_value args[3] = {uly_eval_apply(c, scope, loc, ULY_SC_EQ, equal, 2), list->u.list.items[i], result};
    result = uly_eval_apply(c, scope, loc, ULY_SC_IF, args, 3);
  }
  return result;
}

static uly_value index_list(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr, uly_value list) {
  const uly_ast_index *item = &expr->u.index.items[0];
  if (expr->u.index.n != 1 || item->kind != ULY_AST_AT) {
    ULY_CHECK_ERROR(c, scope, expr->op_loc, ULY_D(LIST_BRACKETS));
    return uly_poison();
  }
  uly_value index = uly_eval(c, scope, item->begin);
  if (index.kind == ULY_VALUE_POISON) return index;
  if (!list.u.list.n) {
    ULY_CHECK_ERROR(c, scope, item->loc, ULY_D(LIST_INDEX), (int64_t)0, 0);
    return uly_poison();
  }
  const uly_value *first = uly_static_first(&index);
  if (first->kind == ULY_VALUE_NUMBER && first->u.number.type == ULY_SCALAR_INT) return uly_static_each(c, scope, item->loc, list_item, &list, &index, 1);
  if (index.kind == ULY_VALUE_NODE || index.kind == ULY_VALUE_TENSOR) return select_from_list(c, scope, item->loc, &list, index);
  ULY_CHECK_ERROR(c, scope, item->loc, ULY_D(INDEX_TYPE), uly_value_describe(&index));
  return uly_poison();
}

static uly_value index_capture(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr, uly_value base) {
  const uly_tensor_type *type = &base.u.capture.tensor->type;
  int32_t nodes[ULY_EXPR_MAX_ARGS], n = expr->u.index.n;
  if (n != type->rank) {
    uly_str text = uly_shape_text(c, type);
    ULY_CHECK_ERROR(c, scope, expr->op_loc, ULY_D(INDEX_COUNT), ULY_STR_ARG(text), type->rank, n);
    return uly_poison();
  }
  for (int32_t i = 0; i < n; i++) {
    const uly_ast_index *item = &expr->u.index.items[i];
    if (item->kind != ULY_AST_AT) {
      ULY_CHECK_ERROR(c, scope, item->loc, ULY_D(CAPTURE_BRACKETS));
      return uly_poison();
    }
    uly_value index = uly_eval(c, scope, item->begin);
    if (index.kind == ULY_VALUE_POISON) return index;
    nodes[i] = uly_eval_node(c, c->builder, index);
    if (nodes[i] < 0 || uly_expr_node_at(c->builder, nodes[i])->type != ULY_SCALAR_INT) {
      ULY_CHECK_ERROR(c, scope, item->loc, ULY_D(INDEX_TYPE), nodes[i] < 0 ? uly_value_describe(&index) : "a float or bool");
      return uly_poison();
    }
  }
  int32_t node = uly_expr_load(c->builder, uly_map_scalar_type(type->dtype), base.u.capture.operand, nodes, n);
  if (node >= 0) return (uly_value){.kind = ULY_VALUE_NODE, .u.node = node};
  ULY_CHECK_ERROR(c, scope, expr->loc, ULY_D(EXPRESSION_SIZE), ULY_EXPR_MAX_NODES);
  return uly_poison();
}

uly_value uly_index_gather(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value table, uly_value ids) {
  const uly_tensor_type *w = &table.u.tensor->type, *at = &ids.u.tensor->type;
  if (at->dtype != ULY_I32 && at->dtype != ULY_I64) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(IDS_DTYPE), uly_dtype_name(at->dtype));
    return uly_poison();
  }
  if (w->rank < 1 || at->rank + w->rank - 1 > ULY_GRAPH_MAX_DIMS) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(RANK_LIMIT), at->rank + w->rank - 1, ULY_GRAPH_MAX_DIMS);
    return uly_poison();
  }
  uly_tensor_type type = *at;
  type.dtype = w->dtype;
  for (int32_t i = 1; i < w->rank; i++) type.dims[type.rank++] = w->dims[i];
  uly_graph_value *operands[2] = {table.u.tensor, ids.u.tensor};
  if (operands[1]->op == ULY_OP_INPUT && uly_dim_is_const(w->dims[0])) {
    int64_t *limit = &c->inputs[operands[1]->u.arg.index].id_limit;
    if (*limit == 0 || *limit > w->dims[0].add) *limit = w->dims[0].add;
  }
  return uly_build_tensor(uly_build_value(c, ULY_OP_GATHER, loc, &type, operands, 2), false);
}

// ---- tensors --------------------------------------------------------------------------------------------------------------------------------------------------

typedef struct bracket {
  uly_checker *c;
  uly_scope *scope;
  const uly_ast_expr *expr;
  uly_value x;
  int32_t dim; // of x, that the next item is about
} bracket;

// A range of a dim: as the spec writes its bounds, and from the dim's begin.
typedef struct range {
  uly_dim written_begin, written_end, begin, end;
} range;

// Whether a dim is below 0 at every size of its symbol.
static bool is_negative(uly_dim dim) {
  int64_t least; // of symbol 1
  return dim.mul <= 0 && !__builtin_add_overflow(dim.mul, dim.add, &least) && least < 0;
}

static bool fail_linear(bracket *b, uly_loc loc, uly_dim x, uly_dim y) {
  uly_str text = uly_str_format(b->c->arena, "%.*s - %.*s", ULY_STR_ARG(uly_dim_text(b->c, x)), ULY_STR_ARG(uly_dim_text(b->c, y)));
  ULY_CHECK_ERROR(b->c, b->scope, loc, ULY_D(NOT_LINEAR), ULY_STR_ARG(text));
  return false;
}

// A bound of a slice: a number or size; negative ones count from the end.
static bool get_bound(bracket *b, const uly_ast_expr *expr, uly_dim size, uly_dim *out_written, uly_dim *out) {
  uly_value value = uly_static_demand(b->c, uly_eval(b->c, b->scope, expr));
  int64_t number;
  if (value.kind != ULY_VALUE_SIZE) {
    if (!uly_static_get_int(b->c, b->scope, expr->loc, value, "a bound of a slice", &number)) return false;
    *out_written = uly_dim_const(number);
  } else if (!uly_dim_linear(value.u.size, out_written)) {
    uly_str text = uly_expr_print(b->c->arena, value.u.size, b->c->graph->symbols, b->c->graph->n_symbols);
    ULY_CHECK_ERROR(b->c, b->scope, expr->loc, ULY_D(NOT_LINEAR), ULY_STR_ARG(text));
    return false;
  }
  *out = *out_written;
  uly_dim back;
  if (is_negative(*out) && uly_dim_apply(ULY_SC_NEG, *out, *out, &back) && !uly_dim_apply(ULY_SC_SUB, size, back, out))
    return fail_linear(b, expr->loc, size, back);
  return uly_dim_check_terms(b->c, b->scope, expr->loc, *out);
}

// Says that a range, or an index, is not in the dim; as written.
static bool fail_range(bracket *b, const uly_ast_index *item, uly_dim size, const range *r) {
  uly_str text = uly_dim_text(b->c, size), begin = uly_dim_text(b->c, r->written_begin), end = uly_dim_text(b->c, r->written_end);
  if (item->kind == ULY_AST_AT)
    ULY_CHECK_ERROR(b->c, b->scope, item->loc, ULY_D(INDEX_OUTSIDE), ULY_STR_ARG(begin), b->dim, ULY_STR_ARG(text));
  else
    ULY_CHECK_ERROR(b->c, b->scope, item->loc, ULY_D(SLICE_RANGE), ULY_STR_ARG(begin), ULY_STR_ARG(end), b->dim, ULY_STR_ARG(text));
  return false;
}

// How many indices the range has. What holds at some sizes and not at others is looked at when they are known.
static bool count_range(bracket *b, const uly_ast_index *item, uly_dim size, const range *r, uly_dim *out_count) {
  uly_dim behind;
  bool comparable = uly_dim_apply(ULY_SC_SUB, size, r->end, &behind);
  if (!uly_dim_apply(ULY_SC_SUB, r->end, r->begin, out_count)) return fail_linear(b, item->loc, r->end, r->begin);
  bool empty = uly_dim_is_const(*out_count) ? out_count->add < 1 : is_negative(*out_count);
  if (is_negative(r->begin) || empty || (comparable && is_negative(behind))) return fail_range(b, item, size, r);
  return uly_dim_check_terms(b->c, b->scope, item->loc, *out_count);
}

static uly_value slice(uly_checker *c, uly_loc loc, uly_value x, int32_t dim, const range *r, uly_dim count, bool drop) {
  uly_tensor_type type = x.u.tensor->type;
  type.dims[dim] = count;
  if (drop) {
    memmove(&type.dims[dim], &type.dims[dim + 1], sizeof *type.dims * (size_t)(type.rank - dim - 1));
    type.rank--;
  }
  uly_graph_value *value = uly_build_value(c, ULY_OP_SLICE, loc, &type, &x.u.tensor, 1);
  value->u.slice.dim = dim;
  value->u.slice.begin = r->begin;
  value->u.slice.end = r->end;
  value->u.slice.drop = drop;
  return uly_build_tensor(value, x.weak);
}

uly_value uly_build_slice(uly_checker *c, uly_loc loc, uly_value x, int32_t dim, uly_dim begin, uly_dim end) {
  range r = {.begin = begin, .end = end};
  uly_dim count;
  bool linear = uly_dim_apply(ULY_SC_SUB, end, begin, &count);
  ULY_ASSERT(linear);
  return slice(c, loc, x, dim, &r, count, false);
}

static bool take_slice(bracket *b, const uly_ast_index *item) {
  uly_dim size = b->x.u.tensor->type.dims[b->dim], zero = uly_dim_const(0), count;
  range r = {zero, size, zero, size};
  bool drop = item->kind == ULY_AST_AT;
  if (item->begin && !get_bound(b, item->begin, size, &r.written_begin, &r.begin)) return false;
  if (!drop && item->end && !get_bound(b, item->end, size, &r.written_end, &r.end)) return false;
  if (drop && !uly_dim_apply(ULY_SC_ADD, r.begin, uly_dim_const(1), &r.end)) return fail_range(b, item, size, &r);
  if (!drop && uly_dim_equal(r.begin, zero) && uly_dim_equal(r.end, size)) return b->dim++, true;
  if (!count_range(b, item, size, &r, &count)) return false;
  b->x = slice(b->c, b->expr->loc, b->x, b->dim, &r, count, drop);
  b->dim += !drop;
  return true;
}

static bool insert_dims(bracket *b, const int32_t *at, int32_t n) {
  const uly_tensor_type *from = &b->x.u.tensor->type;
  uly_tensor_type type = {.dtype = from->dtype, .rank = from->rank + n};
  int8_t access[ULY_GRAPH_MAX_DIMS] = {0};
  if (type.rank > ULY_GRAPH_MAX_DIMS) {
    ULY_CHECK_ERROR(b->c, b->scope, b->expr->op_loc, ULY_D(RANK_LIMIT), type.rank, ULY_GRAPH_MAX_DIMS);
    return false;
  }
  int32_t next = 0, k = 0;
  for (int32_t d = 0; d < type.rank; d++) {
    if (k < n && at[k] == d) {
      type.dims[d] = uly_dim_const(1);
      k++;
    } else {
      access[next] = (int8_t)d;
      type.dims[d] = from->dims[next++];
    }
  }
  b->x = uly_map_move(b->c, b->expr->loc, b->x, &type, access);
  return true;
}

static bool count_items(bracket *b) {
  int32_t used = 0;
  for (int32_t i = 0; i < b->expr->u.index.n; i++) used += b->expr->u.index.items[i].kind == ULY_AST_AT || b->expr->u.index.items[i].kind == ULY_AST_SLICE;
  const uly_tensor_type *type = &b->x.u.tensor->type;
  if (used <= type->rank) return true;
  uly_str text = uly_shape_text(b->c, type);
  ULY_CHECK_ERROR(b->c, b->scope, b->expr->op_loc, ULY_D(TOO_MANY_INDICES), ULY_STR_ARG(text), type->rank, used);
  return false;
}

static uly_value index_tensor(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr, uly_value base) {
  bracket b = {c, scope, expr, base, 0};
  int32_t n = expr->u.index.n, inserted[ULY_GRAPH_MAX_DIMS], n_inserted = 0, left = 0;
  if (!count_items(&b)) return uly_poison();
  for (int32_t i = 0; i < n; i++) left += expr->u.index.items[i].kind == ULY_AST_AT || expr->u.index.items[i].kind == ULY_AST_SLICE;
  for (int32_t i = 0; i < n; i++) {
    const uly_ast_index *item = &expr->u.index.items[i];
    if (item->kind == ULY_AST_ELLIPSIS) {
      b.dim = b.x.u.tensor->type.rank - left;
    } else if (item->kind == ULY_AST_NEW_DIM) {
      if (n_inserted == ULY_GRAPH_MAX_DIMS) {
        ULY_CHECK_ERROR(c, scope, item->loc, ULY_D(RANK_LIMIT), n_inserted + 1, ULY_GRAPH_MAX_DIMS);
        return uly_poison();
      }
      inserted[n_inserted] = b.dim + n_inserted;
      n_inserted++;
    } else {
      left--;
      if (!take_slice(&b, item)) return uly_poison();
    }
  }
  if (n_inserted && !insert_dims(&b, inserted, n_inserted)) return uly_poison();
  return b.x;
}

uly_value uly_index(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr) {
  uly_value base = uly_eval(c, scope, expr->u.index.base);
  if (base.kind == ULY_VALUE_POISON) return base;
  if (base.kind == ULY_VALUE_LIST) return index_list(c, scope, expr, base);
  if (base.kind == ULY_VALUE_CAPTURE && c->builder) return index_capture(c, scope, expr, base);
  if (base.kind != ULY_VALUE_TENSOR) {
    ULY_CHECK_ERROR(c, scope, expr->u.index.base->loc, ULY_D(NOT_INDEXABLE), uly_value_describe(&base));
    return uly_poison();
  }
  // w[ids]: the only bracket whose item is a tensor.
  if (expr->u.index.n == 1 && expr->u.index.items[0].kind == ULY_AST_AT) {
    int32_t errors = c->diags->n_errors;
    uly_value item = uly_eval(c, scope, expr->u.index.items[0].begin);
    if (item.kind == ULY_VALUE_TENSOR) return uly_index_gather(c, scope, expr->loc, base, item);
    if (item.kind == ULY_VALUE_POISON || errors != c->diags->n_errors) return uly_poison();
  }
  return index_tensor(c, scope, expr, base);
}
