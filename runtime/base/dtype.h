// Element types of tensors. f64 exists for reference data only; the language has no such type.
#ifndef ULY_RUNTIME_BASE_DTYPE_H
#define ULY_RUNTIME_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/str.h"

typedef enum uly_dtype {
#define DTYPE(id, name, code, bytes, mlir, dl_code, dl_bits, safetensors, npy, is_float, tolerance) ULY_##id = code,
#include "runtime/base/dtype.def"
  ULY_N_DTYPES
} uly_dtype;

typedef struct uly_dtype_info {
  const char *name, *mlir, *safetensors, *npy;
  int32_t bytes;
  uint8_t dlpack_code, dlpack_bits;
  bool is_float;
  double tolerance;
} uly_dtype_info;

const uly_dtype_info *uly_dtype_get(uly_dtype dtype); // ULY_ASSERTs a valid one
static inline int32_t uly_dtype_bytes(uly_dtype dtype) { return uly_dtype_get(dtype)->bytes; }
static inline const char *uly_dtype_name(uly_dtype dtype) { return uly_dtype_get(dtype)->name; }
bool uly_dtype_by_name(uly_str name, uly_dtype *out_dtype);

// Element |i| of an array as float64, and back with one rounding (to nearest even).
double uly_dtype_load(uly_dtype dtype, const void *data, int64_t i);
void uly_dtype_store(uly_dtype dtype, void *data, int64_t i, double value);
// Floats of one dtype as another, each rounded once, to nearest even. Arrays do not overlap.
void uly_dtype_convert(uly_dtype from, const void *in, uly_dtype to, void *out, int64_t n);

#endif
