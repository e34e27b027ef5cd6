// Builder of scalar expressions: typing, folding of constants, sharing of equal nodes. Used by the checker, by the passes when they fuse elementwise code,
// and by the text form. Evaluation is in expr_eval.c, text in expr_text.c.
#include "frontend/expr.h"

#include <math.h>

struct uly_expr_builder {
  uly_arena *arena;
  uly_expr_node *nodes;
  int32_t n_nodes, cap;
  int32_t *slots;  // open addressing: node + 1, 0 is empty
  int32_t n_slots; // a power of two
};

uly_expr_builder *uly_expr_begin(uly_arena *arena) {
  uly_expr_builder *b = ULY_NEW(arena, uly_expr_builder);
  b->arena = arena;
  b->cap = 4;
  b->nodes = ULY_NEW_ARRAY(arena, uly_expr_node, b->cap);
  b->n_slots = 16;
  b->slots = ULY_NEW_ARRAY(arena, int32_t, b->n_slots);
  return b;
}

const uly_expr_node *uly_expr_node_at(const uly_expr_builder *b, int32_t node) {
  ULY_ASSERT(node >= 0 && node < b->n_nodes);
  return &b->nodes[node];
}

static uint64_t value_bits(const uly_expr_node *node) {
  uint64_t bits;
  memcpy(&bits, &node->value, sizeof bits);
  return bits;
}

static bool node_equal(const uly_expr_node *a, const uly_expr_node *b) {
  return a->op == b->op && a->type == b->type && a->n_args == b->n_args && a->index == b->index && value_bits(a) == value_bits(b) &&
         memcmp(a->args, b->args, sizeof a->args) == 0;
}

static uint64_t node_hash(const uly_expr_node *node) {
  uint64_t h = 0xcbf29ce484222325u ^ ((uint64_t)node->op << 8 | node->type);
  h = (h ^ value_bits(node)) * 0x100000001b3u;
  h = (h ^ (uint32_t)node->index) * 0x100000001b3u;
  for (int i = 0; i < node->n_args; i++) h = (h ^ (uint32_t)node->args[i]) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

static void insert_slot(uly_expr_builder *b, int32_t node) {
  uint64_t at = node_hash(&b->nodes[node]);
  while (b->slots[at & (uint64_t)(b->n_slots - 1)]) at++;
  b->slots[at & (uint64_t)(b->n_slots - 1)] = node + 1;
}

static int32_t add_node(uly_expr_builder *b, const uly_expr_node *node) {
  for (uint64_t at = node_hash(node);; at++) {
    int32_t found = b->slots[at & (uint64_t)(b->n_slots - 1)];
    if (!found) break;
    if (node_equal(&b->nodes[found - 1], node)) return found - 1;
  }
  if (b->n_nodes >= ULY_EXPR_MAX_NODES) return -1;
  if (b->n_nodes == b->cap) {
    size_t bytes = sizeof *b->nodes * (size_t)b->cap;
    b->nodes = uly_arena_grow(b->arena, b->nodes, bytes, bytes * 2);
    b->cap *= 2;
  }
  b->nodes[b->n_nodes++] = *node;
  if (b->n_nodes * 2 > b->n_slots) {
    b->n_slots *= 2;
    b->slots = ULY_NEW_ARRAY(b->arena, int32_t, b->n_slots);
    for (int32_t i = 0; i < b->n_nodes; i++) insert_slot(b, i);
  } else {
    insert_slot(b, b->n_nodes - 1);
  }
  return b->n_nodes - 1;
}

static int32_t add_const(uly_expr_builder *b, const uly_number *number) {
  uly_expr_node node = {.op = ULY_SC_CONST, .type = (uint8_t)number->type};
  if (number->type == ULY_SCALAR_FLOAT)
    node.value.f = isnan(number->f) ? (double)NAN : number->f; // one NaN, so that equal stays equal
  else
    node.value.i = number->i;
  return add_node(b, &node);
}

int32_t uly_expr_const_int(uly_expr_builder *b, int64_t value) { return add_const(b, &(uly_number){.type = ULY_SCALAR_INT, .i = value}); }
int32_t uly_expr_const_bool(uly_expr_builder *b, bool value) { return add_const(b, &(uly_number){.type = ULY_SCALAR_BOOL, .i = value}); }
int32_t uly_expr_const_float(uly_expr_builder *b, double value) { return add_const(b, &(uly_number){.type = ULY_SCALAR_FLOAT, .f = value}); }

int32_t uly_expr_leaf(uly_expr_builder *b, uly_scalar op, uly_scalar_type type, int32_t index) {
  ULY_ASSERT(op == ULY_SC_COORD || op == ULY_SC_SIZE || op == ULY_SC_OPERAND);
  return add_node(b, &(uly_expr_node){.op = (uint8_t)op, .type = (uint8_t)type, .index = index});
}

int32_t uly_expr_load(uly_expr_builder *b, uly_scalar_type type, int32_t operand, const int32_t *indices, int n_indices) {
  if (n_indices > ULY_EXPR_MAX_ARGS) return -1;
  uly_expr_node node = {.op = ULY_SC_LOAD, .type = (uint8_t)type, .n_args = (uint8_t)n_indices, .index = operand};
  for (int i = 0; i < n_indices; i++) {
    if (indices[i] < 0 || b->nodes[indices[i]].type != ULY_SCALAR_INT) return -1;
    node.args[i] = indices[i];
  }
  return add_node(b, &node);
}

static bool is_const(const uly_expr_builder *b, int32_t node) { return b->nodes[node].op == ULY_SC_CONST; }
static uly_scalar_type type_of(const uly_expr_builder *b, int32_t node) { return (uly_scalar_type)b->nodes[node].type; }

static int32_t to_float(uly_expr_builder *b, int32_t node) { return type_of(b, node) == ULY_SCALAR_FLOAT ? node : uly_expr_op(b, ULY_SC_FLOAT, &node, 1); }

// x to a constant whole power, by squaring: exact signs, where exp and log would lose negative bases.
static int32_t expand_power(uly_expr_builder *b, int32_t x, int64_t power) {
  int32_t result = -1, square = x;
  for (int64_t n = power < 0 ? -power : power; n; n >>= 1) {
    if (n & 1) result = result < 0 ? square : uly_expr_op(b, ULY_SC_MUL, (int32_t[]){result, square}, 2);
    if (n > 1) square = uly_expr_op(b, ULY_SC_MUL, (int32_t[]){square, square}, 2);
    if (square < 0 || (result < 0 && (n & 1))) return -1;
  }
  if (power == 0) return type_of(b, x) == ULY_SCALAR_INT ? uly_expr_const_int(b, 1) : uly_expr_const_float(b, 1.0);
  return power > 0 ? result : uly_expr_op(b, ULY_SC_DIV, (int32_t[]){uly_expr_const_float(b, 1.0), result}, 2);
}

enum { MAX_EXPANDED_POWER = 64 };

// Power with a constant exponent; *out_done says whether it became something simpler than POW.
static int32_t build_power(uly_expr_builder *b, int32_t x, int32_t exponent, bool *out_done) {
  const uly_expr_node *e = &b->nodes[exponent];
  bool int_base = type_of(b, x) == ULY_SCALAR_INT;
  *out_done = true;
  if (e->op != ULY_SC_CONST) {
    if (int_base && e->type == ULY_SCALAR_INT) return -1; // its type would depend on a sign known only at run time
  } else if (e->type == ULY_SCALAR_INT) {
    if (int_base && e->value.i < 0) return -1;
    if (llabs(e->value.i) <= MAX_EXPANDED_POWER) return expand_power(b, x, e->value.i);
    if (int_base) return -1;
  } else {
    double f = e->value.f;
    if (f == 0.5 || f == -0.5) return uly_expr_op(b, f > 0 ? ULY_SC_SQRT : ULY_SC_RSQRT, &x, 1);
    if (f == floor(f) && fabs(f) <= (double)MAX_EXPANDED_POWER) return expand_power(b, to_float(b, x), (int64_t)f);
  }
  *out_done = false;
  return 0;
}

// Simpler equals that hold exactly, whatever the other argument is. -1: none.
static int32_t simplify(uly_expr_builder *b, uly_scalar op, const int32_t *args) {
  switch (op) {
  case ULY_SC_AND:
  case ULY_SC_OR:
    if (args[0] == args[1]) return args[0];
    for (int i = 0; i < 2; i++)
      if (is_const(b, args[i])) return (b->nodes[args[i]].value.i != 0) == (op == ULY_SC_AND) ? args[1 - i] : args[i];
    return -1;
  case ULY_SC_NOT: return b->nodes[args[0]].op == ULY_SC_NOT ? b->nodes[args[0]].args[0] : -1;
  case ULY_SC_IF:
    if (args[1] == args[2]) return args[1];
    return is_const(b, args[0]) ? args[b->nodes[args[0]].value.i ? 1 : 2] : -1;
  case ULY_SC_FLOAT: return type_of(b, args[0]) == ULY_SCALAR_FLOAT ? args[0] : -1;
  case ULY_SC_INT:
  case ULY_SC_FLOOR:
  case ULY_SC_CEIL: return type_of(b, args[0]) == ULY_SCALAR_INT ? args[0] : -1;
  case ULY_SC_BF16:
  case ULY_SC_F16:
  case ULY_SC_I32:
  case ULY_SC_U8: return b->nodes[args[0]].op == op ? args[0] : -1;
  default: return -1;
  }
}

int32_t uly_expr_op(uly_expr_builder *b, uly_scalar op, const int32_t *args, int n_args) {
  uly_scalar_type types[ULY_EXPR_MAX_ARGS], type, arg_type;
  uly_number values[ULY_EXPR_MAX_ARGS];
  bool constant = true;
  if (n_args != uly_scalar_get(op)->n_args) return -1;
  for (int i = 0; i < n_args; i++) {
    if (args[i] < 0) return -1;
    types[i] = type_of(b, args[i]);
    constant &= is_const(b, args[i]);
  }
  if (!uly_scalar_result_type(op, types, n_args, &type, &arg_type)) return -1;
  if (constant) {
    uly_number folded;
    for (int i = 0; i < n_args; i++) values[i] = uly_expr_node_value(&b->nodes[args[i]]);
    return uly_scalar_apply(op, values, n_args, &folded) == ULY_OK ? add_const(b, &folded) : -1;
  }
  if (op == ULY_SC_POW) {
    bool done;
    int32_t power = build_power(b, args[0], args[1], &done);
    if (done) return power;
  }
  uly_expr_node node = {.op = (uint8_t)op, .type = (uint8_t)type, .n_args = (uint8_t)n_args};
  for (int i = 0; i < n_args; i++) {
    bool converts = arg_type == ULY_SCALAR_FLOAT && op != ULY_SC_INT && op != ULY_SC_FLOAT && !(op == ULY_SC_IF && i == 0);
    node.args[i] = converts ? to_float(b, args[i]) : args[i];
    if (node.args[i] < 0) return -1;
  }
  int32_t simpler = simplify(b, op, node.args);
  return simpler >= 0 ? simpler : add_node(b, &node);
}

int32_t uly_expr_graft(uly_expr_builder *b, const uly_expr *source, int32_t (*leaf)(void *context, uly_expr_builder *b, const uly_expr_node *node),
                       void *context) {
  int32_t *to = ULY_NEW_ARRAY(b->arena, int32_t, source->n_nodes), args[ULY_EXPR_MAX_ARGS];
  for (int32_t i = 0; i < source->n_nodes; i++) {
    const uly_expr_node *node = &source->nodes[i];
    for (int j = 0; j < node->n_args; j++) args[j] = to[node->args[j]];
    if (node->n_args && node->op != ULY_SC_LOAD) {
      to[i] = uly_expr_op(b, (uly_scalar)node->op, args, node->n_args);
    } else {
      to[i] = node->op == ULY_SC_CONST ? -1 : leaf(context, b, node);
      if (to[i] < 0 && node->op == ULY_SC_LOAD)
        to[i] = uly_expr_load(b, (uly_scalar_type)node->type, node->index, args, node->n_args);
      else if (to[i] < 0)
        to[i] = add_node(b, node);
    }
    if (to[i] < 0) return -1;
  }
  return to[source->n_nodes - 1];
}

// Depth first, arguments in order, so that equal expressions have equal node lists however they were built.
static int32_t renumber(const uly_expr_builder *b, int32_t node, int32_t *to, uly_expr *out) {
  if (to[node]) return to[node] - 1;
  uly_expr_node copy = b->nodes[node];
  for (int i = 0; i < copy.n_args; i++) copy.args[i] = renumber(b, copy.args[i], to, out);
  out->nodes[out->n_nodes] = copy;
  to[node] = ++out->n_nodes;
  return out->n_nodes - 1;
}

uly_expr uly_expr_end(uly_expr_builder *b, int32_t result) {
  ULY_ASSERT(result >= 0 && result < b->n_nodes);
  uly_expr expr = {.nodes = ULY_NEW_ARRAY(b->arena, uly_expr_node, result + 1)};
  renumber(b, result, ULY_NEW_ARRAY(b->arena, int32_t, b->n_nodes), &expr);
  return expr;
}

bool uly_expr_equal(const uly_expr *a, const uly_expr *b) {
  if (a->n_nodes != b->n_nodes || a->wide != b->wide) return false;
  for (int32_t i = 0; i < a->n_nodes; i++)
    if (!node_equal(&a->nodes[i], &b->nodes[i])) return false;
  return true;
}
