// Makes a test case of a spec: seeded inputs and parameters, and each entry's outputs by the float64 reference.
//   reference_case SPEC FOLDER SEED [ENTRY] B=2 S=13 … [--errors | --naive]     writes FOLDER/ENTRY.inputs.safetensors, .weights.safetensors and .expected.safetensors, and prints the entries
// With --naive each output has the largest error of a run that rounds every value to its dtype, and its own largest value: >out:0.01:3.2
// With --errors what rounding may do to it: 64 times the largest error that one rounding in every number that is computed makes: >out=1e-5
// Floats are uniform in [−1, 1); ints that index a table are in its range, other ints are ascending along rows, as documents are; three bools of four are true.
#include <math.h>
#include <stdio.h>

#include "frontend/spec.h"
#include "runtime/base/random.h"
#include "runtime/io/safetensors.h"
#include "tests/support/graph_reference.h"
#include "tests/support/model_files.h"

enum { MAX_TENSORS = 4096 };

typedef struct archive {
  const char *names[MAX_TENSORS];
  uly_ndarray arrays[MAX_TENSORS];
  int64_t n;
} archive;

typedef struct job {
  uly_arena *arena;
  const uly_graph *graph;
  uint64_t seed;
  bool naive, errors;
  int64_t sizes[64];
  archive inputs, weights, expected;
} job;

static void fail(const char *what) {
  fprintf(stderr, "reference_case: %s\n", what);
  exit(1);
}

static void *add(job *j, archive *to, uly_str name, const uly_tensor_type *type, uly_dtype dtype) {
  uly_ndarray *array = &to->arrays[to->n];
  if (to->n == MAX_TENSORS) fail("too many tensors");
  array->dtype = dtype;
  array->rank = type->rank;
  array->bytes = uly_graph_elements(type, j->sizes, array->dims) * uly_dtype_bytes(dtype);
  to->names[to->n++] = uly_str_copy(j->arena, name).ptr;
  return (void *)(array->data = uly_arena_alloc(j->arena, (size_t)array->bytes + 1));
}

static const double *as_doubles(job *j, const uly_ndarray *array) {
  int64_t n = array->bytes / uly_dtype_bytes(array->dtype);
  double *out = ULY_NEW_ARRAY(j->arena, double, n + 1);
  for (int64_t i = 0; i < n; i++) out[i] = uly_dtype_load(array->dtype, array->data, i);
  return out;
}

static const double *make_param(void *context, uly_str name, const uly_tensor_type *type) {
  job *j = context;
  for (int64_t i = 0; i < j->weights.n; i++)
    if (uly_str_is(name, j->weights.names[i])) return as_doubles(j, &j->weights.arrays[i]);
  void *data = add(j, &j->weights, name, type, type->dtype);
  const uly_ndarray *array = &j->weights.arrays[j->weights.n - 1];
  uly_random_param(j->seed, name, type->dtype, (uint32_t)type->rank, array->dims, array->bytes / uly_dtype_bytes(type->dtype), data);
  return as_doubles(j, array);
}

static const double *make_input(job *j, const uly_graph_input *input) {
  void *data = add(j, &j->inputs, input->name, &input->type, input->type.dtype);
  const uly_ndarray *array = &j->inputs.arrays[j->inputs.n - 1];
  uint64_t key = uly_random_key(j->seed, input->name);
  int64_t n = array->bytes / uly_dtype_bytes(array->dtype), row = array->rank > 1 ? array->dims[1] : array->rank ? array->dims[0] : 1;
  for (int64_t i = 0; i < n; i++) {
    double u = uly_random_uniform(key, (uint64_t)i), value = u;
    if (array->dtype == ULY_BOOL)
      value = u < 0.5;
    else if (!uly_dtype_get(array->dtype)->is_float)
      value = input->id_limit ? (double)(int64_t)((u + 1.0) / 2.0 * (double)input->id_limit) : (double)(i % row * 3 / row);
    uly_dtype_store(array->dtype, data, i, value);
  }
  return as_doubles(j, array);
}

// What rounding may do to each result: a multiple of the largest change that noise makes.
static void find_errors(job *j, uly_graph_run run, double *const *results, double *out_errors) {
  enum { SEEDS = 3 };
  const double factor = 64;
  double **noisy = ULY_NEW_ARRAY(j->arena, double *, run.entry->n_results);
  for (run.noise = 1; run.noise <= SEEDS; run.noise++) {
    if (uly_graph_reference(j->arena, &run, noisy) != ULY_OK) fail("noise makes a fault");
    for (int32_t i = 0; i < run.entry->n_results; i++) {
      int64_t n = uly_graph_elements(&run.entry->results[i].value->type, j->sizes, NULL);
      for (int64_t k = 0; k < n; k++) out_errors[i] = fmax(out_errors[i], factor * fabs(noisy[i][k] - results[i][k]));
    }
  }
}

static void write_archive(job *j, const char *folder, uly_str entry, const char *suffix, const archive *a) {
  uly_error error = {0};
  uly_str path = uly_str_format(j->arena, "%s/%.*s.%s.safetensors", folder, ULY_STR_ARG(entry), suffix);
  if (uly_safetensors_write(path.ptr, a->n, a->names, a->arrays, &error) != ULY_OK) fail("cannot write the files");
}

static double largest(const double *values, const double *less, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) {
    double v = fabs(less ? values[i] - less[i] : values[i]);
    if (isfinite(v) && v > most) most = v;
  }
  return most;
}

// What --naive adds to the outputs.
static void print_naive(job *j, uly_graph_run run, double *const *results) {
  const uly_graph_entry *entry = run.entry;
  double **naive = ULY_NEW_ARRAY(j->arena, double *, entry->n_results);
  run.naive = true;
  if (uly_graph_reference(j->arena, &run, naive) != ULY_OK) fail("the naive run");
  for (int32_t i = 0; i < entry->n_results; i++) {
    int64_t n = j->expected.arrays[i].bytes / (int64_t)sizeof(double);
    printf(" >%.*s:%g:%g", ULY_STR_ARG(entry->results[i].name), largest(naive[i], results[i], n), largest(results[i], NULL, n));
  }
}

static void run_entry(job *j, const uly_graph_entry *entry, const char *folder) {
  const double **inputs = ULY_NEW_ARRAY(j->arena, const double *, entry->n_inputs + 1);
  double **results = ULY_NEW_ARRAY(j->arena, double *, entry->n_results), *error = ULY_NEW_ARRAY(j->arena, double, entry->n_results + 1);
  j->inputs.n = j->weights.n = j->expected.n = 0;
  for (int32_t i = 0; i < entry->n_inputs; i++) inputs[i] = make_input(j, &entry->inputs[i]);
  uly_graph_run run = {.graph = j->graph, .entry = entry, .sizes = j->sizes, .inputs = inputs, .param = make_param, .context = j};
  uly_status status = uly_graph_reference(j->arena, &run, results);
  if (status != ULY_OK) fail(uly_str_format(j->arena, "%.*s: %s", ULY_STR_ARG(entry->name), uly_status_text(status)).ptr);
  if (j->errors) find_errors(j, run, results, error);
  for (int32_t i = 0; i < entry->n_results; i++) {
    const uly_graph_result *result = &entry->results[i];
    double *to = add(j, &j->expected, result->name, &result->value->type, ULY_F64);
    memcpy(to, results[i], (size_t)j->expected.arrays[i].bytes);
  }
  write_archive(j, folder, entry->name, "inputs", &j->inputs);
  write_archive(j, folder, entry->name, "weights", &j->weights);
  write_archive(j, folder, entry->name, "expected", &j->expected);
  printf("%.*s", ULY_STR_ARG(entry->name));
  for (int32_t i = 0; i < entry->n_inputs; i++) printf(" <%.*s", ULY_STR_ARG(entry->inputs[i].name));
  for (int32_t i = 0; i < entry->n_results && !j->naive; i++) {
    printf(" >%.*s", ULY_STR_ARG(entry->results[i].name));
    if (j->errors) printf("=%.6g", error[i]);
  }
  if (j->naive) print_naive(j, run, results);
  printf("\n");
}

static void set_size(job *j, const char *text) {
  const char *equal = strchr(text, '=');
  for (int32_t i = 0; equal && i < j->graph->n_symbols && i < 64; i++)
    if (uly_str_equal(j->graph->symbols[i], (uly_str){text, (size_t)(equal - text)})) j->sizes[i] = atoll(equal + 1);
}

int main(int argc, char **argv) {
  static job j;
  uly_diags diags;
  if (argc < 4) fail("SPEC FOLDER SEED SIZES…");
  j.arena = uly_arena_create();
  j.seed = strtoull(argv[3], NULL, 10);
  uly_diags_init(&diags, j.arena);
  j.graph = uly_spec_read(j.arena, &diags, uly_str_of(argv[1]), uly_model_files_text(j.arena, argv[1], ""), NULL, 0);
  uly_diags_print(&diags, stderr);
  if (!j.graph) return 1;
  for (int i = 0; i < 64; i++) j.sizes[i] = 1;
  const char *only = NULL;
  for (int i = 4; i < argc; i++)
    if (strcmp(argv[i], "--naive") == 0)
      j.naive = true;
    else if (strcmp(argv[i], "--errors") == 0)
      j.errors = true;
    else if (strchr(argv[i], '='))
      set_size(&j, argv[i]);
    else
      only = argv[i];
  for (int32_t i = 0; i < j.graph->n_entries; i++)
    if (!only || uly_str_is(j.graph->entries[i].name, only)) run_entry(&j, &j.graph->entries[i], argv[2]);
  uly_arena_destroy(j.arena);
  return 0;
}
