#include "tests/unit/tag_program.h"

#include <stdlib.h>
#include <unistd.h>

int64_t tag_of(int kind, int64_t b, int64_t s, int64_t h, int64_t d) { return ((((kind + 1) * 64 + b) * 4096 + s) * 256 + h) * 256 + d; }
static int64_t in_round(int64_t tag, int64_t round) { return tag + (round << 48); }

static const int64_t *numbers(const uly_call *c, int i) { return c->val[i]; }
static int64_t number(const uly_call *c, int i) { return c->val[i][0]; }

// A seeded wait of up to 300 µs before items of a step.
static void dawdle(const uly_call *c, int64_t seed, int64_t rank, int64_t round) {
  if (!seed) return;
  uint64_t z = (uint64_t)(seed * 1000003 + rank * 7919 + round * 104729 + c->lo);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  if (z >> 62 == 0) usleep((unsigned)(z % 300));
}

static void tick(const uly_call *c) { ++*(int64_t *)c->op[0].p[0]; }
static void reset(const uly_call *c) { *(int64_t *)c->op[0].p[0] = 0; }

enum { V_B, V_ROWS, V_DELAY, V_RANK, V_PEER_H0, V_PEER_H, V_PEER_K0, V_PEER_K, V_H, V_K, V_DH };

static int64_t *put(int64_t *to, const int64_t *from, int64_t heads, int64_t dh, int64_t round) {
  for (int64_t i = 0; i < heads * dh; i++) *to++ = in_round(from[i], round);
  return to;
}

// Ops: round, q, k, v, peers. Item s: row s of every batch, to every peer: [s][B][h | k | k][Dh].
static void scatter(const uly_call *c) {
  int64_t B = number(c, V_B), rows = number(c, V_ROWS), H = number(c, V_H), K = number(c, V_K), Dh = number(c, V_DH), round = *(const int64_t *)c->op[0].p[0];
  const int64_t *q = c->op[1].p[0], *k = c->op[2].p[0], *v = c->op[3].p[0];
  for (int64_t s = c->lo; s < c->hi; s++) {
    dawdle(c, number(c, V_DELAY), number(c, V_RANK), round);
    for (int64_t p = 0; p < c->op[4].n; p++) {
      int64_t h0 = numbers(c, V_PEER_H0)[p], h = numbers(c, V_PEER_H)[p], k0 = numbers(c, V_PEER_K0)[p], kn = numbers(c, V_PEER_K)[p];
      int64_t *to = (int64_t *)c->op[4].p[p] + s * B * (h + 2 * kn) * Dh;
      for (int64_t b = 0; b < B; b++) {
        to = put(to, q + ((b * rows + s) * H + h0) * Dh, h, Dh, round);
        to = put(to, k + ((b * rows + s) * K + k0) * Dh, kn, Dh, round);
        to = put(to, v + ((b * rows + s) * K + k0) * Dh, kn, Dh, round);
      }
    }
  }
}

enum { A_B, A_S, A_DELAY, A_RANK, A_H0, A_H, A_K0, A_K, A_GROUP, A_DH, A_PEER_ROWS, A_PEER_START };

static bool is_right(const int64_t *x, int kind, int64_t b, int64_t s, int64_t first, int64_t heads, int64_t dh, int64_t round) {
  for (int64_t h = 0; h < heads; h++)
    for (int64_t d = 0; d < dh; d++)
      if (x[h * dh + d] != in_round(tag_of(kind, b, s, first + h, d), round)) return false;
  return true;
}

// Ops: round, what was received as one tensor, segments, peers of the way back. Item s: global row s. Where everything in the row is right, o is q's tag.
static void attend(const uly_call *c) {
  int64_t B = number(c, A_B), H0 = number(c, A_H0), H = number(c, A_H), K0 = number(c, A_K0), K = number(c, A_K), Dh = number(c, A_DH);
  int64_t round = *(const int64_t *)c->op[0].p[0], width = (H + 2 * K) * Dh;
  for (int64_t s = c->lo; s < c->hi; s++) {
    dawdle(c, number(c, A_DELAY), number(c, A_RANK), round + 1000);
    int64_t p = 0;
    while (s >= numbers(c, A_PEER_START)[p] + numbers(c, A_PEER_ROWS)[p]) p++;
    int64_t local = s - numbers(c, A_PEER_START)[p];
    for (int64_t b = 0; b < B; b++) {
      const int64_t *x = (const int64_t *)c->op[1].p[0] + (s * B + b) * width, *segment = (const int64_t *)c->op[2].p[p] + (local * B + b) * width;
      bool right = x == segment && is_right(x, TAG_Q, b, s, H0, H, Dh, round) && is_right(x + H * Dh, TAG_K, b, s, K0, K, Dh, round) &&
                   is_right(x + (H + K) * Dh, TAG_V, b, s, K0, K, Dh, round);
      int64_t *to = (int64_t *)c->op[3].p[p] + (local * B + b) * H * Dh;
      for (int64_t i = 0; i < H * Dh; i++) to[i] = right ? x[i] : -1;
      for (int64_t h = 0; h < H; h++) // the kv head that the query head needs is here
        if ((H0 + h) / number(c, A_GROUP) < K0 || (H0 + h) / number(c, A_GROUP) >= K0 + K) to[h * Dh] = -2;
    }
  }
}

enum { C_B, C_ROWS, C_H, C_DH, C_PEER_H0, C_PEER_H };

// Ops: segments of the way back [s][B][h_p][Dh], o.
static void collect(const uly_call *c) {
  int64_t B = number(c, C_B), rows = number(c, C_ROWS), H = number(c, C_H), Dh = number(c, C_DH);
  for (int64_t s = c->lo; s < c->hi; s++)
    for (int64_t p = 0; p < c->op[0].n; p++)
      for (int64_t b = 0; b < B; b++)
        for (int64_t i = 0; i < numbers(c, C_PEER_H)[p] * Dh; i++)
          ((int64_t *)c->op[1].p[0])[((b * rows + s) * H + numbers(c, C_PEER_H0)[p]) * Dh + i] =
              ((const int64_t *)c->op[0].p[p])[(s * B + b) * numbers(c, C_PEER_H)[p] * Dh + i];
}

typedef struct sizes {
  uint32_t axis, b, s, rounds, delay, rows, start, h0, h, k0, k, cols, H, K, Dh, group;
} sizes;

static sizes make_sizes(fx_program *f, tag_shape shape) {
  sizes z = {.b = fx_symbol(f, "B", 1), .s = fx_symbol(f, "S", 0), .rounds = fx_symbol(f, "rounds", 0), .delay = fx_symbol(f, "delay", 0)};
  z.axis = fx_axis(f, "sp");
  z.H = fx_const(f, shape.h);
  z.K = fx_const(f, shape.k);
  z.Dh = fx_const(f, shape.dh);
  z.group = fx_const(f, shape.h / shape.k);
  z.rows = fx_share(f, z.s, z.axis);
  z.start = fx_start(f, z.s, z.axis);
  z.h0 = fx_start(f, z.H, z.axis);
  z.h = fx_share(f, z.H, z.axis);
  z.k0 = uly_program_op(f->p, ULY_NODE_FDIV, z.h0, z.group);
  uint32_t end = uly_program_op(f->p, ULY_NODE_CDIV, fx_add(f, z.h0, z.h), z.group);
  z.k = fx_node3(f, ULY_NODE_SELECT, z.h, fx_sub(f, end, z.k0), fx_const(f, 0));
  z.k0 = fx_node3(f, ULY_NODE_SELECT, z.h, z.k0, fx_const(f, 0));
  z.cols = fx_add(f, z.h, fx_mul(f, fx_const(f, 2), z.k));
  return z;
}

static uint32_t exchange(fx_program *f, const sizes *z, const char *name, uint32_t rows, uint32_t row_start, uint32_t cols) {
  uint32_t unit = fx_mul(f, fx_mul(f, z->b, z->Dh), fx_const(f, 8));
  uint32_t receive = fx_mul(f, unit, fx_mul(f, fx_peers(f, ULY_NODE_PEER_SUM, rows, z->axis), cols));
  uint32_t send = fx_mul(f, unit, fx_mul(f, rows, fx_peers(f, ULY_NODE_PEER_SUM, cols, z->axis)));
  uly_exchange x = {.axis = z->axis,
                    .unit = unit,
                    .rows = rows,
                    .row_start = row_start,
                    .cols = cols,
                    .col_start = fx_peers(f, ULY_NODE_PEER_BEFORE, cols, z->axis),
                    .dtype = ULY_I64,
                    .name = fx_name(f, name),
                    .spec_line = 5};
  x.receive = fx_buffer(f, "receive", receive, ULY_BUFFER_RECEIVE);
  x.send = fx_buffer(f, "send", send, 0);
  f->p->buffers[x.receive].slots = f->p->buffers[x.send].slots = 2;
  return uly_program_add_exchanges(f->p, x);
}

static void slotted(uly_operand *o) { o->slot[0] = 1; }

static void exchange_step(fx_program *f, uly_step_kind kind, uint32_t x) {
  fx_step(f, kind, x, 0);
  slotted(fx_operand(f, ULY_OPERAND_BUFFER, f->p->exchanges[x].receive, kind == ULY_STEP_WAIT ? ULY_READ : ULY_WRITE));
}

static void add_scatter(fx_program *f, const sizes *z, uint32_t round, uint32_t forth) {
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "scatter", scatter), z->rows);
  fx_operand(f, ULY_OPERAND_BUFFER, round, ULY_READ);
  for (uint32_t t = TAG_Q; t <= TAG_V; t++) fx_operand(f, ULY_OPERAND_TENSOR, t, ULY_READ);
  slotted(fx_operand(f, ULY_OPERAND_PEERS, forth, ULY_WRITE));
  const uint32_t values[] = {z->b, z->rows, z->delay, fx_place(f, z->axis)}, peers[] = {z->h0, z->h, z->k0, z->k}, more[] = {z->H, z->K, z->Dh};
  for (int i = 0; i < 4; i++) fx_value(f, values[i], ULY_NONE);
  for (int i = 0; i < 4; i++) fx_value(f, peers[i], z->axis);
  for (int i = 0; i < 3; i++) fx_value(f, more[i], ULY_NONE);
}

static void add_attend(fx_program *f, const sizes *z, uint32_t round, uint32_t forth, uint32_t back) {
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "attend", attend), z->s);
  fx_operand(f, ULY_OPERAND_BUFFER, round, ULY_READ);
  slotted(fx_operand(f, ULY_OPERAND_BUFFER, f->p->exchanges[forth].receive, ULY_READ));
  slotted(fx_operand(f, ULY_OPERAND_SEGMENTS, forth, ULY_READ));
  slotted(fx_operand(f, ULY_OPERAND_PEERS, back, ULY_WRITE));
  const uint32_t values[] = {z->b, z->s, z->delay, fx_place(f, z->axis), z->h0, z->h, z->k0, z->k, z->group, z->Dh};
  for (int i = 0; i < 10; i++) fx_value(f, values[i], ULY_NONE);
  fx_value(f, z->rows, z->axis);
  fx_value(f, z->start, z->axis);
}

static void add_collect(fx_program *f, const sizes *z, uint32_t back) {
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "collect", collect), z->rows);
  slotted(fx_operand(f, ULY_OPERAND_SEGMENTS, back, ULY_READ));
  fx_operand(f, ULY_OPERAND_TENSOR, TAG_O, ULY_WRITE);
  const uint32_t values[] = {z->b, z->rows, z->H, z->Dh};
  for (int i = 0; i < 4; i++) fx_value(f, values[i], ULY_NONE);
  fx_value(f, z->h0, z->axis);
  fx_value(f, z->h, z->axis);
}

fx_program *tag_program(tag_shape shape) {
  fx_program *f = fx_create();
  sizes z = make_sizes(f, shape);
  const uint32_t q[] = {z.b, z.s, z.H, z.Dh}, kv[] = {z.b, z.s, z.K, z.Dh};
  fx_tensor(f, ULY_INPUT, "q", ULY_I64, 4, q);
  fx_tensor(f, ULY_INPUT, "k", ULY_I64, 4, kv);
  fx_tensor(f, ULY_INPUT, "v", ULY_I64, 4, kv);
  fx_tensor(f, ULY_OUTPUT, "o", ULY_I64, 4, q);
  for (uint32_t t = 0; t < TAG_N_TENSORS; t++) fx_cut(f, t, 1, z.axis);
  uint32_t round = fx_buffer(f, "round", fx_const(f, 8), 0);
  uint32_t forth = exchange(f, &z, "q, k, v", z.rows, z.start, z.cols), back = exchange(f, &z, "o", z.h, z.h0, z.rows);
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "reset", reset), fx_const(f, 1));
  fx_operand(f, ULY_OPERAND_BUFFER, round, ULY_WRITE);
  uint32_t loop = fx_step(f, ULY_STEP_LOOP, 0, z.rounds);
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "tick", tick), fx_const(f, 1));
  fx_operand(f, ULY_OPERAND_BUFFER, round, ULY_READ | ULY_WRITE);
  exchange_step(f, ULY_STEP_POST, forth);
  add_scatter(f, &z, round, forth);
  exchange_step(f, ULY_STEP_SEND, forth);
  exchange_step(f, ULY_STEP_POST, back);
  exchange_step(f, ULY_STEP_WAIT, forth);
  add_attend(f, &z, round, forth, back);
  exchange_step(f, ULY_STEP_SEND, back);
  exchange_step(f, ULY_STEP_WAIT, back);
  add_collect(f, &z, back);
  fx_end(f, loop);
  f->p->buffers[round].live_from = 0;
  fx_entry(f, "attention", 0, TAG_N_TENSORS, 0, 0);
  fx_finish(f);
  return f;
}

// ---- data ---------------------------------------------------------------------------------------------------------------------------------

tag_data tag_make(tag_shape shape, int64_t b, int64_t start, int64_t rows) {
  tag_data data;
  for (int t = 0; t < TAG_N_TENSORS; t++) {
    int64_t heads = t == TAG_Q || t == TAG_O ? shape.h : shape.k, *x = calloc((size_t)(b * rows * heads * shape.dh) + 1, sizeof *x);
    ULY_ASSERT(x);
    data.tensor[t] = x;
    for (int64_t i = 0; t != TAG_O && i < b * rows * heads * shape.dh; i++) {
      int64_t row = i / (heads * shape.dh);
      x[i] = tag_of(t, row / rows, start + row % rows, i / shape.dh % heads, i % shape.dh);
    }
  }
  return data;
}

void tag_free(tag_data *data) {
  for (int t = 0; t < TAG_N_TENSORS; t++) free(data->tensor[t]);
}

int64_t tag_wrong(const tag_data *data, tag_shape shape, int64_t b, int64_t start, int64_t rows, int64_t rounds) {
  int64_t wrong = 0;
  for (int64_t i = 0; i < b * rows * shape.h * shape.dh; i++) {
    int64_t row = i / (shape.h * shape.dh), want = tag_of(TAG_Q, row / rows, start + row % rows, i / shape.dh % shape.h, i % shape.dh);
    wrong += data->tensor[TAG_O][i] != (rounds ? in_round(want, rounds) : 0);
  }
  return wrong;
}

static int64_t share(int64_t n, int64_t p, int64_t r) { return n / p + (r < n % p); }

uint64_t tag_bytes(tag_shape shape, int64_t b, int64_t s, int64_t p, int64_t r) {
  int64_t g = shape.h / shape.k, others = 0, rows = 0, h0 = 0;
  for (int64_t j = 0; j < p; j++) {
    int64_t h = share(shape.h, p, j), k = h ? (h0 + h + g - 1) / g - h0 / g : 0;
    if (j != r) others += h + 2 * k, rows += share(s, p, j);
    h0 += h;
  }
  return (uint64_t)(8 * b * shape.dh * (share(s, p, r) * others + share(shape.h, p, r) * rows));
}
