// Loading the MPI transport: what is refused, and with which words; and how large messages are cut for an MPI without large counts.
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <string.h>

#include "runtime/transports/mpi_chunks.h"
#include "runtime/transports/plugin.h"

static void refuse(const char *path, const char *why) {
  uly_error error = {0};
  const uly_mpi_plugin *plugin;
  assert_int_equal(uly_mpi_load(path, &error, &plugin), ULY_UNAVAILABLE);
  if (!strstr(error.text, why)) fail_msg("\"%s\" does not say \"%s\"", error.text, why);
  assert_null(plugin);
}

static void refuses(void **state) {
  (void)state;
  char numbers[64];
  snprintf(numbers, sizeof numbers, "has version 999 (%zu), the runtime needs version %u (%zu)", sizeof(uly_comm), ULY_PLUGIN_API, sizeof(uly_comm));
  refuse("/nowhere/libulyrt_mpi.so", "/nowhere/libulyrt_mpi.so: cannot open");
  refuse("libm.so.6", "is not an MPI transport of ulyc");
  refuse(OLD_PLUGIN, numbers);
}

static void cuts_messages(void **state) {
  (void)state;
  const int64_t one = ULY_MPI_CHUNK, sizes[] = {0,
                                                1,
                                                one - 1,
                                                one,
                                                one + 1,
                                                (INT64_C(1) << 31) - 1,
                                                INT64_C(1) << 31,
                                                (INT64_C(1) << 31) + 1,
                                                (INT64_C(1) << 32) - 1,
                                                INT64_C(1) << 32,
                                                (INT64_C(1) << 32) + 1,
                                                INT64_C(1) << 40};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    int64_t sum = 0, n = uly_chunk_count(sizes[i]);
    for (int64_t k = 0; k < n; k++) {
      int bytes = uly_chunk_bytes(sizes[i], k);
      assert_true(bytes > 0 && bytes <= one);
      assert_true(k + 1 == n || bytes == one);
      sum += bytes;
    }
    assert_true(sum == sizes[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refuses), cmocka_unit_test(cuts_messages)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
