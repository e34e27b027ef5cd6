// What the processor can do, where the kernel refuses a part of it.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/abi.h"
#include "runtime/base/features.h"

// A signal stack that cannot hold tiles: the kernel gives this process none, until the stack has gone.
static void no_tiles_with_a_small_stack(void **state) {
  (void)state;
  static char memory[8192];
  stack_t old;
  const uint32_t others = uly_cpu_features(~(uint32_t)ULY_CPU_AMX); // asks for no tiles: the stack is granted
  assert_int_equal(sigaltstack(&(stack_t){.ss_sp = memory, .ss_size = sizeof memory}, &old), 0);
  const uint32_t small = uly_cpu_features(UINT32_MAX);
  assert_int_equal(sigaltstack(&old, NULL), 0);
  const uint32_t all = uly_cpu_features(UINT32_MAX);
  if (!(all & ULY_CPU_AMX)) {
    print_message("no AMX here: not tested\n");
    skip();
  }
  assert_int_equal(small, all & ~(uint32_t)ULY_CPU_AMX);
  assert_int_equal(others, small);
  assert_int_equal(uly_cpu_features(UINT32_MAX), all);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(no_tiles_with_a_small_stack)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
