#include "tests/unit/scale_kernels.h"

// w -> packed. Item: an element.
void scale_pack(const uly_call *c) {
  for (int64_t i = c->lo; i < c->hi; i++) ((float *)c->op[1].p[0])[i] = ((const float *)c->op[0].p[0])[i];
}

// x, packed, w, out; value D. Item: a row, by way of scratch. Packed weights that are not the parameter give NaN.
void scale_multiply(const uly_call *c) {
  const float *packed = c->op[1].p[0], *w = c->op[2].p[0];
  float *row = c->scratch;
  int64_t d = c->val[0][0];
  for (int64_t r = c->lo; r < c->hi; r++) {
    for (int64_t i = 0; i < d; i++) row[i] = ((const float *)c->op[0].p[0])[r * d + i];
    for (int64_t i = 0; i < d; i++) ((float *)c->op[3].p[0])[r * d + i] = row[i] * (packed[i] == w[i] ? packed[i] : __builtin_nanf(""));
  }
}

// x, peers; values rows, D. One item: the sum over this rank's rows of column 0, to everyone.
void scale_partial(const uly_call *c) {
  double sum = 0;
  for (int64_t r = 0; r < c->val[0][0]; r++) sum += (double)((const float *)c->op[0].p[0])[r * c->val[1][0]];
  for (int64_t p = 0; p < c->n_peers; p++) *(double *)c->op[1].p[p] = sum;
}

// x, segments, out; value D. Item: a row, to which the sum of all ranks' sums is added.
void scale_finish(const uly_call *c) {
  double sum = 0;
  for (int64_t p = 0; p < c->n_peers; p++) sum += *(const double *)c->op[1].p[p];
  for (int64_t i = c->lo * c->val[0][0]; i < c->hi * c->val[0][0]; i++) ((float *)c->op[2].p[0])[i] = ((const float *)c->op[0].p[0])[i] + (float)sum;
}
