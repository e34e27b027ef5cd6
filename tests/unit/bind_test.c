// Bind and run: what is shared and what is not, what ranks have to agree on, and what a caller may rely on.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/rank_threads.h"
#include "tests/unit/scale_kernels.h"
#include "tests/unit/scale_program.h"
#include "tests/unit/tag_program.h"

// ---- helpers ------------------------------------------------------------------------------------------------------------------------------

static uly_loaded *load(const fx_program *f) {
  uly_loaded *loaded;
  uly_error error;
  if (uly_loaded_create(&f->model, &error, &loaded) != ULY_OK) fail_msg("%s", error.text);
  return loaded;
}

static void set_weight(uly_loaded *loaded, int layer, float value) {
  float w[SCALE_D];
  char name[32];
  int64_t dims[] = {SCALE_D};
  uly_error error;
  for (int i = 0; i < SCALE_D; i++) w[i] = value;
  snprintf(name, sizeof name, "layers.%d.weight", layer);
  if (uly_param_set(loaded, uly_str_of(name), ULY_F32, 1, dims, w, false, &error) != ULY_OK) fail_msg("%s", error.text);
}

static uly_loaded *load_scale(const fx_program *f) {
  uly_loaded *loaded = load(f);
  for (int i = 0; i < SCALE_LAYERS; i++) set_weight(loaded, i, (float)(2 + i));
  return loaded;
}

typedef struct job {
  uly_loaded *loaded;
  int64_t b, s;
  int threads, runs;
  uly_status status[MAX_RANKS];
  uly_error error[MAX_RANKS];
  int wrong[MAX_RANKS];
  int64_t symbol_of_last; // S of the last rank where not 0
  const char *device_of_last;
  uly_loaded *loaded_of_last;
} job;

// y = 24 x + 24 Σ rows, x = 1 everywhere.
static void scale_body(uly_comm *comm, void *context) {
  job *j = context;
  int r = comm->rank;
  bool last = r == comm->n_ranks - 1;
  int64_t symbols[SCALE_N_SYMBOLS] = {j->b, last && j->symbol_of_last ? j->symbol_of_last : j->s};
  uly_bound *bound = NULL;
  uly_bind_options options = {.symbols = symbols, .comms = {comm}, .threads = j->threads, .device = last ? j->device_of_last : NULL};
  j->status[r] = uly_bind(last && j->loaded_of_last ? j->loaded_of_last : j->loaded, &options, &j->error[r], &bound);
  if (j->status[r] != ULY_OK) return;
  int64_t n = j->b * (j->s / comm->n_ranks + (r < j->s % comm->n_ranks)) * SCALE_D;
  float *x = malloc(sizeof *x * (size_t)(n + 1)), *y = malloc(sizeof *y * (size_t)(n + 1));
  for (int64_t i = 0; i < n; i++) x[i] = 1;
  void *tensors[] = {x, y};
  for (int i = 0; i < j->runs && j->status[r] == ULY_OK; i++) {
    for (int64_t k = 0; k < n; k++) y[k] = NAN;
    j->status[r] = uly_run(bound, tensors, &j->error[r]);
    for (int64_t k = 0; k < n; k++) j->wrong[r] += y[k] != (float)(24 + 24 * j->b * j->s);
  }
  free(x);
  free(y);
  uly_bound_destroy(bound);
}

static void expect_fine(const job *j, int n) {
  for (int r = 0; r < n; r++) {
    if (j->status[r] != ULY_OK) fail_msg("rank %d: %s", r, j->error[r].text);
    assert_int_equal(j->wrong[r], 0);
  }
}

static void expect_failure(const job *j, int n, uly_status want, const char *part, const char *part2) {
  for (int r = 0; r < n; r++)
    if (j->status[r] != want || !strstr(j->error[r].text, part) || !strstr(j->error[r].text, part2))
      fail_msg("rank %d: status %d, expected %d; \"%s\" should say \"%s\" and \"%s\"", r, (int)j->status[r], (int)want, j->error[r].text, part, part2);
}

// ---- sharing --------------------------------------------------------------------------------------------------------------------------------

static _Atomic int packed_elements;
static void counting_pack(const uly_call *c) {
  atomic_fetch_add(&packed_elements, (int)(c->hi - c->lo));
  scale_pack(c);
}

static void packed_once_by_all_ranks(void **state) {
  (void)state;
  fx_program *f = scale_program();
  f->kernels[SCALE_PACK] = counting_pack;
  job j = {.loaded = load_scale(f), .b = 2, .s = 7, .threads = 2, .runs = 3};
  atomic_store(&packed_elements, 0);
  run_ranks(4, 20, scale_body, &j);
  expect_fine(&j, 4);
  assert_int_equal(atomic_load(&packed_elements), SCALE_LAYERS * SCALE_D);
  run_ranks(3, 20, scale_body, &j);
  expect_fine(&j, 3);
  assert_int_equal(atomic_load(&packed_elements), SCALE_LAYERS * SCALE_D);
  set_weight(j.loaded, 1, 3); // the same value, but packed again
  run_ranks(1, 20, scale_body, &j);
  expect_fine(&j, 1);
  assert_int_equal(atomic_load(&packed_elements), 2 * SCALE_LAYERS * SCALE_D);
  uly_loaded_destroy(j.loaded);
  fx_destroy(f);
}

static void every_number_of_ranks(void **state) {
  (void)state;
  fx_program *f = scale_program();
  job j = {.loaded = load_scale(f), .runs = 2};
  for (int n = 1; n <= 16; n += n < 8 ? 1 : 8)
    for (int64_t s = 1; s < 20; s += 6) {
      j.b = 1 + s % 3;
      j.s = s;
      j.threads = 1 + (int)(s % 2);
      run_ranks(n, 20, scale_body, &j);
      expect_fine(&j, n);
    }
  uly_loaded_destroy(j.loaded);
  fx_destroy(f);
}

typedef struct two_models {
  job scale;
  uly_loaded *tag;
  tag_shape shape;
  int wrong[MAX_RANKS];
} two_models;

// One rank runs both models in turn on one communicator.
static void two_models_body(uly_comm *comm, void *context) {
  two_models *m = context;
  int64_t tag_symbols[TAG_N_SYMBOLS] = {1, 9, 3, 0}, scale_symbols[SCALE_N_SYMBOLS] = {1, 6};
  int r = comm->rank, p = comm->n_ranks;
  int64_t rows = 9 / p + (r < 9 % p), first = r * (9 / p) + (r < 9 % p ? r : 9 % p);
  uly_bound *tag = NULL, *scale = NULL;
  uly_bind_options a = {.symbols = tag_symbols, .comms = {comm}, .threads = 1}, b = {.symbols = scale_symbols, .comms = {comm}, .threads = 1};
  m->scale.status[r] = uly_bind(m->tag, &a, &m->scale.error[r], &tag);
  if (m->scale.status[r] == ULY_OK) m->scale.status[r] = uly_bind(m->scale.loaded, &b, &m->scale.error[r], &scale);
  tag_data data = tag_make(m->shape, 1, first, rows);
  float x[6 * SCALE_D], y[6 * SCALE_D];
  for (int i = 0; i < 6 * SCALE_D; i++) x[i] = 1;
  void *tensors[] = {x, y};
  for (int i = 0; i < 4 && m->scale.status[r] == ULY_OK; i++) {
    m->scale.status[r] = uly_run(tag, (void *const *)data.tensor, &m->scale.error[r]);
    if (m->scale.status[r] == ULY_OK) m->scale.status[r] = uly_run(scale, tensors, &m->scale.error[r]);
    m->wrong[r] += (int)tag_wrong(&data, m->shape, 1, first, rows, 3) + (y[0] != 24 + 24 * 6);
  }
  tag_free(&data);
  uly_bound_destroy(tag);
  uly_bound_destroy(scale);
}

static void two_models_at_once(void **state) {
  (void)state;
  fx_program *f = scale_program(), *g = tag_program((tag_shape){4, 2, 3});
  two_models m = {.scale = {.loaded = load_scale(f)}, .tag = load(g), .shape = {4, 2, 3}};
  run_ranks(3, 20, two_models_body, &m);
  expect_fine(&m.scale, 3);
  for (int r = 0; r < 3; r++) assert_int_equal(m.wrong[r], 0);
  uly_loaded_destroy(m.scale.loaded);
  uly_loaded_destroy(m.tag);
  fx_destroy(f);
  fx_destroy(g);
}

// Two groups of the process, each with its own size and its own binds of one model, at the same time: sp is smaller than the world.
static void *group_main(void *argument) {
  job *j = argument;
  for (int i = 0; i < 10; i++) run_ranks(j->threads == 1 ? 2 : 3, 20, scale_body, j);
  return NULL;
}

static void groups_smaller_than_the_world(void **state) {
  (void)state;
  fx_program *f = scale_program();
  uly_loaded *loaded = load_scale(f);
  job a = {.loaded = loaded, .b = 1, .s = 5, .threads = 1, .runs = 2}, b = {.loaded = loaded, .b = 2, .s = 8, .threads = 2, .runs = 3};
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, group_main, &a);
  pthread_create(&threads[1], NULL, group_main, &b);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  expect_fine(&a, 2);
  expect_fine(&b, 3);
  uly_loaded_destroy(loaded);
  fx_destroy(f);
}

// ---- disagreement ---------------------------------------------------------------------------------------------------------------------------

static void ranks_must_agree(void **state) {
  (void)state;
  fx_program *f = scale_program();
  uly_loaded *loaded = load_scale(f);
  job sizes = {.loaded = loaded, .b = 1, .s = 5, .threads = 1, .symbol_of_last = 6};
  run_ranks(4, 20, scale_body, &sizes);
  expect_failure(&sizes, 4, ULY_MISMATCH, "rank 0 has S = 5", "rank 3 has S = 6");
  job devices = {.loaded = loaded, .b = 1, .s = 5, .threads = 1, .device_of_last = "null"};
  run_ranks(3, 20, scale_body, &devices);
  expect_failure(&devices, 3, ULY_MISMATCH, "device cpu", "rank 2 on null");
  job missing = {.loaded = loaded, .b = 1, .s = 5, .threads = 1, .device_of_last = "gpu"};
  run_ranks(3, 20, scale_body, &missing);
  expect_failure(&missing, 3, ULY_UNAVAILABLE, "no device \"gpu\"", "cpu, null");
  assert_non_null(strstr(missing.error[0].text, "[rank 0] rank 2 cannot bind"));
  assert_non_null(strstr(missing.error[2].text, "[rank 2] there is no device"));
  job fine = {.loaded = loaded, .b = 1, .s = 5, .threads = 1, .runs = 1}; // nothing of this harmed the model
  run_ranks(4, 20, scale_body, &fine);
  expect_fine(&fine, 4);
  uly_loaded_destroy(loaded);
  fx_destroy(f);
}

static void different_models(void **state) {
  (void)state;
  fx_program *f = scale_program(), *g = scale_program();
  uly_blob *blob = (uly_blob *)(uintptr_t)g->model.blob;
  blob->program[0] ^= 1;
  job j = {.loaded = load_scale(f), .loaded_of_last = load_scale(g), .b = 1, .s = 5, .threads = 1};
  run_ranks(3, 20, scale_body, &j);
  expect_failure(&j, 3, ULY_MISMATCH, "ranks 0 and 2 run different models", "program ");
  uly_loaded_destroy(j.loaded);
  uly_loaded_destroy(j.loaded_of_last);
  fx_destroy(f);
  fx_destroy(g);
}

static void bind_fails(uly_loaded *loaded, const uly_bind_options *options, uly_status want, const char *part) {
  uly_bound *bound;
  uly_error error = {0};
  uly_status status = uly_bind(loaded, options, &error, &bound);
  if (status != want || !strstr(error.text, part)) fail_msg("status %d, expected %d; \"%s\" should say \"%s\"", (int)status, (int)want, error.text, part);
}

static void wrong_arguments(void **state) {
  (void)state;
  fx_program *f = scale_program();
  uly_loaded *bare = load(f), *loaded = load_scale(f);
  uly_error error;
  int64_t fine[] = {1, 4}, zero[] = {0, 4}, unset[] = {1, ULY_NO_VALUE}, huge[] = {(int64_t)1 << 40, (int64_t)1 << 40}, dims[] = {SCALE_D, 1};
  float w[SCALE_D] = {0};
  bind_fails(loaded, &(uly_bind_options){.symbols = zero}, ULY_INVALID_ARGUMENT, "B = 0, at least 1");
  bind_fails(loaded, &(uly_bind_options){.symbols = unset}, ULY_INVALID_ARGUMENT, "symbol S has no value");
  bind_fails(loaded, &(uly_bind_options){.symbols = huge, .threads = 1}, ULY_OVERFLOW, "size overflow");
  bind_fails(loaded, &(uly_bind_options){.symbols = fine, .entry = ULY_STR("skale")}, ULY_INVALID_ARGUMENT, "no entry \"skale\"");
  bind_fails(bare, &(uly_bind_options){.symbols = fine}, ULY_INVALID_INPUT, "3 parameters have no value: \"layers.0.weight\", \"layers.1.weight\"");
  assert_int_equal(uly_param_set(loaded, ULY_STR("layers.7.weight"), ULY_F32, 1, dims, w, false, &error), ULY_INVALID_ARGUMENT);
  assert_non_null(strstr(error.text, "did you mean \"layers."));
  assert_int_equal(uly_param_set(loaded, ULY_STR("layers.0.weight"), ULY_F32, 2, dims, w, false, &error), ULY_INVALID_INPUT);
  assert_non_null(strstr(error.text, "is f32[5, 1], the model needs f32[5]"));
  assert_int_equal(uly_param_set(loaded, ULY_STR("layers.0.weight"), ULY_I32, 1, dims, w, false, &error), ULY_INVALID_INPUT);
  uly_bound *bound;
  assert_int_equal(uly_bind(loaded, &(uly_bind_options){.symbols = fine}, &error, &bound), ULY_OK);
  assert_int_equal(uly_param_set(loaded, ULY_STR("layers.0.weight"), ULY_F32, 1, dims, w, false, &error), ULY_INVALID_ARGUMENT);
  uly_bound_destroy(bound);
  uly_loaded_destroy(bare);
  uly_loaded_destroy(loaded);
  fx_destroy(f);
}

static void sizes_below_0(void **state) {
  (void)state;
  fx_program *f = fx_create();
  uint32_t s = fx_symbol(f, "S", 1), axis = fx_axis(f, "sp"), dims[] = {fx_const(f, 2), fx_sub(f, s, fx_const(f, 3))};
  fx_cut(f, fx_tensor(f, ULY_INPUT, "x", ULY_F32, 2, dims), 1, axis);
  fx_entry(f, "short", 0, 1, 0, 0);
  fx_finish(f);
  uly_loaded *loaded = load(f);
  uly_error error;
  uly_bound *bound;
  for (int64_t i = 1; i <= 3; i++) {
    char says[80];
    snprintf(says, sizeof says, "dim 1 of x, in line 7 of the spec, is %d where S = %d", (int)i - 3, (int)i);
    if (i < 3)
      bind_fails(loaded, &(uly_bind_options){.symbols = &i}, ULY_INVALID_ARGUMENT, says);
    else
      assert_int_equal(uly_bind(loaded, &(uly_bind_options){.symbols = &i}, &error, &bound), ULY_OK);
  }
  uly_bound_destroy(bound);
  uly_loaded_destroy(loaded);
  fx_destroy(f);
}

// ---- kernels --------------------------------------------------------------------------------------------------------------------------------

static _Atomic unsigned modes;
static void mode_multiply(const uly_call *c) {
  atomic_fetch_or(&modes, ~__builtin_ia32_stmxcsr() & 0x8040u);
  volatile float tiny = 1e-40f;
  if (tiny * 2.0f != 0) atomic_fetch_or(&modes, 1u);
  scale_multiply(c);
}

static void denormals_are_zero_inside_only(void **state) {
  (void)state;
  fx_program *f = scale_program();
  f->kernels[SCALE_MULTIPLY] = mode_multiply;
  job j = {.loaded = load_scale(f), .b = 4, .s = 64, .threads = 3, .runs = 5};
  atomic_store(&modes, 0);
  enum { DEFAULT_MODE = 0x1f80 };
  __builtin_ia32_ldmxcsr(DEFAULT_MODE);
  uly_comm *comm = uly_comm_self();
  scale_body(comm, &j);
  comm->ops->destroy(comm);
  expect_fine(&j, 1);
  assert_int_equal(atomic_load(&modes), 0);
  assert_int_equal(__builtin_ia32_stmxcsr(), DEFAULT_MODE);
  uly_loaded_destroy(j.loaded);
  fx_destroy(f);
}

// Faults row c of its items where the input there is negative.
static void faulty_multiply(const uly_call *c) {
  scale_multiply(c);
  for (int64_t r = c->lo; r < c->hi; r++) {
    uint32_t none = 0;
    if (((const float *)c->op[0].p[0])[r * SCALE_D] < 0 &&
        __atomic_compare_exchange_n(&c->fault->code, &none, (uint32_t)ULY_FAULT_INDEX_RANGE, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      c->fault->a = 99;
      c->fault->b = 10;
      c->fault->n_at = 1;
      c->fault->at[0] = r;
    }
  }
}

static void faulty_body(uly_comm *comm, void *context) {
  job *j = context;
  int r = comm->rank;
  int64_t symbols[SCALE_N_SYMBOLS] = {1, 8};
  uly_bound *bound = NULL;
  uly_bind_options options = {.symbols = symbols, .comms = {comm}, .threads = 2};
  j->status[r] = uly_bind(j->loaded, &options, &j->error[r], &bound);
  if (j->status[r] != ULY_OK) return;
  float x[8 * SCALE_D], y[8 * SCALE_D];
  void *tensors[] = {x, y};
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 8 * SCALE_D; i++) x[i] = 1;
    if (round == 1 && r == 1) x[SCALE_D] = -1;
    uly_error error = {0};
    uly_status status = uly_run(bound, tensors, &error);
    if (round == 1) {
      j->status[r] = status;
      j->error[r] = error;
    } else if (status != ULY_OK) {
      j->wrong[r]++; // a fault is not the end of the bind
    }
  }
  uly_bound_destroy(bound);
}

static void faults_reach_every_rank(void **state) {
  (void)state;
  fx_program *f = scale_program();
  f->kernels[SCALE_MULTIPLY] = faulty_multiply;
  job j = {.loaded = load_scale(f)};
  run_ranks(3, 20, faulty_body, &j);
  expect_failure(&j, 3, ULY_FAULT, "index 99 at [1] is out of range: at least 0 and below 10", "spec line 23");
  assert_non_null(strstr(j.error[0].text, "[rank 0] rank 1: "));
  assert_non_null(strstr(j.error[1].text, "[rank 1] index"));
  for (int r = 0; r < 3; r++) assert_int_equal(j.wrong[r], 0);
  uly_loaded_destroy(j.loaded);
  fx_destroy(f);
}

// ---- peers that die -------------------------------------------------------------------------------------------------------------------------

static void quitting_body(uly_comm *comm, void *context) {
  job *j = context;
  int r = comm->rank;
  int64_t symbols[SCALE_N_SYMBOLS] = {1, 8};
  uly_bound *bound = NULL;
  uly_bind_options options = {.symbols = symbols, .comms = {comm}, .threads = 1};
  j->status[r] = uly_bind(j->loaded, &options, &j->error[r], &bound);
  float x[8 * SCALE_D] = {0}, y[8 * SCALE_D];
  void *tensors[] = {x, y};
  for (int round = 0; round < 3 && j->status[r] == ULY_OK; round++) {
    if (round == 2 && r == 1) {
      comm->ops->abort(comm, "its disk is full");
      break;
    }
    j->status[r] = uly_run(bound, tensors, &j->error[r]);
  }
  if (r != 1) {
    uly_error again;
    j->wrong[r] = uly_run(bound, tensors, &again) == ULY_OK;
  }
  uly_bound_destroy(bound);
}

static void a_peer_gives_up(void **state) {
  (void)state;
  fx_program *f = scale_program();
  job j = {.loaded = load_scale(f)};
  run_ranks(3, 20, quitting_body, &j);
  for (int r = 0; r < 3; r += 2) {
    assert_int_equal(j.status[r], ULY_CANCELLED);
    assert_non_null(strstr(j.error[r].text, "rank 1 gave up: its disk is full"));
    assert_int_equal(j.wrong[r], 0);
  }
  uly_loaded_destroy(j.loaded);
  fx_destroy(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(packed_once_by_all_ranks),
                                     cmocka_unit_test(every_number_of_ranks),
                                     cmocka_unit_test(two_models_at_once),
                                     cmocka_unit_test(groups_smaller_than_the_world),
                                     cmocka_unit_test(ranks_must_agree),
                                     cmocka_unit_test(different_models),
                                     cmocka_unit_test(wrong_arguments),
                                     cmocka_unit_test(sizes_below_0),
                                     cmocka_unit_test(denormals_are_zero_inside_only),
                                     cmocka_unit_test(faults_reach_every_rank),
                                     cmocka_unit_test(a_peer_gives_up)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
