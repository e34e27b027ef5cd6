// Maps that feed one map become part of it: one expression, no value in between. Called by fuse.
//
// A producer is taken in where the consumer is its only user, or where it has no operands (indices, constants: cheaper than a load). Not where the consumer
// would evaluate it more than once an element (it is stretched) unless it is a bare leaf, not across a change of precision (wide), and not from load into a run. What memory
// between the two would have made of the value (a rounding to bf16, an int cut to 32 bits) is written into the expression.
#include "passes/fuse.h"

enum {
  MOST_OPERANDS = 14, // of a composed map: bounds what one kernel reads
  MOST_NODES = 512    // and its code, and the time to make it
};

typedef struct composition {
  const uly_fuse *fuse;
  const uly_map *outer;              // the consumer
  const uly_access *producer_access; // access of the operand that is replaced
  int replaced;                      // operand number in the consumer
  uly_dtype dtype;                   // of what the producer made
  uly_map merged;
  uly_map inner; // the producer
} composition;

// The operand (value, access) in |map|, added if it is new; -1 where there is no room.
static int32_t add_operand(uly_map *map, MlirValue value, uly_access access, int32_t rank) {
  for (int32_t i = 0; i < map->n_operands; i++)
    if (mlirValueEqual(map->operands[i], value) && memcmp(map->access[i].dim, access.dim, (size_t)rank) == 0) return i;
  if (map->n_operands == MOST_OPERANDS) return -1;
  map->operands[map->n_operands] = value;
  map->access[map->n_operands] = access;
  return map->n_operands++;
}

// What the producer's index d is in the consumer: a result dim, or -1 for the single index of a stretched dim.
static uly_access through(uly_access inner, uly_access outer, int32_t rank) {
  uly_access access = {{0}};
  for (int32_t d = 0; d < rank; d++) access.dim[d] = inner.dim[d] < 0 ? -1 : outer.dim[inner.dim[d]];
  return access;
}

static int32_t value_rank(const uly_fuse *fuse, MlirValue value) { return uly_type_of(fuse->ir, value).tensor.rank; }

static bool has_operation(const uly_expr *expr) { return expr->n_nodes > 1; }

static int32_t producer_leaf(void *context, uly_expr_builder *b, const uly_expr_node *node) {
  composition *c = context;
  if (node->op == ULY_SC_COORD) {
    int8_t dim = c->producer_access->dim[node->index - ULY_COORD_I0];
    return dim < 0 ? uly_expr_const_int(b, 0) : uly_expr_leaf(b, ULY_SC_COORD, ULY_SCALAR_INT, ULY_COORD_I0 + dim);
  }
  if (node->op != ULY_SC_OPERAND) return -1;
  MlirValue value = c->inner.operands[node->index];
  int32_t rank = value_rank(c->fuse, value);
  int32_t at = add_operand(&c->merged, value, through(c->inner.access[node->index], *c->producer_access, rank), rank);
  ULY_ASSERT(at >= 0);
  return uly_expr_leaf(b, ULY_SC_OPERAND, (uly_scalar_type)node->type, at);
}

// A leaf of the same dtype, and an index in 32 bits or more, are read as they were written.
static bool changes_when_stored(const composition *c) {
  const uly_expr_node *first = &c->inner.expr.nodes[0];
  if (has_operation(&c->inner.expr)) return true;
  if (first->op == ULY_SC_OPERAND) return uly_type_of(c->fuse->ir, c->inner.operands[first->index]).tensor.dtype != c->dtype;
  return first->op != ULY_SC_COORD || (c->dtype != ULY_I32 && c->dtype != ULY_I64);
}

static int32_t consumer_leaf(void *context, uly_expr_builder *b, const uly_expr_node *node) {
  composition *c = context;
  if (node->op != ULY_SC_OPERAND) return -1;
  if (node->index == c->replaced) {
    int32_t value = uly_expr_graft(b, &c->inner.expr, producer_leaf, c);
    uly_scalar stored;
    return changes_when_stored(c) && uly_scalar_stored(c->dtype, &stored) ? uly_expr_op(b, stored, &value, 1) : value;
  }
  MlirValue value = c->outer->operands[node->index];
  int32_t at = add_operand(&c->merged, value, c->outer->access[node->index], value_rank(c->fuse, value));
  ULY_ASSERT(at >= 0);
  return uly_expr_leaf(b, ULY_SC_OPERAND, (uly_scalar_type)node->type, at);
}

static bool same_scalar_type(uly_dtype dtype, const uly_expr *expr) {
  uly_scalar_type type = (uly_scalar_type)expr->nodes[expr->n_nodes - 1].type;
  return type == (uly_dtype_get(dtype)->is_float ? ULY_SCALAR_FLOAT : dtype == ULY_BOOL ? ULY_SCALAR_BOOL : ULY_SCALAR_INT);
}

// A consumer while it takes producers in, one after the other.
typedef struct taking {
  const uly_fuse *fuse;
  uly_ops ops;
  int at;                   // of the consumer
  uly_map map;              // what it is by now
  MlirOperation *producers; // taken in, those that were first used first
  int n, cap;
} taking;

static bool is_taken(const taking *t, MlirOperation op) {
  for (int i = t->n - 1; i >= 0; i--)
    if (mlirOperationEqual(t->producers[i], op)) return true;
  return false;
}

// Whether operand number |operand| has one use: by the map, and nowhere but in what it took in.
static bool used_once(const taking *t, int operand) {
  MlirValue value = t->map.operands[operand];
  for (int i = 0; i < t->map.n_operands; i++)
    if (i != operand && mlirValueEqual(t->map.operands[i], value)) return false;
  for (MlirOpOperand use = mlirValueGetFirstUse(value); !mlirOpOperandIsNull(use); use = mlirOpOperandGetNextUse(use)) {
    MlirOperation user = mlirOpOperandGetOwner(use);
    if (!mlirOperationEqual(user, t->ops.at[t->at]) && !is_taken(t, user)) return false;
  }
  return true;
}

static bool may_take(const taking *t, int operand, uly_map *out_inner) {
  const uly_fuse *fuse = t->fuse;
  const uly_map *outer = &t->map;
  MlirValue value = outer->operands[operand];
  MlirOperation producer = uly_value_op(value), consumer = t->ops.at[t->at];
  if (mlirOperationIsNull(producer) || uly_op_kind(producer) != ULY_KIND_MAP) return false;
  bool has_operands = mlirOperationGetNumOperands(producer) != 0;
  if (has_operands && (!mlirBlockEqual(mlirOperationGetBlock(producer), mlirOperationGetBlock(consumer)) || !uly_same_phase(producer, consumer))) return false;
  if (has_operands && !used_once(t, operand)) return false;
  *out_inner = uly_map_read(fuse, producer);
  const uly_expr *inner = &out_inner->expr;
  if (inner->wide || (outer->expr.wide && has_operation(inner))) return false;
  if (out_inner->n_operands + outer->n_operands > MOST_OPERANDS || inner->n_nodes + outer->expr.n_nodes > MOST_NODES) return false;
  uly_type in = uly_type_of(fuse->ir, value), out = uly_type_of(fuse->ir, uly_op_result(consumer, 0));
  if (!same_scalar_type(in.tensor.dtype, inner)) return false;
  int32_t indexed = 0;
  for (int32_t d = 0; d < in.tensor.rank; d++) indexed += outer->access[operand].dim[d] >= 0;
  return indexed == out.tensor.rank || !has_operation(inner);
}

static void take(taking *t, int operand, const uly_map *inner) {
  uly_arena *arena = t->fuse->ir->arena;
  MlirOperation producer = uly_value_op(t->map.operands[operand]);
  composition c = {.fuse = t->fuse, .outer = &t->map, .producer_access = &t->map.access[operand], .replaced = operand, .inner = *inner};
  c.dtype = uly_type_of(t->fuse->ir, t->map.operands[operand]).tensor.dtype;
  uly_expr_builder *b = uly_expr_begin(arena);
  c.merged.expr = uly_expr_end(b, uly_expr_graft(b, &t->map.expr, consumer_leaf, &c));
  c.merged.expr.wide = t->map.expr.wide;
  t->map = c.merged;
  if (is_taken(t, producer)) return;
  ULY_MAKE_ROOM(arena, t->producers, t->n, t->cap, 16);
  t->producers[t->n++] = producer;
}

// The consumer as one map that computes what it took in too. Producers that nobody else uses are gone.
static void replace(taking *t) {
  MlirOperation consumer = t->ops.at[t->at], merged = uly_map_build(t->fuse, &t->map, uly_op_result(consumer, 0), consumer);
  mlirValueReplaceAllUsesOfWith(uly_op_result(consumer, 0), uly_op_result(merged, 0));
  uly_op_erase(consumer);
  t->ops.at[t->at] = merged;
  for (int i = 0; i < t->n; i++) {
    if (!uly_op_unused(t->producers[i])) continue;
    for (int j = t->at - 1; j >= 0; j--)
      if (mlirOperationEqual(t->ops.at[j], t->producers[i])) t->ops.at[j] = (MlirOperation){NULL};
    uly_op_erase(t->producers[i]);
  }
}

static bool compose_at(const uly_fuse *fuse, uly_ops ops, int at) {
  taking t = {.fuse = fuse, .ops = ops, .at = at, .map = uly_map_read(fuse, ops.at[at])};
  uly_map inner;
  for (int j = 0; j < t.map.n_operands; j++)
    if (may_take(&t, j, &inner)) take(&t, j, &inner), j = -1;
  if (t.n) replace(&t);
  return t.n > 0;
}

void uly_compose_maps(const uly_fuse *fuse, MlirBlock block) {
  bool changed = true;
  while (changed) {
    uly_ops ops = uly_block_ops(fuse->ir, block);
    changed = false;
    for (int i = ops.n - 1; i >= 0; i--)
      if (!mlirOperationIsNull(ops.at[i]) && uly_op_kind(ops.at[i]) == ULY_KIND_MAP && compose_at(fuse, ops, i)) changed = true;
  }
}
