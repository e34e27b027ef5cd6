#include "frontend/dim_groups.h"

// A number of elements: a constant times dims that are not constant, sorted.
typedef struct product {
  int64_t constant;
  uly_dim dims[ULY_GRAPH_MAX_DIMS];
  int32_t n;
} product;

static bool comes_behind(uly_dim a, uly_dim b) {
  if (a.symbol != b.symbol) return a.symbol > b.symbol;
  return a.mul != b.mul ? a.mul > b.mul : a.add > b.add;
}

static int64_t common_factor(int64_t a, int64_t b) {
  for (b = b < 0 ? -b : b; b;) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Of dims [begin, end). False: beyond 64 bits.
static bool multiply(const uly_tensor_type *type, int32_t begin, int32_t end, product *out) {
  *out = (product){.constant = 1};
  for (int32_t i = begin; i < end; i++) {
    uly_dim dim = type->dims[i];
    int64_t factor = uly_dim_is_const(dim) ? dim.add : common_factor(dim.mul, dim.add);
    if (__builtin_mul_overflow(out->constant, factor, &out->constant)) return false;
    if (uly_dim_is_const(dim)) continue;
    dim.mul /= factor;
    dim.add /= factor;
    int32_t at = out->n++;
    for (; at > 0 && comes_behind(out->dims[at - 1], dim); at--) out->dims[at] = out->dims[at - 1];
    out->dims[at] = dim;
  }
  return true;
}

static bool same_count(const uly_tensor_type *a, int32_t a_begin, int32_t a_end, const uly_tensor_type *b, int32_t b_begin, int32_t b_end) {
  product x, y;
  if (!multiply(a, a_begin, a_end, &x) || !multiply(b, b_begin, b_end, &y) || x.constant != y.constant || x.n != y.n) return false;
  for (int32_t i = 0; i < x.n; i++)
    if (!uly_dim_equal(x.dims[i], y.dims[i])) return false;
  return true;
}

static bool is_one(uly_dim dim) { return uly_dim_equal(dim, uly_dim_const(1)); }

// The shortest group that begins at |g->in| and |g->out|.
static bool end_group(const uly_tensor_type *in, const uly_tensor_type *out, uly_dim_group *g) {
  bool more_in = g->in < in->rank, more_out = g->out < out->rank;
  g->in_end = g->in + more_in;
  g->out_end = g->out + more_out;
  if (more_in && more_out && uly_dim_equal(in->dims[g->in], out->dims[g->out])) return true;
  if (more_in && is_one(in->dims[g->in])) return g->out_end = g->out, true;
  if (more_out && is_one(out->dims[g->out])) return g->in_end = g->in, true;
  for (int32_t i = g->in + 1; i <= in->rank; i++)
    for (int32_t j = g->out + 1; j <= out->rank; j++) {
      if (!same_count(in, g->in, i, out, g->out, j)) continue;
      g->in_end = i;
      g->out_end = j;
      return true;
    }
  return false;
}

int32_t uly_dim_groups(const uly_tensor_type *in, const uly_tensor_type *out, uly_dim_group *groups) {
  uly_dim_group at = {0};
  int32_t n = 0;
  if (!same_count(in, 0, in->rank, out, 0, out->rank)) return -1;
  while (at.in < in->rank || at.out < out->rank) {
    if (!end_group(in, out, &at)) return -1;
    groups[n++] = at;
    at.in = at.in_end;
    at.out = at.out_end;
  }
  return n;
}

// The first dim of [begin, end) that is not 1, −1 without one.
static int32_t outermost(const uly_tensor_type *type, int32_t begin, int32_t end) {
  while (begin < end && is_one(type->dims[begin])) begin++;
  return begin < end ? begin : -1;
}

int32_t uly_dim_reshaped(const uly_tensor_type *in, const uly_tensor_type *out, int32_t d) {
  uly_dim_group groups[ULY_MAX_DIM_GROUPS];
  int32_t n = uly_dim_groups(in, out, groups), i = 0;
  if (n < 0) return -1;
  while (d >= groups[i].in_end) i++;
  int32_t from = outermost(in, groups[i].in, groups[i].in_end), to = outermost(out, groups[i].out, groups[i].out_end);
  if (from != d || to < 0) return -1;
  uly_dim a = in->dims[from], b = out->dims[to];
  if (uly_dim_equal(a, b)) return to;
  return !uly_dim_is_const(a) && a.symbol == b.symbol && a.add == 0 && b.add == 0 ? to : -1;
}
