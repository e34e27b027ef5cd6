// Grids of two axes: every rank belongs to one group a axis, exchanges run along each, and what one rank says at bind reaches every other.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include "runtime/bound.h"
#include "tests/unit/program_fixture.h"
#include "tests/unit/rank_threads.h"

enum { N0 = 2, N1 = 3, RANKS = N0 * N1 };

// Ops: in (or absent: the own number, value 0), peers. The number goes to every peer of the axis.
static void give(const uly_call *c) {
  int64_t number = c->op[0].n ? *(const int64_t *)c->op[0].p[0] : c->val[0][0];
  for (int64_t p = 0; p < c->n_peers; p++) *(int64_t *)c->op[1].p[p] = number;
}

// Ops: segments, out.
static void sum(const uly_call *c) {
  int64_t *out = c->op[1].p[0];
  *out = 0;
  for (int64_t p = 0; p < c->n_peers; p++) *out += *(const int64_t *)c->op[0].p[p];
}

static uint32_t add_exchange(fx_program *f, uint32_t axis) {
  uint32_t one = fx_const(f, 1), eight = fx_const(f, 8);
  uly_exchange x = {.axis = axis,
                    .unit = eight,
                    .rows = one,
                    .row_start = fx_place(f, axis),
                    .cols = one,
                    .col_start = fx_const(f, 0),
                    .dtype = ULY_I64,
                    .name = fx_name(f, "x")};
  x.receive = fx_buffer(f, "receive", fx_mul(f, eight, fx_size(f, axis)), ULY_BUFFER_RECEIVE);
  x.send = fx_buffer(f, "send", eight, 0);
  return uly_program_add_exchanges(f->p, x);
}

static void add_sum(fx_program *f, uint32_t x, uint32_t from, uint32_t number, uint32_t give_kernel, uint32_t sum_kernel, uly_operand_kind to, uint32_t index) {
  uint32_t one = fx_const(f, 1);
  fx_step(f, ULY_STEP_POST, x, 0);
  fx_step(f, ULY_STEP_KERNEL, give_kernel, one);
  fx_operand(f, from == ULY_NONE ? ULY_OPERAND_ABSENT : ULY_OPERAND_BUFFER, from, ULY_READ);
  fx_operand(f, ULY_OPERAND_PEERS, x, ULY_WRITE);
  fx_value(f, number, ULY_NONE);
  fx_step(f, ULY_STEP_SEND, x, 0);
  fx_step(f, ULY_STEP_WAIT, x, 0);
  fx_step(f, ULY_STEP_KERNEL, sum_kernel, one);
  fx_operand(f, ULY_OPERAND_SEGMENTS, x, ULY_READ);
  fx_operand(f, to, index, ULY_WRITE);
}

// out = the sum over all ranks of (100 · place on axis 1 + place on axis 0 + S): along axis 0, then along axis 1.
static fx_program *grid_program(void) {
  fx_program *f = fx_create();
  uint32_t s = fx_symbol(f, "S", 1), sp = fx_axis(f, "sp"), dp = fx_axis(f, "dp"), one = fx_const(f, 1);
  fx_tensor(f, ULY_OUTPUT, "out", ULY_I64, 1, &one);
  uint32_t number = fx_add(f, s, fx_add(f, fx_place(f, sp), fx_mul(f, fx_const(f, 100), fx_place(f, dp))));
  uint32_t half = fx_buffer(f, "half", fx_const(f, 8), 0), x = add_exchange(f, sp), y = add_exchange(f, dp);
  uint32_t give_kernel = fx_kernel(f, "give", give), sum_kernel = fx_kernel(f, "sum", sum);
  add_sum(f, x, ULY_NONE, number, give_kernel, sum_kernel, ULY_OPERAND_BUFFER, half);
  add_sum(f, y, half, number, give_kernel, sum_kernel, ULY_OPERAND_TENSOR, 0);
  fx_entry(f, "sum", 0, 1, 0, 0);
  fx_finish(f);
  return f;
}

typedef struct seat {
  uly_loaded *loaded;
  uly_comm *world, *comms[2]; // one or the other
  int64_t s, out;
  int32_t grid[2];
  uly_status status;
  uly_error error;
} seat;

static void *rank_main(void *argument) {
  seat *me = argument;
  uly_bound *bound = NULL;
  uly_bind_options options = {.symbols = &me->s, .world = me->world, .comms = {me->comms[0], me->comms[1]}, .grid = {me->grid[0], me->grid[1]}, .threads = 1};
  void *tensors[] = {&me->out};
  me->status = uly_bind(me->loaded, &options, &me->error, &bound);
  for (int i = 0; i < 5 && me->status == ULY_OK; i++) me->status = uly_run(bound, tensors, &me->error);
  uly_bound_destroy(bound);
  return NULL;
}

static void run_grid(seat *seats) {
  uly_comm *along0[N1][N0], *along1[N0][N1];
  pthread_t threads[RANKS];
  for (int j = 0; j < N1; j++) assert_int_equal(uly_comm_local_create(N0, along0[j]), ULY_OK);
  for (int i = 0; i < N0; i++) assert_int_equal(uly_comm_local_create(N1, along1[i]), ULY_OK);
  for (int r = 0; r < RANKS; r++) {
    seats[r].comms[0] = along0[r / N0][r % N0];
    seats[r].comms[1] = along1[r % N0][r / N0];
    seats[r].comms[0]->timeout = seats[r].comms[1]->timeout = 20;
    pthread_create(&threads[r], NULL, rank_main, &seats[r]);
  }
  for (int r = 0; r < RANKS; r++) pthread_join(threads[r], NULL);
  for (int r = 0; r < RANKS; r++)
    for (int a = 0; a < 2; a++) seats[r].comms[a]->ops->destroy(seats[r].comms[a]);
}

static void sums_over_both_axes(void **state) {
  (void)state;
  fx_program *f = grid_program();
  seat seats[RANKS] = {0};
  uly_error error;
  uly_loaded *loaded;
  assert_int_equal(uly_loaded_create(&f->model, &error, &loaded), ULY_OK);
  for (int r = 0; r < RANKS; r++) seats[r] = (seat){.loaded = loaded, .s = 7};
  run_grid(seats);
  for (int r = 0; r < RANKS; r++) {
    if (seats[r].status != ULY_OK) fail_msg("rank %d: %s", r, seats[r].error.text);
    assert_int_equal(seats[r].out, RANKS * 7 + 100 * N0 * (0 + 1 + 2) + N1 * (0 + 1));
  }
  uly_loaded_destroy(loaded);
  fx_destroy(f);
}

static void a_corner_disagrees(void **state) {
  (void)state;
  fx_program *f = grid_program();
  seat seats[RANKS] = {0};
  uly_error error;
  uly_loaded *loaded;
  assert_int_equal(uly_loaded_create(&f->model, &error, &loaded), ULY_OK);
  for (int r = 0; r < RANKS; r++) seats[r] = (seat){.loaded = loaded, .s = r == RANKS - 1 ? 8 : 7};
  run_grid(seats);
  for (int r = 0; r < RANKS; r++)
    if (seats[r].status != ULY_MISMATCH || !strstr(seats[r].error.text, "S = "))
      fail_msg("rank %d: status %d, \"%s\"", r, (int)seats[r].status, seats[r].error.text);
  for (int r = 0; r < RANKS; r++) seats[r] = (seat){.loaded = loaded, .s = r == 1 ? 0 : 7};
  run_grid(seats);
  for (int r = 0; r < RANKS; r++)
    if (seats[r].status != ULY_INVALID_ARGUMENT || !strstr(seats[r].error.text, "S = 0, at least 1"))
      fail_msg("rank %d: status %d, \"%s\"", r, (int)seats[r].status, seats[r].error.text);
  uly_loaded_destroy(loaded);
  fx_destroy(f);
}

// ---- grids that are cut from one communicator --------------------------------------------------------------------------------------------------

static void run_world(fx_program *f, seat *seats, int n) {
  uly_error error;
  uly_loaded *loaded;
  uly_comm *world[RANKS];
  pthread_t threads[RANKS];
  assert_int_equal(uly_loaded_create(&f->model, &error, &loaded), ULY_OK);
  assert_int_equal(uly_comm_local_create(n, world), ULY_OK);
  for (int r = 0; r < n; r++) {
    seats[r].loaded = loaded;
    seats[r].world = world[r];
    world[r]->timeout = 20;
    pthread_create(&threads[r], NULL, rank_main, &seats[r]);
  }
  for (int r = 0; r < n; r++) pthread_join(threads[r], NULL);
  for (int r = 0; r < n; r++) world[r]->ops->destroy(world[r]);
  uly_loaded_destroy(loaded);
}

static void world_is_cut(void **state) {
  (void)state;
  static const struct {
    int32_t given[2], n0, n1;
  } cases[] = {{{2, 3}, 2, 3}, {{3, 2}, 3, 2}, {{0, 0}, 6, 1}, {{2, 0}, 2, 3}, {{0, 2}, 3, 2}, {{0, 6}, 1, 6}, {{1, 0}, 1, 6}, {{6, 1}, 6, 1}};
  fx_program *f = grid_program();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    seat seats[RANKS] = {0};
    int64_t n0 = cases[i].n0, n1 = cases[i].n1;
    for (int r = 0; r < RANKS; r++) seats[r] = (seat){.s = 7, .grid = {cases[i].given[0], cases[i].given[1]}};
    run_world(f, seats, RANKS);
    for (int r = 0; r < RANKS; r++) {
      if (seats[r].status != ULY_OK) fail_msg("case %zu, rank %d: %s", i, r, seats[r].error.text);
      assert_int_equal(seats[r].out, RANKS * 7 + 100 * n0 * (n1 * (n1 - 1) / 2) + n1 * (n0 * (n0 - 1) / 2));
    }
  }
  fx_destroy(f);
}

static void grids_that_do_not_fit(void **state) {
  (void)state;
  static const struct {
    int32_t given[2];
    const char *says;
  } cases[] = {{{2, 2}, "the grid sp=2,dp=2 has 4 ranks, which does not go with 6"},
               {{4, 0}, "the grid sp=4 has 4 ranks, which does not go with 6"},
               {{0, 7}, "the grid dp=7 has 7 ranks, which does not go with 6"},
               {{INT32_MAX, INT32_MAX}, "which does not go with 6"},
               {{-1, 0}, "grid axis sp has -1 ranks"}};
  fx_program *f = grid_program();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    seat seats[RANKS] = {0};
    for (int r = 0; r < RANKS; r++) seats[r] = (seat){.s = 7, .grid = {cases[i].given[0], cases[i].given[1]}};
    run_world(f, seats, RANKS);
    for (int r = 0; r < RANKS; r++)
      if (seats[r].status != ULY_INVALID_ARGUMENT || !strstr(seats[r].error.text, cases[i].says))
        fail_msg("case %zu, rank %d: status %d, \"%s\"", i, r, (int)seats[r].status, seats[r].error.text);
  }
  fx_destroy(f);
}

static void ranks_give_other_grids(void **state) {
  (void)state;
  fx_program *f = grid_program();
  seat seats[RANKS] = {0};
  for (int r = 0; r < RANKS; r++) seats[r] = (seat){.s = 7, .grid = {r == 4 ? 3 : 2, 0}};
  run_world(f, seats, RANKS);
  for (int r = 0; r < RANKS; r++)
    if (seats[r].status != ULY_MISMATCH || !strstr(seats[r].error.text, "rank 0 has the grid sp=2,dp=3, rank 4 sp=3,dp=2"))
      fail_msg("rank %d: status %d, \"%s\"", r, (int)seats[r].status, seats[r].error.text);
  for (int r = 0; r < RANKS; r++) seats[r] = (seat){.s = 7, .grid = {r == 4 ? 5 : 2, 0}};
  run_world(f, seats, RANKS);
  for (int r = 0; r < RANKS; r++)
    if (seats[r].status != ULY_INVALID_ARGUMENT || !strstr(seats[r].error.text, "the grid sp=5 has 5 ranks, which does not go with 6"))
      fail_msg("rank %d: status %d, \"%s\"", r, (int)seats[r].status, seats[r].error.text);
  for (int r = 0; r < RANKS; r++) seats[r] = (seat){.s = r == 5 ? 8 : 7, .grid = {2, 3}};
  run_world(f, seats, RANKS);
  for (int r = 0; r < RANKS; r++) {
    char place[40];
    snprintf(place, sizeof place, "[rank %d] (sp %d, dp %d) ", r, r % 2, r / 2);
    if (seats[r].status != ULY_MISMATCH || !strstr(seats[r].error.text, "rank 0 has S = 7, rank 5 has S = 8") ||
        strncmp(seats[r].error.text, place, strlen(place)) != 0)
      fail_msg("rank %d: status %d, \"%s\"", r, (int)seats[r].status, seats[r].error.text);
  }
  fx_destroy(f);
}

static void one_axis_for_some_of_the_ranks(void **state) {
  (void)state;
  fx_program *f = fx_create();
  uint32_t s = fx_symbol(f, "S", 1);
  fx_axis(f, "sp");
  fx_tensor(f, ULY_OUTPUT, "out", ULY_I64, 1, &s);
  fx_entry(f, "nothing", 0, 1, 0, 0);
  fx_finish(f);
  seat seats[RANKS] = {0};
  for (int r = 0; r < RANKS; r++) seats[r] = (seat){.s = 7, .grid = {3, 0}};
  run_world(f, seats, RANKS);
  for (int r = 0; r < RANKS; r++)
    if (seats[r].status != ULY_INVALID_ARGUMENT || !strstr(seats[r].error.text, "the grid sp=3 has 3 of 6 ranks") ||
        !strstr(seats[r].error.text, "`grid sp(S), dp(B)`"))
      fail_msg("rank %d: status %d, \"%s\"", r, (int)seats[r].status, seats[r].error.text);
  fx_destroy(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(sums_over_both_axes),    cmocka_unit_test(a_corner_disagrees),
                                     cmocka_unit_test(world_is_cut),           cmocka_unit_test(grids_that_do_not_fit),
                                     cmocka_unit_test(ranks_give_other_grids), cmocka_unit_test(one_axis_for_some_of_the_ranks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
