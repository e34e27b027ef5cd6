// The exchange, end to end: a program of tags over local ranks. Which element stands where, how many bytes go, and that no timing of the ranks changes it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_rank), cmocka_unit_test(every_shape), cmocka_unit_test(random_delays)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
