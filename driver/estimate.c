// Exchange and memory sizes from the graph: see estimate.h.
#include "driver/estimate.h"

#include "runtime/kernel_abi.h" // ULY_EXACT_LIMBS

static int64_t mul(int64_t a, int64_t b) {
  int64_t r;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) ? ULY_SIZE_OVERFLOW : r;
}

static int64_t add(int64_t a, int64_t b) {
  int64_t r;
  return a < 0 || b < 0 || __builtin_add_overflow(a, b, &r) ? ULY_SIZE_OVERFLOW : r;
}

bool uly_estimate_dim(uly_dim dim, const uly_sizes *sizes, int64_t *out_size) {
  bool overflow = false;
  *out_size = dim.add;
  if (dim.symbol >= 0) overflow = __builtin_mul_overflow(dim.mul, sizes->symbols[dim.symbol], out_size) || __builtin_add_overflow(*out_size, dim.add, out_size);
  if (overflow) *out_size = ULY_SIZE_OVERFLOW;
  return overflow || *out_size >= 0;
}

static int64_t size_of(uly_dim dim, const uly_sizes *sizes) {
  int64_t n;
  return uly_estimate_dim(dim, sizes, &n) ? n : ULY_SIZE_OVERFLOW;
}

int64_t uly_estimate_elements(const uly_tensor_type *type, const uly_sizes *sizes) {
  int64_t n = 1;
  for (int d = 0; d < type->rank; d++) n = mul(n, size_of(type->dims[d], sizes));
  return n;
}

// Rows of |n| that rank |r| of |ranks| holds, and where they start: ⌊n/P⌋ + (r < n mod P).
static int64_t share(int64_t n, int64_t ranks, int64_t r) { return n / ranks + (r < n % ranks); }
static int64_t start(int64_t n, int64_t ranks, int64_t r) { return r * (n / ranks) + (r < n % ranks ? r : n % ranks); }

// Rows of a dim that rank r holds: it is cut in units of its symbol.
static int64_t rows_of(uly_dim dim, const uly_sizes *sizes, int64_t ranks, int64_t r) { return mul(dim.mul, share(sizes->symbols[dim.symbol], ranks, r)); }

static int row_dim(const uly_graph *graph, int axis, const uly_tensor_type *type) { return uly_axis_dim(&graph->axes[axis], type); }

// The largest share of dim |d| that a rank has, over all axes but |except|.
static int64_t local_dim(const uly_graph *graph, const uly_tensor_type *type, int d, int except, const uly_sizes *sizes) {
  for (int a = 0; a < graph->n_axes; a++)
    if (a != except && row_dim(graph, a, type) == d) return rows_of(type->dims[d], sizes, sizes->ranks[a], 0);
  return size_of(type->dims[d], sizes);
}

// The largest share of |type|'s elements that a rank has, over all axes but |except|, dim |without| left out.
static int64_t local_elements(const uly_graph *graph, const uly_tensor_type *type, int without, int except, const uly_sizes *sizes) {
  int64_t n = 1;
  for (int d = 0; d < type->rank; d++)
    if (d != without) n = mul(n, local_dim(graph, type, d, except, sizes));
  return n;
}

// Heads of |value| that rank r works on: of q its share, of k and v those that its q heads read.
static int64_t heads_of(const uly_graph_value *q, const uly_graph_value *value, int64_t ranks, int64_t r) {
  int64_t n_q = q->type.dims[2].add, n = value->type.dims[2].add, group = n_q / n;
  int64_t begin = start(n_q, ranks, r), end = begin + share(n_q, ranks, r);
  return begin == end ? 0 : (end + group - 1) / group - begin / group;
}

// One of the tensors of an attention over an axis of rows: rank r's of its rows · heads to the others; |all|: heads that all ranks together get of it.
static int64_t tensor_sent(const uly_graph *graph, const uly_graph_value *q, const uly_graph_value *t, int64_t all, int axis, const uly_sizes *sizes,
                           int64_t r) {
  int64_t ranks = sizes->ranks[axis], width = t->type.dims[3].add;
  int64_t unit = mul(mul(uly_dtype_bytes(t->type.dtype), local_dim(graph, &t->type, 0, axis, sizes)), width);
  return mul(unit, mul(rows_of(t->type.dims[1], sizes, ranks, r), all - heads_of(q, t, ranks, r)));
}

// Over the axis of the query rows q, k and v go from rows to heads, and o comes back.
static int64_t attention_sent(const uly_graph *graph, const uly_graph_value *value, int axis, const uly_sizes *sizes) {
  const uly_graph_value *q = value->operands[0], *v = value->operands[2];
  int64_t ranks = sizes->ranks[axis], most = 0, all[3] = {0};
  if (row_dim(graph, axis, &q->type) != 1) return 0;
  for (int i = 0; i < 3; i++)
    for (int64_t r = 0; r < ranks; r++) all[i] += heads_of(q, value->operands[i], ranks, r);
  int64_t unit = mul(mul(uly_dtype_bytes(q->type.dtype), local_dim(graph, &q->type, 0, axis, sizes)), v->type.dims[3].add);
  for (int64_t r = 0; r < ranks; r++) {
    int64_t rows = size_of(q->type.dims[1], sizes), sent = 0;
    if (rows >= 0) sent = mul(unit, mul(heads_of(q, q, ranks, r), rows - rows_of(q->type.dims[1], sizes, ranks, r)));
    for (int i = 0; i < 3; i++)
      if (row_dim(graph, axis, &value->operands[i]->type) == 1) sent = add(sent, tensor_sent(graph, q, value->operands[i], all[i], axis, sizes, r));
    if (sent < 0 || rows < 0) return ULY_SIZE_OVERFLOW;
    if (sent > most) most = sent;
  }
  return most;
}

// Parts of an exact sum, of floats ULY_EXACT_LIMBS 64-bit integers each, of ints one, go to every other rank.
static int64_t sum_sent(const uly_graph *graph, const uly_graph_value *value, int axis, const uly_sizes *sizes) {
  if (row_dim(graph, axis, &value->operands[0]->type) != value->u.sum.dim) return 0;
  return mul(sizes->ranks[axis] - 1, mul(local_elements(graph, &value->type, -1, axis, sizes), value->type.dtype == ULY_I64 ? 8 : ULY_EXACT_LIMBS * 8));
}

// Every rank gets the whole slice: each sends what it holds of it.
static int64_t slice_sent(const uly_graph *graph, const uly_graph_value *value, int axis, const uly_sizes *sizes) {
  const uly_tensor_type *from = &value->operands[0]->type;
  int d = value->u.slice.dim;
  if (row_dim(graph, axis, from) != d) return 0;
  int64_t ranks = sizes->ranks[axis], begin = size_of(value->u.slice.begin, sizes), end = size_of(value->u.slice.end, sizes), most = 0;
  if (begin < 0 || end < 0) return ULY_SIZE_OVERFLOW;
  for (int64_t r = 0; r < ranks; r++) {
    int64_t first = from->dims[d].mul * start(sizes->symbols[from->dims[d].symbol], ranks, r), last = first + rows_of(from->dims[d], sizes, ranks, r);
    int64_t held = (end < last ? end : last) - (begin > first ? begin : first);
    if (held > most) most = held;
  }
  return mul(mul(ranks - 1, most), mul(local_elements(graph, from, d, axis, sizes), uly_dtype_bytes(value->type.dtype)));
}

// Every rank gets the first or last n rows of each.
static int64_t shift_sent(const uly_graph *graph, const uly_graph_value *value, int axis, const uly_sizes *sizes) {
  int d = value->u.shift.dim;
  if (row_dim(graph, axis, &value->type) != d) return 0;
  int64_t held = rows_of(value->type.dims[d], sizes, sizes->ranks[axis], 0), n = value->u.shift.n;
  if (n > -held && n < held) held = n < 0 ? -n : n;
  return mul(mul(sizes->ranks[axis] - 1, held), mul(local_elements(graph, &value->type, d, axis, sizes), uly_dtype_bytes(value->type.dtype)));
}

int64_t uly_estimate_sent(const uly_graph *graph, const uly_graph_value *value, int axis, const uly_sizes *sizes) {
  switch (value->op) {
  case ULY_OP_ATTENTION: return attention_sent(graph, value, axis, sizes);
  case ULY_OP_SUM: return sum_sent(graph, value, axis, sizes);
  case ULY_OP_SLICE: return slice_sent(graph, value, axis, sizes);
  case ULY_OP_SHIFT: return shift_sent(graph, value, axis, sizes);
  default: return 0;
  }
}

// ---- memory

static int64_t parameters_in(const uly_graph_region *region) {
  static const uly_sizes none = {0};
  int64_t bytes = 0;
  for (int32_t i = 0; i < region->n_values; i++) {
    const uly_graph_value *v = region->values[i];
    if (v->op == ULY_OP_PARAM) bytes = add(bytes, mul(v->u.param.n_names, mul(uly_dtype_bytes(v->type.dtype), uly_estimate_elements(&v->type, &none))));
    if (v->op == ULY_OP_REPEAT) bytes = add(bytes, parameters_in(v->u.repeat.body));
  }
  return bytes;
}

int64_t uly_estimate_parameters(const uly_graph_entry *entry) { return parameters_in(&entry->body); }

// The largest share that any rank has of the value.
static int64_t local_bytes(const uly_graph *graph, const uly_graph_value *v, const uly_sizes *sizes) {
  if (v->op == ULY_OP_PARAM || v->op == ULY_OP_TABLE || v->op == ULY_OP_RESULT || v->op == ULY_OP_BODY_ARG) return 0;
  return mul(uly_dtype_bytes(v->type.dtype), local_elements(graph, &v->type, -1, -1, sizes));
}

// For each value of an entry, by id: how deep in repeats it is defined, and the step of its region behind which nobody reads it.
typedef struct liveness {
  const uly_graph *graph;
  const uly_sizes *sizes;
  int32_t *depth, *last_use;
} liveness;

static void mark_uses(const liveness *l, const uly_graph_region *region, int32_t depth, int32_t step) {
  for (int32_t i = 0; i < region->n_values; i++) {
    const uly_graph_value *v = region->values[i];
    for (int k = 0; k < v->n_operands; k++)
      if (l->depth[v->operands[k]->id] == depth) l->last_use[v->operands[k]->id] = step < 0 ? i : step;
    if (v->op == ULY_OP_REPEAT) mark_uses(l, v->u.repeat.body, depth, step < 0 ? i : step);
  }
}

// Bytes of the values of |depth| that |region| reads and that die at |step|.
static int64_t dead_after(const liveness *l, const uly_graph_region *region, const uly_graph_value *v, int32_t depth, int32_t step) {
  int64_t bytes = 0;
  for (int k = 0; v && k < v->n_operands; k++) {
    const uly_graph_value *o = v->operands[k];
    if (l->depth[o->id] != depth || l->last_use[o->id] != step) continue;
    bytes += local_bytes(l->graph, o, l->sizes);
    l->last_use[o->id] = -1; // it may be read twice
  }
  for (int32_t i = 0; region && i < region->n_values; i++) {
    const uly_graph_value *inner = region->values[i];
    bytes += dead_after(l, inner->op == ULY_OP_REPEAT ? inner->u.repeat.body : NULL, inner, depth, step);
  }
  return bytes;
}

static int64_t peak_of(const liveness *l, const uly_graph_region *region, int32_t depth) {
  int64_t live = 0, peak = 0;
  for (int32_t i = 0; i < region->n_values; i++) l->depth[region->values[i]->id] = depth;
  mark_uses(l, region, depth, -1);
  for (int32_t i = 0; i < region->n_values; i++) {
    const uly_graph_value *v = region->values[i];
    const uly_graph_region *body = v->op == ULY_OP_REPEAT ? v->u.repeat.body : NULL;
    live = add(live, local_bytes(l->graph, v, l->sizes));
    int64_t now = add(live, body ? peak_of(l, body, depth + 1) : 0);
    if (now < 0) return ULY_SIZE_OVERFLOW;
    if (now > peak) peak = now;
    live -= dead_after(l, body, v, depth, i);
  }
  return peak;
}

int64_t uly_estimate_activations(uly_arena *arena, const uly_graph *graph, const uly_graph_entry *entry, const uly_sizes *sizes) {
  liveness l = {graph, sizes, ULY_NEW_ARRAY(arena, int32_t, entry->n_values + 1), ULY_NEW_ARRAY(arena, int32_t, entry->n_values + 1)};
  for (int32_t i = 0; i < entry->n_values; i++) l.last_use[i] = l.depth[i] = -1;
  return peak_of(&l, &entry->body, 0);
}
