// The oracle against numbers worked out by hand: what the published models do not reach.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/reference/reference.h"

static void assert_near(const double *got, const double *want, int n) {
  for (int i = 0; i < n; i++)
    if (!(fabs(got[i] - want[i]) <= 1e-12)) fail_msg("[%d] is %.17g, not %.17g", i, got[i], want[i]);
}

static void rope_turns_pairs(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4, 9}, c[] = {0, -1}, s[] = {1, 0}; // by 90 and 180 degrees
  double out[5];
  uly_ref_rope(x, c, s, 1, 1, 5, 4, false, out);
  assert_near(out, (double[]){-3, -2, 1, -4, 9}, 5);
  uly_ref_rope(x, c, s, 1, 1, 5, 4, true, out);
  assert_near(out, (double[]){-2, 1, -3, -4, 9}, 5);
}

static void norms_have_their_mean_and_variance(void **state) {
  (void)state;
  const double x[] = {1, 3}, ones[] = {1, 2}, bias[] = {10, 20};
  double out[2];
  uly_ref_layernorm(x, ones, NULL, 1, 2, 0.0, out);
  assert_near(out, (double[]){-1, 2}, 2);
  uly_ref_layernorm(x, ones, bias, 1, 2, 3.0, out);
  assert_near(out, (double[]){9.5, 21}, 2);
  uly_ref_rmsnorm(x, ones, 1, 2, 4.0, out);
  assert_near(out, (double[]){1.0 / 3, 2}, 2);
  uly_ref_softmax((double[]){1000, 1000 + log(3)}, 1, 2, out);
  assert_near(out, (double[]){0.25, 0.75}, 2);
}

static void losses_skip_what_is_ignored(void **state) {
  (void)state;
  const double logits[] = {0, 0, 0, log(3), 5, 7}, labels[] = {1, 0, -100}, wrong[] = {0, 2, 0};
  double loss[3];
  assert_true(uly_ref_nll(logits, labels, 3, 2, -100, loss));
  assert_near(loss, (double[]){log(2), log(4), 0}, 3);
  assert_false(uly_ref_nll(logits, wrong, 3, 2, -100, loss));
  assert_true(uly_ref_nll(logits, (double[]){-1, -1, -1}, 3, 2, -1, loss));
  assert_near(loss, (double[]){0, 0, 0}, 3);
}

static void rows_move(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4, 5, 6}; // [3, 2]
  double out[6];
  uly_ref_shift(x, 1, 3, 2, 1, -1, out);
  assert_near(out, (double[]){-1, -1, 1, 2, 3, 4}, 6);
  uly_ref_shift(x, 1, 3, 2, -2, 0, out);
  assert_near(out, (double[]){5, 6, 0, 0, 0, 0}, 6);
  uly_ref_slice(x, 1, 3, 2, 1, 3, out);
  assert_near(out, (double[]){3, 4, 5, 6}, 4);
  uly_ref_sum(x, 1, 3, 2, out);
  assert_near(out, (double[]){9, 12}, 2);
  assert_false(uly_ref_gather(x, (double[]){2, 3}, 2, 3, 2, out));
  assert_near(out, (double[]){5, 6, 0, 0}, 4);
  assert_true(uly_ref_gather(x, (double[]){1, 0}, 2, 3, 2, out));
  assert_near(out, (double[]){3, 4, 1, 2}, 4);
}

static void linear_multiplies_by_the_transpose(void **state) {
  (void)state;
  double out[3];
  uly_ref_linear((double[]){1, 2}, (double[]){1, 10, 2, 20, 3, 30}, (double[]){100, 200, 300}, 1, 2, 3, out);
  assert_near(out, (double[]){121, 242, 363}, 3);
}

static double digits(void *context, const int64_t *index) { return (double)(index[0] * 10 + index[1]) + *(double *)context; }

static void maps_visit_every_index(void **state) {
  (void)state;
  double half = 0.5, out[6];
  uly_ref_map(2, (int64_t[]){2, 3}, digits, &half, out);
  assert_near(out, (double[]){0.5, 1.5, 2.5, 10.5, 11.5, 12.5}, 6);
  uly_ref_map(0, NULL, digits, &half, out); // a scalar
  assert_near(out, (double[]){0.5}, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rope_turns_pairs), cmocka_unit_test(norms_have_their_mean_and_variance), cmocka_unit_test(losses_skip_what_is_ignored),
      cmocka_unit_test(rows_move),        cmocka_unit_test(linear_multiplies_by_the_transpose), cmocka_unit_test(maps_visit_every_index),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
