#include "runtime/base/dtype.h"

#include <math.h>

static const uly_dtype_info infos[ULY_N_DTYPES] = {
#define DTYPE(id, name, code, bytes, mlir, dl_code, dl_bits, safetensors, npy, is_float, tolerance)                    \
  [code] = {name, mlir, safetensors, npy, bytes, dl_code, dl_bits, is_float, tolerance},
#include "runtime/base/dtype.def"
};

const uly_dtype_info *uly_dtype_get(uly_dtype dtype) {
  ULY_ASSERT((unsigned)dtype < ULY_N_DTYPES);
  return &infos[dtype];
}

bool uly_dtype_by_name(uly_str name, uly_dtype *out_dtype) {
  for (int i = 0; i < ULY_N_DTYPES; i++)
    if (uly_str_is(name, infos[i].name)) return *out_dtype = (uly_dtype)i, true;
  return false;
}

static double load_half(uint16_t h) {
  int exponent = (h >> 10) & 31, fraction = h & 1023;
  double magnitude = exponent == 31 ? (fraction ? NAN : INFINITY) : exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
  return h >> 15 ? -magnitude : magnitude;
}

// Rounds to |digits| binary digits, no exponent below |least|: nearest, ties to even.
static double round_to(double value, int digits, int least) {
  int exponent;
  if (value == 0.0 || !isfinite(value)) return value;
  frexp(value, &exponent);
  int unit = exponent - digits > least ? exponent - digits : least;
  return ldexp(nearbyint(ldexp(value, -unit)), unit);
}

static uint16_t store_half(double value) {
  double v = round_to(value, 11, -24), m = fabs(v);
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  if (isnan(v)) return 0x7e00;
  if (m >= 65520.0) return sign | 0x7c00;
  if (m < ldexp(1, -14)) return (uint16_t)(sign | (uint16_t)ldexp(m, 24));
  int exponent;
  double fraction = frexp(m, &exponent);
  return (uint16_t)(sign | ((exponent + 14) << 10) | ((uint16_t)ldexp(fraction, 11) - 1024));
}

double uly_dtype_load(uly_dtype dtype, const void *data, int64_t i) {
  switch (dtype) {
  case ULY_F32: return (double)((const float *)data)[i];
  case ULY_F64: return ((const double *)data)[i];
  case ULY_BF16: {
    uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
  }
  case ULY_F16: return load_half(((const uint16_t *)data)[i]);
  case ULY_I32: return ((const int32_t *)data)[i];
  case ULY_I64: return (double)((const int64_t *)data)[i];
  case ULY_U8: return ((const uint8_t *)data)[i];
  case ULY_BOOL: return ((const uint8_t *)data)[i] != 0;
  case ULY_N_DTYPES: break;
  }
  ULY_ASSERT(dtype < ULY_N_DTYPES);
  return 0;
}

void uly_dtype_store(uly_dtype dtype, void *data, int64_t i, double value) {
  switch (dtype) {
  case ULY_F32: ((float *)data)[i] = (float)value; return;
  case ULY_F64: ((double *)data)[i] = value; return;
  case ULY_BF16: {
    float f = (float)round_to(value, 8, -133);
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    ((uint16_t *)data)[i] = (uint16_t)(bits >> 16 | (isnan(value) ? 0x40 : 0));
    return;
  }
  case ULY_F16: ((uint16_t *)data)[i] = store_half(value); return;
  case ULY_I32: ((int32_t *)data)[i] = (int32_t)value; return;
  case ULY_I64: ((int64_t *)data)[i] = (int64_t)value; return;
  case ULY_U8: ((uint8_t *)data)[i] = (uint8_t)value; return;
  case ULY_BOOL: ((uint8_t *)data)[i] = value != 0; return;
  case ULY_N_DTYPES: break;
  }
  ULY_ASSERT(dtype < ULY_N_DTYPES);
}
