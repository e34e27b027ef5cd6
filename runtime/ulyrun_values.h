// Where ulyrun's arrays come from: .npy and safetensors files, the bytes of any other file, and seeded random numbers.
#ifndef ULY_RUNTIME_ULYRUN_VALUES_H
#define ULY_RUNTIME_ULYRUN_VALUES_H

#include "runtime/base/str.h"
#include "runtime/io/files.h"
#include "runtime/io/safetensors.h"

typedef enum uly_source_kind { ULY_SOURCE_NPY, ULY_SOURCE_SAFETENSORS, ULY_SOURCE_BYTES, ULY_SOURCE_RANDOM } uly_source_kind;

typedef struct uly_input_source {
  uly_source_kind kind;
  const char *path;
  uly_str key; // of a safetensors file; empty: none given
  uint64_t seed;
} uly_input_source;

// "name=source" cut at the first '='. False where there is none.
bool uly_source_split(const char *text, uly_str *out_name, uly_str *out_source);
// "@file", "@file.safetensors:key" or "rand:seed=N". False: |error| says why.
bool uly_source_parse(uly_arena *arena, uly_str text, uly_input_source *out, uly_text *error);

typedef struct uly_sourced {
  uly_ndarray array;
  uly_mapping mapping;
  uly_safetensors *file;
  void *memory;
} uly_sourced;
// The array of a file; |name| is the key where the source has none. Bytes become an array [1, …, n] of |dtype|, an integer type, with |rank| dims.
ULY_MUST_USE uly_status uly_source_open(const uly_input_source *source, uly_str name, uly_dtype dtype, int rank, uly_sourced *out, uly_error *error);
// Its floats as another dtype.
ULY_MUST_USE uly_status uly_sourced_convert(uly_sourced *loaded, uly_dtype dtype, uly_error *error);
// Element |index| of a random input: uniform in [-1, 1), integers in [0, limit) (limit 0: [0, 2)). |key|: base/random.h.
double uly_random_input(uint64_t key, uint64_t index, uly_dtype dtype, int64_t limit);
void uly_sourced_close(uly_sourced *loaded); // accepts a zeroed one

// Writes an array to |path| by its ending: .npy or .safetensors, where its key is |name|. NumPy has no bf16: there it is f32.
ULY_MUST_USE uly_status uly_array_write(const char *path, const char *name, const uly_ndarray *array, uly_error *error);

#endif
