#include "driver/doctor.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "frontend/spec.h"
#include "runtime/base/env.h"
#include "runtime/base/full_io.h"
#include "runtime/ulyrt.h"

// Where all values are equal, so is what attention makes of them.
static const char spec[] = "ulyc 1\nfree B, S\ngrid sp(S)\ndtype f32\n"
                           "layer attn(x: [B, S, 2, 8]) -> [B, S, 2, 8] = attention(x, x, x, mask = causal)\n";
enum { RANKS = 2, ROWS = 5, ROW = 16 };

typedef struct rank {
  ulyrt_model *model;
  ulyrt_comm *comm;
  ulyrt_status status;
  ulyrt_error error;
} rank;

static ulyrt_status run_bound(rank *r, ulyrt_instance *instance) {
  ulyrt_shape shape = ULYRT_SHAPE_INIT;
  float x[ROWS * ROW], y[ROWS * ROW] = {0};
  ulyrt_status status = ulyrt_instance_shape(instance, 0, &shape, &r->error);
  if (status != ULYRT_OK) return status;
  for (int i = 0; i < ROWS * ROW; i++) x[i] = 0.5f;
  ulyrt_tensor tensors[2] = {{.data = x, .device = {1, 0}, .ndim = 4, .dtype = ULYRT_F32, .shape = shape.local},
                             {.data = y, .device = {1, 0}, .ndim = 4, .dtype = ULYRT_F32, .shape = shape.local}};
  status = ulyrt_run(instance, tensors, 2, &r->error);
  for (int64_t i = 0; status == ULYRT_OK && i < shape.local[1] * ROW; i++)
    if (fabsf(y[i] - 0.5f) > 1e-6f) {
      snprintf(r->error.text, sizeof r->error.text, "element %lld of rank %d is %g, not 0.5", (long long)i, ulyrt_comm_rank(r->comm), (double)y[i]);
      return ULYRT_MISMATCH;
    }
  return status;
}

static void *run_rank(void *argument) {
  rank *r = argument;
  const ulyrt_size sizes[] = {{"B", 1}, {"S", ROWS}};
  ulyrt_instance *instance = NULL;
  ulyrt_bind_options options = ULYRT_BIND_OPTIONS_INIT;
  options.sizes = sizes;
  options.n_sizes = 2;
  options.comms = &r->comm;
  options.n_comms = 1;
  options.threads = 1;
  r->status = ulyrt_bind(r->model, &options, &instance, &r->error);
  if (r->status == ULYRT_OK) r->status = run_bound(r, instance);
  ulyrt_instance_destroy(instance);
  return NULL;
}

static uly_status run_model(const char *path, uly_error *error) {
  rank ranks[RANKS] = {0};
  ulyrt_comm *comms[RANKS];
  ulyrt_error e;
  ulyrt_model *model;
  pthread_t thread;
  if (ulyrt_model_load(path, &model, &e) != ULYRT_OK) return uly_fail(error, ULY_IO, "loading: %s", e.text);
  ulyrt_status status = ulyrt_comm_create_local(RANKS, comms, &e);
  if (status == ULYRT_OK) {
    for (int r = 0; r < RANKS; r++) ranks[r] = (rank){.model = model, .comm = comms[r]};
    bool started = pthread_create(&thread, NULL, run_rank, &ranks[1]) == 0;
    if (!started) ulyrt_comm_abort(comms[1], "no thread can be made");
    run_rank(&ranks[0]);
    if (started) pthread_join(thread, NULL);
    for (int r = 0; r < RANKS; r++) {
      if (status == ULYRT_OK && ranks[r].status != ULYRT_OK) status = ranks[r].status, e = ranks[r].error;
      ulyrt_comm_destroy(comms[r]);
    }
  }
  ulyrt_model_destroy(model);
  return status == ULYRT_OK ? ULY_OK : uly_fail(error, (uly_status)status, "running: %s", e.text);
}

static uly_status compile(uly_driver *d, const char *path, uly_error *error) {
  void *function;
  uly_diags diags;
  uly_text text = {.arena = d->arena};
  uly_lower_options options = {.source_name = ULY_STR("doctor.spec"), .source = ULY_STR(spec), .output = path, .level = 2, .print_to = stdout};
  uly_diags_init(&diags, d->arena);
  if (uly_driver_lower(d, "uly_lower_compile", &function) != ULY_OK) return uly_fail(error, ULY_UNAVAILABLE, "no compiler");
  const uly_graph *graph = uly_spec_read(d->arena, &diags, options.source_name, options.source, NULL, 0);
  ULY_ASSERT(graph);
  uly_status status = ((uly_lower_compile_fn *)(uintptr_t)function)(d->arena, graph, &options, &diags, &text);
  return status == ULY_OK ? ULY_OK : uly_fail(error, status, "compiling: %.*s", ULY_STR_ARG(uly_text_str(&text)));
}

uly_status uly_doctor_self_test(uly_driver *d, uly_error *error, double *out_seconds) {
  struct timespec begin, end;
  char *path = (char *)(uintptr_t)uly_str_format(d->arena, "%s/ulyc-doctor-XXXXXX", uly_env_text(ULY_ENV_TMPDIR)).ptr;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  int fd = mkostemp(path, O_CLOEXEC);
  if (fd < 0) return uly_fail(error, ULY_IO, "%s: %s", path, strerror(errno));
  close(fd);
  uly_status status = compile(d, path, error);
  if (status == ULY_OK) status = run_model(path, error);
  unlink(path);
  clock_gettime(CLOCK_MONOTONIC, &end);
  *out_seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
  return status;
}
