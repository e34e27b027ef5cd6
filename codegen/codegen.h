// From a program to a model.so: kernels for each CPU level, the program's tables, and the linker. Who calls it: driver/lower.h's library, tests.
#ifndef ULY_CODEGEN_CODEGEN_H
#define ULY_CODEGEN_CODEGEN_H

#include "codegen/cpu/object.h"
#include "passes/program.h"

typedef struct uly_codegen_options {
  const char *march;         // CPU levels with commas; NULL: all
  int n_threads;             // 0: as many as there are CPUs
  uly_object_options object; // for tests and inspection
} uly_codegen_options;

// Writes |path|, complete and synced; the caller moves it into place. Equal programs and options give equal bytes. |error| gets a sentence. |options| may be NULL.
//   ULY_INVALID_ARGUMENT  a level of |march| does not exist
//   ULY_IO                |path| cannot be written
//   ULY_UNAVAILABLE       the linker cannot be started
ULY_MUST_USE uly_status uly_codegen_write(const uly_program *program, const uly_codegen_options *options, const char *path, uly_text *error);

// ---- its parts

// The program's code: [kernel][level], n_levels apart.
typedef struct uly_code {
  const uly_cpu_level *levels[ULY_MAX_LEVELS];
  uint32_t n_levels, n_kernels;
  uly_code_bytes *objects;                // empty where another level's has the code
  const char *(*symbols)[ULY_MAX_LEVELS]; // [kernel][level]
  const uly_code_bytes *more;             // objects that kernels call, libraries
  int n_more;
} uly_code;

// Tables and code as a file at |path|.
ULY_MUST_USE uly_status uly_codegen_link(const uly_program *program, const uly_code *code, const char *path, uly_text *error);

extern const char uly_linker[]; // the absolute path of what links
// artifact.c: an object with the blob, the note, the kernels' addresses and the query function.
ULY_MUST_USE uly_status uly_artifact_object(uly_arena *arena, const uly_blob *blob, const uly_code *code, uly_code_bytes *out_object, uly_text *error);
// Writes the hash of a linked model's contents into its note.
ULY_MUST_USE uly_status uly_artifact_seal(uly_code_bytes library, uly_text *error);
// link.c: |objects| as a shared library, in memory.
ULY_MUST_USE uly_status uly_link_shared(uly_arena *arena, const uly_code_bytes *objects, int n_objects, uly_code_bytes *out_library, uly_text *error);

#endif
