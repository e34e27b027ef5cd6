// Files: a read-only mapping, a checked reader of its bytes, and output that replaces a file as a whole.
//
// The readers of file formats (npy.c, safetensors.c) go through uly_bytes_* and do no pointer arithmetic of their own.
#ifndef ULY_RUNTIME_IO_FILES_H
#define ULY_RUNTIME_IO_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

typedef struct uly_bytes {
  const uint8_t *ptr;
  uint64_t len;
} uly_bytes;
// Each returns false where what is asked for is not all there. Numbers are little endian, at any alignment.
bool uly_bytes_slice(uly_bytes from, uint64_t offset, uint64_t len, uly_bytes *out);
bool uly_bytes_u8(uly_bytes from, uint64_t offset, uint8_t *out);
bool uly_bytes_u16(uly_bytes from, uint64_t offset, uint16_t *out);
bool uly_bytes_u32(uly_bytes from, uint64_t offset, uint32_t *out);
bool uly_bytes_u64(uly_bytes from, uint64_t offset, uint64_t *out);

// A regular file, mapped read-only. Another process must not truncate it meanwhile.
typedef struct uly_mapping {
  uly_bytes bytes;
  void *copy;    // of data that stands unaligned in the file, or NULL
  bool borrowed; // |bytes| are the caller's
} uly_mapping;
ULY_MUST_USE uly_status uly_mapping_open(const char *path, uly_mapping *out, uly_error *error);
void uly_mapping_close(uly_mapping *mapping); // accepts a zeroed one

// For a program's first lines: where a standard stream is closed, its number is taken by something that cannot be written, so that no file of the program's gets it.
void uly_files_reserve_standard(void);

// A dense row-major array; the owner of |data| is whoever made it.
enum { ULY_NDARRAY_DIMS = 8 };
typedef struct uly_ndarray {
  uly_dtype dtype;
  int rank;
  int64_t dims[ULY_NDARRAY_DIMS];
  const void *data;
  int64_t bytes;
} uly_ndarray;
// Number of elements, and their size; false for a negative dim or beyond 2^62 bytes.
bool uly_ndarray_size(uly_dtype dtype, int rank, const int64_t *dims, int64_t *out_elements, int64_t *out_bytes);
// "[2, 3]" into |buffer|, cut where it does not fit; returns |buffer|.
const char *uly_ndarray_shape_text(int rank, const int64_t *dims, char *buffer, size_t bytes);

// Output that appears under |path| as a whole, or not at all: written without a name or under one of its own in the same folder, fsync, rename. Devices and
// pipes are written directly.
typedef struct uly_output {
  int fd;
  bool named, direct;
  char *path, *temp; // what to replace (links resolved); the name until then
} uly_output;
ULY_MUST_USE uly_status uly_output_open(const char *path, uly_output *out, uly_error *error);
ULY_MUST_USE uly_status uly_output_write(uly_output *output, const void *data, uint64_t bytes, uly_error *error);
// Puts the file in place. |output| is closed in either case.
ULY_MUST_USE uly_status uly_output_commit(uly_output *output, uly_error *error);
void uly_output_discard(uly_output *output); // accepts a zeroed, committed or failed one
// All of these: |path| holds |data|.
ULY_MUST_USE uly_status uly_file_write(const char *path, const void *data, uint64_t bytes, uly_error *error);

#endif
