// From text to syntax tree: recursive descent, one function a rule of specs/SPEC.md. Called by uly_check_spec and by tests. Reads no files,
// resolves no names.
#ifndef ULY_FRONTEND_PARSE_H
#define ULY_FRONTEND_PARSE_H

#include "frontend/ast.h"
#include "frontend/diag.h"

enum {
  ULY_MAX_SOURCE_BYTES = 16 << 20, // bytes of a spec
  ULY_MAX_NAME_BYTES = 255,        // bytes of a name
  ULY_MAX_STRING_BYTES = 4096,     // bytes of a string
  ULY_MAX_DEPTH = 64,              // brackets, operators before an operand, `if` and blocks in one another
  ULY_MAX_HEIGHT = 1000,           // operators of an expression in a row: a + b + …
  ULY_MAX_AST_NODES = 1 << 20,     // expressions of a spec, each operand counted
  ULY_MAX_STATEMENTS = 4096,       // statements of a block
  ULY_MAX_PARAMS = 1024,           // arguments of a declaration, and its results
};

// The tree of sources[|source|], or NULL with at least one error in |diags|. Checks UTF-8, NUL bytes and size first. Never crashes, whatever the bytes.
uly_ast_spec *uly_parse_spec(uly_arena *arena, uly_diags *diags, int32_t source);
// NAME=expression, a -D. NULL with an error in |diags|.
uly_ast_expr *uly_parse_define(uly_arena *arena, uly_diags *diags, int32_t source, uly_ast_name *out_name);

#endif
