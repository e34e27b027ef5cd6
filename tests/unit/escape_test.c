// Names that would control a terminal.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include "runtime/base/escape.h"

static void shows(const char *name, size_t n, const char *expected) {
  uly_arena *arena = uly_arena_create();
  uly_text text = {.arena = arena};
  uly_text_add_escaped(&text, (uly_str){name, n});
  assert_string_equal(text.ptr, expected);
  uly_arena_destroy(arena);
}
#define SHOWS(literal, expected) shows(literal, sizeof(literal) - 1, expected)

static void names(void **state) {
  (void)state;
  SHOWS("layers.0.weight", "layers.0.weight");
  SHOWS("caf\xc3\xa9 \xe5\xb1\xa4 \xf0\x9f\x99\x82", "caf\xc3\xa9 \xe5\xb1\xa4 \xf0\x9f\x99\x82");
  SHOWS("a\nb\tc\\d\re", "a\\nb\\tc\\\\d\\x0de");
  SHOWS("\x1b[31mred\x7f", "\\x1b[31mred\\u{7f}");
  SHOWS("a\0b", "a\\x00b");
  SHOWS("\xc2\x9b"
        "31m",
        "\\u{9b}31m");                                                   // a control character of two bytes
  SHOWS("\xe2\x80\xaegnp.exe\xe2\x80\x8b", "\\u{202e}gnp.exe\\u{200b}"); // right to left, and nothing
  SHOWS("\xff\xc0\xafz\xe2\x82", "\\xff\\xc0\\xafz\\xe2\\x82");          // no UTF-8: a bad byte, an overlong slash, a cut character
  SHOWS("\xed\xa0\x80\xf4\x90\x80\x80", "\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
  SHOWS("%s%n", "%s%n");
}

static void streams(void **state) {
  (void)state;
  char *printed = NULL;
  size_t n = 0;
  FILE *stream = open_memstream(&printed, &n);
  uly_print_escaped(stream, "ulyrun: ", ULY_STR("two\nlines \x1b[2J \\"), "\n");
  static char many[10000];
  memset(many, '\x01', sizeof many);
  uly_print_escaped(stream, "<", (uly_str){many, sizeof many}, ">");
  fclose(stream);
  assert_int_equal(n, strlen("ulyrun: two\nlines \\x1b[2J \\\n") + 4 * sizeof many + 2);
  assert_memory_equal(printed, "ulyrun: two\nlines \\x1b[2J \\\n<\\x01\\x01", 36);
  assert_int_equal(printed[n - 1], '>');
  free(printed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names), cmocka_unit_test(streams)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
