// An exchange whose receive buffers and offsets go past 2^32 elements. Memory that nobody touches costs nothing, so a few marks in 9 GiB do.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>

#include "runtime/bound.h"
#include "tests/unit/program_fixture.h"
#include "tests/unit/rank_threads.h"

enum { RANKS = 3 };
static const int64_t row_bytes = 3 << 20, step_rows = 64; // a mark every so many rows

static unsigned char mark(int64_t from, int64_t to, int64_t row) { return (unsigned char)(1 + (from * 3 + to * 5 + row) % 251); }

// Ops: peers. Values: own rank, own rows. Item p: the message to rank p.
static void put(const uly_call *c) {
  int64_t rank = c->val[0][0], rows = c->val[1][0];
  for (int64_t p = c->lo; p < c->hi; p++)
    for (int64_t row = rows - 1; row >= 0; row -= step_rows) ((unsigned char *)c->op[0].p[p])[row * row_bytes + row_bytes - 1] = mark(rank, p, row);
}

// Ops: segments, the receive buffer, out. Values: own rank, rows and first row of each rank. Counts marks that are wrong at out[0] and all at out[1].
static void check(const uly_call *c) {
  int64_t rank = c->val[0][0], *out = c->op[2].p[0];
  for (int64_t p = 0; p < c->op[0].n; p++)
    for (int64_t row = c->val[1][p] - 1; row >= 0; row -= step_rows, out[1]++) {
      int64_t at = row * row_bytes + row_bytes - 1;
      const unsigned char *segment = c->op[0].p[p], *buffer = c->op[1].p[0];
      out[0] += segment[at] != mark(p, rank, row) || buffer[c->val[2][p] * row_bytes + at] != mark(p, rank, row);
    }
}

static fx_program *big_program(void) {
  fx_program *f = fx_create();
  uint32_t s = fx_symbol(f, "S", 1), axis = fx_axis(f, "sp"), two = fx_const(f, 2);
  fx_tensor(f, ULY_OUTPUT, "out", ULY_I64, 1, &two);
  uint32_t rows = fx_share(f, s, axis), start = fx_start(f, s, axis), unit = fx_const(f, row_bytes), one = fx_const(f, 1);
  uly_exchange x = {
      .axis = axis, .unit = unit, .rows = rows, .row_start = start, .cols = one, .col_start = fx_const(f, 0), .dtype = ULY_U8, .name = fx_name(f, "big")};
  x.receive = fx_buffer(f, "receive", fx_mul(f, unit, s), ULY_BUFFER_RECEIVE);
  x.send = fx_buffer(f, "send", one, 0);
  uint32_t big = uly_program_add_exchanges(f->p, x);
  fx_step(f, ULY_STEP_POST, big, 0);
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "put", put), fx_size(f, axis));
  fx_operand(f, ULY_OPERAND_PEERS, big, ULY_WRITE);
  fx_value(f, fx_place(f, axis), ULY_NONE);
  fx_value(f, rows, ULY_NONE);
  fx_step(f, ULY_STEP_SEND, big, 0);
  fx_step(f, ULY_STEP_WAIT, big, 0);
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "check", check), one);
  fx_operand(f, ULY_OPERAND_SEGMENTS, big, ULY_READ);
  fx_operand(f, ULY_OPERAND_BUFFER, x.receive, ULY_READ);
  fx_operand(f, ULY_OPERAND_TENSOR, 0, ULY_WRITE);
  fx_value(f, fx_place(f, axis), ULY_NONE);
  fx_value(f, rows, axis);
  fx_value(f, start, axis);
  fx_entry(f, "big", 0, 1, 0, 0);
  fx_finish(f);
  return f;
}

typedef struct job {
  uly_loaded *loaded;
  int64_t s, out[RANKS][2];
  uint64_t sent[RANKS];
  uly_status status[RANKS];
  uly_error error[RANKS];
} job;

static void body(uly_comm *comm, void *context) {
  job *j = context;
  int r = comm->rank;
  uly_bound *bound = NULL;
  uly_bind_options options = {.symbols = &j->s, .comms = {comm}, .threads = 1};
  void *tensors[] = {j->out[r]};
  j->status[r] = uly_bind(j->loaded, &options, &j->error[r], &bound);
  if (j->status[r] == ULY_OK) j->status[r] = uly_run(bound, tensors, &j->error[r]);
  j->sent[r] = comm->sent_bytes;
  uly_bound_destroy(bound);
}

static void offsets_past_32_bits(void **state) {
  (void)state;
  fx_program *f = big_program();
  job j = {.s = 3001}; // 9 GiB
  uly_error error;
  assert_true(j.s * row_bytes > (int64_t)1 << 33);
  assert_int_equal(uly_loaded_create(&f->model, &error, &j.loaded), ULY_OK);
  run_ranks(RANKS, 60, body, &j);
  for (int r = 0; r < RANKS; r++) {
    if (j.status[r] != ULY_OK) fail_msg("%s", j.error[r].text);
    assert_int_equal(j.out[r][0], 0);
    assert_true(j.out[r][1] >= j.s / step_rows);
    assert_true(j.sent[r] == (uint64_t)((j.s / RANKS + (r < j.s % RANKS)) * row_bytes * (RANKS - 1)));
  }
  uly_loaded_destroy(j.loaded);
  fx_destroy(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(offsets_past_32_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
