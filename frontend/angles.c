// cos and sin of rope's angles as float64 MAPs. Whatever elementwise code made the angle is computed again inside them, because an angle rounded to f32 is wrong by up to
// half a turn at positions beyond 2^23.
#include "frontend/checker.h"

typedef struct fold {
  uly_checker *c;
  uly_expr_builder *b;
  uly_graph_value *operands[ULY_MAX_OPERANDS];
  uly_access access[ULY_MAX_OPERANDS];
  int32_t n;
  bool overflow;
} fold;

// A MAP inside the angle: where its result's dims stand in the outer result; -1 where they have size 1.
typedef struct inner {
  fold *fold;
  const uly_graph_value *map;
  int8_t dim[ULY_GRAPH_MAX_DIMS];
} inner;

static int32_t fold_value(fold *f, uly_graph_value *value, const int8_t *dim);

static int32_t fold_leaf(void *context, uly_expr_builder *b, const uly_expr_node *node) {
  const inner *in = context;
  if (node->op == ULY_SC_COORD) {
    int8_t dim = in->dim[node->index - ULY_COORD_I0];
    return dim < 0 ? uly_expr_const_int(b, 0) : uly_expr_leaf(b, ULY_SC_COORD, ULY_SCALAR_INT, ULY_COORD_I0 + dim);
  }
  if (node->op != ULY_SC_OPERAND) return -1;
  int8_t dim[ULY_GRAPH_MAX_DIMS];
  for (int d = 0; d < ULY_GRAPH_MAX_DIMS; d++) {
    int8_t middle = in->map->u.map.access[node->index].dim[d];
    dim[d] = middle < 0 ? -1 : in->dim[middle];
  }
  return fold_value(in->fold, in->map->operands[node->index], dim);
}

static int32_t add_operand(fold *f, uly_graph_value *value, const int8_t *dim) {
  uly_scalar_type type = uly_map_scalar_type(value->type.dtype);
  for (int32_t i = 0; i < f->n; i++)
    if (f->operands[i] == value && memcmp(f->access[i].dim, dim, sizeof f->access[i].dim) == 0) return uly_expr_leaf(f->b, ULY_SC_OPERAND, type, i);
  if (f->n == ULY_MAX_OPERANDS) {
    f->overflow = true;
    return uly_expr_const_float(f->b, 0.0);
  }
  memcpy(f->access[f->n].dim, dim, sizeof f->access[f->n].dim);
  f->operands[f->n] = value;
  return uly_expr_leaf(f->b, ULY_SC_OPERAND, type, f->n++);
}

static int32_t fold_value(fold *f, uly_graph_value *value, const int8_t *dim) {
  bool rounds = value->type.dtype == ULY_BF16 || value->type.dtype == ULY_F16;
  if (value->op != ULY_OP_MAP || rounds || f->c->nesting > 1000) return add_operand(f, value, dim);
  inner in = {.fold = f, .map = value};
  memcpy(in.dim, dim, sizeof in.dim);
  f->c->nesting++;
  int32_t node = uly_expr_graft(f->b, &value->u.map.expr, fold_leaf, &in);
  f->c->nesting--;
  return node < 0 ? add_operand(f, value, dim) : node;
}

static uly_graph_value *build(fold *f, uly_loc loc, const uly_tensor_type *type, uly_scalar op, int32_t angle) {
  uly_expr expr = uly_expr_end(f->b, uly_expr_op(f->b, op, &angle, 1));
  expr.wide = true;
  uly_region *region = uly_build_outermost(f->c, f->operands, f->n);
  for (int32_t i = 0; i < region->n; i++) {
    uly_graph_value *other = region->values[i];
    if (other->op != ULY_OP_MAP || other->n_operands != f->n || !uly_tensor_type_equal(&other->type, type) || !uly_expr_equal(&other->u.map.expr, &expr))
      continue;
    bool same = true;
    for (int32_t j = 0; j < f->n; j++) same &= other->operands[j] == f->operands[j] && memcmp(&other->u.map.access[j], &f->access[j], sizeof f->access[j]) == 0;
    if (same) return other;
  }
  uly_graph_value *value = uly_build_in(f->c, region, ULY_OP_MAP, loc, type, f->operands, f->n);
  value->u.map.expr = expr;
  for (int32_t i = 0; i < f->n; i++) value->u.map.access[i] = f->access[i];
  return value;
}

void uly_angle_cos_sin(uly_checker *c, uly_loc loc, uly_value angle, uly_graph_value **out_cos, uly_graph_value **out_sin) {
  fold f = {.c = c, .b = uly_expr_begin(c->arena)};
  int8_t dim[ULY_GRAPH_MAX_DIMS];
  uly_tensor_type type = angle.u.tensor->type;
  type.dtype = ULY_F32;
  for (int8_t d = 0; d < ULY_GRAPH_MAX_DIMS; d++) dim[d] = d < type.rank ? d : -1;
  int32_t node = fold_value(&f, angle.u.tensor, dim);
  if (f.overflow) { // too many sources: the angle as it stands
    f = (fold){.c = c, .b = uly_expr_begin(c->arena)};
    node = add_operand(&f, angle.u.tensor, dim);
  }
  *out_cos = build(&f, loc, &type, ULY_SC_COS, node);
  *out_sin = build(&f, loc, &type, ULY_SC_SIN, node);
}
