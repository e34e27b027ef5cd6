// Safetensors files: an 8-byte length, a JSON header, and the tensors' bytes, which are used in place.
//
// The reader takes only files that are whole: header at most 100 MB, at most 65,536 tensors, byte ranges that follow each other without overlaps or holes to the end of
// the file, and sizes that fit the shapes.
#ifndef ULY_RUNTIME_IO_SAFETENSORS_H
#define ULY_RUNTIME_IO_SAFETENSORS_H

#include "runtime/io/files.h"

typedef struct uly_safetensors uly_safetensors;

typedef struct uly_safetensor {
  const char *name;
  const char *dtype_name; // as the file spells it
  bool supported;         // dtype.def has it; else |array| has no dtype and no data
  uly_ndarray array;
} uly_safetensor;

ULY_MUST_USE uly_status uly_safetensors_open(const char *path, uly_safetensors **out, uly_error *error);
// The same of |bytes| in memory, which outlive the result. |name|: what messages call them.
ULY_MUST_USE uly_status uly_safetensors_read(const char *name, uly_bytes bytes, uly_safetensors **out, uly_error *error);
void uly_safetensors_close(uly_safetensors *file); // accepts NULL
int64_t uly_safetensors_count(const uly_safetensors *file);
// Tensor |i| in the order of the data; borrowed.
const uly_safetensor *uly_safetensors_get(const uly_safetensors *file, int64_t i);
// NULL where there is none of that name.
const uly_safetensor *uly_safetensors_find(const uly_safetensors *file, uly_str name);

// Below, at or above 0 where the tensor's name comes before, is, or comes after |name|.
int uly_safetensor_order(const uly_safetensor *tensor, uly_str name);

// Replaces |path| as a whole. The names are different from each other.
ULY_MUST_USE uly_status uly_safetensors_write(const char *path, int64_t n, const char *const *names, const uly_ndarray *arrays, uly_error *error);

#endif
