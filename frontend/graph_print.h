// Text of a graph: `ulyc check --types`, diagnostics and tests.
#ifndef ULY_FRONTEND_GRAPH_PRINT_H
#define ULY_FRONTEND_GRAPH_PRINT_H

#include "frontend/graph.h"

const char *uly_op_name(uly_op op);
// "S", "2*T", "S + 1", "64"
void uly_dim_print(uly_text *text, uly_dim dim, const uly_str *symbols);
// "f32[B, S, 64]"
uly_str uly_type_text(uly_arena *arena, const uly_tensor_type *type, const uly_str *symbols);
// Entries, inputs, then one line a value: number, type, operation, operands, attributes, line of the spec.
void uly_graph_print(uly_text *text, const uly_graph *graph);

#endif
