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
  if (w->rank != 2) uly_check_unsupported(c, loc, "gather from a table of rank %d", w->rank);
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

// A bound of a slice: negative ones count from the end. Sizes known only at bind have no numbers here.
static bool get_bound(bracket *b, const uly_ast_expr *expr, uly_dim size, int64_t *out) {
  if (!uly_static_get_int(b->c, b->scope, expr->loc, uly_eval(b->c, b->scope, expr), "a bound of a slice", out)) return false;
  if (*out >= 0) return true;
  if (uly_dim_is_const(size)) return *out += size.add, true;
  uly_check_unsupported(b->c, expr->loc, "an index counted from the end of a dim known only at bind");
  return true;
}

// Says that [begin, end), or index |begin|, is not in a dim; as written, where it counts from the end.
static bool fail_range(bracket *b, const uly_ast_index *item, uly_dim size, int64_t begin, int64_t end) {
  uly_str text = uly_dim_text(b->c, size);
  if (begin < 0 && uly_dim_is_const(size)) begin -= size.add;
  if (end < 0 && uly_dim_is_const(size)) end -= size.add;
  if (item->kind == ULY_AST_AT)
    ULY_CHECK_ERROR(b->c, b->scope, item->loc, ULY_D(INDEX_OUTSIDE), begin, b->dim, ULY_STR_ARG(text));
  else
    ULY_CHECK_ERROR(b->c, b->scope, item->loc, ULY_D(SLICE_RANGE), begin, end, b->dim, ULY_STR_ARG(text));
  return false;
}

static bool take_slice(bracket *b, const uly_ast_index *item) {
  uly_checker *c = b->c;
  uly_dim size = b->x.u.tensor->type.dims[b->dim];
  bool drop = item->kind == ULY_AST_AT, open_end = !drop && !item->end;
  int64_t begin = 0, end = uly_dim_is_const(size) ? size.add : 0;
  if (item->begin && !get_bound(b, item->begin, size, &begin)) return false;
  if (!drop && item->end && !get_bound(b, item->end, size, &end)) return false;
  if (drop && __builtin_add_overflow(begin, 1, &end)) return fail_range(b, item, size, begin, begin);
  if (open_end && begin == 0) return b->dim++, true;
  if (open_end && !uly_dim_is_const(size)) {
    uly_check_unsupported(c, item->loc, "a slice to the end of a dim known only at bind");
    if (__builtin_add_overflow(begin, 1, &end)) return fail_range(b, item, size, begin, end);
  }
  if (uly_dim_is_const(size) ? begin < 0 || end > size.add || begin >= end : begin >= end && begin >= 0) return fail_range(b, item, size, begin, end);
  uly_tensor_type type = b->x.u.tensor->type;
  if (drop) {
    memmove(&type.dims[b->dim], &type.dims[b->dim + 1], sizeof *type.dims * (size_t)(type.rank - b->dim - 1));
    type.rank--;
  } else {
    type.dims[b->dim] = uly_dim_const(end - begin);
    if (open_end && !uly_dim_is_const(size)) type.dims[b->dim] = (uly_dim){size.symbol, size.mul, size.add - begin};
  }
  uly_graph_value *value = uly_build_value(c, ULY_OP_SLICE, b->expr->loc, &type, &b->x.u.tensor, 1);
  value->u.slice.dim = b->dim;
  value->u.slice.begin = begin;
  value->u.slice.end = end;
  value->u.slice.drop = drop;
  b->x = uly_build_tensor(value, b->x.weak);
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
