// A strided copy of [n0] … [n5] runs of bytes, from one or more sources to one or more destinations; calling convention in kernel_abi.h. With several
// pointers a side, each holds a range of one dim: the messages of an exchange. An index that several destinations hold goes to each; one that several
// sources hold comes from the first of them, one that no source holds is left alone.
//
// What a source and a destination both hold is a box of indices; runs that are neighbours on both sides are copied as one. Copies that no cache holds are
// stored past the caches: they need not be read first, which is a third of the traffic.
// Bits: a copy.
#include "codegen/cpu/templates/copy_bytes.h"

enum {
  BLOCK_BYTES = 4 << 10, // of source that all its destinations get before the next: gaps in what is read cost as much as reading them
  WHOLE_BYTES = 1 << 30, // of source that has one destination, and is its only source
  STREAM_FROM = 8 << 20, // bytes of a whole copy: with its source more than a rank's share of the last cache
};

// One side of the copy.
typedef struct side {
  const uly_arg *pointers;
  int64_t each; // 1: strides and offset are one a pointer
  const int64_t *const *stride, *offset, *first, *count;
  int64_t dim, base; // that the pointers cut, -1: none; what |first| counts from
} side;

typedef struct box {
  int64_t lo[ULY_MOVE_DIMS], hi[ULY_MOVE_DIMS];
} box;

// Cuts the box down to what pointer |p| holds. False: nothing.
ULY_INLINE bool clip(const side *s, int64_t p, box *b) {
  if (s->dim < 0) return true;
  int64_t lo = s->first[p] - s->base, hi = lo + s->count[p];
  if (b->lo[s->dim] < lo) b->lo[s->dim] = lo;
  if (b->hi[s->dim] > hi) b->hi[s->dim] = hi;
  return b->lo[s->dim] < b->hi[s->dim];
}

ULY_INLINE char *place(const side *s, int64_t p, const int64_t *i) {
  int64_t row = s->each * p;
  char *at = (char *)s->pointers->p[p] + s->offset[row];
  for (int d = 0; d < ULY_MOVE_DIMS; d++) at += i[d] * s->stride[d][row];
  return s->dim < 0 ? at : at - (s->first[p] - s->base) * s->stride[s->dim][row];
}

typedef struct copy {
  const char *from;
  char *to;
  int64_t n[ULY_MOVE_DIMS], from_stride[ULY_MOVE_DIMS], to_stride[ULY_MOVE_DIMS], bytes;
} copy;

// Adds dim |d| of a box in front of those that |c| has, from |at| on; returns where they begin now. A dim that is dense on both sides becomes part of the run, or of the
// dim behind it.
ULY_INLINE int add_dim(copy *c, int at, int64_t n, int64_t from_stride, int64_t to_stride) {
  if (n == 1) return at;
  if (at == ULY_MOVE_DIMS && from_stride == c->bytes && to_stride == c->bytes) {
    c->bytes *= n;
    return at;
  }
  if (at < ULY_MOVE_DIMS && from_stride == c->n[at] * c->from_stride[at] && to_stride == c->n[at] * c->to_stride[at]) {
    c->n[at] *= n;
    return at;
  }
  c->n[--at] = n, c->from_stride[at] = from_stride, c->to_stride[at] = to_stride;
  return at;
}

__attribute__((noinline)) static void copy_run(char *to, const char *from, int64_t n, bool stream) {
  if (stream)
    stream_bytes(to, from, n);
  else
    copy_bytes(to, from, n);
}

// The outer three dims around the inner three.
ULY_INLINE void copy_dims(const copy *c, bool stream) {
  const int64_t *n = c->n, *f = c->from_stride, *t = c->to_stride;
  for (int64_t i0 = 0; i0 < n[0]; i0++)
    for (int64_t i1 = 0; i1 < n[1]; i1++)
      for (int64_t i2 = 0; i2 < n[2]; i2++) {
        const char *from = c->from + i0 * f[0] + i1 * f[1] + i2 * f[2];
        char *to = c->to + i0 * t[0] + i1 * t[1] + i2 * t[2];
        for (int64_t i3 = 0; i3 < n[3]; i3++)
          for (int64_t i4 = 0; i4 < n[4]; i4++)
            for (int64_t i5 = 0; i5 < n[5]; i5++) copy_run(to + i3 * t[3] + i4 * t[4] + i5 * t[5], from + i3 * f[3] + i4 * f[4] + i5 * f[5], c->bytes, stream);
      }
}

__attribute__((noinline)) static void copy_box(const side *from, int64_t p, const side *to, int64_t q, const box *b, int64_t bytes, bool stream) {
  copy c = {.from = place(from, p, b->lo), .to = place(to, q, b->lo), .bytes = bytes};
  int at = ULY_MOVE_DIMS;
  for (int d = ULY_MOVE_DIMS; d-- > 0;) at = add_dim(&c, at, b->hi[d] - b->lo[d], from->stride[d][from->each * p], to->stride[d][to->each * q]);
  while (at > 0) c.n[--at] = 1, c.from_stride[at] = c.to_stride[at] = 0;
  copy_dims(&c, stream);
}

ULY_KERNEL(uly_kernel_move) {
  const int64_t *const *v = call->val;
  const side from = {&call->op[ULY_MOVE_SRC], v[ULY_MOVE_SRC_EACH][0], v + ULY_MOVE_SRC_0,     v[ULY_MOVE_SRC_OFFSET],
                     v[ULY_MOVE_SRC_FIRST],   v[ULY_MOVE_SRC_COUNT],   v[ULY_MOVE_SRC_DIM][0], v[ULY_MOVE_SRC_BASE][0]};
  const side to = {&call->op[ULY_MOVE_DST], v[ULY_MOVE_DST_EACH][0], v + ULY_MOVE_DST_0,     v[ULY_MOVE_DST_OFFSET],
                   v[ULY_MOVE_DST_FIRST],   v[ULY_MOVE_DST_COUNT],   v[ULY_MOVE_DST_DIM][0], 0};
  const int64_t bytes = val(call, ULY_MOVE_BYTES);
  box all = {{0}, {0}};
  int64_t row = bytes;
  for (int d = 1; d < ULY_MOVE_DIMS; d++) row *= all.hi[d] = val(call, ULY_MOVE_N0 + d);
  const bool stream = val(call, ULY_MOVE_N0) * row >= STREAM_FROM;
  if (row <= 0) return;
  const int64_t block = from.pointers->n > 1 || to.pointers->n > 1 ? BLOCK_BYTES : WHOLE_BYTES;
  const int64_t rows = row >= block ? 1 : block / row;
  for (int64_t i0 = call->lo; i0 < call->hi; i0 += rows)
    for (int64_t p = from.pointers->n; p-- > 0;) // the first source that holds an index has the last word
      for (int64_t q = 0; q < to.pointers->n; q++) {
        box b = all;
        b.lo[0] = i0, b.hi[0] = i0 + rows < call->hi ? i0 + rows : call->hi;
        if (clip(&from, p, &b) && clip(&to, q, &b)) copy_box(&from, p, &to, q, &b, bytes, stream);
      }
  if (stream) stream_end();
}
