// Conversions between floats: every bf16 and f16 there is, numbers around every tie between two of them, and whole arrays against single elements.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/base/dtype.h"

enum { ALL = 1 << 16 };

// The definition: sign, |exponent| bits, |fraction| bits.
static double value_of(uint32_t bits, int exponent, int fraction) {
  int e = (int)(bits >> fraction & ((1u << exponent) - 1)), bias = (1 << (exponent - 1)) - 1;
  double m = (double)(bits & ((1u << fraction) - 1)), sign = bits >> (exponent + fraction) ? -1.0 : 1.0;
  if (e == (1 << exponent) - 1) return m != 0.0 ? (double)NAN : sign * (double)INFINITY;
  return sign * (e ? ldexp(m + ldexp(1, fraction), e - bias - fraction) : ldexp(m, 1 - bias - fraction));
}

static int exponent_bits(uly_dtype dtype) { return dtype == ULY_F16 ? 5 : 8; }
static double half_value(uly_dtype dtype, uint32_t bits) { return value_of(bits, exponent_bits(dtype), 15 - exponent_bits(dtype)); }

static void same(double a, double b) {
  if (isnan(a) && isnan(b)) return;
  if (a != b || signbit(a) != signbit(b)) fail_msg("%a is not %a", a, b);
}

static uint16_t stored(uly_dtype dtype, double value) {
  uint16_t bits;
  uly_dtype_store(dtype, &bits, 0, value);
  return bits;
}

static void every_half_is_kept(void **state) {
  static const uly_dtype dtypes[] = {ULY_BF16, ULY_F16};
  (void)state;
  for (int k = 0; k < 2; k++)
    for (uint32_t i = 0; i < ALL; i++) {
      uint16_t bits = (uint16_t)i;
      double value = half_value(dtypes[k], i);
      same(uly_dtype_load(dtypes[k], &bits, 0), value);
      if (!isnan(value))
        assert_int_equal(stored(dtypes[k], value), i);
      else
        same(half_value(dtypes[k], stored(dtypes[k], value)), (double)NAN);
    }
}

// Halfway between neighbours the even one, else the nearer one; half a unit beyond the largest number begins infinity.
static void ties_go_to_even(void **state) {
  static const uly_dtype dtypes[] = {ULY_BF16, ULY_F16};
  (void)state;
  for (int k = 0; k < 2; k++) {
    uint32_t inf = dtypes[k] == ULY_BF16 ? 0x7f80 : 0x7c00;
    for (uint32_t i = 0; i < inf; i++) {
      double low = half_value(dtypes[k], i), high = i + 1 == inf ? 2 * low - half_value(dtypes[k], i - 1) : half_value(dtypes[k], i + 1),
             tie = (low + high) / 2;
      for (uint32_t sign = 0; sign < 2; sign++) {
        double s = sign ? -1.0 : 1.0;
        assert_int_equal(stored(dtypes[k], s * tie), sign << 15 | (i & 1 ? i + 1 : i));
        assert_int_equal(stored(dtypes[k], s * nextafter(tie, 0)), sign << 15 | i);
        assert_int_equal(stored(dtypes[k], s * nextafter(tie, HUGE_VAL)), sign << 15 | (i + 1));
      }
    }
    assert_int_equal(stored(dtypes[k], 1e300), inf);
    assert_int_equal(stored(dtypes[k], -1e-300), 0x8000);
  }
}

static void f32_is_rounded_once(void **state) {
  (void)state;
  static const double values[] = {0.1,      1e39,       -1e39,        0x1.fffffep127, 0x1.ffffffp127,      0x1p-149,
                                  0x1p-150, 0x1.8p-150, 0x1.000001p0, 0x1.000003p0,   0x1.0000010000001p0, -0x1.5p-140};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    float f;
    uly_dtype_store(ULY_F32, &f, 0, values[i]);
    same((double)f, (double)(float)values[i]);
  }
}

// Around every half and every tie, and NaNs of all sorts.
static uint32_t *floats(int64_t *out_n) {
  uint32_t *f = malloc((size_t)ALL * 16 * sizeof *f);
  int64_t n = 0;
  for (uint32_t i = 0; i < ALL; i++)
    for (uint32_t j = 0; j < 5; j++) f[n++] = i << 16 | (uint32_t[]){0, 1, 0x7fff, 0x8000, 0x8001}[j];
  for (uint32_t i = 0; i < ALL; i++) {
    double low = half_value(ULY_F16, i), tie = (low + half_value(ULY_F16, (i + 1) & 0xffff)) / 2;
    if (!isfinite(tie)) continue;
    float near[3] = {(float)tie, nextafterf((float)tie, 0), nextafterf((float)tie, 1e38f)};
    memcpy(f + n, near, sizeof near);
    n += 3;
  }
  *out_n = n;
  return f;
}

// Arrays, in pieces and from odd places on, are what their elements are.
static void arrays_convert_like_elements(void **state) {
  static const uly_dtype dtypes[] = {ULY_F32, ULY_BF16, ULY_F16, ULY_F64};
  int64_t n;
  uint32_t *source = floats(&n);
  void *from = malloc((size_t)n * 8), *to = malloc((size_t)n * 8);
  (void)state;
  for (int a = 0; a < 4; a++)
    for (int b = 0; b < 4; b++) {
      for (int64_t i = 0; i < n; i++) uly_dtype_store(dtypes[a], from, i, uly_dtype_load(ULY_F32, source, i));
      uly_dtype_convert(dtypes[a], from, dtypes[b], to, n);
      for (int64_t i = 0; i < n; i++) {
        double want;
        uint64_t element = 0;
        uly_dtype_store(dtypes[b], &element, 0, uly_dtype_load(dtypes[a], from, i));
        want = uly_dtype_load(dtypes[b], &element, 0);
        same(uly_dtype_load(dtypes[b], to, i), want);
      }
    }
  free(source);
  free(from);
  free(to);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_half_is_kept),
      cmocka_unit_test(ties_go_to_even),
      cmocka_unit_test(f32_is_rounded_once),
      cmocka_unit_test(arrays_convert_like_elements),
  };
  return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
