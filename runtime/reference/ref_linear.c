#include "runtime/reference/reference.h"

// x [.., K], w [N, K], bias [N]?: out[.., n] = Σ_k x[.., k] · w[n, k] + bias[n].
void uly_ref_linear(uly_ref_op *op) {
  const uly_ref_tensor *x = &op->in[0], *w = &op->in[1];
  const uly_ref_cell *bias = op->n_in > 2 ? op->in[2].data : NULL;
  int64_t k = uly_ref_width(x), n = uly_ref_width(&op->out);
  for (int64_t row = op->begin; row < op->end; row++)
    for (int64_t column = 0; column < n; column++) {
      double sum = 0.0;
      for (int64_t i = 0; i < k; i++) sum += x->data[row * k + i].f * w->data[column * k + i].f;
      op->out.data[row * n + column].f = bias ? sum + bias[column].f : sum;
    }
}
