// The compilation as a walk over passes.def. Called by the driver for every compilation and by `ulyc opt` on IR text.
#ifndef ULY_PASSES_PIPELINE_H
#define ULY_PASSES_PIPELINE_H

#include "passes/ir.h"
#include "passes/program.h"

// A pass changes the module. False: it has added at least one error to the diagnostics.
typedef bool uly_pass(uly_ir *ir, MlirOperation module);
// The program of a module that all passes have been over. NULL: it has added at least one error to the diagnostics.
typedef uly_program *uly_emit_pass(uly_ir *ir, MlirOperation module);
#define PASS(name, doc) uly_pass uly_pass_##name;
#define EMIT(name, doc) uly_emit_pass uly_##name;
#include "passes/passes.def"

typedef struct uly_pipeline_options {
  uly_str passes;      // names, with commas; empty: all
  uly_str stop_after;  // a name; empty: run to the end
  uly_str print_after; // names, with commas, or "all"
  FILE *print_to;
  bool print_last;  // of what is printed, only the last stays in |print_to|, a file
  bool verify_each; // verify_distribution after every pass
  bool unfused;     // nothing is fused: every operation is a kernel of its own
} uly_pipeline_options;

// ULY_OK; ULY_INVALID_ARGUMENT for a name that is no pass; ULY_INVALID_INPUT where a pass failed. The diagnostics say why.
ULY_MUST_USE uly_status uly_pipeline_run(uly_ir *ir, MlirModule module, const uly_pipeline_options *options);
// The rest of the way: the program, ready for codegen. NULL where the diagnostics say why.
uly_program *uly_pipeline_emit(uly_ir *ir, MlirModule module);

#endif
