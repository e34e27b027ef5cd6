#include "runtime/reference/reference.h"

void uly_ref_map(int32_t rank, const int64_t *dims, double (*element)(void *context, const int64_t *index), void *context, double *out) {
  int64_t index[ULY_REF_DIMS] = {0}, count = 1;
  for (int32_t d = 0; d < rank; d++) count *= dims[d];
  for (int64_t i = 0; i < count; i++) {
    out[i] = element(context, index);
    for (int32_t d = rank; d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
}
