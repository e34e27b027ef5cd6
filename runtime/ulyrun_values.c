#include "runtime/ulyrun_values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/base/random.h"
#include "runtime/io/npy.h"

bool uly_source_split(const char *text, uly_str *out_name, uly_str *out_source) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text) return false;
  *out_name = (uly_str){text, (size_t)(equals - text)};
  *out_source = uly_str_of(equals + 1);
  return true;
}

static bool ends_with(uly_str s, const char *end) {
  size_t n = strlen(end);
  return s.len >= n && memcmp(s.ptr + s.len - n, end, n) == 0;
}

static bool parse_random(uly_arena *arena, uly_str text, uly_input_source *out, uly_text *error) {
  const char *z = uly_str_copy(arena, text).ptr, *digits = z + strlen("rand:seed=");
  char *end = NULL;
  if (strncmp(z, "rand:seed=", strlen("rand:seed=")) != 0) return uly_text_add(error, "write rand:seed=N, or @%s for a file", z), false;
  errno = 0;
  out->kind = ULY_SOURCE_RANDOM;
  out->seed = strtoull(digits, &end, 10);
  if (errno || end == digits || *end || *digits == '-') return uly_text_add(error, "the seed in '%s' is not a number", z), false;
  return true;
}

bool uly_source_parse(uly_arena *arena, uly_str text, uly_input_source *out, uly_text *error) {
  static const char ending[] = ".safetensors";
  *out = (uly_input_source){0};
  if (text.len && text.ptr[0] != '@') return parse_random(arena, text, out, error);
  if (text.len < 2) return uly_text_add(error, "no file is named"), false;
  uly_str path = {text.ptr + 1, text.len - 1};
  out->kind = ends_with(path, ".npy") ? ULY_SOURCE_NPY : ends_with(path, ending) ? ULY_SOURCE_SAFETENSORS : ULY_SOURCE_BYTES;
  for (size_t i = path.len; out->kind == ULY_SOURCE_BYTES && i-- > 1;)
    if (path.ptr[i] == ':' && ends_with((uly_str){path.ptr, i}, ending)) {
      out->kind = ULY_SOURCE_SAFETENSORS;
      out->key = uly_str_copy(arena, (uly_str){path.ptr + i + 1, path.len - i - 1});
      path.len = i;
    }
  out->path = uly_str_copy(arena, path).ptr;
  return true;
}

static uly_status open_safetensor(const uly_input_source *source, uly_str name, uly_sourced *out, uly_error *error) {
  uly_str key = source->key.len ? source->key : name;
  ULY_TRY(uly_safetensors_open(source->path, &out->file, error));
  const uly_safetensor *t = uly_safetensors_find(out->file, key);
  if (t && t->supported) return out->array = t->array, ULY_OK;
  if (t) return uly_fail(error, ULY_INVALID_INPUT, "%s: tensor %s has the unsupported dtype %s", source->path, t->name, t->dtype_name);
  int64_t n = uly_safetensors_count(out->file);
  uly_str *names = calloc((size_t)n + 1, sizeof *names), nearest = {0};
  for (int64_t i = 0; names && i < n; i++) names[i] = uly_str_of(uly_safetensors_get(out->file, i)->name);
  if (names) nearest = uly_str_nearest(key, names, (size_t)n);
  uly_status status = uly_fail(error, ULY_INVALID_INPUT, "%s: no tensor '%.*s' among %lld%s%.*s%s", source->path, ULY_STR_ARG(key), (long long)n,
                               nearest.len ? "; did you mean '" : "", ULY_STR_ARG(nearest), nearest.len ? "'?" : "");
  free(names);
  return status;
}

static uly_status open_bytes(const uly_input_source *source, uly_dtype dtype, int rank, uly_sourced *out, uly_error *error) {
  if (uly_dtype_get(dtype)->is_float || dtype == ULY_BOOL || rank < 1)
    return uly_fail(error, ULY_INVALID_INPUT, "%s: bytes of a text are an integer input of at least one dim; name a .npy or .safetensors file", source->path);
  ULY_TRY(uly_mapping_open(source->path, &out->mapping, error));
  uly_ndarray *a = &out->array;
  int64_t elements;
  *a = (uly_ndarray){.dtype = dtype, .rank = rank};
  for (int i = 0; i < rank; i++) a->dims[i] = i + 1 < rank ? 1 : (int64_t)out->mapping.bytes.len;
  if (!uly_ndarray_size(dtype, rank, a->dims, &elements, &a->bytes)) return uly_fail(error, ULY_OVERFLOW, "%s: too large", source->path);
  out->memory = malloc((size_t)a->bytes + 1);
  if (!out->memory) return uly_fail(error, ULY_EXHAUSTED, "%s: no memory for %lld bytes", source->path, (long long)a->bytes);
  a->data = out->memory;
  for (int64_t i = 0; i < elements; i++) {
    uint8_t byte = 0;
    uly_bytes_u8(out->mapping.bytes, (uint64_t)i, &byte);
    uly_dtype_store(dtype, out->memory, i, byte);
  }
  return ULY_OK;
}

uly_status uly_source_open(const uly_input_source *source, uly_str name, uly_dtype dtype, int rank, uly_sourced *out, uly_error *error) {
  *out = (uly_sourced){0};
  uly_status status = ULY_INTERNAL;
  switch (source->kind) {
  case ULY_SOURCE_NPY: status = uly_npy_open(source->path, &out->mapping, &out->array, error); break;
  case ULY_SOURCE_SAFETENSORS: status = open_safetensor(source, name, out, error); break;
  case ULY_SOURCE_BYTES: status = open_bytes(source, dtype, rank, out, error); break;
  case ULY_SOURCE_RANDOM: status = uly_fail(error, ULY_INTERNAL, "random numbers are not in a file"); break;
  }
  if (status != ULY_OK) uly_sourced_close(out);
  return status;
}

// |array| in memory of its own, as |dtype|; NULL where there is none.
static void *convert(uly_ndarray *array, uly_dtype dtype) {
  int64_t elements = array->bytes / uly_dtype_bytes(array->dtype), bytes = elements * uly_dtype_bytes(dtype);
  void *memory = malloc((size_t)bytes + 1);
  if (!memory) return NULL;
  uly_dtype_convert(array->dtype, array->data, dtype, memory, elements);
  array->dtype = dtype;
  array->bytes = bytes;
  array->data = memory;
  return memory;
}

uly_status uly_sourced_convert(uly_sourced *loaded, uly_dtype dtype, uly_error *error) {
  void *memory = convert(&loaded->array, dtype);
  if (!memory) return uly_fail(error, ULY_EXHAUSTED, "no memory to convert an input");
  free(loaded->memory);
  loaded->memory = memory;
  return ULY_OK;
}

void uly_sourced_close(uly_sourced *loaded) {
  uly_mapping_close(&loaded->mapping);
  uly_safetensors_close(loaded->file);
  free(loaded->memory);
  *loaded = (uly_sourced){0};
}

double uly_random_input(uint64_t key, uint64_t index, uly_dtype dtype, int64_t limit) {
  double u = uly_random_uniform(key, index);
  return uly_dtype_get(dtype)->is_float ? u : floor((u + 1) * 0.5 * (limit > 0 ? (double)limit : 2));
}

uly_status uly_array_write(const char *path, const char *name, const uly_ndarray *array, uly_error *error) {
  uly_str text = uly_str_of(path);
  if (ends_with(text, ".safetensors")) return uly_safetensors_write(path, 1, &name, array, error);
  if (array->dtype != ULY_BF16) return uly_npy_write(path, array, error);
  uly_ndarray wide = *array;
  void *memory = convert(&wide, ULY_F32);
  uly_status status = memory ? uly_npy_write(path, &wide, error) : uly_fail(error, ULY_EXHAUSTED, "%s: no memory to convert an output", path);
  free(memory);
  return status;
}
