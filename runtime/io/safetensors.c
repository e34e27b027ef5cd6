#include "runtime/io/safetensors.h"

#include <stdlib.h>

#include "runtime/io/json.h"

enum { MAX_TENSORS = 65536 };
static const uly_json_limits limits = {.bytes = 100000000, .values = (uint64_t)MAX_TENSORS * (5 + ULY_NDARRAY_DIMS), .depth = 3, .number = 20};

struct uly_safetensors {
  uly_mapping mapping;
  json_t *header; // owns the names
  int64_t n;
  uly_safetensor *tensors;        // in the order of the data
  const uly_safetensor **by_name; // sorted
  void **copies;                  // of tensors that stand unaligned, else NULL
};

typedef struct range {
  uint64_t first, end;
} range;

typedef struct loader {
  const char *path;
  uly_error *error;
  uly_safetensors *file;
  uly_bytes data;
  struct item {
    uly_safetensor tensor;
    range bytes;
  } *items;
} loader;

#define BAD(l, ...) uly_fail((l)->error, ULY_INVALID_INPUT, __VA_ARGS__)

static bool get_natural(const json_t *value, int64_t *out) {
  if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
  *out = json_integer_value(value);
  return true;
}

static bool get_dtype(const char *name, uly_dtype *out) {
  for (int i = 0; i < ULY_N_DTYPES; i++)
    if (strcmp(uly_dtype_get((uly_dtype)i)->safetensors, name) == 0) return *out = (uly_dtype)i, true;
  return false;
}

static uly_status get_shape(loader *l, const json_t *shape, uly_safetensor *tensor) {
  if (!json_is_array(shape)) return BAD(l, "%s: tensor %s: no shape", l->path, tensor->name);
  if (json_array_size(shape) > ULY_NDARRAY_DIMS)
    return BAD(l, "%s: tensor %s: %zu dims, at most %d are read", l->path, tensor->name, json_array_size(shape), ULY_NDARRAY_DIMS);
  tensor->array.rank = (int)json_array_size(shape);
  for (int i = 0; i < tensor->array.rank; i++)
    if (!get_natural(json_array_get(shape, (size_t)i), &tensor->array.dims[i]))
      return BAD(l, "%s: tensor %s: a size that is not a natural number", l->path, tensor->name);
  return ULY_OK;
}

static uly_status get_tensor(loader *l, const char *name, const json_t *entry, struct item *out) {
  uly_safetensor *t = &out->tensor;
  t->name = name;
  if (!json_is_object(entry)) return BAD(l, "%s: tensor %s: not an object", l->path, name);
  const json_t *dtype = json_object_get(entry, "dtype"), *offsets = json_object_get(entry, "data_offsets");
  if (json_object_size(entry) != 3 || !dtype || !offsets) return BAD(l, "%s: tensor %s: has other keys than dtype, shape and data_offsets", l->path, name);
  if (!json_is_string(dtype)) return BAD(l, "%s: tensor %s: the dtype is not a string", l->path, name);
  t->dtype_name = json_string_value(dtype);
  t->supported = get_dtype(t->dtype_name, &t->array.dtype);
  ULY_TRY(get_shape(l, json_object_get(entry, "shape"), t));
  int64_t first, end, elements;
  if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !get_natural(json_array_get(offsets, 0), &first) ||
      !get_natural(json_array_get(offsets, 1), &end) || end < first)
    return BAD(l, "%s: tensor %s: bad data_offsets", l->path, name);
  out->bytes = (range){(uint64_t)first, (uint64_t)end};
  if (out->bytes.end > l->data.len)
    return BAD(l, "%s: truncated: tensor %s ends at byte %lld of the data, there are %llu", l->path, name, (long long)end, (unsigned long long)l->data.len);
  char shape[128];
  if (!uly_ndarray_size(t->supported ? t->array.dtype : ULY_U8, t->array.rank, t->array.dims, &elements, &t->array.bytes))
    return BAD(l, "%s: tensor %s: the size of %s overflows", l->path, name, uly_ndarray_shape_text(t->array.rank, t->array.dims, shape, sizeof shape));
  if (t->supported && t->array.bytes != end - first)
    return BAD(l, "%s: tensor %s: %lld bytes, %s%s needs %lld", l->path, name, (long long)(end - first), t->dtype_name,
               uly_ndarray_shape_text(t->array.rank, t->array.dims, shape, sizeof shape), (long long)t->array.bytes);
  t->array.bytes = end - first;
  return ULY_OK;
}

static int compare_places(const void *a, const void *b) {
  const struct item *x = a, *y = b;
  if (x->bytes.first != y->bytes.first) return x->bytes.first < y->bytes.first ? -1 : 1;
  if (x->bytes.end != y->bytes.end) return x->bytes.end < y->bytes.end ? -1 : 1;
  return strcmp(x->tensor.name, y->tensor.name);
}

static int compare_names(const void *a, const void *b) { return strcmp((*(const uly_safetensor *const *)a)->name, (*(const uly_safetensor *const *)b)->name); }

// Byte ranges follow each other from the first byte to the last.
static uly_status check_places(loader *l) {
  uint64_t at = 0;
  for (int64_t i = 0; i < l->file->n; i++) {
    const struct item *item = &l->items[i];
    if (item->bytes.first < at) return BAD(l, "%s: tensors %s and %s overlap", l->path, l->items[i - 1].tensor.name, item->tensor.name);
    if (item->bytes.first > at)
      return BAD(l, "%s: %llu bytes before tensor %s belong to no tensor", l->path, (unsigned long long)(item->bytes.first - at), item->tensor.name);
    at = item->bytes.end;
  }
  if (at != l->data.len) return BAD(l, "%s: %llu bytes at the end belong to no tensor", l->path, (unsigned long long)(l->data.len - at));
  return ULY_OK;
}

static uly_status place_tensor(loader *l, int64_t i) {
  uly_safetensors *file = l->file;
  uly_safetensor *t = &file->tensors[i];
  uly_bytes bytes;
  *t = l->items[i].tensor;
  file->by_name[i] = t;
  if (!t->supported) return ULY_OK;
  if (!uly_bytes_slice(l->data, l->items[i].bytes.first, (uint64_t)t->array.bytes, &bytes)) return BAD(l, "%s: truncated", l->path);
  t->array.data = bytes.ptr;
  if ((uintptr_t)bytes.ptr % (uintptr_t)uly_dtype_bytes(t->array.dtype) == 0) return ULY_OK;
  file->copies[i] = malloc((size_t)bytes.len + 1);
  if (!file->copies[i]) return uly_fail(l->error, ULY_EXHAUSTED, "%s: no memory for %llu bytes", l->path, (unsigned long long)bytes.len);
  memcpy(file->copies[i], bytes.ptr, (size_t)bytes.len);
  t->array.data = file->copies[i];
  return ULY_OK;
}

static uly_status load_tensors(loader *l) {
  uly_safetensors *file = l->file;
  const char *name;
  json_t *entry;
  size_t cap = json_object_size(file->header);
  if (cap > MAX_TENSORS + 1) return BAD(l, "%s: %zu tensors, at most %d are read", l->path, cap, MAX_TENSORS);
  l->items = calloc(cap + 1, sizeof *l->items);
  if (!l->items) return uly_fail(l->error, ULY_EXHAUSTED, "%s: no memory for the header", l->path);
  json_object_foreach(file->header, name, entry) {
    if (strcmp(name, "__metadata__") == 0) continue;
    ULY_TRY(get_tensor(l, name, entry, &l->items[file->n]));
    file->n++;
  }
  qsort(l->items, (size_t)file->n, sizeof *l->items, compare_places);
  ULY_TRY(check_places(l));
  file->tensors = calloc((size_t)file->n + 1, sizeof *file->tensors);
  file->by_name = calloc((size_t)file->n + 1, sizeof *file->by_name);
  file->copies = calloc((size_t)file->n + 1, sizeof *file->copies);
  if (!file->tensors || !file->by_name || !file->copies) return uly_fail(l->error, ULY_EXHAUSTED, "%s: no memory for the header", l->path);
  for (int64_t i = 0; i < file->n; i++) ULY_TRY(place_tensor(l, i));
  qsort(file->by_name, (size_t)file->n, sizeof *file->by_name, compare_names);
  return ULY_OK;
}

static uly_status load_file(loader *l) {
  uly_bytes whole = l->file->mapping.bytes, text;
  uint64_t len;
  if (!uly_bytes_u64(whole, 0, &len)) return BAD(l, "%s: truncated: %llu bytes are no safetensors file", l->path, (unsigned long long)whole.len);
  if (len > limits.bytes)
    return BAD(l, "%s: a header of %llu bytes, at most %llu are read (or not a safetensors file)", l->path, (unsigned long long)len,
               (unsigned long long)limits.bytes);
  if (!uly_bytes_slice(whole, 8, len, &text))
    return BAD(l, "%s: truncated: the header has %llu bytes, the file %llu", l->path, (unsigned long long)len, (unsigned long long)whole.len);
  uint8_t first;
  if (!uly_bytes_u8(text, 0, &first) || first != '{') return BAD(l, "%s: the header does not start with '{'", l->path);
  uly_bytes_slice(whole, 8 + len, whole.len - 8 - len, &l->data);
  uly_json_fault fault;
  uly_status status = uly_json_read(text, &limits, &l->file->header, &fault);
  if (status != ULY_OK) return uly_fail(l->error, status, "%s: header, byte %llu: %s", l->path, (unsigned long long)fault.at, fault.text);
  if (!json_is_object(l->file->header)) return BAD(l, "%s: the header is not an object", l->path);
  return load_tensors(l);
}

// Takes |mapping| over.
static uly_status read_mapping(const char *name, uly_mapping mapping, uly_safetensors **out, uly_error *error) {
  *out = NULL;
  loader l = {.path = name, .error = error, .file = calloc(1, sizeof *l.file)};
  if (!l.file) {
    uly_mapping_close(&mapping);
    return uly_fail(error, ULY_EXHAUSTED, "%s: no memory", name);
  }
  l.file->mapping = mapping;
  uly_status status = load_file(&l);
  free(l.items);
  if (status == ULY_OK)
    *out = l.file;
  else
    uly_safetensors_close(l.file);
  return status;
}

uly_status uly_safetensors_open(const char *path, uly_safetensors **out, uly_error *error) {
  uly_mapping mapping;
  *out = NULL;
  ULY_TRY(uly_mapping_open(path, &mapping, error));
  return read_mapping(path, mapping, out, error);
}

uly_status uly_safetensors_read(const char *name, uly_bytes bytes, uly_safetensors **out, uly_error *error) {
  return read_mapping(name, (uly_mapping){.bytes = bytes, .borrowed = true}, out, error);
}

void uly_safetensors_close(uly_safetensors *file) {
  if (!file) return;
  for (int64_t i = 0; i < file->n && file->copies; i++) free(file->copies[i]);
  free(file->copies);
  free(file->by_name);
  free(file->tensors);
  json_decref(file->header);
  uly_mapping_close(&file->mapping);
  free(file);
}

int64_t uly_safetensors_count(const uly_safetensors *file) { return file->n; }

const uly_safetensor *uly_safetensors_get(const uly_safetensors *file, int64_t i) {
  ULY_ASSERT(i >= 0 && i < file->n);
  return &file->tensors[i];
}

int uly_safetensor_order(const uly_safetensor *tensor, uly_str name) {
  int order = strncmp(tensor->name, name.ptr, name.len);
  return order == 0 && tensor->name[name.len] ? 1 : order;
}

const uly_safetensor *uly_safetensors_find(const uly_safetensors *file, uly_str name) {
  int64_t lo = 0, hi = file->n;
  while (lo < hi) {
    int64_t mid = lo + (hi - lo) / 2;
    int order = uly_safetensor_order(file->by_name[mid], name);
    if (order == 0) return file->by_name[mid];
    if (order < 0)
      lo = mid + 1;
    else
      hi = mid;
  }
  return NULL;
}

// ---- writer ----

static json_t *describe(const uly_ndarray *array, int64_t first) {
  json_t *shape = json_array();
  for (int i = 0; i < array->rank; i++) json_array_append_new(shape, json_integer(array->dims[i]));
  return json_pack("{s:s, s:o, s:[I, I]}", "dtype", uly_dtype_get(array->dtype)->safetensors, "shape", shape, "data_offsets", (json_int_t)first,
                   (json_int_t)(first + array->bytes));
}

static uly_status write_all(const char *text, int64_t n, const uly_ndarray *arrays, uly_output *output, uly_error *error) {
  uint64_t len = strlen(text), padded = (len + 7) / 8 * 8;
  uint8_t head[8];
  for (int i = 0; i < 8; i++) head[i] = (uint8_t)(padded >> (8 * i));
  ULY_TRY(uly_output_write(output, head, 8, error));
  ULY_TRY(uly_output_write(output, text, len, error));
  ULY_TRY(uly_output_write(output, "       ", padded - len, error));
  for (int64_t i = 0; i < n; i++) ULY_TRY(uly_output_write(output, arrays[i].data, (uint64_t)arrays[i].bytes, error));
  return ULY_OK;
}

uly_status uly_safetensors_write(const char *path, int64_t n, const char *const *names, const uly_ndarray *arrays, uly_error *error) {
  uly_json_watch();
  json_t *header = json_object();
  bool ok = header != NULL;
  int64_t at = 0;
  for (int64_t i = 0; ok && i < n; i++) {
    ok = !json_object_get(header, names[i]) && json_object_set_new(header, names[i], describe(&arrays[i], at)) == 0;
    at += arrays[i].bytes;
  }
  char *text = ok ? json_dumps(header, JSON_COMPACT) : NULL;
  json_decref(header);
  if (uly_json_lost_memory()) {
    free(text);
    return uly_fail(error, ULY_EXHAUSTED, "%s: no memory for the header", path);
  }
  if (!text) return uly_fail(error, ULY_INVALID_ARGUMENT, "%s: names that repeat or are not UTF-8", path);
  uly_output output;
  uly_status status = uly_output_open(path, &output, error);
  if (status == ULY_OK) {
    status = write_all(text, n, arrays, &output, error);
    if (status == ULY_OK)
      status = uly_output_commit(&output, error);
    else
      uly_output_discard(&output);
  }
  free(text);
  return status;
}
