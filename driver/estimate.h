// What a spec costs at given sizes: bytes of each exchange and memory of a rank, from the graph alone. Called by `ulyc check --at`.
#ifndef ULY_DRIVER_ESTIMATE_H
#define ULY_DRIVER_ESTIMATE_H

#include "frontend/graph.h"
#include "runtime/base/arena.h"

// Sizes of the free symbols, and ranks of the grid's axes; 0: not given.
typedef struct uly_sizes {
  int64_t *symbols; // graph->n_symbols
  int64_t *ranks;   // graph->n_axes
} uly_sizes;

enum { ULY_SIZE_OVERFLOW = -1 };

// Elements of a value; ULY_SIZE_OVERFLOW beyond 64 bits.
int64_t uly_estimate_elements(const uly_tensor_type *type, const uly_sizes *sizes);

// Bytes that the busiest rank sends in one pass over |value|, not counting enclosing repeats; 0 where it needs no exchange. All split dims of one
// axis, whose ranks are sizes->ranks[axis].
int64_t uly_estimate_sent(const uly_graph *graph, const uly_graph_value *value, int axis, const uly_sizes *sizes);

// Bytes of all parameters, and the peak of a rank's values where each is stored from its definition to its last use. The program stores less: it fuses.
int64_t uly_estimate_parameters(const uly_graph_entry *entry);
int64_t uly_estimate_activations(uly_arena *arena, const uly_graph *graph, const uly_graph_entry *entry, const uly_sizes *sizes);

#endif
