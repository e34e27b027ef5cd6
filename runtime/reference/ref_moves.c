// What moves elements and adds along one dim.
#include "runtime/reference/reference.h"

// w [V, ..], ids [..]: out [.., ..] is w[id]; zeros where an id is out of range.
void uly_ref_gather(uly_ref_op *op) {
  const uly_ref_tensor *w = &op->in[0], *ids = &op->in[1];
  int64_t width = uly_ref_product(w, 1, w->rank), last = uly_ref_width(&op->out);
  for (int64_t at = op->begin * last; at < op->end * last; at++) {
    int64_t id = ids->data[at / width].i;
    bool ok = id >= 0 && id < w->dims[0];
    if (!ok) uly_ref_fail(op, id, w->dims[0], ids, at / width);
    op->out.data[at] = ok ? w->data[id * width + at % width] : (uly_ref_cell){.i = 0};
  }
}

// The same elements in row-major order.
void uly_ref_reshape(uly_ref_op *op) {
  int64_t last = uly_ref_width(&op->out);
  for (int64_t at = op->begin * last; at < op->end * last; at++) op->out.data[at] = op->in[0].data[at];
}

// x summed over dim |i|, whether that stays as a dim of size 1 or not.
void uly_ref_sum(uly_ref_op *op) {
  const uly_ref_tensor *x = &op->in[0];
  int32_t dim = (int32_t)op->i[0];
  int64_t n = x->dims[dim], inner = uly_ref_product(x, dim + 1, x->rank), last = uly_ref_width(&op->out);
  for (int64_t at = op->begin * last; at < op->end * last; at++) {
    uly_ref_cell sum = {.i = 0}; // also 0.0
    for (int64_t j = 0; j < n; j++) {
      uly_ref_cell term = x->data[(at / inner * n + j) * inner + at % inner];
      if (x->is_int)
        sum.i = (int64_t)((uint64_t)sum.i + (uint64_t)term.i);
      else
        sum.f += term.f;
    }
    op->out.data[at] = sum;
  }
}

// x at i[1] and what follows of dim i[0], as many as the result has (one where it has lost the dim).
void uly_ref_slice(uly_ref_op *op) {
  const uly_ref_tensor *x = &op->in[0];
  int32_t dim = (int32_t)op->i[0];
  int64_t count = op->out.rank < x->rank ? 1 : op->out.dims[dim];
  int64_t n = x->dims[dim], inner = uly_ref_product(x, dim + 1, x->rank), last = uly_ref_width(&op->out);
  for (int64_t at = op->begin * last; at < op->end * last; at++) {
    int64_t outer = at / inner / count, j = at / inner % count + op->i[1];
    bool ok = j >= 0 && j < n;
    if (!ok) uly_ref_fail(op, j, n, &op->out, at);
    op->out.data[at] = ok ? x->data[(outer * n + j) * inner + at % inner] : (uly_ref_cell){.i = 0};
  }
}

// Index j of dim i[0] of the result is index j − i[1], or f.
void uly_ref_shift(uly_ref_op *op) {
  const uly_ref_tensor *x = &op->in[0];
  int32_t dim = (int32_t)op->i[0];
  int64_t n = x->dims[dim], inner = uly_ref_product(x, dim + 1, x->rank), last = uly_ref_width(&op->out);
  uly_ref_cell fill = {.f = op->f[0]};
  if (x->is_int) fill.i = (int64_t)op->f[0];
  for (int64_t at = op->begin * last; at < op->end * last; at++) {
    int64_t from = at / inner % n - op->i[1];
    op->out.data[at] = from >= 0 && from < n ? x->data[at - op->i[1] * inner] : fill;
  }
}

// The operands behind each other along dim |i|; in other dims those of size 1 are stretched.
void uly_ref_concat(uly_ref_op *op) {
  const uly_ref_tensor *out = &op->out;
  int32_t dim = (int32_t)op->i[0];
  int64_t last = uly_ref_width(out);
  for (int64_t at = op->begin * last; at < op->end * last; at++) {
    int64_t index[ULY_REF_DIMS] = {0}, rest = at, from = 0;
    const uly_ref_tensor *x = op->in;
    for (int32_t d = out->rank - 1; d >= 0; d--) index[d] = rest % out->dims[d], rest /= out->dims[d];
    for (; index[dim] >= x->dims[dim]; x++) index[dim] -= x->dims[dim];
    for (int32_t d = 0; d < out->rank; d++) from = from * x->dims[d] + (x->dims[d] == 1 ? 0 : index[d]);
    out->data[at] = x->data[from];
  }
}
