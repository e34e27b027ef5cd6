// What the files of the public interface (ulyrt.h) share.
#ifndef ULY_RUNTIME_CAPI_H
#define ULY_RUNTIME_CAPI_H

#include "runtime/base/dtype.h"
#include "runtime/bound.h"
#include "runtime/ulyrt.h"

struct ulyrt_model {
  uly_loaded *loaded;
  char **names; // [n_names], then symbols, then axes: zero-terminated
  void *memory;
};

typedef struct uly_checked {
  int64_t local[ULY_MAX_DIMS];
} uly_checked;

struct ulyrt_instance {
  ulyrt_model *model;
  uly_bound *bound;
  uly_checked *shapes; // [tensors of the entry]
  void **pointers;     // the same, for a run
  void (*watch)(void *context, const ulyrt_value *value);
  void *watch_context;
};

// Copies |from| to |to| (NULL: nowhere), as far as the caller's struct reaches, and returns its status.
ulyrt_status uly_capi_error(ulyrt_error *to, const uly_error *from, uly_status status);
// Fails with |format| as text.
ulyrt_status uly_capi_fail(ulyrt_error *to, uly_status status, const char *format, ...) ULY_PRINTF(3, 4);
// |struct_size| of a struct of the caller's says how much of |bytes| may be written; 0 is a caller's mistake.
ulyrt_status uly_capi_copy(void *to, size_t struct_size, const void *from, size_t bytes, ulyrt_error *error);

ulyrt_dtype uly_capi_dtype(uint32_t dtype);
bool uly_capi_same_dtype(ulyrt_dtype given, uint32_t dtype);
// The sizes of axes that a caller names, by axis; 0 where it names none.
uly_status uly_capi_grid(const ulyrt_model *model, const ulyrt_size *grid, int32_t n_grid, uly_error *error, int32_t *out_given);
const char *uly_capi_name(const ulyrt_model *model, uint32_t row);

#endif
