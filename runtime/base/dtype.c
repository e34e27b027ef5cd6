#include "runtime/base/dtype.h"

#include <math.h>

static const uly_dtype_info infos[ULY_N_DTYPES] = {
#define DTYPE(id, name, code, bytes, mlir, dl_code, dl_bits, safetensors, npy, is_float, tolerance)                                                            \
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

// The bits of a number with a sign, |exponent| and |fraction| bits: nearest, ties to even; infinity beyond the largest one. NaN stays one. Whatever the mode that
// the caller's processor is in.
static uint32_t narrow(double value, int exponent, int fraction) {
  uint64_t bits, m;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = (uint32_t)(bits >> 63) << (exponent + fraction), inf = ((1u << exponent) - 1) << fraction;
  int e = (int)(bits >> 52 & 2047);
  m = bits & ((UINT64_C(1) << 52) - 1);
  if (e == 2047) return sign | inf | (m ? 1u << (fraction - 1) | (uint32_t)(m >> (52 - fraction)) : 0);
  if (e) m |= UINT64_C(1) << 52;
  int biased = (e ? e : 1) - 1023 + (1 << (exponent - 1)) - 1; // below 1: the unit is that of 1
  int shift = 52 - fraction + (biased < 1 ? 1 - biased : 0);
  if (shift > 63) return sign;
  uint64_t kept = m >> shift, rest = m & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1));
  if (biased > 1) kept += (uint64_t)(biased - 1) << fraction; // a carry moves into the exponent
  return sign | (kept < inf ? (uint32_t)kept : inf);
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
  case ULY_F32: ((uint32_t *)data)[i] = narrow(value, 8, 23); return;
  case ULY_F64: ((double *)data)[i] = value; return;
  case ULY_BF16: ((uint16_t *)data)[i] = (uint16_t)narrow(value, 8, 7); return;
  case ULY_F16: ((uint16_t *)data)[i] = (uint16_t)narrow(value, 5, 10); return;
  case ULY_I32: ((int32_t *)data)[i] = (int32_t)value; return;
  case ULY_I64: ((int64_t *)data)[i] = (int64_t)value; return;
  case ULY_U8: ((uint8_t *)data)[i] = (uint8_t)value; return;
  case ULY_BOOL: ((uint8_t *)data)[i] = value != 0; return;
  case ULY_N_DTYPES: break;
  }
  ULY_ASSERT(dtype < ULY_N_DTYPES);
}
