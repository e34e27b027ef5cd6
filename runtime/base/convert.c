// Whole arrays of floats as another dtype: weights whose file has other floats than the model. Arithmetic on bits, so that the mode that the caller's processor is in does
// not matter, and without branches, so that compilers make vectors of it.
#include "runtime/base/dtype.h"

enum { PIECE = 1024 };

static float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static uint32_t choose(bool condition, uint32_t a, uint32_t b) { return (a & (0 - (uint32_t)condition)) | (b & ((uint32_t)condition - 1)); }

static uint16_t to_bf16(uint32_t f) {
  uint32_t rounded = f + 0x7fff + (f >> 16 & 1);
  return (uint16_t)(choose((f & 0x7fffffff) > 0x7f800000, f | 0x400000, rounded) >> 16);
}

// Below the normal numbers of f16 its unit is 2^-24: that of 0.5 in f32.
static uint16_t to_f16(uint32_t f) {
  uint32_t m = f & 0x7fffffff, normal = (m - 0x38000000 + 0xfff + (m >> 13 & 1)) >> 13;
  uint32_t small = bits_of(float_of(choose(m < 0x38800000, m, 0)) + 0.5f) - 0x3f000000, nan = 0x7e00 | (m >> 13 & 0x3ff);
  uint32_t h = choose(m < 0x38800000, small, choose(normal < 0x7c00, normal, 0x7c00));
  return (uint16_t)(choose(m > 0x7f800000, nan, choose(m < 0x47800000, h, 0x7c00)) | (f >> 16 & 0x8000));
}

static uint32_t from_f16(uint16_t h) {
  uint32_t m = h & 0x7fff, small = bits_of((float)(int32_t)m * 0x1p-24f), top = choose(m >= 0x7c00, 0x70000000, 0x38000000);
  uint32_t quiet = choose(m > 0x7c00, 0x400000, 0);
  return choose(m < 0x400, small, (m << 13) + top) | quiet | (uint32_t)(h & 0x8000) << 16;
}

#define LOOP(in_type, out_type, value)                                                                                                                         \
  for (int64_t i = 0; i < n; i++) {                                                                                                                            \
    const in_type x = ((const in_type *)in)[i];                                                                                                                \
    ((out_type *)out)[i] = value;                                                                                                                              \
  }

// To f32, which holds every one of these.
static void widen(uly_dtype from, const void *restrict in, uint32_t *restrict out, int64_t n) {
  if (from == ULY_BF16) LOOP(uint16_t, uint32_t, (uint32_t)x << 16)
  if (from == ULY_F16) LOOP(uint16_t, uint32_t, from_f16(x))
  if (from == ULY_F32) memcpy(out, in, (size_t)n * sizeof *out);
}

static void narrow(uly_dtype to, const uint32_t *restrict in, void *restrict out, int64_t n) {
  if (to == ULY_BF16) LOOP(uint32_t, uint16_t, to_bf16(x))
  if (to == ULY_F16) LOOP(uint32_t, uint16_t, to_f16(x))
}

void uly_dtype_convert(uly_dtype from, const void *in, uly_dtype to, void *out, int64_t n) {
  const int64_t from_bytes = uly_dtype_bytes(from), to_bytes = uly_dtype_bytes(to);
  uint32_t piece[PIECE];
  ULY_ASSERT(uly_dtype_get(from)->is_float && uly_dtype_get(to)->is_float);
  if (from == to) {
    memcpy(out, in, (size_t)(n * from_bytes));
  } else if (from == ULY_F64 || to == ULY_F64) {
    for (int64_t i = 0; i < n; i++) uly_dtype_store(to, out, i, uly_dtype_load(from, in, i));
  } else if (to == ULY_F32) {
    widen(from, in, out, n);
  } else {
    for (int64_t i = 0; i < n; i += PIECE) {
      int64_t m = n - i < PIECE ? n - i : PIECE;
      widen(from, (const char *)in + i * from_bytes, piece, m);
      narrow(to, piece, (char *)out + i * to_bytes, m);
    }
  }
}
