#include "runtime/ulyrun_job.h"

#include <errno.h>
#include <math.h>
#include <sys/mman.h>

#include "runtime/ulyrun_report.h"

static uly_status take_error(const ulyrt_error *from, ulyrt_status status, uly_error *error) { return uly_fail(error, (uly_status)status, "%s", from->text); }

// Calls a ulyrt function whose last argument is `&e`, and hands its failure on.
#define TRY_RT(call)                                                                                                                                           \
  do {                                                                                                                                                         \
    ulyrt_error e = ULYRT_ERROR_INIT;                                                                                                                          \
    ulyrt_status try_status = (call);                                                                                                                          \
    if (try_status != ULYRT_OK) return take_error(&e, try_status, error);                                                                                      \
  } while (0)

bool uly_job_dtype(ulyrt_dtype from, uly_dtype *out) {
  for (int i = 0; i < ULY_N_DTYPES; i++) {
    const uly_dtype_info *info = uly_dtype_get((uly_dtype)i);
    if (info->dlpack_code == from.code && info->dlpack_bits == from.bits) return *out = (uly_dtype)i, true;
  }
  return false;
}

static ulyrt_tensor tensor_of(const uly_ndarray *array) {
  const uly_dtype_info *info = uly_dtype_get(array->dtype);
  return (ulyrt_tensor){.data = (void *)(uintptr_t)array->data,
                        .device = {1, 0},
                        .ndim = array->rank,
                        .dtype = {info->dlpack_code, info->dlpack_bits, 1},
                        .shape = (int64_t *)(uintptr_t)array->dims};
}

// "; did you mean 'x'?" or nothing, of the entries' or tensors' names.
static const char *suggest(uly_job *job, uly_str name, const uly_str *names, int32_t n) {
  uly_str nearest = uly_str_nearest(name, names, (size_t)n);
  return nearest.len ? uly_str_format(job->arena, "; did you mean '%.*s'?", ULY_STR_ARG(nearest)).ptr : "";
}

// ---- model and entry ----

static uly_status find_entry(uly_job *job, uly_error *error) {
  int32_t n = ulyrt_model_entries(job->model);
  uly_str *names = ULY_NEW_ARRAY(job->arena, uly_str, n + 1);
  uly_text all = {.arena = job->arena};
  for (int32_t i = 0; i < n; i++) {
    ulyrt_entry_info info = ULYRT_ENTRY_INFO_INIT;
    TRY_RT(ulyrt_model_entry(job->model, i, &info, &e));
    names[i] = uly_str_of(info.name);
    uly_text_add(&all, "%s%s", i ? ", " : "", info.name);
    job->entry = i;
    job->info = info;
    if (job->options->entry ? strcmp(info.name, job->options->entry) == 0 : n == 1) return ULY_OK;
  }
  if (!job->options->entry)
    return uly_fail(error, ULY_INVALID_ARGUMENT, "the model has several entries, name one with --entry: %s", all.ptr ? all.ptr : "none");
  return uly_fail(error, ULY_INVALID_ARGUMENT, "no entry '%s'%s (there is: %s)", job->options->entry, suggest(job, uly_str_of(job->options->entry), names, n),
                  all.ptr ? all.ptr : "none");
}

static uly_status list_tensors(uly_job *job, uly_error *error) {
  job->n_tensors = job->info.tensors;
  job->tensors = ULY_NEW_ARRAY(job->arena, uly_job_tensor, job->n_tensors + 1);
  for (int32_t i = 0; i < job->n_tensors; i++) {
    ulyrt_tensor_info info = ULYRT_TENSOR_INFO_INIT;
    uly_job_tensor *t = &job->tensors[i];
    TRY_RT(ulyrt_model_tensor(job->model, job->entry, i, &info, &e));
    t->name = info.name;
    t->is_output = info.role == ULYRT_OUTPUT;
    t->id_limit = info.id_limit;
    t->array.rank = info.ndim;
    if (!uly_job_dtype(info.dtype, &t->dtype)) return uly_fail(error, ULY_UNSUPPORTED, "%s has a dtype that this program does not know", info.name);
    t->array.dtype = t->dtype;
  }
  return ULY_OK;
}

// The tensor that |text| = "name=source" is about.
static uly_status find_tensor(uly_job *job, const char *option, const char *text, bool output, uly_job_tensor **out, uly_str *out_source, uly_error *error) {
  uly_str name, *names = ULY_NEW_ARRAY(job->arena, uly_str, job->n_tensors + 1);
  int32_t n = 0;
  if (!uly_source_split(text, &name, out_source))
    return uly_fail(error, ULY_INVALID_ARGUMENT, "%s takes NAME=%s, not '%s'", option, output ? "@FILE" : "SOURCE", text);
  for (int32_t i = 0; i < job->n_tensors; i++) {
    if (job->tensors[i].is_output != output) continue;
    names[n++] = uly_str_of(job->tensors[i].name);
    if (!uly_str_equal(name, names[n - 1])) continue;
    *out = &job->tensors[i];
    return ULY_OK;
  }
  return uly_fail(error, ULY_INVALID_ARGUMENT, "entry %s has no %s '%.*s'%s", job->info.name, output ? "output" : "input", ULY_STR_ARG(name),
                  suggest(job, name, names, n));
}

// ---- the grid ----

static uly_status read_grid(uly_job *job, uly_error *error) {
  const char *text = job->options->grid;
  job->grid = ULY_NEW_ARRAY(job->arena, ulyrt_size, ULYRT_MAX_AXES);
  int64_t product = 1;
  for (const char *at = text; at && *at;) {
    size_t len = strcspn(at, ",");
    uly_str name, number;
    char *end = NULL;
    const char *one = uly_str_copy(job->arena, (uly_str){at, len}).ptr;
    if (!uly_source_split(one, &name, &number)) return uly_fail(error, ULY_INVALID_ARGUMENT, "--grid takes sp=3,dp=2, not '%s'", text);
    errno = 0;
    long long value = strtoll(number.ptr, &end, 10);
    if (errno || end == number.ptr || *end || value < 1 || value > INT32_MAX)
      return uly_fail(error, ULY_INVALID_ARGUMENT, "--grid: '%s' is not a number of ranks", number.ptr);
    if (job->n_grid == ULYRT_MAX_AXES) return uly_fail(error, ULY_INVALID_ARGUMENT, "--grid: at most %d axes", ULYRT_MAX_AXES);
    job->grid[job->n_grid++] = (ulyrt_size){uly_str_copy(job->arena, name).ptr, value};
    if (__builtin_mul_overflow(product, value, &product)) product = INT64_MAX;
    at += len + (at[len] == ',');
  }
  if (!job->n_ranks && product > ULY_JOB_MAX_RANKS) return uly_fail(error, ULY_INVALID_ARGUMENT, "--grid %s: at most %d ranks", text, ULY_JOB_MAX_RANKS);
  if (!job->n_ranks) job->n_ranks = (int32_t)product;
  TRY_RT(ulyrt_model_grid(job->model, job->n_ranks, job->grid, job->n_grid, job->axes, &e));
  return ULY_OK;
}

const char *uly_job_rank_name(const uly_job *job, int rank, char *buffer, size_t bytes) {
  int32_t n = ulyrt_model_axes(job->model), wide = 0, rest = rank;
  size_t at = (size_t)snprintf(buffer, bytes, "%d", rank);
  for (int32_t a = 0; a < n; a++) wide += job->axes[a] > 1;
  for (int32_t a = 0; wide > 1 && a < n && at < bytes; rest /= job->axes[a++])
    at += (size_t)snprintf(buffer + at, bytes - at, "%s%s %d%s", a ? ", " : " (", ulyrt_model_axis_name(job->model, a), rest % job->axes[a],
                           a + 1 == n ? ")" : "");
  return buffer;
}

// ---- inputs and sizes ----

static uly_status parse_source(uly_job *job, const char *option, uly_str text, uly_input_source *out, uly_error *error) {
  uly_text why = {.arena = job->arena};
  if (uly_source_parse(job->arena, text, out, &why)) return ULY_OK;
  return uly_fail(error, ULY_INVALID_ARGUMENT, "%s: %s", option, why.ptr);
}

static uly_status read_at(uly_job *job, const char *text, uly_error *error) {
  int32_t n = ulyrt_model_symbols(job->model);
  uly_str *names = ULY_NEW_ARRAY(job->arena, uly_str, n + 1);
  for (int32_t i = 0; i < n; i++) names[i] = uly_str_of(ulyrt_model_symbol_name(job->model, i));
  for (const char *at = text; *at;) {
    size_t len = strcspn(at, ",");
    uly_str name, number;
    const char *one = uly_str_copy(job->arena, (uly_str){at, len}).ptr;
    char *end = NULL;
    int32_t i = 0;
    if (!uly_source_split(one, &name, &number)) return uly_fail(error, ULY_INVALID_ARGUMENT, "--at takes B=1,S=4096, not '%s'", text);
    errno = 0;
    long long value = strtoll(number.ptr, &end, 10);
    if (errno || end == number.ptr || *end || value < 0) return uly_fail(error, ULY_INVALID_ARGUMENT, "--at: '%s' is not a size", number.ptr);
    while (i < n && !uly_str_equal(names[i], name)) i++;
    if (i == n) return uly_fail(error, ULY_INVALID_ARGUMENT, "--at: the model has no size '%.*s'%s", ULY_STR_ARG(name), suggest(job, name, names, n));
    if (job->symbols[i] != INT64_MIN && job->symbols[i] != value)
      return uly_fail(error, ULY_INVALID_ARGUMENT, "--at: %.*s is %lld and %lld", ULY_STR_ARG(name), (long long)job->symbols[i], value);
    job->symbols[i] = value;
    at += len + (at[len] == ',');
  }
  return ULY_OK;
}

static uly_status open_input(uly_job *job, int32_t i, uly_error *error) {
  uly_job_tensor *t = &job->tensors[i];
  char shape[128];
  if (!t->source.path && t->source.kind != ULY_SOURCE_RANDOM) return uly_fail(error, ULY_INVALID_ARGUMENT, "no --input for '%s'", t->name);
  if (t->source.kind == ULY_SOURCE_RANDOM) return ULY_OK;
  ULY_TRY(uly_source_open(&t->source, uly_str_of(t->name), t->dtype, t->array.rank, &t->input, error));
  const uly_ndarray *a = &t->input.array;
  bool half = t->dtype == ULY_BF16 || t->dtype == ULY_F16;
  if (half && a->dtype == ULY_F32 && t->source.kind == ULY_SOURCE_NPY) ULY_TRY(uly_sourced_convert(&t->input, t->dtype, error)); // which has no bf16
  if (a->dtype != t->dtype)
    return uly_fail(error, ULY_INVALID_INPUT, "input %s: %s holds %s, the model takes %s", t->name, t->source.path, uly_dtype_name(a->dtype),
                    uly_dtype_name(t->dtype));
  if (a->rank != t->array.rank)
    return uly_fail(error, ULY_INVALID_INPUT, "input %s: %s has shape %s, the model takes %d dims", t->name, t->source.path,
                    uly_ndarray_shape_text(a->rank, a->dims, shape, sizeof shape), t->array.rank);
  TRY_RT(ulyrt_model_infer(job->model, job->entry, i, a->rank, a->dims, job->symbols, &e));
  return ULY_OK;
}

static uly_status read_inputs(uly_job *job, uly_error *error) {
  for (int i = 0; i < job->options->input.n; i++) {
    uly_job_tensor *t;
    uly_str source;
    ULY_TRY(find_tensor(job, "--input", job->options->input.items[i], false, &t, &source, error));
    if (t->source.path || t->source.kind == ULY_SOURCE_RANDOM) return uly_fail(error, ULY_INVALID_ARGUMENT, "input '%s' is given twice", t->name);
    ULY_TRY(parse_source(job, "--input", source, &t->source, error));
  }
  int32_t n = ulyrt_model_symbols(job->model);
  job->symbols = ULY_NEW_ARRAY(job->arena, int64_t, n + 1);
  for (int32_t i = 0; i < n; i++) job->symbols[i] = INT64_MIN;
  for (int i = 0; i < job->options->at.n; i++) ULY_TRY(read_at(job, job->options->at.items[i], error));
  for (int32_t i = 0; i < job->n_tensors; i++)
    if (!job->tensors[i].is_output) ULY_TRY(open_input(job, i, error));
  for (int32_t i = 0; i < n; i++)
    if (job->info.symbols >> i & 1 && job->symbols[i] == INT64_MIN)
      return uly_fail(error, ULY_INVALID_ARGUMENT, "the size %s is not known: give it by --at %s=N, or by an input from a file",
                      ulyrt_model_symbol_name(job->model, i), ulyrt_model_symbol_name(job->model, i));
  return ULY_OK;
}

// ---- outputs ----

static uly_status check_writable(const char *path, uly_error *error) {
  uly_output output;
  ULY_TRY(uly_output_open(path, &output, error));
  uly_output_discard(&output);
  return ULY_OK;
}

// Checks an input's shape; makes room for an output, which forked ranks share with their parent.
static uly_status settle_shape(uly_job *job, int32_t i, uly_error *error) {
  uly_job_tensor *t = &job->tensors[i];
  int64_t elements;
  TRY_RT(ulyrt_model_shape(job->model, job->entry, i, job->symbols, t->array.dims, &e));
  if (!uly_ndarray_size(t->dtype, t->array.rank, t->array.dims, &elements, &t->array.bytes)) return uly_fail(error, ULY_OVERFLOW, "%s is too large", t->name);
  if (!t->is_output) {
    char have[128], want[128];
    for (int d = 0; t->source.kind != ULY_SOURCE_RANDOM && d < t->array.rank; d++)
      if (t->array.dims[d] != t->input.array.dims[d])
        return uly_fail(error, ULY_INVALID_INPUT, "input %s has shape %s, these sizes make it %s", t->name,
                        uly_ndarray_shape_text(t->array.rank, t->input.array.dims, have, sizeof have),
                        uly_ndarray_shape_text(t->array.rank, t->array.dims, want, sizeof want));
    return ULY_OK;
  }
  void *p = mmap(NULL, (size_t)t->array.bytes + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return uly_fail(error, ULY_EXHAUSTED, "no memory for the %lld bytes of %s", (long long)t->array.bytes, t->name);
  t->array.data = p;
  return ULY_OK;
}

static uly_status read_outputs(uly_job *job, uly_error *error) {
  const uly_run_options *o = job->options;
  uly_job_tensor *t;
  uly_str source;
  for (int i = 0; i < o->output.n; i++) {
    ULY_TRY(find_tensor(job, "--output", o->output.items[i], true, &t, &source, error));
    if (source.len < 2 || source.ptr[0] != '@') return uly_fail(error, ULY_INVALID_ARGUMENT, "--output takes NAME=@FILE, not '%s'", o->output.items[i]);
    if (t->write) return uly_fail(error, ULY_INVALID_ARGUMENT, "output '%s' is given twice", t->name);
    t->write = uly_str_copy(job->arena, (uly_str){source.ptr + 1, source.len - 1}).ptr;
    for (int32_t k = 0; k < job->n_tensors; k++)
      if (&job->tensors[k] != t && job->tensors[k].write && strcmp(job->tensors[k].write, t->write) == 0 && strncmp(t->write, "/dev/", 5) != 0)
        return uly_fail(error, ULY_INVALID_ARGUMENT, "the outputs '%s' and '%s' cannot both be written to %s", job->tensors[k].name, t->name, t->write);
    ULY_TRY(check_writable(t->write, error));
  }
  for (int i = 0; i < o->expect.n; i++) {
    ULY_TRY(find_tensor(job, "--expect", o->expect.items[i], true, &t, &source, error));
    if (t->expect) return uly_fail(error, ULY_INVALID_ARGUMENT, "--expect: '%s' is given twice", t->name);
    uly_input_source *expect = ULY_NEW(job->arena, uly_input_source);
    ULY_TRY(parse_source(job, "--expect", source, expect, error));
    if (expect->kind == ULY_SOURCE_RANDOM || expect->kind == ULY_SOURCE_BYTES)
      return uly_fail(error, ULY_INVALID_ARGUMENT, "--expect takes a .npy or .safetensors file");
    ULY_TRY(uly_source_open(expect, uly_str_of(t->name), t->dtype, t->array.rank, &t->expected, error));
    t->expect = expect;
  }
  for (int32_t i = 0; i < job->n_tensors; i++) ULY_TRY(settle_shape(job, i, error));
  return ULY_OK;
}

// ---- weights ----

// Values of floats may be those of any other; the runtime converts them.
static bool holds(const uly_safetensor *t, uly_dtype dtype) {
  return t->supported && (t->array.dtype == dtype || (uly_dtype_get(t->array.dtype)->is_float && uly_dtype_get(dtype)->is_float));
}

typedef struct weights_read {
  bool *used;        // by tensor of the file
  int64_t converted; // tensors, and of the last one what from and to
  const char *from, *to;
} weights_read;

static uly_status set_weight(uly_job *job, int32_t param, weights_read *read, const char *path, uly_error *error) {
  ulyrt_tensor_info info = ULYRT_TENSOR_INFO_INIT;
  uly_dtype dtype;
  char have[128], want[128];
  TRY_RT(ulyrt_model_param(job->model, param, &info, &e));
  int64_t i = uly_weight_files_find(job->weights, uly_str_of(info.name));
  if (i < 0) {
    if (ulyrt_model_entries(job->model) > 1) return ULY_OK; // perhaps another entry's: bind knows
    int64_t n = uly_weight_files_count(job->weights);
    uly_str *names = ULY_NEW_ARRAY(job->arena, uly_str, n + 1);
    for (int64_t k = 0; k < n; k++) names[k] = uly_str_of(uly_weight_files_get(job->weights, k)->name);
    return uly_fail(error, ULY_INVALID_INPUT, "%s: no tensor '%s' %s, which the model needs%s", path, info.name,
                    uly_ndarray_shape_text(info.ndim, info.dims, want, sizeof want), suggest(job, uly_str_of(info.name), names, (int32_t)n));
  }
  read->used[i] = true;
  const uly_safetensor *t = uly_weight_files_get(job->weights, i);
  bool same = uly_job_dtype(info.dtype, &dtype) && holds(t, dtype) && t->array.rank == info.ndim;
  for (int d = 0; same && d < info.ndim; d++) same = t->array.dims[d] == info.dims[d];
  if (!same)
    return uly_fail(error, ULY_INVALID_INPUT, "%s: tensor %s is %s %s in the file, the model needs %s %s", uly_weight_files_file(job->weights, i), info.name,
                    t->dtype_name, uly_ndarray_shape_text(t->array.rank, t->array.dims, have, sizeof have),
                    uly_job_dtype(info.dtype, &dtype) ? uly_dtype_get(dtype)->safetensors : "?",
                    uly_ndarray_shape_text(info.ndim, info.dims, want, sizeof want));
  if (t->array.dtype != dtype) read->converted++, read->from = t->dtype_name, read->to = uly_dtype_get(dtype)->safetensors;
  ulyrt_tensor tensor = tensor_of(&t->array);
  TRY_RT(ulyrt_model_set_param(job->model, info.name, &tensor, ULYRT_BORROW, &e));
  return ULY_OK;
}

static uly_status note_unused(uly_job *job, const bool *used, const char *path, uly_error *error) {
  int64_t n = uly_weight_files_count(job->weights), extra = 0;
  uly_text names = {.arena = job->arena};
  for (int64_t i = 0; i < n; i++) {
    if (used[i]) continue;
    if (extra++ < 3) uly_text_add(&names, "%s%s", names.len ? ", " : "", uly_weight_files_get(job->weights, i)->name);
  }
  if (!extra) return ULY_OK;
  const char *more = extra > 3 ? ", …" : "";
  if (job->options->strict)
    return uly_fail(error, ULY_INVALID_INPUT, "%s: %lld of %lld tensors are not the model's (--strict-weights): %s%s", path, (long long)extra, (long long)n,
                    names.ptr, more);
  uly_text_add(&job->notes, "note: %s: %lld of %lld tensors are not used: %s%s\n", path, (long long)extra, (long long)n, names.ptr, more);
  return ULY_OK;
}

static uly_status read_weights(uly_job *job, uly_error *error) {
  if (!job->options->weights) return ULY_OK;
  uly_input_source source;
  const char *text = job->options->weights;
  bool bare = text[0] != '@' && strncmp(text, "rand:", 5) != 0;
  if (bare) text = uly_str_format(job->arena, "@%s", text).ptr;
  ULY_TRY(parse_source(job, "--weights", uly_str_of(text), &source, error));
  if (source.key.len) return uly_fail(error, ULY_INVALID_ARGUMENT, "--weights takes a whole file, no key ('%s')", text);
  if (source.kind == ULY_SOURCE_RANDOM) {
    TRY_RT(ulyrt_model_seed_params(job->model, source.seed, &e));
    return ULY_OK;
  }
  ULY_TRY(uly_weight_files_open(source.path, &job->weights, error));
  int64_t n = uly_weight_files_count(job->weights);
  weights_read read = {.used = ULY_NEW_ARRAY(job->arena, bool, n + 1)};
  for (int32_t i = 0; i < ulyrt_model_params(job->model); i++) ULY_TRY(set_weight(job, i, &read, source.path, error));
  if (read.converted)
    uly_text_add(&job->notes, "note: %s: %lld of %lld tensors are converted, as from %s to %s\n", source.path, (long long)read.converted, (long long)n,
                 read.from, read.to);
  return note_unused(job, read.used, source.path, error);
}

uly_status uly_job_prepare(uly_job *job, uly_error *error) {
  job->notes.arena = job->arena;
  TRY_RT(ulyrt_model_load(job->options->model, &job->model, &e));
  ULY_TRY(read_grid(job, error));
  ULY_TRY(find_entry(job, error));
  ULY_TRY(list_tensors(job, error));
  ULY_TRY(read_inputs(job, error));
  ULY_TRY(read_outputs(job, error));
  return read_weights(job, error);
}

uly_status uly_job_report(uly_job *job, uly_error *error) {
  uly_status worst = ULY_OK;
  uly_error one;
  for (int32_t i = 0; i < job->n_tensors; i++) {
    uly_job_tensor *t = &job->tensors[i];
    if (!t->is_output) continue;
    if (!t->write) uly_report_line(stdout, t->name, &t->array);
    if (t->write) ULY_TRY(uly_array_write(t->write, t->name, &t->array, error));
    if (!t->expect) continue;
    uly_status status = uly_report_compare(stdout, t->name, &t->array, &t->expected.array, job->options->rtol, job->options->atol, &one);
    if (status != ULY_OK && worst == ULY_OK) worst = uly_fail(error, status, "%s", one.text);
  }
  if (fflush(stdout) != 0 && worst == ULY_OK) return uly_fail(error, ULY_IO, "standard output: %s", strerror(errno));
  return worst;
}

void uly_job_destroy(uly_job *job) {
  for (int32_t i = 0; i < job->n_tensors; i++) {
    uly_job_tensor *t = &job->tensors[i];
    uly_sourced_close(&t->input);
    uly_sourced_close(&t->expected);
    if (t->is_output && t->array.data) munmap((void *)(uintptr_t)t->array.data, (size_t)t->array.bytes + 1);
  }
  ulyrt_model_destroy(job->model);
  uly_weight_files_close(job->weights);
}
