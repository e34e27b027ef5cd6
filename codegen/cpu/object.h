// A kernel description to machine code of one CPU level: the template's bitcode, the kernel's constants and hooks, a few passes, an object file in memory.
// Thread-safe: every call has an LLVM context of its own.
#ifndef ULY_CODEGEN_CPU_OBJECT_H
#define ULY_CODEGEN_CPU_OBJECT_H

#include "passes/program.h"

typedef struct uly_cpu_level {
  const char *name; // "x86-64-v3"
  int lanes;
  uint32_t features;
  const char *base; // the level whose code most kernels run, "" without
} uly_cpu_level;
extern const uly_cpu_level uly_cpu_levels[]; // levels.def
extern const int uly_n_cpu_levels;

// The level whose code a kernel runs at |level|: the level itself, or its base.
const uly_cpu_level *uly_object_level(const uly_kernel_desc *desc, const uly_cpu_level *level);
// |level|'s base, itself without one.
const uly_cpu_level *uly_object_base(const uly_cpu_level *level);

typedef struct uly_code_bytes {
  const void *ptr;
  size_t n;
} uly_code_bytes;

typedef struct uly_object_options {
  const char *passes; // for experiments: the pass pipeline, NULL for the usual one
  bool verify;        // LLVM's verifier, for tests
  bool export_hooks;  // hooks can be found in the model by name and the kernel does nothing: for tests of hooks at one level
  bool text;          // LLVM IR after the passes instead of an object, for inspection
} uly_object_options;

// Defines |symbol|, hidden, a uly_kernel. The object lives in |arena|. |error| (of |error_size|) says what went wrong.
ULY_MUST_USE uly_status uly_object_compile(uly_arena *arena, const uly_kernel_desc *desc, const char *symbol, const uly_cpu_level *level,
                                           const uly_object_options *options, uly_code_bytes *out_object, char *error, size_t error_size);

// Machine code that kernels of |level| call, compiled when ulyc was built: the files, at most |most| of them; how many there are. Not those of its base.
int uly_object_support(const uly_cpu_level *level, uly_code_bytes *out_objects, int most);

#endif
