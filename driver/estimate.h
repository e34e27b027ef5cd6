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

// False where the dim is negative at these sizes; |out_size| may be ULY_SIZE_OVERFLOW.
bool uly_estimate_dim(uly_dim dim, const uly_sizes *sizes, int64_t *out_size);

// Elements of a value; ULY_SIZE_OVERFLOW beyond 64 bits.
int64_t uly_estimate_elements(const uly_tensor_type *type, const uly_sizes *sizes);

// Bytes that the busiest rank sends over |axis| in one pass over |value|, not counting enclosing repeats; 0 where it needs no exchange. What masks and scores capture is not
// counted.
int64_t uly_estimate_sent(const uly_graph *graph, const uly_graph_value *value, int axis, const uly_sizes *sizes);

// Bytes of all parameters, and the peak of a rank's values where each is stored from its definition to its last use. The program stores less: it fuses.
int64_t uly_estimate_parameters(const uly_graph_entry *entry);
int64_t uly_estimate_activations(uly_arena *arena, const uly_graph *graph, const uly_graph_entry *entry, const uly_sizes *sizes);

#endif
