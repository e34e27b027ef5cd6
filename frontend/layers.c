// Calls of layers: each expands its body where it is called, under the names and symbols of the call.
#include "frontend/checker.h"

bool uly_layer_enter(uly_checker *c, uly_scope *scope, uly_loc loc, uly_global *global, uly_frame *frame) {
  frame->depth = frame->caller ? frame->caller->depth + 1 : 0;
  if (global->state == ULY_GLOBAL_OPEN) {
    uly_diag *d = ULY_CHECK_ERROR(c, scope, loc, ULY_D(RECURSION), ULY_STR_ARG(global->name));
    uly_diag_note(c->diags, d, global->decl->name.loc, ULY_D(DECLARED_HERE), ULY_STR_ARG(global->name));
    return false;
  }
  if (frame->depth > ULY_MAX_CALL_DEPTH) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(CALL_DEPTH), ULY_MAX_CALL_DEPTH);
    return false;
  }
  global->state = ULY_GLOBAL_OPEN;
  return true;
}

uly_symbols uly_layer_symbols(uly_checker *c, const uly_ast_decl *decl) {
  int32_t own = decl ? decl->u.body.n_symbols : 0;
  uly_symbols symbols = {ULY_NEW_ARRAY(c->arena, uly_symbol_binding, own + c->graph->n_symbols), 0};
  for (int32_t i = 0; i < own; i++) symbols.items[symbols.n++] = (uly_symbol_binding){.name = decl->u.body.symbols[i].text};
  for (int32_t i = 0; i < c->graph->n_symbols; i++) symbols.items[symbols.n++] = (uly_symbol_binding){.name = c->graph->symbols[i]};
  return symbols;
}

// ---- statements -----------------------------------------------------------------------------------------------------------------------------------------------

static bool keeps_type(uly_checker *c, uly_scope *scope, const uly_binding *binding, uly_loc loc, const uly_value *value) {
  if (value->kind == ULY_VALUE_POISON || binding->value.kind == ULY_VALUE_POISON) return true;
  if (value->kind != ULY_VALUE_TENSOR) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(CARRIED_KIND), ULY_STR_ARG(binding->name), uly_value_describe(value));
    return false;
  }
  const uly_tensor_type *was = &binding->value.u.tensor->type, *is = &value->u.tensor->type;
  if (uly_tensor_type_equal(was, is)) return true;
  uly_str a = uly_shape_text(c, was), b = uly_shape_text(c, is);
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(CARRIED_TYPE), ULY_STR_ARG(binding->name), ULY_STR_ARG(a), ULY_STR_ARG(b));
  return false;
}

static void assign(uly_checker *c, uly_scope *scope, uly_ast_name name, uly_value value) {
  if (uly_str_is(name.text, "_")) return;
  uly_binding *binding = uly_scopes_find(scope, name.text);
  if (!binding) {
    uly_scopes_bind(c, scope, name, value);
    return;
  }
  bool own = binding >= scope->items && binding < scope->items + scope->n;
  if (!own || !binding->carried) {
    uly_diag *d = ULY_CHECK_ERROR(c, scope, name.loc, ULY_D(REBOUND), ULY_STR_ARG(name.text));
    uly_diag_note(c->diags, d, binding->loc, ULY_D(FIRST_HERE), ULY_STR_ARG(name.text));
    return;
  }
  if (!binding->was_read) {
    uly_diag *d = ULY_CHECK_ERROR(c, scope, name.loc, ULY_D(CARRIED_UNREAD), ULY_STR_ARG(name.text));
    uly_diag_note(c->diags, d, binding->loc, ULY_D(FIRST_HERE), ULY_STR_ARG(name.text));
    binding->was_read = true;
  }
  if (keeps_type(c, scope, binding, name.loc, &value)) binding->value = value;
}

bool uly_layer_let(uly_checker *c, uly_scope *scope, const uly_ast_stmt *stmt) {
  uly_value value = uly_eval(c, scope, stmt->u.let.value);
  int32_t n = stmt->u.let.n_names, have = value.kind == ULY_VALUE_TUPLE ? value.u.list.n : 1;
  if (n != have && value.kind != ULY_VALUE_POISON) {
    ULY_CHECK_ERROR(c, scope, stmt->u.let.value->loc, ULY_D(RESULT_COUNT), have, n);
    value = uly_poison();
  }
  for (int32_t i = 0; i < n; i++) {
    uly_value item = value.kind == ULY_VALUE_TUPLE ? value.u.list.items[i] : value;
    assign(c, scope, stmt->u.let.names[i], item);
  }
  return value.kind != ULY_VALUE_POISON;
}

void uly_layer_statement(uly_checker *c, uly_scope *scope, const uly_ast_stmt *stmt) {
  if (stmt->kind == ULY_AST_LET)
    uly_layer_let(c, scope, stmt);
  else if (stmt->kind == ULY_AST_REPEAT)
    uly_repeat(c, scope, stmt);
  else
    ULY_CHECK_ERROR(c, scope, stmt->loc, ULY_D(RETURN_HERE));
}

// ---- arguments and results ------------------------------------------------------------------------------------------------------------------------------------

bool uly_layer_tensor(uly_checker *c, uly_scope *scope, uly_scope *inner, uly_frame *frame, const uly_ast_type *type, uly_str name, uly_loc loc,
                      uly_value *value) {
  uly_dtype dtype;
  if (!type) return true;
  if (!uly_type_dtype(c, inner, type, &dtype) || !uly_shape_unify(c, inner, frame, type, name, &value->u.tensor->type, loc)) return false;
  uly_dtype have = value->u.tensor->type.dtype;
  if (have == dtype) return true;
  if (value->weak && uly_dtype_get(dtype)->is_float) return *value = uly_map_cast(c, loc, *value, dtype), true;
  bool floats = uly_dtype_get(have)->is_float && uly_dtype_get(dtype)->is_float;
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(DTYPE_MISMATCH), ULY_STR_ARG(name), uly_dtype_name(have), uly_dtype_name(dtype), floats ? "; write cast(…)" : "");
  return false;
}

static bool static_fits(const uly_ast_type *type, const uly_value *value) {
  const uly_value *item = uly_static_first(value);
  uly_str name = type->name.text;
  bool number = item->kind == ULY_VALUE_NUMBER;
  if (uly_str_is(name, "int")) return (number && item->u.number.type == ULY_SCALAR_INT) || item->kind == ULY_VALUE_SIZE;
  if (uly_str_is(name, "float")) return (number && item->u.number.type != ULY_SCALAR_BOOL) || item->kind == ULY_VALUE_SIZE;
  if (uly_str_is(name, "bool")) return number && item->u.number.type == ULY_SCALAR_BOOL;
  if (uly_str_is(name, "str")) return item->kind == ULY_VALUE_STRING;
  if (uly_str_is(name, "mask")) return item->kind == ULY_VALUE_MASK;
  return uly_str_is(name, "score") && item->kind == ULY_VALUE_SCORE;
}

static bool static_argument(uly_checker *c, uly_scope *scope, const uly_ast_param *param, uly_loc loc, uly_value *value) {
  if (!static_fits(param->type, value)) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(ARGUMENT_TYPE), ULY_STR_ARG(param->name.text), ULY_STR_ARG(param->type->name.text), uly_value_describe(value));
    return false;
  }
  if (uly_str_is(param->type->name.text, "float")) *value = uly_eval_apply(c, scope, loc, ULY_SC_FLOAT, value, 1);
  return value->kind != ULY_VALUE_POISON;
}

static uly_value *check_results(uly_checker *c, uly_scope *signature, uly_scope *scope, const uly_ast_stmt *stmt) {
  const uly_ast_decl *decl = scope->frame->decl;
  int32_t n = decl->u.body.n_results;
  uly_value *values = ULY_NEW_ARRAY(c->arena, uly_value, n);
  bool ok = true;
  if (stmt->u.ret.n != n) {
    ULY_CHECK_ERROR(c, scope, stmt->loc, ULY_D(RETURN_COUNT), ULY_STR_ARG(decl->name.text), n, stmt->u.ret.n);
    return NULL;
  }
  for (int32_t i = 0; i < n; i++) {
    const uly_ast_result *result = &decl->u.body.results[i];
    uly_str name = result->name.text.len ? result->name.text : ULY_STR("out");
    uly_loc loc = stmt->u.ret.values[i]->loc;
    values[i] = uly_eval(c, scope, stmt->u.ret.values[i]);
    if (values[i].kind == ULY_VALUE_TENSOR) {
      ok &= uly_layer_tensor(c, scope, signature, scope->frame, result->type, name, loc, &values[i]) &&
            uly_shape_check(c, signature, result->type, name, &values[i].u.tensor->type, loc);
      continue;
    }
    ok = false;
    if (values[i].kind != ULY_VALUE_POISON) ULY_CHECK_ERROR(c, scope, loc, ULY_D(TENSOR_WANTED), ULY_STR_ARG(name), uly_value_describe(&values[i]));
  }
  return ok ? values : NULL;
}

uly_value *uly_layer_body(uly_checker *c, uly_scope *signature, uly_scope *scope) {
  const uly_ast_block *block = &scope->frame->decl->u.body.body;
  for (int32_t i = 0; i < block->n; i++) {
    const uly_ast_stmt *stmt = &block->stmts[i];
    if (c->exhausted) return NULL;
    if (stmt->kind == ULY_AST_RETURN && i + 1 < block->n) ULY_CHECK_ERROR(c, scope, block->stmts[i + 1].loc, ULY_D(AFTER_RETURN));
    if (stmt->kind == ULY_AST_RETURN) return check_results(c, signature, scope, stmt);
    uly_layer_statement(c, scope, stmt);
  }
  ULY_CHECK_ERROR(c, scope, block->end, ULY_D(NO_RETURN), ULY_STR_ARG(scope->frame->decl->name.text));
  return NULL;
}

// ---- calls ----------------------------------------------------------------------------------------------------------------------------------------------------

typedef struct layer_args {
  uly_value *values;
  uly_loc *locs;
  uly_value name;
} layer_args;

static int32_t find_param(const uly_ast_decl *decl, uly_str name) {
  for (int32_t i = 0; i < decl->u.body.n_params; i++)
    if (uly_str_equal(decl->u.body.params[i].name.text, name)) return i;
  return -1;
}

static bool eval_name(uly_checker *c, uly_scope *scope, const uly_ast_expr *expr, uly_value *out) {
  *out = uly_eval(c, scope, expr);
  const uly_value *item = uly_static_first(out);
  if (item->kind == ULY_VALUE_STRING || item->kind == ULY_VALUE_POISON) return item->kind == ULY_VALUE_STRING;
  ULY_CHECK_ERROR(c, scope, expr->loc, ULY_D(STATIC_WANTED), "`name`", "a string", uly_value_describe(out));
  return false;
}

static bool eval_args(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, const uly_ast_decl *decl, layer_args *args) {
  bool ok = true;
  for (int32_t i = 0; i < call->u.call.n; i++) {
    const uly_ast_arg *arg = &call->u.call.args[i];
    int32_t at = arg->name.text.len ? find_param(decl, arg->name.text) : i;
    if (at < 0 && uly_str_is(arg->name.text, "name")) {
      ok &= eval_name(c, scope, arg->value, &args->name);
    } else if (at < 0) {
      uly_diag *d = ULY_CHECK_ERROR(c, scope, arg->name.loc, ULY_D(UNKNOWN_ARGUMENT_OF), ULY_STR_ARG(decl->name.text), ULY_STR_ARG(arg->name.text));
      uly_str *names = ULY_NEW_ARRAY(c->arena, uly_str, decl->u.body.n_params + 1);
      for (int32_t j = 0; j < decl->u.body.n_params; j++) names[j] = decl->u.body.params[j].name.text;
      names[decl->u.body.n_params] = ULY_STR("name");
      uly_diag_suggest(c->diags, d, arg->name.text, names, (size_t)decl->u.body.n_params + 1);
      ok = false;
    } else if (at >= decl->u.body.n_params) {
      ULY_CHECK_ERROR(c, scope, arg->value->loc, ULY_D(TOO_MANY_ARGUMENTS), ULY_STR_ARG(decl->name.text), decl->u.body.n_params, call->u.call.n);
      return false;
    } else if (args->values[at].kind != ULY_VALUE_NONE) {
      ULY_CHECK_ERROR(c, scope, arg->value->loc, ULY_D(ARGUMENT_TWICE), ULY_STR_ARG(arg->name.text));
      ok = false;
    } else {
      args->values[at] = uly_eval(c, scope, arg->value);
      args->locs[at] = arg->value->loc;
      ok &= args->values[at].kind != ULY_VALUE_POISON;
    }
  }
  return ok;
}

// Static arguments first, so that dims can use them, then tensors.
static bool bind_params(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, uly_frame *frame, layer_args *args, uly_scope *signature, uly_scope *body) {
  const uly_ast_decl *decl = frame->decl;
  bool ok = true;
  for (int32_t i = 0; i < decl->u.body.n_params; i++) {
    const uly_ast_param *param = &decl->u.body.params[i];
    if (args->values[i].kind == ULY_VALUE_NONE && param->value) args->values[i] = uly_eval(c, signature, param->value);
    if (args->values[i].kind == ULY_VALUE_POISON) return false;
    if (args->values[i].kind == ULY_VALUE_NONE) {
      ULY_CHECK_ERROR(c, scope, call->loc, ULY_D(MISSING_ARGUMENT), ULY_STR_ARG(decl->name.text), ULY_STR_ARG(param->name.text));
      return false;
    }
    if (!param->type || param->type->has_dims) continue;
    if (static_argument(c, scope, param, args->locs[i], &args->values[i]))
      uly_scopes_bind(c, signature, param->name, args->values[i]);
    else
      ok = false;
  }
  for (int32_t i = 0; i < decl->u.body.n_params && ok; i++) {
    const uly_ast_param *param = &decl->u.body.params[i];
    if (param->type && !param->type->has_dims) continue;
    if (param->type && args->values[i].kind != ULY_VALUE_TENSOR) {
      ULY_CHECK_ERROR(c, scope, args->locs[i], ULY_D(TENSOR_WANTED), ULY_STR_ARG(param->name.text), uly_value_describe(&args->values[i]));
      return false;
    }
    if (param->type) ok = uly_layer_tensor(c, scope, signature, frame, param->type, param->name.text, args->locs[i], &args->values[i]);
    uly_scopes_bind(c, body, param->name, args->values[i]);
  }
  for (int32_t i = 0; i < decl->u.body.n_params && ok; i++) {
    const uly_ast_param *param = &decl->u.body.params[i];
    if (param->type && param->type->has_dims) ok = uly_shape_check(c, signature, param->type, param->name.text, &args->values[i].u.tensor->type, args->locs[i]);
  }
  return ok;
}

uly_value uly_layer_call(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, uly_global *global) {
  const uly_ast_decl *decl = global->decl;
  layer_args args = {ULY_NEW_ARRAY(c->arena, uly_value, decl->u.body.n_params), ULY_NEW_ARRAY(c->arena, uly_loc, decl->u.body.n_params),
                     uly_static_string(ULY_STR(""))};
  for (int32_t i = 0; i < decl->u.body.n_params; i++) {
    args.values[i].kind = ULY_VALUE_NONE;
    args.locs[i] = call->loc;
  }
  uly_frame frame = {.decl = decl, .caller = scope->frame, .call = call->loc};
  if (!eval_args(c, scope, call, decl, &args) || !uly_layer_enter(c, scope, call->loc, global, &frame)) return uly_poison();
  frame.symbols = uly_layer_symbols(c, decl);
  frame.path = uly_param_join(c, scope, call->loc, scope->frame->path, args.name);
  uly_scope signature = {.frame = &frame}, body = {.parent = &signature, .frame = &frame};
  uly_value *values = NULL;
  if (frame.path.kind != ULY_VALUE_POISON && bind_params(c, scope, call, &frame, &args, &signature, &body)) values = uly_layer_body(c, &signature, &body);
  global->state = ULY_GLOBAL_NEW;
  if (!values) return uly_poison();
  if (decl->u.body.n_results == 1) return values[0];
  return (uly_value){.kind = ULY_VALUE_TUPLE, .u.list = {values, decl->u.body.n_results}};
}
