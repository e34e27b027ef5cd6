// What a spec costs at given sizes: memory of a rank, and bytes of each exchange, from the tables of the program that it becomes. Called by `ulyc check --at`.
#ifndef ULY_DRIVER_COSTS_H
#define ULY_DRIVER_COSTS_H

#include "driver/commands.h"
#include "runtime/tables.h"

// Sizes of the free symbols, and ranks of the grid's axes; 0: not given.
typedef struct uly_sizes {
  int64_t *symbols; // graph->n_symbols
  int64_t *ranks;   // graph->n_axes
} uly_sizes;

enum { ULY_SIZE_OVERFLOW = -1 };

// False where the dim is negative at these sizes; |out_size| may be ULY_SIZE_OVERFLOW.
bool uly_costs_dim(uly_dim dim, const uly_sizes *sizes, int64_t *out_size);
// Elements of a value; ULY_SIZE_OVERFLOW beyond 64 bits.
int64_t uly_costs_elements(const uly_tensor_type *type, const uly_sizes *sizes);
// Bytes of all parameters, as they stand in files.
int64_t uly_costs_parameters(const uly_graph_entry *entry);
// "1234 B" or "1.2 MB", at most 12 characters.
uly_str uly_costs_bytes_text(uly_arena *arena, int64_t bytes);

// The table of entry |entry|, whose program has |tables|; of all axes but the first |sizes| says the ranks. ULY_INVALID_ARGUMENT where it cannot run at these sizes.
ULY_MUST_USE uly_status uly_costs_add(uly_driver *driver, const uly_graph *graph, const uly_graph_entry *entry, const uly_tables *tables,
                                      const uly_sizes *sizes);

#endif
