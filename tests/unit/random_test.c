// The generator of seeded values never changes: its numbers are pinned here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "runtime/base/random.h"

static void pinned(void **state) {
  (void)state;
  uint64_t key = uly_random_key(1, ULY_STR("a.weight"));
  float w[4];
  int64_t dims[] = {2, 3};
  uly_random_param(1, ULY_STR("a.weight"), ULY_F32, 2, dims, 4, w);
  for (int i = 0; i < 4; i++) assert_true(w[i] == (float)uly_random_uniform(key, (uint64_t)i)); // √(3 / 3) = 1
  assert_true(key == 0xaba7f98ffc54f176u && uly_random_uniform(key, 0) == 0x1.c72ff00000000p-3 && uly_random_uniform(key, 12345678901) == 0x1.7494b00000000p-2);
}

static void spread(void **state) {
  (void)state;
  enum { N = 20000 };
  static float x[N], y[N];
  int64_t dims[] = {100, 200}, vector[] = {N};
  double sum = 0, squares = 0, cross = 0, most = 0;
  uly_random_param(7, ULY_STR("q.weight"), ULY_F32, 2, dims, N, x);
  uly_random_param(7, ULY_STR("k.weight"), ULY_F32, 2, dims, N, y);
  for (int i = 0; i < N; i++) {
    sum += (double)x[i];
    squares += (double)x[i] * (double)x[i];
    cross += (double)x[i] * (double)y[i];
    most = fmax(most, fabs((double)x[i]));
  }
  double n = N;
  assert_true(fabs(sum / n) < 2e-3 && fabs(squares / n * 200 - 1) < 0.03 && fabs(cross / n * 200) < 0.03 && most <= sqrt(3.0 / 200));
  uly_random_param(7, ULY_STR("norm.weight"), ULY_F32, 1, vector, N, x);
  uly_random_param(7, ULY_STR("norm.bias"), ULY_F32, 1, vector, N, y);
  for (int i = 0; i < N; i++) assert_true(fabs((double)x[i] - 1) <= 0.1 && fabs((double)y[i]) <= 0.1);
  int32_t ids[3] = {5, 5, 5};
  int64_t three[] = {3};
  uly_random_param(7, ULY_STR("ids"), ULY_I32, 1, three, 3, ids);
  assert_int_equal(ids[0] | ids[1] | ids[2], 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pinned), cmocka_unit_test(spread)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
