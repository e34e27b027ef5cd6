// The kernel of `--target=reference`: one operation on whole tensors. Compiled when ulyc is built and linked as it is into every such model; what it computes stands in the
// step's values (step_words.h). Items are rows of the result.
#include <string.h>

#include "codegen/reference/ref_code.h"
#include "codegen/reference/step_words.h"
#include "runtime/abi.h"

// The values, taken one by one; memory of the thread for what they become.
typedef struct reader {
  const int64_t *const *at;
  unsigned char *memory;
} reader;

static int64_t take(reader *r) { return **r->at++; }

static double take_float(reader *r) {
  int64_t bits = take(r);
  double f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static void *room(reader *r, int64_t n, size_t bytes) {
  void *at = r->memory;
  r->memory += ((size_t)n * bytes + 15) & ~(size_t)15;
  return at;
}

static uly_dtype take_tensor(reader *r, void *data, uly_ref_tensor *out) {
  uly_dtype dtype = (uly_dtype)take(r);
  *out = (uly_ref_tensor){.data = data, .is_int = !uly_dtype_get(dtype)->is_float, .rank = (int32_t)take(r)};
  for (int32_t d = 0; d < out->rank; d++) out->dims[d] = take(r);
  return dtype;
}

static uly_expr take_expr(reader *r) {
  uly_expr expr = {.n_nodes = (int32_t)take(r)};
  expr.nodes = room(r, expr.n_nodes, sizeof *expr.nodes);
  for (int32_t i = 0; i < expr.n_nodes; i++) {
    uly_expr_node *n = &expr.nodes[i];
    *n = (uly_expr_node){.op = (uint8_t)take(r)};
    n->type = (uint8_t)take(r);
    n->n_args = (uint8_t)take(r);
    for (int j = 0; j < n->n_args; j++) n->args[j] = (int32_t)take(r);
    n->index = (int32_t)take(r);
    if (n->op == ULY_SC_CONST && n->type == ULY_SCALAR_FLOAT)
      n->value.f = take_float(r);
    else
      n->value.i = take(r);
  }
  return expr;
}

static void take_exprs(reader *r, int32_t n_in, const uly_ref_tensor *in, uly_ref_exprs *out) {
  int32_t longest = 0;
  out->n = (int32_t)take(r);
  for (int32_t i = 0; i < out->n; i++) {
    out->expr[i] = take_expr(r);
    if (out->expr[i].n_nodes > longest) longest = out->expr[i].n_nodes;
  }
  out->work = room(r, longest, sizeof *out->work);
  uly_ref_access *access = room(r, n_in, sizeof *access);
  for (int32_t i = 0; i < n_in; i++)
    for (int32_t d = 0; d < in[i].rank; d++) access[i].dim[d] = (int8_t)take(r);
  out->access = access;
}

static void report(const uly_call *call, uint32_t code, const uly_ref_fault *fault) {
  uint32_t none = ULY_FAULT_NONE;
  if (!__atomic_compare_exchange_n(&call->fault->code, &none, code, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
  call->fault->a = fault->index, call->fault->b = fault->limit, call->fault->n_at = fault->n_at;
  for (int32_t d = 0; d < fault->n_at; d++) call->fault->at[d] = fault->at[d];
}

// ---- what callers hold, and cells

static uly_ref_cell widen(uly_dtype dtype, const void *data, int64_t i) {
  switch (dtype) {
  case ULY_I32: return (uly_ref_cell){.i = ((const int32_t *)data)[i]};
  case ULY_I64: return (uly_ref_cell){.i = ((const int64_t *)data)[i]};
  case ULY_U8: return (uly_ref_cell){.i = ((const uint8_t *)data)[i]};
  case ULY_BOOL: return (uly_ref_cell){.i = ((const uint8_t *)data)[i] != 0};
  default: return (uly_ref_cell){.f = uly_dtype_load(dtype, data, i)};
  }
}

static void narrow(uly_dtype dtype, void *data, int64_t i, uly_ref_cell cell) {
  switch (dtype) {
  case ULY_I32: ((int32_t *)data)[i] = (int32_t)cell.i; return;
  case ULY_I64: ((int64_t *)data)[i] = cell.i; return;
  case ULY_U8:
  case ULY_BOOL: ((uint8_t *)data)[i] = (uint8_t)cell.i; return;
  default: ((double *)data)[i] = cell.f;
  }
}

static void copy(const uly_call *call, uly_ref_step_kind kind, uly_dtype dtype, const uly_ref_tensor *shape, void *to, const void *from) {
  int64_t width = uly_ref_width(shape);
  for (int64_t i = call->lo * width; i < call->hi * width; i++)
    if (kind == ULY_REF_READ)
      ((uly_ref_cell *)to)[i] = widen(dtype, from, i);
    else
      narrow(dtype, to, i, ((const uly_ref_cell *)from)[i]);
}

// ---- operations

static uly_ref_function *const functions[] = {
#define REF(id, function, ints, floats) uly_ref_##function,
#include "runtime/reference/reference.def"
};

void uly_reference(const uly_call *call);
void uly_reference(const uly_call *call) {
  reader r = {call->val, call->scratch};
  uly_ref_step_kind kind = (uly_ref_step_kind)take(&r);
  uly_ref_op op = {.n_in = (int32_t)take(&r), .begin = call->lo, .end = call->hi};
  uly_ref_tensor *in = room(&r, op.n_in, sizeof *in);
  uly_ref_exprs exprs = {.out = take_tensor(&r, call->op[0].p[0], &op.out)};
  for (int32_t i = 0; i < op.n_in; i++) take_tensor(&r, call->op[1 + i].p[0], &in[i]);
  op.in = in;
  if (kind >= ULY_REF_READ) {
    copy(call, kind, exprs.out, &op.out, call->op[0].p[0], call->op[1].p[0]);
    return;
  }
  for (int i = 0; i < ULY_REF_NUMBERS; i++) op.i[i] = take(&r);
  for (int i = 0; i < ULY_REF_NUMBERS; i++) op.f[i] = take_float(&r);
  take_exprs(&r, kind == ULY_REF_MAP ? op.n_in : 0, in, &exprs);
  uly_ref_exprs_attach(&exprs, &op);
  op.work = (void *)r.memory;
  functions[kind](&op);
  if (op.fault.found) report(call, kind == ULY_REF_ATTENTION ? ULY_FAULT_CAPTURE_RANGE : ULY_FAULT_INDEX_RANGE, &op.fault);
}
