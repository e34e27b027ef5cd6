// Calls of built-in functions: arguments by position and by name, from the signatures in builtins.def.
#include "frontend/calls.h"

static const uly_builtin builtins[] = {
#define BUILTIN(name, params, takes, gives, op, doc, formula) {#name, params, doc, uly_build_##name},
#include "frontend/builtins.def"
};
enum { N_BUILTINS = sizeof builtins / sizeof *builtins };

const uly_builtin *uly_builtin_at(int32_t i) { return i >= 0 && i < N_BUILTINS ? &builtins[i] : NULL; }

const uly_builtin *uly_builtin_find(uly_str name) {
  for (int32_t i = 0; i < N_BUILTINS; i++)
    if (uly_str_is(name, builtins[i].name)) return &builtins[i];
  return NULL;
}

bool uly_builtin_is_later(uly_str name) {
  static const char *const later[] = {"top_k", "dropout", "einsum", "scan", "update", "zeros"};
  for (size_t i = 0; i < sizeof later / sizeof *later; i++)
    if (uly_str_is(name, later[i])) return true;
  return false;
}

// ---- signatures -----------------------------------------------------------------------------------------------------------------------------------------------

typedef struct signature {
  uly_str names[ULY_MAX_ARGS];
  bool optional[ULY_MAX_ARGS];
  int32_t n;
  bool variadic;
} signature;

static signature read_signature(const char *text) {
  signature s = {.n = 0};
  while (*text) {
    size_t n = strcspn(text, " ?*");
    ULY_ASSERT(s.n < ULY_MAX_ARGS);
    s.names[s.n] = (uly_str){text, n};
    s.optional[s.n] = text[n] == '?';
    s.variadic |= text[n] == '*';
    text += n + (text[n] == '?' || text[n] == '*');
    text += strspn(text, " ");
    s.n++;
  }
  return s;
}

static int32_t find_param(const signature *s, uly_str name) {
  for (int32_t i = 0; i < s->n; i++)
    if (uly_str_equal(s->names[i], name)) return i;
  return -1;
}

// Where an argument goes; -1 with an error.
static int32_t place(uly_call_site *call, const signature *s, const uly_ast_arg *arg, int32_t position) {
  int32_t at = arg->name.text.len ? find_param(s, arg->name.text) : position, most = s->variadic ? ULY_MAX_ARGS : s->n;
  if (at < 0) {
    uly_diag *d = ULY_CHECK_ERROR(call->c, call->scope, arg->name.loc, ULY_D(UNKNOWN_ARGUMENT), call->name, ULY_STR_ARG(arg->name.text));
    uly_diag_suggest(call->c->diags, d, arg->name.text, s->names, (size_t)s->n);
  } else if (at >= most) {
    ULY_CHECK_ERROR(call->c, call->scope, arg->value->loc, ULY_D(ARGUMENT_COUNT), call->name, "at most ", most, call->ast->u.call.n);
    at = -1;
  } else if (call->given[at]) {
    ULY_CHECK_ERROR(call->c, call->scope, arg->value->loc, ULY_D(ARGUMENT_TWICE), ULY_STR_ARG(s->names[at]));
    at = -1;
  }
  return at;
}

static bool fill(uly_call_site *call, const signature *s) {
  const uly_ast_expr *ast = call->ast;
  bool ok = true;
  for (int32_t i = 0; i < ast->u.call.n; i++) {
    const uly_ast_arg *arg = &ast->u.call.args[i];
    int32_t at = place(call, s, arg, i);
    if (at < 0) return false;
    call->given[at] = true;
    call->args[at] = uly_eval(call->c, call->scope, arg->value);
    call->locs[at] = arg->value->loc;
    ok &= call->args[at].kind != ULY_VALUE_POISON;
  }
  call->n = s->variadic && ast->u.call.n > s->n ? ast->u.call.n : s->n;
  for (int32_t i = 0; i < s->n; i++) {
    if (call->given[i] || s->optional[i]) continue;
    ULY_CHECK_ERROR(call->c, call->scope, ast->loc, ULY_D(MISSING_ARGUMENT), (int)strlen(call->name), call->name, ULY_STR_ARG(s->names[i]));
    ok = false;
  }
  return ok;
}

uly_value uly_builtin_call(uly_checker *c, uly_scope *scope, const uly_ast_expr *ast, const uly_builtin *builtin) {
  uly_call_site *call = ULY_NEW(c->arena, uly_call_site);
  signature s = read_signature(builtin->params);
  *call = (uly_call_site){.c = c, .scope = scope, .ast = ast, .name = builtin->name};
  for (int32_t i = 0; i < ULY_MAX_ARGS; i++) {
    call->args[i].kind = ULY_VALUE_NONE;
    call->locs[i] = ast->loc;
  }
  return fill(call, &s) ? builtin->build(call) : uly_poison();
}

// ---- arguments ------------------------------------------------------------------------------------------------------------------------------------------------

static uly_str arg_name(const uly_call_site *call, int32_t i) {
  signature s = read_signature(uly_builtin_find(uly_str_of(call->name))->params);
  return s.names[i < s.n ? i : s.n - 1];
}

uly_graph_value *uly_call_tensor(uly_call_site *call, int32_t i) {
  if (call->args[i].kind == ULY_VALUE_TENSOR) return call->args[i].u.tensor;
  uly_str name = arg_name(call, i);
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[i], ULY_D(TENSOR_WANTED), ULY_STR_ARG(name), uly_value_describe(&call->args[i]));
  return NULL;
}

bool uly_call_rank(uly_call_site *call, int32_t i, int32_t least, int32_t most) {
  if (!uly_call_tensor(call, i)) return false;
  const uly_tensor_type *type = &call->args[i].u.tensor->type;
  if (type->rank >= least && type->rank <= most) return true;
  uly_str name = arg_name(call, i), text = uly_shape_text(call->c, type);
  bool exact = least == most, low = type->rank < least;
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[i], ULY_D(RANK), ULY_STR_ARG(name), ULY_STR_ARG(text), type->rank,
                  exact ? ""
                  : low ? "at least "
                        : "at most ",
                  low ? least : most);
  return false;
}

bool uly_call_float_tensor(uly_call_site *call, int32_t i) {
  uly_graph_value *x = uly_call_tensor(call, i);
  if (!x || uly_dtype_get(x->type.dtype)->is_float) return x != NULL;
  uly_str name = arg_name(call, i);
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[i], ULY_D(FLOAT_WANTED), ULY_STR_ARG(name), uly_dtype_name(x->type.dtype));
  return false;
}

bool uly_call_dim(uly_call_site *call, int32_t i, int32_t rank, int32_t *out) {
  int64_t dim;
  if (!uly_static_get_int(call->c, call->scope, call->locs[i], call->args[i], "`dim`", &dim)) return false;
  if (dim < -rank || dim >= rank) {
    ULY_CHECK_ERROR(call->c, call->scope, call->locs[i], ULY_D(DIM_NUMBER), dim, rank);
    return false;
  }
  *out = (int32_t)(dim < 0 ? dim + rank : dim);
  return true;
}
