// Functions that move elements, sum them, or change their dtype.
#include "frontend/calls.h"
#include "frontend/dim_groups.h"

#include <math.h>

static uly_value build(uly_call_site *call, uly_op op, const uly_tensor_type *type) {
  return uly_build_tensor(uly_build_value(call->c, op, call->ast->loc, type, &call->args[0].u.tensor, 1), call->args[0].weak);
}

// ---- cast -----------------------------------------------------------------------------------------------------------------------------------------------------

static uly_value cast_number(uly_checker *c, uly_scope *scope, uly_loc loc, void *context, const uly_value *args, int n) {
  uly_dtype dtype = *(const uly_dtype *)context;
  uly_scalar_type want = uly_map_scalar_type(dtype);
  (void)n;
  if (want == ULY_SCALAR_BOOL) return uly_static_apply(c, scope, loc, ULY_SC_NE, (uly_value[]){args[0], uly_static_int(0)}, 2);
  if (want == ULY_SCALAR_INT) return uly_static_apply(c, scope, loc, ULY_SC_INT, args, 1);
  uly_value value = uly_static_apply(c, scope, loc, ULY_SC_FLOAT, args, 1);
  if (value.kind != ULY_VALUE_NUMBER) return value;
  uint64_t rounded;
  uly_dtype_store(dtype, &rounded, 0, value.u.number.f);
  return uly_static_float(uly_dtype_load(dtype, &rounded, 0));
}

uly_value uly_build_cast(uly_call_site *call) {
  enum { X, DTYPE };
  if (call->args[DTYPE].kind != ULY_VALUE_DTYPE) {
    ULY_CHECK_ERROR(call->c, call->scope, call->locs[DTYPE], ULY_D(STATIC_WANTED), "the second argument of cast", "a dtype",
                    uly_value_describe(&call->args[DTYPE]));
    return uly_poison();
  }
  uly_dtype dtype = call->args[DTYPE].dtype;
  const uly_value *x = &call->args[X], *item = uly_static_first(x);
  if (item->kind == ULY_VALUE_NUMBER) return uly_static_each(call->c, call->scope, call->ast->loc, cast_number, &dtype, x, 1);
  if (x->kind == ULY_VALUE_SIZE)
    return uly_eval_apply(call->c, call->scope, call->ast->loc, uly_map_scalar_type(dtype) == ULY_SCALAR_FLOAT ? ULY_SC_FLOAT : ULY_SC_INT, x, 1);
  return uly_call_tensor(call, X) ? uly_map_cast(call->c, call->ast->loc, *x, dtype) : uly_poison();
}

// ---- sums -----------------------------------------------------------------------------------------------------------------------------------------------------

enum { SUM_X, SUM_DIM, SUM_KEEP };

static uly_value build_sum(uly_call_site *call, uly_dim *out_size) {
  int32_t dim;
  bool keep = false;
  if (!uly_call_rank(call, SUM_X, 1, ULY_GRAPH_MAX_DIMS) || !uly_call_dim(call, SUM_DIM, call->args[SUM_X].u.tensor->type.rank, &dim)) return uly_poison();
  if (call->given[SUM_KEEP] && !uly_static_get_bool(call->c, call->scope, call->locs[SUM_KEEP], call->args[SUM_KEEP], "`keep`", &keep)) return uly_poison();
  uly_graph_value *x = call->args[SUM_X].u.tensor;
  uly_tensor_type type = x->type;
  *out_size = type.dims[dim];
  if (!uly_dtype_get(type.dtype)->is_float) type.dtype = ULY_I64;
  if (keep) {
    type.dims[dim] = uly_dim_const(1);
  } else {
    memmove(&type.dims[dim], &type.dims[dim + 1], sizeof *type.dims * (size_t)(type.rank - dim - 1));
    type.rank--;
  }
  uly_graph_value *value = uly_build_value(call->c, ULY_OP_SUM, call->ast->loc, &type, &x, 1);
  value->u.sum.dim = dim;
  value->u.sum.keep = keep;
  return uly_build_tensor(value, call->args[SUM_X].weak);
}

uly_value uly_build_sum(uly_call_site *call) {
  uly_dim size;
  return build_sum(call, &size);
}

uly_value uly_build_mean(uly_call_site *call) {
  uly_dim size;
  uly_value sum = build_sum(call, &size);
  if (sum.kind == ULY_VALUE_POISON) return sum;
  uly_value count = uly_dim_value(call->c, size);
  count = uly_eval_apply(call->c, call->scope, call->ast->loc, ULY_SC_FLOAT, &count, 1);
  return uly_eval_apply(call->c, call->scope, call->ast->loc, ULY_SC_DIV, (uly_value[]){sum, count}, 2);
}

uly_value uly_build_softmax(uly_call_site *call) {
  if (!uly_call_rank(call, 0, 1, ULY_GRAPH_MAX_DIMS) || !uly_call_float_tensor(call, 0)) return uly_poison();
  return build(call, ULY_OP_SOFTMAX, &call->args[0].u.tensor->type);
}

// ---- reshape, split, concat, transpose ------------------------------------------------------------------------------------------------------------------------

// Where a dim that the grid splits would not be one that it splits alike.
static bool check_split_dims(uly_call_site *call, const uly_tensor_type *from, const uly_tensor_type *to) {
  const uly_graph *g = call->c->graph;
  for (int32_t i = 0; i < g->n_axes; i++) {
    int32_t d = uly_axis_dim(&g->axes[i], from), becomes = d < 0 ? -1 : uly_dim_reshaped(from, to, d);
    if (becomes == uly_axis_dim(&g->axes[i], to)) continue;
    uly_str a = uly_shape_text(call->c, from), b = uly_shape_text(call->c, to), dim = uly_dim_text(call->c, from->dims[d < 0 ? 0 : d]);
    ULY_CHECK_ERROR(call->c, call->scope, call->locs[1], ULY_D(RESHAPE_SPLIT), ULY_STR_ARG(a), ULY_STR_ARG(b), ULY_STR_ARG(g->axes[i].name), ULY_STR_ARG(dim));
    return false;
  }
  return true;
}

uly_value uly_build_reshape(uly_call_site *call) {
  enum { X, DIMS };
  uly_checker *c = call->c;
  const uly_value *dims = &call->args[DIMS];
  if (!uly_call_tensor(call, X)) return uly_poison();
  uly_tensor_type type = {.dtype = call->args[X].u.tensor->type.dtype};
  if (dims->kind != ULY_VALUE_LIST) {
    ULY_CHECK_ERROR(c, call->scope, call->locs[DIMS], ULY_D(STATIC_WANTED), "the shape of reshape", "a list of dims", uly_value_describe(dims));
    return uly_poison();
  }
  if (dims->u.list.n > ULY_GRAPH_MAX_DIMS) {
    ULY_CHECK_ERROR(c, call->scope, call->locs[DIMS], ULY_D(RANK_LIMIT), dims->u.list.n, ULY_GRAPH_MAX_DIMS);
    return uly_poison();
  }
  for (int32_t i = 0; i < dims->u.list.n; i++)
    if (!uly_dim_of_value(c, call->scope, call->locs[DIMS], dims->u.list.items[i], &type.dims[type.rank++])) return uly_poison();
  uly_dim_group groups[ULY_MAX_DIM_GROUPS];
  const uly_tensor_type *x = &call->args[X].u.tensor->type;
  if (uly_dim_groups(x, &type, groups) >= 0) return check_split_dims(call, x, &type) ? build(call, ULY_OP_RESHAPE, &type) : uly_poison();
  uly_str from = uly_shape_text(c, x), to = uly_shape_text(c, &type);
  ULY_CHECK_ERROR(c, call->scope, call->locs[DIMS], ULY_D(RESHAPE_COUNT), ULY_STR_ARG(from), ULY_STR_ARG(to));
  return uly_poison();
}

uly_value uly_build_split(uly_call_site *call) {
  enum { X, SIZES };
  uly_checker *c = call->c;
  const uly_value *sizes = &call->args[SIZES];
  if (!uly_call_rank(call, X, 1, ULY_GRAPH_MAX_DIMS)) return uly_poison();
  uly_tensor_type type = call->args[X].u.tensor->type;
  uly_dim last = type.dims[type.rank - 1];
  int32_t n = sizes->kind == ULY_VALUE_LIST ? sizes->u.list.n : 0;
  int64_t total = 0, widths[ULY_MAX_OPERANDS];
  if (sizes->kind != ULY_VALUE_LIST || n < 1 || n > ULY_MAX_OPERANDS) {
    ULY_CHECK_ERROR(c, call->scope, call->locs[SIZES], ULY_D(STATIC_WANTED), "the sizes of split", "a list of 1 to 24 ints", uly_value_describe(sizes));
    return uly_poison();
  }
  for (int32_t i = 0; i < n; i++) {
    if (!uly_static_get_int(c, call->scope, call->locs[SIZES], sizes->u.list.items[i], "a size of split", &widths[i])) return uly_poison();
    if (widths[i] < 1 || __builtin_add_overflow(total, widths[i], &total)) {
      ULY_CHECK_ERROR(c, call->scope, call->locs[SIZES], ULY_D(DIM_RANGE), widths[i]);
      return uly_poison();
    }
  }
  if (!uly_dim_equal(last, uly_dim_const(total))) {
    uly_str text = uly_dim_text(c, last);
    ULY_CHECK_ERROR(c, call->scope, call->locs[SIZES], ULY_D(SPLIT_SUM), total, ULY_STR_ARG(text));
    return uly_poison();
  }
  if (n == 1) return call->args[X];
  uly_value tuple = {.kind = ULY_VALUE_TUPLE, .u.list = {ULY_NEW_ARRAY(c->arena, uly_value, n), n}};
  int64_t begin = 0;
  for (int32_t i = 0; i < n; i++) {
    tuple.u.list.items[i] = uly_build_slice(c, call->ast->loc, call->args[X], type.rank - 1, uly_dim_const(begin), uly_dim_const(begin + widths[i]));
    begin += widths[i];
  }
  return tuple;
}

// Without their last dims, which are joined.
static bool join_last(uly_call_site *call, int32_t i, uly_tensor_type *type) {
  uly_tensor_type a = *type, b = call->args[i].u.tensor->type;
  uly_dim x = a.dims[a.rank - 1], y = b.dims[b.rank - 1];
  a.rank--;
  b.rank--;
  bool fits = a.rank == b.rank && uly_shape_broadcast(&a, &b, type) && uly_dim_is_const(x) && uly_dim_is_const(y) && a.dtype == b.dtype;
  if (fits) {
    type->dims[type->rank++] = uly_dim_const(x.add + y.add);
    return true;
  }
  a.rank++;
  b.rank++;
  uly_str left = uly_shape_text(call->c, &a), right = uly_shape_text(call->c, &b);
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[i], ULY_D(CONCAT_SHAPES), ULY_STR_ARG(left), ULY_STR_ARG(right));
  return false;
}

// What is made of parameters alone takes the dtype of the first activation.
static bool concat_dtypes(uly_call_site *call) {
  int32_t strong = 0;
  while (strong < call->n && call->args[strong].weak) strong++;
  if (strong == call->n) return true;
  uly_dtype dtype = call->args[strong].u.tensor->type.dtype;
  for (int32_t i = 0; i < call->n; i++)
    if (call->args[i].weak && uly_dtype_get(dtype)->is_float) call->args[i] = uly_map_cast(call->c, call->locs[i], call->args[i], dtype);
  return false;
}

uly_value uly_build_concat(uly_call_site *call) {
  uly_graph_value *operands[ULY_MAX_OPERANDS];
  _Static_assert((int)ULY_MAX_ARGS <= (int)ULY_MAX_OPERANDS, "an operand for every argument");
  for (int32_t i = 0; i < call->n; i++)
    if (!uly_call_rank(call, i, 1, ULY_GRAPH_MAX_DIMS)) return uly_poison();
  bool weak = concat_dtypes(call);
  uly_tensor_type type = call->args[0].u.tensor->type;
  for (int32_t i = 1; i < call->n; i++)
    if (!join_last(call, i, &type)) return uly_poison();
  if (call->n == 1) return call->args[0];
  for (int32_t i = 0; i < call->n; i++) operands[i] = call->args[i].u.tensor;
  return uly_build_tensor(uly_build_value(call->c, ULY_OP_CONCAT, call->ast->loc, &type, operands, call->n), weak);
}

uly_value uly_build_transpose(uly_call_site *call) {
  if (!uly_call_rank(call, 0, 2, ULY_GRAPH_MAX_DIMS)) return uly_poison();
  uly_tensor_type type = call->args[0].u.tensor->type;
  int8_t access[ULY_GRAPH_MAX_DIMS] = {0, 1, 2, 3, 4, 5};
  int32_t a = type.rank - 2, b = type.rank - 1;
  uly_dim swap = type.dims[a];
  type.dims[a] = type.dims[b];
  type.dims[b] = swap;
  access[a] = (int8_t)b;
  access[b] = (int8_t)a;
  return uly_map_move(call->c, call->ast->loc, call->args[0], &type, access);
}

// ---- rows -----------------------------------------------------------------------------------------------------------------------------------------------------

uly_value uly_build_shift_by(uly_checker *c, uly_loc loc, uly_value x, int64_t n, double fill) {
  uly_graph_value *value = uly_build_value(c, ULY_OP_SHIFT, loc, &x.u.tensor->type, &x.u.tensor, 1);
  value->u.shift.n = n;
  value->u.shift.fill = fill;
  value->u.shift.dim = uly_shape_row_dim(c, &x.u.tensor->type);
  return uly_build_tensor(value, x.weak);
}

// What stands where there is no row: a number that the dtype has.
static bool get_fill(uly_call_site *call, int32_t index, uly_dtype dtype, double *out) {
  uly_value value = call->args[index];
  if (dtype == ULY_BOOL) {
    bool set;
    if (!uly_static_get_bool(call->c, call->scope, call->locs[index], value, "`fill`", &set)) return false;
    return *out = set, true;
  }
  if (!uly_static_get_float(call->c, call->scope, call->locs[index], value, "`fill`", out)) return false;
  if (uly_dtype_get(dtype)->is_float) return true;
  double least = dtype == ULY_I32 ? INT32_MIN : dtype == ULY_U8 ? 0.0 : -0x1p53, most = dtype == ULY_I32 ? INT32_MAX : dtype == ULY_U8 ? UINT8_MAX : 0x1p53;
  if (*out == floor(*out) && *out >= least && *out <= most) return true;
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[index], ULY_D(FILL_RANGE), uly_dtype_name(dtype), *out);
  return false;
}

uly_value uly_build_shift(uly_call_site *call) {
  enum { X, N, FILL };
  int64_t n;
  double fill = 0.0;
  if (!uly_call_rank(call, X, 1, ULY_GRAPH_MAX_DIMS) || !uly_static_get_int(call->c, call->scope, call->locs[N], call->args[N], "`n`", &n)) return uly_poison();
  if (call->given[FILL] && !get_fill(call, FILL, call->args[X].u.tensor->type.dtype, &fill)) return uly_poison();
  return uly_build_shift_by(call->c, call->ast->loc, call->args[X], n, fill);
}
