// Arbitrary bytes as a .npy and as a .safetensors file. What is accepted is whole: names are found, and every byte of every array can be read.
#include <stdlib.h>

#include "runtime/io/npy.h"
#include "runtime/io/safetensors.h"
#include "tests/fuzz/fuzz.h"

static volatile uint8_t sink;

static void touch(const uly_ndarray *array) {
  int64_t elements, bytes;
  ULY_ASSERT(uly_ndarray_size(array->dtype, array->rank, array->dims, &elements, &bytes) && bytes == array->bytes);
  ULY_ASSERT((uintptr_t)array->data % (uintptr_t)uly_dtype_bytes(array->dtype) == 0);
  for (int64_t i = 0; i < bytes; i++) sink = ((const uint8_t *)array->data)[i];
}

static void try_npy(uly_bytes bytes) {
  uly_mapping mapping = {.bytes = bytes, .borrowed = true};
  uly_ndarray array;
  uly_error error;
  if (uly_npy_read("x.npy", &mapping, &array, &error) == ULY_OK) touch(&array);
  uly_mapping_close(&mapping);
}

static void try_safetensors(uly_bytes bytes) {
  uly_safetensors *file;
  uly_error error;
  if (uly_safetensors_read("x.safetensors", bytes, &file, &error) != ULY_OK) return;
  for (int64_t i = 0; i < uly_safetensors_count(file); i++) {
    const uly_safetensor *t = uly_safetensors_get(file, i);
    ULY_ASSERT(uly_safetensors_find(file, uly_str_of(t->name)) == t);
    if (t->supported) touch(&t->array);
  }
  uly_safetensors_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  if (n && data[0] == 0x93)
    try_npy((uly_bytes){data, n});
  else
    try_safetensors((uly_bytes){data, n});
  return 0;
}
