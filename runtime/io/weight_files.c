#include "runtime/io/weight_files.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/io/json.h"

enum { MAX_FILES = 1024 };
static const uly_json_limits limits = {.bytes = 100000000, .values = 1 << 18, .depth = 4, .number = 40};

typedef struct entry {
  const uly_safetensor *tensor;
  int32_t file;
} entry;

struct uly_weight_files {
  char *folder, *index; // the index's path, NULL without one; its folder, up to the slash
  int32_t n_files;
  char **paths;
  uly_safetensors **files;
  int64_t n;
  entry *tensors; // by name
};

static uly_status no_memory(const char *path, uly_error *error) { return uly_fail(error, ULY_EXHAUSTED, "%s: no memory for the names of its tensors", path); }

static char *join(const char *folder, const char *name) {
  char *path = malloc(strlen(folder) + strlen(name) + 1);
  return path ? strcat(strcpy(path, folder), name) : NULL;
}

static int compare_entries(const void *a, const void *b) { return strcmp(((const entry *)a)->tensor->name, ((const entry *)b)->tensor->name); }

static uly_status add_file(uly_weight_files *w, const char *path, uly_error *error) {
  char **paths = realloc(w->paths, sizeof *paths * ((size_t)w->n_files + 1));
  if (paths) w->paths = paths;
  uly_safetensors **files = realloc(w->files, sizeof *files * ((size_t)w->n_files + 1));
  if (files) w->files = files;
  char *copy = join(path, "");
  if (!paths || !files || !copy) return free(copy), no_memory(path, error);
  w->paths[w->n_files] = copy;
  w->files[w->n_files++] = NULL;
  return uly_safetensors_open(path, &w->files[w->n_files - 1], error);
}

// All tensors of all files, by name.
static uly_status collect(uly_weight_files *w, const char *path, uly_error *error) {
  int64_t n = 0;
  for (int32_t f = 0; f < w->n_files; f++) n += uly_safetensors_count(w->files[f]);
  w->tensors = calloc((size_t)n + 1, sizeof *w->tensors);
  if (!w->tensors) return no_memory(path, error);
  for (int32_t f = 0; f < w->n_files; f++)
    for (int64_t i = 0; i < uly_safetensors_count(w->files[f]); i++) w->tensors[w->n++] = (entry){uly_safetensors_get(w->files[f], i), f};
  qsort(w->tensors, (size_t)w->n, sizeof *w->tensors, compare_entries);
  for (int64_t i = 1; i < w->n; i++)
    if (strcmp(w->tensors[i - 1].tensor->name, w->tensors[i].tensor->name) == 0)
      return uly_fail(error, ULY_INVALID_INPUT, "%s: tensor %s is in two files, %s and %s", path, w->tensors[i].tensor->name, w->paths[w->tensors[i - 1].file],
                      w->paths[w->tensors[i].file]);
  return ULY_OK;
}

// ---- the index

// Whether |name| stays below the index's folder.
static bool stays_inside(const char *name) {
  for (const char *part = name;; part++) {
    size_t n = strcspn(part, "/");
    if (n == 0 || (part[0] == '.' && (n == 1 || (n == 2 && part[1] == '.')))) return false;
    part += n;
    if (!*part) return true;
  }
}

// Opens the file |name| of the index where that has not happened.
static uly_status open_part(uly_weight_files *w, const char *tensor, const json_t *value, uly_error *error) {
  const char *name = json_string_value(value);
  if (!name) return uly_fail(error, ULY_INVALID_INPUT, "%s: the file of tensor %s is not a string", w->index, tensor);
  if (!stays_inside(name)) return uly_fail(error, ULY_INVALID_INPUT, "%s: tensor %s: the file '%s' is not below the index's folder", w->index, tensor, name);
  for (int32_t f = w->n_files; f-- > 0;)
    if (strcmp(w->paths[f] + strlen(w->folder), name) == 0) return ULY_OK;
  if (w->n_files == MAX_FILES) return uly_fail(error, ULY_INVALID_INPUT, "%s: more than %d files", w->index, MAX_FILES);
  char *path = join(w->folder, name);
  if (!path) return no_memory(w->index, error);
  uly_status status = add_file(w, path, error);
  free(path);
  if (status != ULY_OK) uly_error_prefix(error, "%s: ", w->index);
  return status;
}

static uly_status check_place(uly_weight_files *w, const char *tensor, const char *name, uly_error *error) {
  int64_t i = uly_weight_files_find(w, uly_str_of(tensor));
  if (i < 0) return uly_fail(error, ULY_INVALID_INPUT, "%s: tensor %s is not in %s, which should hold it", w->index, tensor, name);
  const char *really = w->paths[w->tensors[i].file] + strlen(w->folder);
  if (strcmp(really, name) == 0) return ULY_OK;
  return uly_fail(error, ULY_INVALID_INPUT, "%s: tensor %s is in %s, not in %s", w->index, tensor, really, name);
}

static uly_status open_parts(uly_weight_files *w, const json_t *index, uly_error *error) {
  json_t *map = json_object_get(index, "weight_map"), *value;
  const char *tensor;
  if (!json_is_object(map)) return uly_fail(error, ULY_INVALID_INPUT, "%s: no object weight_map, which an index of weights has", w->index);
  json_object_foreach(map, tensor, value) ULY_TRY(open_part(w, tensor, value, error));
  ULY_TRY(collect(w, w->index, error));
  json_object_foreach(map, tensor, value) ULY_TRY(check_place(w, tensor, json_string_value(value), error));
  return ULY_OK;
}

static uly_status open_index(uly_weight_files *w, const char *path, uly_error *error) {
  uly_mapping mapping;
  uly_json_fault fault;
  json_t *json;
  const char *slash = strrchr(path, '/');
  w->index = join(path, "");
  w->folder = join(path, "");
  if (!w->index || !w->folder) return no_memory(path, error);
  w->folder[slash ? slash - path + 1 : 0] = 0;
  ULY_TRY(uly_mapping_open(path, &mapping, error));
  uly_status status = uly_json_read(mapping.bytes, &limits, &json, &fault);
  uly_mapping_close(&mapping);
  if (status != ULY_OK) return uly_fail(error, status, "%s: byte %llu: %s", path, (unsigned long long)fault.at, fault.text);
  status = open_parts(w, json, error);
  json_decref(json);
  return status;
}

// ---- any of the forms

static uly_status open_file(uly_weight_files *w, const char *path, uly_error *error) {
  ULY_TRY(add_file(w, path, error));
  return collect(w, path, error);
}

static uly_status open_folder(uly_weight_files *w, const char *folder, uly_error *error) {
  size_t n = strlen(folder);
  const char *slash = n && folder[n - 1] == '/' ? "" : "/";
  static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
  for (int i = 0; i < 2; i++) {
    char path[4096];
    int len = snprintf(path, sizeof path, "%s%s%s", folder, slash, names[i]);
    if (len >= (int)sizeof path) return uly_fail(error, ULY_IO, "%s: the path is too long", folder);
    if (access(path, F_OK) == 0) return i ? open_index(w, path, error) : open_file(w, path, error);
  }
  return uly_fail(error, ULY_IO, "%s: the folder holds neither %s nor %s", folder, names[0], names[1]);
}

uly_status uly_weight_files_open(const char *path, uly_weight_files **out, uly_error *error) {
  struct stat st;
  size_t n = strlen(path);
  *out = NULL;
  uly_weight_files *w = calloc(1, sizeof *w);
  if (!w) return no_memory(path, error);
  uly_status status;
  if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
    status = open_folder(w, path, error);
  else if (n >= 5 && strcmp(path + n - 5, ".json") == 0)
    status = open_index(w, path, error);
  else
    status = open_file(w, path, error);
  if (status == ULY_OK)
    *out = w;
  else
    uly_weight_files_close(w);
  return status;
}

void uly_weight_files_close(uly_weight_files *w) {
  if (!w) return;
  for (int32_t f = 0; f < w->n_files; f++) {
    uly_safetensors_close(w->files[f]);
    free(w->paths[f]);
  }
  free(w->files);
  free(w->paths);
  free(w->tensors);
  free(w->folder);
  free(w->index);
  free(w);
}

int64_t uly_weight_files_count(const uly_weight_files *w) { return w->n; }

const uly_safetensor *uly_weight_files_get(const uly_weight_files *w, int64_t i) {
  ULY_ASSERT(i >= 0 && i < w->n);
  return w->tensors[i].tensor;
}

const char *uly_weight_files_file(const uly_weight_files *w, int64_t i) {
  ULY_ASSERT(i >= 0 && i < w->n);
  return w->paths[w->tensors[i].file];
}

int64_t uly_weight_files_find(const uly_weight_files *w, uly_str name) {
  int64_t lo = 0, hi = w->n;
  while (lo < hi) {
    int64_t mid = lo + (hi - lo) / 2;
    int order = uly_safetensor_order(w->tensors[mid].tensor, name);
    if (order == 0) return mid;
    if (order < 0)
      lo = mid + 1;
    else
      hi = mid;
  }
  return -1;
}
