// Published models, as specs, evaluated in float64 by the reference: equal to what their own code gives.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "frontend/spec.h"
#include "tests/support/graph_reference.h"
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

static const double *ones(void *context, uly_str name, const uly_tensor_type *type) {
  static const double one[4] = {1, 1, 1, 1};
  return (void)context, (void)name, (void)type, one;
}

// Noise stands for what rounding does: also to the mean of values that are alike, of which nothing is left in float64.
static void noise_meets_means(void **state) {
  (void)state;
  uly_arena *arena = uly_arena_create();
  uly_diags diags;
  uly_diags_init(&diags, arena);
  uly_graph *graph =
      uly_spec_read(arena, &diags, ULY_STR("t.spec"),
                    ULY_STR("ulyc 1\nfree S\ngrid sp(S)\nlayer f(x: f32[S, 4]) -> f32[S, 4] = layernorm(x, name = \"n\", bias = false)\n"), NULL, 0);
  assert_non_null(graph);
  const double x[4] = {3.7, 3.7, 3.7, 3.7}, *const inputs[] = {x};
  uly_graph_run run = {.graph = graph, .entry = &graph->entries[0], .sizes = (int64_t[]){1}, .inputs = inputs, .param = ones};
  double *results[1];
  assert_int_equal(uly_graph_reference(arena, &run, results), ULY_OK);
  assert_true(fabs(results[0][0]) < 1e-12);
  run.noise = 1;
  assert_int_equal(uly_graph_reference(arena, &run, results), ULY_OK);
  assert_true(fabs(results[0][0]) > 1e-6 && fabs(results[0][0]) < 1e-3);
  uly_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(llama_is_right), cmocka_unit_test(bert_is_right), cmocka_unit_test(noise_meets_means)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
