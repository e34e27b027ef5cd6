#include "runtime/capi.h"

#include <stdarg.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#define SAME(ours, theirs, field, other)                                                                                                                       \
  _Static_assert(offsetof(ours, field) == offsetof(theirs, other) && sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->other), "DLPack's " #other)
_Static_assert(sizeof(ulyrt_tensor) == sizeof(DLTensor) && sizeof(ulyrt_dtype) == sizeof(DLDataType), "DLPack's sizes");
SAME(ulyrt_tensor, DLTensor, data, data);
SAME(ulyrt_tensor, DLTensor, device, device);
SAME(ulyrt_tensor, DLTensor, ndim, ndim);
SAME(ulyrt_tensor, DLTensor, dtype, dtype);
SAME(ulyrt_tensor, DLTensor, shape, shape);
SAME(ulyrt_tensor, DLTensor, strides, strides);
SAME(ulyrt_tensor, DLTensor, byte_offset, byte_offset);
SAME(ulyrt_dtype, DLDataType, code, code);
SAME(ulyrt_dtype, DLDataType, bits, bits);
SAME(ulyrt_dtype, DLDataType, lanes, lanes);
_Static_assert(kDLInt == 0 && kDLUInt == 1 && kDLFloat == 2 && kDLBfloat == 4 && kDLCPU == 1, "DLPack's codes");
#endif
#endif

#define STATUS(name, code, exit_code, text) _Static_assert(ULYRT_##name == (code), #name);
#include "runtime/base/status.def"
_Static_assert(ULYRT_MAX_DIMS == ULY_MAX_DIMS && ULYRT_MAX_LOOPS == ULY_MAX_LOOPS && (int)ULYRT_INPUT == ULY_INPUT && (int)ULYRT_OUTPUT == ULY_OUTPUT &&
                   (int)ULYRT_PARAM == ULY_PARAM,
               "ulyrt.h and abi.h");

uint32_t ulyrt_abi_version(void) { return ULYRT_ABI_MAJOR << 16 | ULYRT_ABI_MINOR; }
const char *ulyrt_version(void) { return ULY_VERSION; }
const char *ulyrt_status_text(ulyrt_status status) { return uly_status_text((uly_status)status); }

ulyrt_status uly_capi_error(ulyrt_error *to, const uly_error *from, uly_status status) {
  size_t text = offsetof(ulyrt_error, text);
  if (!to || to->struct_size <= text) return (ulyrt_status)status;
  size_t room = to->struct_size - text < sizeof to->text ? to->struct_size - text : sizeof to->text;
  to->status = (int32_t)status;
  snprintf(to->text, room, "%s", status == ULY_OK ? "" : from->text);
  return (ulyrt_status)status;
}

ulyrt_status uly_capi_fail(ulyrt_error *to, uly_status status, const char *format, ...) {
  uly_error error;
  va_list args;
  va_start(args, format);
  vsnprintf(error.text, sizeof error.text, format, args);
  va_end(args);
  return uly_capi_error(to, &error, status);
}

ulyrt_status uly_capi_copy(void *to, size_t struct_size, const void *from, size_t bytes, ulyrt_error *error) {
  if (struct_size < sizeof(size_t)) return uly_capi_fail(error, ULY_INVALID_ARGUMENT, "a struct has struct_size %zu: use its INIT macro", struct_size);
  memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t), (struct_size < bytes ? struct_size : bytes) - sizeof(size_t));
  return ULYRT_OK;
}

ulyrt_dtype uly_capi_dtype(uint32_t dtype) {
  const uly_dtype_info *info = uly_dtype_get((uly_dtype)dtype);
  return (ulyrt_dtype){info->dlpack_code, info->dlpack_bits, 1};
}

bool uly_capi_same_dtype(ulyrt_dtype given, uint32_t dtype) {
  ulyrt_dtype want = uly_capi_dtype(dtype);
  bool old_bool = dtype == ULY_BOOL && given.code == 1 && given.bits == 8;
  return given.lanes == 1 && (old_bool || (given.code == want.code && given.bits == want.bits));
}

const char *uly_capi_name(const ulyrt_model *model, uint32_t row) { return row < model->loaded->tables.n_names ? model->names[row] : ""; }
