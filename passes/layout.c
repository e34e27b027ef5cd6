#include "passes/layout.h"

static uint32_t node3(uly_program *p, uly_node_kind kind, uint32_t a, uint32_t b, uint32_t c) {
  return uly_program_node(p, (uly_node){.kind = kind, .a = a, .b = b, .c = c});
}

static uint32_t axis_rank(uly_program *p, int32_t axis) { return uly_program_node(p, (uly_node){.kind = ULY_NODE_AXIS_RANK, .value = axis}); }

uint32_t uly_layout_axis_size(uly_program *p, int32_t axis) { return uly_program_node(p, (uly_node){.kind = ULY_NODE_AXIS_SIZE, .value = axis}); }

uint32_t uly_layout_dim(uly_program *p, uly_dim dim) {
  if (uly_dim_is_const(dim)) return uly_program_const(p, dim.add);
  uint32_t symbol = uly_program_node(p, (uly_node){.kind = ULY_NODE_SYM, .value = dim.symbol});
  return uly_add(p, uly_scale(p, symbol, dim.mul), uly_program_const(p, dim.add));
}

void uly_layout_cut(uly_program *p, int32_t axis, uly_dim dim, uly_dist dist, uint32_t *out_start, uint32_t *out_count) {
  uint32_t size = uly_layout_axis_size(p, axis), rank = axis_rank(p, axis);
  if (dist.kind == ULY_DIST_SPLIT) {
    // m·T is cut between whole units of T.
    int64_t unit = dim.symbol >= 0 && dim.add == 0 ? dim.mul : 1;
    uint32_t n = uly_layout_dim(p, unit == 1 ? dim : (uly_dim){dim.symbol, 1, 0});
    *out_start = uly_scale(p, node3(p, ULY_NODE_START, n, size, rank), unit);
    *out_count = uly_scale(p, node3(p, ULY_NODE_SHARE, n, size, rank), unit);
    return;
  }
  ULY_ASSERT(dist.kind == ULY_DIST_COVER || dist.kind == ULY_DIST_COVER_PARTIAL);
  uint32_t heads = uly_scale(p, uly_layout_dim(p, dim), dist.group), group = uly_program_const(p, dist.group);
  uint32_t first = node3(p, ULY_NODE_START, heads, size, rank), count = node3(p, ULY_NODE_SHARE, heads, size, rank);
  *out_start = uly_program_op(p, ULY_NODE_FDIV, first, group);
  uint32_t end = uly_program_op(p, ULY_NODE_CDIV, uly_add(p, first, count), group);
  *out_count = node3(p, ULY_NODE_SELECT, count, uly_program_op(p, ULY_NODE_SUB, end, *out_start), uly_program_const(p, 0));
}

static void set_sizes(uly_program *p, const uly_type *type, uly_layout *layout) {
  layout->rank = type->tensor.rank;
  for (int32_t d = 0; d < layout->rank; d++) {
    layout->global[d] = layout->local[d] = uly_layout_dim(p, type->tensor.dims[d]);
    layout->start[d] = uly_program_const(p, 0);
    for (int32_t a = 0; a < type->n_axes; a++)
      if (uly_dist_cuts(type->dist[a], d)) uly_layout_cut(p, a, type->tensor.dims[d], type->dist[a], &layout->start[d], &layout->local[d]);
  }
}

static void set_strides(uly_program *p, uly_layout *layout) {
  uint32_t stride = uly_program_const(p, 1);
  for (int32_t i = layout->rank - 1; i >= 0; i--) {
    int32_t d = layout->order[i];
    layout->stride[d] = stride;
    stride = uly_mul(p, stride, layout->local[d]);
  }
  layout->elements = stride;
}

uly_layout uly_layout_of(uly_program *p, const uly_names *names, const uly_type *type) {
  uly_layout layout = {0};
  set_sizes(p, type, &layout);
  bool placed[ULY_GRAPH_MAX_DIMS] = {false};
  int32_t n = 0;
  for (int32_t a = 0; a < names->n_axes; a++) {
    int32_t d = uly_type_row_dim(names, &type->tensor, a);
    if (d >= 0 && !placed[d]) placed[d] = true, layout.order[n++] = d;
  }
  for (int32_t d = 0; d < layout.rank; d++)
    if (!placed[d]) layout.order[n++] = d;
  set_strides(p, &layout);
  return layout;
}

uly_layout uly_layout_row_major(uly_program *p, const uly_type *type) {
  uly_layout layout = {0};
  set_sizes(p, type, &layout);
  for (int32_t d = 0; d < layout.rank; d++) layout.order[d] = d;
  set_strides(p, &layout);
  return layout;
}
