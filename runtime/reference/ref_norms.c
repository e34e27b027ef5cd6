// What normalises along the last dim.
#include <math.h>

#include "runtime/reference/reference.h"

// x, weight [N]: x · rsqrt(mean(x²) + eps) · weight. f: eps.
void uly_ref_rmsnorm(uly_ref_op *op) {
  const uly_ref_cell *weight = op->in[1].data;
  int64_t n = uly_ref_width(&op->out);
  for (int64_t row = op->begin; row < op->end; row++) {
    const uly_ref_cell *in = op->in[0].data + row * n;
    double squares = 0.0;
    for (int64_t i = 0; i < n; i++) squares += in[i].f * in[i].f;
    double scale = 1.0 / sqrt(squares / (double)n + op->f[0]);
    for (int64_t i = 0; i < n; i++) op->out.data[row * n + i].f = in[i].f * scale * weight[i].f;
  }
}

// x, weight [N], bias [N]?: (x − mean) · rsqrt(var + eps) · weight + bias. f: eps.
void uly_ref_layernorm(uly_ref_op *op) {
  const uly_ref_cell *weight = op->in[1].data, *bias = op->n_in > 2 ? op->in[2].data : NULL;
  int64_t n = uly_ref_width(&op->out);
  for (int64_t row = op->begin; row < op->end; row++) {
    const uly_ref_cell *in = op->in[0].data + row * n;
    double mean = 0.0, variance = 0.0;
    for (int64_t i = 0; i < n; i++) mean += in[i].f;
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++) variance += (in[i].f - mean) * (in[i].f - mean);
    double scale = 1.0 / sqrt(variance / (double)n + op->f[0]);
    for (int64_t i = 0; i < n; i++) op->out.data[row * n + i].f = (in[i].f - mean) * scale * weight[i].f + (bias ? bias[i].f : 0.0);
  }
}

static double largest(const uly_ref_cell *x, int64_t n) {
  double most = x[0].f;
  for (int64_t i = 1; i < n; i++) most = isnan(x[i].f) || x[i].f > most ? x[i].f : most;
  return most;
}

void uly_ref_softmax(uly_ref_op *op) {
  int64_t n = uly_ref_width(&op->out);
  for (int64_t row = op->begin; row < op->end; row++) {
    const uly_ref_cell *in = op->in[0].data + row * n;
    double most = largest(in, n), sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += exp(in[i].f - most);
    for (int64_t i = 0; i < n; i++) op->out.data[row * n + i].f = exp(in[i].f - most) / sum;
  }
}

// logits [.., V], labels [..]: log Σ exp(logits) − logits[label]; 0 where the label is |i|, or out of range.
void uly_ref_nll(uly_ref_op *op) {
  const uly_ref_tensor *labels = &op->in[1];
  int64_t classes = uly_ref_width(&op->in[0]), width = uly_ref_width(&op->out);
  for (int64_t at = op->begin * width; at < op->end * width; at++) {
    const uly_ref_cell *in = op->in[0].data + at * classes;
    int64_t label = labels->data[at].i;
    bool ok = label >= 0 && label < classes, ignored = label == op->i[0];
    op->out.data[at].f = 0.0;
    if (!ok && !ignored) uly_ref_fail(op, label, classes, labels, at);
    if (!ok || ignored) continue;
    double most = largest(in, classes), sum = 0.0;
    for (int64_t i = 0; i < classes; i++) sum += exp(in[i].f - most);
    op->out.data[at].f = most + log(sum) - in[label].f;
  }
}
