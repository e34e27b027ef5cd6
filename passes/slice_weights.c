// slice_weights: a slice of a linear's columns is a linear of that slice of its weights, which is cut when the model is loaded. So fused q, k and v, or gate and up, are several
// linears, which fuse takes together like any others, and nothing is moved in a run.
//
//   %y = linear(%x, %w)  %h = heads(%y)  %q = slice(%h) {dim = 3, begin = "0", end = "64"}       the same for k and v
//   becomes   %0 = reshape(%w)  %1 = slice(%0) {dim = 1, begin = "0", end = "64"}  %2 = reshape(%1)  %z = linear(%x, %2)  %q = heads(%z)
//
// Where all that reads the linear are slices, as they are, of heads, or of a reshape that keeps the columns together; where they overlap so little that nothing is computed
// more than once on the whole; and where each has columns enough for a panel. Not where nothing is fused: -O0 shows what the spec says.
#include "frontend/dim_groups.h"
#include "passes/pipeline.h"
#include "runtime/kernel_abi.h"

// One slice of a linear's columns, seen as [outer][size][inner] of which it takes [begin, end) of |size|.
typedef struct columns {
  MlirOperation slice, regroup; // regroup: null where the slice reads the linear itself
  int64_t outer, begin, end, size, inner;
} columns;

static int64_t count_of(const columns *c) { return c->outer * (c->end - c->begin) * c->inner; }

// The first of the dims that the last dim of |in| has become in |out|; −1 where it is not alone there.
static int32_t first_column(const uly_tensor_type *in, const uly_tensor_type *out) {
  uly_dim_group groups[ULY_MAX_DIM_GROUPS];
  int32_t n = uly_dim_groups(in, out, groups);
  for (int32_t i = 0; i < n; i++)
    if (groups[i].in == in->rank - 1 && groups[i].in_end == in->rank && groups[i].out_end == out->rank) return groups[i].out;
  return -1;
}

static bool read_columns(const uly_ir *ir, MlirValue columns_of, int32_t first, MlirOperation slice, columns *out) {
  uly_type from = uly_type_of(ir, columns_of), to = uly_type_of(ir, uly_op_result(slice, 0));
  uly_dim begin, end;
  int32_t dim = (int32_t)uly_op_i64(slice, "dim", 0);
  if (dim < first || !uly_op_dim(ir, slice, "begin", &begin) || !uly_op_dim(ir, slice, "end", &end)) return false;
  if (!uly_dim_is_const(begin) || !uly_dim_is_const(end) || to.tensor.dtype != from.tensor.dtype) return false;
  *out = (columns){.slice = slice, .outer = 1, .begin = begin.add, .end = end.add, .size = from.tensor.dims[dim].add, .inner = 1};
  for (int32_t d = first; d < from.tensor.rank; d++) {
    if (!uly_dim_is_const(from.tensor.dims[d])) return false;
    if (d < dim) out->outer *= from.tensor.dims[d].add;
    if (d > dim) out->inner *= from.tensor.dims[d].add;
  }
  return count_of(out) >= ULY_PANEL;
}

// What reads |value|, whose dims from |first| on are the linear's columns; false where that is not slices of columns alone.
static bool read_users(const uly_ir *ir, MlirValue value, int32_t first, MlirOperation regroup, columns *all, int most, int *n) {
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    uly_kind kind = uly_op_kind(user);
    if (kind == ULY_KIND_SLICE) {
      if (*n == most || !read_columns(ir, value, first, user, &all[*n])) return false;
      all[(*n)++].regroup = regroup;
    } else {
      if (!mlirOperationIsNull(regroup) || (kind != ULY_KIND_HEADS && kind != ULY_KIND_RESHAPE)) return false;
      uly_type in = uly_type_of(ir, value), out = uly_type_of(ir, uly_op_result(user, 0));
      int32_t at = first_column(&in.tensor, &out.tensor);
      if (at < 0 || uly_op_unused(user) || !read_users(ir, uly_op_result(user, 0), at, user, all, most, n)) return false;
    }
  }
  return true;
}

// ---- the linear of a slice

static MlirType build_type(const uly_ir *ir, const uly_tensor_type *tensor) {
  uly_type type = uly_type_global(&ir->names, tensor);
  return uly_type_build(ir, &type);
}

static MlirValue build_view(const uly_ir *ir, const char *name, MlirLocation loc, MlirValue from, const uly_tensor_type *to, MlirOperation before) {
  MlirType type = build_type(ir, to);
  if (mlirTypeEqual(type, mlirValueGetType(from))) return from;
  uly_op_spec spec = {.name = name, .loc = loc, .operands = &from, .n_operands = 1, .results = &type, .n_results = 1, .before = before};
  return uly_op_result(uly_op_build(ir, &spec), 0);
}

// The slice's part of weights or bias, whose dim 0 is the linear's columns.
static MlirValue cut_weight(const uly_ir *ir, const columns *c, MlirValue w, MlirLocation loc) {
  uly_tensor_type whole = uly_type_of(ir, w).tensor, apart = whole, part;
  bool groups = c->outer > 1;
  if (groups) {
    apart.rank++;
    apart.dims[0] = uly_dim_const(c->outer), apart.dims[1] = uly_dim_const(c->size * c->inner);
    for (int32_t d = 1; d < whole.rank; d++) apart.dims[d + 1] = whole.dims[d];
  }
  part = apart;
  part.dims[groups] = uly_dim_const((c->end - c->begin) * c->inner);
  MlirValue from = build_view(ir, "uly.reshape", loc, w, &apart, c->slice);
  MlirType type = build_type(ir, &part);
  uly_op_spec spec = {.name = "uly.slice", .loc = loc, .operands = &from, .n_operands = 1, .results = &type, .n_results = 1, .before = c->slice};
  spec.attrs[0] = uly_ir_attr(ir, "dim", uly_ir_i64(ir, groups));
  spec.attrs[1] = uly_ir_attr(ir, "begin", uly_ir_dim(ir, uly_dim_const(c->begin * c->inner)));
  spec.attrs[2] = uly_ir_attr(ir, "end", uly_ir_dim(ir, uly_dim_const(c->end * c->inner)));
  MlirValue cut = uly_op_result(uly_op_build(ir, &spec), 0);
  whole.dims[0] = uly_dim_const(count_of(c));
  return build_view(ir, "uly.reshape", loc, cut, &whole, c->slice);
}

static void replace(const uly_ir *ir, MlirOperation linear, const columns *c) {
  MlirLocation loc = uly_ir_loc(ir, uly_op_loc(ir, linear)), last = mlirOperationGetLocation(c->slice);
  MlirValue operands[3] = {uly_op_operand(linear, 0)}, old = uly_op_result(c->slice, 0);
  int n = (int)mlirOperationGetNumOperands(linear);
  for (int i = 1; i < n; i++) operands[i] = cut_weight(ir, c, uly_op_operand(linear, i), loc);
  uly_tensor_type y = uly_type_of(ir, uly_op_result(linear, 0)).tensor, result = uly_type_of(ir, old).tensor;
  y.dims[y.rank - 1] = uly_dim_const(count_of(c));
  MlirType type = build_type(ir, &y);
  bool same = mlirTypeEqual(type, mlirValueGetType(old));
  uly_op_spec spec = {
      .name = "uly.linear", .loc = same ? last : loc, .operands = operands, .n_operands = n, .results = &type, .n_results = 1, .before = c->slice};
  MlirValue part = uly_op_result(uly_op_build(ir, &spec), 0);
  bool heads = !mlirOperationIsNull(c->regroup) && uly_op_kind(c->regroup) == ULY_KIND_HEADS && result.rank == y.rank + 1;
  mlirValueReplaceAllUsesOfWith(old, build_view(ir, heads ? "uly.heads" : "uly.reshape", last, part, &result, c->slice));
  uly_op_erase(c->slice);
}

static bool slice_linear(const uly_ir *ir, MlirOperation linear) {
  enum { MOST = 16 };
  columns all[MOST];
  int n = 0;
  MlirValue y = uly_op_result(linear, 0);
  uly_type type = uly_type_of(ir, y);
  int64_t columns_read = 0;
  if (!uly_type_is_global(&type) || uly_op_unused(linear)) return false;
  if (!read_users(ir, y, type.tensor.rank - 1, (MlirOperation){NULL}, all, MOST, &n)) return false;
  for (int i = 0; i < n; i++) columns_read += count_of(&all[i]);
  if (columns_read > type.tensor.dims[type.tensor.rank - 1].add) return false;
  for (int i = 0; i < n; i++) replace(ir, linear, &all[i]);
  for (int i = 0; i < n; i++)
    if (!mlirOperationIsNull(all[i].regroup) && (i == 0 || !mlirOperationEqual(all[i].regroup, all[i - 1].regroup))) uly_op_erase(all[i].regroup);
  uly_op_erase(linear);
  return true;
}

bool uly_pass_slice_weights(uly_ir *ir, MlirOperation module) {
  for (bool changed = !ir->unfused; changed;) { // a slice of a slice comes next time
    changed = false;
    uly_ops ops = uly_ir_collect(ir, module);
    int n = 0;
    for (int i = 0; i < ops.n; i++)
      if (uly_op_kind(ops.at[i]) == ULY_KIND_LINEAR) ops.at[n++] = ops.at[i];
    for (int i = 0; i < n; i++) changed |= slice_linear(ir, ops.at[i]);
  }
  return true;
}
