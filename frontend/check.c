// A spec's entries: what stands before them (declarations, grid, consts), and each one's graph.
#include "frontend/check.h"

#include "frontend/checker.h"
#include "frontend/graph_print.h"

#include <stdio.h>

uly_diag *uly_check_notes(uly_checker *c, const uly_scope *scope, uly_diag *diag) {
  enum { MOST = 3 };
  int32_t n = 0;
  for (const uly_frame *frame = scope ? scope->frame : NULL; frame && frame->caller && n < MOST; frame = frame->caller, n++)
    uly_diag_note(c->diags, diag, frame->call, ULY_D(CALLED_HERE), ULY_STR_ARG(frame->decl->name.text));
  return diag;
}

// ---- grid, dtype ----------------------------------------------------------------------------------------------------------------------------------------------

static int32_t grid_symbol(uly_checker *c, const uly_ast_name *dim) {
  uly_global *global = uly_scopes_global(c, dim->text);
  if (global && global->decl->kind == ULY_AST_FREE) {
    for (int32_t i = 0; i < c->graph->n_axes; i++)
      for (int32_t j = 0; j < c->graph->axes[i].n_symbols; j++)
        if (c->graph->axes[i].symbols[j] == global->symbol) {
          uly_diag_add(c->diags, dim->loc, ULY_D(SPLIT_TWICE), ULY_STR_ARG(dim->text), ULY_STR_ARG(c->graph->axes[i].name));
          return -1;
        }
    return global->symbol;
  }
  if (global && global->decl->kind == ULY_AST_CONST) {
    uly_diag_add(c->diags, dim->loc, ULY_D(LATER_AXIS), ULY_STR_ARG(dim->text));
    return -1;
  }
  uly_diag *d = uly_diag_add(c->diags, dim->loc, ULY_D(GRID_DIM), ULY_STR_ARG(dim->text));
  uly_diag_suggest(c->diags, d, dim->text, c->graph->symbols, (size_t)c->graph->n_symbols);
  return -1;
}

static void add_axis(uly_checker *c, const uly_ast_decl *decl) {
  enum { MOST = sizeof((uly_grid_axis *)0)->symbols / sizeof(int32_t) };
  uly_graph *g = c->graph;
  for (int32_t i = 0; i < g->n_axes; i++)
    if (uly_str_equal(g->axes[i].name, decl->name.text)) {
      uly_diag_add(c->diags, decl->name.loc, ULY_D(AXIS_TWICE), ULY_STR_ARG(decl->name.text));
      return;
    }
  if (g->n_axes == ULY_GRAPH_MAX_AXES || decl->u.grid.n_dims > MOST) {
    uly_diag_add(c->diags, decl->loc, ULY_D(GRID_SIZE), ULY_GRAPH_MAX_AXES, MOST);
    return;
  }
  uly_grid_axis *axis = &g->axes[g->n_axes++];
  *axis = (uly_grid_axis){.name = decl->name.text};
  for (int32_t i = 0; i < decl->u.grid.n_dims; i++) {
    int32_t symbol = grid_symbol(c, &decl->u.grid.dims[i]);
    if (symbol >= 0) axis->symbols[axis->n_symbols++] = symbol;
  }
}

static void set_dtype(uly_checker *c, const uly_ast_decl *decl, const uly_ast_decl **first) {
  uly_dtype dtype;
  if (*first) {
    uly_diag *d = uly_diag_add(c->diags, decl->loc, ULY_D(DECLARED_TWICE), ULY_STR_ARG(ULY_STR("dtype")));
    uly_diag_note(c->diags, d, (*first)->loc, ULY_D(DECLARED_HERE), ULY_STR_ARG(ULY_STR("dtype")));
    return;
  }
  *first = decl;
  if (uly_dtype_by_name(decl->name.text, &dtype) && (dtype == ULY_F32 || dtype == ULY_BF16 || dtype == ULY_F16))
    c->dtype = dtype;
  else
    uly_diag_add(c->diags, decl->name.loc, ULY_D(DEFAULT_DTYPE), ULY_STR_ARG(decl->name.text));
}

static void read_grid(uly_checker *c, const uly_ast_spec *spec) {
  const uly_ast_decl *dtype = NULL;
  c->dtype = ULY_F32;
  c->graph->axes = ULY_NEW_ARRAY(c->arena, uly_grid_axis, ULY_GRAPH_MAX_AXES);
  for (int32_t i = 0; i < spec->n_decls; i++) {
    if (spec->decls[i].kind == ULY_AST_DTYPE) set_dtype(c, &spec->decls[i], &dtype);
    if (spec->decls[i].kind == ULY_AST_GRID) add_axis(c, &spec->decls[i]);
  }
}

// ---- declarations that may never be used ----------------------------------------------------------------------------------------------------------------------

static void check_params(uly_checker *c, const uly_ast_decl *decl) {
  bool mask = decl->kind == ULY_AST_MASK, score = decl->kind == ULY_AST_SCORE;
  int32_t n = decl->u.body.n_params, n_all = n + decl->u.body.n_captures;
  for (int32_t i = 0; i < n_all; i++) {
    const uly_ast_param *param = i < n ? &decl->u.body.params[i] : &decl->u.body.captures[i - n];
    int32_t coord = uly_coord_by_name(param->name.text);
    if ((mask || score) && i < n && (coord < 0 || (mask && coord == ULY_COORD_S)))
      uly_diag_add(c->diags, param->name.loc, ULY_D(COORDINATE), uly_ast_decl_word(decl->kind), ULY_STR_ARG(param->name.text),
                   mask ? "b, h, q, k" : "b, h, q, k, s");
    if ((mask || score) && i < n && (param->type || param->value))
      uly_diag_add(c->diags, param->name.loc, ULY_D(COORDINATE_TYPE), ULY_STR_ARG(param->name.text));
    if (i >= n && coord >= 0) uly_diag_add(c->diags, param->name.loc, ULY_D(COORDINATE_NAME), ULY_STR_ARG(param->name.text));
    if (i >= n && (!param->type || !param->type->has_dims)) uly_diag_add(c->diags, param->name.loc, ULY_D(CAPTURE_TYPE), ULY_STR_ARG(param->name.text));
    if (decl->kind == ULY_AST_LAYER || decl->kind == ULY_AST_MODEL) {
      if (uly_str_is(param->name.text, "name")) uly_diag_add(c->diags, param->name.loc, ULY_D(NAME_PARAM));
    }
    for (int32_t j = 0; j < i; j++) {
      const uly_ast_param *other = j < n ? &decl->u.body.params[j] : &decl->u.body.captures[j - n];
      if (!uly_str_equal(param->name.text, other->name.text)) continue;
      uly_diag_add(c->diags, param->name.loc, ULY_D(PARAM_NAME_TWICE), ULY_STR_ARG(param->name.text));
      break;
    }
  }
}

static void check_types(uly_checker *c, const uly_ast_decl *decl) {
  static const char *const statics[] = {"int", "float", "bool", "str", "mask", "score"};
  uly_str names[sizeof statics / sizeof *statics];
  for (int32_t i = 0; i < decl->u.body.n_params; i++) {
    const uly_ast_type *type = decl->u.body.params[i].type;
    bool known = !type || type->has_dims;
    for (size_t j = 0; j < sizeof statics / sizeof *statics; j++) {
      names[j] = uly_str_of(statics[j]);
      known |= type && uly_str_is(type->name.text, statics[j]);
    }
    if (known) continue;
    uly_diag *d = uly_diag_add(c->diags, type->loc, ULY_D(PARAM_TYPE), ULY_STR_ARG(type->name.text));
    uly_diag_suggest(c->diags, d, type->name.text, names, sizeof statics / sizeof *statics);
  }
}

static void check_declarations(uly_checker *c) {
  for (int32_t i = 0; i < c->n_globals; i++) {
    uly_global *global = &c->globals[i];
    switch (global->decl->kind) {
    case ULY_AST_CONST: uly_scopes_const(c, global); break;
    case ULY_AST_LAYER:
    case ULY_AST_MODEL: check_types(c, global->decl); // fall through
    case ULY_AST_FN:
    case ULY_AST_MASK:
    case ULY_AST_SCORE: check_params(c, global->decl); break;
    default: break;
    }
  }
}

// ---- entries --------------------------------------------------------------------------------------------------------------------------------------------------

static bool is_tensor_layer(const uly_ast_decl *decl) {
  if (decl->u.body.n_symbols || !decl->u.body.n_params) return false;
  for (int32_t i = 0; i < decl->u.body.n_params; i++) {
    const uly_ast_type *type = decl->u.body.params[i].type;
    if (!type || !type->has_dims || (type->n_dims && !type->dims[0].size)) return false;
  }
  return true;
}

static bool input_type(uly_checker *c, uly_scope *scope, const uly_ast_type *type, uly_tensor_type *out) {
  *out = (uly_tensor_type){0};
  if (!uly_type_dtype(c, scope, type, &out->dtype)) return false;
  if (type->n_dims > ULY_GRAPH_MAX_DIMS) {
    ULY_CHECK_ERROR(c, scope, type->loc, ULY_D(RANK_LIMIT), type->n_dims, ULY_GRAPH_MAX_DIMS);
    return false;
  }
  for (int32_t i = 0; i < type->n_dims; i++) {
    const uly_ast_expr *size = type->dims[i].size;
    if (!size) {
      ULY_CHECK_ERROR(c, scope, type->dims[i].loc, ULY_D(ELLIPSIS_HERE));
      return false;
    }
    if (!uly_dim_of_value(c, scope, size->loc, uly_eval(c, scope, size), &out->dims[out->rank++])) return false;
  }
  return true;
}

// Inputs from the tensor arguments; the others need defaults.
static bool add_inputs(uly_checker *c, uly_scope *signature, uly_scope *body, uly_graph_entry *entry) {
  const uly_ast_decl *decl = body->frame->decl;
  bool ok = true;
  entry->inputs = c->inputs = ULY_NEW_ARRAY(c->arena, uly_graph_input, decl->u.body.n_params);
  for (int32_t i = 0; i < decl->u.body.n_params; i++) {
    const uly_ast_param *param = &decl->u.body.params[i];
    if (param->type && param->type->has_dims) {
      uly_graph_input *input = &entry->inputs[entry->n_inputs];
      *input = (uly_graph_input){.name = param->name.text, .loc = param->name.loc};
      if (!input_type(c, signature, param->type, &input->type)) {
        ok = false;
        continue;
      }
      uly_graph_value *value = uly_build_value(c, ULY_OP_INPUT, param->name.loc, &input->type, NULL, 0);
      value->u.arg.index = entry->n_inputs++;
      uly_scopes_bind(c, body, param->name, uly_build_tensor(value, false));
    } else if (param->value) {
      uly_scopes_bind(c, signature, param->name, uly_eval(c, signature, param->value));
    } else {
      uly_diag_add(c->diags, param->name.loc, ULY_D(ENTRY_ARGUMENT), ULY_STR_ARG(param->name.text), ULY_STR_ARG(decl->name.text));
      ok = false;
    }
  }
  return ok;
}

static void add_results(uly_checker *c, const uly_ast_decl *decl, const uly_value *values, uly_graph_entry *entry) {
  entry->n_results = decl->u.body.n_results;
  entry->results = ULY_NEW_ARRAY(c->arena, uly_graph_result, entry->n_results);
  for (int32_t i = 0; i < entry->n_results; i++) {
    const uly_ast_result *result = &decl->u.body.results[i];
    entry->results[i] = (uly_graph_result){result->name.text.len ? result->name.text : ULY_STR("out"), values[i].u.tensor, result->type->loc};
    for (int32_t j = 0; j < i; j++)
      if (uly_str_equal(entry->results[i].name, entry->results[j].name))
        uly_diag_add(c->diags, result->name.loc, ULY_D(PARAM_NAME_TWICE), ULY_STR_ARG(result->name.text));
  }
}

static void build_entry(uly_checker *c, uly_global *global) {
  const uly_ast_decl *decl = global->decl;
  uly_graph_entry *entry = &c->graph->entries[c->graph->n_entries];
  uly_frame frame = {.decl = decl, .call = decl->name.loc, .path = uly_static_string(ULY_STR(""))};
  uly_scope signature = {.frame = &frame}, body = {.parent = &signature, .frame = &frame};
  *entry = (uly_graph_entry){.name = decl->name.text, .is_model = decl->kind == ULY_AST_MODEL};
  if (decl->u.body.n_symbols) {
    uly_diag_add(c->diags, decl->u.body.symbols[0].loc, ULY_D(ENTRY_SYMBOLS), ULY_STR_ARG(decl->name.text));
    return;
  }
  c->region = NULL;
  c->region = uly_build_region(c);
  c->loop = NULL;
  uly_param_forget(c, 0);
  global->state = ULY_GLOBAL_OPEN;
  uly_value *values = add_inputs(c, &signature, &body, entry) ? uly_layer_body(c, &signature, &body) : NULL;
  global->state = ULY_GLOBAL_NEW;
  if (values) {
    add_results(c, decl, values, entry);
    if (!c->diags->n_errors) uly_build_finish(c, entry);
    c->graph->n_entries++;
  }
  c->region = NULL;
}

// Why a layer is no entry.
static void note_why_not(uly_checker *c, uly_diag *diag, const uly_ast_decl *decl) {
  const uly_ast_name *symbol = decl->u.body.symbols;
  if (decl->u.body.n_symbols)
    uly_diag_note(c->diags, diag, symbol->loc, ULY_D(NO_ENTRY_SYMBOL), ULY_STR_ARG(decl->name.text), ULY_STR_ARG(symbol->text));
  else if (!decl->u.body.n_params)
    uly_diag_note(c->diags, diag, decl->name.loc, ULY_D(NO_ENTRY_EMPTY), ULY_STR_ARG(decl->name.text));
  for (int32_t p = 0; p < decl->u.body.n_params && !decl->u.body.n_symbols; p++) {
    const uly_ast_param *param = &decl->u.body.params[p];
    const uly_ast_type *type = param->type;
    if (type && type->has_dims && (!type->n_dims || type->dims[0].size)) continue;
    if (type && type->has_dims)
      uly_diag_note(c->diags, diag, param->name.loc, ULY_D(NO_ENTRY_DIMS), ULY_STR_ARG(decl->name.text), ULY_STR_ARG(param->name.text));
    else
      uly_diag_note(c->diags, diag, param->name.loc, ULY_D(NO_ENTRY_ARGUMENT), ULY_STR_ARG(decl->name.text), ULY_STR_ARG(param->name.text));
    return;
  }
}

static void report_no_entry(uly_checker *c, const uly_ast_spec *spec) {
  enum { MOST = 4 };
  uly_diag *diag = uly_diag_add(c->diags, (uly_loc){0, 0, 1, 1}, ULY_D(NO_ENTRY));
  for (int32_t i = 0, n = 0; i < spec->n_decls && n < MOST; i++)
    if (spec->decls[i].kind == ULY_AST_LAYER) note_why_not(c, diag, &spec->decls[i]), n++;
}

static void build_entries(uly_checker *c, const uly_ast_spec *spec) {
  bool has_model = false;
  int32_t n = 0;
  for (int32_t i = 0; i < spec->n_decls; i++) has_model |= spec->decls[i].kind == ULY_AST_MODEL;
  c->graph->entries = ULY_NEW_ARRAY(c->arena, uly_graph_entry, spec->n_decls);
  for (int32_t i = 0; i < spec->n_decls && !c->exhausted; i++) {
    const uly_ast_decl *decl = &spec->decls[i];
    uly_global *global = uly_scopes_global(c, decl->name.text);
    if (!global || global->decl != decl) continue;
    if (has_model ? decl->kind != ULY_AST_MODEL : decl->kind != ULY_AST_LAYER || !is_tensor_layer(decl)) continue;
    build_entry(c, global);
    n++;
  }
  if (!n && !c->diags->n_errors) report_no_entry(c, spec);
}

uly_status uly_check(uly_arena *arena, uly_diags *diags, const uly_ast_spec *spec, const uly_ast_spec *prelude, const uly_define *defines, int32_t n_defines,
                     uly_graph **out_graph) {
  int32_t n_decls = spec->n_decls + prelude->n_decls;
  uly_checker c = {.arena = arena, .diags = diags, .graph = ULY_NEW(arena, uly_graph), .n_global_slots = 64};
  while (c.n_global_slots < 2 * n_decls + 2) c.n_global_slots *= 2;
  c.globals = ULY_NEW_ARRAY(arena, uly_global, n_decls);
  c.global_slots = ULY_NEW_ARRAY(arena, int32_t, c.n_global_slots);
  c.graph->symbols = ULY_NEW_ARRAY(arena, uly_str, n_decls);
  uly_scopes_declare(&c, prelude, true);
  uly_scopes_declare(&c, spec, false);
  read_grid(&c, spec);
  uly_scopes_define(&c, defines, n_defines);
  check_declarations(&c);
  if (!diags->n_errors) build_entries(&c, spec);
  if (diags->n_errors) return ULY_INVALID_INPUT;
  *out_graph = c.graph;
  return ULY_OK;
}
