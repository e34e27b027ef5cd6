// Scalar expressions: typing, folding, sharing, evaluation against C, text round trip.
#include "frontend/expr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const uly_str symbols[] = {{"B", 1}, {"S", 1}, {"q", 1}};
static uly_arena *arena;

static int set_up(void **state) { return (void)state, arena = uly_arena_create(), 0; }
static int tear_down(void **state) { return (void)state, uly_arena_destroy(arena), 0; }

static uly_expr parse(const char *text) {
  uly_expr expr = {0};
  if (uly_expr_parse(arena, uly_str_of(text), symbols, 3, &expr) != ULY_OK) fail_msg("does not parse: %s", text);
  return expr;
}

static uly_number operand(void *context, int32_t j) { return uly_number_of(((const double *)context)[j]); }
static uly_number load(void *context, int32_t j, const int64_t *indices, int n) {
  (void)context;
  return uly_number_of((double)(100 * j + 10 * (n > 0 ? indices[0] : 1) + (n > 1 ? indices[1] : 0)));
}

static uly_number eval(const uly_expr *expr) {
  static const int64_t coords[ULY_COORD_MAX] = {1, 2, 30, 40, 0, 5, 6, 7, 8, 9, 10}, sizes[] = {3, 64, 11};
  double x[] = {0.5, -2.0, 7.0};
  uly_expr_env env = {.context = x, .coords = coords, .score = 1.25, .sizes = sizes, .operand = operand, .load = load};
  uly_number value = {0};
  if (uly_expr_eval(expr, &env, &value) != ULY_OK) fail_msg("does not evaluate");
  return value;
}

static void assert_float(const char *text, double expected) {
  uly_expr expr = parse(text);
  uly_number value = eval(&expr);
  assert_int_equal(value.type, ULY_SCALAR_FLOAT);
  if (!(fabs(value.f - expected) <= 4e-16 * fabs(expected) || (isnan(value.f) && isnan(expected)))) fail_msg("%s is %.17g, not %.17g", text, value.f, expected);
}

static void assert_int(const char *text, int64_t expected) {
  uly_expr expr = parse(text);
  uly_number value = eval(&expr);
  assert_int_not_equal(value.type, ULY_SCALAR_FLOAT);
  if (value.i != expected) fail_msg("%s is %lld, not %lld", text, (long long)value.i, (long long)expected);
}

static void evaluates_as_c_does(void **state) {
  (void)state;
  assert_float("x0 * sigmoid(x0)", 0.5 * (1.0 / (1.0 + exp(-0.5))));
  assert_float("1.5 * tanh(s / 1.5)", 1.5 * tanh(1.25 / 1.5));
  assert_float("if x1 > 0.0 then x1 else exp(x1) - 1.0", exp(-2.0) - 1.0);
  assert_float("max(x0, min(x1, 3))", 0.5);
  assert_float("min(nan, x0)", NAN);
  assert_float("max(x0, nan)", NAN);
  assert_float("x2 / 2", 3.5);
  assert_float("x1 % 3", 1.0);
  assert_float("x2 // 2", 3.0);
  assert_float("x1 ** 3", -8.0);
  assert_float("x1 ** -2", 0.25);
  assert_float("x0 ** 0.5", sqrt(0.5));
  assert_float("x0 ** x1", pow(0.5, -2.0));
  assert_float("-x0 ** 2", -0.25);
  assert_float("rsqrt(x0) + erf(x0) + log2(x0)", 1.0 / sqrt(0.5) + erf(0.5) + -1.0);
  assert_float("float(i1) * exp2(-8.0 * (h + 1) / 4)", 6.0 * exp2(-6.0));
  assert_int("q - k", -10);
  assert_int("-7 // 2", -4);
  assert_int("-7 % 3", 2);
  assert_int("(q - 37) // 2", -4);
  assert_int("(q - 37) % -3", -1);
  assert_int("2 ** 10 - size(S) * size(B) + size(q)", 1024 - 192 + 11);
  assert_int("floor(x1 / 1.5) + ceil(x0) + int(x2)", -2 + 1 + 7);
  assert_int("c1i[b, k] + c0i[c2i[b]]", 100 + 10 + 40 + 10 * 210);
  assert_int("0 <= q - k and q - k < 8", 0);
  assert_int("not k <= q or h == 2", 1);
  assert_int("abs(q - k)", 10);
  assert_int("c0i[] + 1", 11);
}

static void folds_and_shares(void **state) {
  (void)state;
  assert_int_equal(parse("2 * 3 + 4").n_nodes, 1);
  assert_int_equal(parse("sqrt(2.0 / 3.14) * (1.0 + 1.0)").n_nodes, 1);
  assert_int_equal(parse("true and k <= q").n_nodes, 3);
  assert_int_equal(parse("false and k <= q").n_nodes, 1);
  assert_int_equal(parse("k <= q or true").n_nodes, 1);
  assert_int_equal(parse("not not (k <= q)").n_nodes, 3);
  assert_int_equal(parse("if 1 < 2 then x0 else x1").n_nodes, 1);
  assert_int_equal(parse("exp(x0) * exp(x0)").n_nodes, 3);
  assert_int_equal(parse("x0 ** 4").n_nodes, 3);
  uly_expr a = parse("exp(x0) + x1 * exp(x0)"), b = parse("t0 = exp(x0); t0 + x1 * t0"), c = parse("exp(x0) + exp(x0) * x1");
  assert_true(uly_expr_equal(&a, &b));
  assert_false(uly_expr_equal(&a, &c));
}

static void types_follow_the_rules(void **state) {
  (void)state;
  static const char *const wrong[] = {"x0 and x1",
                                      "not q",
                                      "q / k",
                                      "1 / 2",
                                      "if q then 1 else 2",
                                      "if b == 0 then true else 1",
                                      "true + 1",
                                      "x0b < x1b",
                                      "2 ** -1",
                                      "q ** k",
                                      "q ** -1",
                                      "hash(x0, q)",
                                      "c0[x0]",
                                      "1 // 0",
                                      "5 % 0",
                                      "9223372036854775807 + 1",
                                      "floor(1e300)",
                                      "sin(true)",
                                      "",
                                      "x0 +",
                                      "(x0",
                                      "x0 x1",
                                      "min(x0)",
                                      "exp(x0, x1)",
                                      "size(T)",
                                      "y0",
                                      "t0",
                                      "x0 < x1 < x2"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    uly_expr expr;
    if (uly_expr_parse(arena, uly_str_of(wrong[i]), symbols, 3, &expr) == ULY_OK) fail_msg("accepted: %s", wrong[i]);
  }
  assert_int_equal(eval(&(uly_expr){.nodes = parse("q + x0").nodes, .n_nodes = 4}).type, ULY_SCALAR_FLOAT);
  assert_int_equal(parse("x0b == (q < k)").nodes[parse("x0b == (q < k)").n_nodes - 1].type, ULY_SCALAR_BOOL);
  uly_expr quotient = parse("q // (k - 40)");
  static const int64_t coords[ULY_COORD_MAX] = {0, 0, 1, 40};
  uly_number value;
  assert_int_equal(uly_expr_eval(&quotient, &(uly_expr_env){.coords = coords}, &value), ULY_INVALID_ARGUMENT);
}

// What kernels give where a constant would be refused.
static void ints_wrap_where_kernels_run(void **state) {
  (void)state;
  static const int64_t coords[ULY_COORD_MAX] = {[ULY_COORD_B] = INT64_MIN, [ULY_COORD_Q] = 7, [ULY_COORD_K] = 0};
  static const struct {
    const char *text;
    int64_t want;
  } cases[] = {{"q // k", 0},          {"q % k", 0},          {"b // (k - 1)", INT64_MIN}, {"b % (k - 1)", 0}, {"b - 1", INT64_MAX},
               {"-b", INT64_MIN},      {"abs(b)", INT64_MIN}, {"floor(s)", INT64_MAX},     {"int(s - s)", 0},  {"floor(-s)", INT64_MIN},
               {"q - (q // 2) * 2", 1}};
  uly_number work[64], value;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uly_expr expr = parse(cases[i].text);
    uly_expr_env env = {.coords = coords, .score = (double)INFINITY, .work = work, .running = true};
    assert_int_equal(uly_expr_eval(&expr, &env, &value), ULY_OK);
    if (value.i != cases[i].want) fail_msg("%s is %lld, not %lld", cases[i].text, (long long)value.i, (long long)cases[i].want);
  }
}

// What a value is after it was stored.
static void stored_values(void **state) {
  (void)state;
  assert_float("bf16(1.00390625)", 1.0);
  assert_float("bf16(1.01171875)", 1.015625);
  assert_float("f16(65519.0)", 65504.0);
  assert_float("1.0 / bf16(3.4e38) + 1.0 / f16(-65520.0)", 0.0);
  assert_float("f16(2.0 ** -24)", 0x1p-24);
  assert_int("i32(4294967297)", 1);
  assert_int("i32(2147483648)", INT32_MIN);
  assert_int("u8(-1)", 255);
  assert_int("u8(u8(300))", 44);
  assert_int_equal(parse("bf16(bf16(x0))").n_nodes, 2);
  uly_scalar op;
  assert_true(uly_scalar_stored(ULY_F16, &op) && uly_scalar_dtype(op) == ULY_F16);
  assert_false(uly_scalar_stored(ULY_F32, &op) || uly_scalar_stored(ULY_I64, &op) || uly_scalar_stored(ULY_BOOL, &op));
}

static void text_round_trips(void **state) {
  (void)state;
  static const char *const same[] = {
      "k <= q and c0i[b, q] == c0i[b, k]",
      "t0 = q - k; 0 <= t0 and t0 < 4096",
      "x0 * sigmoid(x0)",
      "wide cos(float(i1) * x0)",
      "t0 = exp(x0); t1 = t0 * t0; t1 / (1.0 + t1)",
      "if x0b then x1 else -x2",
      "(if q < k then 1 else 2) + 3",
      "if q < k then (if q == 0 then 1 else 2) else if b == 0 then 4 else 3",
      "bf16(x0 + x1) * f16(x2)",
      "i32(x0i * 3) + u8(x1i)",
      "x0 - (x1 - x2)",
      "x0 - x1 - x2",
      "(x0 < x1) == (x1 < x2)",
      "not (q < k and h == 0) or b == 1",
      "(-x0) ** 0.3",
      "-x0 ** 0.3",
      "(-2.0) ** x0",
      "-2.0 ** x0",
      "x0 ** x1 ** x2",
      "(x0 ** x1) ** x2",
      "q - -3",
      "-9223372036854775808 + q",
      "x0 * 0.1 + 1e+300 - inf",
      "x0 + -inf",
      "x0 - -0.0",
      "1e-320 * x0",
      "x0 * 0.30000000000000004",
      "min(max(x0, 0.0), size(S) % size(B) // 2 * float(hash(q, k)))",
      "t0 = c1[b]; t0 * t0 + c3b[q] == c2b[k, h] ",
  };
  for (size_t i = 0; i + 1 < sizeof same / sizeof *same; i++) {
    uly_expr expr = parse(same[i]);
    uly_str text = uly_expr_print(arena, &expr, symbols, 3);
    if (!strstr(same[i], "min(max") && !uly_str_is(text, same[i])) fail_msg("%s became %.*s", same[i], ULY_STR_ARG(text));
    uly_expr again;
    assert_int_equal(uly_expr_parse(arena, text, symbols, 3, &again), ULY_OK);
    assert_true(uly_expr_equal(&expr, &again));
  }
}

// Shared nodes must not make the text grow exponentially.
static void sharing_keeps_text_short(void **state) {
  (void)state;
  uly_expr_builder *b = uly_expr_begin(arena);
  int32_t x = uly_expr_leaf(b, ULY_SC_OPERAND, ULY_SCALAR_FLOAT, 0);
  for (int i = 0; i < 200; i++) x = uly_expr_op(b, i % 2 ? ULY_SC_MUL : ULY_SC_ADD, (int32_t[]){x, x}, 2);
  uly_expr expr = uly_expr_end(b, x), again;
  uly_str text = uly_expr_print(arena, &expr, symbols, 3);
  assert_true(text.len < 5000);
  assert_int_equal(uly_expr_parse(arena, text, symbols, 3, &again), ULY_OK);
  assert_true(uly_expr_equal(&expr, &again));
}

static void depth_does_not_matter(void **state) {
  (void)state;
  uly_expr_builder *b = uly_expr_begin(arena);
  int32_t x = uly_expr_leaf(b, ULY_SC_OPERAND, ULY_SCALAR_FLOAT, 0);
  for (int i = 0; i < 8000; i++) x = uly_expr_op(b, ULY_SC_SIN, &x, 1);
  uly_expr expr = uly_expr_end(b, x), again;
  uly_str text = uly_expr_print(arena, &expr, symbols, 3);
  assert_int_equal(uly_expr_parse(arena, text, symbols, 3, &again), ULY_OK);
  assert_true(uly_expr_equal(&expr, &again));
}

static void hash_is_fixed(void **state) {
  (void)state;
  assert_int_equal(uly_scalar_hash(0, 0), 0x41f39e5eu);
  assert_int_equal(uly_scalar_hash(1, 2), 0x295df8fau);
  assert_int_equal(uly_scalar_hash(-1, ((int64_t)1 << 40) + 7), 0xa588f4f1u);
  assert_int_not_equal(uly_scalar_hash(1, 2), uly_scalar_hash(2, 1));
}

static int32_t replace_leaf(void *context, uly_expr_builder *b, const uly_expr_node *node) {
  (void)context;
  if (node->op != ULY_SC_OPERAND) return -1;
  return node->index == 0 ? uly_expr_const_float(b, 2.0) : uly_expr_leaf(b, ULY_SC_OPERAND, ULY_SCALAR_FLOAT, node->index + 4);
}

static void grafts(void **state) {
  (void)state;
  uly_expr source = parse("x0 * x0 + x1 * c0[b, q]"), expected = parse("4.0 + x5 * c0[b, q]");
  uly_expr_builder *b = uly_expr_begin(arena);
  uly_expr got = uly_expr_end(b, uly_expr_graft(b, &source, replace_leaf, NULL));
  assert_true(uly_expr_equal(&got, &expected));
}

static void size_is_bounded(void **state) {
  (void)state;
  uly_expr_builder *b = uly_expr_begin(arena);
  int32_t x = uly_expr_leaf(b, ULY_SC_OPERAND, ULY_SCALAR_FLOAT, 0), n = 0;
  for (; x >= 0 && n < 2 * ULY_EXPR_MAX_NODES; n++) x = uly_expr_op(b, ULY_SC_SIN, &x, 1);
  assert_int_equal(x, -1);
  assert_in_range(n, ULY_EXPR_MAX_NODES / 2, ULY_EXPR_MAX_NODES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(evaluates_as_c_does),
      cmocka_unit_test(folds_and_shares),
      cmocka_unit_test(types_follow_the_rules),
      cmocka_unit_test(ints_wrap_where_kernels_run),
      cmocka_unit_test(stored_values),
      cmocka_unit_test(text_round_trips),
      cmocka_unit_test(sharing_keeps_text_short),
      cmocka_unit_test(hash_is_fixed),
      cmocka_unit_test(depth_does_not_matter),
      cmocka_unit_test(grafts),
      cmocka_unit_test(size_is_bounded),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
