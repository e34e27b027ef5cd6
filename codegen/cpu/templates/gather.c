// out[i0 … i5, :] = w[ids[i0 … i5], :]: rows of a table, as bytes; calling convention in kernel_abi.h. An id outside [0, limit) is a fault and gives zeros.
// Bits: a copy.
#include "codegen/cpu/templates/copy_bytes.h"
#include "codegen/cpu/templates/fault.h"

ULY_CONST(int64_t, uly_gather_wide); // ids are i64, else i32

ULY_INLINE int64_t id_at(const uly_call *call, int64_t i) {
  const void *ids = ptr(call, ULY_GATHER_IDS);
  return uly_gather_wide ? ((const int64_t *)ids)[i] : ((const int32_t *)ids)[i];
}

ULY_KERNEL(uly_kernel_gather) {
  const int64_t *const *v = call->val;
  const int64_t row_bytes = val(call, ULY_GATHER_ROW_BYTES), limit = val(call, ULY_GATHER_LIMIT), pitch = val(call, ULY_GATHER_W_0);
  const char *table = ptr(call, ULY_GATHER_W);
  int64_t i[ULY_GATHER_DIMS], rest = call->lo;
  if (call->lo >= call->hi) return;
  for (int d = ULY_GATHER_DIMS - 1; d >= 0; d--) i[d] = rest % v[ULY_GATHER_N0 + d][0], rest /= v[ULY_GATHER_N0 + d][0];
  for (int64_t item = call->lo; item < call->hi; item++) {
    int64_t at = 0, to = 0;
    for (int d = 0; d < ULY_GATHER_DIMS; d++) at += i[d] * v[ULY_GATHER_IDS_0 + d][0], to += i[d] * v[ULY_GATHER_OUT_0 + d][0];
    int64_t id = id_at(call, at);
    char *out = (char *)ptr(call, ULY_GATHER_OUT) + to;
    if (id >= 0 && id < limit) {
      copy_bytes(out, table + id * pitch, row_bytes);
    } else {
      report_index(call, id, limit, ULY_GATHER_START_0, ULY_GATHER_DIMS, i);
      zero_bytes(out, row_bytes);
    }
    for (int d = ULY_GATHER_DIMS - 1; d >= 0 && ++i[d] == v[ULY_GATHER_N0 + d][0]; d--) i[d] = 0;
  }
}
