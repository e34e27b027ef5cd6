// An operation with its types read: what the rules of distribution compute with.
#ifndef ULY_PASSES_VIEW_H
#define ULY_PASSES_VIEW_H

#include "passes/ir.h"

typedef struct uly_view {
  MlirOperation op;
  uly_kind kind;
  int n_in, n_out;
  uly_type in[ULY_MAX_OPERANDS], out[ULY_MAX_OPERANDS];
} uly_view;

// False, with a diagnostic at the operation, where a type cannot be read.
bool uly_view_read(uly_ir *ir, MlirOperation op, uly_view *out_view);
// Global shapes against the operation's meaning: what ops.def says in words. An empty text, or what is wrong.
uly_str uly_view_check_shapes(const uly_ir *ir, const uly_view *view);

// What becomes of dim |d| of operand |i|: a dim of result 0, or
enum {
  ULY_DIM_WHOLE = -1,      // needed whole on every rank
  ULY_DIM_CONTRACTED = -2, // summed over
  ULY_DIM_SLICED = -3      // cut out of: the operation itself moves what is needed
};
int32_t uly_view_dim(const uly_view *view, int i, int32_t d);
// Is dim |r| of result 0 one that operations may choose to split although no operand has it? (An index of a map.)
bool uly_view_dim_is_free(const uly_view *view, int32_t r);

// The dim of an attention's operand |i| ≥ 3 that is read at the query's batch alone, so that a share of the batch needs that share of it: q_offset's, and of a captured tensor one that
// mask and score index by b and nothing else. −1 without one.
int32_t uly_view_batch_dim(const uly_ir *ir, const uly_view *view, int i);

#endif
