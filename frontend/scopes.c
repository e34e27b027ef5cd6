// Names: the declarations of a spec and its prelude, consts and their -D replacements, locals of bodies, symbols of layers.
#include "frontend/calls.h"

static int32_t *find_slot(uly_checker *c, uly_str name) {
  for (uint64_t at = uly_str_hash(name);; at++) {
    int32_t *slot = &c->global_slots[at & (uint64_t)(c->n_global_slots - 1)];
    if (!*slot || uly_str_equal(c->globals[*slot - 1].name, name)) return slot;
  }
}

uly_global *uly_scopes_global(uly_checker *c, uly_str name) {
  int32_t number = *find_slot(c, name);
  return number ? &c->globals[number - 1] : NULL;
}

static bool is_builtin(uly_str name) {
  uly_scalar op;
  uly_dtype dtype;
  return uly_scalar_by_name(name, &op) || uly_builtin_find(name) || uly_dtype_by_name(name, &dtype);
}

// A spec may have its own fn or mask in the place of the prelude's.
static bool hides(const uly_checker *c, const uly_global *other) {
  uly_ast_decl_kind kind = other->decl->kind;
  return other - c->globals < c->n_prelude && kind != ULY_AST_CONST;
}

static void declare(uly_checker *c, const uly_ast_decl *decl) {
  uly_str name = decl->name.text;
  int32_t *slot = find_slot(c, name);
  if (*slot && !hides(c, &c->globals[*slot - 1])) {
    const uly_ast_decl *other = c->globals[*slot - 1].decl;
    uly_diag *d = uly_diag_add(c->diags, decl->name.loc, ULY_D(DECLARED_TWICE), ULY_STR_ARG(name));
    uly_diag_note(c->diags, d, other->name.loc, ULY_D(DECLARED_HERE), ULY_STR_ARG(name));
    return;
  }
  if (uly_coord_by_name(name) >= 0) {
    uly_diag_add(c->diags, decl->name.loc, ULY_D(COORDINATE_NAME), ULY_STR_ARG(name));
    return;
  }
  if (is_builtin(name)) {
    uly_diag_add(c->diags, decl->name.loc, ULY_D(BUILTIN_NAME), ULY_STR_ARG(name));
    return;
  }
  if (decl->kind == ULY_AST_FREE && c->graph->n_symbols == ULY_GRAPH_MAX_SYMBOLS) {
    uly_diag_add(c->diags, decl->name.loc, ULY_D(TOO_MANY_SYMBOLS), ULY_GRAPH_MAX_SYMBOLS);
    return;
  }
  uly_global *global = &c->globals[c->n_globals++];
  *slot = c->n_globals;
  *global = (uly_global){.name = name, .decl = decl, .symbol = -1};
  if (decl->kind == ULY_AST_FREE) {
    global->symbol = c->graph->n_symbols;
    c->graph->symbols[c->graph->n_symbols++] = name;
  }
}

void uly_scopes_declare(uly_checker *c, const uly_ast_spec *spec, bool prelude) {
  for (int32_t i = 0; i < spec->n_decls; i++) {
    const uly_ast_decl *decl = &spec->decls[i];
    if (decl->kind != ULY_AST_GRID && decl->kind != ULY_AST_DTYPE) declare(c, decl);
  }
  if (prelude) c->n_prelude = c->n_globals;
}

void uly_scopes_define(uly_checker *c, const uly_define *defines, int32_t n) {
  uly_str *names = ULY_NEW_ARRAY(c->arena, uly_str, c->n_globals);
  size_t n_names = 0;
  for (int32_t i = 0; i < c->n_globals; i++)
    if (c->globals[i].decl->kind == ULY_AST_CONST) names[n_names++] = c->globals[i].name;
  for (int32_t i = 0; i < n; i++) {
    uly_global *global = uly_scopes_global(c, defines[i].name);
    if (global && global->decl->kind == ULY_AST_CONST) {
      global->define = &defines[i];
      continue;
    }
    uly_diag *d = uly_diag_add(c->diags, defines[i].loc, ULY_D(UNKNOWN_DEFINE), ULY_STR_ARG(defines[i].name));
    uly_diag_suggest(c->diags, d, defines[i].name, names, n_names);
  }
}

static bool is_const_value(const uly_value *value) {
  if (value->kind != ULY_VALUE_LIST) return value->kind == ULY_VALUE_NUMBER;
  for (int32_t i = 0; i < value->u.list.n; i++)
    if (!is_const_value(&value->u.list.items[i])) return false;
  return true;
}

uly_value uly_scopes_const(uly_checker *c, uly_global *global) {
  if (global->state == ULY_GLOBAL_DONE) return global->value;
  const uly_ast_expr *expr = global->define ? global->define->value : global->decl->u.value;
  if (global->state == ULY_GLOBAL_OPEN) {
    uly_diag_add(c->diags, global->decl->name.loc, ULY_D(CONST_CYCLE), ULY_STR_ARG(global->name));
    return uly_poison();
  }
  // Whatever is open around the first use must not leak into a value that all uses share.
  uly_expr_builder *builder = c->builder;
  uly_map_builder *map = c->map;
  uly_loop *loop = c->loop;
  uly_frame frame = {.decl = global->decl};
  uly_scope scope = {.frame = &frame};
  c->builder = NULL;
  c->map = NULL;
  c->loop = NULL;
  global->state = ULY_GLOBAL_OPEN;
  uly_value value = uly_eval(c, &scope, expr);
  c->builder = builder;
  c->map = map;
  c->loop = loop;
  if (value.kind != ULY_VALUE_POISON && !is_const_value(&value)) {
    uly_diag_add(c->diags, expr->loc, ULY_D(NOT_CONST), ULY_STR_ARG(global->name), uly_value_describe(&value));
    value = uly_poison();
  }
  global->state = ULY_GLOBAL_DONE;
  return global->value = value;
}

uly_binding *uly_scopes_find(uly_scope *scope, uly_str name) {
  for (; scope; scope = scope->parent)
    for (int32_t i = scope->n; i-- > 0;)
      if (uly_str_equal(scope->items[i].name, name)) return &scope->items[i];
  return NULL;
}

uly_binding *uly_scopes_bind(uly_checker *c, uly_scope *scope, uly_ast_name name, uly_value value) {
  ULY_MAKE_ROOM(c->arena, scope->items, scope->n, scope->cap, 2);
  uly_binding *binding = &scope->items[scope->n++];
  *binding = (uly_binding){.name = name.text, .value = value, .loc = name.loc};
  return binding;
}

uly_symbol_binding *uly_scopes_symbol(const uly_frame *frame, uly_str name) {
  for (int32_t i = 0; frame && i < frame->symbols.n; i++)
    if (uly_str_equal(frame->symbols.items[i].name, name)) return &frame->symbols.items[i];
  return NULL;
}

static uly_value global_value(uly_checker *c, uly_scope *scope, uly_global *global, uly_loc loc) {
  switch (global->decl->kind) {
  case ULY_AST_CONST: return uly_scopes_const(c, global);
  case ULY_AST_FREE: return uly_dim_value(c, (uly_dim){global->symbol, 1, 0});
  case ULY_AST_MASK:
  case ULY_AST_SCORE: return uly_closure_of(c, scope, loc, global, NULL);
  default: ULY_CHECK_ERROR(c, scope, loc, ULY_D(FUNCTION_AS_VALUE), uly_ast_decl_word(global->decl->kind), ULY_STR_ARG(global->name)); return uly_poison();
  }
}

uly_value uly_scopes_value(uly_checker *c, uly_scope *scope, uly_str name, uly_loc loc) {
  uly_binding *binding = uly_scopes_find(scope, name);
  if (binding) {
    binding->was_read = true;
    return binding->value;
  }
  uly_symbol_binding *symbol = uly_scopes_symbol(scope->frame, name);
  if (symbol && symbol->bound) return uly_dim_value(c, symbol->dim);
  uly_global *global = uly_scopes_global(c, name);
  if (global) return global_value(c, scope, global, loc);
  if (symbol) {
    ULY_CHECK_ERROR(c, scope, loc, ULY_D(OPEN_SYMBOL), ULY_STR_ARG(name), ULY_STR_ARG(scope->frame->decl->name.text));
    return uly_poison();
  }
  uly_dtype dtype;
  if (uly_dtype_by_name(name, &dtype) && dtype != ULY_F64) return (uly_value){.kind = ULY_VALUE_DTYPE, .dtype = dtype};
  uly_diag *d = ULY_CHECK_ERROR(c, scope, loc, ULY_D(UNKNOWN_NAME), ULY_STR_ARG(name));
  uly_scopes_suggest(c, scope, d, name, false);
  return uly_poison();
}

void uly_scopes_suggest(uly_checker *c, uly_scope *scope, uly_diag *diag, uly_str name, bool callable) {
  enum { MOST = 4096 };
  uly_str *names = ULY_NEW_ARRAY(c->arena, uly_str, MOST);
  size_t n = 0;
  for (uly_scope *s = callable ? NULL : scope; s; s = s->parent)
    for (int32_t i = 0; i < s->n && n < MOST; i++) names[n++] = s->items[i].name;
  for (int32_t i = 0; !callable && i < scope->frame->symbols.n && n < MOST; i++) names[n++] = scope->frame->symbols.items[i].name;
  for (int32_t i = 0; i < c->n_globals && n < MOST; i++) {
    uly_ast_decl_kind kind = c->globals[i].decl->kind;
    bool function = kind != ULY_AST_CONST && kind != ULY_AST_FREE, mask = kind == ULY_AST_MASK || kind == ULY_AST_SCORE;
    if (callable ? function : !function || mask) names[n++] = c->globals[i].name;
  }
  for (int32_t i = 0; callable && uly_builtin_at(i) && n < MOST; i++) names[n++] = uly_str_of(uly_builtin_at(i)->name);
  for (int i = 0; callable && i < ULY_N_SCALARS && n < MOST; i++)
    if (uly_scalar_get((uly_scalar)i)->class == ULY_SCALAR_CALL) names[n++] = uly_str_of(uly_scalar_get((uly_scalar)i)->text);
  uly_diag_suggest(c->diags, diag, name, names, n);
}
