// The frontend as a whole: the text of a spec in, a checked graph out. Called by the driver and by tests. Reads no files, prints nothing.
#ifndef ULY_FRONTEND_SPEC_H
#define ULY_FRONTEND_SPEC_H

#include "frontend/diag.h"
#include "frontend/graph.h"

// |name| is what diagnostics call the file. |defines| are the -D values, NAME=VALUE. |diags| must be fresh: the spec becomes its first source. Strings
// must outlive the graph. NULL with at least one error in |diags|.
uly_graph *uly_spec_read(uly_arena *arena, uly_diags *diags, uly_str name, uly_str text, const uly_str *defines, int32_t n_defines);

uly_str uly_spec_prelude(void);

#endif
