#include "passes/view.h"

#include "frontend/dim_groups.h"

bool uly_view_read(uly_ir *ir, MlirOperation op, uly_view *view) {
  view->op = op;
  view->kind = uly_op_kind(op);
  view->n_in = (int)mlirOperationGetNumOperands(op);
  view->n_out = (int)mlirOperationGetNumResults(op);
  ULY_ASSERT(view->n_in <= ULY_MAX_OPERANDS && view->n_out <= ULY_MAX_OPERANDS);
  for (int i = 0; i < view->n_in + view->n_out; i++) {
    bool operand = i < view->n_in;
    int at = operand ? i : i - view->n_in;
    MlirValue value = operand ? mlirOperationGetOperand(op, at) : mlirOperationGetResult(op, at);
    uly_str error;
    if (uly_type_read(ir, mlirValueGetType(value), operand ? &view->in[at] : &view->out[at], &error)) continue;
    uly_op_error(ir, op, "uly.%s: type of %s %d: %.*s", uly_kind_get(view->kind).name, operand ? "operand" : "result", at, ULY_STR_ARG(error));
    return false;
  }
  return true;
}

// ---- dims

// Dim |d| of the result once |dim| has gone.
static int32_t shifted(int32_t d, int32_t dim, bool gone) { return gone && d > dim ? d - 1 : d; }

static int32_t rope_dim(const uly_view *v, int i, int32_t d) {
  int32_t rank = v->in[i].tensor.rank, last = v->in[0].tensor.rank - 1;
  if (d == rank - 1) return ULY_DIM_WHOLE;
  return i == 0 ? d : d + last - rank; // cos and sin have no head dim
}

int32_t uly_view_dim(const uly_view *v, int i, int32_t d) {
  int32_t last = v->in[i].tensor.rank - 1;
  switch (v->kind) {
  case ULY_KIND_MAP: return uly_op_access(v->op, i, d) < 0 ? ULY_DIM_WHOLE : uly_op_access(v->op, i, d);
  case ULY_KIND_GATHER:
    if (i == 1) return d;
    return d == 0 ? ULY_DIM_WHOLE : v->in[1].tensor.rank + d - 1;
  case ULY_KIND_LINEAR:
    if (i == 0) return d < last ? d : ULY_DIM_CONTRACTED;
    return d == 0 ? v->out[0].tensor.rank - 1 : ULY_DIM_CONTRACTED;
  case ULY_KIND_RMSNORM:
  case ULY_KIND_LAYERNORM:
  case ULY_KIND_HEADS: return i == 0 && d < last ? d : ULY_DIM_WHOLE;
  case ULY_KIND_NLL: return i == 1 || d < last ? d : ULY_DIM_WHOLE;
  case ULY_KIND_MERGE: return d < last - 1 ? d : ULY_DIM_WHOLE;
  case ULY_KIND_ROPE: return rope_dim(v, i, d);
  case ULY_KIND_SOFTMAX: return d < last ? d : ULY_DIM_WHOLE;
  case ULY_KIND_CONCAT: return d < last && uly_dim_equal(v->in[i].tensor.dims[d], v->out[0].tensor.dims[d]) ? d : ULY_DIM_WHOLE; // else stretched
  case ULY_KIND_RESHAPE: return uly_dim_reshaped(&v->in[0].tensor, &v->out[0].tensor, d);
  case ULY_KIND_SHIFT: return d;
  case ULY_KIND_SUM: {
    int32_t dim = (int32_t)uly_op_i64(v->op, "dim", 0);
    return d == dim ? ULY_DIM_CONTRACTED : shifted(d, dim, !uly_op_has(v->op, "keep"));
  }
  case ULY_KIND_SLICE: {
    int32_t dim = (int32_t)uly_op_i64(v->op, "dim", 0);
    return d == dim ? ULY_DIM_SLICED : shifted(d, dim, uly_op_has(v->op, "drop"));
  }
  default: return ULY_DIM_WHOLE;
  }
}

bool uly_view_dim_is_free(const uly_view *v, int32_t r) {
  if (v->kind != ULY_KIND_MAP) return false;
  for (int i = 0; i < v->n_in; i++)
    for (int32_t d = 0; d < v->in[i].tensor.rank; d++)
      if (uly_view_dim(v, i, d) == r) return false;
  return true;
}

// ---- shapes

typedef struct shapes {
  const uly_ir *ir;
  uly_arena *arena;
  const uly_names *names;
  const uly_view *v;
  uly_str error;
} shapes;

static bool want(shapes *s, bool ok, const char *what) {
  if (!ok && !s->error.len) s->error = uly_str_of(what);
  return ok;
}

static bool same_dim(shapes *s, const uly_type *a, int32_t i, const uly_type *b, int32_t j, const char *what) {
  if (s->error.len || uly_dim_equal(a->tensor.dims[i], b->tensor.dims[j])) return !s->error.len;
  s->error =
      uly_str_format(s->arena, "%s: dim %d is %.*s and dim %d is %.*s", what, i, ULY_STR_ARG(uly_encoding_print_dim(s->arena, s->names, a->tensor.dims[i])), j,
                     ULY_STR_ARG(uly_encoding_print_dim(s->arena, s->names, b->tensor.dims[j])));
  return false;
}

// The first |n| dims of both are equal.
static bool same_leading(shapes *s, const uly_type *a, const uly_type *b, int32_t n, const char *what) {
  bool ok = want(s, a->tensor.rank >= n && b->tensor.rank >= n, "too few dims");
  for (int32_t d = 0; ok && d < n; d++) ok = same_dim(s, a, d, b, d, what);
  return ok;
}

static void check_map(shapes *s) {
  const uly_view *v = s->v;
  MlirAttribute access = uly_op_attr(v->op, "access");
  if (!want(s, mlirArrayAttrGetNumElements(access) == v->n_in, "access has one row an operand")) return;
  for (int i = 0; i < v->n_in; i++) {
    const uly_type *x = &v->in[i];
    if (!want(s, mlirDenseArrayGetNumElements(mlirArrayAttrGetElement(access, i)) == x->tensor.rank, "an access row has one number a dim of its operand"))
      return;
    for (int32_t d = 0; d < x->tensor.rank; d++) {
      int32_t r = uly_op_access(v->op, i, d);
      if (!want(s, r >= -1 && r < v->out[0].tensor.rank, "an access names a dim that the result does not have")) return;
      if (r < 0 ? !want(s, uly_dim_equal(x->tensor.dims[d], uly_dim_const(1)), "only a dim of size 1 is stretched")
                : !same_dim(s, x, d, &v->out[0], r, "operand and result"))
        return;
    }
  }
}

static void check_linear(shapes *s) {
  const uly_type *x = &s->v->in[0], *w = &s->v->in[1], *y = &s->v->out[0];
  int32_t last = x->tensor.rank - 1;
  if (!want(s, last >= 0 && w->tensor.rank == 2 && y->tensor.rank == last + 1, "x [.., K], w [N, K] and the result [.., N]")) return;
  same_leading(s, x, y, last, "x and the result");
  same_dim(s, x, last, w, 1, "x and w");
  same_dim(s, y, last, w, 0, "the result and w");
  if (s->v->n_in > 2 && want(s, s->v->in[2].tensor.rank == 1, "a bias has one dim")) same_dim(s, &s->v->in[2], 0, w, 0, "bias and w");
}

static void check_norm(shapes *s) {
  const uly_type *x = &s->v->in[0];
  int32_t last = x->tensor.rank - 1;
  if (!want(s, last >= 0 && s->v->out[0].tensor.rank == last + 1, "a norm keeps the shape")) return;
  same_leading(s, x, &s->v->out[0], last + 1, "x and the result");
  for (int i = 1; i < s->v->n_in; i++)
    if (want(s, s->v->in[i].tensor.rank == 1, "weight and bias have one dim")) same_dim(s, x, last, &s->v->in[i], 0, "x and weight");
}

// |joined| [.., H·D], |apart| [.., H, D]
static void check_heads(shapes *s, const uly_type *joined, const uly_type *apart) {
  int32_t last = joined->tensor.rank - 1;
  if (!want(s, last >= 0 && apart->tensor.rank == last + 2, "[.., H·D] and [.., H, D]")) return;
  same_leading(s, joined, apart, last, "operand and result");
  uly_dim n = joined->tensor.dims[last], h = apart->tensor.dims[last], d = apart->tensor.dims[last + 1];
  want(s, uly_dim_is_const(n) && uly_dim_is_const(h) && uly_dim_is_const(d) && n.add == h.add * d.add, "H · D is not the size of the joined dim");
}

static void check_rope(shapes *s) {
  const uly_type *x = &s->v->in[0], *c = &s->v->in[1];
  int32_t rank = x->tensor.rank;
  if (!want(s, rank >= 3 && c->tensor.rank >= 2 && c->tensor.rank <= rank - 1, "x [.., S, H, Dh] with cos and sin [.., S, R / 2]")) return;
  same_leading(s, x, &s->v->out[0], rank, "x and the result");
  want(s, uly_tensor_type_equal(&c->tensor, &s->v->in[2].tensor), "cos and sin have one type");
  for (int32_t d = 0; d < c->tensor.rank - 1; d++) same_dim(s, c, d, x, d + rank - 1 - c->tensor.rank, "cos and x");
}

static void check_attention(shapes *s) {
  const uly_view *v = s->v;
  const uly_type *q = &v->in[0], *k = &v->in[1], *w = &v->in[2], *o = &v->out[0], *l = &v->out[1];
  if (!want(s, q->tensor.rank == 4 && k->tensor.rank == 4 && w->tensor.rank == 4 && o->tensor.rank == 4 && l->tensor.rank == 3,
            "q [B, S, H, Dh], k [B, T, K, Dh], v [B, T, K, Dv], o [B, S, H, Dv] and lse [B, S, H]"))
    return;
  same_dim(s, q, 0, k, 0, "batch of q and k");
  same_leading(s, k, w, 3, "k and v");
  same_leading(s, q, o, 3, "q and o");
  same_leading(s, q, l, 3, "q and lse");
  same_dim(s, q, 3, k, 3, "q and k");
  same_dim(s, w, 3, o, 3, "v and o");
  uly_dim h = q->tensor.dims[2], kv = k->tensor.dims[2];
  want(s, uly_dim_is_const(h) && uly_dim_is_const(kv) && kv.add > 0 && h.add % kv.add == 0, "the number of query heads is a multiple of that of kv heads");
  int64_t captures = uly_op_i64(v->op, "captures", v->n_in), sink = uly_op_i64(v->op, "sink", -1), offset = uly_op_i64(v->op, "q_offset", -1);
  bool placed = (sink < 0 || (sink >= 3 && sink < captures)) && (offset < 0 || (offset >= 3 && offset < captures));
  want(s, captures == 3 + (sink >= 0) + (offset >= 0) && captures <= v->n_in && placed && (sink != offset || sink < 0),
       "behind v come sink and q_offset, where there are such, then the captured tensors; the attributes are their operand numbers");
}

static void check_one_dim(shapes *s) {
  const uly_view *v = s->v;
  int64_t dim = uly_op_i64(v->op, "dim", 0);
  bool drops = v->kind == ULY_KIND_SUM ? !uly_op_has(v->op, "keep") : v->kind == ULY_KIND_SLICE && uly_op_has(v->op, "drop");
  if (!want(s, dim >= 0 && dim < v->in[0].tensor.rank, "there is no such dim")) return;
  if (!want(s, v->out[0].tensor.rank == v->in[0].tensor.rank - drops, "the result's number of dims")) return;
  for (int32_t d = 0; d < v->in[0].tensor.rank; d++)
    if (uly_view_dim(v, 0, d) >= 0) same_dim(s, &v->in[0], d, &v->out[0], uly_view_dim(v, 0, d), "operand and result");
  if (v->kind == ULY_KIND_SUM && !drops) want(s, uly_dim_equal(v->out[0].tensor.dims[dim], uly_dim_const(1)), "a dim that is summed and kept has size 1");
}

// b − a, where both are numbers or the same symbol is in both.
static bool difference(uly_dim b, uly_dim a, uly_dim *out) {
  if (b.symbol >= 0 && a.symbol >= 0 && a.symbol != b.symbol) return false;
  *out = (uly_dim){.symbol = b.symbol >= 0 ? b.symbol : a.symbol, .mul = b.mul - a.mul, .add = b.add - a.add};
  if (out->mul == 0) out->symbol = -1;
  return true;
}

static void check_slice(shapes *s) {
  const uly_view *v = s->v;
  uly_dim begin, end, count, behind;
  check_one_dim(s);
  if (s->error.len) return;
  int64_t dim = uly_op_i64(v->op, "dim", 0);
  if (!want(s, uly_op_dim(s->ir, v->op, "begin", &begin) && uly_op_dim(s->ir, v->op, "end", &end), "begin and end are numbers or sizes")) return;
  if (!want(s, difference(end, begin, &count), "begin and end are sizes of one symbol")) return;
  bool inside = !uly_dim_is_const(count) || count.add > 0;
  if (difference(v->in[0].tensor.dims[dim], end, &behind) && uly_dim_is_const(behind)) inside &= behind.add >= 0;
  if (!want(s, inside, "a slice lies inside its dim")) return;
  uly_dim has = uly_op_has(v->op, "drop") ? uly_dim_const(1) : v->out[0].tensor.dims[dim];
  want(s, uly_dim_equal(has, count), "the result has as many as the slice takes");
}

static void check_reshape(shapes *s) {
  uly_dim_group groups[ULY_MAX_DIM_GROUPS];
  want(s, uly_dim_groups(&s->v->in[0].tensor, &s->v->out[0].tensor, groups) >= 0, "operand and result have as many elements");
}

static void check_same(shapes *s) {
  const uly_type *x = &s->v->in[0], *y = &s->v->out[0];
  if (want(s, x->tensor.rank == y->tensor.rank, "the result has the operand's shape")) same_leading(s, x, y, x->tensor.rank, "operand and result");
}

static void check_shift(shapes *s) {
  int64_t dim = uly_op_i64(s->v->op, "dim", 0);
  check_same(s);
  want(s, dim >= 0 && dim < s->v->in[0].tensor.rank, "there is no such dim");
}

static void check_concat(shapes *s) {
  const uly_type *y = &s->v->out[0];
  int32_t last = y->tensor.rank - 1;
  uly_dim width = uly_dim_const(0);
  for (int i = 0; i < s->v->n_in; i++) {
    const uly_type *x = &s->v->in[i];
    if (!want(s, last >= 0 && x->tensor.rank == last + 1 && uly_dim_is_const(x->tensor.dims[last]), "operands [.., n_i] and the result [.., Σ n_i]")) return;
    width.add += x->tensor.dims[last].add;
    for (int32_t d = 0; d < last; d++)
      if (!uly_dim_equal(x->tensor.dims[d], uly_dim_const(1))) same_dim(s, x, d, y, d, "operand and result");
  }
  want(s, uly_dim_equal(y->tensor.dims[last], width), "the result's last dim is the sum of its operands'");
}

static void check_cast(shapes *s) {
  if (!want(s, s->v->n_in == s->v->n_out, "one result an operand")) return;
  for (int i = 0; i < s->v->n_in; i++)
    if (!uly_tensor_type_equal(&s->v->in[i].tensor, &s->v->out[i].tensor)) {
      s->error = uly_str_format(s->arena, "operand %d and result %d differ in more than their distribution", i, i);
      return;
    }
}

static void check_nll(shapes *s) {
  const uly_type *x = &s->v->in[0], *labels = &s->v->in[1], *y = &s->v->out[0];
  int32_t rank = y->tensor.rank;
  if (!want(s, x->tensor.rank == rank + 1 && labels->tensor.rank == rank, "logits [.., V] with labels [..] give [..]")) return;
  same_leading(s, x, y, rank, "logits and the result");
  same_leading(s, labels, y, rank, "labels and the result");
  want(s, labels->tensor.dtype == ULY_I32 || labels->tensor.dtype == ULY_I64, "labels are i32 or i64");
  want(s, y->tensor.dtype == ULY_F32, "a loss is f32");
}

static void check_gather(shapes *s) {
  const uly_type *w = &s->v->in[0], *ids = &s->v->in[1], *y = &s->v->out[0];
  if (!want(s, w->tensor.rank >= 1 && y->tensor.rank == ids->tensor.rank + w->tensor.rank - 1, "w [V, ..] at ids [..] gives [.., ..]")) return;
  same_leading(s, ids, y, ids->tensor.rank, "ids and the result");
  for (int32_t d = 1; d < w->tensor.rank; d++) same_dim(s, w, d, y, ids->tensor.rank + d - 1, "w and the result");
}

// Does |text| read dim |d| of captured tensor |capture| at b wherever it reads it?
static bool reads_at_batch(const uly_ir *ir, uly_str text, int32_t capture, int32_t d) {
  uly_expr expr;
  if (!text.len) return true;
  if (uly_expr_parse(ir->arena, text, ir->names.symbols, ir->names.n_symbols, &expr) != ULY_OK) return false;
  for (int32_t i = 0; i < expr.n_nodes; i++) {
    const uly_expr_node *node = &expr.nodes[i];
    if (node->op != ULY_SC_LOAD || node->index != capture) continue;
    const uly_expr_node *index = d < node->n_args ? &expr.nodes[node->args[d]] : NULL;
    if (!index || index->op != ULY_SC_COORD || index->index != ULY_COORD_B) return false;
  }
  return true;
}

int32_t uly_view_batch_dim(const uly_ir *ir, const uly_view *v, int i) {
  int32_t first = (int32_t)uly_op_i64(v->op, "captures", v->n_in);
  if (i < first && i != uly_op_i64(v->op, "q_offset", -1)) return -1;
  for (int32_t d = 0; d < v->in[i].tensor.rank; d++) {
    if (!uly_dim_equal(v->in[i].tensor.dims[d], v->in[0].tensor.dims[0])) continue;
    if (i < first || (reads_at_batch(ir, uly_op_str(v->op, "mask"), i - first, d) && reads_at_batch(ir, uly_op_str(v->op, "score"), i - first, d))) return d;
  }
  return -1;
}

uly_str uly_view_check_shapes(const uly_ir *ir, const uly_view *v) {
  shapes s = {.ir = ir, .arena = ir->arena, .names = &ir->names, .v = v};
  switch (v->kind) {
  case ULY_KIND_MAP: check_map(&s); break;
  case ULY_KIND_TABLE:
    want(&s, v->out[0].tensor.rank == 0 && v->out[0].tensor.dtype == (mlirAttributeIsADenseF64Array(uly_op_attr(v->op, "numbers")) ? ULY_F64 : ULY_I64),
         "a table's numbers are f64 or i64, [], as its result");
    break;
  case ULY_KIND_GATHER: check_gather(&s); break;
  case ULY_KIND_LINEAR: check_linear(&s); break;
  case ULY_KIND_NLL: check_nll(&s); break;
  case ULY_KIND_RMSNORM:
  case ULY_KIND_LAYERNORM: check_norm(&s); break;
  case ULY_KIND_HEADS: check_heads(&s, &v->in[0], &v->out[0]); break;
  case ULY_KIND_MERGE: check_heads(&s, &v->out[0], &v->in[0]); break;
  case ULY_KIND_ROPE: check_rope(&s); break;
  case ULY_KIND_ATTENTION: check_attention(&s); break;
  case ULY_KIND_SUM: check_one_dim(&s); break;
  case ULY_KIND_SLICE: check_slice(&s); break;
  case ULY_KIND_SOFTMAX: check_same(&s); break;
  case ULY_KIND_SHIFT: check_shift(&s); break;
  case ULY_KIND_RESHAPE: check_reshape(&s); break;
  case ULY_KIND_CONCAT: check_concat(&s); break;
  case ULY_KIND_RESHARD:
  case ULY_KIND_EXCHANGE:
  case ULY_KIND_ALL_GATHER:
  case ULY_KIND_REDUCE:
  case ULY_KIND_CUT: check_cast(&s); break;
  default: break;
  }
  return s.error;
}
