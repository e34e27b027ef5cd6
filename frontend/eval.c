// Expressions of a spec: to static values, nodes of scalar code, or tensors. One walk over the tree; what an operation means is decided by what its operands are.
#include "frontend/calls.h"

enum { MAX_STEPS = 3000000, MAX_NESTING = 1200 };

bool uly_eval_step(uly_checker *c, uly_loc loc) {
  if (c->exhausted) return false;
  if (++c->steps <= MAX_STEPS) return true;
  c->exhausted = true;
  uly_diag_add(c->diags, loc, ULY_D(TOO_MUCH_WORK), MAX_STEPS);
  return false;
}

static bool any_kind(const uly_value *args, int n, uly_value_kind kind) {
  for (int i = 0; i < n; i++)
    if (args[i].kind == kind) return true;
  return false;
}

static bool is_scalar(const uly_value *value) {
  const uly_value *item = uly_static_first(value);
  return item->kind == ULY_VALUE_NUMBER || item->kind == ULY_VALUE_SIZE || item->kind == ULY_VALUE_NODE || item->kind == ULY_VALUE_TENSOR;
}

static bool holds(const uly_value *value, uly_value_kind kind) { return uly_static_first(value)->kind == kind; }

static void report_node(uly_checker *c, uly_scope *scope, uly_loc loc, uly_scalar op, const uly_expr_builder *b, const int32_t *nodes, int n) {
  uly_scalar_type types[ULY_EXPR_MAX_ARGS] = {0}, type, arg_type;
  uly_number numbers[ULY_EXPR_MAX_ARGS] = {0}, folded;
  bool constant = true;
  for (int i = 0; i < n; i++) {
    const uly_expr_node *node = uly_expr_node_at(b, nodes[i]);
    types[i] = (uly_scalar_type)node->type;
    constant &= node->op == ULY_SC_CONST;
    if (constant) numbers[i] = uly_expr_node_value(node);
  }
  if (!uly_scalar_result_type(op, types, n, &type, &arg_type))
    uly_static_report_types(c, scope, loc, op, types, n);
  else if (constant && uly_scalar_apply(op, numbers, n, &folded) != ULY_OK)
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(INT_OVERFLOW), uly_scalar_get(op)->text);
  else if (op == ULY_SC_POW && type == ULY_SCALAR_INT)
    uly_static_report_types(c, scope, loc, op, types, n);
  else
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(EXPRESSION_SIZE), ULY_EXPR_MAX_NODES);
}

// In scalar code: numbers and sizes become nodes like the others.
static uly_value apply_nodes(uly_checker *c, uly_scope *scope, uly_loc loc, uly_scalar op, const uly_value *args, int n) {
  int32_t nodes[ULY_EXPR_MAX_ARGS];
  for (int i = 0; i < n; i++) {
    nodes[i] = c->map ? uly_map_value(c->map, loc, &args[i]) : uly_eval_node(c, c->builder, args[i]);
    if (nodes[i] < 0) {
      ULY_CHECK_ERROR(c, scope, loc, ULY_D(EXPRESSION_SIZE), ULY_EXPR_MAX_NODES);
      return uly_poison();
    }
  }
  int32_t node = uly_expr_op(c->builder, op, nodes, n);
  if (node < 0) {
    report_node(c, scope, loc, op, c->builder, nodes, n);
    return uly_poison();
  }
  return (uly_value){.kind = ULY_VALUE_NODE, .u.node = node};
}

static int32_t keep_leaf(void *context, uly_expr_builder *b, const uly_expr_node *node) {
  (void)context, (void)b, (void)node;
  return -1;
}

int32_t uly_eval_node(uly_checker *c, uly_expr_builder *b, uly_value value) {
  value = uly_static_demand(c, value);
  if (value.kind == ULY_VALUE_NODE) return value.u.node;
  if (value.kind == ULY_VALUE_SIZE) return uly_expr_graft(b, value.u.size, keep_leaf, NULL);
  if (value.kind != ULY_VALUE_NUMBER) return -1;
  uly_number number = value.u.number;
  return number.type == ULY_SCALAR_FLOAT ? uly_expr_const_float(b, number.f)
         : number.type == ULY_SCALAR_INT ? uly_expr_const_int(b, number.i)
                                         : uly_expr_const_bool(b, number.i != 0);
}

// Operands are numbers, sizes and tensors, at least one not a number: an expression of its own.
static uly_value apply_map(uly_checker *c, uly_scope *scope, uly_loc loc, uly_scalar op, const uly_value *args, int n) {
  uly_map_builder m = uly_map_begin(c);
  int32_t nodes[ULY_EXPR_MAX_ARGS];
  m.has_tensors = any_kind(args, n, ULY_VALUE_TENSOR);
  for (int i = 0; i < n; i++) nodes[i] = uly_map_value(&m, loc, &args[i]);
  int32_t node = uly_expr_op(m.b, op, nodes, n);
  if (node >= 0) return uly_map_end(&m, scope, loc, node);
  report_node(c, scope, loc, op, m.b, nodes, n);
  return uly_poison();
}

static uly_value apply_closures(uly_checker *c, uly_scope *scope, uly_loc loc, uly_scalar op, const uly_value *args, int n) {
  for (int i = 0; i < n; i++) {
    if (holds(&args[i], ULY_VALUE_MASK)) continue;
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(MASK_OPERAND), uly_scalar_get(op)->text, uly_value_describe(&args[i]));
    return uly_poison();
  }
  uly_closure_kind kind = op == ULY_SC_NOT ? ULY_CLOSURE_NOT : op == ULY_SC_AND ? ULY_CLOSURE_AND : ULY_CLOSURE_OR;
  return uly_closure_each(c, scope, loc, kind, args, n);
}

static uly_value compare_strings(uly_checker *c, uly_scope *scope, uly_loc loc, void *context, const uly_value *args, int n) {
  (void)c, (void)scope, (void)loc, (void)n;
  return uly_static_bool(uly_str_equal(args[0].u.string, args[1].u.string) == (*(const uly_scalar *)context == ULY_SC_EQ));
}

uly_value uly_eval_apply(uly_checker *c, uly_scope *scope, uly_loc loc, uly_scalar op, const uly_value *args, int n) {
  bool plain = true, scalars = true, mask = false;
  if (any_kind(args, n, ULY_VALUE_POISON)) return uly_poison();
  for (int i = 0; i < n; i++) {
    plain &= holds(&args[i], ULY_VALUE_NUMBER);
    scalars &= is_scalar(&args[i]);
    mask |= holds(&args[i], ULY_VALUE_MASK);
  }
  if (plain) return uly_static_apply(c, scope, loc, op, args, n);
  if ((op == ULY_SC_EQ || op == ULY_SC_NE) && holds(&args[0], ULY_VALUE_STRING) && holds(&args[1], ULY_VALUE_STRING))
    return uly_static_each(c, scope, loc, compare_strings, &op, args, n);
  if (mask && (op == ULY_SC_NOT || op == ULY_SC_AND || op == ULY_SC_OR)) return apply_closures(c, scope, loc, op, args, n);
  if (!scalars) {
    int wrong = 0;
    while (is_scalar(&args[wrong])) wrong++;
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(OPERAND_TYPE), uly_scalar_get(op)->text, uly_value_describe(&args[wrong]));
    return uly_poison();
  }
  return c->builder ? apply_nodes(c, scope, loc, op, args, n) : apply_map(c, scope, loc, op, args, n);
}

// ---- forms ----------------------------------------------------------------------------------------------------------------------------------------------------

static uly_value eval_compare(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr) {
  uly_value left = uly_eval(c, scope, expr->u.compare.args[0]), result = {0};
  for (int32_t i = 0; i + 1 < expr->u.compare.n; i++) {
    uly_value right = uly_eval(c, scope, expr->u.compare.args[i + 1]);
    uly_loc loc = uly_loc_join(expr->u.compare.args[i]->loc, expr->u.compare.args[i + 1]->loc);
    uly_value one = uly_eval_apply(c, scope, loc, (uly_scalar)expr->u.compare.ops[i], (uly_value[]){left, right}, 2);
    result = i ? uly_eval_apply(c, scope, expr->loc, ULY_SC_AND, (uly_value[]){result, one}, 2) : one;
    left = right;
  }
  return result;
}

static uly_value eval_binary(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr) {
  uly_scalar op = (uly_scalar)expr->op;
  uly_value args[2] = {uly_eval(c, scope, expr->u.args[0])};
  bool decided = args[0].kind == ULY_VALUE_NUMBER && args[0].u.number.type == ULY_SCALAR_BOOL;
  if (decided && (op == ULY_SC_AND || op == ULY_SC_OR) && (args[0].u.number.i != 0) == (op == ULY_SC_OR)) return args[0];
  args[1] = uly_eval(c, scope, expr->u.args[1]);
  return uly_eval_apply(c, scope, expr->loc, op, args, 2);
}

static uly_value eval_then(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr) {
  uly_value args[2];
  for (int i = 0; i < 2; i++) {
    args[i] = uly_eval(c, scope, expr->u.args[i]);
    if (args[i].kind == ULY_VALUE_POISON) return args[i];
    if (holds(&args[i], ULY_VALUE_SCORE)) continue;
    ULY_CHECK_ERROR(c, scope, expr->u.args[i]->loc, ULY_D(THEN_OPERAND), uly_value_describe(&args[i]));
    return uly_poison();
  }
  return uly_closure_each(c, scope, expr->loc, ULY_CLOSURE_THEN, args, 2);
}

static uly_value eval_list(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr) {
  uly_value list = {.kind = ULY_VALUE_LIST, .u.list = {ULY_NEW_ARRAY(c->arena, uly_value, expr->u.list.n), expr->u.list.n}};
  bool poison = false;
  for (int32_t i = 0; i < expr->u.list.n; i++) {
    list.u.list.items[i] = uly_eval(c, scope, expr->u.list.items[i]);
    poison |= list.u.list.items[i].kind == ULY_VALUE_POISON;
  }
  return poison ? uly_poison() : list;
}

static uly_value eval_type(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr) {
  const uly_ast_type *type = expr->u.type;
  uly_value value = {.kind = ULY_VALUE_TYPE, .u.list = {ULY_NEW_ARRAY(c->arena, uly_value, type->n_dims), type->n_dims}};
  if (!uly_type_dtype(c, scope, type, &value.dtype)) return uly_poison();
  for (int32_t i = 0; i < type->n_dims; i++) {
    if (!type->dims[i].size) {
      ULY_CHECK_ERROR(c, scope, type->dims[i].loc, ULY_D(ELLIPSIS_HERE));
      return uly_poison();
    }
    value.u.list.items[i] = uly_eval(c, scope, type->dims[i].size);
    if (value.u.list.items[i].kind == ULY_VALUE_POISON) return uly_poison();
  }
  return value;
}

// Folds f(f(a, b), c) from f(a, b, c).
static uly_value eval_scalar_call(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, uly_scalar op) {
  const uly_scalar_info *info = uly_scalar_get(op);
  int32_t n = call->u.call.n;
  bool folds = op == ULY_SC_MIN || op == ULY_SC_MAX || op == ULY_SC_HASH;
  for (int32_t i = 0; i < n; i++)
    if (call->u.call.args[i].name.text.len) {
      ULY_CHECK_ERROR(c, scope, call->u.call.args[i].name.loc, ULY_D(UNKNOWN_ARGUMENT), info->text, ULY_STR_ARG(call->u.call.args[i].name.text));
      return uly_poison();
    }
  if (n < info->n_args || (n > info->n_args && !folds)) {
    ULY_CHECK_ERROR(c, scope, call->op_loc, ULY_D(ARGUMENT_COUNT), info->text, folds ? "at least " : "", info->n_args, n);
    return uly_poison();
  }
  uly_value args[2] = {uly_eval(c, scope, call->u.call.args[0].value)};
  if (n == 1) return uly_eval_apply(c, scope, call->loc, op, args, 1);
  for (int32_t i = 1; i < n; i++) {
    args[1] = uly_eval(c, scope, call->u.call.args[i].value);
    args[0] = uly_eval_apply(c, scope, call->loc, op, args, 2);
  }
  return args[0];
}

// Layers and the functions of tensor code stand in the bodies of layers only; a fn may use those that need no tensor.
static bool is_tensor_code(const uly_checker *c, const uly_scope *scope) {
  uly_ast_decl_kind kind = scope->frame->decl->kind;
  return !c->builder && c->region && (kind == ULY_AST_LAYER || kind == ULY_AST_MODEL);
}

static bool is_scalar_builtin(const uly_checker *c, uly_str name) {
  return !c->builder && (uly_str_is(name, "cast") || (c->region && uly_str_is(name, "iota")));
}

// iota in a fn whose arguments are tensors: one more of them.
static uly_value eval_iota(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, const uly_builtin *builtin) {
  uly_expr_builder *builder = c->builder;
  uly_map_builder *map = c->map;
  c->builder = NULL;
  c->map = NULL;
  uly_value tensor = uly_builtin_call(c, scope, call, builtin);
  c->builder = builder;
  c->map = map;
  if (tensor.kind != ULY_VALUE_TENSOR) return tensor;
  return (uly_value){.kind = ULY_VALUE_NODE, .u.node = uly_map_operand(map, tensor)};
}

static uly_value eval_global_call(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, uly_global *global) {
  switch (global->decl->kind) {
  case ULY_AST_FN: return uly_scalar_fn(c, scope, call, global);
  case ULY_AST_MASK:
  case ULY_AST_SCORE: return uly_closure_of(c, scope, call->loc, global, call);
  case ULY_AST_LAYER:
  case ULY_AST_MODEL:
    if (is_tensor_code(c, scope)) return uly_layer_call(c, scope, call, global);
    ULY_CHECK_ERROR(c, scope, call->loc, ULY_D(TENSOR_CODE_HERE), ULY_STR_ARG(global->name));
    return uly_poison();
  default: ULY_CHECK_ERROR(c, scope, call->loc, ULY_D(NOT_CALLABLE), ULY_STR_ARG(global->name), "a value"); return uly_poison();
  }
}

static uly_value eval_call(uly_checker *c, uly_scope *scope, const uly_ast_expr *call) {
  if (call->u.call.callee->kind != ULY_AST_NAME) {
    ULY_CHECK_ERROR(c, scope, call->u.call.callee->loc, ULY_D(CALL_OF_EXPRESSION));
    return uly_poison();
  }
  uly_str name = call->u.call.callee->u.name;
  uly_binding *binding = uly_scopes_find(scope, name);
  if (binding) {
    ULY_CHECK_ERROR(c, scope, call->u.call.callee->loc, ULY_D(NOT_CALLABLE), ULY_STR_ARG(name), uly_value_describe(&binding->value));
    return uly_poison();
  }
  uly_global *global = uly_scopes_global(c, name);
  uly_scalar op;
  if (global) return eval_global_call(c, scope, call, global);
  if (uly_scalar_by_name(name, &op)) return eval_scalar_call(c, scope, call, op);
  const uly_builtin *builtin = uly_builtin_find(name);
  if (builtin && (is_tensor_code(c, scope) || is_scalar_builtin(c, name))) return uly_builtin_call(c, scope, call, builtin);
  if (c->map && builtin && uly_str_is(name, "iota")) return eval_iota(c, scope, call, builtin);
  if (builtin) {
    ULY_CHECK_ERROR(c, scope, call->loc, ULY_D(TENSOR_CODE_HERE), ULY_STR_ARG(name));
    return uly_poison();
  }
  if (uly_builtin_is_later(name)) {
    ULY_CHECK_ERROR(c, scope, call->loc, ULY_D(LATER_FUNCTION), ULY_STR_ARG(name));
    return uly_poison();
  }
  uly_diag *d = ULY_CHECK_ERROR(c, scope, call->u.call.callee->loc, ULY_D(UNKNOWN_FUNCTION), ULY_STR_ARG(name));
  uly_scopes_suggest(c, scope, d, name, true);
  return uly_poison();
}

static uly_value eval_expr(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr) {
  switch ((uly_ast_expr_kind)expr->kind) {
  case ULY_AST_INT: return uly_static_int(expr->u.i);
  case ULY_AST_FLOAT: return uly_static_float(expr->u.f);
  case ULY_AST_BOOL: return uly_static_bool(expr->u.b);
  case ULY_AST_NONE: return (uly_value){.kind = ULY_VALUE_NONE};
  case ULY_AST_STRING: return uly_param_string(c, scope, expr);
  case ULY_AST_NAME: return uly_scopes_value(c, scope, expr->u.name, expr->loc);
  case ULY_AST_LIST: return eval_list(c, scope, expr);
  case ULY_AST_TYPE: return eval_type(c, scope, expr);
  case ULY_AST_UNARY: {
    uly_value arg = uly_eval(c, scope, expr->u.args[0]);
    return uly_eval_apply(c, scope, expr->loc, (uly_scalar)expr->op, &arg, 1);
  }
  case ULY_AST_BINARY: return eval_binary(c, scope, expr);
  case ULY_AST_COMPARE: return eval_compare(c, scope, expr);
  case ULY_AST_IF: return uly_eval_select(c, scope, expr);
  case ULY_AST_THEN: return eval_then(c, scope, expr);
  case ULY_AST_CALL: return eval_call(c, scope, expr);
  case ULY_AST_INDEX: return uly_index(c, scope, expr);
  }
  return uly_poison();
}

uly_value uly_eval(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr) {
  if (!uly_eval_step(c, expr->loc)) return uly_poison();
  if (c->nesting >= MAX_NESTING) {
    c->exhausted = true;
    ULY_CHECK_ERROR(c, scope, expr->loc, ULY_D(EXPANSION_DEPTH), MAX_NESTING);
    return uly_poison();
  }
  c->nesting++;
  uly_value value = eval_expr(c, scope, expr);
  c->nesting--;
  return value;
}
