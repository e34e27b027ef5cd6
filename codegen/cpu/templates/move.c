// A strided copy of [n0][n1][n2] runs of bytes, from one or more sources to one or more destinations; calling convention in kernel_abi.h. With several
// pointers a side, each holds a range of one dim: the messages of an exchange. An index that several destinations hold goes to each; one that no source
// holds is left alone.
// Bits: a copy.
#include "codegen/cpu/templates/copy_bytes.h"

// One side of the copy.
typedef struct side {
  const uly_arg *pointers;
  int64_t each; // 1: strides and offset are one a pointer
  const int64_t *stride[3], *offset, *first, *count;
  int64_t dim; // that the pointers cut, -1: none
} side;

ULY_INLINE bool holds(const side *s, int64_t p, const int64_t *i) {
  if (s->dim < 0) return true;
  int64_t at = i[s->dim];
  return at >= s->first[p] && at < s->first[p] + s->count[p];
}

ULY_INLINE char *place(const side *s, int64_t p, const int64_t *i) {
  int64_t row = s->each * p;
  char *at = (char *)s->pointers->p[p] + s->offset[row];
  for (int d = 0; d < 3; d++) at += (i[d] - (s->dim == d ? s->first[p] : 0)) * s->stride[d][row];
  return at;
}

static void move_run(const side *from, const side *to, const int64_t *i, int64_t bytes) {
  int64_t source = 0;
  while (source < from->pointers->n && !holds(from, source, i)) source++;
  if (source == from->pointers->n) return;
  const char *at = place(from, source, i);
  for (int64_t p = 0; p < to->pointers->n; p++)
    if (holds(to, p, i)) copy_bytes(place(to, p, i), at, bytes);
}

ULY_KERNEL(uly_kernel_move) {
  const int64_t *const *v = call->val;
  const side from = {&call->op[ULY_MOVE_SRC], v[ULY_MOVE_SRC_EACH][0], {v[ULY_MOVE_SRC_0], v[ULY_MOVE_SRC_1], v[ULY_MOVE_SRC_2]},
                     v[ULY_MOVE_SRC_OFFSET],  v[ULY_MOVE_SRC_FIRST],   v[ULY_MOVE_SRC_COUNT],
                     v[ULY_MOVE_SRC_DIM][0]};
  const side to = {&call->op[ULY_MOVE_DST], v[ULY_MOVE_DST_EACH][0], {v[ULY_MOVE_DST_0], v[ULY_MOVE_DST_1], v[ULY_MOVE_DST_2]},
                   v[ULY_MOVE_DST_OFFSET],  v[ULY_MOVE_DST_FIRST],   v[ULY_MOVE_DST_COUNT],
                   v[ULY_MOVE_DST_DIM][0]};
  int64_t n1 = val(call, ULY_MOVE_N1), n2 = val(call, ULY_MOVE_N2), bytes = val(call, ULY_MOVE_BYTES);
  for (int64_t i0 = call->lo; i0 < call->hi; i0++)
    for (int64_t i1 = 0; i1 < n1; i1++)
      for (int64_t i2 = 0; i2 < n2; i2++) move_run(&from, &to, (const int64_t[]){i0, i1, i2}, bytes);
}
