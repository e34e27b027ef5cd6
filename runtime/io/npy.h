// NumPy's .npy files: versions 1 to 3, little endian, C order, the dtypes of dtype.def that NumPy has.
#ifndef ULY_RUNTIME_IO_NPY_H
#define ULY_RUNTIME_IO_NPY_H

#include "runtime/io/files.h"

// |out_array|'s data belongs to |out_mapping|, which the caller closes.
ULY_MUST_USE uly_status uly_npy_open(const char *path, uly_mapping *out_mapping, uly_ndarray *out_array, uly_error *error);
// The same of bytes that are mapped or borrowed already; |name|: what messages call them.
ULY_MUST_USE uly_status uly_npy_read(const char *name, uly_mapping *mapping, uly_ndarray *out_array, uly_error *error);
// Replaces |path| as a whole.
ULY_MUST_USE uly_status uly_npy_write(const char *path, const uly_ndarray *array, uly_error *error);

#endif
