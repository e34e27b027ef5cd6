// The syntax tree of a spec, as the parser leaves it and the checker reads it: names are not resolved, nothing is evaluated. Everything lives in
// the arena given to the parser; strings point into the source. A tree exists only where parsing had no error, so no pointer below is NULL
// unless its comment says that it may be.
#ifndef ULY_FRONTEND_AST_H
#define ULY_FRONTEND_AST_H

#include <stdbool.h>
#include <stdint.h>

#include "frontend/expr.h"
#include "frontend/graph.h" // uly_loc
#include "runtime/base/str.h"

typedef struct uly_ast_expr uly_ast_expr;
typedef struct uly_ast_type uly_ast_type;

typedef struct uly_ast_name {
  uly_str text; // "_" discards, in a LET
  uly_loc loc;
} uly_ast_name;

// ---- expressions

typedef enum uly_ast_expr_kind {
  ULY_AST_INT,     // 42
  ULY_AST_FLOAT,   // 1e-6
  ULY_AST_BOOL,    // true
  ULY_AST_NONE,    // none
  ULY_AST_STRING,  // "model.layers.{i}"
  ULY_AST_NAME,    // x; also dtypes (bf16) and functions, where they are called
  ULY_AST_LIST,    // [Dh, Dh, 2 * Dh]
  ULY_AST_TYPE,    // bf16[V, D], where a param wants a dtype of its own
  ULY_AST_UNARY,   // - not
  ULY_AST_BINARY,  // + - * / // % ** and or
  ULY_AST_COMPARE, // 0 <= q - k < W: each operand is evaluated once
  ULY_AST_IF,      // if a then b else c
  ULY_AST_THEN,    // alibi then softcap: scores, one after the other
  ULY_AST_CALL,    // f(x, name = "q")
  ULY_AST_INDEX,   // x[..., 0 : n, _, i]
} uly_ast_expr_kind;

// A piece of a string: text, then the value of |hole|, which may be NULL.
typedef struct uly_ast_piece {
  uly_str text;
  uly_ast_expr *hole;
} uly_ast_piece;

typedef struct uly_ast_arg {
  uly_ast_name name; // empty text where the argument is positional. A positional argument never follows a named one
  uly_ast_expr *value;
} uly_ast_arg;

typedef enum uly_ast_index_kind {
  ULY_AST_AT,       // begin
  ULY_AST_SLICE,    // begin : end, either may be NULL
  ULY_AST_ELLIPSIS, // ..., at most once in an index
  ULY_AST_NEW_DIM,  // _
} uly_ast_index_kind;

typedef struct uly_ast_index {
  uly_ast_index_kind kind;
  uly_loc loc;
  uly_ast_expr *begin, *end;
} uly_ast_index;

struct uly_ast_expr {
  uint8_t kind;    // uly_ast_expr_kind
  uint8_t op;      // UNARY, BINARY: uly_scalar
  uint16_t height; // of the tree below, at most ULY_MAX_HEIGHT
  uly_loc loc;     // the whole expression
  uly_loc op_loc;  // UNARY, BINARY, THEN: the operator. CALL, INDEX: the brackets and what is inside. Else as loc
  union {
    int64_t i;
    double f;
    bool b;
    uly_str name;
    struct {
      uly_ast_piece *pieces; // none for ""
      int32_t n;
    } string;
    struct {
      uly_ast_expr **items;
      int32_t n;
    } list;
    uly_ast_type *type;
    uly_ast_expr *args[3]; // UNARY 1, BINARY and THEN 2, IF 3 (condition, then, else)
    struct {
      uly_ast_expr **args; // n
      uint8_t *ops;        // n − 1: uly_scalar LT … NE between args[i] and args[i + 1]
      int32_t n;
    } compare;
    struct {
      uly_ast_expr *callee;
      uly_ast_arg *args;
      int32_t n;
    } call;
    struct {
      uly_ast_expr *base;
      uly_ast_index *items;
      int32_t n;
    } index;
  } u;
};

// ---- types

typedef struct uly_ast_dim {
  uly_loc loc;
  uly_ast_expr *size; // NULL: `...`, which only stands first
} uly_ast_dim;

// f32[B, S], [..., N], f32[] or a bare name: mask, score, int, float, bool, str.
struct uly_ast_type {
  uly_loc loc;
  uly_ast_name name; // empty text in [B, S]: the default dtype
  bool has_dims;     // a tensor, though it may have none: f32[]
  uly_ast_dim *dims;
  int32_t n_dims;
};

// ---- statements

typedef struct uly_ast_stmt uly_ast_stmt;

typedef struct uly_ast_block { // `= e` is a block of one RETURN
  uly_ast_stmt *stmts;
  int32_t n;
  uly_loc end; // the closing brace, or the expression
} uly_ast_block;

typedef enum uly_ast_stmt_kind {
  ULY_AST_LET,    // a, _, c = value
  ULY_AST_REPEAT, // repeat count as counter { body }
  ULY_AST_RETURN, // return a, b
} uly_ast_stmt_kind;

struct uly_ast_stmt {
  uly_ast_stmt_kind kind;
  uly_loc loc;
  union {
    struct {
      uly_ast_name *names; // at least one
      int32_t n_names;
      uly_ast_expr *value;
    } let;
    struct {
      uly_ast_expr *count;
      uly_ast_name counter; // empty text without `as`
      uly_ast_block body;
    } repeat;
    struct {
      uly_ast_expr **values; // at least one
      int32_t n;
    } ret;
  } u;
};

// ---- declarations

typedef enum uly_ast_decl_kind {
  ULY_AST_CONST,
  ULY_AST_FREE,
  ULY_AST_GRID,
  ULY_AST_DTYPE,
  ULY_AST_FN,
  ULY_AST_MASK,
  ULY_AST_SCORE,
  ULY_AST_LAYER,
  ULY_AST_MODEL,
} uly_ast_decl_kind;

typedef struct uly_ast_param {
  uly_ast_name name;
  uly_ast_type *type;  // NULL where none is written
  uly_ast_expr *value; // the default, or NULL
} uly_ast_param;

typedef struct uly_ast_result {
  uly_ast_name name; // empty text: the only result, called `out`
  uly_ast_type *type;
} uly_ast_result;

// `const a = 1, b = 2` is two declarations, as is `free B, S` and `grid sp(S), dp(B)`.
typedef struct uly_ast_decl {
  uly_ast_decl_kind kind;
  uly_loc loc;       // the whole declaration
  uly_ast_name name; // DTYPE: the dtype's
  union {
    uly_ast_expr *value; // CONST
    struct {             // GRID
      uly_ast_name *dims;
      int32_t n_dims;
    } grid;
    struct {                 // FN, MASK, SCORE, LAYER, MODEL
      uly_ast_name *symbols; // [N]: LAYER and MODEL
      int32_t n_symbols;
      uly_ast_param *params;
      int32_t n_params;
      uly_ast_param *captures; // behind `;`: MASK and SCORE
      int32_t n_captures;
      uly_ast_result *results; // LAYER and MODEL: at least one
      int32_t n_results;
      uly_ast_block body;
    } body;
  } u;
} uly_ast_decl;

typedef struct uly_ast_spec {
  uly_ast_decl *decls; // in the order written
  int32_t n_decls;
} uly_ast_spec;

const char *uly_ast_decl_word(uly_ast_decl_kind kind); // "const", "layer", …

#endif
