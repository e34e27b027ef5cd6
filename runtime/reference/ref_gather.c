#include "runtime/reference/reference.h"

bool uly_ref_gather(const double *w, const double *ids, int64_t n_ids, int64_t limit, int64_t width, double *out) {
  bool in_range = true;
  for (int64_t i = 0; i < n_ids; i++) {
    bool ok = ids[i] >= 0.0 && ids[i] < (double)limit;
    in_range &= ok;
    for (int64_t j = 0; j < width; j++) out[i * width + j] = ok ? w[(int64_t)ids[i] * width + j] : 0.0;
  }
  return in_range;
}
