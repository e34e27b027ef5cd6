// `if a then b else c`: decided while checking where a is static, else both arms are computed and one is selected.
#include "frontend/checker.h"

// Whether evaluating |expr| gives a static value and does nothing else: no layer, no parameter, no tensor. What varies with a repeat may then be evaluated in iterations
// that do not take it.
static bool is_pure(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr) {
  switch ((uly_ast_expr_kind)expr->kind) {
  case ULY_AST_INT:
  case ULY_AST_FLOAT:
  case ULY_AST_BOOL:
  case ULY_AST_NONE: return true;
  case ULY_AST_STRING:
    for (int32_t i = 0; i < expr->u.string.n; i++)
      if (expr->u.string.pieces[i].hole && !is_pure(c, scope, expr->u.string.pieces[i].hole)) return false;
    return true;
  case ULY_AST_NAME: {
    const uly_binding *binding = uly_scopes_find(scope, expr->u.name);
    return binding ? uly_value_is_static(&binding->value) : true;
  }
  case ULY_AST_LIST:
    for (int32_t i = 0; i < expr->u.list.n; i++)
      if (!is_pure(c, scope, expr->u.list.items[i])) return false;
    return true;
  case ULY_AST_UNARY: return is_pure(c, scope, expr->u.args[0]);
  case ULY_AST_BINARY:
  case ULY_AST_THEN: return is_pure(c, scope, expr->u.args[0]) && is_pure(c, scope, expr->u.args[1]);
  case ULY_AST_IF: return is_pure(c, scope, expr->u.args[0]) && is_pure(c, scope, expr->u.args[1]) && is_pure(c, scope, expr->u.args[2]);
  case ULY_AST_COMPARE:
    for (int32_t i = 0; i < expr->u.compare.n; i++)
      if (!is_pure(c, scope, expr->u.compare.args[i])) return false;
    return true;
  case ULY_AST_CALL: {
    const uly_ast_expr *callee = expr->u.call.callee;
    const uly_global *global = callee->kind == ULY_AST_NAME ? uly_scopes_global(c, callee->u.name) : NULL;
    uly_scalar op;
    if (global && (global->decl->kind == ULY_AST_MASK || global->decl->kind == ULY_AST_SCORE)) return true;
    if (!(global && global->decl->kind == ULY_AST_FN) && !(callee->kind == ULY_AST_NAME && uly_scalar_by_name(callee->u.name, &op))) return false;
    for (int32_t i = 0; i < expr->u.call.n; i++)
      if (!is_pure(c, scope, expr->u.call.args[i].value)) return false;
    return true;
  }
  case ULY_AST_INDEX: return is_pure(c, scope, expr->u.index.base);
  case ULY_AST_TYPE: return false;
  }
  return false;
}

static uly_value select_item(uly_checker *c, uly_scope *scope, uly_loc loc, void *context, const uly_value *args, int n) {
  (void)context, (void)n;
  if (args[0].kind == ULY_VALUE_NUMBER && args[0].u.number.type == ULY_SCALAR_BOOL) return args[args[0].u.number.i ? 1 : 2];
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(IF_CONDITION), uly_value_describe(&args[0]));
  return uly_poison();
}

uly_value uly_eval_select(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr) {
  const uly_ast_expr *condition = expr->u.args[0];
  uly_value args[3] = {uly_eval(c, scope, condition)};
  if (args[0].kind == ULY_VALUE_VARYING && !(is_pure(c, scope, expr->u.args[1]) && is_pure(c, scope, expr->u.args[2]))) args[0] = uly_static_demand(c, args[0]);
  if (args[0].kind == ULY_VALUE_NUMBER) {
    if (args[0].u.number.type == ULY_SCALAR_BOOL) return uly_eval(c, scope, expr->u.args[args[0].u.number.i ? 1 : 2]);
    ULY_CHECK_ERROR(c, scope, condition->loc, ULY_D(IF_CONDITION), uly_value_describe(&args[0]));
    return uly_poison();
  }
  if (args[0].kind == ULY_VALUE_POISON) return args[0];
  for (int i = 1; i < 3; i++) args[i] = uly_eval(c, scope, expr->u.args[i]);
  if (args[1].kind == ULY_VALUE_POISON || args[2].kind == ULY_VALUE_POISON) return uly_poison();
  if (args[0].kind == ULY_VALUE_VARYING) return uly_static_each(c, scope, condition->loc, select_item, NULL, args, 3);
  return uly_eval_apply(c, scope, expr->loc, ULY_SC_IF, args, 3);
}
