// Dims and types: sizes as mul · symbol + add, declared types against those of values, broadcasting. Dims are equal where they are the same expression of the same symbol.
#include "frontend/checker.h"
#include "frontend/graph_print.h"

static int32_t size_leaf(uly_expr_builder *b, int32_t symbol) { return uly_expr_leaf(b, ULY_SC_SIZE, ULY_SCALAR_INT, symbol); }

uly_value uly_dim_value(uly_checker *c, uly_dim dim) {
  if (uly_dim_is_const(dim)) return uly_static_int(dim.add);
  uly_expr_builder *b = uly_expr_begin(c->arena);
  int32_t node = size_leaf(b, dim.symbol);
  if (dim.mul != 1) node = uly_expr_op(b, ULY_SC_MUL, (int32_t[]){uly_expr_const_int(b, dim.mul), node}, 2);
  if (dim.add != 0) node = uly_expr_op(b, ULY_SC_ADD, (int32_t[]){node, uly_expr_const_int(b, dim.add)}, 2);
  uly_expr *expr = ULY_NEW(c->arena, uly_expr);
  *expr = uly_expr_end(b, node);
  return (uly_value){.kind = ULY_VALUE_SIZE, .u.size = expr};
}

bool uly_dim_apply(uly_scalar op, uly_dim a, uly_dim b, uly_dim *out) {
  bool overflow = false;
  switch (op) {
  case ULY_SC_NEG: return uly_dim_apply(ULY_SC_SUB, uly_dim_const(0), a, out);
  case ULY_SC_ADD:
  case ULY_SC_SUB:
    if (a.symbol >= 0 && b.symbol >= 0 && a.symbol != b.symbol) return false;
    overflow |= op == ULY_SC_ADD ? __builtin_add_overflow(a.mul, b.mul, &out->mul) : __builtin_sub_overflow(a.mul, b.mul, &out->mul);
    overflow |= op == ULY_SC_ADD ? __builtin_add_overflow(a.add, b.add, &out->add) : __builtin_sub_overflow(a.add, b.add, &out->add);
    out->symbol = out->mul == 0 ? -1 : a.symbol >= 0 ? a.symbol : b.symbol;
    return !overflow;
  case ULY_SC_MUL:
    if (a.symbol >= 0 && b.symbol >= 0) return false;
    overflow |= __builtin_mul_overflow(a.symbol >= 0 ? a.mul : b.mul, a.symbol >= 0 ? b.add : a.add, &out->mul);
    overflow |= __builtin_mul_overflow(a.add, b.add, &out->add);
    out->symbol = out->mul == 0 ? -1 : a.symbol >= 0 ? a.symbol : b.symbol;
    return !overflow;
  case ULY_SC_FDIV:
    if (b.symbol >= 0 || b.add <= 0 || a.mul % b.add || a.add % b.add) return false;
    *out = (uly_dim){a.symbol, a.mul / b.add, a.add / b.add};
    return true;
  default: return false;
  }
}

bool uly_dim_linear(const uly_expr *size, uly_dim *out) {
  enum { MOST = 64 };
  uly_dim dims[MOST];
  if (size->n_nodes > MOST) return false;
  for (int32_t i = 0; i < size->n_nodes; i++) {
    const uly_expr_node *node = &size->nodes[i];
    if (node->type != ULY_SCALAR_INT) return false;
    if (node->op == ULY_SC_CONST)
      dims[i] = uly_dim_const(node->value.i);
    else if (node->op == ULY_SC_SIZE)
      dims[i] = (uly_dim){node->index, 1, 0};
    else if (!uly_dim_apply((uly_scalar)node->op, dims[node->args[0]], dims[node->args[node->n_args > 1 ? 1 : 0]], &dims[i]))
      return false;
  }
  *out = dims[size->n_nodes - 1];
  return true;
}

bool uly_dim_check_terms(uly_checker *c, uly_scope *scope, uly_loc loc, uly_dim dim) {
  const int64_t most = INT64_C(1) << ULY_MAX_TENSOR_LOG2_BYTES;
  if (uly_dim_is_const(dim) || (dim.mul >= 1 && dim.mul <= most && dim.add >= -most && dim.add <= most)) return true;
  uly_str text = uly_dim_text(c, dim);
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(DIM_TERMS), ULY_STR_ARG(text), ULY_MAX_TENSOR_LOG2_BYTES);
  return false;
}

bool uly_dim_of_value(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value value, uly_dim *out) {
  value = uly_static_demand(c, value);
  int64_t size;
  if (value.kind == ULY_VALUE_SIZE && uly_dim_linear(value.u.size, out) && uly_dim_is_const(*out)) value = uly_static_int(out->add);
  if (value.kind == ULY_VALUE_SIZE) {
    if (uly_dim_linear(value.u.size, out)) return uly_dim_check_terms(c, scope, loc, *out);
    uly_str text = uly_expr_print(c->arena, value.u.size, c->graph->symbols, c->graph->n_symbols);
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(NOT_LINEAR), ULY_STR_ARG(text));
    return false;
  }
  if (!uly_static_get_int(c, scope, loc, value, "a dim", &size)) return false;
  *out = uly_dim_const(size);
  if (size >= 1) return true;
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(DIM_RANGE), size);
  return false;
}

uly_str uly_dim_text(uly_checker *c, uly_dim dim) {
  uly_text text = {.arena = c->arena};
  uly_dim_print(&text, dim, c->graph->symbols);
  return uly_text_str(&text);
}

uly_str uly_shape_text(uly_checker *c, const uly_tensor_type *type) { return uly_type_text(c->arena, type, c->graph->symbols); }

bool uly_shape_fits(const uly_tensor_type *type) {
  int64_t bytes = uly_dtype_bytes(type->dtype);
  for (int32_t i = 0; i < type->rank; i++) {
    uly_dim dim = type->dims[i];
    int64_t least = uly_dim_is_const(dim) ? dim.add : dim.mul;
    if (least > 1 && (__builtin_mul_overflow(bytes, least, &bytes) || bytes > INT64_C(1) << ULY_MAX_TENSOR_LOG2_BYTES)) return false;
  }
  return true;
}

bool uly_shape_broadcast(const uly_tensor_type *a, const uly_tensor_type *b, uly_tensor_type *out) {
  const uly_tensor_type *big = a->rank >= b->rank ? a : b, *small = big == a ? b : a;
  uly_tensor_type result = *big;
  int32_t lead = big->rank - small->rank;
  for (int32_t i = 0; i < small->rank; i++) {
    uly_dim x = big->dims[lead + i], y = small->dims[i], one = uly_dim_const(1);
    if (uly_dim_equal(x, y) || uly_dim_equal(y, one)) continue;
    if (!uly_dim_equal(x, one)) return false;
    result.dims[lead + i] = y;
  }
  *out = result;
  return true;
}

int32_t uly_shape_row_dim(const uly_checker *c, const uly_tensor_type *type) {
  int32_t dim = type->rank - 1;
  while (dim > 0 && uly_dim_is_const(type->dims[dim])) dim--;
  if (dim > 0 || type->rank == 1) return dim;
  for (int32_t i = 0; i < c->graph->n_axes; i++)
    for (int32_t j = 0; j < c->graph->axes[i].n_symbols; j++)
      if (c->graph->axes[i].symbols[j] == type->dims[0].symbol) return 0;
  return 1;
}

// ---- declared types -------------------------------------------------------------------------------------------------------------------------------------------

bool uly_type_dtype(uly_checker *c, uly_scope *scope, const uly_ast_type *type, uly_dtype *out) {
  *out = c->dtype;
  if (!type->name.text.len || (uly_dtype_by_name(type->name.text, out) && *out != ULY_F64)) return true;
  uly_diag *d = ULY_CHECK_ERROR(c, scope, type->name.loc, ULY_D(UNKNOWN_DTYPE), ULY_STR_ARG(type->name.text));
  uly_str names[ULY_N_DTYPES];
  size_t n = 0;
  for (int i = 0; i < ULY_N_DTYPES; i++)
    if (i != ULY_F64) names[n++] = uly_str_of(uly_dtype_name((uly_dtype)i));
  uly_diag_suggest(c->diags, d, type->name.text, names, n);
  return false;
}

static bool has_ellipsis(const uly_ast_type *type) { return type->n_dims > 0 && !type->dims[0].size; }

static bool check_rank(uly_checker *c, uly_scope *scope, const uly_ast_type *type, uly_str name, const uly_tensor_type *value, uly_loc loc) {
  bool more = has_ellipsis(type);
  int32_t n = type->n_dims - more;
  if (more ? value->rank >= n : value->rank == n) return true;
  uly_str text = uly_shape_text(c, value);
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(RANK), ULY_STR_ARG(name), ULY_STR_ARG(text), value->rank, more ? "at least " : "", n);
  return false;
}

// The symbol that a dim leaves open, and what multiplies it.
static uly_symbol_binding *open_symbol(uly_checker *c, uly_scope *scope, uly_frame *frame, const uly_ast_expr *size, int64_t *out_factor) {
  *out_factor = 1;
  if (size->kind == ULY_AST_NAME) {
    uly_symbol_binding *symbol = uly_scopes_find(scope, size->u.name) ? NULL : uly_scopes_symbol(frame, size->u.name);
    return symbol && !symbol->bound ? symbol : NULL;
  }
  if (size->kind != ULY_AST_BINARY || size->op != ULY_SC_MUL) return NULL;
  int64_t inner;
  for (int i = 0; i < 2; i++) {
    uly_symbol_binding *symbol = size->u.args[i]->kind == ULY_AST_NAME ? open_symbol(c, scope, frame, size->u.args[i], &inner) : NULL;
    if (!symbol) continue;
    uly_value factor = uly_eval(c, scope, size->u.args[1 - i]);
    if (factor.kind != ULY_VALUE_NUMBER || factor.u.number.type != ULY_SCALAR_INT || factor.u.number.i < 1) return NULL;
    *out_factor = factor.u.number.i;
    return symbol;
  }
  return NULL;
}

bool uly_shape_unify(uly_checker *c, uly_scope *scope, uly_frame *frame, const uly_ast_type *type, uly_str name, const uly_tensor_type *value, uly_loc loc) {
  int32_t first = has_ellipsis(type), n = type->n_dims - first;
  if (!check_rank(c, scope, type, name, value, loc)) return false;
  for (int32_t i = 0; i < n; i++) {
    int64_t factor;
    uly_dim dim = value->dims[value->rank - n + i];
    uly_symbol_binding *symbol = open_symbol(c, scope, frame, type->dims[first + i].size, &factor);
    if (!symbol) continue;
    if (dim.mul % factor || dim.add % factor) {
      uly_str text = uly_dim_text(c, dim);
      ULY_CHECK_ERROR(c, scope, loc, ULY_D(NOT_A_MULTIPLE), value->rank - n + i, ULY_STR_ARG(name), ULY_STR_ARG(text), factor);
      return false;
    }
    symbol->bound = true;
    symbol->dim = (uly_dim){dim.symbol, dim.mul / factor, dim.add / factor};
  }
  return true;
}

bool uly_shape_check(uly_checker *c, uly_scope *scope, const uly_ast_type *type, uly_str name, const uly_tensor_type *value, uly_loc loc) {
  int32_t first = has_ellipsis(type), n = type->n_dims - first;
  if (!check_rank(c, scope, type, name, value, loc)) return false;
  for (int32_t i = 0; i < n; i++) {
    const uly_ast_dim *declared = &type->dims[first + i];
    uly_dim dim;
    if (!uly_dim_of_value(c, scope, declared->loc, uly_eval(c, scope, declared->size), &dim)) return false;
    int32_t at = value->rank - n + i;
    if (uly_dim_equal(dim, value->dims[at])) continue;
    uly_str got = uly_dim_text(c, value->dims[at]), wanted = uly_dim_text(c, dim), text = uly_shape_text(c, value);
    uly_diag *d = ULY_CHECK_ERROR(c, scope, loc, ULY_D(DIM_MISMATCH), ULY_STR_ARG(name), ULY_STR_ARG(text), at, ULY_STR_ARG(got), ULY_STR_ARG(wanted));
    uly_diag_note(c->diags, d, declared->loc, ULY_D(DIM_DECLARED), ULY_STR_ARG(wanted));
    return false;
  }
  return true;
}
