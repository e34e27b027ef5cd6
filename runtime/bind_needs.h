// What a bind would need, without one: `ulyc check --at`.
#ifndef ULY_RUNTIME_BIND_NEEDS_H
#define ULY_RUNTIME_BIND_NEEDS_H

#include "runtime/base/nodes.h"
#include "runtime/tables.h"

typedef struct uly_needs {
  uint32_t entry;                // row of the variant that runs
  int64_t value_bytes;           // of each rank, where peers map each other's memory: of intermediate values, and of what peers write to
  int64_t packed_bytes;          // of each process: weights as kernels read them
  int64_t *sent;                 // [n_exchanges]: what the busiest rank sends in one run, 0 of exchanges that the entry has not
  int64_t *times;                // [n_exchanges]: how often in a run
  int64_t busiest[ULY_MAX_AXES]; // what the busiest rank sends over each axis
} uly_needs;

// |symbols|: a number each; those that the entry does not need are not looked at. |grid|: ranks on each axis.
ULY_MUST_USE uly_status uly_bind_needs(const uly_tables *tables, uly_str entry, const int64_t *symbols, const int32_t *grid, uly_error *error,
                                       uly_needs *out_needs);
void uly_needs_free(uly_needs *needs);

#endif
