// `--target=reference`: a checked spec as a program whose every step is one operation of runtime/reference on whole tensors, in the order of the graph. Nothing of the passes
// is used: no distribution, no fusion, no load phase.
#ifndef ULY_CODEGEN_REFERENCE_REF_PROGRAM_H
#define ULY_CODEGEN_REFERENCE_REF_PROGRAM_H

#include "codegen/codegen.h"
#include "frontend/diag.h"

// NULL, with diagnostics, where an operation has no reference.
uly_program *uly_ref_program(uly_arena *arena, const uly_graph *graph, uly_diags *diags);
// The program as a model.so: as uly_codegen_write, with the one kernel that was compiled when ulyc was built, whatever CPU levels |options| name.
ULY_MUST_USE uly_status uly_ref_write(const uly_program *program, const uly_codegen_options *options, const char *path, uly_text *error);

#endif
