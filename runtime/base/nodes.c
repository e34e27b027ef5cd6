#include "runtime/base/nodes.h"

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

// share and start of array_split.
static int64_t share(int64_t n, int64_t p, int64_t r) { return n / p + (r < n % p); }
static int64_t start(int64_t n, int64_t p, int64_t r) { return r * (n / p) + (r < n % p ? r : n % p); }

// a op b, or ULY_NO_VALUE.
static int64_t binary(uint32_t kind, int64_t a, int64_t b) {
  int64_t v;
  if (a == ULY_NO_VALUE || b == ULY_NO_VALUE) return ULY_NO_VALUE;
  switch (kind) {
  case ULY_NODE_ADD: return __builtin_add_overflow(a, b, &v) ? ULY_NO_VALUE : v;
  case ULY_NODE_SUB: return __builtin_sub_overflow(a, b, &v) ? ULY_NO_VALUE : v;
  case ULY_NODE_MUL: return __builtin_mul_overflow(a, b, &v) ? ULY_NO_VALUE : v;
  case ULY_NODE_FDIV: return b == 0 ? ULY_NO_VALUE : floor_div(a, b); // a is not INT64_MIN: no overflow
  case ULY_NODE_CDIV: return b == 0 ? ULY_NO_VALUE : -floor_div(-a, b);
  case ULY_NODE_MOD: return b == 0 ? ULY_NO_VALUE : a - floor_div(a, b) * b;
  case ULY_NODE_MIN: return a < b ? a : b;
  case ULY_NODE_MAX: return a > b ? a : b;
  default: return ULY_NO_VALUE;
  }
}

static int64_t at(const uly_nodes *n, uint32_t node, int64_t rank) { return n->values[node * n->n_ranks + rank]; }

static int64_t peers(const uly_nodes *n, const uly_node *node, int64_t rank) {
  uint32_t axis = (uint32_t)node->value;
  if (axis >= n->grid.n_axes) return ULY_NO_VALUE;
  int64_t place = uly_grid_place(&n->grid, rank, axis), size = n->grid.size[axis], v = 0;
  for (int64_t p = 0; p < (node->kind == ULY_NODE_PEER_BEFORE ? place : size); p++) {
    int64_t a = at(n, node->a, uly_grid_peer(&n->grid, rank, axis, p));
    v = node->kind == ULY_NODE_PEER_MAX && p > 0 ? binary(ULY_NODE_MAX, v, a) : binary(ULY_NODE_ADD, v, a);
  }
  return v;
}

static int64_t cut(uint32_t kind, int64_t n, int64_t p, int64_t r) {
  if (n == ULY_NO_VALUE || p == ULY_NO_VALUE || r == ULY_NO_VALUE || n < 0 || p < 1 || r < 0 || r > p) return ULY_NO_VALUE;
  return kind == ULY_NODE_SHARE ? share(n, p, r) : start(n, p, r);
}

static int64_t eval(const uly_nodes *n, const uly_node *node, int64_t rank) {
  int64_t condition;
  switch ((uly_node_kind)node->kind) {
  case ULY_NODE_CONST: return node->value;
  case ULY_NODE_SYM: return n->symbols ? n->symbols[node->value] : ULY_NO_VALUE;
  case ULY_NODE_AXIS_SIZE: return node->value < n->grid.n_axes ? n->grid.size[node->value] : ULY_NO_VALUE;
  case ULY_NODE_AXIS_RANK: return node->value < n->grid.n_axes ? uly_grid_place(&n->grid, rank, (uint32_t)node->value) : ULY_NO_VALUE;
  case ULY_NODE_ADD:
  case ULY_NODE_SUB:
  case ULY_NODE_MUL:
  case ULY_NODE_FDIV:
  case ULY_NODE_CDIV:
  case ULY_NODE_MOD:
  case ULY_NODE_MIN:
  case ULY_NODE_MAX: return binary(node->kind, at(n, node->a, rank), at(n, node->b, rank));
  case ULY_NODE_SHARE:
  case ULY_NODE_START: return cut(node->kind, at(n, node->a, rank), at(n, node->b, rank), at(n, node->c, rank));
  case ULY_NODE_SELECT: condition = at(n, node->a, rank); return condition == ULY_NO_VALUE ? ULY_NO_VALUE : at(n, condition ? node->b : node->c, rank);
  case ULY_NODE_PEER_SUM:
  case ULY_NODE_PEER_BEFORE:
  case ULY_NODE_PEER_MAX: return peers(n, node, rank);
  case ULY_N_NODE_KINDS: break;
  }
  return ULY_NO_VALUE;
}

void uly_nodes_eval(uly_nodes *nodes) {
  for (uint32_t i = 0; i < nodes->n_nodes; i++)
    for (int64_t r = 0; r < nodes->n_ranks; r++) nodes->values[i * nodes->n_ranks + r] = eval(nodes, &nodes->nodes[i], r);
}

static const char *const kind_names[] = {
#define X(name) #name,
    ULY_NODE_KINDS(X)
#undef X
};

// Goes down to the operation that has operands but no value. A peer node is not followed to its peers: the own rank tells enough.
static uly_status explain(const uly_nodes *n, uint32_t i, int64_t rank, uly_error *error) {
  for (;;) {
    const uly_node *node = &n->nodes[i];
    uint32_t operands[3] = {node->a, node->b, node->c};
    int n_operands = node->kind < ULY_NODE_ADD ? 0 : node->kind >= ULY_NODE_PEER_SUM ? 1 : node->kind >= ULY_NODE_SHARE ? 3 : 2;
    int64_t value[3] = {0};
    int bad = -1;
    for (int k = 0; k < n_operands; k++) {
      value[k] = at(n, operands[k], rank);
      if (value[k] == ULY_NO_VALUE && bad < 0 && !(node->kind == ULY_NODE_SELECT && k > 0 && (value[0] != 0) != (k == 1))) bad = k;
    }
    if (bad >= 0) {
      i = operands[bad];
      continue;
    }
    if (node->kind == ULY_NODE_SYM) return uly_fail(error, ULY_INVALID_ARGUMENT, "a size depends on symbol %lld, which has no value", (long long)node->value);
    if (node->kind < ULY_NODE_ADD) return uly_fail(error, ULY_INVALID_INPUT, "a size of the load phase depends on the grid");
    if ((node->kind == ULY_NODE_SHARE || node->kind == ULY_NODE_START) && value[0] < 0)
      return uly_fail(error, ULY_INVALID_ARGUMENT, "a size is negative: %lld (node %u, rank %lld)", (long long)value[0], operands[0], (long long)rank);
    if (n_operands == 2)
      return uly_fail(error, ULY_OVERFLOW, "size overflow: %s of %lld and %lld does not fit 64 bits or divides by zero (node %u, rank %lld)",
                      kind_names[node->kind], (long long)value[0], (long long)value[1], i, (long long)rank);
    return uly_fail(error, ULY_OVERFLOW, "size overflow: %s of %lld, %lld, %lld (node %u, rank %lld)", kind_names[node->kind], (long long)value[0],
                    (long long)value[1], (long long)value[2], i, (long long)rank);
  }
}

uly_status uly_nodes_get(const uly_nodes *nodes, uint32_t node, int64_t rank, uly_error *error, int64_t *out_value) {
  if (node >= nodes->n_nodes) return uly_fail(error, ULY_INVALID_INPUT, "a size is missing from the program");
  *out_value = nodes->values[node * nodes->n_ranks + rank];
  return *out_value == ULY_NO_VALUE ? explain(nodes, node, rank, error) : ULY_OK;
}

uly_status uly_nodes_size(const uly_nodes *nodes, uint32_t node, int64_t rank, uly_error *error, int64_t *out_value) {
  ULY_TRY(uly_nodes_get(nodes, node, rank, error, out_value));
  if (*out_value < 0)
    return uly_fail(error, ULY_INVALID_ARGUMENT, "a size is negative: %lld (node %u, rank %lld)", (long long)*out_value, node, (long long)rank);
  if (*out_value > (int64_t)1 << 47)
    return uly_fail(error, ULY_OVERFLOW, "size overflow: %lld is beyond 2^47 (node %u, rank %lld)", (long long)*out_value, node, (long long)rank);
  return ULY_OK;
}
