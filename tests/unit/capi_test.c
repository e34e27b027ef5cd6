// The public interface, as a host uses it: introspection, parameters, sizes, and every mistake that a caller can make.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/ulyrt.h"
#include "tests/unit/scale_program.h"

static ulyrt_model *load(void) {
  ulyrt_model *m;
  ulyrt_error e = ULYRT_ERROR_INIT;
  if (ulyrt_model_load(MODEL_FILE, &m, &e)) fail_msg("%s", e.text);
  return m;
}

static ulyrt_instance *bind(ulyrt_model *m, int64_t b, int64_t s) {
  ulyrt_size sizes[] = {{"B", b}, {"S", s}};
  ulyrt_bind_options o = ULYRT_BIND_OPTIONS_INIT;
  ulyrt_instance *i;
  ulyrt_error e = ULYRT_ERROR_INIT;
  o.sizes = sizes;
  o.n_sizes = 2;
  o.threads = 2;
  if (ulyrt_bind(m, &o, &i, &e)) fail_msg("%s", e.text);
  return i;
}

static void fails(ulyrt_status status, ulyrt_status want, const ulyrt_error *e, const char *part) {
  if (status != want || e->status != (int32_t)want || !strstr(e->text, part))
    fail_msg("status %d, expected %d; \"%s\" should say \"%s\"", (int)status, (int)want, e->text, part);
}

static void says_what_is_in_it(void **state) {
  (void)state;
  ulyrt_model *m = load();
  ulyrt_error e = ULYRT_ERROR_INIT;
  assert_int_equal(ulyrt_abi_version(), 0x10001);
  assert_int_equal(ulyrt_model_entries(m), 1);
  assert_int_equal(ulyrt_model_params(m), SCALE_LAYERS);
  assert_int_equal(ulyrt_model_symbols(m), 2);
  assert_int_equal(ulyrt_model_axes(m), 1);
  assert_string_equal(ulyrt_model_symbol_name(m, 1), "S");
  assert_string_equal(ulyrt_model_axis_name(m, 0), "sp");
  assert_null(ulyrt_model_symbol_name(m, 2));
  assert_null(ulyrt_model_axis_name(m, -1));
  ulyrt_entry_info entry = ULYRT_ENTRY_INFO_INIT;
  assert_int_equal(ulyrt_model_entry(m, 0, &entry, &e), ULYRT_OK);
  assert_string_equal(entry.name, "scale");
  assert_int_equal(entry.tensors, 2);
  assert_int_equal(entry.symbols, 3);
  ulyrt_tensor_info t = ULYRT_TENSOR_INFO_INIT;
  assert_int_equal(ulyrt_model_tensor(m, 0, 1, &t, &e), ULYRT_OK);
  assert_string_equal(t.name, "y");
  assert_int_equal(t.role, ULYRT_OUTPUT);
  assert_int_equal(t.dtype.code, 2);
  assert_int_equal(t.dims[1], -1);
  assert_int_equal(t.symbol[1], 1);
  assert_int_equal(t.dims[2], SCALE_D);
  assert_int_equal(t.symbol[2], -1);
  assert_int_equal(ulyrt_model_param(m, 2, &t, &e), ULYRT_OK);
  assert_string_equal(t.name, "layers.2.weight");
  assert_true(isnan(t.init) && !t.is_set && t.ndim == 1 && t.dims[0] == SCALE_D);
  assert_int_equal(ulyrt_model_seed_params(m, 1, &e), ULYRT_OK);
  assert_int_equal(ulyrt_model_param(m, 2, &t, &e), ULYRT_OK);
  assert_true(t.is_set);
  fails(ulyrt_model_param(m, 3, &t, &e), ULYRT_INVALID_ARGUMENT, &e, "3 parameters, asked for number 3");
  fails(ulyrt_model_entry(m, 1, &entry, &e), ULYRT_INVALID_ARGUMENT, &e, "1 entries, asked for number 1");
  fails(ulyrt_model_tensor(m, 0, 2, &t, &e), ULYRT_INVALID_ARGUMENT, &e, "entry 0 has no tensor 2");
  ulyrt_model_destroy(m);
}

static void structs_of_other_sizes(void **state) {
  (void)state;
  ulyrt_model *m = load();
  ulyrt_tensor_info t;
  ulyrt_error e = ULYRT_ERROR_INIT;
  memset(&t, 0x55, sizeof t);
  t.struct_size = offsetof(ulyrt_tensor_info, dims);
  assert_int_equal(ulyrt_model_tensor(m, 0, 0, &t, &e), ULYRT_OK);
  assert_string_equal(t.name, "x");
  assert_int_equal(t.dims[0], 0x5555555555555555);
  t.struct_size = 0;
  fails(ulyrt_model_tensor(m, 0, 0, &t, &e), ULYRT_INVALID_ARGUMENT, &e, "INIT macro");
  ulyrt_error small = {.struct_size = offsetof(ulyrt_error, text) + 8};
  memset(small.text, 'x', sizeof small.text);
  assert_int_equal(ulyrt_model_load("/nonexistent", &m, &small), ULYRT_IO);
  assert_string_equal(small.text, "cannot ");
  assert_int_equal(small.text[8], 'x');
  assert_int_equal(ulyrt_model_load("/nonexistent", &m, NULL), ULYRT_IO);
  ulyrt_model_destroy(m);
  ulyrt_model_destroy(NULL);
  ulyrt_instance_destroy(NULL);
  ulyrt_comm_destroy(NULL);
}

static ulyrt_tensor tensor(void *data, int64_t *shape) { return (ulyrt_tensor){.data = data, .device = {1, 0}, .ndim = 3, .dtype = ULYRT_F32, .shape = shape}; }

// Before a fork: a bind finds what was packed, whatever has become of the values since. A weight that is set afterwards is packed again.
static void packs_ahead(void **state) {
  (void)state;
  enum { D = 4 };
  ulyrt_error e = ULYRT_ERROR_INIT;
  ulyrt_model *m;
  assert_int_equal(ulyrt_model_load(LINEAR_MODEL, &m, &e), ULYRT_OK);
  fails(ulyrt_model_pack(NULL, 0, 0, &e), ULYRT_INVALID_ARGUMENT, &e, "the model is NULL");
  fails(ulyrt_model_pack(m, 1, 0, &e), ULYRT_INVALID_ARGUMENT, &e, "the model has no entry 1");
  fails(ulyrt_model_pack(m, -1, 0, &e), ULYRT_INVALID_ARGUMENT, &e, "the model has no entry -1");
  fails(ulyrt_model_pack(m, 0, -1, &e), ULYRT_INVALID_ARGUMENT, &e, "-1 threads");
  fails(ulyrt_model_pack(m, 0, 1, &e), ULYRT_INVALID_INPUT, &e, "1 parameter has no value");
  float w[D * D], x[3 * D], y[3 * D];
  int64_t dims[] = {D, D}, shape[] = {1, 3, D};
  ulyrt_tensor weight = {.data = w, .device = {1, 0}, .ndim = 2, .dtype = ULYRT_F32, .shape = dims}, t[] = {tensor(x, shape), tensor(y, shape)};
  for (int k = 0; k < 3 * D; k++) x[k] = 1;
  for (int round = 1; round < 3; round++) {
    for (int k = 0; k < D * D; k++) w[k] = (float)round;
    assert_int_equal(ulyrt_model_set_param(m, "w.weight", &weight, ULYRT_BORROW, &e), ULYRT_OK);
    assert_int_equal(ulyrt_model_pack(m, 0, round, &e), ULYRT_OK);
    memset(w, 0, sizeof w);
    assert_int_equal(ulyrt_model_pack(m, 0, 0, &e), ULYRT_OK);
    ulyrt_instance *i = bind(m, 1, 3);
    assert_int_equal(ulyrt_run(i, t, 2, &e), ULYRT_OK);
    assert_true(y[0] == (float)(round * D) && y[3 * D - 1] == (float)(round * D));
    ulyrt_instance_destroy(i);
  }
  ulyrt_model_destroy(m);
}

static void runs_and_refuses(void **state) {
  (void)state;
  ulyrt_model *m = load();
  ulyrt_error e = ULYRT_ERROR_INIT;
  float w[SCALE_D] = {2, 2, 2, 2, 2}, x[3 * SCALE_D + 1], y[3 * SCALE_D];
  int64_t dims[] = {SCALE_D}, shape[] = {1, 3, SCALE_D}, strides[] = {3 * SCALE_D, SCALE_D, 1}, transposed[] = {3 * SCALE_D, 1, 3}, wrong[] = {1, 4, SCALE_D};
  ulyrt_tensor weight = {.data = w, .device = {1, 0}, .ndim = 1, .dtype = ULYRT_F32, .shape = dims};
  assert_int_equal(ulyrt_model_set_param(m, "layers.0.weight", &weight, ULYRT_BORROW, &e), ULYRT_OK);
  assert_int_equal(ulyrt_model_set_param(m, "layers.1.weight", &weight, 0, &e), ULYRT_OK);
  assert_int_equal(ulyrt_model_set_param(m, "layers.2.weight", &weight, 0, &e), ULYRT_OK);
  fails(ulyrt_model_set_param(m, "layers.3.weight", &weight, 0, &e), ULYRT_INVALID_ARGUMENT, &e, "did you mean \"layers.");
  uint16_t halves[SCALE_D] = {0x4000, 0x4000, 0x4000, 0x4000, 0x4000}; // 2 in f16 and in bf16
  weight.dtype = ULYRT_I32;
  fails(ulyrt_model_set_param(m, "layers.0.weight", &weight, 0, &e), ULYRT_INVALID_INPUT, &e, "is i32[5], the model needs f32[5]");
  weight.data = halves;
  weight.dtype = ULYRT_F16;
  assert_int_equal(ulyrt_model_set_param(m, "layers.0.weight", &weight, ULYRT_BORROW, &e), ULYRT_OK); // borrowed what must be converted: copied
  weight.dtype = ULYRT_BF16;
  assert_int_equal(ulyrt_model_set_param(m, "layers.1.weight", &weight, 0, &e), ULYRT_OK);
  memset(halves, 0, sizeof halves);
  ulyrt_instance *i = bind(m, 1, 3);
  for (int k = 0; k < 3 * SCALE_D + 1; k++) x[k] = 1;
  ulyrt_tensor t[] = {tensor(x, shape), tensor(y, shape)};
  assert_int_equal(ulyrt_run(i, t, 2, &e), ULYRT_OK);
  assert_true(y[0] == 8 + 3 * 8 && y[3 * SCALE_D - 1] == 32);
  t[0].strides = strides;
  t[0].byte_offset = 4;
  assert_int_equal(ulyrt_run(i, t, 2, &e), ULYRT_OK);
  t[0].strides = transposed;
  fails(ulyrt_run(i, t, 2, &e), ULYRT_INVALID_ARGUMENT, &e, "x is not dense and row-major");
  t[0] = tensor(x, wrong);
  fails(ulyrt_run(i, t, 2, &e), ULYRT_INVALID_ARGUMENT, &e, "x has shape [1, 4, 5], this rank's part is [1, 3, 5]");
  t[0] = tensor(x, shape);
  t[0].dtype = ULYRT_I32;
  fails(ulyrt_run(i, t, 2, &e), ULYRT_INVALID_ARGUMENT, &e, "code 0, 32 bits, 1 lanes), the model needs f32");
  t[0] = tensor(NULL, shape);
  fails(ulyrt_run(i, t, 2, &e), ULYRT_INVALID_ARGUMENT, &e, "x has no data");
  t[0] = tensor((char *)x + 2, shape);
  fails(ulyrt_run(i, t, 2, &e), ULYRT_INVALID_ARGUMENT, &e, "not aligned");
  t[0] = tensor(x, shape);
  t[0].device.type = 2;
  fails(ulyrt_run(i, t, 2, &e), ULYRT_INVALID_ARGUMENT, &e, "device of type 2");
  fails(ulyrt_run(i, t, 1, &e), ULYRT_INVALID_ARGUMENT, &e, "1 tensors, the entry has 2");
  t[0] = tensor(x, shape);
  assert_int_equal(ulyrt_run(i, t, 2, &e), ULYRT_OK);
  assert_int_equal(e.status, 0);
  ulyrt_instance_info info = ULYRT_INSTANCE_INFO_INIT;
  assert_int_equal(ulyrt_instance_get(i, &info, &e), ULYRT_OK);
  assert_string_equal(info.entry, "scale");
  assert_string_equal(info.device, "cpu");
  assert_true(info.n_ranks == 1 && info.threads == 2 && info.arena_bytes == 64 && info.receive_bytes == 64 && info.weight_bytes == 192 &&
              info.scratch_bytes == 20);
  for (int k = 0; k < info.steps; k++) {
    ulyrt_step_info step = ULYRT_STEP_INFO_INIT;
    assert_int_equal(ulyrt_instance_step(i, k, &step, &e), ULYRT_OK);
    if (k == 0) assert_true(strcmp(step.kind, "KERNEL") == 0 && step.items == 3 && step.spec_line == 23 && !step.skipped);
  }
  ulyrt_instance_destroy(i);
  ulyrt_model_destroy(m);
}

static void sizes(void **state) {
  (void)state;
  ulyrt_model *m = load();
  ulyrt_error e = ULYRT_ERROR_INIT;
  ulyrt_instance *i;
  int64_t symbols[] = {INT64_MIN, INT64_MIN}, shape[] = {2, 9, SCALE_D}, other[] = {2, 8, SCALE_D}, wide[] = {2, 9, 6};
  assert_int_equal(ulyrt_model_infer(m, 0, 0, 3, shape, symbols, &e), ULYRT_OK);
  assert_true(symbols[0] == 2 && symbols[1] == 9);
  fails(ulyrt_model_infer(m, 0, 0, 3, other, symbols, &e), ULYRT_INVALID_INPUT, &e, "dim 1 of x is 8, but S = 9");
  fails(ulyrt_model_infer(m, 0, 0, 3, wide, symbols, &e), ULYRT_INVALID_INPUT, &e, "dim 2 of x is 6, the model says 5");
  fails(ulyrt_model_infer(m, 0, 0, 2, wide, symbols, &e), ULYRT_INVALID_INPUT, &e, "x has 2 dims, the model says 3");
  ulyrt_size twice[] = {{"B", 1}, {"B", 2}}, unknown[] = {{"T", 1}};
  ulyrt_bind_options o = ULYRT_BIND_OPTIONS_INIT;
  o.sizes = twice;
  o.n_sizes = 2;
  fails(ulyrt_bind(m, &o, &i, &e), ULYRT_INVALID_ARGUMENT, &e, "B = 1, but also 2");
  o.sizes = unknown;
  o.n_sizes = 1;
  fails(ulyrt_bind(m, &o, &i, &e), ULYRT_INVALID_ARGUMENT, &e, "the model has no symbol T");
  o.n_sizes = 0;
  o.entry = "scalf";
  fails(ulyrt_bind(m, &o, &i, &e), ULYRT_INVALID_ARGUMENT, &e, "the model has no entry \"scalf\"");
  ulyrt_model_destroy(m);
}

static void nothing_to_see(void *context, const ulyrt_value *value) { (void)value, ++*(int *)context; }

// A file of format 1.0 runs, and has no values to watch and no spec.
static void first_version(void **state) {
  (void)state;
  ulyrt_model *m;
  ulyrt_error e = ULYRT_ERROR_INIT;
  ulyrt_source source = ULYRT_SOURCE_INIT;
  ulyrt_value value = ULYRT_VALUE_INIT;
  ulyrt_instance *i;
  if (ulyrt_model_load(FIRST_FILE, &m, &e)) fail_msg("%s", e.text);
  assert_int_equal(ulyrt_model_values(m, 0), 0);
  fails(ulyrt_model_value(m, 0, 0, &value, &e), ULYRT_INVALID_ARGUMENT, &e, "the entry shows 0 values, asked for number 0");
  assert_int_equal(ulyrt_model_source(m, &source, &e), ULYRT_OK);
  assert_true(*source.name == 0 && *source.text == 0);
  float x[2 * SCALE_D], y[2 * SCALE_D], w[SCALE_D] = {2, 2, 2, 2, 2};
  int64_t shape[] = {1, 2, SCALE_D}, dims[] = {SCALE_D};
  ulyrt_tensor weight = {.data = w, .device = {1, 0}, .ndim = 1, .dtype = ULYRT_F32, .shape = dims};
  for (int k = 0; k < 2 * SCALE_D; k++) x[k] = 1;
  for (int k = 0; k < SCALE_LAYERS; k++) {
    char name[] = "layers.0.weight";
    name[7] = (char)('0' + k);
    assert_int_equal(ulyrt_model_set_param(m, name, &weight, 0, &e), ULYRT_OK);
  }
  int seen = 0;
  ulyrt_size sizes[] = {{"B", 1}, {"S", 2}};
  ulyrt_bind_options o = ULYRT_BIND_OPTIONS_INIT;
  o.sizes = sizes, o.n_sizes = 2, o.watch = nothing_to_see, o.watch_context = &seen;
  if (ulyrt_bind(m, &o, &i, &e)) fail_msg("%s", e.text);
  ulyrt_tensor t[] = {tensor(x, shape), tensor(y, shape)};
  assert_int_equal(ulyrt_run(i, t, 2, &e), ULYRT_OK);
  assert_true(y[0] == 8 + 2 * 8 && y[2 * SCALE_D - 1] == 24 && seen == 0);
  ulyrt_instance_destroy(i);
  ulyrt_model_destroy(m);
}

static int never(void *context, const void *mine, size_t bytes, void *out_all) {
  (void)context, (void)mine, (void)bytes, (void)out_all;
  return 7;
}
static int never_all(void *context, const void *send, const int64_t *send_bytes, const int64_t *send_offset, void *receive, const int64_t *receive_bytes,
                     const int64_t *receive_offset) {
  (void)context, (void)send, (void)send_bytes, (void)send_offset, (void)receive, (void)receive_bytes, (void)receive_offset;
  return 7;
}

static void communicators(void **state) {
  (void)state;
  ulyrt_comm *c[3];
  ulyrt_error e = ULYRT_ERROR_INIT;
  assert_int_equal(ulyrt_comm_create_local(3, c, &e), ULYRT_OK);
  assert_true(ulyrt_comm_rank(c[2]) == 2 && ulyrt_comm_size(c[0]) == 3 && ulyrt_comm_sent_bytes(c[1]) == 0);
  for (int r = 0; r < 3; r++) ulyrt_comm_destroy(c[r]);
  fails(ulyrt_comm_create_local(0, c, &e), ULYRT_INVALID_ARGUMENT, &e, "0 ranks");
  ulyrt_callbacks host = ULYRT_CALLBACKS_INIT;
  host.n_ranks = 2;
  fails(ulyrt_comm_create_callbacks(&host, c, &e), ULYRT_INVALID_ARGUMENT, &e, "a function is missing");
  host.all_gather = never;
  host.all_to_all = never_all;
  host.rank = 2;
  fails(ulyrt_comm_create_callbacks(&host, c, &e), ULYRT_INVALID_ARGUMENT, &e, "rank 2 of 2");
  host.rank = 1;
  assert_int_equal(ulyrt_comm_create_callbacks(&host, c, &e), ULYRT_OK);
  ulyrt_model *m = load();
  ulyrt_size values[] = {{"B", 1}, {"S", 2}};
  ulyrt_bind_options o = ULYRT_BIND_OPTIONS_INIT;
  ulyrt_instance *i;
  o.sizes = values;
  o.n_sizes = 2;
  o.comms = c;
  o.n_comms = 1;
  fails(ulyrt_bind(m, &o, &i, &e), ULYRT_PEER_LOST, &e, "[rank 1] the host's all_gather failed with 7");
  ulyrt_comm_destroy(c[0]);
  ulyrt_model_destroy(m);
}

static void statuses(void **state) {
  (void)state;
  static const struct {
    ulyrt_status status;
    const char *text;
  } cases[] = {{ULYRT_OK, "ok"},
               {ULYRT_INVALID_ARGUMENT, "invalid argument"},
               {ULYRT_INVALID_INPUT, "invalid input"},
               {ULYRT_MISMATCH, "mismatch"},
               {ULYRT_UNAVAILABLE, "unavailable"},
               {ULYRT_IO, "input/output error"},
               {ULYRT_PEER_LOST, "peer lost"},
               {ULYRT_UNSUPPORTED, "not supported yet"},
               {ULYRT_EXHAUSTED, "out of memory"},
               {ULYRT_OVERFLOW, "size overflow"},
               {ULYRT_FAULT, "index out of range"},
               {ULYRT_CANCELLED, "cancelled"},
               {ULYRT_INTERNAL, "internal error"},
               {(ulyrt_status)13, "unknown status"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_string_equal(ulyrt_status_text(cases[i].status), cases[i].text);
}

typedef struct late_gather {
  ulyrt_comm *comm;
  double after;
  ulyrt_status status;
} late_gather;

static void *gather_late(void *argument) {
  late_gather *g = argument;
  char mine = 1, all[2];
  ulyrt_error e = ULYRT_ERROR_INIT;
  nanosleep(&(struct timespec){.tv_nsec = (long)(g->after * 1e9)}, NULL);
  g->status = ulyrt_comm_all_gather(g->comm, &mine, 1, all, &e);
  return NULL;
}

// A rank waits as long as its own communicator says, whatever ULYRT_TIMEOUT said when that was made; without a deadline, for a rank that comes late.
static void deadlines(void **state) {
  (void)state;
  static const double none[] = {0, -1};
  ulyrt_comm *c[2];
  ulyrt_error e = ULYRT_ERROR_INIT;
  char mine = 1, all[2];
  assert_int_equal(ulyrt_comm_create_local(2, c, &e), ULYRT_OK);
  ulyrt_comm_set_timeout(c[0], 0.25);
  fails(ulyrt_comm_all_gather(c[0], &mine, 1, all, &e), ULYRT_PEER_LOST, &e, "rank 1 did not answer within 0.25 s");
  for (int r = 0; r < 2; r++) ulyrt_comm_destroy(c[r]);
  setenv("ULYRT_TIMEOUT", "0.1", 1);
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    pthread_t thread;
    assert_int_equal(ulyrt_comm_create_local(2, c, &e), ULYRT_OK);
    for (int r = 0; r < 2; r++) ulyrt_comm_set_timeout(c[r], none[i]);
    late_gather late = {.comm = c[1], .after = 0.4};
    assert_int_equal(pthread_create(&thread, NULL, gather_late, &late), 0);
    ulyrt_status status = ulyrt_comm_all_gather(c[0], &mine, 1, all, &e);
    pthread_join(thread, NULL);
    if (status != ULYRT_OK) fail_msg("%s", e.text);
    assert_int_equal(late.status, ULYRT_OK);
    for (int r = 0; r < 2; r++) ulyrt_comm_destroy(c[r]);
  }
  unsetenv("ULYRT_TIMEOUT");
}

static void environment(void **state) {
  (void)state;
  ulyrt_comm *c;
  ulyrt_error e = ULYRT_ERROR_INIT;
  ulyrt_model *m;
  setenv("ULYRT_TIMEOUT", "soon", 1);
  fails(ulyrt_comm_create_local(1, &c, &e), ULYRT_INVALID_ARGUMENT, &e, "ULYRT_TIMEOUT is \"soon\", expected a number");
  setenv("ULYRT_TIMEOUT", "1.5", 1);
  assert_int_equal(ulyrt_comm_create_local(1, &c, &e), ULYRT_OK);
  ulyrt_comm_destroy(c);
  unsetenv("ULYRT_TIMEOUT");
  setenv("ULYRT_CPU_LEVEL", "x86-64", 1);
  m = load();
  ulyrt_model_seed_params(m, 3, &e);
  setenv("ULYRT_THREADS", "3", 1);
  ulyrt_instance_info info = ULYRT_INSTANCE_INFO_INIT;
  ulyrt_size values[] = {{"B", 1}, {"S", 2}};
  ulyrt_bind_options o = ULYRT_BIND_OPTIONS_INIT;
  ulyrt_instance *i;
  o.sizes = values;
  o.n_sizes = 2;
  assert_int_equal(ulyrt_bind(m, &o, &i, &e), ULYRT_OK);
  assert_int_equal(ulyrt_instance_get(i, &info, &e), ULYRT_OK);
  assert_int_equal(info.threads, 3);
  assert_string_equal(info.cpu_level, "x86-64");
  ulyrt_instance_destroy(i);
  setenv("ULYRT_THREADS", "-1", 1);
  fails(ulyrt_bind(m, &o, &i, &e), ULYRT_INVALID_ARGUMENT, &e, "ULYRT_THREADS is \"-1\"");
  unsetenv("ULYRT_THREADS");
  setenv("ULYRT_DEVICE", "null", 1);
  assert_int_equal(ulyrt_bind(m, &o, &i, &e), ULYRT_OK);
  assert_int_equal(ulyrt_instance_get(i, &info, &e), ULYRT_OK);
  assert_string_equal(info.device, "null");
  ulyrt_instance_destroy(i);
  unsetenv("ULYRT_DEVICE");
  ulyrt_model_destroy(m);
  setenv("ULYRT_CPU_LEVEL", "m68k", 1);
  fails(ulyrt_model_load(MODEL_FILE, &m, &e), ULYRT_UNAVAILABLE, &e, "ULYRT_CPU_LEVEL is \"m68k\", the model has code for x86-64, x86-64-v3");
  unsetenv("ULYRT_CPU_LEVEL");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(says_what_is_in_it),
                                     cmocka_unit_test(structs_of_other_sizes),
                                     cmocka_unit_test(packs_ahead),
                                     cmocka_unit_test(runs_and_refuses),
                                     cmocka_unit_test(sizes),
                                     cmocka_unit_test(first_version),
                                     cmocka_unit_test(communicators),
                                     cmocka_unit_test(statuses),
                                     cmocka_unit_test(deadlines),
                                     cmocka_unit_test(environment)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
