// Functions with parameters: param, linear, embed and the norms.
#include "frontend/calls.h"

#include <math.h>

static bool same_float_dtype(uly_call_site *call, int32_t x, int32_t other) {
  uly_value *value = &call->args[other];
  uly_dtype want = call->args[x].u.tensor->type.dtype, have = value->u.tensor->type.dtype;
  if (want == have) return true;
  if (value->weak) return *value = uly_map_cast(call->c, call->locs[other], *value, want), true;
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[other], ULY_D(MIXED_DTYPES), uly_dtype_name(want), uly_dtype_name(have));
  return false;
}

uly_value uly_build_param(uly_call_site *call) {
  enum { NAME, DIMS, INIT, TRAIN, TIE };
  uly_checker *c = call->c;
  const uly_value *dims = &call->args[DIMS];
  uly_tensor_type type = {.dtype = dims->kind == ULY_VALUE_TYPE ? dims->dtype : c->dtype};
  double init = (double)NAN;
  bool train = true, tie = false;
  if (dims->kind != ULY_VALUE_LIST && dims->kind != ULY_VALUE_TYPE) {
    ULY_CHECK_ERROR(c, call->scope, call->locs[DIMS], ULY_D(STATIC_WANTED), "the shape of a parameter", "a list of ints", uly_value_describe(dims));
    return uly_poison();
  }
  if (dims->u.list.n > ULY_GRAPH_MAX_DIMS) {
    ULY_CHECK_ERROR(c, call->scope, call->locs[DIMS], ULY_D(RANK_LIMIT), dims->u.list.n, ULY_GRAPH_MAX_DIMS);
    return uly_poison();
  }
  for (int32_t i = 0; i < dims->u.list.n; i++) {
    if (!uly_dim_of_value(c, call->scope, call->locs[DIMS], dims->u.list.items[i], &type.dims[type.rank++])) return uly_poison();
    if (uly_dim_is_const(type.dims[i])) continue;
    uly_str text = uly_dim_text(c, type.dims[i]);
    ULY_CHECK_ERROR(c, call->scope, call->locs[DIMS], ULY_D(PARAM_DIM), ULY_STR_ARG(text));
    return uly_poison();
  }
  if (call->given[INIT] && !uly_static_get_float(c, call->scope, call->locs[INIT], call->args[INIT], "`init`", &init)) return uly_poison();
  if (call->given[TRAIN] && !uly_static_get_bool(c, call->scope, call->locs[TRAIN], call->args[TRAIN], "`train`", &train)) return uly_poison();
  if (call->given[TIE] && !uly_static_get_bool(c, call->scope, call->locs[TIE], call->args[TIE], "`tie`", &tie)) return uly_poison();
  return uly_param_create(c, call->scope, call->ast->loc, call->args[NAME], &type, init, train, tie);
}

// ---- linear ---------------------------------------------------------------------------------------------------------------------------------------------------

enum { LINEAR_X, LINEAR_N, LINEAR_WEIGHT, LINEAR_BIAS, LINEAR_NAME };

static bool linear_weight(uly_call_site *call, uly_dim in) {
  uly_checker *c = call->c;
  int64_t n = 0;
  bool has_n = call->given[LINEAR_N] && call->args[LINEAR_N].kind != ULY_VALUE_NONE;
  if (has_n && !uly_static_get_int(c, call->scope, call->locs[LINEAR_N], call->args[LINEAR_N], "the width of linear", &n)) return false;
  if (has_n && n < 1) {
    ULY_CHECK_ERROR(c, call->scope, call->locs[LINEAR_N], ULY_D(DIM_RANGE), n);
    return false;
  }
  uly_value *weight = &call->args[LINEAR_WEIGHT];
  if (weight->kind == ULY_VALUE_NONE) {
    if (!has_n) {
      ULY_CHECK_ERROR(c, call->scope, call->ast->loc, ULY_D(LINEAR_WIDTH));
      return false;
    }
    *weight = uly_param_short(c, call->scope, call->ast->loc, "linear", call->args[LINEAR_NAME], "weight", (int64_t[]){n, in.add}, 2, (double)NAN);
    return weight->kind != ULY_VALUE_POISON;
  }
  uly_graph_value *w = uly_call_tensor(call, LINEAR_WEIGHT);
  if (!w) return false;
  if (w->type.rank > 2) {
    uly_str text = uly_shape_text(c, &w->type);
    ULY_CHECK_ERROR(c, call->scope, call->locs[LINEAR_WEIGHT], ULY_D(LATER_EXPERTS), ULY_STR_ARG(text));
    return false;
  }
  if (!uly_call_rank(call, LINEAR_WEIGHT, 2, 2) || !uly_call_float_tensor(call, LINEAR_WEIGHT)) return false;
  if (!uly_dim_is_const(w->type.dims[0])) {
    uly_str text = uly_shape_text(c, &w->type);
    ULY_CHECK_ERROR(c, call->scope, call->locs[LINEAR_WEIGHT], ULY_D(WEIGHT_OPEN), ULY_STR_ARG(text));
    return false;
  }
  if (!uly_dim_equal(w->type.dims[1], in) || (has_n && !uly_dim_equal(w->type.dims[0], uly_dim_const(n)))) {
    uly_str text = uly_shape_text(c, &w->type), wanted = uly_dim_text(c, has_n ? uly_dim_const(n) : w->type.dims[0]), width = uly_dim_text(c, in);
    ULY_CHECK_ERROR(c, call->scope, call->locs[LINEAR_WEIGHT], ULY_D(WEIGHT_SHAPE), ULY_STR_ARG(text), ULY_STR_ARG(wanted), ULY_STR_ARG(width));
    return false;
  }
  return same_float_dtype(call, LINEAR_X, LINEAR_WEIGHT);
}

// Absent, a flag, or a tensor [n]; *out_has says whether args[index] is one now.
static bool vector_or_flag(uly_call_site *call, int32_t x, int32_t index, int32_t name, const char *suffix, uly_dim n, bool given_default, bool *out_has) {
  uly_checker *c = call->c;
  uly_value *value = &call->args[index];
  bool create = given_default && !call->given[index];
  *out_has = false;
  if (call->given[index] && value->kind != ULY_VALUE_TENSOR && value->kind != ULY_VALUE_NONE &&
      !uly_static_get_bool(c, call->scope, call->locs[index], *value, "`bias`", &create))
    return false;
  if (create) *value = uly_param_short(c, call->scope, call->ast->loc, call->name, call->args[name], suffix, &n.add, 1, 0.0);
  if (value->kind == ULY_VALUE_POISON) return false;
  if (value->kind != ULY_VALUE_TENSOR) return true;
  *out_has = true;
  const uly_tensor_type *type = &value->u.tensor->type;
  if (type->rank == 1 && uly_dim_equal(type->dims[0], n) && uly_dtype_get(type->dtype)->is_float) return same_float_dtype(call, x, index);
  uly_str text = uly_shape_text(c, type), wanted = uly_dim_text(c, n);
  ULY_CHECK_ERROR(c, call->scope, call->locs[index], ULY_D(VECTOR_SHAPE), suffix, ULY_STR_ARG(text), ULY_STR_ARG(wanted));
  return false;
}

static bool const_last_dim(uly_call_site *call, uly_dim *out) {
  if (!uly_call_rank(call, 0, 1, ULY_GRAPH_MAX_DIMS) || !uly_call_float_tensor(call, 0)) return false;
  const uly_tensor_type *type = &call->args[0].u.tensor->type;
  *out = type->dims[type->rank - 1];
  if (uly_dim_is_const(*out)) return true;
  uly_str text = uly_shape_text(call->c, type);
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[0], ULY_D(LAST_DIM_OPEN), call->name, ULY_STR_ARG(text));
  return false;
}

uly_value uly_build_linear(uly_call_site *call) {
  uly_dim in;
  bool has_bias;
  if (!const_last_dim(call, &in) || !linear_weight(call, in)) return uly_poison();
  uly_graph_value *x = call->args[LINEAR_X].u.tensor;
  uly_tensor_type type = x->type;
  type.dims[type.rank - 1] = call->args[LINEAR_WEIGHT].u.tensor->type.dims[0];
  if (!vector_or_flag(call, LINEAR_X, LINEAR_BIAS, LINEAR_NAME, "bias", type.dims[type.rank - 1], false, &has_bias)) return uly_poison();
  uly_graph_value *operands[3] = {x, call->args[LINEAR_WEIGHT].u.tensor, has_bias ? call->args[LINEAR_BIAS].u.tensor : NULL};
  return uly_build_tensor(uly_build_value(call->c, ULY_OP_LINEAR, call->ast->loc, &type, operands, has_bias ? 3 : 2), call->args[LINEAR_X].weak);
}

uly_value uly_build_embed(uly_call_site *call) {
  enum { IDS, ROWS, WIDTH, NAME };
  int64_t dims[2];
  if (!uly_call_tensor(call, IDS)) return uly_poison();
  if (!uly_static_get_int(call->c, call->scope, call->locs[ROWS], call->args[ROWS], "`rows`", &dims[0]) ||
      !uly_static_get_int(call->c, call->scope, call->locs[WIDTH], call->args[WIDTH], "`width`", &dims[1]))
    return uly_poison();
  for (int i = 0; i < 2; i++) {
    if (dims[i] >= 1) continue;
    ULY_CHECK_ERROR(call->c, call->scope, call->locs[ROWS + i], ULY_D(DIM_RANGE), dims[i]);
    return uly_poison();
  }
  uly_value table = uly_param_short(call->c, call->scope, call->ast->loc, "embed", call->args[NAME], "weight", dims, 2, (double)NAN);
  return table.kind == ULY_VALUE_POISON ? table : uly_index_gather(call->c, call->scope, call->ast->loc, table, call->args[IDS]);
}

// ---- norms ----------------------------------------------------------------------------------------------------------------------------------------------------

enum { NORM_X, NORM_EPS, NORM_WEIGHT };

static bool norm_weight(uly_call_site *call, int32_t name, uly_dim n) {
  uly_value *weight = &call->args[NORM_WEIGHT];
  if (weight->kind == ULY_VALUE_NUMBER || weight->kind == ULY_VALUE_VARYING) {
    double value;
    if (!uly_static_get_float(call->c, call->scope, call->locs[NORM_WEIGHT], *weight, "`weight`", &value)) return false;
    uly_tensor_type type = {.dtype = call->args[NORM_X].u.tensor->type.dtype, .rank = 1, .dims = {n}};
    *weight = uly_map_fill(call->c, call->locs[NORM_WEIGHT], &type, value);
  } else if (weight->kind == ULY_VALUE_NONE) {
    *weight = uly_param_short(call->c, call->scope, call->ast->loc, call->name, call->args[name], "weight", &n.add, 1, 1.0);
  }
  if (weight->kind == ULY_VALUE_POISON || !uly_call_tensor(call, NORM_WEIGHT)) return false;
  const uly_tensor_type *type = &weight->u.tensor->type;
  if (type->rank == 1 && uly_dim_equal(type->dims[0], n) && uly_dtype_get(type->dtype)->is_float) return same_float_dtype(call, NORM_X, NORM_WEIGHT);
  uly_str text = uly_shape_text(call->c, type), wanted = uly_dim_text(call->c, n);
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[NORM_WEIGHT], ULY_D(VECTOR_SHAPE), "weight", ULY_STR_ARG(text), ULY_STR_ARG(wanted));
  return false;
}

static bool norm_eps(uly_call_site *call, double *eps) {
  if (call->given[NORM_EPS] && !uly_static_get_float(call->c, call->scope, call->locs[NORM_EPS], call->args[NORM_EPS], "`eps`", eps)) return false;
  if (*eps >= 0.0 && isfinite(*eps)) return true;
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[NORM_EPS], ULY_D(EPS_RANGE), *eps);
  return false;
}

static uly_value build_norm(uly_call_site *call, uly_op op, double eps, int32_t n_operands, int32_t bias) {
  uly_graph_value *x = call->args[NORM_X].u.tensor;
  uly_graph_value *operands[3] = {x, call->args[NORM_WEIGHT].u.tensor, n_operands == 3 ? call->args[bias].u.tensor : NULL};
  uly_graph_value *value = uly_build_value(call->c, op, call->ast->loc, &x->type, operands, n_operands);
  value->u.norm.eps = eps;
  return uly_build_tensor(value, call->args[NORM_X].weak);
}

uly_value uly_build_rmsnorm(uly_call_site *call) {
  uly_dim n;
  double eps = 1e-6;
  if (!const_last_dim(call, &n) || !norm_eps(call, &eps) || !norm_weight(call, NORM_WEIGHT + 1, n)) return uly_poison();
  return build_norm(call, ULY_OP_RMSNORM, eps, 2, -1);
}

uly_value uly_build_layernorm(uly_call_site *call) {
  enum { BIAS = NORM_WEIGHT + 1, NAME };
  uly_dim n;
  double eps = 1e-5;
  bool has_bias, own_weight = call->args[NORM_WEIGHT].kind == ULY_VALUE_NONE;
  if (!const_last_dim(call, &n) || !norm_eps(call, &eps) || !norm_weight(call, NAME, n)) return uly_poison();
  if (!vector_or_flag(call, NORM_X, BIAS, NAME, "bias", n, own_weight, &has_bias)) return uly_poison();
  return build_norm(call, ULY_OP_LAYERNORM, eps, has_bias ? 3 : 2, BIAS);
}
