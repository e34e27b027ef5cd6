// Local sizes, starts and strides of a value, as nodes of the program: the one place that turns a type's distribution into numbers.
#ifndef ULY_PASSES_LAYOUT_H
#define ULY_PASSES_LAYOUT_H

#include "passes/program.h"
#include "passes/type.h"

typedef struct uly_layout {
  int32_t rank;
  int32_t order[ULY_GRAPH_MAX_DIMS];   // storage order: logical dims, outermost first. Dims that the grid splits come first
  uint32_t global[ULY_GRAPH_MAX_DIMS]; // nodes, by logical dim
  uint32_t local[ULY_GRAPH_MAX_DIMS];
  uint32_t start[ULY_GRAPH_MAX_DIMS];
  uint32_t stride[ULY_GRAPH_MAX_DIMS]; // elements, in storage order
  uint32_t elements;                   // product of the local sizes
} uly_layout;

uly_layout uly_layout_of(uly_program *program, const uly_names *names, const uly_type *type);
// The same value dense in the order that the spec writes its dims: what callers hold.
uly_layout uly_layout_row_major(uly_program *program, const uly_type *type);

// The size of a dim.
uint32_t uly_layout_dim(uly_program *program, uly_dim dim);
// What a rank of |axis| has of |dim| under |dist|: first index and count.
void uly_layout_cut(uly_program *program, int32_t axis, uly_dim dim, uly_dist dist, uint32_t *out_start, uint32_t *out_count);
uint32_t uly_layout_axis_size(uly_program *program, int32_t axis);

// Products and sums of nodes.
static inline uint32_t uly_mul(uly_program *p, uint32_t a, uint32_t b) { return uly_program_op(p, ULY_NODE_MUL, a, b); }
static inline uint32_t uly_add(uly_program *p, uint32_t a, uint32_t b) { return uly_program_op(p, ULY_NODE_ADD, a, b); }
// What |kind| (ULY_NODE_PEER_…) makes of |node| over the ranks of |axis|.
static inline uint32_t uly_over_peers(uly_program *p, uly_node_kind kind, uint32_t node, int32_t axis) {
  return uly_program_node(p, (uly_node){.kind = kind, .a = node, .value = axis});
}
static inline uint32_t uly_scale(uly_program *p, uint32_t a, int64_t factor) { return uly_mul(p, a, uly_program_const(p, factor)); }

#endif
