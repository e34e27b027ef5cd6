// What adds or moves along one dim: x is [outer, n, inner].
#include "runtime/reference/reference.h"

void uly_ref_sum(const double *x, int64_t outer, int64_t n, int64_t inner, double *out) {
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      double sum = 0.0;
      for (int64_t j = 0; j < n; j++) sum += x[(o * n + j) * inner + i];
      out[o * inner + i] = sum;
    }
}

void uly_ref_slice(const double *x, int64_t outer, int64_t n, int64_t inner, int64_t begin, int64_t end, double *out) {
  for (int64_t o = 0; o < outer; o++)
    for (int64_t j = begin; j < end; j++)
      for (int64_t i = 0; i < inner; i++) out[(o * (end - begin) + j - begin) * inner + i] = x[(o * n + j) * inner + i];
}

void uly_ref_shift(const double *x, int64_t outer, int64_t n, int64_t inner, int64_t by, double fill, double *out) {
  for (int64_t o = 0; o < outer; o++)
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < inner; i++) {
        bool inside = j - by >= 0 && j - by < n;
        out[(o * n + j) * inner + i] = inside ? x[(o * n + j - by) * inner + i] : fill;
      }
}
