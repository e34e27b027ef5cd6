// A strided copy of [n0][n1][n2] runs of bytes, from one or more sources to one or more destinations; calling convention in kernel_abi.h. With several
// pointers a side, each holds a range of one dim: the messages of an exchange. An index that several destinations hold goes to each; one that several
// sources hold comes from the first of them, one that no source holds is left alone.
//
// What a source and a destination both hold is a box of indices; runs that are neighbours on both sides are copied as one. Copies that no cache holds are
// stored past the caches: they need not be read first, which is a third of the traffic.
// Bits: a copy.
#include "codegen/cpu/templates/copy_bytes.h"

enum {
  BLOCK_BYTES = 4 << 10, // of source that all its destinations get before the next: gaps in what is read cost as much as reading them
  STREAM_FROM = 8 << 20, // bytes of a whole copy: with its source more than a rank's share of the last cache
};

// One side of the copy.
typedef struct side {
  const uly_arg *pointers;
  int64_t each; // 1: strides and offset are one a pointer
  const int64_t *stride[3], *offset, *first, *count;
  int64_t dim; // that the pointers cut, -1: none
} side;

typedef struct box {
  int64_t lo[3], hi[3];
} box;

// Cuts the box down to what pointer |p| holds. False: nothing.
ULY_INLINE bool clip(const side *s, int64_t p, box *b) {
  for (int d = 0; d < 3; d++) {
    if (s->dim != d) continue;
    int64_t lo = s->first[p], hi = lo + s->count[p];
    if (b->lo[d] < lo) b->lo[d] = lo;
    if (b->hi[d] > hi) b->hi[d] = hi;
    if (b->lo[d] >= b->hi[d]) return false;
  }
  return true;
}

ULY_INLINE char *place(const side *s, int64_t p, const int64_t *i) {
  int64_t row = s->each * p;
  char *at = (char *)s->pointers->p[p] + s->offset[row];
  for (int d = 0; d < 3; d++) at += (i[d] - (s->dim == d ? s->first[p] : 0)) * s->stride[d][row];
  return at;
}

typedef struct copy {
  const char *from;
  char *to;
  int64_t n[3], from_stride[3], to_stride[3], bytes;
} copy;

// Makes dims that are dense on both sides part of the run.
ULY_INLINE void join(copy *c) {
  for (int d = 2; d >= 0; d--) {
    if (c->n[d] != 1 && (c->from_stride[d] != c->bytes || c->to_stride[d] != c->bytes)) return;
    c->bytes *= c->n[d];
    c->n[d] = 1;
  }
}

__attribute__((noinline)) static void copy_run(char *to, const char *from, int64_t n, bool stream) {
  if (stream)
    stream_bytes(to, from, n);
  else
    copy_bytes(to, from, n);
}

__attribute__((noinline)) static void copy_box(const side *from, int64_t p, const side *to, int64_t q, const box *b, int64_t bytes, bool stream) {
  copy c = {.from = place(from, p, b->lo), .to = place(to, q, b->lo), .bytes = bytes};
  for (int d = 0; d < 3; d++) {
    c.n[d] = b->hi[d] - b->lo[d];
    c.from_stride[d] = from->stride[d][from->each * p];
    c.to_stride[d] = to->stride[d][to->each * q];
  }
  join(&c);
  for (int64_t i0 = 0; i0 < c.n[0]; i0++)
    for (int64_t i1 = 0; i1 < c.n[1]; i1++)
      for (int64_t i2 = 0; i2 < c.n[2]; i2++)
        copy_run(c.to + i0 * c.to_stride[0] + i1 * c.to_stride[1] + i2 * c.to_stride[2],
                 c.from + i0 * c.from_stride[0] + i1 * c.from_stride[1] + i2 * c.from_stride[2], c.bytes, stream);
}

ULY_KERNEL(uly_kernel_move) {
  const int64_t *const *v = call->val;
  const side from = {&call->op[ULY_MOVE_SRC], v[ULY_MOVE_SRC_EACH][0], {v[ULY_MOVE_SRC_0], v[ULY_MOVE_SRC_1], v[ULY_MOVE_SRC_2]},
                     v[ULY_MOVE_SRC_OFFSET],  v[ULY_MOVE_SRC_FIRST],   v[ULY_MOVE_SRC_COUNT],
                     v[ULY_MOVE_SRC_DIM][0]};
  const side to = {&call->op[ULY_MOVE_DST], v[ULY_MOVE_DST_EACH][0], {v[ULY_MOVE_DST_0], v[ULY_MOVE_DST_1], v[ULY_MOVE_DST_2]},
                   v[ULY_MOVE_DST_OFFSET],  v[ULY_MOVE_DST_FIRST],   v[ULY_MOVE_DST_COUNT],
                   v[ULY_MOVE_DST_DIM][0]};
  const int64_t n1 = val(call, ULY_MOVE_N1), n2 = val(call, ULY_MOVE_N2), bytes = val(call, ULY_MOVE_BYTES), row = n1 * n2 * bytes;
  const bool stream = val(call, ULY_MOVE_N0) * row >= STREAM_FROM;
  const int64_t rows = row >= BLOCK_BYTES ? 1 : BLOCK_BYTES / (row ? row : 1);
  if (n1 <= 0 || n2 <= 0) return;
  for (int64_t i0 = call->lo; i0 < call->hi; i0 += rows)
    for (int64_t p = from.pointers->n; p-- > 0;) // the first source that holds an index has the last word
      for (int64_t q = 0; q < to.pointers->n; q++) {
        box b = {{i0, 0, 0}, {i0 + rows < call->hi ? i0 + rows : call->hi, n1, n2}};
        if (clip(&from, p, &b) && clip(&to, q, &b)) copy_box(&from, p, &to, q, &b, bytes, stream);
      }
  if (stream) stream_end();
}
