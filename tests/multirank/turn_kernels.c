// Kernels of a small model for tests of ulyrun: z = x + table[ids], y = z with the global rows turned around, next = ids + 1. Compiled into turn_model.so.
#include "tests/multirank/turn_kernels.h"

static int64_t number(const uly_call *c, int i) { return c->val[i][0]; }

// Ops: x [B, rows, D], ids [B, rows], table, peers. Item s: a row, to everyone: [s][B][D].
void turn_spread(const uly_call *c) {
  int64_t B = number(c, TURN_B), rows = number(c, TURN_ROWS);
  const float *x = c->op[0].p[0], *table = c->op[2].p[0];
  const int32_t *ids = c->op[1].p[0];
  for (int64_t s = c->lo; s < c->hi; s++)
    for (int64_t b = 0; b < B; b++) {
      int64_t at = b * rows + s, id = ids[at];
      if (id < 0 || id >= TURN_IDS) {
        uint32_t none = 0;
        if (__atomic_compare_exchange_n(&c->fault->code, &none, (uint32_t)ULY_FAULT_INDEX_RANGE, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
          c->fault->a = id;
          c->fault->b = TURN_IDS;
          c->fault->n_at = 1;
          c->fault->at[0] = at;
        }
        id = 0;
      }
      for (int64_t p = 0; p < c->op[3].n; p++)
        for (int64_t d = 0; d < TURN_D; d++) ((float *)c->op[3].p[p])[(s * B + b) * TURN_D + d] = x[at * TURN_D + d] + table[id * TURN_D + d];
    }
}

// Ops: segments [s_p][B][D], ids, y, next. Item s: a row.
void turn_around(const uly_call *c) {
  int64_t B = number(c, TURN_B), rows = number(c, TURN_ROWS), S = number(c, TURN_S), start = number(c, TURN_START);
  for (int64_t s = c->lo; s < c->hi; s++) {
    int64_t from = S - 1 - (start + s), p = 0;
    while (from >= c->val[TURN_PEER_START][p] + c->val[TURN_PEER_ROWS][p]) p++;
    const float *z = (const float *)c->op[0].p[p] + (from - c->val[TURN_PEER_START][p]) * B * TURN_D;
    for (int64_t b = 0; b < B; b++) {
      int64_t at = b * rows + s;
      for (int64_t d = 0; d < TURN_D; d++) ((float *)c->op[2].p[0])[at * TURN_D + d] = z[b * TURN_D + d];
      ((int32_t *)c->op[3].p[0])[at] = ((const int32_t *)c->op[1].p[0])[at] + 1;
    }
  }
}
