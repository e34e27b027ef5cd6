// Losses: put together from NLL, a number a row, and exact sums over all rows.
#include "frontend/calls.h"

static bool check_labels(uly_call_site *call, int32_t labels) {
  if (!uly_call_rank(call, 0, 2, ULY_GRAPH_MAX_DIMS) || !uly_call_float_tensor(call, 0) || !uly_call_tensor(call, labels)) return false;
  uly_tensor_type rows = call->args[0].u.tensor->type;
  const uly_tensor_type *have = &call->args[labels].u.tensor->type;
  rows.rank--;
  rows.dtype = have->dtype;
  if ((have->dtype == ULY_I32 || have->dtype == ULY_I64) && uly_tensor_type_equal(&rows, have)) return true;
  uly_str logits = uly_shape_text(call->c, &call->args[0].u.tensor->type), text = uly_shape_text(call->c, have);
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[labels], ULY_D(LABEL_SHAPE), ULY_STR_ARG(text), ULY_STR_ARG(logits));
  return false;
}

static uly_value build_nll(const uly_call_site *call, uly_value labels, int64_t ignore) {
  uly_tensor_type type = labels.u.tensor->type;
  uly_graph_value *operands[2] = {call->args[0].u.tensor, labels.u.tensor};
  type.dtype = ULY_F32;
  uly_graph_value *value = uly_build_value(call->c, ULY_OP_NLL, call->ast->loc, &type, operands, 2);
  value->u.nll.ignore = ignore;
  return uly_build_tensor(value, false);
}

// Over all dims, the last one first.
static uly_value sum_all(const uly_call_site *call, uly_value x) {
  uly_graph_value *value = x.u.tensor;
  while (value->type.rank > 0) {
    uly_tensor_type type = value->type;
    type.rank--;
    if (!uly_dtype_get(type.dtype)->is_float) type.dtype = ULY_I64;
    value = uly_build_value(call->c, ULY_OP_SUM, call->ast->loc, &type, &value, 1);
    value->u.sum.dim = type.rank;
  }
  return uly_build_tensor(value, false);
}

// Σ nll / Σ (label is not ignored); 0 / 0 where none is. The labels are counted as ints: as floats, more than 2^24 of them would not be.
static uly_value build_loss(const uly_call_site *call, uly_value labels, int64_t ignore) {
  uly_checker *c = call->c;
  uly_loc loc = call->ast->loc;
  uly_value counts = uly_eval_apply(c, call->scope, loc, ULY_SC_NE, (uly_value[]){labels, uly_static_int(ignore)}, 2);
  if (counts.kind == ULY_VALUE_POISON) return counts;
  uly_value total = sum_all(call, build_nll(call, labels, ignore)), count = uly_map_cast(c, loc, sum_all(call, counts), ULY_F32);
  return uly_eval_apply(c, call->scope, loc, ULY_SC_DIV, (uly_value[]){total, count}, 2);
}

uly_value uly_build_cross_entropy(uly_call_site *call) {
  enum { LOGITS, LABELS, IGNORE };
  int64_t ignore = -100;
  if (call->given[IGNORE] && !uly_static_get_int(call->c, call->scope, call->locs[IGNORE], call->args[IGNORE], "`ignore`", &ignore)) return uly_poison();
  return check_labels(call, LABELS) ? build_loss(call, call->args[LABELS], ignore) : uly_poison();
}

// Ints of any dtype, one a token.
static bool check_doc(uly_call_site *call, int32_t doc, const uly_tensor_type *tokens) {
  const uly_graph_value *value = uly_call_tensor(call, doc);
  if (!value) return false;
  uly_tensor_type wanted = *tokens;
  wanted.dtype = value->type.dtype;
  if (uly_map_scalar_type(wanted.dtype) == ULY_SCALAR_INT && uly_tensor_type_equal(&wanted, &value->type)) return true;
  uly_str have = uly_shape_text(call->c, &value->type), rows = uly_shape_text(call->c, tokens);
  ULY_CHECK_ERROR(call->c, call->scope, call->locs[doc], ULY_D(DOC_SHAPE), ULY_STR_ARG(have), ULY_STR_ARG(rows));
  return false;
}

uly_value uly_build_next_token_loss(uly_call_site *call) {
  enum { LOGITS, TOKENS, DOC };
  uly_checker *c = call->c;
  uly_loc loc = call->ast->loc;
  if (!check_labels(call, TOKENS)) return uly_poison();
  uly_value labels = uly_build_shift_by(c, loc, call->args[TOKENS], -1, -100.0);
  if (call->given[DOC]) {
    if (!check_doc(call, DOC, &call->args[TOKENS].u.tensor->type)) return uly_poison();
    // Behind the last token any document will do, one that every dtype holds: its label is ignored already.
    uly_value same[2] = {call->args[DOC], uly_build_shift_by(c, loc, call->args[DOC], -1, 0.0)};
    uly_value args[3] = {uly_eval_apply(c, call->scope, call->locs[DOC], ULY_SC_EQ, same, 2), labels, uly_static_int(-100)};
    labels = uly_eval_apply(c, call->scope, loc, ULY_SC_IF, args, 3);
    if (labels.kind == ULY_VALUE_POISON) return labels;
  }
  return build_loss(call, labels, -100);
}
