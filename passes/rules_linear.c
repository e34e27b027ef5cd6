// Is a map linear in some of its operands? Partial sums may go only through such maps: f(a) + f(b) must be f(a + b).
#include "frontend/expr.h"
#include "passes/rules.h"

typedef enum degree { FREE, LINEAR, OTHER, MIXED } degree; // FREE: of the partial operands; MIXED: a sum of FREE and LINEAR

static degree worst(degree a, degree b) { return a > b ? a : b; }

static degree degree_of(const uly_expr_node *node, const degree *of, uint32_t partial) {
  degree a = node->n_args > 0 ? of[node->args[0]] : FREE, b = node->n_args > 1 ? of[node->args[1]] : FREE, c = node->n_args > 2 ? of[node->args[2]] : FREE;
  switch ((uly_scalar)node->op) {
  case ULY_SC_OPERAND: return node->index < ULY_MAX_OPERANDS && (partial >> node->index & 1) ? LINEAR : FREE;
  case ULY_SC_NEG:
  case ULY_SC_FLOAT: return a;
  case ULY_SC_ADD:
  case ULY_SC_SUB: return worst(a, b) >= OTHER ? worst(a, b) : a == b ? a : MIXED;
  case ULY_SC_MUL: return worst(a, b) >= OTHER ? worst(a, b) : a == LINEAR && b == LINEAR ? OTHER : worst(a, b);
  case ULY_SC_DIV: return worst(a, b) >= OTHER ? worst(a, b) : b == LINEAR ? OTHER : a;
  case ULY_SC_IF: return worst(b, c) >= OTHER ? worst(b, c) : a != FREE ? OTHER : b == c ? b : MIXED;
  default: {
    degree most = FREE;
    for (int i = 0; i < node->n_args; i++) most = worst(most, of[node->args[i]]);
    return most == FREE ? FREE : worst(most, OTHER);
  }
  }
}

uly_str uly_rule_linear_map(const uly_ir *ir, const uly_view *view, uint32_t partial) {
  uly_expr expr;
  if (uly_expr_parse(ir->arena, uly_op_str(view->op, "expr"), ir->names.symbols, ir->names.n_symbols, &expr) != ULY_OK)
    return ULY_STR("the expression cannot be read");
  degree *of = ULY_NEW_ARRAY(ir->arena, degree, expr.n_nodes);
  for (int32_t i = 0; i < expr.n_nodes; i++) of[i] = degree_of(&expr.nodes[i], of, partial);
  switch (of[expr.n_nodes - 1]) {
  case LINEAR: return (uly_str){0};
  case FREE: return ULY_STR("what it gives does not depend on the partial sum");
  case MIXED: return ULY_STR("it adds a value that every rank holds, which would be counted once a rank");
  case OTHER: break;
  }
  return ULY_STR("it is not linear");
}
