// The targets of a compilation.
#ifndef ULY_CODEGEN_TARGETS_H
#define ULY_CODEGEN_TARGETS_H

#include "codegen/codegen.h"
#include "frontend/diag.h"

typedef struct uly_target {
  const char *name, *doc;
  // NULL where the passes make the program. Its result is NULL after a diagnostic.
  uly_program *(*program)(uly_arena *arena, const uly_graph *graph, uly_diags *diags);
  uly_status (*write)(const uly_program *program, const uly_codegen_options *options, const char *path, uly_text *error);
} uly_target;

// The target of that name, the first where |name| is NULL. NULL: there is none, which |error| says.
const uly_target *uly_target_find(const char *name, uly_text *error);

#endif
