// The back half of the compiler: libulyc_lower.so, which brings MLIR and LLVM with it. The driver opens it only when it compiles, so that `check` and
// `--help` start at once. These functions are all that it exports; driver/lower.c finds them by name.
#ifndef ULY_DRIVER_LOWER_H
#define ULY_DRIVER_LOWER_H

#include <stdio.h>

#include "frontend/diag.h"
#include "frontend/graph.h"
#include "runtime/abi.h"

#define ULY_LOWER_LIBRARY "libulyc_lower.so"
#define ULY_LOWER_ABI 3

typedef struct uly_lower_options {
  uly_str source_name, source;                   // the spec, for diagnostics and for the model's notes
  const char *output;                            // file to write, in memory; NULL: no code is made
  const char *target;                            // NULL: the CPU
  const char *march;                             // CPU levels with commas; NULL: the default list
  int level;                                     // 0: fuse nothing, hardly optimise; 1: hardly optimise; 2: fully
  const char *passes, *print_after, *stop_after; // as for `ulyc opt`; NULL where not given
  bool verify_each;                              // distributions are verified after every pass
  FILE *print_to;                                // where IR goes
  bool print_last;                               // of what print_after prints, only the last stays in |print_to|, a file
} uly_lower_options;

// The spec's entries as a model.so at |options->output|, which the caller made and will put into place. What the user can mend is added to |diags|;
// |error| gets a sentence about anything else.
typedef uly_status uly_lower_compile_fn(uly_arena *arena, const uly_graph *graph, const uly_lower_options *options, uly_diags *diags, uly_text *error);
// The tables of that model, in |arena|: all that sizes depend on, made without code.
typedef uly_status uly_lower_tables_fn(uly_arena *arena, const uly_graph *graph, const uly_lower_options *options, uly_diags *diags, const uly_blob **out_blob);
// `ulyc opt`: passes over the IR text in |path| ("-": standard input), which is printed to |options->print_to|. Diagnostics go to standard error. Returns the exit code.
typedef int uly_lower_opt_fn(const char *path, const uly_lower_options *options);
// ULY_LOWER_ABI of the library: driver and library are built together, and say so when they are not.
typedef int uly_lower_abi_fn(void);

// "LLVM and MLIR 22.1.2, linker /usr/lib/llvm-22/bin/ld.lld": what it compiles with.
typedef const char *uly_lower_versions_fn(void);

uly_lower_compile_fn uly_lower_compile;
uly_lower_tables_fn uly_lower_tables;
uly_lower_opt_fn uly_lower_opt;
uly_lower_abi_fn uly_lower_abi;
uly_lower_versions_fn uly_lower_versions;

#endif
