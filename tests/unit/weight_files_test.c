// Weights in several files: an index, its folder, and every way in which the set can be wrong.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "runtime/io/weight_files.h"
#include "tests/unit/scratch_folder.h"

static scratch_folder folder;
static uly_error error;

// A safetensors file of f32 scalars, named by the letters of |names|, with the value |first|, |first| + 1 …
static void write_part(const char *file, const char *names, float first) {
  const char *list[8];
  char text[8][2];
  float values[8];
  uly_ndarray arrays[8];
  int n = (int)strlen(names);
  for (int i = 0; i < n; i++) {
    text[i][0] = names[i], text[i][1] = 0;
    list[i] = text[i];
    values[i] = first + (float)i;
    arrays[i] = (uly_ndarray){.dtype = ULY_F32, .rank = 0, .data = &values[i], .bytes = 4};
  }
  assert_int_equal(uly_safetensors_write(scratch_path(&folder, file), n, list, arrays, &error), ULY_OK);
}

static void write_text(const char *file, const char *text) { scratch_write(&folder, file, text, strlen(text)); }
static void write_index(const char *map) {
  char text[1024];
  snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":16},\"weight_map\":%s}", map);
  write_text("model.safetensors.index.json", text);
}

static void expect_bad(const char *file, uly_status status, const char *message) {
  uly_weight_files *files;
  memset(&error, 0, sizeof error);
  assert_int_equal(uly_weight_files_open(scratch_path(&folder, file), &files, &error), status);
  if (!strstr(error.text, message)) fail_msg("\"%s\" does not say \"%s\"", error.text, message);
  assert_null(files);
}

static void expect_bad_index(const char *map, const char *message) {
  write_index(map);
  expect_bad("model.safetensors.index.json", ULY_INVALID_INPUT, message);
}

// Tensors "a" … of the files one and two, valued 0 … 3.
static void expect_whole(const char *path, int64_t n) {
  uly_weight_files *files;
  if (uly_weight_files_open(path, &files, &error) != ULY_OK) fail_msg("%s", error.text);
  assert_int_equal(uly_weight_files_count(files), n);
  for (int64_t i = 0; i < n; i++) {
    const uly_safetensor *t = uly_weight_files_get(files, i);
    char name[2] = {(char)('a' + i), 0};
    assert_string_equal(t->name, name);
    assert_int_equal(uly_weight_files_find(files, uly_str_of(name)), i);
    assert_true(*(const float *)t->array.data == (float)i);
    assert_non_null(strstr(uly_weight_files_file(files, i), n == 1 ? "model.safetensors" : i < 2 ? "one" : "two"));
  }
  assert_int_equal(uly_weight_files_find(files, ULY_STR("aa")), -1);
  assert_int_equal(uly_weight_files_find(files, ULY_STR("")), -1);
  uly_weight_files_close(files);
}

static void whole_sets(void **state) {
  (void)state;
  write_part("one.safetensors", "ab", 0);
  write_part("two.safetensors", "cd", 2);
  write_index("{\"d\":\"two.safetensors\",\"a\":\"one.safetensors\",\"c\":\"two.safetensors\",\"b\":\"one.safetensors\"}");
  expect_whole(scratch_path(&folder, "model.safetensors.index.json"), 4);
  expect_whole(folder.path, 4);
  expect_whole(scratch_path(&folder, ""), 4); // the folder, with a slash
  char from_inside[] = "model.safetensors.index.json", back[512];
  assert_non_null(getcwd(back, sizeof back));
  assert_int_equal(chdir(folder.path), 0);
  expect_whole(from_inside, 4);
  expect_whole(".", 4);
  assert_int_equal(chdir(back), 0);
  // Tensors that the index does not name are there too; a single file wins over an index.
  write_index("{\"a\":\"one.safetensors\",\"d\":\"two.safetensors\"}");
  expect_whole(folder.path, 4);
  write_part("model.safetensors", "a", 0);
  expect_whole(folder.path, 1);
  assert_int_equal(unlink(scratch_path(&folder, "model.safetensors")), 0);
}

static void wrong_sets(void **state) {
  (void)state;
  write_part("one.safetensors", "ab", 0);
  write_part("two.safetensors", "cd", 2);
  write_part("twin.safetensors", "eb", 2);
  expect_bad_index("{\"a\":\"one.safetensors\",\"e\":\"twin.safetensors\"}", "index.json: tensor b is in two files, ");
  expect_bad_index("{\"a\":\"one.safetensors\",\"x\":\"two.safetensors\"}", "tensor x is not in two.safetensors, which should hold it");
  expect_bad_index("{\"a\":\"one.safetensors\",\"b\":\"two.safetensors\"}", "tensor b is in one.safetensors, not in two.safetensors");
  expect_bad_index("{\"a\":\"one.safetensors\",\"a\":\"two.safetensors\"}", "duplicate");
  expect_bad_index("{\"a\":7}", "the file of tensor a is not a string");
  expect_bad_index("[]", "no object weight_map");
  static const char *const outside[] = {"../one.safetensors", "/one.safetensors", "x/../../one.safetensors", "", "..", "x//y", "x/", "./one.safetensors"};
  for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
    char map[128], message[160];
    snprintf(map, sizeof map, "{\"a\":\"%s\"}", outside[i]);
    snprintf(message, sizeof message, "the file '%s' is not below the index's folder", outside[i]);
    expect_bad_index(map, message);
  }
  write_index("{\"a\":\"none.safetensors\"}");
  expect_bad("model.safetensors.index.json", ULY_IO, "index.json: ");
  expect_bad("model.safetensors.index.json", ULY_IO, "none.safetensors: No such file");
  write_text("two.safetensors", "torn");
  expect_bad_index("{\"a\":\"one.safetensors\",\"c\":\"two.safetensors\"}", "two.safetensors: truncated");
}

static void wrong_texts(void **state) {
  (void)state;
  write_text("x.json", "{}");
  expect_bad("x.json", ULY_INVALID_INPUT, "no object weight_map");
  write_text("x.json", "");
  expect_bad("x.json", ULY_INVALID_INPUT, "x.json: byte 0: ");
  write_text("x.json", "{\"weight_map\":{\"a\":[[[[[1]]]]]}}");
  expect_bad("x.json", ULY_INVALID_INPUT, "x.json: byte 21: nests deeper than 4");
  write_text("x.json", "[1]");
  expect_bad("x.json", ULY_INVALID_INPUT, "no object weight_map");
  expect_bad("none.json", ULY_IO, "none.json: No such file");
  expect_bad("none.safetensors", ULY_IO, "none.safetensors: No such file");
  scratch_destroy(&folder);
  scratch_create(&folder);
  expect_bad("", ULY_IO, "the folder holds neither model.safetensors nor model.safetensors.index.json");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(whole_sets), cmocka_unit_test(wrong_sets), cmocka_unit_test(wrong_texts)};
  scratch_create(&folder);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  scratch_destroy(&folder);
  return failed;
}
