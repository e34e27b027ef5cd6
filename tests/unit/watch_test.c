// What a watcher is shown of the scale program: every value once an iteration and run, each rank its piece or its peers', and nothing outside of the memory that holds it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "runtime/bound.h"
#include "tests/unit/rank_threads.h"
#include "tests/unit/scale_program.h"

enum { ROWS = 7, RANKS = 3, RUNS = 2 };
enum { PACKED = 10, FIRST, LAYER, LAST, SUMS, TURNED, TAIL, N_VALUES }; // numbers of the values

static float x_at(int64_t row, int64_t col) { return (float)(row * 10 + col + 1); }
static float weight_at(int64_t layer, int64_t col) { return (float)(layer + 2 + (col & 1)); }
static double layers_at(int64_t row, int64_t col, int64_t n) {
  double x = (double)x_at(row, col);
  for (int64_t i = 0; i < n; i++) x *= (double)weight_at(i, col);
  return x;
}

// Operand number |k| of step |step|.
static uint32_t operand_of(const fx_program *f, uint32_t step, uint32_t k) { return f->p->steps[step].operands.first + k; }

static uly_probe *add_probe(fx_program *f, uint32_t value, uint32_t step, uint32_t operand, uly_dtype dtype, uint32_t rank) {
  uly_probe p = {.value = value, .step = step, .operand = operand, .dtype = dtype, .spec_dtype = dtype, .rank = rank, .offset = ULY_NONE, .axis = ULY_NONE};
  p.name = fx_name(f, "value");
  p.spec_line = 100 + value;
  f->p->entries[0].probes.count++;
  uint32_t row = uly_program_add_probes(f->p, p);
  return &f->p->probes[row];
}

static void set_dim(uly_probe *p, int d, uint32_t whole, uint32_t start, uint32_t local, uint32_t stride) {
  p->dims[d] = whole, p->start[d] = start, p->local[d] = local, p->stride[d] = stride;
}

// With probes of all kinds: of a slot at load, of buffers in and behind a loop, of the messages that came in, of an output that is seen turned and in part.
static fx_program *watched_program(void) {
  fx_program *f = scale_program();
  enum { LOAD_PACK = 1, MULTIPLY = 3, LOOP_MULTIPLY = 5, LOOP_END, WAIT = 10, FINISH };
  uint32_t s = f->p->tensors[SCALE_X].dims[1], start = f->p->tensors[SCALE_X].start[1], share = f->p->tensors[SCALE_X].local[1];
  uint32_t zero = fx_const(f, 0), one = fx_const(f, 1), two = fx_const(f, 2), d = fx_const(f, SCALE_D), ranks = fx_size(f, 0), place = fx_place(f, 0);
  f->p->entries[0].probes = (uly_span){f->p->n_probes, 0};
  set_dim(add_probe(f, PACKED, LOAD_PACK, operand_of(f, LOAD_PACK, 1), ULY_F32, 1), 0, d, zero, d, one);
  const uint32_t steps[] = {MULTIPLY, LOOP_MULTIPLY, LOOP_END};
  for (uint32_t i = 0; i < 3; i++) {
    uly_probe *p = add_probe(f, FIRST + i, steps[i], operand_of(f, i ? LOOP_MULTIPLY : MULTIPLY, 3), ULY_F32, 2);
    set_dim(p, 0, s, start, share, d);
    set_dim(p, 1, d, zero, d, one);
  }
  uly_probe *sums = add_probe(f, SUMS, WAIT, operand_of(f, FINISH, 1), ULY_F64, 1);
  sums->axis = 0, sums->cut = 0;
  set_dim(sums, 0, ranks, place, one, one);
  uly_probe *turned = add_probe(f, TURNED, FINISH, operand_of(f, FINISH, 2), ULY_F32, 2);
  set_dim(turned, 0, d, zero, d, one);
  set_dim(turned, 1, s, start, share, d);
  uly_probe *tail = add_probe(f, TAIL, FINISH, operand_of(f, FINISH, 2), ULY_F32, 2);
  tail->offset = two;
  set_dim(tail, 0, s, start, share, d);
  set_dim(tail, 1, fx_const(f, SCALE_D - 2), zero, fx_const(f, SCALE_D - 2), one);
  fx_finish(f);
  return f;
}

typedef struct rank_seen {
  int shown[N_VALUES];
  char wrong[200];
} rank_seen;

typedef struct watching {
  uly_loaded *loaded;
  rank_seen ranks[RANKS];
} watching;

// Element (i, j) of value |number| in iteration |it|.
static double expected(uint32_t number, int64_t it, int64_t i, int64_t j) {
  double sum = 0;
  switch (number) {
  case PACKED: return (double)weight_at(it, i);
  case FIRST: return layers_at(i, j, 1);
  case LAYER: return layers_at(i, j, 2 + it);
  case LAST: return layers_at(i, j, SCALE_LAYERS);
  case SUMS:
    for (int64_t r = 0; r < ROWS; r++) sum += r * RANKS / ROWS == i ? layers_at(r, 0, SCALE_LAYERS) : 0;
    return sum;
  default:
    for (int64_t r = 0; r < ROWS; r++) sum += layers_at(r, 0, SCALE_LAYERS);
    return number == TURNED ? layers_at(j, i, SCALE_LAYERS) + sum : layers_at(i, j + 2, SCALE_LAYERS) + sum;
  }
}

static void see(void *context, const uly_seen *v) {
  rank_seen *r = context;
  uint32_t number = v->probe->value;
  int64_t n1 = v->probe->rank > 1 ? v->local[1] : 1;
  r->shown[number]++;
  for (int64_t i = 0; i < v->local[0]; i++)
    for (int64_t j = 0; j < n1; j++) {
      int64_t at = i * v->stride[0] + (v->probe->rank > 1 ? j * v->stride[1] : 0);
      double got = v->probe->dtype == ULY_F64 ? ((const double *)v->data)[at] : (double)((const float *)v->data)[at];
      double want = expected(number, v->depth ? v->iteration[0] : 0, v->start[0] + i, v->probe->rank > 1 ? v->start[1] + j : 0);
      if (number == SUMS && v->start[0] + i >= v->dims[0]) want = -1; // a place that is none
      if (got != want && !*r->wrong)
        snprintf(r->wrong, sizeof r->wrong, "value %u after step %u, element %lld, %lld: %g, not %g", number, v->probe->step, (long long)i, (long long)j, got,
                 want);
    }
}

static void rank_body(uly_comm *comm, void *context) {
  watching *w = context;
  int rank = comm ? comm->rank : 0;
  rank_seen *r = &w->ranks[rank];
  int64_t symbols[SCALE_N_SYMBOLS] = {1, ROWS}, dims[3], start[3], local[3];
  uly_bind_options options = {.symbols = symbols, .world = comm, .threads = 1, .watcher = {see, r}};
  uly_error error;
  uly_bound *bound = NULL;
  float x[ROWS * SCALE_D], y[ROWS * SCALE_D];
  void *tensors[] = {x, y};
  uly_status status = uly_bind(w->loaded, &options, &error, &bound);
  if (status == ULY_OK) status = uly_bound_shape(bound, SCALE_X, &error, dims, start, local);
  for (int64_t i = 0; status == ULY_OK && i < local[1] * SCALE_D; i++) x[i] = x_at(start[1] + i / SCALE_D, i % SCALE_D);
  for (int i = 0; i < RUNS && status == ULY_OK; i++) status = uly_run(bound, tensors, &error);
  if (status != ULY_OK) snprintf(r->wrong, sizeof r->wrong, "%.190s", error.text);
  uly_bound_destroy(bound);
}

static uly_loaded *load(const fx_program *f) {
  uly_loaded *loaded;
  uly_error error;
  if (uly_loaded_create(&f->model, &error, &loaded) != ULY_OK) fail_msg("%s", error.text);
  for (int i = 0; i < SCALE_LAYERS; i++) {
    float w[SCALE_D];
    char name[32];
    snprintf(name, sizeof name, "layers.%d.weight", i);
    for (int k = 0; k < SCALE_D; k++) w[k] = weight_at(i, k);
    if (uly_param_set(loaded, uly_str_of(name), ULY_F32, 1, (int64_t[]){SCALE_D}, w, false, &error) != ULY_OK) fail_msg("%s", error.text);
  }
  return loaded;
}

static void every_value_is_shown(void **state) {
  (void)state;
  static const int a_run[N_VALUES] = {[FIRST] = 1, [LAYER] = SCALE_LAYERS - 1, [LAST] = 1, [SUMS] = RANKS, [TURNED] = 1, [TAIL] = 1};
  fx_program *f = watched_program();
  watching w = {.loaded = load(f)};
  run_ranks(RANKS, 20, rank_body, &w);
  int packed = 0;
  for (int r = 0; r < RANKS; r++) {
    if (*w.ranks[r].wrong) fail_msg("rank %d: %s", r, w.ranks[r].wrong);
    for (int v = FIRST; v < N_VALUES; v++) assert_int_equal(w.ranks[r].shown[v], RUNS * a_run[v]);
    packed += w.ranks[r].shown[PACKED];
  }
  assert_int_equal(packed, SCALE_LAYERS); // once for all ranks
  // Nobody else holds the model: what is computed at load is shown again.
  memset(w.ranks, 0, sizeof w.ranks);
  run_ranks(RANKS, 20, rank_body, &w);
  for (int r = packed = 0; r < RANKS; r++) packed += w.ranks[r].shown[PACKED];
  assert_int_equal(packed, SCALE_LAYERS);
  uly_loaded_destroy(w.loaded);
  fx_destroy(f);
}

static void nobody_watches(void **state) {
  (void)state;
  fx_program *f = watched_program();
  uly_loaded *loaded = load(f);
  int64_t symbols[SCALE_N_SYMBOLS] = {1, ROWS};
  uly_bind_options options = {.symbols = symbols, .threads = 1};
  uly_error error;
  uly_bound *bound;
  assert_int_equal(uly_bind(loaded, &options, &error, &bound), ULY_OK);
  assert_null(bound->machine.watch);
  uly_bound_destroy(bound);
  uly_loaded_destroy(loaded);
  fx_destroy(f);
}

// Binds with one probe changed: refused, by value and line, before anything is read.
static void refused(void (*change)(fx_program *f, uly_probe *probe), uint32_t value, const char *part) {
  fx_program *f = watched_program();
  rank_seen seen = {{0}, ""};
  for (uint32_t i = 0; i < f->p->n_probes; i++)
    if (f->p->probes[i].value == value) {
      uly_probe changed = f->p->probes[i];
      change(f, &changed);
      f->p->probes[i] = changed;
    }
  fx_finish(f);
  uly_loaded *loaded = load(f);
  int64_t symbols[SCALE_N_SYMBOLS] = {1, ROWS};
  uly_bind_options options = {.symbols = symbols, .threads = 1, .watcher = {see, &seen}};
  uly_error error = {0};
  uly_bound *bound = NULL;
  uly_status status = uly_bind(loaded, &options, &error, &bound);
  if (status == ULY_OK || !strstr(error.text, part)) fail_msg("status %d; \"%s\" should say \"%s\"", (int)status, error.text, part);
  assert_int_equal(seen.shown[value], 0);
  uly_loaded_destroy(loaded);
  fx_destroy(f);
}

static void wide_stride(fx_program *f, uly_probe *p) { p->stride[0] = fx_const(f, 1000); }
static void far_stride(fx_program *f, uly_probe *p) { p->stride[0] = fx_const(f, INT64_MAX / 2); }
static void back_stride(fx_program *f, uly_probe *p) { p->stride[0] = fx_sub(f, fx_const(f, 0), fx_const(f, 5)); }
static void far_offset(fx_program *f, uly_probe *p) { p->offset = fx_const(f, 1000); }
static void late_start(fx_program *f, uly_probe *p) { p->start[0] = fx_const(f, 3); }
static void no_size(fx_program *f, uly_probe *p) { p->local[0] = fx_sub(f, fx_const(f, 0), fx_const(f, 1)); }

static void outside_of_the_memory(void **state) {
  (void)state;
  refused(wide_stride, FIRST, "value 11 (spec line 111) does not lie in its memory");
  refused(far_stride, LAYER, "value 12 (spec line 112) does not lie in its memory");
  refused(back_stride, LAST, "value 13 (spec line 113) does not lie in its memory");
  refused(far_offset, TAIL, "value 16 (spec line 116) does not lie in its memory");
  refused(far_offset, SUMS, "value 14 (spec line 114) does not lie in its memory");
  refused(late_start, FIRST, "value 11 (spec line 111) does not lie in its memory");
  refused(wide_stride, PACKED, "value 10 (spec line 110) does not lie in its memory");
  refused(no_size, TURNED, "a size is negative: -1");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_value_is_shown), cmocka_unit_test(nobody_watches), cmocka_unit_test(outside_of_the_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
