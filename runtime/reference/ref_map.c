#include "runtime/reference/reference.h"

// out[index] = element(index).
void uly_ref_map(uly_ref_op *op) {
  const uly_ref_tensor *out = &op->out;
  int64_t width = uly_ref_width(out), index[ULY_REF_DIMS] = {0}, rest = op->begin;
  for (int32_t d = out->rank - 2; d >= 0; d--) index[d] = rest % out->dims[d], rest /= out->dims[d];
  for (int64_t i = op->begin * width; i < op->end * width; i++) {
    out->data[i] = op->code.element(op->code.context, index);
    for (int32_t d = out->rank; d-- > 0;) {
      if (++index[d] < out->dims[d]) break;
      index[d] = 0;
    }
  }
}
