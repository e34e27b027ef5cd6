// One rank's part of a job: bind, cut the inputs, run, put the outputs in place.
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/base/random.h"
#include "runtime/ulyrun_job.h"

typedef struct part {
  ulyrt_shape shape;
  uly_ndarray local;
  void *owned;  // NULL where the part is a run of the whole array, and used there
  bool is_twin; // of a part of a rank below
} part;

typedef struct rank_run {
  uly_rank_result *result;
  const uly_job *job;
  ulyrt_comm *comm;
  ulyrt_instance *instance;
  part *parts;
  ulyrt_tensor *tensors;
} rank_run;

#define TRY_RT(call)                                                                                                                                           \
  do {                                                                                                                                                         \
    ulyrt_error e = ULYRT_ERROR_INIT;                                                                                                                          \
    ulyrt_status try_status = (call);                                                                                                                          \
    if (try_status != ULYRT_OK) return uly_fail(error, (uly_status)try_status, "%s", e.text);                                                                  \
  } while (0)

// Calls |visit| for each contiguous run of a part: its first element in the global and in the local array, and its length.
static void walk(const ulyrt_shape *s, void (*visit)(void *context, int64_t global, int64_t local, int64_t n), void *context) {
  int64_t index[ULYRT_MAX_DIMS] = {0}, local = 0, rows = 1;
  int last = s->ndim - 1;
  if (s->ndim == 0) {
    visit(context, 0, 0, 1);
    return;
  }
  for (int d = 0; d < s->ndim; d++) rows *= d == last ? (s->local[d] > 0) : s->local[d];
  for (; rows > 0; rows--) {
    int64_t global = 0;
    for (int d = 0; d < s->ndim; d++) global = global * s->dims[d] + s->start[d] + (d == last ? 0 : index[d]);
    visit(context, global, local, s->local[last]);
    local += s->local[last];
    for (int d = last - 1; d >= 0 && ++index[d] == s->local[d]; d--) index[d] = 0;
  }
}

typedef struct copy {
  char *global, *local;
  int64_t bytes; // of an element
  uint64_t key;
  const uly_job_tensor *tensor;
} copy;

static void cut(void *context, int64_t global, int64_t local, int64_t n) {
  const copy *c = context;
  memcpy(c->local + local * c->bytes, c->global + global * c->bytes, (size_t)(n * c->bytes));
}

static void paste(void *context, int64_t global, int64_t local, int64_t n) {
  const copy *c = context;
  memcpy(c->global + global * c->bytes, c->local + local * c->bytes, (size_t)(n * c->bytes));
}

static void make_up(void *context, int64_t global, int64_t local, int64_t n) {
  const copy *c = context;
  for (int64_t i = 0; i < n; i++)
    uly_dtype_store(c->tensor->dtype, c->local, local + i, uly_random_input(c->key, (uint64_t)(global + i), c->tensor->dtype, c->tensor->id_limit));
}

// Whether the part is one run of the whole array; where that begins, elements.
static bool is_run(const ulyrt_shape *s, int64_t *out_start) {
  bool cut = false, run = true;
  *out_start = 0;
  for (int d = s->ndim - 1; d >= 0; d--) {
    run = run && (!cut || s->local[d] == 1);
    cut = cut || s->local[d] != s->dims[d];
  }
  for (int d = 0; d < s->ndim; d++) *out_start = *out_start * s->dims[d] + s->start[d];
  return run;
}

// Whether a rank below has the same part of an output: ranks that share memory must not write it both.
static uly_status find_twin(const rank_run *r, part *p, uly_error *error) {
  int32_t n = ulyrt_comm_size(r->comm);
  size_t bytes = (size_t)p->shape.ndim * sizeof *p->shape.start;
  ulyrt_shape *shapes = calloc((size_t)n, sizeof *shapes);
  if (!shapes) return uly_fail(error, ULY_EXHAUSTED, "no memory to compare parts");
  ulyrt_error e = ULYRT_ERROR_INIT;
  ulyrt_status status = ulyrt_comm_all_gather(r->comm, &p->shape, sizeof p->shape, shapes, &e);
  for (int32_t q = 0; status == ULYRT_OK && q < ulyrt_comm_rank(r->comm); q++)
    p->is_twin = p->is_twin || (!memcmp(shapes[q].start, p->shape.start, bytes) && !memcmp(shapes[q].local, p->shape.local, bytes));
  free(shapes);
  return status == ULYRT_OK ? ULY_OK : uly_fail(error, (uly_status)status, "%s", e.text);
}

// The tensor itself where its part is a run of it that no other rank writes, else memory of its own.
static uly_status place_part(const uly_job_tensor *t, part *p, char *whole, uly_error *error) {
  int64_t start;
  if (whole && !p->is_twin && p->local.bytes && is_run(&p->shape, &start)) {
    p->local.data = whole + start * uly_dtype_bytes(t->dtype);
    return ULY_OK;
  }
  p->local.data = p->owned = aligned_alloc(64, ((size_t)p->local.bytes + 64) & ~(size_t)63);
  return p->owned ? ULY_OK : uly_fail(error, ULY_EXHAUSTED, "no memory for %lld bytes of %s", (long long)p->local.bytes, t->name);
}

static uly_status make_part(rank_run *r, int32_t i, bool gather, uly_error *error) {
  const uly_job_tensor *t = &r->job->tensors[i];
  part *p = &r->parts[i];
  int64_t elements;
  p->shape = (ulyrt_shape)ULYRT_SHAPE_INIT;
  TRY_RT(ulyrt_instance_shape(r->instance, i, &p->shape, &e));
  p->local = (uly_ndarray){.dtype = t->dtype, .rank = p->shape.ndim};
  memcpy(p->local.dims, p->shape.local, sizeof p->shape.local);
  if (!uly_ndarray_size(t->dtype, p->local.rank, p->local.dims, &elements, &p->local.bytes)) return uly_fail(error, ULY_OVERFLOW, "%s is too large", t->name);
  bool random = !t->is_output && t->source.kind == ULY_SOURCE_RANDOM;
  char *whole = random ? NULL : (char *)(uintptr_t)(t->is_output ? t->array.data : t->input.array.data);
  if (t->is_output && !gather && r->comm) ULY_TRY(find_twin(r, p, error));
  ULY_TRY(place_part(t, p, whole, error));
  copy c = {.global = whole, .local = p->owned, .bytes = uly_dtype_bytes(t->dtype), .tensor = t};
  if (random) {
    c.key = uly_random_key(t->source.seed, uly_str_of(t->name));
    walk(&p->shape, make_up, &c);
  } else if (!t->is_output && p->owned) {
    walk(&p->shape, cut, &c);
  }
  const uly_dtype_info *info = uly_dtype_get(t->dtype);
  r->tensors[i] = (ulyrt_tensor){.data = (void *)(uintptr_t)p->local.data,
                                 .device = {1, 0},
                                 .ndim = p->shape.ndim,
                                 .dtype = {info->dlpack_code, info->dlpack_bits, 1},
                                 .shape = p->local.dims};
  if (t->dtype == ULY_BOOL) r->tensors[i].dtype = ULYRT_BOOL;
  return ULY_OK;
}

static void see(void *context, const ulyrt_value *value) {
  const rank_run *r = context;
  r->job->see(r->job->see_context, r->result, value);
}

static uly_status bind_model(rank_run *r, uly_error *error) {
  const uly_job *job = r->job;
  int32_t n = ulyrt_model_symbols(job->model), n_sizes = 0;
  ulyrt_size *sizes = calloc((size_t)n + 1, sizeof *sizes);
  if (!sizes) return uly_fail(error, ULY_EXHAUSTED, "no memory to bind");
  for (int32_t i = 0; i < n; i++)
    if (job->info.symbols >> i & 1) sizes[n_sizes++] = (ulyrt_size){ulyrt_model_symbol_name(job->model, i), job->symbols[i]};
  ulyrt_bind_options options = ULYRT_BIND_OPTIONS_INIT;
  options.entry = job->info.name;
  options.sizes = sizes;
  options.n_sizes = n_sizes;
  options.comms = &r->comm;
  options.n_comms = r->comm ? 1 : 0;
  options.grid = job->grid;
  options.n_grid = job->n_grid;
  options.threads = (int32_t)job->options->threads;
  if (job->see) options.watch = see, options.watch_context = r;
  ulyrt_error e = ULYRT_ERROR_INIT;
  ulyrt_status status = ulyrt_bind(job->model, &options, &r->instance, &e);
  free(sizes);
  return status == ULYRT_OK ? ULY_OK : uly_fail(error, (uly_status)status, "%s", e.text);
}

// ---- outputs of ranks that share no memory ----

enum { PIECE = 1 << 20 };

// Brings every rank's part of output |i| to rank 0, piece by piece, and puts it in place there.
static uly_status collect(rank_run *r, int32_t i, uly_error *error) {
  const uly_job_tensor *t = &r->job->tensors[i];
  int32_t n = ulyrt_comm_size(r->comm), me = ulyrt_comm_rank(r->comm);
  const part *mine = &r->parts[i];
  ulyrt_shape *shapes = calloc((size_t)n, sizeof *shapes);
  char **parts = calloc((size_t)n, sizeof *parts), *pieces = malloc((size_t)n * PIECE), *piece = calloc(1, PIECE);
  int64_t most = 0, bytes = uly_dtype_bytes(t->dtype);
  ulyrt_error e = ULYRT_ERROR_INIT;
  ulyrt_status status = shapes && parts && pieces && piece ? ULYRT_OK : ULYRT_EXHAUSTED;
  if (status == ULYRT_OK) status = ulyrt_comm_all_gather(r->comm, &mine->shape, sizeof mine->shape, shapes, &e);
  for (int32_t q = 0; status == ULYRT_OK && q < n; q++) {
    int64_t size = bytes;
    for (int d = 0; d < shapes[q].ndim; d++) size *= shapes[q].local[d];
    most = size > most ? size : most;
    if (me == 0 && !(parts[q] = malloc((size_t)size + PIECE))) status = ULYRT_EXHAUSTED;
  }
  for (int64_t at = 0; status == ULYRT_OK && at < most; at += PIECE) {
    int64_t left = mine->local.bytes - at;
    if (left > 0) memcpy(piece, (const char *)mine->local.data + at, (size_t)(left < PIECE ? left : PIECE));
    status = ulyrt_comm_all_gather(r->comm, piece, PIECE, pieces, &e);
    for (int32_t q = 0; status == ULYRT_OK && me == 0 && q < n; q++) {
      int64_t size = bytes;
      for (int d = 0; d < shapes[q].ndim; d++) size *= shapes[q].local[d];
      if (at < size) memcpy(parts[q] + at, pieces + (size_t)q * PIECE, (size_t)(size - at < PIECE ? size - at : PIECE));
    }
  }
  for (int32_t q = 0; parts && q < n; q++) {
    copy c = {.global = (char *)(uintptr_t)t->array.data, .local = parts[q], .bytes = bytes};
    if (status == ULYRT_OK && me == 0) walk(&shapes[q], paste, &c);
    free(parts[q]);
  }
  free(shapes);
  free(parts);
  free(pieces);
  free(piece);
  return status == ULYRT_OK ? ULY_OK : uly_fail(error, (uly_status)status, "%s", e.text[0] ? e.text : "no memory to collect the outputs");
}

static uly_status finish_outputs(rank_run *r, bool gather, uly_error *error) {
  for (int32_t i = 0; i < r->job->n_tensors; i++) {
    const uly_job_tensor *t = &r->job->tensors[i];
    if (!t->is_output) continue;
    if (gather) {
      ULY_TRY(collect(r, i, error));
      continue;
    }
    if (!r->parts[i].owned || r->parts[i].is_twin) continue;
    copy c = {.global = (char *)(uintptr_t)t->array.data, .local = r->parts[i].owned, .bytes = uly_dtype_bytes(t->dtype)};
    walk(&r->parts[i].shape, paste, &c);
  }
  return ULY_OK;
}

// What this rank has sent so far, over each axis.
static uly_status count_sent(const rank_run *r, uint64_t *out_axes, uly_error *error) {
  for (int32_t a = 0; a < ulyrt_model_axes(r->job->model); a++) {
    ulyrt_axis_info info = ULYRT_AXIS_INFO_INIT;
    TRY_RT(ulyrt_instance_axis(r->instance, a, &info, &e));
    out_axes[a] = info.sent_bytes;
  }
  return ULY_OK;
}

static uly_status run_model(rank_run *r, bool gather, uly_rank_result *out, uly_error *error) {
  double start = uly_now();
  ULY_TRY(bind_model(r, error));
  out->bind_seconds = uly_now() - start;
  for (int32_t i = 0; i < r->job->n_tensors; i++) ULY_TRY(make_part(r, i, gather, error));
  for (int64_t k = 0; k < r->job->options->repeat; k++) {
    uint64_t before = r->comm ? ulyrt_comm_sent_bytes(r->comm) : 0, axes[ULYRT_MAX_AXES];
    ULY_TRY(count_sent(r, axes, error));
    start = uly_now();
    TRY_RT(ulyrt_run(r->instance, r->tensors, r->job->n_tensors, &e));
    double seconds = uly_now() - start;
    if (k == 0 || seconds < out->run_seconds) out->run_seconds = seconds;
    out->sent_bytes = r->comm ? ulyrt_comm_sent_bytes(r->comm) - before : 0;
    ULY_TRY(count_sent(r, out->axis_bytes, error));
    for (int32_t a = 0; a < ulyrt_model_axes(r->job->model); a++) out->axis_bytes[a] -= axes[a];
  }
  ulyrt_instance_info info = ULYRT_INSTANCE_INFO_INIT;
  TRY_RT(ulyrt_instance_get(r->instance, &info, &e));
  out->arena_bytes = info.arena_bytes;
  out->receive_bytes = info.receive_bytes;
  out->weight_bytes = info.weight_bytes;
  out->threads = info.threads;
  return finish_outputs(r, gather, error);
}

void uly_job_run(const uly_job *job, ulyrt_comm *comm, bool gather, uly_rank_result *out) {
  size_t n = (size_t)job->n_tensors + 1;
  rank_run r = {.job = job, .result = out, .comm = comm, .parts = calloc(n, sizeof *r.parts), .tensors = calloc(n, sizeof *r.tensors)};
  uly_error error = {0};
  uly_status status = r.parts && r.tensors ? run_model(&r, gather, out, &error) : uly_fail(&error, ULY_EXHAUSTED, "no memory to run");
  if (status != ULY_OK && comm) ulyrt_comm_abort(comm, error.text);
  out->status = (int32_t)status;
  snprintf(out->error, sizeof out->error, "%s", error.text);
  ulyrt_instance_destroy(r.instance);
  for (int32_t i = 0; r.parts && i < job->n_tensors; i++) free(r.parts[i].owned);
  free(r.parts);
  free(r.tensors);
  out->done = true;
}
