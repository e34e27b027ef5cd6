// Moves groups of operations into private functions and leaves a call: what fuse decides on, and codegen turns into one kernel. Equal functions are shared.
#ifndef ULY_PASSES_OUTLINE_H
#define ULY_PASSES_OUTLINE_H

#include "passes/ir.h"

enum { ULY_OUTLINE_MAX_OPS = 32, ULY_OUTLINE_MAX_VALUES = 192 };

typedef struct uly_group {
  const char *kind;                       // "gemm": names the function, @k3_gemm, and stands in its attribute uly.kernel
  MlirOperation ops[ULY_OUTLINE_MAX_OPS]; // producers before users; erased
  int n_ops;
  MlirValue results[ULY_OUTLINE_MAX_VALUES]; // of those operations: what the call gives
  int n_results;
  MlirOperation anchor; // the call goes before it
} uly_group;

typedef struct uly_outlined {
  uly_str body; // the function's text, with a fixed name
  uly_str name;
} uly_outlined;

typedef struct uly_outliner {
  uly_ir *ir;
  MlirOperation module;
  uly_outlined *functions; // so far
  int n, cap;
} uly_outliner;

void uly_outliner_init(uly_outliner *outliner, uly_ir *ir, MlirOperation module);
// The call. |ops|: the block's operations, of which the one at |at| is in the group; those of the group are null in it afterwards.
MlirOperation uly_outline(uly_outliner *outliner, const uly_group *group, uly_ops ops, int at);

#endif
