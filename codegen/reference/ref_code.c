#include "codegen/reference/ref_code.h"

typedef struct place {
  uly_ref_exprs *exprs;
  const int64_t *index;
} place;

static uly_number number_of(const uly_ref_tensor *t, int64_t at) { return t->is_int ? (uly_number){.i = t->data[at].i} : (uly_number){.f = t->data[at].f}; }

static uly_number evaluate(uly_ref_exprs *e, int32_t i, const uly_expr_env *env) {
  uly_number number = {0};
  uly_status status = uly_expr_eval(&e->expr[i], env, &number);
  ULY_ASSERT(status == ULY_OK); // nothing is refused where `running` is set
  return number;
}

// ---- MAP

// What memory of the dtype holds.
static int64_t wrapped(uly_dtype dtype, int64_t i) {
  switch (dtype) {
  case ULY_I32: return (int32_t)(uint32_t)(uint64_t)i;
  case ULY_U8: return (uint8_t)(uint64_t)i;
  case ULY_BOOL: return i != 0;
  default: return i;
  }
}

static uly_number map_operand(void *context, int32_t j) {
  const place *p = context;
  const uly_ref_tensor *t = &p->exprs->op->in[j];
  int64_t at = 0;
  for (int32_t d = 0; d < t->rank; d++) {
    int8_t dim = p->exprs->access[j].dim[d];
    at = at * t->dims[d] + (dim < 0 ? 0 : p->index[dim]);
  }
  return number_of(t, at);
}

static uly_ref_cell element(void *context, const int64_t *index) {
  uly_ref_exprs *e = context;
  place p = {e, index};
  int64_t coords[ULY_COORD_MAX] = {0};
  for (int32_t d = 0; d < e->op->out.rank; d++) coords[ULY_COORD_I0 + d] = index[d];
  uly_expr_env env = {.context = &p, .coords = coords, .sizes = e->sizes, .operand = map_operand, .work = e->work, .running = true};
  uly_number n = evaluate(e, 0, &env);
  if (!e->op->out.is_int) return (uly_ref_cell){.f = n.type == ULY_SCALAR_FLOAT ? n.f : (double)n.i};
  return (uly_ref_cell){.i = wrapped(e->out, n.type == ULY_SCALAR_FLOAT ? (int64_t)n.f : n.i)};
}

// ---- ATTENTION

static uly_number captured(void *context, int32_t j, const int64_t *indices, int n) {
  const place *p = context;
  uly_ref_op *op = p->exprs->op;
  const uly_ref_tensor *t = &op->in[op->i[3] + j];
  int64_t at = 0;
  for (int d = 0; d < n; d++) {
    if (indices[d] < 0 || indices[d] >= t->dims[d]) {
      if (!op->fault.found) op->fault = (uly_ref_fault){true, indices[d], t->dims[d], 3, {p->index[ULY_COORD_B], p->index[ULY_COORD_Q], p->index[ULY_COORD_K]}};
      return (uly_number){0};
    }
    at = at * t->dims[d] + indices[d];
  }
  return number_of(t, at);
}

static uly_number at_pair(uly_ref_exprs *e, int32_t i, int64_t b, int64_t h, int64_t q, int64_t k, double s) {
  const int64_t coords[ULY_COORD_MAX] = {[ULY_COORD_B] = b, [ULY_COORD_H] = h, [ULY_COORD_Q] = q, [ULY_COORD_K] = k};
  place p = {e, coords};
  uly_expr_env env = {.context = &p, .coords = coords, .score = s, .sizes = e->sizes, .load = captured, .work = e->work, .running = true};
  return evaluate(e, i, &env);
}

static bool mask(void *context, int64_t b, int64_t h, int64_t q, int64_t k) { return at_pair(context, 0, b, h, q, k, 0.0).i != 0; }

static double score(void *context, int64_t b, int64_t h, int64_t q, int64_t k, double s) {
  uly_number n = at_pair(context, 1, b, h, q, k, s);
  return n.type == ULY_SCALAR_FLOAT ? n.f : (double)n.i;
}

void uly_ref_exprs_attach(uly_ref_exprs *exprs, uly_ref_op *op) {
  exprs->op = op;
  op->code = (uly_ref_code){.context = exprs, .element = element, .mask = mask, .score = exprs->n > 1 ? score : NULL};
}
