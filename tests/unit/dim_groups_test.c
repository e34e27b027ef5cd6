// Which dims of a reshaped value go together, and what becomes of a share of one. Expectations are written by hand from the row-major order.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/dim_groups.h"

enum { B, S, T };
#define N(n) {.symbol = -1, .add = n}
#define SYM(symbol_, mul_, add_) {.symbol = symbol_, .mul = mul_, .add = add_}
#define DIMS(rank_, ...)                                                                                                                                       \
  {                                                                                                                                                            \
    .rank = rank_, .dims = { __VA_ARGS__ }                                                                                                                     \
  }

typedef struct reshape_case {
  uly_tensor_type in, out;
  int32_t n; // groups
  uly_dim_group groups[6];
  int32_t becomes[6]; // by dim of in
} reshape_case;

static const reshape_case cases[] = {
    {DIMS(3, SYM(B, 1, 0), SYM(S, 1, 0), N(12)), DIMS(4, SYM(B, 1, 0), SYM(S, 1, 0), N(3), N(4)), 3, {{0, 1, 0, 1}, {1, 2, 1, 2}, {2, 3, 2, 4}}, {0, 1, -1}},
    {DIMS(3, SYM(B, 1, 0), SYM(S, 1, 0), N(12)), DIMS(2, SYM(B, 1, 0), SYM(S, 12, 0)), 2, {{0, 1, 0, 1}, {1, 3, 1, 2}}, {0, 1, -1}},
    {DIMS(3, N(4), SYM(S, 1, 0), N(2)), DIMS(2, SYM(S, 4, 0), N(2)), 2, {{0, 2, 0, 1}, {2, 3, 1, 2}}, {-1, -1, 1}},
    {DIMS(2, SYM(S, 6, 0), N(2)), DIMS(2, SYM(S, 4, 0), N(3)), 1, {{0, 2, 0, 2}}, {0, -1}},
    {DIMS(3, N(1), SYM(S, 1, 0), N(1)), DIMS(1, SYM(S, 1, 0)), 3, {{0, 1, 0, 0}, {1, 2, 0, 1}, {2, 3, 1, 1}}, {-1, 0, -1}},
    {DIMS(3, SYM(S, 1, 0), N(1), N(5)), DIMS(2, N(1), SYM(S, 5, 0)), 2, {{0, 0, 0, 1}, {0, 3, 1, 2}}, {1, -1, -1}},
    {DIMS(2, SYM(S, 1, 0), SYM(T, 1, 0)), DIMS(2, SYM(T, 1, 0), SYM(S, 1, 0)), 1, {{0, 2, 0, 2}}, {-1, -1}},
    {DIMS(2, SYM(S, 1, 1), N(3)), DIMS(1, SYM(S, 3, 3)), 1, {{0, 2, 0, 1}}, {-1, -1}},
    {DIMS(2, N(6), N(4)), DIMS(2, N(3), N(8)), 1, {{0, 2, 0, 2}}, {-1, -1}},
    {DIMS(3, N(6), N(4), N(5)), DIMS(3, N(24), N(5), N(1)), 3, {{0, 2, 0, 1}, {2, 3, 1, 2}, {3, 3, 2, 3}}, {-1, -1, 1}},
    {{.rank = 0}, DIMS(2, N(1), N(1)), 2, {{0, 0, 0, 1}, {0, 0, 1, 2}}, {0}},
    {{.rank = 0}, {.rank = 0}, 0, {{0}}, {0}},
};

static void runs_of_equal_counts_belong_together(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uly_dim_group groups[ULY_MAX_DIM_GROUPS];
    int32_t n = uly_dim_groups(&cases[i].in, &cases[i].out, groups);
    if (n != cases[i].n) fail_msg("case %zu: %d groups", i, n);
    for (int32_t g = 0; g < n; g++)
      if (memcmp(&groups[g], &cases[i].groups[g], sizeof *groups) != 0) fail_msg("case %zu: group %d", i, g);
    for (int32_t d = 0; d < cases[i].in.rank; d++)
      if (uly_dim_reshaped(&cases[i].in, &cases[i].out, d) != cases[i].becomes[d]) fail_msg("case %zu: dim %d", i, d);
  }
}

static void other_counts_are_refused(void **state) {
  (void)state;
  static const uly_tensor_type pairs[][2] = {
      {DIMS(1, N(6)), DIMS(1, N(7))},
      {DIMS(1, SYM(S, 1, 0)), DIMS(1, SYM(T, 1, 0))},
      {DIMS(1, SYM(S, 2, 0)), DIMS(1, SYM(S, 1, 0))},
      {DIMS(1, SYM(S, 1, 1)), DIMS(1, SYM(S, 1, 0))},
      {DIMS(2, SYM(S, 1, 0), SYM(S, 1, 0)), DIMS(1, SYM(S, 1, 0))},
      {DIMS(3, N(INT64_C(1) << 31), N(INT64_C(1) << 31), N(4)), DIMS(3, N(INT64_C(1) << 31), N(INT64_C(1) << 31), N(4))}, // beyond 64 bits
  };
  uly_dim_group groups[ULY_MAX_DIM_GROUPS];
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) assert_int_equal(uly_dim_groups(&pairs[i][0], &pairs[i][1], groups), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs_of_equal_counts_belong_together), cmocka_unit_test(other_counts_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
