// The rest of fuse: norms, sums and losses take in the map that makes their input, and norms and sums the map that uses their result; attention and every map that is left become kernels of
// their own.
#include "passes/fuse.h"

// A sum of floats over the last dim, where no rank holds a part of it, is done row by row; the others add rows up.
static const char *sum_kind(const uly_fuse *fuse, MlirOperation op) {
  uly_type in = uly_type_of(fuse->ir, mlirOperationGetOperand(op, 0));
  int64_t dim = uly_op_i64(op, "dim", 0);
  bool grid_dim = false;
  if (!uly_dtype_get(in.tensor.dtype)->is_float) return "rowsum";
  for (int32_t a = 0; a < fuse->ir->names.n_axes; a++) grid_dim |= uly_type_row_dim(&fuse->ir->names, &in.tensor, a) == dim;
  return dim == in.tensor.rank - 1 && !grid_dim ? "rows" : "rowsum";
}

static const char *kernel_kind(const uly_fuse *fuse, MlirOperation op) {
  switch (uly_op_kind(op)) {
  case ULY_KIND_RMSNORM:
  case ULY_KIND_LAYERNORM:
  case ULY_KIND_SOFTMAX: return "rows";
  case ULY_KIND_MAP: return uly_op_has(op, "uly.view") ? NULL : "rows";
  case ULY_KIND_SUM: return sum_kind(fuse, op);
  case ULY_KIND_NLL: return "nll";
  case ULY_KIND_ATTENTION: return "attention";
  default: return NULL;
  }
}

static bool plain_float(const uly_fuse *fuse, MlirOperation map) {
  uly_map m = uly_map_read(fuse, map);
  return !m.expr.wide && uly_dtype_get(uly_type_of(fuse->ir, uly_op_result(map, 0)).tensor.dtype)->is_float;
}

// The map that makes the operand of a norm, sum or loss, where nobody else needs it.
static MlirOperation prologue(const uly_fuse *fuse, MlirOperation op) {
  MlirValue x = mlirOperationGetOperand(op, 0);
  MlirOperation def = uly_value_op(x);
  if (mlirOperationIsNull(def) || uly_op_kind(def) != ULY_KIND_MAP || mlirOperationIsNull(uly_single_user(fuse, x))) return (MlirOperation){NULL};
  uly_dtype dtype = uly_type_of(fuse->ir, x).tensor.dtype;
  bool plain = uly_dtype_get(dtype)->is_float ? plain_float(fuse, def)
                                              : dtype == ULY_I64 || dtype == ULY_BOOL; // narrower ints would not wrap where a sum takes 64 bits of each term
  return plain ? def : (MlirOperation){NULL};
}

// The map that a norm's or a row sum's result goes into, and nowhere else.
static MlirOperation epilogue(const uly_fuse *fuse, MlirOperation op) {
  MlirValue y = uly_op_result(op, 0);
  MlirOperation user = uly_single_user(fuse, y);
  if (mlirOperationIsNull(user) || uly_op_kind(user) != ULY_KIND_MAP || !plain_float(fuse, user)) return (MlirOperation){NULL};
  for (int i = 0; i < (int)mlirOperationGetNumOperands(user); i++)
    if (mlirValueEqual(mlirOperationGetOperand(user, i), y) && !uly_map_is_pointwise(fuse->ir, user, i)) return (MlirOperation){NULL};
  return user;
}

static void outline(uly_fuse *fuse, uly_ops ops, int at, const char *kind) {
  MlirOperation op = ops.at[at];
  uly_group group = {.kind = kind};
  uly_kind k = uly_op_kind(op);
  MlirOperation before = {NULL}, after = {NULL};
  if (k == ULY_KIND_RMSNORM || k == ULY_KIND_LAYERNORM || k == ULY_KIND_SOFTMAX || k == ULY_KIND_SUM || k == ULY_KIND_NLL) {
    before = prologue(fuse, op);
    if (strcmp(kind, "rows") == 0) after = epilogue(fuse, op);
  }
  if (!mlirOperationIsNull(before)) group.ops[group.n_ops++] = before;
  group.ops[group.n_ops++] = op;
  if (!mlirOperationIsNull(after)) group.ops[group.n_ops++] = after;
  MlirOperation last = group.ops[group.n_ops - 1];
  group.anchor = last;
  for (intptr_t i = 0; i < mlirOperationGetNumResults(last); i++) group.results[group.n_results++] = uly_op_result(last, (int)i);
  uly_outline(&fuse->outliner, &group, ops, at);
}

void uly_fuse_rows(uly_fuse *fuse, MlirBlock block) {
  uly_ops ops = uly_block_ops(fuse->ir, block);
  for (int maps = 0; maps < 2; maps++) // norms and sums first: they take maps in
    for (int i = 0; i < ops.n; i++) {
      const char *kind = mlirOperationIsNull(ops.at[i]) ? NULL : kernel_kind(fuse, ops.at[i]);
      if (kind && (uly_op_kind(ops.at[i]) == ULY_KIND_MAP) == (maps == 1)) outline(fuse, ops, i, kind);
    }
}
