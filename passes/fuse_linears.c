// The linear part of fuse. A chain is a linear and what can run while its result is still in registers: a pointwise map (which may take in a second linear of the same
// input: gate and up), then heads and rope, or a loss of its rows. Chains with the same input that feed one exchange become one kernel, whose output is that exchange's message.
#include "passes/fuse.h"
#include "runtime/kernel_abi.h"

enum { MOST_DIMS = 3 }; // of what the kernel does behind a linear: it knows rows and a batch

typedef struct chain {
  MlirOperation linear[2];             // the second one null, or the pair
  MlirOperation map, heads, rope, nll; // null where absent
  MlirValue result;
  MlirOperation exchange; // the exchange that it feeds, null where none
} chain;

static bool is_kind(MlirOperation op, uly_kind kind) { return !mlirOperationIsNull(op) && uly_op_kind(op) == kind; }

static int operand_number(MlirOperation op, MlirValue value) {
  for (intptr_t i = 0; i < mlirOperationGetNumOperands(op); i++)
    if (mlirValueEqual(mlirOperationGetOperand(op, i), value)) return (int)i;
  return -1;
}

// Linears of one kernel have weights of one dtype.
static bool same_weights(const uly_fuse *fuse, MlirOperation a, MlirOperation b) {
  return uly_type_of(fuse->ir, uly_op_operand(a, 1)).tensor.dtype == uly_type_of(fuse->ir, uly_op_operand(b, 1)).tensor.dtype;
}

// Another linear of the same input among |map|'s operands, used only there: an accumulator of the same kernel.
static MlirOperation find_partner(const uly_fuse *fuse, MlirOperation map, MlirOperation linear) {
  for (int i = 0; i < (int)mlirOperationGetNumOperands(map); i++) {
    MlirOperation other = uly_value_op(uly_op_operand(map, i));
    if (!is_kind(other, ULY_KIND_LINEAR) || mlirOperationEqual(other, linear) || !mlirValueEqual(uly_op_operand(other, 0), uly_op_operand(linear, 0))) continue;
    if (!mlirTypeEqual(mlirValueGetType(uly_op_result(other, 0)), mlirValueGetType(uly_op_result(linear, 0)))) continue;
    if (!same_weights(fuse, other, linear)) continue;
    MlirOperation user = uly_single_user(fuse, uly_op_result(other, 0));
    if (!mlirOperationIsNull(user) && mlirOperationEqual(user, map) && uly_map_is_pointwise(fuse->ir, map, i)) return other;
  }
  return (MlirOperation){NULL};
}

static bool takes_map(const uly_fuse *fuse, MlirOperation map, MlirValue accumulator) {
  uly_map m = uly_map_read(fuse, map);
  uly_type out = uly_type_of(fuse->ir, uly_op_result(map, 0));
  if (out.tensor.rank > MOST_DIMS) return false;
  return !m.expr.wide && uly_dtype_get(out.tensor.dtype)->is_float && uly_map_is_pointwise(fuse->ir, map, operand_number(map, accumulator));
}

static chain grow(const uly_fuse *fuse, MlirOperation linear) {
  chain c = {.linear = {linear, {NULL}}, .result = uly_op_result(linear, 0)};
  MlirOperation user = uly_single_user(fuse, c.result);
  if (is_kind(user, ULY_KIND_MAP) && takes_map(fuse, user, c.result)) {
    c.map = user;
    c.linear[1] = find_partner(fuse, user, linear);
    c.result = uly_op_result(user, 0);
    user = uly_single_user(fuse, c.result);
  }
  uly_type type = uly_type_of(fuse->ir, c.result);
  if (is_kind(user, ULY_KIND_NLL) && mlirOperationIsNull(c.linear[1]) && type.tensor.rank <= MOST_DIMS) {
    c.nll = user;
    c.result = uly_op_result(user, 0);
    return c;
  }
  if (is_kind(user, ULY_KIND_HEADS)) {
    MlirValue split = uly_op_result(user, 0);
    MlirOperation next = uly_single_user(fuse, split);
    bool turned = is_kind(next, ULY_KIND_ROPE) && operand_number(next, split) == 0 && mlirOperationIsNull(c.linear[1]);
    if (turned || is_kind(next, ULY_KIND_EXCHANGE)) c.heads = user, c.result = split, user = next;
    if (turned) c.rope = next, c.result = uly_op_result(next, 0), user = uly_single_user(fuse, c.result);
  }
  if (is_kind(user, ULY_KIND_EXCHANGE) && !mlirOperationIsNull(c.heads)) c.exchange = user;
  return c;
}

static void add_chain(uly_group *group, const chain *c) {
  const MlirOperation ops[] = {c->linear[0], c->linear[1], c->map, c->heads, c->rope, c->nll};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (!mlirOperationIsNull(ops[i])) group->ops[group->n_ops++] = ops[i];
  group->results[group->n_results++] = c->result;
}

static MlirOperation last_op(const chain *c) {
  if (!mlirOperationIsNull(c->nll)) return c->nll;
  return !mlirOperationIsNull(c->rope) ? c->rope : !mlirOperationIsNull(c->heads) ? c->heads : !mlirOperationIsNull(c->map) ? c->map : c->linear[0];
}

static bool same_angles(const chain *a, const chain *b) {
  if (mlirOperationIsNull(a->rope) || mlirOperationIsNull(b->rope)) return true;
  return mlirValueEqual(uly_op_operand(a->rope, 1), uly_op_operand(b->rope, 1)) && mlirValueEqual(uly_op_operand(a->rope, 2), uly_op_operand(b->rope, 2));
}

// Whether |c|, of the same input and ending in the same exchange, can travel in the message kernel of |first|. Its own inputs must be there before the exchange, and its result is
// used nowhere else: both hold, as it ends there.
static bool joins(const uly_fuse *fuse, const chain *first, const chain *c) {
  return !mlirOperationIsNull(c->exchange) && same_angles(first, c) && same_weights(fuse, first->linear[0], c->linear[0]);
}

static bool is_linear_of(MlirOperation op, MlirValue x) { return is_kind(op, ULY_KIND_LINEAR) && mlirValueEqual(uly_op_operand(op, 0), x); }

// The linear of |x| at or behind |value|'s chain end, null where another operation made it.
static MlirOperation chain_start(MlirValue value, MlirValue x) {
  MlirOperation op = uly_value_op(value);
  while (is_kind(op, ULY_KIND_ROPE) || is_kind(op, ULY_KIND_HEADS)) op = uly_value_op(uly_op_operand(op, 0));
  if (is_kind(op, ULY_KIND_MAP))
    for (int i = 0; i < (int)mlirOperationGetNumOperands(op); i++) {
      MlirOperation def = uly_value_op(uly_op_operand(op, i));
      if (is_linear_of(def, x)) return def;
    }
  return is_linear_of(op, x) ? op : (MlirOperation){NULL};
}

// All chains that end in |first|'s exchange and may share its kernel, in the exchange's operand order.
static void fill_message(const uly_fuse *fuse, const chain *first, uly_group *group) {
  group->anchor = first->exchange;
  for (int i = 0; i < (int)mlirOperationGetNumOperands(first->exchange) && group->n_results < ULY_GEMM_MAX_PARTS; i++) {
    MlirOperation start = chain_start(uly_op_operand(first->exchange, i), uly_op_operand(first->linear[0], 0));
    if (mlirOperationIsNull(start)) continue;
    chain c = grow(fuse, start);
    if (mlirValueEqual(c.result, uly_op_operand(first->exchange, i)) && joins(fuse, first, &c)) add_chain(group, &c);
  }
}

void uly_fuse_linears(uly_fuse *fuse, MlirBlock block) {
  uly_ops ops = uly_block_ops(fuse->ir, block);
  for (int i = 0; i < ops.n; i++) {
    if (mlirOperationIsNull(ops.at[i]) || uly_op_kind(ops.at[i]) != ULY_KIND_LINEAR) continue;
    chain c = grow(fuse, ops.at[i]);
    uly_group group = {.kind = "gemm", .anchor = last_op(&c)};
    if (!mlirOperationIsNull(c.exchange))
      fill_message(fuse, &c, &group);
    else
      add_chain(&group, &c);
    uly_outline(&fuse->outliner, &group, ops, i);
    if (!mlirOperationIsNull(ops.at[i])) i--; // others of the map went: its turn comes without them
  }
}
