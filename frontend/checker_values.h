// Inside of the checker: what an expression can be worth, and what names stand for. See checker.h.
#ifndef ULY_FRONTEND_CHECKER_VALUES_H
#define ULY_FRONTEND_CHECKER_VALUES_H

#include "frontend/ast.h"
#include "frontend/check.h"

typedef struct uly_value uly_value;
typedef struct uly_scope uly_scope;
typedef struct uly_frame uly_frame;

// ---- values

typedef enum uly_value_kind {
  ULY_VALUE_POISON, // an error has been reported
  ULY_VALUE_NONE,
  ULY_VALUE_NUMBER,
  ULY_VALUE_STRING,
  ULY_VALUE_DTYPE,
  ULY_VALUE_LIST,
  ULY_VALUE_TYPE,    // bf16[V, D]: a list with a dtype
  ULY_VALUE_TUPLE,   // several results
  ULY_VALUE_SIZE,    // a scalar that depends on free symbols: an expression over SIZE leaves
  ULY_VALUE_VARYING, // one static value an iteration of all open repeats, outermost slowest
  ULY_VALUE_NODE,    // of the expression being built
  ULY_VALUE_CAPTURE, // a captured tensor, inside a mask or score
  ULY_VALUE_TENSOR,
  ULY_VALUE_MASK,
  ULY_VALUE_SCORE,
} uly_value_kind;

// A mask or score: a declaration with its captured tensors, or a combination.
typedef struct uly_closure uly_closure;

struct uly_value {
  uly_value_kind kind;
  bool weak;       // TENSOR: its float dtype gives way to an activation's
  uly_dtype dtype; // DTYPE, TYPE
  union {
    uly_number number;
    uly_str string;
    struct {
      uly_value *items;
      int32_t n;
    } list; // LIST, TYPE, TUPLE, VARYING
    const uly_expr *size;
    int32_t node;
    struct {
      uly_graph_value *tensor;
      int32_t operand;
    } capture;
    uly_graph_value *tensor;
    const uly_closure *closure;
  } u;
};

typedef struct uly_symbol_binding {
  uly_str name;
  bool bound;
  uly_dim dim;
} uly_symbol_binding;

typedef struct uly_symbols {
  uly_symbol_binding *items;
  int32_t n;
} uly_symbols;

typedef enum uly_closure_kind { ULY_CLOSURE_DECL, ULY_CLOSURE_NOT, ULY_CLOSURE_AND, ULY_CLOSURE_OR, ULY_CLOSURE_THEN } uly_closure_kind;
struct uly_closure {
  uly_closure_kind kind;
  const uly_ast_decl *decl;
  uly_value *captures; // one for each of decl's
  uly_symbols symbols; // what free symbols mean inside
  const uly_closure *a, *b;
};

// ---- names

typedef struct uly_binding {
  uly_str name;
  uly_value value;
  uly_loc loc;
  bool carried, was_read; // assigned in a repeat, where it came from outside
} uly_binding;

// Names of one body; a repeat's body sees those around it.
struct uly_scope {
  uly_scope *parent;
  uly_frame *frame;
  uly_binding *items;
  int32_t n, cap;
};

// One expansion of a declaration.
struct uly_frame {
  const uly_ast_decl *decl;
  uly_frame *caller;
  uly_loc call;
  uly_value path; // prefix of parameter names: STRING, or VARYING strings
  uly_symbols symbols;
  int32_t depth;
};

typedef enum uly_global_state { ULY_GLOBAL_NEW, ULY_GLOBAL_OPEN, ULY_GLOBAL_DONE } uly_global_state;
typedef struct uly_global {
  uly_str name;
  const uly_ast_decl *decl;
  const uly_define *define; // replaces a const's initialiser
  int32_t symbol;           // FREE
  uly_global_state state;   // CONST: being evaluated, or value is there. Others: OPEN while being expanded
  uly_value value;
} uly_global;

#endif
