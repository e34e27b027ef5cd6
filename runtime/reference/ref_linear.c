#include "runtime/reference/reference.h"

void uly_ref_linear(const double *x, const double *w, const double *bias, int64_t rows, int64_t k, int64_t n, double *out) {
  for (int64_t row = 0; row < rows; row++)
    for (int64_t column = 0; column < n; column++) {
      double sum = 0.0;
      for (int64_t i = 0; i < k; i++) sum += x[row * k + i] * w[column * k + i];
      out[row * n + column] = bias ? sum + bias[column] : sum;
    }
}
