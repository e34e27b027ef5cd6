// Whole files in, and out in one piece. Called by the subcommands.
#ifndef ULY_DRIVER_FILES_H
#define ULY_DRIVER_FILES_H

#include "runtime/base/str.h"

// At most |max_bytes| + 1 bytes of |path|, so that the caller sees a file that is too large. ULY_IO: |error| says why.
ULY_MUST_USE uly_status uly_file_read(uly_arena *arena, const char *path, size_t max_bytes, uly_str *out_text, uly_text *error);

// A file that appears complete or not at all: written beside |path| under another name, then moved. Whoever dies before the move leaves the old one.
typedef struct uly_output {
  const char *path;
  char *temporary; // to be written; NULL once moved or dropped
} uly_output;
ULY_MUST_USE uly_status uly_output_begin(uly_arena *arena, const char *path, uly_output *out_output, uly_text *error);
// Makes it durable and moves it into place.
ULY_MUST_USE uly_status uly_output_commit(uly_output *output, uly_text *error);
void uly_output_drop(uly_output *output);

#endif
