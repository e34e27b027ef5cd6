// Scalar expressions: what masks, scores and elementwise tensor code compute at one place. A DAG, stored operands first, so that a loop over
// the nodes visits every operand before its user. The same expression is printed as text (IR attributes), evaluated in float64 (constants, the
// reference), emitted as vectors (kernels) and as intervals (tile analysis).
//
// Types: bool, int (64-bit, wraps are errors in constants), float. A float node's precision is the emitter's: f32 in kernels, f64 where `wide` is set.
#ifndef ULY_FRONTEND_EXPR_H
#define ULY_FRONTEND_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/dtype.h"
#include "runtime/base/status.h"
#include "runtime/base/str.h"

typedef enum uly_scalar {
#define SCALAR(id, text, n_args, class, doc) ULY_SC_##id,
#include "frontend/scalar.def"
  ULY_N_SCALARS
} uly_scalar;

typedef enum uly_scalar_type { ULY_SCALAR_BOOL, ULY_SCALAR_INT, ULY_SCALAR_FLOAT } uly_scalar_type;

// Rows of scalar.def.
typedef enum uly_scalar_class { ULY_SCALAR_UNARY, ULY_SCALAR_BINARY, ULY_SCALAR_CALL, ULY_SCALAR_STORED, ULY_SCALAR_SPECIAL } uly_scalar_class;
typedef struct uly_scalar_info {
  const char *text;
  int n_args;
  uly_scalar_class class;
  const char *doc;
} uly_scalar_info;
const uly_scalar_info *uly_scalar_get(uly_scalar op);
bool uly_scalar_by_name(uly_str name, uly_scalar *out_op); // class CALL
// The dtype of a STORED operation, and the operation of a dtype; false where storing as it changes no value of an expression (f32, i64, bool).
uly_dtype uly_scalar_dtype(uly_scalar op);
bool uly_scalar_stored(uly_dtype dtype, uly_scalar *out_op);

enum {
  ULY_EXPR_MAX_ARGS = 6,
  ULY_EXPR_MAX_NODES = 8192, // scalar operations of a mask, a score or an elementwise expression
};

// Coordinates. B, H, Q, K are global; S is the score so far. I0… are indices along the dims of a map's result.
typedef enum uly_coord { ULY_COORD_B, ULY_COORD_H, ULY_COORD_Q, ULY_COORD_K, ULY_COORD_S, ULY_COORD_I0, ULY_COORD_MAX = ULY_COORD_I0 + 6 } uly_coord;

int32_t uly_coord_by_name(uly_str name); // b h q k s: their uly_coord; −1 for other names

typedef struct uly_expr_node {
  uint8_t op;   // uly_scalar
  uint8_t type; // uly_scalar_type
  uint8_t n_args;
  int32_t args[ULY_EXPR_MAX_ARGS]; // earlier nodes
  int32_t index;                   // COORD: uly_coord; SIZE: symbol; OPERAND, LOAD: operand number
  union {
    int64_t i; // CONST of type bool or int
    double f;  // CONST of type float
  } value;
} uly_expr_node;

typedef struct uly_expr {
  uly_expr_node *nodes; // the last one is the result
  int32_t n_nodes;
  bool wide; // float nodes are f64
} uly_expr;

// Text: language syntax, with parentheses where precedence asks for them; "wide " in front when so. Leaves are b h q k s, i0 …, size(S), x0 and c0[b, q]; those of
// tensors have a suffix where they are not floats: x0i int, x0b bool. Values that are used twice get names in front: "t0 = exp(x0); t0 / (1.0 + t0)". Parsing gives an
// equal expression. Both live in |arena|. |symbols| names the free symbols, in order.
uly_str uly_expr_print(uly_arena *arena, const uly_expr *expr, const uly_str *symbols, int n_symbols);
// A float in the language's syntax, with as few digits as give it back.
void uly_float_print(uly_text *text, double f);
ULY_MUST_USE uly_status uly_expr_parse(uly_arena *arena, uly_str text, const uly_str *symbols, int n_symbols, uly_expr *out_expr);

typedef struct uly_number {
  uly_scalar_type type;
  int64_t i; // bool, int
  double f;
} uly_number;
// A leaf's value, whatever its type, where a float64 holds it.
static inline uly_number uly_number_of(double value) { return (uly_number){.i = value > -0x1p62 && value < 0x1p62 ? (int64_t)value : 0, .f = value}; }
// Evaluates in float64 and 64-bit ints. The callbacks give the leaves, in the field that the leaf's type says; NULL where the expression has none of the kind.
// ULY_INVALID_ARGUMENT on an integer division by zero or overflow.
typedef struct uly_expr_env {
  void *context;
  const int64_t *coords; // by uly_coord, except S
  double score;
  const int64_t *sizes; // by symbol
  uly_number (*operand)(void *context, int32_t operand);
  uly_number (*load)(void *context, int32_t operand, const int64_t *indices, int n_indices);
  uly_number *work; // room for every node, or NULL: room for 64, ULY_EXHAUSTED beyond
  bool running;     // as in kernels: ints wrap, a division by zero gives 0, a float that no int holds gives the nearest, NaN 0
} uly_expr_env;
ULY_MUST_USE uly_status uly_expr_eval(const uly_expr *expr, const uly_expr_env *env, uly_number *out_value);

// Applies one operation to constants: what constant folding and evaluation share. ULY_INVALID_ARGUMENT as above, with the value of kernels, and where the types do not fit.
ULY_MUST_USE uly_status uly_scalar_apply(uly_scalar op, const uly_number *args, int n_args, uly_number *out_value);

// What an operation gives for arguments of these types, and what its arguments are converted to (int where a float meets it). False: they do not fit.
bool uly_scalar_result_type(uly_scalar op, const uly_scalar_type *args, int n_args, uly_scalar_type *out_type, uly_scalar_type *out_arg_type);

// hash(a, b). With 32-bit wrapping arithmetic, mix(x): x ^= x >> 16, x *= 0x7feb352d, x ^= x >> 15, x *= 0x846ca68b, x ^= x >> 16; and lo, hi the halves of an int:
//   mix(mix(mix(mix(lo(a) + 0x9e3779b9) ^ hi(a)) + lo(b)) ^ hi(b))
uint32_t uly_scalar_hash(int64_t a, int64_t b);

// Builders. Nodes are folded where all arguments are constants and shared where equal. They return the node's number.
typedef struct uly_expr_builder uly_expr_builder;
uly_expr_builder *uly_expr_begin(uly_arena *arena);
int32_t uly_expr_const_int(uly_expr_builder *b, int64_t value);
int32_t uly_expr_const_bool(uly_expr_builder *b, bool value);
int32_t uly_expr_const_float(uly_expr_builder *b, double value);
int32_t uly_expr_leaf(uly_expr_builder *b, uly_scalar op, uly_scalar_type type, int32_t index);
// Types follow from the arguments; ints are converted where a float meets them. Powers with a constant whole exponent become products. Returns -1 where the types do
// not fit, where a constant overflows or divides by zero, where ints meet in a power with an exponent that is negative or not constant, and beyond
// ULY_EXPR_MAX_NODES. All builders return -1 for an argument that is -1.
int32_t uly_expr_op(uly_expr_builder *b, uly_scalar op, const int32_t *args, int n_args);
// LOAD: |type| is the element's.
int32_t uly_expr_load(uly_expr_builder *b, uly_scalar_type type, int32_t operand, const int32_t *indices, int n_indices);
// Copies |source| with every leaf replaced by what |leaf| returns for it (a node of b), or kept where it returns -1. Returns the result's node.
int32_t uly_expr_graft(uly_expr_builder *b, const uly_expr *source, int32_t (*leaf)(void *context, uly_expr_builder *b, const uly_expr_node *node),
                       void *context);
const uly_expr_node *uly_expr_node_at(const uly_expr_builder *b, int32_t node);
// Drops nodes that |result| does not need and orders the others, so that expressions that were built alike are equal. The builder may go on.
uly_expr uly_expr_end(uly_expr_builder *b, int32_t result);
bool uly_expr_equal(const uly_expr *a, const uly_expr *b);
uly_number uly_expr_node_value(const uly_expr_node *node); // of a CONST

#endif
