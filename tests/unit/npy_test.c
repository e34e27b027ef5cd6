// Reading and writing .npy: every dtype and version, and every way in which a file can be wrong.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "runtime/io/npy.h"
#include "tests/unit/scratch_folder.h"

static scratch_folder folder;
static uly_error error;

// A file of |version| with |header| and |n_data| bytes of zeros.
static const char *write_file(int version, const char *header, size_t n_data) {
  uint8_t bytes[4096] = {0};
  size_t len = strlen(header), at = version == 1 ? 10 : 12;
  memcpy(bytes, "\x93NUMPY", 6);
  bytes[6] = (uint8_t)version;
  bytes[8] = (uint8_t)len;
  bytes[9] = (uint8_t)(len >> 8);
  memcpy(bytes + at, header, len);
  return scratch_write(&folder, "x.npy", bytes, at + len + n_data);
}

static void expect_bad(const char *path, const char *message) {
  uly_mapping mapping;
  uly_ndarray array;
  memset(&error, 0, sizeof error);
  assert_int_equal(uly_npy_open(path, &mapping, &array, &error), ULY_INVALID_INPUT);
  if (!strstr(error.text, message)) fail_msg("\"%s\" does not say \"%s\"", error.text, message);
  assert_non_null(strstr(error.text, "x.npy: "));
  assert_int_equal(mapping.bytes.len, 0);
}

static void expect_bad_header(const char *header, const char *message) { expect_bad(write_file(1, header, 24), message); }

static void round_trip(void **state) {
  (void)state;
  const int64_t shapes[][3] = {{2, 3, 4}, {0, 3, 1}, {1, 1, 1}, {7, 1, 2}};
  for (int d = 0; d < ULY_N_DTYPES; d++) {
    if (!*uly_dtype_get((uly_dtype)d)->npy) continue;
    for (size_t s = 0; s < 4; s++)
      for (int rank = 0; rank <= 3; rank++) {
        uint8_t data[24 * 8];
        for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i * 7 + 1);
        uly_ndarray a = {.dtype = (uly_dtype)d, .rank = rank, .data = data}, b;
        memcpy(a.dims, shapes[s], sizeof shapes[s]);
        int64_t elements;
        assert_true(uly_ndarray_size(a.dtype, rank, a.dims, &elements, &a.bytes));
        const char *path = scratch_path(&folder, "x.npy");
        uly_mapping mapping;
        assert_int_equal(uly_npy_write(path, &a, &error), ULY_OK);
        assert_int_equal(uly_npy_open(path, &mapping, &b, &error), ULY_OK);
        assert_int_equal(b.dtype, a.dtype);
        assert_int_equal(b.rank, a.rank);
        assert_int_equal(b.bytes, a.bytes);
        for (int i = 0; i < rank; i++) assert_int_equal(b.dims[i], a.dims[i]);
        if (a.bytes) assert_memory_equal(b.data, data, (size_t)a.bytes);
        uly_mapping_close(&mapping);
      }
  }
}

static void versions_and_spellings(void **state) {
  (void)state;
  const char *headers[] = {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", "{\"shape\":(6L,),\"descr\":\"<f4\",\"fortran_order\":False}",
                           "{ 'fortran_order' : False , 'shape' : ( 3 , 2 ) , 'descr' : '<f4' }\n"};
  for (int version = 1; version <= 3; version++)
    for (size_t i = 0; i < 3; i++) {
      uly_mapping mapping;
      uly_ndarray array;
      assert_int_equal(uly_npy_open(write_file(version, headers[i], 24), &mapping, &array, &error), ULY_OK);
      assert_int_equal(array.bytes, 24);
      assert_int_equal((uintptr_t)array.data % 4, 0); // copied where the file has it unaligned
      assert_int_equal(((const float *)array.data)[5], 0);
      uly_mapping_close(&mapping);
    }
}

static void bad_headers(void **state) {
  (void)state;
  const char *good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  expect_bad(write_file(1, good, 23), "truncated: 23 bytes of data, the shape needs 24");
  expect_bad(write_file(1, good, 25), "too long");
  expect_bad(write_file(4, good, 24), "version 4");
  expect_bad(write_file(0, good, 24), "version 0");
  expect_bad(scratch_write(&folder, "x.npy", "", 0), "not a .npy file");
  expect_bad(scratch_write(&folder, "x.npy", "PK\3\4 zip", 8), "not a .npy file");
  expect_bad(scratch_write(&folder, "x.npy", "\x93NUMPY", 6), "truncated header");
  expect_bad(scratch_write(&folder, "x.npy", "\x93NUMPY\1\0\xff", 9), "truncated header");
  expect_bad(scratch_write(&folder, "x.npy", "\x93NUMPY\1\0\xff\0{", 11), "truncated header");
  expect_bad(scratch_write(&folder, "x.npy", "\x93NUMPY\2\0\xff\xff\xff\x7f{}", 14), "a header of 2147483647 bytes");
  expect_bad_header("[1]", "not a dict");
  expect_bad_header("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", "Fortran order");
  expect_bad_header("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", "big-endian dtype '>f4'");
  expect_bad_header("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }", "unsupported dtype '<c8'");
  expect_bad_header("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", "unsupported dtype '|O'");
  expect_bad_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", "structured");
  expect_bad_header("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 2), }", "overflows");
  expect_bad_header("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }", "bad header");
  expect_bad_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3), }", "bad header");
  expect_bad_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,6), }", "bad header");
  expect_bad_header("{'descr': '<f4', 'fortran_order': False, }", "lacks");
  expect_bad_header("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", "bad header");
  expect_bad_header("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'more': 1}", "bad header");
  expect_bad_header("{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} x", "behind");
  expect_bad_header("{'descr': '<f4', 'fortran_order': False, 'shape': (6,)", "bad header");
  expect_bad_header("{'descr': '<f4' 'fortran_order': False}", "bad header");
}

// Every cut of a good file, and every byte of its header turned over: an error or a correct array, nothing else.
static void cuts_and_flips(void **state) {
  (void)state;
  float data[6] = {1, 2, 3, 4, 5, 6};
  uly_ndarray a = {.dtype = ULY_F32, .rank = 2, .dims = {2, 3}, .data = data, .bytes = 24}, b;
  uint8_t bytes[1024];
  assert_int_equal(uly_npy_write(scratch_path(&folder, "good.npy"), &a, &error), ULY_OK);
  FILE *f = fopen(folder.file, "rb");
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  for (size_t cut = 0; cut < n; cut++) {
    uly_mapping mapping;
    assert_int_equal(uly_npy_open(scratch_write(&folder, "x.npy", bytes, cut), &mapping, &b, &error), ULY_INVALID_INPUT);
  }
  for (size_t i = 0; i < n - 24; i++)
    for (int bit = 0; bit < 8; bit++) {
      uly_mapping mapping;
      bytes[i] ^= (uint8_t)(1 << bit);
      if (uly_npy_open(scratch_write(&folder, "x.npy", bytes, n), &mapping, &b, &error) == ULY_OK) {
        assert_int_equal(b.bytes, 24);
        uly_mapping_close(&mapping);
      }
      bytes[i] ^= (uint8_t)(1 << bit);
    }
}

static void refused(void **state) {
  (void)state;
  uly_mapping mapping;
  uly_ndarray a = {.dtype = ULY_BF16, .rank = 0, .bytes = 2, .data = "ab"};
  assert_int_equal(uly_npy_write(scratch_path(&folder, "bf16.npy"), &a, &error), ULY_INVALID_ARGUMENT);
  assert_non_null(strstr(error.text, "NumPy has no bf16"));
  assert_int_equal(uly_npy_open(scratch_path(&folder, "none.npy"), &mapping, &a, &error), ULY_IO);
  assert_int_equal(uly_npy_open(folder.path, &mapping, &a, &error), ULY_IO);
  assert_non_null(strstr(error.text, "not a regular file"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(versions_and_spellings), cmocka_unit_test(bad_headers),
                                     cmocka_unit_test(cuts_and_flips), cmocka_unit_test(refused)};
  scratch_create(&folder);
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  scratch_destroy(&folder);
  return failed;
}
