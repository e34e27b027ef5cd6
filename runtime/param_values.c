// Parameters of a loaded model: what they are, setting them, seeded values.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/dtype.h"
#include "runtime/base/random.h"
#include "runtime/loaded.h"

static uint32_t tensor_of(const uly_loaded *loaded, uint32_t param) {
  uint32_t i = 0;
  while (loaded->first_param[i] > param || loaded->tables.tensors[i].role != ULY_PARAM ||
         param - loaded->first_param[i] >= loaded->tables.tensors[i].names.count)
    i++;
  return i;
}

static uly_str name_of(const uly_loaded *loaded, uint32_t tensor, uint32_t param) {
  return uly_tables_name(&loaded->tables, loaded->tables.tensors[tensor].names.first + (param - loaded->first_param[tensor]));
}

uly_status uly_param_get(const uly_loaded *loaded, uint32_t index, uly_error *error, uly_param_info *out_info) {
  if (index >= loaded->n_params) return uly_fail(error, ULY_INVALID_ARGUMENT, "there are %u parameters, asked for number %u", loaded->n_params, index);
  uint32_t i = tensor_of(loaded, index);
  const uly_tensor *t = &loaded->tables.tensors[i];
  *out_info = (uly_param_info){
      .name = name_of(loaded, i, index), .dtype = t->dtype, .rank = t->rank, .init = t->init, .is_set = loaded->params[index].data, .elements = 1};
  for (uint32_t d = 0; d < t->rank; d++) {
    ULY_TRY(uly_nodes_size(&loaded->nodes, t->dims[d], 0, error, &out_info->dims[d]));
    if (__builtin_mul_overflow(out_info->elements, out_info->dims[d], &out_info->elements))
      return uly_fail(error, ULY_OVERFLOW, "parameter \"%.*s\" is too large", ULY_STR_ARG(out_info->name));
  }
  if (__builtin_mul_overflow(out_info->elements, (int64_t)uly_dtype_bytes((uly_dtype)t->dtype), &out_info->bytes) || out_info->bytes > (int64_t)1 << 47)
    return uly_fail(error, ULY_OVERFLOW, "parameter \"%.*s\" is too large", ULY_STR_ARG(out_info->name));
  return ULY_OK;
}

static void shape_text(uint32_t dtype, uint32_t rank, const int64_t *dims, char *out, size_t bytes) {
  size_t at = (size_t)snprintf(out, bytes, "%s[", dtype < ULY_N_DTYPES ? uly_dtype_name((uly_dtype)dtype) : "?");
  for (uint32_t d = 0; d < rank && at < bytes; d++) at += (size_t)snprintf(out + at, bytes - at, d ? ", %lld" : "%lld", (long long)dims[d]);
  if (at < bytes) snprintf(out + at, bytes - at, "]");
}

static uly_status unknown(const uly_loaded *loaded, uly_str name, uly_error *error) {
  uly_str *names = malloc(sizeof *names * (loaded->n_params + (size_t)1));
  uly_str best = {0};
  uint32_t n = 0;
  if (names) {
    for (uint32_t i = 0; i < loaded->tables.n_tensors; i++)
      for (uint32_t k = 0; loaded->tables.tensors[i].role == ULY_PARAM && k < loaded->tables.tensors[i].names.count; k++)
        names[n++] = uly_tables_name(&loaded->tables, loaded->tables.tensors[i].names.first + k);
    best = uly_str_nearest(name, names, n);
  }
  uly_status status =
      best.len ? uly_fail(error, ULY_INVALID_ARGUMENT, "the model has no parameter \"%.*s\"; did you mean \"%.*s\"?", ULY_STR_ARG(name), ULY_STR_ARG(best))
               : uly_fail(error, ULY_INVALID_ARGUMENT, "the model has no parameter \"%.*s\"", ULY_STR_ARG(name));
  free(names);
  return status;
}

// New values for one parameter, those at |data| in |dtype|, or none yet; what was packed from the old is void. |borrow|: they are used where they stand.
static uly_status put(uly_loaded *loaded, uint32_t index, const uly_param_info *info, uint32_t dtype, const void *data, bool borrow, uly_error *error) {
  uly_param *p = &loaded->params[index];
  void *copy = NULL;
  if (!borrow) {
    copy = aligned_alloc(64, ((size_t)info->bytes + 64) & ~(size_t)63);
    if (!copy) return uly_fail(error, ULY_EXHAUSTED, "no memory for a parameter of %lld bytes", (long long)info->bytes);
    if (data && dtype != info->dtype)
      uly_dtype_convert((uly_dtype)dtype, data, (uly_dtype)info->dtype, copy, info->elements);
    else if (data && info->bytes)
      memcpy(copy, data, (size_t)info->bytes);
  }
  free(p->owned);
  p->owned = copy;
  p->data = borrow ? data : copy;
  memset(loaded->step_done, 0, loaded->tables.n_steps * sizeof *loaded->step_done);
  return ULY_OK;
}

static bool is_float(uint32_t dtype) { return dtype < ULY_N_DTYPES && uly_dtype_get((uly_dtype)dtype)->is_float; }

static uly_status set_locked(uly_loaded *loaded, uly_str name, uint32_t dtype, uint32_t rank, const int64_t *dims, const void *data, bool borrow,
                             uly_error *error) {
  bool found = false;
  if (loaded->n_binds) return uly_fail(error, ULY_INVALID_ARGUMENT, "parameter \"%.*s\" cannot be set while the model is bound", ULY_STR_ARG(name));
  for (uint32_t i = 0; i < loaded->tables.n_tensors; i++) {
    const uly_tensor *t = &loaded->tables.tensors[i];
    for (uint32_t k = 0; t->role == ULY_PARAM && k < t->names.count; k++) {
      if (!uly_str_equal(name, uly_tables_name(&loaded->tables, t->names.first + k))) continue;
      uly_param_info info;
      ULY_TRY(uly_param_get(loaded, loaded->first_param[i] + k, error, &info));
      bool converts = dtype != info.dtype && is_float(dtype) && is_float(info.dtype);
      if ((dtype != info.dtype && !converts) || rank != info.rank || (rank && memcmp(dims, info.dims, rank * sizeof *dims) != 0)) {
        char want[160], have[160];
        shape_text(info.dtype, info.rank, info.dims, want, sizeof want);
        shape_text(dtype, rank, dims, have, sizeof have);
        return uly_fail(error, ULY_INVALID_INPUT, "parameter \"%.*s\" is %s, the model needs %s", ULY_STR_ARG(name), have, want);
      }
      if (info.bytes && !data) return uly_fail(error, ULY_INVALID_ARGUMENT, "parameter \"%.*s\" has no data", ULY_STR_ARG(name));
      ULY_TRY(put(loaded, loaded->first_param[i] + k, &info, dtype, data, borrow && !converts, error));
      found = true;
    }
  }
  return found ? ULY_OK : unknown(loaded, name, error);
}

uly_status uly_param_set(uly_loaded *loaded, uly_str name, uint32_t dtype, uint32_t rank, const int64_t *dims, const void *data, bool borrow,
                         uly_error *error) {
  if (rank > ULY_MAX_DIMS) return uly_fail(error, ULY_INVALID_ARGUMENT, "parameter \"%.*s\" has %u dims, at most %d", ULY_STR_ARG(name), rank, ULY_MAX_DIMS);
  pthread_mutex_lock(&loaded->mutex);
  uly_status status = set_locked(loaded, name, dtype, rank, dims, data, borrow, error);
  pthread_mutex_unlock(&loaded->mutex);
  return status;
}

static uly_status seed_locked(uly_loaded *loaded, uint64_t seed, uly_error *error) {
  if (loaded->n_binds) return uly_fail(error, ULY_INVALID_ARGUMENT, "parameters cannot be seeded while the model is bound");
  for (uint32_t i = 0; i < loaded->n_params; i++) {
    uly_param_info info;
    if (loaded->params[i].data) continue;
    ULY_TRY(uly_param_get(loaded, i, error, &info));
    ULY_TRY(put(loaded, i, &info, info.dtype, NULL, false, error));
    uly_random_param(seed, info.name, (uly_dtype)info.dtype, info.rank, info.dims, info.elements, loaded->params[i].owned);
  }
  return ULY_OK;
}

uly_status uly_param_seed(uly_loaded *loaded, uint64_t seed, uly_error *error) {
  pthread_mutex_lock(&loaded->mutex);
  uly_status status = seed_locked(loaded, seed, error);
  pthread_mutex_unlock(&loaded->mutex);
  return status;
}
