// What normalises along the last dim.
#include "runtime/reference/reference.h"

#include <math.h>

void uly_ref_rmsnorm(const double *x, const double *weight, int64_t rows, int64_t n, double eps, double *out) {
  for (int64_t row = 0; row < rows; row++) {
    const double *in = x + row * n;
    double squares = 0.0;
    for (int64_t i = 0; i < n; i++) squares += in[i] * in[i];
    double scale = 1.0 / sqrt(squares / (double)n + eps);
    for (int64_t i = 0; i < n; i++) out[row * n + i] = in[i] * scale * weight[i];
  }
}

void uly_ref_layernorm(const double *x, const double *weight, const double *bias, int64_t rows, int64_t n, double eps, double *out) {
  for (int64_t row = 0; row < rows; row++) {
    const double *in = x + row * n;
    double mean = 0.0, variance = 0.0;
    for (int64_t i = 0; i < n; i++) mean += in[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++) variance += (in[i] - mean) * (in[i] - mean);
    double scale = 1.0 / sqrt(variance / (double)n + eps);
    for (int64_t i = 0; i < n; i++) out[row * n + i] = (in[i] - mean) * scale * weight[i] + (bias ? bias[i] : 0.0);
  }
}

static double largest(const double *x, int64_t n) {
  double most = x[0];
  for (int64_t i = 1; i < n; i++) most = isnan(x[i]) || x[i] > most ? x[i] : most;
  return most;
}

void uly_ref_softmax(const double *x, int64_t rows, int64_t n, double *out) {
  for (int64_t row = 0; row < rows; row++) {
    const double *in = x + row * n;
    double most = largest(in, n), sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += exp(in[i] - most);
    for (int64_t i = 0; i < n; i++) out[row * n + i] = exp(in[i] - most) / sum;
  }
}

bool uly_ref_nll(const double *logits, const double *labels, int64_t rows, int64_t classes, double ignore, double *out) {
  bool in_range = true;
  for (int64_t row = 0; row < rows; row++) {
    const double *in = logits + row * classes;
    out[row] = 0.0;
    if (labels[row] == ignore) continue;
    if (labels[row] < 0.0 || labels[row] >= (double)classes) {
      in_range = false;
      continue;
    }
    double most = largest(in, classes), sum = 0.0;
    for (int64_t i = 0; i < classes; i++) sum += exp(in[i] - most);
    out[row] = most + log(sum) - in[(int64_t)labels[row]];
  }
  return in_range;
}
