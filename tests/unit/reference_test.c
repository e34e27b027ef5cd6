// The reference against numbers worked out by hand: what the published models do not reach.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/reference/reference.h"

#define DIMS(...)                                                                                                                                              \
  sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]) { __VA_ARGS__ }

static uly_ref_tensor ints(const int64_t *data, int32_t rank, const int64_t *dims) {
  uly_ref_tensor t = uly_ref_floats((const double *)(const void *)data, rank, dims);
  t.is_int = true;
  return t;
}

// Runs |op| row by row, last first, which is as good as any way, into |out|, and compares.
static void assert_gives(uly_ref_function *function, uly_ref_op *op, int32_t rank, const int64_t *dims, const double *want) {
  double out[64] = {0};
  op->out = uly_ref_floats(out, rank, dims);
  for (int64_t row = uly_ref_rows(&op->out); row-- > 0;) {
    op->begin = row, op->end = row + 1;
    function(op);
  }
  for (int64_t i = 0; i < uly_ref_product(&op->out, 0, rank); i++)
    if (!(fabs(out[i] - want[i]) <= 1e-12) && !(isnan(out[i]) && isnan(want[i]))) fail_msg("[%d] is %.17g, not %.17g", (int)i, out[i], want[i]);
}

static void rope_turns_pairs(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4, 9}, c[] = {0, -1}, s[] = {1, 0}; // by 90 and 180 degrees
  const uly_ref_tensor in[] = {uly_ref_floats(x, DIMS(1, 1, 1, 5)), uly_ref_floats(c, DIMS(1, 1, 2)), uly_ref_floats(s, DIMS(1, 1, 2))};
  uly_ref_op op = {.in = in, .n_in = 3};
  assert_gives(uly_ref_rope, &op, DIMS(1, 1, 1, 5), (double[]){-3, -2, 1, -4, 9});
  op.i[0] = 1;
  assert_gives(uly_ref_rope, &op, DIMS(1, 1, 1, 5), (double[]){-2, 1, -3, -4, 9});
}

static void norms_have_their_mean_and_variance(void **state) {
  (void)state;
  const double x[] = {1, 3}, ones[] = {1, 2}, bias[] = {10, 20}, z[] = {1000, 1000 + log(3)};
  const uly_ref_tensor in[] = {uly_ref_floats(x, DIMS(1, 2)), uly_ref_floats(ones, DIMS(2)), uly_ref_floats(bias, DIMS(2))},
                       large = uly_ref_floats(z, DIMS(1, 2));
  uly_ref_op op = {.in = in, .n_in = 2};
  assert_gives(uly_ref_layernorm, &op, DIMS(1, 2), (double[]){-1, 2});
  op.n_in = 3, op.f[0] = 3.0;
  assert_gives(uly_ref_layernorm, &op, DIMS(1, 2), (double[]){9.5, 21});
  op.n_in = 2, op.f[0] = 4.0;
  assert_gives(uly_ref_rmsnorm, &op, DIMS(1, 2), (double[]){1.0 / 3, 2});
  assert_gives(uly_ref_softmax, &(uly_ref_op){.in = &large, .n_in = 1}, DIMS(1, 2), (double[]){0.25, 0.75});
}

static void losses_skip_what_is_ignored(void **state) {
  (void)state;
  const double logits[] = {0, 0, 0, log(3), 5, 7};
  const int64_t labels[] = {1, 0, -100}, wrong[] = {0, 2, 0}, none[] = {-1, -1, -1};
  uly_ref_tensor in[] = {uly_ref_floats(logits, DIMS(3, 2)), ints(labels, DIMS(3))};
  uly_ref_op op = {.in = in, .n_in = 2, .i = {-100}};
  assert_gives(uly_ref_nll, &op, DIMS(3), (double[]){log(2), log(4), 0});
  assert_false(op.fault.found);
  in[1] = ints(none, DIMS(3)), op.i[0] = -1;
  assert_gives(uly_ref_nll, &op, DIMS(3), (double[]){0, 0, 0});
  in[1] = ints(wrong, DIMS(3));
  assert_gives(uly_ref_nll, &op, DIMS(3), (double[]){log(2), 0, log(1 + exp(2))});
  assert_true(op.fault.found && op.fault.index == 2 && op.fault.limit == 2 && op.fault.at[0] == 1);
}

static void rows_move(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4, 5, 6}, y[] = {7, 8, 9}; // [3, 2], [3, 1]
  const uly_ref_tensor in = uly_ref_floats(x, DIMS(3, 2)), two[] = {in, uly_ref_floats(y, DIMS(1, 3))};
  uly_ref_op op = {.in = &in, .n_in = 1, .i = {0, 1}, .f = {-1}};
  assert_gives(uly_ref_shift, &op, DIMS(3, 2), (double[]){-1, -1, 1, 2, 3, 4});
  op.i[1] = -2, op.f[0] = 0;
  assert_gives(uly_ref_shift, &op, DIMS(3, 2), (double[]){5, 6, 0, 0, 0, 0});
  op.i[1] = 1;
  assert_gives(uly_ref_slice, &op, DIMS(2, 2), (double[]){3, 4, 5, 6});
  assert_gives(uly_ref_slice, &op, DIMS(2), (double[]){3, 4}); // a dim dropped
  op.i[0] = 1;
  assert_gives(uly_ref_slice, &op, DIMS(3, 1), (double[]){2, 4, 6});
  assert_gives(uly_ref_sum, &op, DIMS(3), (double[]){3, 7, 11});
  op.i[0] = 0;
  assert_gives(uly_ref_sum, &op, DIMS(1, 2), (double[]){9, 12});
  assert_gives(uly_ref_reshape, &op, DIMS(2, 3), x);
  assert_false(op.fault.found);
  assert_gives(uly_ref_concat, &(uly_ref_op){.in = two, .n_in = 2, .i = {1}}, DIMS(3, 5), (double[]){1, 2, 7, 8, 9, 3, 4, 7, 8, 9, 5, 6, 7, 8, 9});
}

static void tables_are_indexed(void **state) {
  (void)state;
  const double x[] = {1, 2, 3, 4, 5, 6};
  const int64_t wrong[] = {2, 3}, right[] = {1, 0};
  uly_ref_tensor in[] = {uly_ref_floats(x, DIMS(3, 2)), ints(right, DIMS(2))};
  uly_ref_op op = {.in = in, .n_in = 2};
  assert_gives(uly_ref_gather, &op, DIMS(2, 2), (double[]){3, 4, 1, 2});
  assert_false(op.fault.found);
  in[1] = ints(wrong, DIMS(2));
  assert_gives(uly_ref_gather, &op, DIMS(2, 2), (double[]){5, 6, 0, 0});
  assert_true(op.fault.found && op.fault.index == 3 && op.fault.limit == 3 && op.fault.at[0] == 1);
}

static void sums_of_ints_are_exact(void **state) {
  (void)state;
  const int64_t x[] = {INT64_C(1) << 60, 1, -3};
  int64_t sum = 0;
  const uly_ref_tensor in = ints(x, DIMS(3));
  uly_ref_op op = {.in = &in, .n_in = 1, .out = ints(&sum, 0, NULL)};
  uly_ref_run(uly_ref_sum, &op);
  assert_true(sum == (INT64_C(1) << 60) - 2);
}

static void linear_multiplies_by_the_transpose(void **state) {
  (void)state;
  const double x[] = {1, 2}, w[] = {1, 10, 2, 20, 3, 30}, bias[] = {100, 200, 300};
  const uly_ref_tensor in[] = {uly_ref_floats(x, DIMS(1, 2)), uly_ref_floats(w, DIMS(3, 2)), uly_ref_floats(bias, DIMS(3))};
  assert_gives(uly_ref_linear, &(uly_ref_op){.in = in, .n_in = 3}, DIMS(1, 3), (double[]){121, 242, 363});
}

static uly_ref_cell digits(void *context, const int64_t *index) {
  return (uly_ref_cell){.f = (double)(index[0] * 100 + index[1] * 10 + index[2]) + *(double *)context};
}

static void maps_visit_every_index(void **state) {
  (void)state;
  double half = 0.5;
  uly_ref_op op = {.code = {.context = &half, .element = digits}};
  assert_gives(uly_ref_map, &op, DIMS(2, 2, 3), (double[]){0.5, 1.5, 2.5, 10.5, 11.5, 12.5, 100.5, 101.5, 102.5, 110.5, 111.5, 112.5});
  assert_gives(uly_ref_map, &op, 0, NULL, (double[]){0.5}); // a scalar
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rope_turns_pairs),
      cmocka_unit_test(norms_have_their_mean_and_variance),
      cmocka_unit_test(losses_skip_what_is_ignored),
      cmocka_unit_test(rows_move),
      cmocka_unit_test(tables_are_indexed),
      cmocka_unit_test(sums_of_ints_are_exact),
      cmocka_unit_test(maps_visit_every_index),
      cmocka_unit_test(linear_multiplies_by_the_transpose),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
