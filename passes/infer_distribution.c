// Decides how every value is cut over the ranks, and inserts uly.reshard where what an operation wishes differs from what it is offered.
//
//   rows         a value with a dim whose symbol an axis splits (S) is split along it; everything else is whole on every rank
//   attention    over an axis of rows: queries split by heads, keys and values a cover of the kv heads that those need, captured tensors whole; its results go back to rows where
//                used. Over one of the batch: shares of it, and of captured tensors where they are read at b alone, else those whole
//   sums         over the split dim give partial sums, which are reduced where used
//   slices       of the split dim give whole values
//   softmax      of the split dim takes and gives whole values
//   parameters   whole
//   entries and loops  take and give rows
// One walk in program order: operands are known before users. Axes are decided one after the other and do not see each other.
//
//   %o, %l = "uly.attention"(%q, %k, %v, %doc)            // all "B,S"
// becomes
//   %qh = "uly.reshard"(%q) : (… "B,S sp=1") -> … "B,S sp=2"            %kc = "uly.reshard"(%k) : (… sp=1) -> … "B,S sp=2/4"     %d = "uly.reshard"(%doc) : … sp=*
//   %o, %l = "uly.attention"(%qh, %kc, %vc, %d) : … -> (… "B,S sp=2", … "B,S sp=2")
#include "passes/pipeline.h"
#include "passes/view.h"

static const uly_dist whole = {.kind = ULY_DIST_REPLICATED};

static uly_dist rows_of(const uly_ir *ir, const uly_tensor_type *tensor, int32_t axis) {
  int32_t row = uly_type_row_dim(&ir->names, tensor, axis);
  return row < 0 ? whole : uly_dist_split(row);
}

static uly_type rows_type(const uly_ir *ir, const uly_tensor_type *tensor) {
  uly_type type = uly_type_global(&ir->names, tensor);
  for (int32_t x = 0; x < type.n_axes; x++) type.dist[x] = rows_of(ir, tensor, x);
  return type;
}

// ---- reshards

// |value| with |dist| on |axis|; a new reshard before |user| where it is not so already.
static MlirValue reshard(const uly_ir *ir, MlirValue value, uly_type *inout_type, int32_t axis, uly_dist dist, MlirOperation user) {
  if (uly_dist_equal(inout_type->dist[axis], dist)) return value;
  if (uly_dist_is_partial(inout_type->dist[axis]) && dist.kind != ULY_DIST_REPLICATED) value = reshard(ir, value, inout_type, axis, whole, user);
  if (uly_dist_is_cut(inout_type->dist[axis]) && uly_dist_is_cut(dist) &&
      inout_type->dist[axis].dim == dist.dim) // heads of one attention that another takes a cover of
    value = reshard(ir, value, inout_type, axis, rows_of(ir, &inout_type->tensor, axis), user);
  inout_type->dist[axis] = dist;
  MlirType type = uly_type_build(ir, inout_type);
  uly_op_spec spec = {
      .name = "uly.reshard", .loc = mlirOperationGetLocation(user), .operands = &value, .n_operands = 1, .results = &type, .n_results = 1, .before = user};
  return uly_op_result(uly_op_build(ir, &spec), 0);
}

static void reshard_to_rows(const uly_ir *ir, MlirOperation user, int operand) {
  MlirValue value = mlirOperationGetOperand(user, operand);
  if (!mlirTypeIsARankedTensor(mlirValueGetType(value))) return;
  uly_type type = uly_type_of(ir, value);
  for (int32_t x = 0; x < ir->names.n_axes; x++) value = reshard(ir, value, &type, x, rows_of(ir, &type.tensor, x), user);
  mlirOperationSetOperand(user, operand, value);
}

// ---- wishes: for each operand the distribution that the operation wants on an axis; what it gives then

typedef struct wishes {
  uly_dist in[ULY_MAX_OPERANDS], out[ULY_MAX_OPERANDS];
} wishes;

// The operand's dim that becomes dim |r| of the result, -1 without one.
static int32_t dim_to(const uly_view *v, int i, int32_t r) {
  for (int32_t d = 0; d < v->in[i].tensor.rank; d++)
    if (uly_view_dim(v, i, d) == r) return d;
  return -1;
}

// The result's dim that the axis splits and that the operation can make share by share.
static int32_t target_dim(const uly_ir *ir, const uly_view *v, int32_t axis) {
  const uly_tensor_type *result = &v->out[0].tensor;
  const uly_grid_axis *grid = &ir->names.axes[axis];
  for (int32_t r = 0; r < result->rank; r++) {
    bool named = false, made = uly_view_dim_is_free(v, r);
    for (int32_t s = 0; s < grid->n_symbols; s++) named |= result->dims[r].symbol == grid->symbols[s] && result->dims[r].add == 0;
    for (int i = 0; named && i < v->n_in; i++) made |= dim_to(v, i, r) >= 0;
    if (named && made) return r;
  }
  return -1;
}

static void wish_dims(const uly_ir *ir, const uly_view *v, int32_t axis, wishes *w) {
  int32_t r = target_dim(ir, v, axis);
  w->out[0] = r < 0 ? whole : uly_dist_split(r);
  for (int i = 0; i < v->n_in; i++) {
    int32_t d = r < 0 ? -1 : dim_to(v, i, r);
    w->in[i] = d < 0 ? whole : uly_dist_split(d);
  }
}

// Sums and slices of the split dim take rows as they are.
static void wish_rows(const uly_ir *ir, const uly_view *v, int32_t axis, wishes *w) {
  w->in[0] = rows_of(ir, &v->in[0].tensor, axis);
  int32_t to = w->in[0].kind == ULY_DIST_SPLIT ? uly_view_dim(v, 0, w->in[0].dim) : ULY_DIM_WHOLE;
  if (to == ULY_DIM_WHOLE) w->in[0] = whole;
  w->out[0] = to >= 0 ? uly_dist_split(to) : to == ULY_DIM_CONTRACTED ? uly_dist_of(ULY_DIST_PARTIAL) : whole;
}

static void wish_attention(const uly_ir *ir, const uly_view *v, int32_t axis, wishes *w) {
  for (int i = 3; i < v->n_in; i++) w->in[i] = whole;
  uly_dist q = rows_of(ir, &v->in[0].tensor, axis);
  if (q.kind == ULY_DIST_SPLIT && q.dim == 1) {
    int64_t heads = v->in[0].tensor.dims[2].add, kv = v->in[1].tensor.dims[2].add;
    w->in[0] = uly_dist_split(2);
    for (int i = 1; i < 3; i++) w->in[i] = v->in[i].dist[axis].kind == ULY_DIST_REPLICATED ? whole : uly_dist_cover(2, heads / kv);
  } else {
    bool batch = q.kind == ULY_DIST_SPLIT && q.dim == 0;
    for (int i = 0; i < 3; i++) w->in[i] = batch ? q : whole;
    for (int i = 3; batch && i < v->n_in; i++) {
      int32_t dim = uly_view_batch_dim(ir, v, i);
      if (dim >= 0) w->in[i] = uly_dist_split(dim);
    }
  }
  w->out[0] = w->out[1] = w->in[0];
}

static void wish(const uly_ir *ir, const uly_view *v, int32_t axis, wishes *w) {
  switch (v->kind) {
  case ULY_KIND_PARAM: w->out[0] = whole; break;
  case ULY_KIND_ATTENTION: wish_attention(ir, v, axis, w); break;
  case ULY_KIND_SUM:
  case ULY_KIND_SLICE: wish_rows(ir, v, axis, w); break;
  default: wish_dims(ir, v, axis, w); break;
  }
}

// ---- the walk

static bool distribute_op(uly_ir *ir, MlirOperation op) {
  uly_view view;
  if (!uly_view_read(ir, op, &view)) return false;
  if (uly_kind_is_cast(view.kind)) {
    uly_op_error(ir, op, "uly.%s: this module is distributed already", uly_kind_get(view.kind).name);
    return false;
  }
  for (int32_t x = 0; x < ir->names.n_axes; x++) {
    wishes w;
    wish(ir, &view, x, &w);
    for (int i = 0; i < view.n_in; i++) mlirOperationSetOperand(op, i, reshard(ir, mlirOperationGetOperand(op, i), &view.in[i], x, w.in[i], op));
    for (int i = 0; i < view.n_out; i++) view.out[i].dist[x] = w.out[i];
  }
  for (int i = 0; i < view.n_out; i++) mlirValueSetType(mlirOperationGetResult(op, i), uly_type_build(ir, &view.out[i]));
  return true;
}

static bool set_rows(uly_ir *ir, MlirOperation op, MlirValue value) {
  uly_type type;
  uly_str error;
  if (!mlirTypeIsARankedTensor(mlirValueGetType(value))) return true; // a loop's counter
  if (!uly_type_read(ir, mlirValueGetType(value), &type, &error)) {
    uly_op_error(ir, op, "%.*s", ULY_STR_ARG(error));
    return false;
  }
  type = rows_type(ir, &type.tensor);
  mlirValueSetType(value, uly_type_build(ir, &type));
  return true;
}

static bool distribute_block(uly_ir *ir, MlirOperation owner, MlirBlock block) {
  bool ok = true;
  for (int i = 0; i < mlirBlockGetNumArguments(block); i++) ok = set_rows(ir, owner, mlirBlockGetArgument(block, i)) && ok;
  uly_ops ops = uly_block_ops(ir, block);
  for (int i = 0; ok && i < ops.n; i++) {
    MlirOperation op = ops.at[i];
    if (uly_op_kind(op) != ULY_KIND_OTHER) {
      ok = distribute_op(ir, op);
      continue;
    }
    for (int j = 0; j < mlirOperationGetNumOperands(op); j++) reshard_to_rows(ir, op, j); // scf.for, scf.yield, func.return
    for (int j = 0; j < mlirOperationGetNumResults(op); j++) ok = set_rows(ir, op, mlirOperationGetResult(op, j)) && ok;
    for (int j = 0; ok && j < mlirOperationGetNumRegions(op); j++) ok = distribute_block(ir, op, mlirRegionGetFirstBlock(mlirOperationGetRegion(op, j)));
  }
  return ok;
}

// A function's type follows its arguments and its return.
static void set_function_type(const uly_ir *ir, MlirOperation func) {
  MlirBlock body = uly_op_body(func);
  MlirOperation ret = mlirBlockGetTerminator(body);
  int n_in = (int)mlirBlockGetNumArguments(body), n_out = (int)mlirOperationGetNumOperands(ret);
  MlirType *in = ULY_NEW_ARRAY(ir->arena, MlirType, n_in), *out = ULY_NEW_ARRAY(ir->arena, MlirType, n_out);
  for (int i = 0; i < n_in; i++) in[i] = mlirValueGetType(mlirBlockGetArgument(body, i));
  for (int i = 0; i < n_out; i++) out[i] = mlirValueGetType(mlirOperationGetOperand(ret, i));
  uly_op_set(func, "function_type", mlirTypeAttrGet(mlirFunctionTypeGet(ir->context, n_in, in, n_out, out)));
}

bool uly_pass_infer_distribution(uly_ir *ir, MlirOperation module) {
  uly_ops funcs = uly_block_ops(ir, uly_op_body(module));
  bool ok = true;
  for (int i = 0; i < funcs.n; i++) {
    if (!uly_op_is(funcs.at[i], "func.func") || mlirBlockIsNull(uly_op_body(funcs.at[i]))) continue;
    ok = distribute_block(ir, funcs.at[i], uly_op_body(funcs.at[i])) && ok;
    if (ok) set_function_type(ir, funcs.at[i]);
  }
  return ok;
}
