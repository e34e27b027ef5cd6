// Inside of the checker: built-in functions, what their checkers get, and how these read their arguments. See checker.h.
#ifndef ULY_FRONTEND_CALLS_H
#define ULY_FRONTEND_CALLS_H

#include "frontend/checker.h"

enum { ULY_MAX_ARGS = 24 };

typedef struct uly_call_site {
  uly_checker *c;
  uly_scope *scope;
  const uly_ast_expr *ast;
  const char *name;
  uly_value args[ULY_MAX_ARGS]; // by parameter; NONE where absent
  bool given[ULY_MAX_ARGS];
  uly_loc locs[ULY_MAX_ARGS]; // of the argument, or the call
  int32_t n;                  // parameters, or for a variadic function arguments
} uly_call_site;

typedef struct uly_builtin {
  const char *name, *params, *doc;
  uly_value (*build)(uly_call_site *call);
} uly_builtin;
const uly_builtin *uly_builtin_find(uly_str name);
const uly_builtin *uly_builtin_at(int32_t i); // NULL behind the last
bool uly_builtin_is_later(uly_str name);      // of a later version of the language
uly_value uly_builtin_call(uly_checker *c, uly_scope *scope, const uly_ast_expr *call, const uly_builtin *builtin);
// Tensor argument |i|, or NULL with an error.
uly_graph_value *uly_call_tensor(uly_call_site *call, int32_t i);
bool uly_call_rank(uly_call_site *call, int32_t i, int32_t least, int32_t most);
// Dim argument in [−rank, rank), made non-negative.
bool uly_call_dim(uly_call_site *call, int32_t i, int32_t rank, int32_t *out);
bool uly_call_float_tensor(uly_call_site *call, int32_t i);

// Row s of the result is row s − |n| of |x|, or |fill|.
uly_value uly_build_shift_by(uly_checker *c, uly_loc loc, uly_value x, int64_t n, double fill);

#define BUILTIN(name, ...) uly_value uly_build_##name(uly_call_site *call);
#include "frontend/builtins.def"

#endif
