#include "tests/support/graph_reference.h"

#include "runtime/reference/ref_attention.h"
#include "runtime/reference/reference.h"

typedef struct tensor {
  double *data;     // also of parameters, which are not written
  double **carried; // REPEAT: by carried value
  int64_t dims[ULY_GRAPH_MAX_DIMS], count;
  int32_t rank;
} tensor;

typedef struct walk {
  uly_arena *arena;
  const uly_graph_run *run;
  tensor *values;    // by id
  int64_t iteration; // over all open repeats, outermost slowest
} walk;

int64_t uly_graph_elements(const uly_tensor_type *type, const int64_t *sizes, int64_t *out_dims) {
  int64_t count = 1;
  for (int32_t i = 0; i < type->rank; i++) {
    uly_dim dim = type->dims[i];
    int64_t size = dim.symbol < 0 ? dim.add : dim.mul * sizes[dim.symbol] + dim.add;
    if (out_dims) out_dims[i] = size;
    count *= size;
  }
  return count;
}

// Memory is made when a value is met first; a repeat's body computes in the same place each time.
static tensor *result_of(walk *w, const uly_graph_value *value) {
  tensor *t = &w->values[value->id];
  if (t->data) return t;
  t->rank = value->type.rank;
  t->count = uly_graph_elements(&value->type, w->run->sizes, t->dims);
  t->data = ULY_NEW_ARRAY(w->arena, double, t->count + 1);
  return t;
}

static const tensor *operand(const walk *w, const uly_graph_value *value, int32_t i) { return &w->values[value->operands[i]->id]; }
static int64_t last(const tensor *t) { return t->dims[t->rank - 1]; }
static int64_t product(const tensor *t, int32_t begin, int32_t end) {
  int64_t n = 1;
  for (int32_t i = begin; i < end; i++) n *= t->dims[i];
  return n;
}

// ---- maps -----------------------------------------------------------------------------------------------------------------------------------------------------

typedef struct map_walk {
  const walk *w;
  const uly_graph_value *value;
  const int64_t *index;
  uly_status status;
} map_walk;

static uly_number map_operand(void *context, int32_t j) {
  const map_walk *m = context;
  const tensor *t = operand(m->w, m->value, j);
  int64_t at = 0;
  for (int32_t d = 0; d < t->rank; d++) {
    int8_t dim = m->value->u.map.access[j].dim[d];
    at = at * t->dims[d] + (dim < 0 ? 0 : m->index[dim]);
  }
  return uly_number_of(t->data[at]);
}

static double map_element(void *context, const int64_t *index) {
  map_walk *m = context;
  int64_t coords[ULY_COORD_MAX] = {0};
  for (int32_t d = 0; d < m->value->type.rank; d++) coords[ULY_COORD_I0 + d] = index[d];
  m->index = index;
  uly_expr_env env = {.context = m, .coords = coords, .sizes = m->w->run->sizes, .operand = map_operand};
  uly_number number = {0};
  uly_status status = uly_expr_eval(&m->value->u.map.expr, &env, &number);
  if (status != ULY_OK) m->status = status;
  return number.type == ULY_SCALAR_FLOAT ? number.f : (double)number.i;
}

static uly_status run_map(walk *w, const uly_graph_value *value, tensor *out) {
  map_walk m = {w, value, NULL, ULY_OK};
  uly_ref_map(out->rank, out->dims, map_element, &m, out->data);
  return m.status;
}

// ---- attention ------------------------------------------------------------------------------------------------------------------------------------------------

typedef struct pair_walk {
  const walk *w;
  const uly_graph_value *value;
  uly_status status;
} pair_walk;

static uly_number pair_load(void *context, int32_t j, const int64_t *indices, int n) {
  pair_walk *p = context;
  const tensor *t = operand(p->w, p->value, p->value->u.attention->captures + j);
  int64_t at = 0;
  for (int i = 0; i < n; i++) {
    if (indices[i] < 0 || indices[i] >= t->dims[i]) {
      p->status = ULY_FAULT;
      return uly_number_of(0.0);
    }
    at = at * t->dims[i] + indices[i];
  }
  return uly_number_of(t->data[at]);
}

static uly_number pair_eval(pair_walk *p, const uly_expr *expr, int64_t b, int64_t h, int64_t q, int64_t k, double s) {
  const int64_t coords[ULY_COORD_MAX] = {[ULY_COORD_B] = b, [ULY_COORD_H] = h, [ULY_COORD_Q] = q, [ULY_COORD_K] = k};
  uly_expr_env env = {.context = p, .coords = coords, .score = s, .sizes = p->w->run->sizes, .load = pair_load};
  uly_number number = {0};
  uly_status status = uly_expr_eval(expr, &env, &number);
  if (status != ULY_OK) p->status = status;
  return number;
}

static bool pair_mask(void *user, int64_t b, int64_t h, int64_t q, int64_t k) {
  pair_walk *p = user;
  return pair_eval(p, &p->value->u.attention->mask, b, h, q, k, 0.0).i != 0;
}

static double pair_score(void *user, int64_t b, int64_t h, int64_t q, int64_t k, double s) {
  pair_walk *p = user;
  uly_number number = pair_eval(p, &p->value->u.attention->score, b, h, q, k, s);
  return number.type == ULY_SCALAR_FLOAT ? number.f : (double)number.i;
}

static uly_ref_view view(const tensor *t) { return (uly_ref_view){t->data, t->dims[2] * t->dims[3], t->dims[1] * t->dims[2] * t->dims[3], t->dims[3]}; }

static uly_status run_attention(walk *w, const uly_graph_value *value, tensor *out) {
  const uly_attention_attrs *attrs = value->u.attention;
  const tensor *q = operand(w, value, 0), *k = operand(w, value, 1), *v = operand(w, value, 2);
  pair_walk p = {w, value, ULY_OK};
  uly_ref_attention a = {
      .s = q->dims[1], .t = k->dims[1], .b = q->dims[0], .h = q->dims[2], .group = q->dims[2] / k->dims[2], .dh = q->dims[3], .dv = v->dims[3]};
  a.scale = attrs->scale;
  a.q = view(q), a.k = view(k), a.v = view(v), a.out = view(out);
  a.sink = attrs->sink >= 0 ? operand(w, value, attrs->sink)->data : NULL;
  int64_t *offsets = ULY_NEW_ARRAY(w->arena, int64_t, a.b);
  const tensor *offset = attrs->q_offset >= 0 ? operand(w, value, attrs->q_offset) : NULL;
  for (int64_t b = 0; b < a.b; b++) offsets[b] = offset ? (int64_t)offset->data[offset->rank ? b : 0] : attrs->q_offset_value;
  a.q_offset = offsets;
  a.mask = pair_mask;
  a.score = attrs->has_score ? pair_score : NULL;
  a.user = &p;
  uly_ref_attention_run(&a, ULY_NEW_ARRAY(w->arena, double, a.t + 1));
  return p.status;
}

// ---- other operations -----------------------------------------------------------------------------------------------------------------------------------------

static uly_status run_region(walk *w, const uly_graph_region *region);

static uly_status run_param(walk *w, const uly_graph_value *value) {
  int64_t at = value->u.param.n_names > 1 ? w->iteration : 0;
  const double *data = w->run->param(w->run->context, value->u.param.names[at], &value->type);
  tensor *t = &w->values[value->id];
  t->rank = value->type.rank;
  t->count = uly_graph_elements(&value->type, w->run->sizes, t->dims);
  t->data = (double *)data; // never written
  return data ? ULY_OK : ULY_INVALID_INPUT;
}

static void copy_data(double *to, const double *from, int64_t count) { memcpy(to, from, sizeof(double) * (size_t)count); }

static uly_status run_repeat(walk *w, const uly_graph_value *value) {
  const uly_graph_region *body = value->u.repeat.body;
  int64_t outer = w->iteration;
  tensor *out = result_of(w, value);
  if (!out->carried) out->carried = ULY_NEW_ARRAY(w->arena, double *, value->n_operands);
  for (int32_t i = 0; i < value->n_operands; i++) {
    const tensor *initial = operand(w, value, i);
    if (!out->carried[i]) out->carried[i] = ULY_NEW_ARRAY(w->arena, double, initial->count + 1);
    copy_data(out->carried[i], initial->data, initial->count);
  }
  for (int64_t i = 0; i < value->u.repeat.count; i++) {
    w->iteration = outer * value->u.repeat.count + i;
    for (int32_t j = 0; j < body->n_values; j++) {
      if (body->values[j]->op != ULY_OP_BODY_ARG) continue;
      tensor *arg = result_of(w, body->values[j]);
      copy_data(arg->data, out->carried[body->values[j]->u.arg.index], arg->count);
    }
    ULY_TRY(run_region(w, body));
    for (int32_t j = 0; j < body->n_yields; j++) copy_data(out->carried[j], w->values[body->yields[j]->id].data, w->values[body->yields[j]->id].count);
  }
  w->iteration = outer;
  copy_data(out->data, out->carried[0], out->count);
  return ULY_OK;
}

// Results behind the first. Those of a split are there already.
static uly_status run_result(const walk *w, const uly_graph_value *value, tensor *out) {
  const uly_graph_value *of = value->operands[0];
  if (of->op == ULY_OP_REPEAT) return copy_data(out->data, w->values[of->id].carried[value->u.arg.index], out->count), ULY_OK;
  return of->op == ULY_OP_SPLIT ? ULY_OK : ULY_UNSUPPORTED;
}

// A split fills its other results too, which stand behind it.
static void run_split(walk *w, const uly_graph_value *value, const uly_graph_region *region) {
  const tensor *x = operand(w, value, 0);
  tensor *pieces[ULY_MAX_OPERANDS] = {result_of(w, value)};
  int32_t n = 1;
  for (int32_t i = 0; i < region->n_values; i++)
    if (region->values[i]->op == ULY_OP_RESULT && region->values[i]->operands[0] == value) pieces[n++] = result_of(w, region->values[i]);
  int64_t begin = 0, rows = product(x, 0, x->rank - 1);
  for (int32_t i = 0; i < n; i++) {
    uly_ref_slice(x->data, rows, last(x), 1, begin, begin + last(pieces[i]), pieces[i]->data);
    begin += last(pieces[i]);
  }
}

static void run_concat(walk *w, const uly_graph_value *value, tensor *out) {
  int64_t begin = 0, rows = product(out, 0, out->rank - 1), width = last(out);
  for (int32_t i = 0; i < value->n_operands; i++) {
    const tensor *x = operand(w, value, i);
    for (int64_t row = 0; row < rows; row++) {
      int64_t rest = row, at = 0, step = 1; // the operand's row, where its dims may be 1
      for (int32_t d = out->rank - 2; d >= 0; d--) {
        int64_t index = rest % out->dims[d];
        rest /= out->dims[d];
        at += (x->dims[d] == 1 ? 0 : index) * step;
        step *= x->dims[d];
      }
      memcpy(out->data + row * width + begin, x->data + at * last(x), sizeof(double) * (size_t)last(x));
    }
    begin += last(x);
  }
}

static uly_status run_along(const uly_graph_value *value, const tensor *x, tensor *out) {
  int32_t dim = value->op == ULY_OP_SUM ? value->u.sum.dim : value->op == ULY_OP_SLICE ? value->u.slice.dim : value->u.shift.dim;
  int64_t outer = product(x, 0, dim), n = x->dims[dim], inner = product(x, dim + 1, x->rank);
  if (value->op == ULY_OP_SUM) return uly_ref_sum(x->data, outer, n, inner, out->data), ULY_OK;
  if (value->op == ULY_OP_SHIFT) return uly_ref_shift(x->data, outer, n, inner, value->u.shift.n, value->u.shift.fill, out->data), ULY_OK;
  if (value->u.slice.begin < 0 || value->u.slice.end > n) return ULY_FAULT;
  return uly_ref_slice(x->data, outer, n, inner, value->u.slice.begin, value->u.slice.end, out->data), ULY_OK;
}

static uly_status run_value(walk *w, const uly_graph_value *value, const uly_graph_region *region) {
  if (value->op == ULY_OP_PARAM) return run_param(w, value);
  if (value->op == ULY_OP_REPEAT) return run_repeat(w, value);
  tensor *out = result_of(w, value);
  const tensor *x = value->n_operands > 0 ? operand(w, value, 0) : NULL, *y = value->n_operands > 1 ? operand(w, value, 1) : NULL;
  const double *third = value->n_operands > 2 ? operand(w, value, 2)->data : NULL;
  switch (value->op) {
  case ULY_OP_INPUT: return copy_data(out->data, w->run->inputs[value->u.arg.index], out->count), ULY_OK;
  case ULY_OP_BODY_ARG: return ULY_OK; // filled by the repeat
  case ULY_OP_RESULT: return run_result(w, value, out);
  case ULY_OP_MAP: return run_map(w, value, out);
  case ULY_OP_GATHER: return uly_ref_gather(x->data, y->data, y->count, x->dims[0], product(x, 1, x->rank), out->data) ? ULY_OK : ULY_FAULT;
  case ULY_OP_LINEAR: return uly_ref_linear(x->data, y->data, third, product(x, 0, x->rank - 1), last(x), last(out), out->data), ULY_OK;
  case ULY_OP_RMSNORM: return uly_ref_rmsnorm(x->data, y->data, x->count / last(x), last(x), value->u.norm.eps, out->data), ULY_OK;
  case ULY_OP_LAYERNORM: return uly_ref_layernorm(x->data, y->data, third, x->count / last(x), last(x), value->u.norm.eps, out->data), ULY_OK;
  case ULY_OP_SOFTMAX: return uly_ref_softmax(x->data, x->count / last(x), last(x), out->data), ULY_OK;
  case ULY_OP_HEADS:
  case ULY_OP_MERGE:
  case ULY_OP_RESHAPE: return copy_data(out->data, x->data, out->count), ULY_OK;
  case ULY_OP_ROPE:
    uly_ref_rope(x->data, y->data, third, product(x, 0, 2), x->dims[2], last(x), 2 * last(y), value->u.rope.interleaved, out->data);
    return ULY_OK;
  case ULY_OP_ATTENTION: return run_attention(w, value, out);
  case ULY_OP_SUM:
  case ULY_OP_SHIFT:
  case ULY_OP_SLICE: return run_along(value, x, out);
  case ULY_OP_SPLIT: return run_split(w, value, region), ULY_OK;
  case ULY_OP_CONCAT: return run_concat(w, value, out), ULY_OK;
  case ULY_OP_NLL: return uly_ref_nll(x->data, y->data, y->count, last(x), (double)value->u.nll.ignore, out->data) ? ULY_OK : ULY_FAULT;
  case ULY_OP_PARAM:
  case ULY_OP_REPEAT:
  case ULY_N_OPS: break;
  }
  return ULY_UNSUPPORTED;
}

static uly_status run_region(walk *w, const uly_graph_region *region) {
  for (int32_t i = 0; i < region->n_values; i++) ULY_TRY(run_value(w, region->values[i], region));
  return ULY_OK;
}

uly_status uly_graph_reference(uly_arena *arena, const uly_graph_run *run, double **out_results) {
  walk w = {.arena = arena, .run = run, .values = ULY_NEW_ARRAY(arena, tensor, run->entry->n_values)};
  ULY_TRY(run_region(&w, &run->entry->body));
  for (int32_t i = 0; i < run->entry->n_results; i++) out_results[i] = w.values[run->entry->results[i].value->id].data;
  return ULY_OK;
}
