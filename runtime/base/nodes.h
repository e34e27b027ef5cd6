// Evaluates size expressions (uly_node) for every rank of a grid at once, so that what depends on peers is there too.
//
// Evaluation itself never fails: an operation that overflows, divides by zero or lacks a symbol gives *no value*, which spreads to its users, but not through the arm that
// a SELECT does not take. Asking for such a value explains why there is none.
#ifndef ULY_RUNTIME_BASE_NODES_H
#define ULY_RUNTIME_BASE_NODES_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/abi.h"
#include "runtime/base/error.h"

#define ULY_NO_VALUE INT64_MIN

// Ranks are numbered with axis 0 fastest.
typedef struct uly_grid {
  uint32_t n_axes;
  int32_t size[ULY_MAX_AXES];
} uly_grid;

static inline int64_t uly_grid_stride(const uly_grid *grid, uint32_t axis) {
  int64_t stride = 1;
  for (uint32_t a = 0; a < axis; a++) stride *= grid->size[a];
  return stride;
}
static inline int64_t uly_grid_ranks(const uly_grid *grid) { return uly_grid_stride(grid, grid->n_axes); }
static inline int64_t uly_grid_place(const uly_grid *grid, int64_t rank, uint32_t axis) { return rank / uly_grid_stride(grid, axis) % grid->size[axis]; }
// The rank that differs from |rank| in its place on |axis| alone.
static inline int64_t uly_grid_peer(const uly_grid *grid, int64_t rank, uint32_t axis, int64_t place) {
  return rank + (place - uly_grid_place(grid, rank, axis)) * uly_grid_stride(grid, axis);
}

// The values of a node table at all ranks. Borrows |nodes| and |symbols|.
typedef struct uly_nodes {
  const uly_node *nodes;
  uint32_t n_nodes, n_symbols;
  const int64_t *symbols; // ULY_NO_VALUE where unset; NULL: none
  uly_grid grid;          // n_axes = 0 where only what depends on no rank is wanted
  int64_t n_ranks;
  int64_t *values; // [n_nodes][n_ranks]
} uly_nodes;

// |values| is the caller's, n_nodes · n_ranks numbers. Operands are ids of earlier nodes (tables_check.c).
void uly_nodes_eval(uly_nodes *nodes);
// Node |node| at |rank|, or ULY_OVERFLOW (ULY_INVALID_ARGUMENT for a missing symbol) with the reason; ULY_NONE has no value either.
ULY_MUST_USE uly_status uly_nodes_get(const uly_nodes *nodes, uint32_t node, int64_t rank, uly_error *error, int64_t *out_value);
// The same for what has to be a size in bytes or items, 0 … 2^47: ULY_INVALID_ARGUMENT where it is negative, ULY_OVERFLOW where it is beyond.
ULY_MUST_USE uly_status uly_nodes_size(const uly_nodes *nodes, uint32_t node, int64_t rank, uly_error *error, int64_t *out_value);

#endif
