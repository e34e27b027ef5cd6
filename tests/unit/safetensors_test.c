// Reading and writing safetensors: what a whole file is, and every way in which one can be wrong.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "runtime/io/safetensors.h"
#include "tests/unit/scratch_folder.h"

static scratch_folder folder;
static uly_error error;

static const char *write_file(const char *header, size_t header_bytes, size_t n_data) {
  uint8_t *bytes = calloc(1, 8 + header_bytes + n_data);
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)header_bytes >> (8 * i));
  memcpy(bytes + 8, header, header_bytes);
  const char *path = scratch_write(&folder, "x.safetensors", bytes, 8 + header_bytes + n_data);
  free(bytes);
  return path;
}

static void expect_bad_file(const char *path, const char *message) {
  uly_safetensors *file;
  memset(&error, 0, sizeof error);
  assert_int_equal(uly_safetensors_open(path, &file, &error), ULY_INVALID_INPUT);
  if (!strstr(error.text, message)) fail_msg("\"%s\" does not say \"%s\"", error.text, message);
  assert_non_null(strstr(error.text, "x.safetensors: "));
  assert_null(file);
}

static void expect_bad(const char *header, size_t n_data, const char *message) { expect_bad_file(write_file(header, strlen(header), n_data), message); }

static void round_trip(void **state) {
  (void)state;
  float a[6] = {1, 2, 3, 4, 5, 6};
  uint8_t b[3] = {7, 8, 9};
  int64_t c[2] = {-1, 1};
  const char *names[] = {"layer.0.weight", "b \"quoted\"", "c", "empty", "layer.0"};
  uly_ndarray arrays[] = {{.dtype = ULY_F32, .rank = 2, .dims = {2, 3}, .data = a, .bytes = 24},
                          {.dtype = ULY_U8, .rank = 1, .dims = {3}, .data = b, .bytes = 3},
                          {.dtype = ULY_I64, .rank = 1, .dims = {2}, .data = c, .bytes = 16}, // unaligned behind b
                          {.dtype = ULY_BF16, .rank = 2, .dims = {0, 4}, .data = a, .bytes = 0},
                          {.dtype = ULY_F16, .rank = 0, .data = a, .bytes = 2}};
  uly_safetensors *file;
  assert_int_equal(uly_safetensors_write(scratch_path(&folder, "good"), 5, names, arrays, &error), ULY_OK);
  assert_int_equal(uly_safetensors_open(folder.file, &file, &error), ULY_OK);
  assert_int_equal(uly_safetensors_count(file), 5);
  for (int i = 0; i < 5; i++) {
    const uly_safetensor *t = uly_safetensors_find(file, uly_str_of(names[i]));
    assert_non_null(t);
    assert_string_equal(t->name, names[i]);
    assert_true(t->supported);
    assert_int_equal(t->array.dtype, arrays[i].dtype);
    assert_int_equal(t->array.rank, arrays[i].rank);
    assert_int_equal(t->array.bytes, arrays[i].bytes);
    assert_int_equal((uintptr_t)t->array.data % (uintptr_t)uly_dtype_bytes(t->array.dtype), 0);
    if (t->array.bytes) assert_memory_equal(t->array.data, arrays[i].data, (size_t)t->array.bytes);
    assert_ptr_equal(uly_safetensors_find(file, uly_str_of(uly_safetensors_get(file, i)->name)), uly_safetensors_get(file, i));
  }
  assert_null(uly_safetensors_find(file, ULY_STR("layer")));
  assert_null(uly_safetensors_find(file, ULY_STR("")));
  assert_null(uly_safetensors_find(file, ULY_STR("zzz")));
  uly_safetensors_close(file);
  names[1] = "c";
  assert_int_equal(uly_safetensors_write(folder.file, 5, names, arrays, &error), ULY_INVALID_ARGUMENT);
}

static void accepted(void **state) {
  (void)state;
  uly_safetensors *file;
  const char *header = "{\"__metadata__\":{\"format\":\"pt\"},\"x\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]},"
                       "\"y\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[4,8]}}      ";
  assert_int_equal(uly_safetensors_open(write_file(header, strlen(header), 8), &file, &error), ULY_OK);
  assert_int_equal(uly_safetensors_count(file), 2);
  assert_false(uly_safetensors_find(file, ULY_STR("x"))->supported);
  assert_string_equal(uly_safetensors_find(file, ULY_STR("x"))->dtype_name, "F8_E4M3");
  assert_true(uly_safetensors_find(file, ULY_STR("y"))->supported);
  uly_safetensors_close(file);
  assert_int_equal(uly_safetensors_open(write_file("{}", 2, 0), &file, &error), ULY_OK);
  assert_int_equal(uly_safetensors_count(file), 0);
  uly_safetensors_close(file);
}

#define X(first, end) "{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" #first "," #end "]}"
#define Y(first, end) ",\"y\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" #first "," #end "]}}"

static void bad_places(void **state) {
  (void)state;
  expect_bad(X(0, 8) Y(8, 16), 15, "truncated: tensor y ends at byte 16");
  expect_bad(X(0, 8) Y(8, 16), 17, "1 bytes at the end belong to no tensor");
  expect_bad(X(0, 8) Y(4, 12), 12, "tensors x and y overlap");
  expect_bad(X(0, 8) Y(0, 8), 8, "overlap");
  expect_bad(X(0, 8) Y(12, 20), 20, "4 bytes before tensor y");
  expect_bad(X(4, 12) Y(12, 20), 20, "4 bytes before tensor x");
  expect_bad(X(8, 0) "}", 8, "bad data_offsets");
  expect_bad(X(0, 12) "}", 12, "12 bytes, F32[2] needs 8");
  expect_bad(X(-8, 0) "}", 8, "bad data_offsets");
  expect_bad(X(0.0, 8) "}", 8, "bad data_offsets");
  expect_bad(X(0, 18446744073709551624) "}", 8, "header");
  expect_bad(X(0, 9223372036854775807) "}", 8, "truncated");
}

static void bad_headers(void **state) {
  (void)state;
  uly_safetensors *file;
  expect_bad_file(scratch_write(&folder, "x.safetensors", "", 0), "truncated: 0 bytes");
  expect_bad_file(scratch_write(&folder, "x.safetensors", "1234567", 7), "truncated: 7 bytes");
  expect_bad_file(scratch_write(&folder, "x.safetensors", "\x10\0\0\0\0\0\0\0{}", 10), "truncated: the header has 16 bytes, the file 10");
  expect_bad_file(scratch_write(&folder, "x.safetensors", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), "a header of 18446744073709551615 bytes");
  expect_bad_file(scratch_write(&folder, "x.safetensors", "\x01\xe1\xf5\x05\0\0\0\0{}", 10), "a header of 100000001 bytes");
  expect_bad("", 0, "does not start with");
  expect_bad("[]", 0, "does not start with");
  expect_bad(" {}", 0, "does not start with");
  expect_bad("{", 0, "header, byte");
  expect_bad("{} x", 0, "header, byte");
  expect_bad("{\"x\":1}", 0, "tensor x: not an object");
  expect_bad("{\"x\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "other keys");
  expect_bad("{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"more\":0}}", 8, "other keys");
  expect_bad("{\"x\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype is not a string");
  expect_bad("{\"x\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8, "no shape");
  expect_bad("{\"x\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "not a natural number");
  expect_bad("{\"x\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,8]}}", 8, "overflows");
  expect_bad("{\"x\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8, "9 dims");
  expect_bad("{\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "duplicate");
  expect_bad("{\"x\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "duplicate");
  expect_bad("{\"x\":{\"dtype\":\"F32\",\"shape\":[[[2]]],\"data_offsets\":[0,8]}}", 8, "nests deeper");
  expect_bad("{\"x\":{\"dtype\":\"F32\",\"shape\":[000000000000000000002],\"data_offsets\":[0,8]}}", 8, "a number of more than");
  expect_bad("{\"\xff\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "header, byte");
  expect_bad("{\"\\u0000\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "header, byte");
  assert_int_equal(uly_safetensors_open(scratch_path(&folder, "none"), &file, &error), ULY_IO);
}

// Headers made to cost memory or time: deep, many values, many tensors.
static void bombs(void **state) {
  (void)state;
  size_t n = 4000000;
  char *text = malloc(n);
  memset(text, '[', n);
  text[0] = '{';
  expect_bad_file(write_file(text, n, 0), "nests deeper");
  for (size_t i = 1; i < n; i++) text[i] = i & 1 ? '1' : ',';
  memcpy(text, "{\"a\":[", 6);
  expect_bad_file(write_file(text, n, 0), "values");
  free(text);
  uly_text many = {.arena = uly_arena_create()};
  for (int i = 0; i < 65538; i++) uly_text_add(&many, "%c\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? ',' : '{', i);
  uly_text_add(&many, "}");
  expect_bad_file(write_file(many.ptr, many.len, 0), "65538 tensors, at most 65536");
  uly_arena_destroy(many.arena);
}

static void cuts_and_flips(void **state) {
  (void)state;
  uint8_t bytes[512];
  float a[4] = {1, 2, 3, 4};
  const char *names[] = {"a", "b"};
  uly_ndarray arrays[] = {{.dtype = ULY_F32, .rank = 1, .dims = {2}, .data = a, .bytes = 8},
                          {.dtype = ULY_F32, .rank = 2, .dims = {1, 2}, .data = a, .bytes = 8}};
  uly_safetensors *file;
  assert_int_equal(uly_safetensors_write(scratch_path(&folder, "good"), 2, names, arrays, &error), ULY_OK);
  FILE *f = fopen(folder.file, "rb");
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  for (size_t cut = 0; cut < n; cut++) assert_int_equal(uly_safetensors_open(scratch_write(&folder, "x", bytes, cut), &file, &error), ULY_INVALID_INPUT);
  for (size_t i = 0; i < n - 16; i++)
    for (int bit = 0; bit < 8; bit++) {
      bytes[i] ^= (uint8_t)(1 << bit);
      if (uly_safetensors_open(scratch_write(&folder, "x", bytes, n), &file, &error) == ULY_OK) {
        int64_t sum = 0;
        for (int64_t k = 0; k < uly_safetensors_count(file); k++) sum += uly_safetensors_get(file, k)->array.bytes;
        assert_int_equal(sum, 16);
        uly_safetensors_close(file);
      }
      bytes[i] ^= (uint8_t)(1 << bit);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip),  cmocka_unit_test(accepted), cmocka_unit_test(bad_places),
                                     cmocka_unit_test(bad_headers), cmocka_unit_test(bombs),    cmocka_unit_test(cuts_and_flips)};
  scratch_create(&folder);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  scratch_destroy(&folder);
  return failed;
}
