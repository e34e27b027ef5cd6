// What the frontend hands to the passes: every entry of a spec, checked, with layers expanded, static arguments evaluated and names resolved. A value is one
// operation on global tensors. Nothing here knows ranks.
//
// Loops stay loops: a `repeat` is a value with a region, whose values may also use those of the regions around it. Parameter names that vary with its counter have been
// evaluated for each iteration; where something else varies, the body has that many copies. Parameters with one name, MAPs without operands and rope's cos and sin stand
// outside of the repeats that do not concern them.
#ifndef ULY_FRONTEND_GRAPH_H
#define ULY_FRONTEND_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "frontend/expr.h"
#include "runtime/base/dtype.h"
#include "runtime/base/str.h"

enum {
  ULY_GRAPH_MAX_DIMS = 6,     // dims of a tensor
  ULY_GRAPH_MAX_SYMBOLS = 32, // free symbols
  ULY_GRAPH_MAX_AXES = 4,     // axes of the grid
  ULY_GRAPH_MAX_LOOPS = 4,    // repeats in one another that stay loops
};

// A place in the spec: bytes [begin, end) of the source, and where that is.
typedef struct uly_loc {
  uint32_t begin, end;
  uint32_t line, column; // from 1
} uly_loc;

// A size: mul · symbol + add. Constants have symbol -1 and mul 0.
typedef struct uly_dim {
  int32_t symbol;
  int64_t mul, add;
} uly_dim;

typedef struct uly_tensor_type {
  uly_dtype dtype;
  int32_t rank;
  uly_dim dims[ULY_GRAPH_MAX_DIMS];
} uly_tensor_type;

static inline uly_dim uly_dim_const(int64_t size) { return (uly_dim){.symbol = -1, .add = size}; }
static inline bool uly_dim_is_const(uly_dim dim) { return dim.symbol < 0; }
static inline bool uly_dim_equal(uly_dim a, uly_dim b) { return a.symbol == b.symbol && a.mul == b.mul && a.add == b.add; }
static inline bool uly_tensor_type_equal(const uly_tensor_type *a, const uly_tensor_type *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int32_t i = 0; i < a->rank; i++)
    if (!uly_dim_equal(a->dims[i], b->dims[i])) return false;
  return true;
}

typedef enum uly_op {
#define OP(id, ...) ULY_OP_##id,
#include "frontend/ops.def"
  ULY_N_OPS
} uly_op;

typedef struct uly_graph_value uly_graph_value;
typedef struct uly_graph_region uly_graph_region;

enum {
  ULY_MAX_OPERANDS = 24, // tensors in one operation: also captured ones, pieces of a split, values that a repeat carries
};

// Which dim of the result indexes each dim of an operand of a MAP; -1 where the operand's size is a stretched literal 1.
typedef struct uly_access {
  int8_t dim[ULY_GRAPH_MAX_DIMS];
} uly_access;

typedef struct uly_attention_attrs {
  uly_expr mask, score; // captured tensor cJ of mask or score is operand captures + J: one list for both
  bool has_score;
  double scale;
  int32_t sink;     // operand number of sink [H], -1 without
  int32_t q_offset; // operand number (i32, [] or [B]), -1: q_offset_value
  int64_t q_offset_value;
  int32_t captures; // number of the first captured operand
} uly_attention_attrs;

struct uly_graph_value {
  uly_op op;
  int32_t id; // number in its entry, dense, in order
  uly_loc loc;
  int32_t n_operands;
  uly_graph_value *operands[ULY_MAX_OPERANDS];
  // Results: one, but for ATTENTION (o, lse) and REPEAT (one a carried value). Result j > 0 is a RESULT value that points to this one.
  uly_tensor_type type;
  union {
    struct { // INPUT: argument `index` of the entry. BODY_ARG: carried value `index` of the enclosing repeat. RESULT: result `index` of operand 0.
      int32_t index;
    } arg;
    struct { // PARAM. Inside loops one name an iteration, outermost loop slowest.
      uly_str *names;
      int32_t n_names;
      double init; // NaN: random
      bool train;
    } param;
    struct { // TABLE, f64 or i64 []: one number an iteration, outermost loop slowest
      const uly_number *numbers;
      int32_t n_numbers;
    } table;
    struct { // MAP: element = expr over operands xJ, their elements chosen by access; i0… are global indices of the result
      uly_expr expr;
      uly_access access[ULY_MAX_OPERANDS];
    } map;
    struct { // RMSNORM, LAYERNORM
      double eps;
    } norm;
    struct { // HEADS, MERGE: H
      int64_t count;
    } heads;
    struct {
      int32_t dim;
      bool keep;
    } sum;
    struct { // [begin, end) of dim; a single index drops the dim. What is not constant is compared at bind
      int32_t dim;
      uly_dim begin, end;
      bool drop;
    } slice;
    struct { // ROPE: operands x, cos, sin
      bool interleaved;
    } rope;
    struct {
      int64_t n;
      double fill;
      int32_t dim;
    } shift;
    uly_attention_attrs *attention;
    struct { // REPEAT: operands are the initial values; body's arguments and yields match them
      int64_t count;
      uly_graph_region *body;
    } repeat;
    struct { // NLL: the label that does not count
      int64_t ignore;
    } nll;
  } u;
};

struct uly_graph_region {
  uly_graph_value **values;
  int32_t n_values;
  uly_graph_value **yields; // carried values at the end of an iteration
  int32_t n_yields;
};

typedef struct uly_graph_input {
  uly_str name;
  uly_tensor_type type;
  int64_t id_limit; // largest legal value + 1 where it indexes a table, else 0
  uly_loc loc;
} uly_graph_input;

typedef struct uly_graph_result {
  uly_str name;
  uly_graph_value *value;
  uly_loc loc;
} uly_graph_result;

typedef struct uly_graph_entry {
  uly_str name;
  bool is_model;
  uly_graph_input *inputs;
  int32_t n_inputs;
  uly_graph_result *results;
  int32_t n_results;
  uly_graph_region body;
  int32_t n_values;
} uly_graph_entry;

typedef struct uly_grid_axis {
  uly_str name;
  int32_t symbols[4]; // the dims it splits
  int32_t n_symbols;
} uly_grid_axis;

// The first dim whose symbol |axis| splits, −1 without one. Dims like S + 1 are not split.
static inline int32_t uly_axis_dim(const uly_grid_axis *axis, const uly_tensor_type *type) {
  for (int32_t d = 0; d < type->rank; d++)
    for (int32_t s = 0; s < axis->n_symbols; s++)
      if (type->dims[d].symbol == axis->symbols[s] && type->dims[d].add == 0) return d;
  return -1;
}

typedef struct uly_graph {
  uly_str *symbols; // free symbols
  int32_t n_symbols;
  uly_grid_axis *axes;
  int32_t n_axes;
  uly_graph_entry *entries;
  int32_t n_entries;
} uly_graph;

#endif
