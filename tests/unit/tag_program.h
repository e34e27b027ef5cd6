// The exchange of Ulysses attention with nothing but tags in it. Every element of q, k and v says which (kind, b, s, h, d) it is; the program sends rows to the owners of heads, checks there that
// every element of the receive buffer is the one that belongs in its place, sends the attention's output back, and writes what arrives into o, where
// the test checks it. A wrong byte anywhere leaves a wrong o.
#ifndef ULY_TESTS_UNIT_TAG_PROGRAM_H
#define ULY_TESTS_UNIT_TAG_PROGRAM_H

#include "runtime/bound.h"
#include "tests/unit/program_fixture.h"

typedef struct tag_shape {
  int64_t h, k, dh;
} tag_shape;

// Symbols in this order. ROUNDS: how often the exchanges are done in one run, each with other tags and, in turn, in one of two slots. DELAY: 0, or the seed of random delays in kernels.
enum { TAG_B, TAG_S, TAG_ROUNDS, TAG_DELAY, TAG_N_SYMBOLS };
// Tensors: q [B, S, H, Dh], k and v [B, S, K, Dh], o [B, S, H, Dh], i64, S split.
enum { TAG_Q, TAG_K, TAG_V, TAG_O, TAG_N_TENSORS };

fx_program *tag_program(tag_shape shape);

int64_t tag_of(int kind, int64_t b, int64_t s, int64_t h, int64_t d);
// Caller's tensors of one rank, filled; rank's rows [start, start + rows). Freed with tag_free.
typedef struct tag_data {
  int64_t *tensor[TAG_N_TENSORS];
} tag_data;
tag_data tag_make(tag_shape shape, int64_t b, int64_t start, int64_t rows);
void tag_free(tag_data *data);
// Elements of o that are not what they have to be after |rounds|.
int64_t tag_wrong(const tag_data *data, tag_shape shape, int64_t b, int64_t start, int64_t rows, int64_t rounds);
// Bytes that rank |r| of |p| sends in one round: architecture's formula.
uint64_t tag_bytes(tag_shape shape, int64_t b, int64_t s, int64_t p, int64_t r);

#endif
