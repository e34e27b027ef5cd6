#include "runtime/reference/reference.h"

// x [B, S, H, Dh], cos and sin [B, S, R / 2]. Pairs are (j, j + R / 2), or (2 j, 2 j + 1) where |i|; the features behind R stay.
void uly_ref_rope(uly_ref_op *op) {
  const uly_ref_tensor *x = &op->in[0], *cosine = &op->in[1], *sine = &op->in[2];
  int64_t dh = uly_ref_width(x), half = uly_ref_width(cosine), heads = x->dims[x->rank - 2];
  for (int64_t row = op->begin; row < op->end; row++) {
    const uly_ref_cell *in = x->data + row * dh;
    uly_ref_cell *to = op->out.data + row * dh;
    for (int64_t j = 0; j < half; j++) {
      double c = cosine->data[row / heads * half + j].f, s = sine->data[row / heads * half + j].f;
      int64_t a = op->i[0] ? 2 * j : j, b = op->i[0] ? 2 * j + 1 : j + half;
      to[a].f = in[a].f * c - in[b].f * s;
      to[b].f = in[b].f * c + in[a].f * s;
    }
    for (int64_t j = 2 * half; j < dh; j++) to[j] = in[j];
  }
}
