// Attention and what stands around it: heads, merge, positions, rope.
#include "frontend/calls.h"

#include <math.h>

uly_value uly_build_heads(uly_call_site *call) {
  enum { X, N };
  int64_t n;
  if (!uly_call_rank(call, X, 1, ULY_GRAPH_MAX_DIMS - 1)) return uly_poison();
  uly_graph_value *x = call->args[X].u.tensor;
  uly_tensor_type type = x->type;
  uly_dim last = type.dims[type.rank - 1];
  if (!uly_static_get_int(call->c, call->scope, call->locs[N], call->args[N], "the number of heads", &n)) return uly_poison();
  if (n < 1 || !uly_dim_is_const(last) || last.add % n) {
    uly_str text = uly_dim_text(call->c, last);
    ULY_CHECK_ERROR(call->c, call->scope, call->locs[N], ULY_D(HEADS_SPLIT), ULY_STR_ARG(text), n);
    return uly_poison();
  }
  type.dims[type.rank - 1] = uly_dim_const(n);
  type.dims[type.rank++] = uly_dim_const(last.add / n);
  uly_graph_value *value = uly_build_value(call->c, ULY_OP_HEADS, call->ast->loc, &type, &x, 1);
  value->u.heads.count = n;
  return uly_build_tensor(value, call->args[X].weak);
}

uly_value uly_build_merge(uly_call_site *call) {
  if (!uly_call_rank(call, 0, 2, ULY_GRAPH_MAX_DIMS)) return uly_poison();
  uly_graph_value *x = call->args[0].u.tensor;
  uly_tensor_type type = x->type;
  uly_dim a = type.dims[type.rank - 2], b = type.dims[type.rank - 1];
  int64_t joined;
  if (!uly_dim_is_const(a) || !uly_dim_is_const(b) || __builtin_mul_overflow(a.add, b.add, &joined)) {
    uly_str text = uly_shape_text(call->c, &type);
    ULY_CHECK_ERROR(call->c, call->scope, call->locs[0], ULY_D(LAST_DIM_OPEN), "merge", ULY_STR_ARG(text));
    return uly_poison();
  }
  type.dims[--type.rank - 1] = uly_dim_const(joined);
  uly_graph_value *value = uly_build_value(call->c, ULY_OP_MERGE, call->ast->loc, &type, &x, 1);
  value->u.heads.count = a.add;
  return uly_build_tensor(value, call->args[0].weak);
}

// [B, S] of x [B, S, …]: the global row at each place.
static uly_value rows_of(uly_checker *c, uly_loc loc, const uly_tensor_type *x) {
  int32_t dim = uly_shape_row_dim(c, x);
  uly_tensor_type type = {.dtype = ULY_I32, .rank = dim + 1};
  for (int32_t i = 0; i <= dim; i++) type.dims[i] = x->dims[i];
  return uly_map_index(c, loc, &type, dim);
}

uly_value uly_build_position(uly_call_site *call) {
  if (!uly_call_rank(call, 0, 1, ULY_GRAPH_MAX_DIMS)) return uly_poison();
  return rows_of(call->c, call->ast->loc, &call->args[0].u.tensor->type);
}

uly_value uly_build_iota(uly_call_site *call) {
  uly_tensor_type type = {.dtype = ULY_I32, .rank = 1};
  if (!uly_dim_of_value(call->c, call->scope, call->locs[0], call->args[0], &type.dims[0])) return uly_poison();
  return uly_map_index(call->c, call->ast->loc, &type, 0);
}

// ---- rope -----------------------------------------------------------------------------------------------------------------------------------------------------

enum { ROPE_X, ROPE_ANGLE, ROPE_THETA, ROPE_DIM, ROPE_AT, ROPE_PAIRS };

static bool rope_pairs(uly_call_site *call, bool *interleaved) {
  uly_value pairs = uly_static_demand(call->c, call->args[ROPE_PAIRS]);
  *interleaved = false;
  if (!call->given[ROPE_PAIRS]) return true;
  if (pairs.kind == ULY_VALUE_STRING && uly_str_is(pairs.u.string, "half")) return true;
  if (pairs.kind == ULY_VALUE_STRING && uly_str_is(pairs.u.string, "interleaved")) return *interleaved = true, true;
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[ROPE_PAIRS], ULY_D(ROPE_PAIRS));
  return false;
}

// theta as a float; the smallest of all iterations. What is not finite counts as 0.
static bool least_theta(uly_call_site *call, double *out) {
  uly_checker *c = call->c;
  uly_value *theta = &call->args[ROPE_THETA];
  if (!uly_map_is_table(c, theta)) {
    if (!uly_static_get_float(c, call->scope, call->locs[ROPE_THETA], *theta, "`theta`", out)) return false;
    return *theta = uly_static_float(*out), true;
  }
  *theta = uly_static_apply(c, call->scope, call->locs[ROPE_THETA], ULY_SC_FLOAT, theta, 1);
  *out = uly_static_first(theta)->u.number.f;
  for (int32_t i = 0; theta->kind == ULY_VALUE_VARYING && i < theta->u.list.n; i++) {
    double each = theta->u.list.items[i].u.number.f;
    if (!isfinite(each) || each < *out) *out = isfinite(each) ? each : 0.0;
  }
  return true;
}

// position · theta ** (−2 j / R) as [B, S, R / 2], from the short form.
static uly_value angle_of_theta(uly_call_site *call) {
  uly_checker *c = call->c;
  uly_loc loc = call->ast->loc;
  const uly_tensor_type *x = &call->args[ROPE_X].u.tensor->type;
  uly_dim last = x->dims[3];
  double theta;
  int64_t turned = last.add;
  if (!least_theta(call, &theta)) return uly_poison();
  if (call->given[ROPE_DIM] && !uly_static_get_int(c, call->scope, call->locs[ROPE_DIM], call->args[ROPE_DIM], "`dim`", &turned)) return uly_poison();
  if (theta <= 0.0 || !isfinite(theta) || !uly_dim_is_const(last) || turned < 2 || turned % 2 || turned > last.add) {
    uly_str text = uly_dim_text(c, last);
    ULY_CHECK_ERROR(c, call->scope, loc, ULY_D(ROPE_RANGE), theta, turned, ULY_STR_ARG(text));
    return uly_poison();
  }
  uly_tensor_type half = {.dtype = ULY_I32, .rank = 1, .dims = {uly_dim_const(turned / 2)}};
  uly_tensor_type rows = {.dtype = ULY_I32, .rank = 2, .dims = {x->dims[0], x->dims[1]}};
  uly_value at = call->given[ROPE_AT] ? call->args[ROPE_AT] : uly_map_index(c, loc, &rows, 1), index = uly_map_index(c, loc, &half, 0);
  if (call->given[ROPE_AT] && (!uly_call_tensor(call, ROPE_AT) || !uly_call_rank(call, ROPE_AT, 1, 2))) return uly_poison();
  uly_tensor_type column = at.u.tensor->type;
  column.dims[column.rank++] = uly_dim_const(1);
  at = uly_map_move(c, loc, at, &column, (const int8_t[]){0, 1, -1, -1, -1, -1});
  uly_value power = uly_eval_apply(c, call->scope, loc, ULY_SC_MUL, (uly_value[]){uly_static_float(-2.0 / (double)turned), index}, 2);
  uly_value frequency = uly_eval_apply(c, call->scope, loc, ULY_SC_POW, (uly_value[]){call->args[ROPE_THETA], power}, 2);
  return uly_eval_apply(c, call->scope, loc, ULY_SC_MUL, (uly_value[]){at, frequency}, 2);
}

static bool check_angle(uly_call_site *call, uly_value *angle) {
  uly_checker *c = call->c;
  const uly_tensor_type *x = &call->args[ROPE_X].u.tensor->type, *type = &angle->u.tensor->type;
  uly_dim last = x->dims[3];
  bool rows = type->rank == 3 && uly_dim_equal(type->dims[0], x->dims[0]) && uly_dim_equal(type->dims[1], x->dims[1]);
  bool fits = rows && uly_dim_is_const(type->dims[2]) && uly_dim_is_const(last) && 2 * type->dims[2].add <= last.add;
  if (fits && type->dtype == ULY_F32) return true;
  uly_str text = uly_shape_text(c, type), of = uly_shape_text(c, x);
  ULY_CHECK_ERROR(c, call->scope, call->locs[ROPE_ANGLE], ULY_D(ANGLE_SHAPE), ULY_STR_ARG(text), ULY_STR_ARG(of));
  return false;
}

uly_value uly_build_rope(uly_call_site *call) {
  uly_checker *c = call->c;
  bool interleaved;
  if (!uly_call_rank(call, ROPE_X, 4, 4) || !uly_call_float_tensor(call, ROPE_X) || !rope_pairs(call, &interleaved)) return uly_poison();
  bool has_angle = call->given[ROPE_ANGLE], has_theta = call->given[ROPE_THETA];
  if (has_angle == has_theta || (has_angle && (call->given[ROPE_DIM] || call->given[ROPE_AT]))) {
    ULY_CHECK_ERROR(c, call->scope, call->ast->loc, ULY_D(ROPE_FORM));
    return uly_poison();
  }
  if (has_angle && !uly_call_tensor(call, ROPE_ANGLE)) return uly_poison();
  uly_value angle = has_angle ? call->args[ROPE_ANGLE] : angle_of_theta(call);
  if (angle.kind == ULY_VALUE_POISON) return angle;
  uly_graph_value *x = call->args[ROPE_X].u.tensor;
  // The short form's positions may be those of all sequences alike: [S], stretched over B.
  if (!has_angle && angle.u.tensor->type.rank == 2) {
    uly_tensor_type full = {.dtype = ULY_F32, .rank = 3, .dims = {x->type.dims[0], angle.u.tensor->type.dims[0], angle.u.tensor->type.dims[1]}};
    angle = uly_map_move(c, call->ast->loc, angle, &full, (const int8_t[]){1, 2, -1, -1, -1, -1});
  }
  if (!check_angle(call, &angle)) return uly_poison();
  uly_graph_value *operands[3] = {x};
  uly_angle_cos_sin(c, call->ast->loc, angle, &operands[1], &operands[2]);
  uly_graph_value *value = uly_build_value(c, ULY_OP_ROPE, call->ast->loc, &x->type, operands, 3);
  value->u.rope.interleaved = interleaved;
  return uly_build_tensor(value, call->args[ROPE_X].weak);
}

// ---- attention ------------------------------------------------------------------------------------------------------------------------------------------------

enum { ATTENTION_Q, ATTENTION_K, ATTENTION_V, ATTENTION_MASK, ATTENTION_SCORE, ATTENTION_SCALE, ATTENTION_SINK, ATTENTION_Q_OFFSET };

static bool attention_shapes(uly_call_site *call) {
  static const char names[] = "qkv";
  uly_checker *c = call->c;
  const uly_tensor_type *t[3];
  for (int32_t i = ATTENTION_Q; i <= ATTENTION_V; i++) {
    if (!uly_call_rank(call, i, 4, 4) || !uly_call_float_tensor(call, i)) return false;
    t[i] = &call->args[i].u.tensor->type;
    if (uly_dim_is_const(t[i]->dims[2]) && uly_dim_is_const(t[i]->dims[3])) continue;
    uly_str text = uly_shape_text(c, t[i]);
    ULY_CHECK_ERROR(c, call->scope, call->locs[i], ULY_D(LAST_DIM_OPEN), "attention", ULY_STR_ARG(text));
    return false;
  }
  for (int32_t i = ATTENTION_K; i <= ATTENTION_V; i++) {
    const uly_tensor_type *like = t[i - 1];
    bool fits = uly_dim_equal(t[i]->dims[0], like->dims[0]) && t[i]->dtype == like->dtype;
    fits &= i == ATTENTION_K ? uly_dim_equal(t[i]->dims[3], like->dims[3])
                             : uly_dim_equal(t[i]->dims[1], like->dims[1]) && uly_dim_equal(t[i]->dims[2], like->dims[2]);
    if (fits) continue;
    uly_str a = uly_shape_text(c, t[i]), b = uly_shape_text(c, like);
    ULY_CHECK_ERROR(c, call->scope, call->locs[i], ULY_D(ATTENTION_SHAPES), names[i], ULY_STR_ARG(a), names[i - 1], ULY_STR_ARG(b));
    return false;
  }
  if (t[0]->dims[2].add % t[1]->dims[2].add == 0) return true;
  ULY_CHECK_ERROR(c, call->scope, call->ast->loc, ULY_D(HEAD_GROUPS), t[0]->dims[2].add, t[1]->dims[2].add);
  return false;
}

// A scale that differs between iterations is a table, *out_factor, that the scores are multiplied with.
static bool attention_numbers(uly_call_site *call, uly_attention_attrs *attrs, uly_graph_value **out_factor) {
  uly_checker *c = call->c;
  const uly_value *scale = &call->args[ATTENTION_SCALE];
  *out_factor = uly_map_is_table(c, scale) ? uly_map_table(c, call->locs[ATTENTION_SCALE], scale) : NULL;
  attrs->scale = *out_factor ? 1.0 : 1.0 / sqrt((double)call->args[ATTENTION_Q].u.tensor->type.dims[3].add);
  if (!*out_factor && scale->kind != ULY_VALUE_NONE && !uly_static_get_float(c, call->scope, call->locs[ATTENTION_SCALE], *scale, "`scale`", &attrs->scale))
    return false;
  attrs->q_offset = -1;
  uly_value *offset = &call->args[ATTENTION_Q_OFFSET];
  if (offset->kind == ULY_VALUE_NONE || offset->kind == ULY_VALUE_TENSOR) return true;
  return uly_static_get_int(c, call->scope, call->locs[ATTENTION_Q_OFFSET], *offset, "`q_offset`", &attrs->q_offset_value);
}

// Adds the tensors sink [H] and q_offset [] or [B], where they are given.
static bool attention_tensors(uly_call_site *call, uly_attention_attrs *attrs, uly_graph_value **operands, int32_t *n) {
  uly_checker *c = call->c;
  const uly_tensor_type *q = &call->args[ATTENTION_Q].u.tensor->type;
  attrs->sink = -1;
  if (call->args[ATTENTION_SINK].kind != ULY_VALUE_NONE) {
    uly_graph_value *sink = uly_call_tensor(call, ATTENTION_SINK);
    if (!sink || !uly_call_float_tensor(call, ATTENTION_SINK)) return false;
    if (sink->type.rank != 1 || !uly_dim_equal(sink->type.dims[0], q->dims[2])) {
      uly_str text = uly_shape_text(c, &sink->type), wanted = uly_dim_text(c, q->dims[2]);
      ULY_CHECK_ERROR(c, call->scope, call->locs[ATTENTION_SINK], ULY_D(VECTOR_SHAPE), "sink", ULY_STR_ARG(text), ULY_STR_ARG(wanted));
      return false;
    }
    attrs->sink = *n;
    operands[(*n)++] = uly_map_cast(c, call->locs[ATTENTION_SINK], call->args[ATTENTION_SINK], ULY_F32).u.tensor;
  }
  if (call->args[ATTENTION_Q_OFFSET].kind == ULY_VALUE_TENSOR) {
    const uly_tensor_type *type = &call->args[ATTENTION_Q_OFFSET].u.tensor->type;
    if (type->dtype != ULY_I32 || type->rank > 1 || (type->rank == 1 && !uly_dim_equal(type->dims[0], q->dims[0]))) {
      uly_str text = uly_shape_text(c, type), wanted = uly_dim_text(c, q->dims[0]);
      ULY_CHECK_ERROR(c, call->scope, call->locs[ATTENTION_Q_OFFSET], ULY_D(OFFSET_SHAPE), ULY_STR_ARG(text), ULY_STR_ARG(wanted));
      return false;
    }
    attrs->q_offset = *n;
    operands[(*n)++] = call->args[ATTENTION_Q_OFFSET].u.tensor;
  }
  return true;
}

static bool attention_rules(uly_call_site *call, uly_attention_attrs *attrs, uly_graph_value *factor, uly_graph_value **operands, int32_t *n) {
  uly_checker *c = call->c;
  uly_graph_value *captures[ULY_MAX_OPERANDS];
  int32_t n_captures = 0;
  uly_value mask = uly_static_demand(c, call->args[ATTENTION_MASK]), score = uly_static_demand(c, call->args[ATTENTION_SCORE]);
  if (mask.kind != ULY_VALUE_MASK || (score.kind != ULY_VALUE_SCORE && score.kind != ULY_VALUE_NONE)) {
    bool bad_mask = mask.kind != ULY_VALUE_MASK;
    ULY_CHECK_ERROR(c, call->scope, call->locs[bad_mask ? ATTENTION_MASK : ATTENTION_SCORE], ULY_D(STATIC_WANTED), bad_mask ? "`mask`" : "`score`",
                    bad_mask ? "a mask (full, causal, …)" : "a score", uly_value_describe(bad_mask ? &mask : &score));
    return false;
  }
  c->heads = call->args[ATTENTION_Q].u.tensor->type.dims[2].add;
  if (!uly_closure_expr(c, call->scope, call->locs[ATTENTION_MASK], mask, NULL, captures, &n_captures, &attrs->mask)) return false;
  attrs->has_score = score.kind == ULY_VALUE_SCORE || factor;
  if (attrs->has_score && !uly_closure_expr(c, call->scope, call->locs[ATTENTION_SCORE], score, factor, captures, &n_captures, &attrs->score)) return false;
  attrs->captures = *n;
  if (*n + n_captures > ULY_MAX_OPERANDS) {
    ULY_CHECK_ERROR(c, call->scope, call->ast->loc, ULY_D(TOO_MANY_OPERANDS), ULY_MAX_OPERANDS);
    return false;
  }
  for (int32_t i = 0; i < n_captures; i++) operands[(*n)++] = captures[i];
  return true;
}

uly_value uly_build_attention(uly_call_site *call) {
  uly_attention_attrs *attrs = ULY_NEW(call->c->arena, uly_attention_attrs);
  uly_graph_value *factor;
  if (!attention_shapes(call) || !attention_numbers(call, attrs, &factor)) return uly_poison();
  uly_graph_value *operands[ULY_MAX_OPERANDS] = {call->args[0].u.tensor, call->args[1].u.tensor, call->args[2].u.tensor};
  int32_t n = 3;
  if (!attention_tensors(call, attrs, operands, &n) || !attention_rules(call, attrs, factor, operands, &n)) return uly_poison();
  uly_tensor_type type = operands[0]->type;
  type.dims[3] = operands[2]->type.dims[3];
  uly_graph_value *value = uly_build_value(call->c, ULY_OP_ATTENTION, call->ast->loc, &type, operands, n);
  value->u.attention = attrs;
  return uly_build_tensor(value, false);
}
