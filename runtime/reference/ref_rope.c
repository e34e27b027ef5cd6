#include "runtime/reference/reference.h"

void uly_ref_rope(const double *x, const double *cosine, const double *sine, int64_t rows, int64_t heads, int64_t dh, int64_t turned, bool interleaved,
                  double *out) {
  int64_t half = turned / 2;
  for (int64_t row = 0; row < rows; row++)
    for (int64_t head = 0; head < heads; head++) {
      const double *in = x + (row * heads + head) * dh;
      double *to = out + (row * heads + head) * dh;
      for (int64_t j = 0; j < half; j++) {
        double c = cosine[row * half + j], s = sine[row * half + j];
        int64_t a = interleaved ? 2 * j : j, b = interleaved ? 2 * j + 1 : j + half;
        to[a] = in[a] * c - in[b] * s;
        to[b] = in[b] * c + in[a] * s;
      }
      for (int64_t j = turned; j < dh; j++) to[j] = in[j];
    }
}
