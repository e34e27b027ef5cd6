// From syntax tree to graph: names resolved, consts and static arguments evaluated, layers expanded, shapes and dtypes unified. Called by the driver and by tests.
// What is not lowered yet checks and types like everything else, and is listed in the graph.
#ifndef ULY_FRONTEND_CHECK_H
#define ULY_FRONTEND_CHECK_H

#include "frontend/ast.h"
#include "frontend/diag.h"

// -D NAME=value: replaces the initialiser of a const.
typedef struct uly_define {
  uly_str name;
  uly_loc loc;
  uly_ast_expr *value;
} uly_define;

// Limits of a spec, all diagnosed.
enum {
  ULY_MAX_CALL_DEPTH = 100,       // layers, fns, masks and scores that call one another
  ULY_MAX_VALUES = 100000,        // operations of an entry, layers expanded and repeats counted once
  ULY_MAX_REPEAT = 10000,         // iterations of a repeat
  ULY_MAX_ITERATIONS = 1000000,   // iterations of repeats in one another
  ULY_MAX_TENSOR_LOG2_BYTES = 47, // binary logarithm of a tensor's bytes, as far as they are known
};

// The graph of |spec|, in |arena|; |prelude| holds the declarations that every spec has. ULY_INVALID_INPUT with at least one error in |diags|.
ULY_MUST_USE uly_status uly_check(uly_arena *arena, uly_diags *diags, const uly_ast_spec *spec, const uly_ast_spec *prelude, const uly_define *defines,
                                  int32_t n_defines, uly_graph **out_graph);

#endif
