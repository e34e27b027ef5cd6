// Size expressions at every rank of a grid.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/base/nodes.h"

enum { MAX_NODES = 64, MAX_VALUES = 4096 };

typedef struct table {
  uly_node node[MAX_NODES];
  uint32_t n;
  int64_t symbols[4], values[MAX_VALUES];
  uly_nodes nodes;
} table;

static uint32_t add(table *t, uly_node_kind kind, uint32_t a, uint32_t b, uint32_t c, int64_t value) {
  t->node[t->n] = (uly_node){kind, a, b, c, value};
  return t->n++;
}
static uint32_t constant(table *t, int64_t value) { return add(t, ULY_NODE_CONST, 0, 0, 0, value); }

static void eval(table *t, uint32_t n_axes, int32_t size0, int32_t size1) {
  t->nodes = (uly_nodes){.nodes = t->node, .n_nodes = t->n, .n_symbols = 4, .symbols = t->symbols, .grid = {n_axes, {size0, size1}}, .values = t->values};
  t->nodes.n_ranks = uly_grid_ranks(&t->nodes.grid);
  assert_true((int64_t)t->n * t->nodes.n_ranks <= MAX_VALUES);
  uly_nodes_eval(&t->nodes);
}

static int64_t get(const table *t, uint32_t node, int64_t rank) {
  int64_t value;
  uly_error error;
  if (uly_nodes_get(&t->nodes, node, rank, &error, &value) != ULY_OK) fail_msg("%s", error.text);
  return value;
}

static void fails(const table *t, uint32_t node, uly_status want, const char *part) {
  int64_t value;
  uly_error error = {0};
  uly_status status = uly_nodes_get(&t->nodes, node, 0, &error, &value);
  if (status != want || !strstr(error.text, part)) fail_msg("status %d, expected %d; \"%s\" should say \"%s\"", (int)status, (int)want, error.text, part);
}

static void floors(void **state) {
  (void)state;
  static const int64_t numbers[] = {-9, -8, -7, -1, 0, 1, 5, 8, 9};
  for (int i = 0; i < 9; i++)
    for (int j = 0; j < 9; j++) {
      table t = {0};
      uint32_t a = constant(&t, numbers[i]), b = constant(&t, numbers[j]);
      uint32_t f = add(&t, ULY_NODE_FDIV, a, b, 0, 0), c = add(&t, ULY_NODE_CDIV, a, b, 0, 0), m = add(&t, ULY_NODE_MOD, a, b, 0, 0);
      eval(&t, 0, 0, 0);
      if (numbers[j] == 0) {
        fails(&t, f, ULY_OVERFLOW, "FDIV");
        fails(&t, c, ULY_OVERFLOW, "CDIV");
        fails(&t, m, ULY_OVERFLOW, "MOD");
        continue;
      }
      int64_t q = get(&t, f, 0), up = get(&t, c, 0), rest = get(&t, m, 0);
      assert_true(q * numbers[j] + rest == numbers[i] && (rest == 0 || (rest < 0) == (numbers[j] < 0)) && llabs(rest) < llabs(numbers[j]));
      assert_true(up == q + (rest != 0));
    }
}

static void shares_cover(void **state) {
  (void)state;
  for (int64_t n = 0; n < 40; n++)
    for (int32_t p = 1; p <= 17; p++) {
      table t = {.symbols = {n}};
      uint32_t s = add(&t, ULY_NODE_SYM, 0, 0, 0, 0), size = add(&t, ULY_NODE_AXIS_SIZE, 0, 0, 0, 0), rank = add(&t, ULY_NODE_AXIS_RANK, 0, 0, 0, 0);
      uint32_t share = add(&t, ULY_NODE_SHARE, s, size, rank, 0), start = add(&t, ULY_NODE_START, s, size, rank, 0);
      uint32_t sum = add(&t, ULY_NODE_PEER_SUM, share, 0, 0, 0), before = add(&t, ULY_NODE_PEER_BEFORE, share, 0, 0, 0),
               most = add(&t, ULY_NODE_PEER_MAX, share, 0, 0, 0);
      eval(&t, 1, p, 0);
      for (int64_t r = 0; r < p; r++) {
        assert_int_equal(get(&t, rank, r), r);
        assert_int_equal(get(&t, start, r), get(&t, before, r));
        assert_int_equal(get(&t, sum, r), n);
        assert_int_equal(get(&t, most, r), (n + p - 1) / p);
        assert_true(r == 0 || get(&t, share, r) <= get(&t, share, r - 1)); // ranks with rows come first
      }
      assert_int_equal(get(&t, start, p - 1) + get(&t, share, p - 1), n);
    }
}

static void two_axes(void **state) {
  (void)state;
  table t = {0};
  uint32_t x = add(&t, ULY_NODE_AXIS_RANK, 0, 0, 0, 0), y = add(&t, ULY_NODE_AXIS_RANK, 0, 0, 0, 1), ten = constant(&t, 10);
  uint32_t place = add(&t, ULY_NODE_ADD, add(&t, ULY_NODE_MUL, ten, y, 0, 0), x, 0, 0);
  uint32_t along_x = add(&t, ULY_NODE_PEER_SUM, place, 0, 0, 0), along_y = add(&t, ULY_NODE_PEER_BEFORE, place, 0, 0, 1),
           most = add(&t, ULY_NODE_PEER_MAX, place, 0, 0, 1);
  eval(&t, 2, 3, 4);
  assert_int_equal(t.nodes.n_ranks, 12);
  for (int64_t r = 0; r < 12; r++) {
    int64_t i = r % 3, j = r / 3;
    assert_int_equal(get(&t, place, r), 10 * j + i);
    assert_int_equal(get(&t, along_x, r), 3 * 10 * j + 3);
    assert_int_equal(get(&t, along_y, r), 10 * j * (j - 1) / 2 + i * j);
    assert_int_equal(get(&t, most, r), 30 + i);
    assert_int_equal(uly_grid_peer(&t.nodes.grid, r, 1, 2), 6 + i);
  }
}

static void peers_of_negative_numbers(void **state) {
  (void)state;
  table t = {0};
  uint32_t r = add(&t, ULY_NODE_AXIS_RANK, 0, 0, 0, 0), five = constant(&t, 5), below = add(&t, ULY_NODE_SUB, r, five, 0, 0);
  uint32_t most = add(&t, ULY_NODE_PEER_MAX, below, 0, 0, 0);
  eval(&t, 1, 3, 0);
  assert_int_equal(get(&t, most, 0), -3);
}

static void overflow_is_found(void **state) {
  (void)state;
  table t = {.symbols = {(int64_t)1 << 40, 3, ULY_NO_VALUE, 0}};
  uint32_t big = add(&t, ULY_NODE_SYM, 0, 0, 0, 0), three = add(&t, ULY_NODE_SYM, 0, 0, 0, 1), unset = add(&t, ULY_NODE_SYM, 0, 0, 0, 2);
  uint32_t product = add(&t, ULY_NODE_MUL, big, big, 0, 0), user = add(&t, ULY_NODE_ADD, three, product, 0, 0),
           peers = add(&t, ULY_NODE_PEER_SUM, user, 0, 0, 0);
  uint32_t pick_bad = add(&t, ULY_NODE_SELECT, three, product, big, 0), pick_good = add(&t, ULY_NODE_SELECT, three, big, product, 0);
  uint32_t zero = constant(&t, 0), divided = add(&t, ULY_NODE_FDIV, big, zero, 0, 0), guarded = add(&t, ULY_NODE_SELECT, zero, divided, three, 0);
  uint32_t without = add(&t, ULY_NODE_MUL, three, unset, 0, 0), most = constant(&t, INT64_MAX), sum = add(&t, ULY_NODE_ADD, most, three, 0, 0);
  uint32_t square = add(&t, ULY_NODE_MUL, big, three, 0, 0), far = add(&t, ULY_NODE_MUL, square, add(&t, ULY_NODE_MUL, three, three, 0, 0), 0, 0);
  uint32_t negative = add(&t, ULY_NODE_SUB, zero, three, 0, 0), share_of_it = add(&t, ULY_NODE_SHARE, negative, three, zero, 0);
  int64_t value;
  uly_error error;
  eval(&t, 1, 2, 0);
  fails(&t, product, ULY_OVERFLOW, "MUL of 1099511627776 and 1099511627776");
  fails(&t, user, ULY_OVERFLOW, "MUL of 1099511627776 and 1099511627776");
  fails(&t, peers, ULY_OVERFLOW, "MUL of 1099511627776");
  fails(&t, pick_bad, ULY_OVERFLOW, "MUL of");
  fails(&t, divided, ULY_OVERFLOW, "divides by zero");
  fails(&t, without, ULY_INVALID_ARGUMENT, "symbol 2");
  fails(&t, sum, ULY_OVERFLOW, "ADD of 9223372036854775807 and 3");
  fails(&t, 4000, ULY_INVALID_INPUT, "missing");
  assert_int_equal(get(&t, pick_good, 0), (int64_t)1 << 40);
  assert_int_equal(get(&t, guarded, 1), 3);
  assert_int_equal(uly_nodes_size(&t.nodes, square, 0, &error, &value), ULY_OK);
  assert_int_equal(uly_nodes_size(&t.nodes, far, 0, &error, &value), ULY_OK);
  assert_int_equal(uly_nodes_size(&t.nodes, most, 0, &error, &value), ULY_OVERFLOW);
  assert_non_null(strstr(error.text, "beyond 2^47"));
  assert_int_equal(uly_nodes_size(&t.nodes, negative, 0, &error, &value), ULY_INVALID_ARGUMENT);
  assert_non_null(strstr(error.text, "a size is negative: -"));
  fails(&t, share_of_it, ULY_INVALID_ARGUMENT, "a size is negative: -3");
}

static void constants_without_a_grid(void **state) {
  (void)state;
  table t = {.symbols = {7, 7, 7, 7}};
  uint32_t two = constant(&t, 2), four = add(&t, ULY_NODE_MUL, two, two, 0, 0), ranks = add(&t, ULY_NODE_AXIS_SIZE, 0, 0, 0, 0),
           s = add(&t, ULY_NODE_SYM, 0, 0, 0, 0);
  t.nodes = (uly_nodes){.nodes = t.node, .n_nodes = t.n, .n_symbols = 4, .n_ranks = 1, .values = t.values};
  uly_nodes_eval(&t.nodes);
  assert_int_equal(get(&t, four, 0), 4);
  fails(&t, ranks, ULY_INVALID_INPUT, "depends on the grid");
  fails(&t, s, ULY_INVALID_ARGUMENT, "symbol 0");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(floors),
                                     cmocka_unit_test(shares_cover),
                                     cmocka_unit_test(two_axes),
                                     cmocka_unit_test(peers_of_negative_numbers),
                                     cmocka_unit_test(overflow_is_found),
                                     cmocka_unit_test(constants_without_a_grid)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
