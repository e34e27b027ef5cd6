// The exchange, end to end: a program of tags over local ranks. Which element stands where, how many bytes go, and that no timing of the ranks changes it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/rank_threads.h"
#include "tests/unit/tag_program.h"

typedef struct job {
  uly_loaded *loaded;
  tag_shape shape;
  int64_t symbols[TAG_N_SYMBOLS];
  int threads, runs;
  int64_t wrong[MAX_RANKS];
  uint64_t bytes[MAX_RANKS];
  uly_status status[MAX_RANKS];
  uly_error error[MAX_RANKS];
} job;

static int64_t share(int64_t n, int64_t p, int64_t r) { return n / p + (r < n % p); }
static int64_t start(int64_t n, int64_t p, int64_t r) { return r * (n / p) + (r < n % p ? r : n % p); }

static void rank_body(uly_comm *comm, void *context) {
  job *j = context;
  int r = comm->rank;
  uly_bound *bound = NULL;
  uly_bind_options options = {.symbols = j->symbols, .comms = {comm}, .threads = j->threads};
  j->status[r] = uly_bind(j->loaded, &options, &j->error[r], &bound);
  int64_t rows = share(j->symbols[TAG_S], comm->n_ranks, r), first = start(j->symbols[TAG_S], comm->n_ranks, r);
  tag_data data = tag_make(j->shape, j->symbols[TAG_B], first, rows);
  uint64_t before = comm->sent_bytes;
  for (int i = 0; i < j->runs && j->status[r] == ULY_OK; i++) j->status[r] = uly_run(bound, (void *const *)data.tensor, &j->error[r]);
  j->bytes[r] = comm->sent_bytes - before;
  j->wrong[r] = tag_wrong(&data, j->shape, j->symbols[TAG_B], first, rows, j->symbols[TAG_ROUNDS]);
  tag_free(&data);
  uly_bound_destroy(bound);
}

static void check(const job *j, int p) {
  for (int r = 0; r < p; r++) {
    if (j->status[r] != ULY_OK) fail_msg("rank %d of %d: %s", r, p, j->error[r].text);
    if (j->wrong[r])
      fail_msg("rank %d of %d, B=%d S=%d H=%d K=%d Dh=%d: %d elements are wrong", r, p, (int)j->symbols[TAG_B], (int)j->symbols[TAG_S], (int)j->shape.h,
               (int)j->shape.k, (int)j->shape.dh, (int)j->wrong[r]);
    uint64_t want = tag_bytes(j->shape, j->symbols[TAG_B], j->symbols[TAG_S], p, r) * (uint64_t)j->symbols[TAG_ROUNDS] * (uint64_t)j->runs;
    if (j->bytes[r] != want) fail_msg("rank %d of %d sent %llu bytes, the formula says %llu", r, p, (unsigned long long)j->bytes[r], (unsigned long long)want);
  }
}

static void run_job(job *j, int p) {
  fx_program *f = tag_program(j->shape);
  uly_error error;
  if (uly_loaded_create(&f->model, &error, &j->loaded) != ULY_OK) fail_msg("%s", error.text);
  run_ranks(p, 30, rank_body, j);
  uly_loaded_destroy(j->loaded);
  fx_destroy(f);
  check(j, p);
}

static uint64_t random_state = 12345;
static int64_t pick(int64_t n) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((random_state >> 33) % (uint64_t)n);
}

static void one_rank(void **state) {
  (void)state;
  job j = {.shape = {4, 2, 3}, .symbols = {2, 5, 3, 0}, .threads = 1, .runs = 2};
  run_job(&j, 1);
}

static void every_shape(void **state) {
  (void)state;
  enum { CASES = 560 };
  for (int i = 0; i < CASES; i++) {
    int p = i % 9 == 8 ? 16 : i % 9 + 1;
    int64_t k = 1 + pick(5), group = 1 + pick(4);
    job j = {.shape = {k * group, k, 1 + pick(4)},
             .symbols = {1 + pick(3), i % 7 == 0 ? pick(p) : pick(3 * p + 2), 1 + pick(4), 0},
             .threads = 1 + (i % 5 == 0),
             .runs = 1};
    run_job(&j, p);
  }
}

static void random_delays(void **state) {
  (void)state;
  for (int i = 0; i < 40; i++) {
    job j = {.shape = {6, 3, 2}, .symbols = {2, 9 + pick(8), 12, 1 + i}, .threads = 1 + i % 2, .runs = 2};
    run_job(&j, 2 + i % 5);
  }
}

// ---- one way ------------------------------------------------------------------------------------------------------------------------------
// A loop of one exchange with one buffer, and readers that take their time: only the post keeps a fast peer from overwriting what is still read.

static void dawdle(int64_t seed, int64_t rank, int64_t round) {
  uint64_t z = (uint64_t)(seed * 1000003 + rank * 7919 + round * 104729);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  if (z >> 62 == 0) usleep((unsigned)(z % 400));
}

// Ops: round, peers. Values: own rank. Every message is the round's number.
static void one_way_put(const uly_call *c) {
  int64_t round = ++*(int64_t *)c->op[0].p[0];
  for (int64_t p = 0; p < c->op[1].n; p++) *(int64_t *)c->op[1].p[p] = round;
}

// Ops: round, segments, out. Values: own rank, seed. Counts messages that are not of this round, then rounds.
static void one_way_read(const uly_call *c) {
  int64_t round = *(const int64_t *)c->op[0].p[0], *out = c->op[2].p[0];
  dawdle(c->val[1][0], c->val[0][0], round);
  for (int64_t p = 0; p < c->op[1].n; p++) out[0] += *(const volatile int64_t *)c->op[1].p[p] != round;
  out[1] = round;
}

enum { ONE_WAY_ROUNDS = 200 };

static fx_program *one_way_program(void) {
  fx_program *f = fx_create();
  uint32_t seed = fx_symbol(f, "seed", 0), axis = fx_axis(f, "sp"), two = fx_const(f, 2), one = fx_const(f, 1), eight = fx_const(f, 8);
  fx_tensor(f, ULY_OUTPUT, "out", ULY_I64, 1, &two);
  uint32_t round = fx_buffer(f, "round", eight, 0);
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
  uint32_t way = uly_program_add_exchanges(f->p, x);
  uint32_t loop = fx_step(f, ULY_STEP_LOOP, 0, fx_const(f, ONE_WAY_ROUNDS));
  fx_step(f, ULY_STEP_POST, way, 0);
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "put", one_way_put), one);
  fx_operand(f, ULY_OPERAND_BUFFER, round, ULY_READ | ULY_WRITE);
  fx_operand(f, ULY_OPERAND_PEERS, way, ULY_WRITE);
  fx_step(f, ULY_STEP_SEND, way, 0);
  fx_step(f, ULY_STEP_WAIT, way, 0);
  fx_step(f, ULY_STEP_KERNEL, fx_kernel(f, "read", one_way_read), one);
  fx_operand(f, ULY_OPERAND_BUFFER, round, ULY_READ);
  fx_operand(f, ULY_OPERAND_SEGMENTS, way, ULY_READ);
  fx_operand(f, ULY_OPERAND_TENSOR, 0, ULY_WRITE);
  fx_value(f, fx_place(f, axis), ULY_NONE);
  fx_value(f, seed, ULY_NONE);
  fx_end(f, loop);
  fx_entry(f, "one_way", 0, 1, 0, 0);
  fx_finish(f);
  return f;
}

typedef struct one_way {
  uly_loaded *loaded;
  int64_t seed, out[MAX_RANKS][2];
  uly_status status[MAX_RANKS];
} one_way;

static void one_way_body(uly_comm *comm, void *context) {
  one_way *j = context;
  uly_bound *bound = NULL;
  uly_error error;
  uly_bind_options options = {.symbols = &j->seed, .comms = {comm}, .threads = 1};
  void *tensors[] = {j->out[comm->rank]};
  j->status[comm->rank] = uly_bind(j->loaded, &options, &error, &bound);
  if (bound) j->status[comm->rank] = uly_run(bound, tensors, &error);
  uly_bound_destroy(bound);
}

static void readers_take_their_time(void **state) {
  (void)state;
  fx_program *f = one_way_program();
  uly_error error;
  one_way j = {.seed = 1};
  assert_int_equal(uly_loaded_create(&f->model, &error, &j.loaded), ULY_OK);
  for (; j.seed < 8; j.seed++) {
    int n = 2 + (int)j.seed % 4;
    run_ranks(n, 30, one_way_body, &j);
    for (int r = 0; r < n; r++) {
      assert_int_equal(j.status[r], ULY_OK);
      assert_int_equal(j.out[r][0], 0);
      assert_int_equal(j.out[r][1], ONE_WAY_ROUNDS);
    }
  }
  uly_loaded_destroy(j.loaded);
  fx_destroy(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_rank), cmocka_unit_test(every_shape), cmocka_unit_test(random_delays),
                                     cmocka_unit_test(readers_take_their_time)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
