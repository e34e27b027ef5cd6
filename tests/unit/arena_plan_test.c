// Blocks that live together never overlap; blocks that do not share memory; equal inputs give equal offsets.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/arena_plan.h"

enum { N = 60 };

static void never_overlap(void **state) {
  (void)state;
  uint64_t random = 5;
  for (int round = 0; round < 400; round++) {
    uly_block a[N], b[N];
    int64_t total, again, first, at_once = 0, first_end = 0;
    uly_error error;
    uint32_t n = 1 + (uint32_t)round % N;
    for (uint32_t i = 0; i < n; i++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      uint32_t from = (uint32_t)(random >> 40) % 30;
      a[i] = b[i] = (uly_block){
          .bytes = (int64_t)(random >> 33) % 1000, .live_from = from, .live_to = from + (uint32_t)(random >> 50) % 9, .first = round % 2 && random >> 61 == 0};
    }
    assert_int_equal(uly_arena_plan(a, n, &error, &total, &first), ULY_OK);
    assert_int_equal(uly_arena_plan(b, n, &error, &again, &first), ULY_OK);
    assert_int_equal(total, again);
    for (uint32_t i = 0; i < n; i++) {
      assert_int_equal(a[i].offset, b[i].offset);
      if (a[i].first && a[i].offset + a[i].bytes > first_end) first_end = a[i].offset + a[i].bytes;
      assert_true(a[i].offset >= 0 && a[i].offset % ULY_ARENA_ALIGN == 0 && a[i].offset + a[i].bytes <= total);
      for (uint32_t k = 0; k < i; k++)
        if (a[i].live_from <= a[k].live_to && a[k].live_from <= a[i].live_to)
          assert_true(a[i].offset + a[i].bytes <= a[k].offset || a[k].offset + a[k].bytes <= a[i].offset);
    }
    assert_int_equal(first, first_end);
    for (uint32_t step = 0; step < 40; step++) {
      int64_t live = 0;
      for (uint32_t i = 0; i < n; i++)
        if (a[i].live_from <= step && step <= a[i].live_to) live += a[i].bytes;
      if (live > at_once) at_once = live;
    }
    assert_true(total >= at_once && total <= at_once + at_once / 2 + 1000);
  }
}

static void shares_memory(void **state) {
  (void)state;
  uly_block blocks[] = {
      {.bytes = 100, .live_from = 0, .live_to = 3}, {.bytes = 100, .live_from = 3, .live_to = 5}, {.bytes = 100, .live_from = 4, .live_to = 6}};
  int64_t total, first;
  uly_error error;
  assert_int_equal(uly_arena_plan(blocks, 3, &error, &total, &first), ULY_OK);
  assert_int_equal(total, 256);
  assert_int_equal(blocks[0].offset, blocks[2].offset);
}

// Blocks to place first stand at the front, and the others use what they leave free.
static void first_ones(void **state) {
  (void)state;
  uly_block blocks[] = {
      {.bytes = 640, .live_from = 3, .live_to = 4}, {.bytes = 128, .live_from = 1, .live_to = 2, .first = true}, {.bytes = 64, .live_from = 2, .live_to = 3}};
  int64_t total, first;
  uly_error error;
  assert_int_equal(uly_arena_plan(blocks, 3, &error, &total, &first), ULY_OK);
  assert_true(blocks[1].offset == 0 && first == 128);
  assert_true(blocks[0].offset == 0 && blocks[2].offset == 640 && total == 704);
}

static void too_large(void **state) {
  (void)state;
  uly_block blocks[] = {{.bytes = (int64_t)1 << 46, .live_to = 1}, {.bytes = (int64_t)1 << 46, .live_to = 1}, {.bytes = (int64_t)1 << 46, .live_to = 1}};
  int64_t total, first;
  uly_error error;
  assert_int_equal(uly_arena_plan(blocks, 2, &error, &total, &first), ULY_OK);
  assert_int_equal(uly_arena_plan(blocks, 3, &error, &total, &first), ULY_OVERFLOW);
  assert_int_equal(uly_arena_plan(NULL, 0, &error, &total, &first), ULY_OK);
  assert_int_equal(total, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(never_overlap), cmocka_unit_test(shares_memory), cmocka_unit_test(first_ones),
                                     cmocka_unit_test(too_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
