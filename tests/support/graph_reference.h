// The oracle of whole specs: walks a checked graph in the order it is written and computes every value with runtime/reference/, in float64 on global tensors. Knows nothing
// of passes, ranks or kernels.
#ifndef ULY_TESTS_SUPPORT_GRAPH_REFERENCE_H
#define ULY_TESTS_SUPPORT_GRAPH_REFERENCE_H

#include "frontend/graph.h"
#include "runtime/base/arena.h"

typedef struct uly_graph_run {
  const uly_graph *graph;
  const uly_graph_entry *entry;
  const int64_t *sizes;        // by symbol
  const double *const *inputs; // by argument; ids and bools as numbers
  // The tensor in a weights file, with elements as float64; NULL where there is none.
  const double *(*param)(void *context, uly_str name, const uly_tensor_type *type);
  void *context;
  bool naive;     // as written and unfused, but every value of bf16 or f16 rounded to that: what others do
  uint64_t noise; // not 0: a seed of errors, of one rounding, in every number that is computed: what rounding may do to the results
} uly_graph_run;

// The results of the entry, in |arena|. ULY_INVALID_INPUT for a missing parameter, ULY_FAULT for an index out of range, ULY_UNSUPPORTED for an operation without a reference.
ULY_MUST_USE uly_status uly_graph_reference(uly_arena *arena, const uly_graph_run *run, double **out_results);

// Elements of a tensor of |type|, and its sizes.
int64_t uly_graph_elements(const uly_tensor_type *type, const int64_t *sizes, int64_t *out_dims);

#endif
