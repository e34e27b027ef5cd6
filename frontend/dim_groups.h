// What becomes of dims where the same elements, in the same order, are given other dims.
#ifndef ULY_FRONTEND_DIM_GROUPS_H
#define ULY_FRONTEND_DIM_GROUPS_H

#include "frontend/graph.h"

// Dims [in, in_end) of a value and [out, out_end) of the other form: the shortest runs, in order, that hold as many elements. One of them may be empty, where the other is 1.
typedef struct uly_dim_group {
  int32_t in, in_end, out, out_end;
} uly_dim_group;

enum { ULY_MAX_DIM_GROUPS = 2 * ULY_GRAPH_MAX_DIMS };

// How many groups; −1 where the numbers of elements differ, or are beyond all numbers.
int32_t uly_dim_groups(const uly_tensor_type *in, const uly_tensor_type *out, uly_dim_group *groups);

// The dim of |out| of which a rank holds a share where it holds one of dim |d| of |in|; −1 where its elements would be no share of a dim. A split dim stays the outermost of its group.
int32_t uly_dim_reshaped(const uly_tensor_type *in, const uly_tensor_type *out, int32_t d);

#endif
