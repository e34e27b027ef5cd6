// Published models, as specs, evaluated in float64 by the reference: equal to what their own code gives.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/model_files.h"

// Expected outputs were computed in float64 from f32 weights, rope and some norms in f32.
static void assert_model(const char *name) {
  char folder[1024];
  uly_model_files files;
  double error = 0.0;
  uly_str worst = {0};
  snprintf(folder, sizeof folder, ULY_TEST_MODELS "/%s", name);
  uly_model_files_open(&files, folder);
  if (!files.graph) fail_msg("%.*s", ULY_STR_ARG(uly_diags_text(&files.diags)));
  assert_int_equal(uly_model_files_evaluate(&files, &error, &worst), ULY_OK);
  print_message("%s: error %.2g (%.*s)\n", name, error, ULY_STR_ARG(worst));
  assert_true(error <= 2e-6);
  uly_model_files_close(&files);
}

static void llama_is_right(void **state) {
  (void)state;
  assert_model("llama3_1");
}
static void bert_is_right(void **state) {
  (void)state;
  assert_model("bert");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(llama_is_right), cmocka_unit_test(bert_is_right)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
