// Arbitrary bytes as a .npy file, as a .safetensors file, and as the index of two such files. What is accepted is whole: names are found, and every byte of every array can be read.
#include <stdlib.h>

#include "runtime/io/npy.h"
#include "runtime/io/weight_files.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch_folder.h"

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

static scratch_folder folder;

static void remove_folder(void) { scratch_destroy(&folder); }

// Files that an index can name: tensors a and b, and c. In memory: on a disk this is most of an input's time.
static void make_parts(void) {
  static const char *const names[] = {"a", "b", "c"};
  static const float values[3];
  uly_ndarray arrays[3];
  uly_error error;
  for (int i = 0; i < 3; i++) arrays[i] = (uly_ndarray){.dtype = ULY_F32, .data = &values[i], .bytes = 4};
  strcpy(folder.path, "/dev/shm/uly_index_XXXXXX");
  ULY_ASSERT(mkdtemp(folder.path));
  atexit(remove_folder);
  ULY_ASSERT(uly_safetensors_write(scratch_path(&folder, "one"), 2, names, arrays, &error) == ULY_OK);
  ULY_ASSERT(uly_safetensors_write(scratch_path(&folder, "two"), 1, names + 2, arrays + 2, &error) == ULY_OK);
}

static void try_index(uly_bytes bytes) {
  uly_weight_files *files;
  uly_error error;
  if (!folder.path[0]) make_parts();
  if (uly_weight_files_open(scratch_write(&folder, "index.json", bytes.ptr, bytes.len), &files, &error) != ULY_OK) return;
  for (int64_t i = 0; i < uly_weight_files_count(files); i++) {
    const uly_safetensor *t = uly_weight_files_get(files, i);
    const char *file = strrchr(uly_weight_files_file(files, i), '/'), *part = t->name[0] == 'c' ? "/two" : "/one";
    ULY_ASSERT(uly_weight_files_find(files, uly_str_of(t->name)) == i && file == uly_weight_files_file(files, i) + strlen(folder.path));
    ULY_ASSERT(strcmp(file, part) == 0);
    touch(&t->array);
  }
  uly_weight_files_close(files);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  if (n && data[0] == 0x93)
    try_npy((uly_bytes){data, n});
  else if (n > 1 && data[0] == '{' && data[1] == '"')
    try_index((uly_bytes){data, n});
  else
    try_safetensors((uly_bytes){data, n});
  return 0;
}
