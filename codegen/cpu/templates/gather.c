// out[i0, i1, :] = w[ids[i0, i1], :]: rows of a table, as bytes; calling convention in kernel_abi.h. An id outside [0, limit) is a fault and gives zeros.
// Bits: a copy.
#include "codegen/cpu/templates/copy_bytes.h"
#include "codegen/cpu/templates/fault.h"

ULY_CONST(int64_t, uly_gather_wide); // ids are i64, else i32

ULY_INLINE int64_t id_at(const uly_call *call, int64_t i) {
  const void *ids = ptr(call, ULY_GATHER_IDS);
  return uly_gather_wide ? ((const int64_t *)ids)[i] : ((const int32_t *)ids)[i];
}

ULY_KERNEL(uly_kernel_gather) {
  int64_t n1 = val(call, ULY_GATHER_N1), row_bytes = val(call, ULY_GATHER_ROW_BYTES), limit = val(call, ULY_GATHER_LIMIT);
  const char *table = ptr(call, ULY_GATHER_W);
  for (int64_t item = call->lo; item < call->hi; item++) {
    int64_t i0 = item / n1, i1 = item % n1, id = id_at(call, i0 * val(call, ULY_GATHER_IDS_0) + i1 * val(call, ULY_GATHER_IDS_1));
    char *out = (char *)ptr(call, ULY_GATHER_OUT) + i0 * val(call, ULY_GATHER_OUT_0) + i1 * val(call, ULY_GATHER_OUT_1);
    if (id >= 0 && id < limit) {
      copy_bytes(out, table + id * row_bytes, row_bytes);
    } else {
      report_index(call, id, limit, ULY_GATHER_START_0, 2, (const int64_t[]){i0, i1});
      zero_bytes(out, row_bytes);
    }
  }
}
