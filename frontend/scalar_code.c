// Scalar bodies: fn, inlined where they are called; masks and scores, as closures until an attention asks for their expression.
#include "frontend/checker.h"

static uly_value run_body(uly_checker *c, uly_scope *scope, const uly_ast_block *block) {
  for (int32_t i = 0; i < block->n; i++) {
    const uly_ast_stmt *stmt = &block->stmts[i];
    if (stmt->kind == ULY_AST_REPEAT) {
      ULY_CHECK_ERROR(c, scope, stmt->loc, ULY_D(REPEAT_HERE), uly_ast_decl_word(scope->frame->decl->kind));
      return uly_poison();
    }
    if (stmt->kind == ULY_AST_RETURN && stmt->u.ret.n != 1) {
      ULY_CHECK_ERROR(c, scope, stmt->loc, ULY_D(ONE_RESULT), uly_ast_decl_word(scope->frame->decl->kind), stmt->u.ret.n);
      return uly_poison();
    }
    if (stmt->kind == ULY_AST_RETURN) return uly_eval(c, scope, stmt->u.ret.values[0]);
    if (!uly_layer_let(c, scope, stmt)) return uly_poison();
  }
  ULY_CHECK_ERROR(c, scope, block->end, ULY_D(NO_RETURN), ULY_STR_ARG(scope->frame->decl->name.text));
  return uly_poison();
}

// ---- fn -------------------------------------------------------------------------------------------------------------------------------------------------------

static bool bind_args(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, const uly_ast_decl *decl, uly_value *args) {
  int32_t n_params = decl->u.body.n_params;
  for (int32_t i = 0; i < call->u.call.n; i++) {
    const uly_ast_arg *arg = &call->u.call.args[i];
    int32_t at = arg->name.text.len ? 0 : i;
    while (arg->name.text.len && at < n_params && !uly_str_equal(decl->u.body.params[at].name.text, arg->name.text)) at++;
    if (at >= n_params && arg->name.text.len) {
      ULY_CHECK_ERROR(c, scope, arg->name.loc, ULY_D(UNKNOWN_ARGUMENT_OF), ULY_STR_ARG(decl->name.text), ULY_STR_ARG(arg->name.text));
      return false;
    }
    if (at >= n_params) {
      ULY_CHECK_ERROR(c, scope, arg->value->loc, ULY_D(TOO_MANY_ARGUMENTS), ULY_STR_ARG(decl->name.text), n_params, call->u.call.n);
      return false;
    }
    if (args[at].kind != ULY_VALUE_NONE) {
      ULY_CHECK_ERROR(c, scope, arg->value->loc, ULY_D(ARGUMENT_TWICE), ULY_STR_ARG(decl->u.body.params[at].name.text));
      return false;
    }
    args[at] = uly_eval(c, scope, arg->value);
    if (args[at].kind == ULY_VALUE_POISON) return false;
  }
  return true;
}

static bool bind_defaults(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, const uly_ast_decl *decl, uly_scope *inner, uly_value *args) {
  for (int32_t i = 0; i < decl->u.body.n_params; i++) {
    const uly_ast_param *param = &decl->u.body.params[i];
    if (args[i].kind == ULY_VALUE_NONE && param->value) args[i] = uly_eval(c, inner, param->value);
    if (args[i].kind == ULY_VALUE_POISON) return false;
    if (args[i].kind == ULY_VALUE_NONE) {
      ULY_CHECK_ERROR(c, scope, call->loc, ULY_D(MISSING_ARGUMENT), ULY_STR_ARG(decl->name.text), ULY_STR_ARG(param->name.text));
      return false;
    }
  }
  return true;
}

static uly_value fn_on_tensors(uly_checker *c, uly_scope *scope, uly_scope *inner, const uly_ast_expr *call, const uly_ast_decl *decl, uly_value *args) {
  uly_map_builder m = uly_map_begin(c);
  m.has_tensors = true;
  for (int32_t i = 0; i < decl->u.body.n_params; i++) {
    if (args[i].kind == ULY_VALUE_TENSOR) args[i] = (uly_value){.kind = ULY_VALUE_NODE, .u.node = uly_map_operand(&m, args[i])};
    uly_scopes_bind(c, inner, decl->u.body.params[i].name, args[i]);
  }
  c->builder = m.b;
  c->map = &m;
  uly_value result = m.failed ? uly_poison() : run_body(c, inner, &decl->u.body.body);
  c->builder = NULL;
  c->map = NULL;
  if (m.failed) {
    ULY_CHECK_ERROR(c, scope, call->loc, ULY_D(TOO_MANY_OPERANDS), ULY_MAX_OPERANDS);
    return uly_poison();
  }
  if (result.kind == ULY_VALUE_NODE) return uly_map_end(&m, scope, call->loc, result.u.node);
  if (uly_static_first(&result)->kind == ULY_VALUE_NUMBER || result.kind == ULY_VALUE_SIZE || result.kind == ULY_VALUE_POISON) return result;
  ULY_CHECK_ERROR(c, scope, call->loc, ULY_D(FN_RESULT), ULY_STR_ARG(decl->name.text), uly_value_describe(&result));
  return uly_poison();
}

uly_value uly_scalar_fn(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, uly_global *global) {
  const uly_ast_decl *decl = global->decl;
  uly_frame frame = {.decl = decl, .caller = scope->frame, .call = call->loc, .symbols = scope->frame->symbols};
  uly_scope inner = {.frame = &frame};
  uly_value *args = ULY_NEW_ARRAY(c->arena, uly_value, decl->u.body.n_params), result;
  for (int32_t i = 0; i < decl->u.body.n_params; i++) args[i].kind = ULY_VALUE_NONE;
  if (!bind_args(c, scope, call, decl, args) || !uly_layer_enter(c, scope, call->loc, global, &frame)) return uly_poison();
  uly_expr_builder *builder = c->builder;
  bool tensors = false, bound = bind_defaults(c, scope, call, decl, &inner, args);
  for (int32_t i = 0; i < decl->u.body.n_params; i++) tensors |= args[i].kind == ULY_VALUE_TENSOR;
  if (!bound) {
    result = uly_poison();
  } else if (tensors) {
    result = fn_on_tensors(c, scope, &inner, call, decl, args);
  } else {
    for (int32_t i = 0; i < decl->u.body.n_params; i++) uly_scopes_bind(c, &inner, decl->u.body.params[i].name, args[i]);
    result = run_body(c, &inner, &decl->u.body.body);
  }
  c->builder = builder;
  global->state = ULY_GLOBAL_NEW;
  return result;
}

// ---- masks and scores -----------------------------------------------------------------------------------------------------------------------------------------

// A number for a capture without dims: of its type, a table where it differs between iterations.
static bool capture_number(uly_checker *c, uly_scope *scope, uly_scope *inner, const uly_ast_param *param, uly_loc loc, uly_value *value) {
  uly_dtype dtype;
  if (!uly_type_dtype(c, inner, param->type, &dtype)) return false;
  uly_scalar_type have = uly_static_first(value)->u.number.type, want = uly_map_scalar_type(dtype);
  if (want == ULY_SCALAR_FLOAT && have == ULY_SCALAR_INT) *value = uly_static_apply(c, scope, loc, ULY_SC_FLOAT, value, 1);
  if (want == have || (want == ULY_SCALAR_FLOAT && have == ULY_SCALAR_INT)) {
    *value = uly_map_is_table(c, value) ? uly_build_tensor(uly_map_table(c, loc, value), true) : uly_static_demand(c, *value);
    return value->kind != ULY_VALUE_POISON;
  }
  ULY_CHECK_ERROR(c, scope, loc, ULY_D(ARGUMENT_TYPE), ULY_STR_ARG(param->name.text), ULY_STR_ARG(param->type->name.text), uly_value_describe(value));
  return false;
}

// Captured tensors of |decl| from the arguments of |call|, with the symbols of their types bound.
static bool capture(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, const uly_ast_decl *decl, uly_frame *frame, uly_value *captures) {
  int32_t n = decl->u.body.n_captures;
  uly_scope inner = {.frame = frame};
  for (int32_t i = 0; i < call->u.call.n; i++) {
    const uly_ast_arg *arg = &call->u.call.args[i];
    int32_t at = arg->name.text.len ? 0 : i;
    while (arg->name.text.len && at < n && !uly_str_equal(decl->u.body.captures[at].name.text, arg->name.text)) at++;
    if (at >= n) {
      ULY_CHECK_ERROR(c, scope, arg->value->loc, ULY_D(CAPTURE_COUNT), ULY_STR_ARG(decl->name.text), n, call->u.call.n);
      return false;
    }
    uly_value value = uly_eval(c, scope, arg->value);
    if (value.kind == ULY_VALUE_POISON) return false;
    const uly_ast_param *param = &decl->u.body.captures[at];
    if (uly_static_first(&value)->kind == ULY_VALUE_NUMBER && param->type->n_dims == 0) {
      if (!capture_number(c, scope, &inner, param, arg->value->loc, &value)) return false;
      captures[at] = value;
      continue;
    }
    if (value.kind != ULY_VALUE_TENSOR) {
      ULY_CHECK_ERROR(c, scope, arg->value->loc, ULY_D(TENSOR_WANTED), ULY_STR_ARG(param->name.text), uly_value_describe(&value));
      return false;
    }
    if (!uly_layer_tensor(c, scope, &inner, frame, param->type, param->name.text, arg->value->loc, &value)) return false;
    captures[at] = value;
  }
  for (int32_t i = 0; i < n; i++) {
    const uly_ast_param *param = &decl->u.body.captures[i];
    if (captures[i].kind == ULY_VALUE_NUMBER || (captures[i].kind == ULY_VALUE_TENSOR && captures[i].u.tensor->op == ULY_OP_TABLE)) continue;
    if (captures[i].kind != ULY_VALUE_TENSOR) {
      ULY_CHECK_ERROR(c, scope, call->loc, ULY_D(MISSING_ARGUMENT), ULY_STR_ARG(decl->name.text), ULY_STR_ARG(param->name.text));
      return false;
    }
    if (!uly_shape_check(c, &inner, param->type, param->name.text, &captures[i].u.tensor->type, call->loc)) return false;
  }
  return true;
}

uly_value uly_closure_of(uly_checker *c, uly_scope *scope, uly_loc loc, uly_global *global, const uly_ast_expr *call) {
  const uly_ast_decl *decl = global->decl;
  if (call && c->builder) {
    ULY_CHECK_ERROR(c, scope, call->loc, ULY_D(MASK_IN_SCALAR), ULY_STR_ARG(global->name));
    return uly_poison();
  }
  if (!call && decl->u.body.n_captures) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(CAPTURES_MISSING), ULY_STR_ARG(global->name), decl->u.body.n_captures);
    return uly_poison();
  }
  uly_closure *closure = ULY_NEW(c->arena, uly_closure);
  *closure = (uly_closure){.kind = ULY_CLOSURE_DECL, .decl = decl, .captures = ULY_NEW_ARRAY(c->arena, uly_value, decl->u.body.n_captures)};
  uly_frame frame = {.decl = decl, .caller = scope->frame, .call = loc, .symbols = uly_layer_symbols(c, NULL)};
  if (call && !capture(c, scope, call, decl, &frame, closure->captures)) return uly_poison();
  for (int32_t i = 0; i < frame.symbols.n; i++) { // what captures leave open means what it means around the call
    uly_symbol_binding *outer = uly_scopes_symbol(scope->frame, frame.symbols.items[i].name);
    if (!frame.symbols.items[i].bound && outer) frame.symbols.items[i] = *outer;
  }
  closure->symbols = frame.symbols;
  return (uly_value){.kind = decl->kind == ULY_AST_MASK ? ULY_VALUE_MASK : ULY_VALUE_SCORE, .u.closure = closure};
}

typedef struct combination {
  uly_closure_kind kind;
} combination;

static uly_value combine(uly_checker *c, uly_scope *scope, uly_loc loc, void *context, const uly_value *args, int n) {
  (void)scope, (void)loc;
  uly_closure *closure = ULY_NEW(c->arena, uly_closure);
  *closure = (uly_closure){.kind = ((const combination *)context)->kind, .a = args[0].u.closure, .b = n > 1 ? args[1].u.closure : NULL};
  return (uly_value){.kind = args[0].kind, .u.closure = closure};
}

uly_value uly_closure_each(uly_checker *c, uly_scope *scope, uly_loc loc, uly_closure_kind kind, const uly_value *args, int n) {
  combination how = {kind};
  return uly_static_each(c, scope, loc, combine, &how, args, n);
}

typedef struct expansion {
  uly_checker *c;
  uly_scope *scope;
  uly_loc loc;
  uly_graph_value **captures;
  int32_t *n_captures;
  int32_t score; // node
} expansion;

// The number of a captured tensor, -1 with an error.
static int32_t add_capture(const expansion *e, uly_graph_value *tensor) {
  int32_t at = 0;
  while (at < *e->n_captures && e->captures[at] != tensor) at++;
  if (at == ULY_MAX_OPERANDS) {
    ULY_CHECK_ERROR(e->c, e->scope, e->loc, ULY_D(TOO_MANY_OPERANDS), ULY_MAX_OPERANDS);
    return -1;
  }
  if (at == *e->n_captures) e->captures[(*e->n_captures)++] = tensor;
  return at;
}

// A captured tensor as the body sees it: the number itself where it has no dims.
static bool bind_capture(const expansion *e, uly_value *value) {
  uly_graph_value *tensor = value->u.tensor;
  int32_t at = add_capture(e, tensor);
  if (at < 0) return false;
  *value = (uly_value){.kind = ULY_VALUE_CAPTURE, .u.capture = {tensor, at}};
  if (tensor->type.rank == 0)
    *value = (uly_value){.kind = ULY_VALUE_NODE, .u.node = uly_expr_load(e->c->builder, uly_map_scalar_type(tensor->type.dtype), at, NULL, 0)};
  return true;
}

static bool bind_inside(expansion *e, const uly_closure *closure, uly_scope *inner) {
  const uly_ast_decl *decl = closure->decl;
  for (int32_t i = 0; i < decl->u.body.n_params; i++) {
    int32_t coord = uly_coord_by_name(decl->u.body.params[i].name.text);
    int32_t node = coord == ULY_COORD_S ? e->score : uly_expr_leaf(e->c->builder, ULY_SC_COORD, ULY_SCALAR_INT, coord);
    uly_scopes_bind(e->c, inner, decl->u.body.params[i].name, (uly_value){.kind = ULY_VALUE_NODE, .u.node = node});
  }
  for (int32_t i = 0; i < decl->u.body.n_captures; i++) {
    uly_value value = closure->captures[i];
    if (value.kind == ULY_VALUE_TENSOR && !bind_capture(e, &value)) return false;
    uly_scopes_bind(e->c, inner, decl->u.body.captures[i].name, value);
  }
  return true;
}

// The node of one declaration's body, of type bool or float; -1 with an error.
static int32_t expand_decl(expansion *e, const uly_closure *closure) {
  uly_checker *c = e->c;
  uly_frame frame = {.decl = closure->decl, .caller = e->scope->frame, .call = e->loc, .symbols = closure->symbols};
  uly_scope inner = {.frame = &frame};
  uly_global *global = uly_scopes_global(c, closure->decl->name.text);
  if (!bind_inside(e, closure, &inner) || !uly_layer_enter(c, e->scope, e->loc, global, &frame)) return -1;
  uly_value value = run_body(c, &inner, &closure->decl->u.body.body);
  global->state = ULY_GLOBAL_NEW;
  if (value.kind == ULY_VALUE_POISON) return -1;
  int32_t node = uly_eval_node(c, c->builder, value);
  bool mask = closure->decl->kind == ULY_AST_MASK;
  bool is_bool = node >= 0 && uly_expr_node_at(c->builder, node)->type == ULY_SCALAR_BOOL;
  if (node >= 0 && mask == is_bool)
    return mask || uly_expr_node_at(c->builder, node)->type == ULY_SCALAR_FLOAT ? node : uly_expr_op(c->builder, ULY_SC_FLOAT, &node, 1);
  const char *got = node < 0 ? uly_value_describe(&value) : is_bool ? "a bool" : "a number";
  ULY_CHECK_ERROR(c, &inner, closure->decl->u.body.body.end, ULY_D(BODY_TYPE), uly_ast_decl_word(closure->decl->kind), ULY_STR_ARG(closure->decl->name.text),
                  mask ? "a bool" : "a number", got);
  return -1;
}

static int32_t expand(expansion *e, const uly_closure *closure) {
  if (!uly_eval_step(e->c, e->loc)) return -1;
  int32_t args[2] = {-1, -1};
  switch (closure->kind) {
  case ULY_CLOSURE_DECL: return expand_decl(e, closure);
  case ULY_CLOSURE_THEN: e->score = expand(e, closure->a); return e->score < 0 ? -1 : expand(e, closure->b);
  case ULY_CLOSURE_NOT: args[0] = expand(e, closure->a); return uly_expr_op(e->c->builder, ULY_SC_NOT, args, 1);
  case ULY_CLOSURE_AND:
  case ULY_CLOSURE_OR:
    args[0] = expand(e, closure->a);
    args[1] = args[0] < 0 ? -1 : expand(e, closure->b);
    return uly_expr_op(e->c->builder, closure->kind == ULY_CLOSURE_AND ? ULY_SC_AND : ULY_SC_OR, args, 2);
  }
  return -1;
}

// s, times the table |factor| where there is one.
static int32_t score_before(const expansion *e, uly_graph_value *factor) {
  int32_t nodes[2] = {uly_expr_leaf(e->c->builder, ULY_SC_COORD, ULY_SCALAR_FLOAT, ULY_COORD_S)};
  if (!factor) return nodes[0];
  int32_t at = add_capture(e, factor);
  nodes[1] = at < 0 ? -1 : uly_expr_load(e->c->builder, uly_map_scalar_type(factor->type.dtype), at, NULL, 0);
  return uly_expr_op(e->c->builder, ULY_SC_MUL, nodes, 2);
}

bool uly_closure_expr(uly_checker *c, uly_scope *scope, uly_loc loc, uly_value closure, uly_graph_value *factor, uly_graph_value **captures,
                      int32_t *n_captures, uly_expr *out) {
  expansion e = {.c = c, .scope = scope, .loc = loc, .captures = captures, .n_captures = n_captures};
  int32_t errors = c->diags->n_errors;
  c->builder = uly_expr_begin(c->arena);
  int32_t node = e.score = score_before(&e, factor);
  if (node >= 0 && closure.kind != ULY_VALUE_NONE) node = expand(&e, closure.u.closure);
  if (node >= 0) *out = uly_expr_end(c->builder, node);
  c->builder = NULL;
  if (node < 0 && errors == c->diags->n_errors && !c->exhausted) ULY_CHECK_ERROR(c, scope, loc, ULY_D(EXPRESSION_SIZE), ULY_EXPR_MAX_NODES);
  return node >= 0;
}
