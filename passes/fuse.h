// What the files of the fuse pass share: a map as a struct, single uses, the outliner.
#ifndef ULY_PASSES_FUSE_H
#define ULY_PASSES_FUSE_H

#include "passes/outline.h"

typedef struct uly_fuse {
  uly_ir *ir;
  uly_outliner outliner;
} uly_fuse;

typedef struct uly_map {
  uly_expr expr;
  int n_operands;
  MlirValue operands[ULY_MAX_OPERANDS];
  uly_access access[ULY_MAX_OPERANDS];
} uly_map;

uly_map uly_map_read(const uly_fuse *fuse, MlirOperation op);
// A map before |before| with the type, place and phase of |like|.
MlirOperation uly_map_build(const uly_fuse *fuse, const uly_map *map, MlirValue like, MlirOperation before);
// Every dim of the operand is indexed by the same dim of the result, and the shapes are equal.
bool uly_map_is_pointwise(const uly_ir *ir, MlirOperation map, int operand);

// What load computes and what a run computes are never one kernel.
static inline bool uly_same_phase(MlirOperation a, MlirOperation b) { return uly_op_has(a, "uly.load") == uly_op_has(b, "uly.load"); }

// The only user of |value|, in the same block and phase; null where there are more, or it is in a loop inside.
MlirOperation uly_single_user(const uly_fuse *fuse, MlirValue value);

void uly_compose_maps(const uly_fuse *fuse, MlirBlock block);
// Linears with what follows them: epilogues, heads, rope; those that feed one exchange together.
void uly_fuse_linears(uly_fuse *fuse, MlirBlock block);
// Norms and sums with the maps before and after them, attention, and the maps that are left.
void uly_fuse_rows(uly_fuse *fuse, MlirBlock block);

#endif
