#include "tests/support/model_files.h"

#include <math.h>

#include "frontend/spec.h"
#include "tests/support/graph_reference.h"

uly_str uly_model_files_text(uly_arena *arena, const char *folder, const char *name) {
  char path[1024];
  snprintf(path, sizeof path, *name ? "%s/%s" : "%s%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(1);
  }
  uly_text text = {.arena = arena};
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;) uly_text_add_str(&text, (uly_str){buffer, n});
  fclose(file);
  return uly_text_str(&text);
}

static uly_safetensors *open_tensors(const char *folder, const char *name) {
  char path[1024];
  uly_safetensors *file = NULL;
  uly_error error = {0};
  snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
  return uly_safetensors_open(path, &file, &error) == ULY_OK ? file : NULL;
}

void uly_model_files_open(uly_model_files *files, const char *folder) {
  uly_arena *arena = uly_arena_create();
  uly_str spec = uly_model_files_text(arena, folder, "model.spec"), defines = uly_model_files_text(arena, folder, "defines"), list[64];
  int32_t n = 0;
  for (size_t i = 0; i < defines.len && n < 64;) {
    size_t begin = i;
    while (i < defines.len && !strchr(" \n", defines.ptr[i])) i++;
    if (i > begin) list[n++] = (uly_str){defines.ptr + begin, i - begin};
    i++;
  }
  *files = (uly_model_files){.arena = arena};
  uly_diags_init(&files->diags, arena);
  files->graph = uly_spec_read(arena, &files->diags, ULY_STR("model.spec"), spec, list, n);
  files->weights = open_tensors(folder, "weights");
  files->inputs = open_tensors(folder, "inputs");
  files->expected = open_tensors(folder, "expected");
}

void uly_model_files_close(uly_model_files *files) {
  uly_safetensors_close(files->weights);
  uly_safetensors_close(files->inputs);
  uly_safetensors_close(files->expected);
  uly_arena_destroy(files->arena);
}

double *uly_model_files_elements(uly_arena *arena, const uly_safetensors *from, uly_str name, int32_t rank, const int64_t *dims) {
  const uly_safetensor *tensor = from ? uly_safetensors_find(from, name) : NULL;
  int64_t count = 1;
  if (!tensor || !tensor->supported) return NULL;
  bool scalar = rank == 0 && tensor->array.rank == 1 && tensor->array.dims[0] == 1;
  if (tensor->array.rank != rank && !scalar) return NULL;
  for (int32_t i = 0; i < rank; i++) {
    if (tensor->array.dims[i] != dims[i]) return NULL;
    count *= dims[i];
  }
  double *elements = ULY_NEW_ARRAY(arena, double, count);
  for (int64_t i = 0; i < count; i++) elements[i] = uly_dtype_load(tensor->array.dtype, tensor->array.data, i);
  return elements;
}

static const double *find_param(void *context, uly_str name, const uly_tensor_type *type) {
  uly_model_files *files = context;
  int64_t dims[ULY_GRAPH_MAX_DIMS];
  uly_graph_elements(type, NULL, dims);
  return uly_model_files_elements(files->arena, files->weights, name, type->rank, dims);
}

// Sizes of the free symbols, from the inputs' shapes.
static bool find_sizes(const uly_model_files *files, const uly_graph_entry *entry, int64_t *sizes) {
  for (int32_t i = 0; i < entry->n_inputs; i++) {
    const uly_safetensor *tensor = uly_safetensors_find(files->inputs, entry->inputs[i].name);
    if (!tensor || tensor->array.rank != entry->inputs[i].type.rank) return false;
    for (int32_t d = 0; d < tensor->array.rank; d++) {
      uly_dim dim = entry->inputs[i].type.dims[d];
      if (dim.symbol >= 0) sizes[dim.symbol] = (tensor->array.dims[d] - dim.add) / dim.mul;
    }
  }
  return true;
}

static double compare(const double *got, const double *want, int64_t n) {
  double error = 0.0, largest = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double difference = fabs(got[i] - want[i]);
    if (!(difference <= error)) error = difference; // NaN too
    largest = fmax(largest, fabs(want[i]));
  }
  return error / largest;
}

uly_status uly_model_files_evaluate(uly_model_files *files, double *out_error, uly_str *out_name) {
  const uly_graph_entry *entry = &files->graph->entries[0];
  int64_t *sizes = ULY_NEW_ARRAY(files->arena, int64_t, files->graph->n_symbols + 1), dims[ULY_GRAPH_MAX_DIMS];
  const double **inputs = ULY_NEW_ARRAY(files->arena, const double *, entry->n_inputs + 1);
  double **results = ULY_NEW_ARRAY(files->arena, double *, entry->n_results);
  *out_error = 0.0;
  if (!find_sizes(files, entry, sizes)) return ULY_INVALID_INPUT;
  for (int32_t i = 0; i < entry->n_inputs; i++) {
    uly_graph_elements(&entry->inputs[i].type, sizes, dims);
    inputs[i] = uly_model_files_elements(files->arena, files->inputs, entry->inputs[i].name, entry->inputs[i].type.rank, dims);
    if (!inputs[i]) return ULY_INVALID_INPUT;
  }
  uly_graph_run run = {.graph = files->graph, .entry = entry, .sizes = sizes, .inputs = inputs, .param = find_param, .context = files};
  ULY_TRY(uly_graph_reference(files->arena, &run, results));
  for (int32_t i = 0; i < entry->n_results; i++) {
    const uly_graph_result *result = &entry->results[i];
    int64_t count = uly_graph_elements(&result->value->type, sizes, dims);
    const double *want = uly_model_files_elements(files->arena, files->expected, result->name, result->value->type.rank, dims);
    if (!want) return ULY_INVALID_INPUT;
    double error = compare(results[i], want, count);
    if (error <= *out_error) continue;
    *out_error = error;
    *out_name = result->name;
  }
  return ULY_OK;
}
