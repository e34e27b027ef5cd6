// Memory of load, bind and run: a run allocates nothing, and when the n-th allocation of anything else fails, for every n, it ends with a status and leaks nothing
// (which the address sanitizer watches). Allocation functions are wrapped by the linker.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/bound.h"
#include "tests/unit/rank_threads.h"
#include "tests/unit/scale_program.h"

static _Atomic int allocations;      // since it was last set to 0
static _Atomic int fails_at = 0;     // number of the one that fails, 0: none
static _Thread_local int is_watched; // this thread is counted

static bool refused(void) { return is_watched && atomic_fetch_add(&allocations, 1) + 1 == atomic_load(&fails_at); }

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t bytes) { return refused() ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t n, size_t bytes) { return refused() ? NULL : __real_calloc(n, bytes); }
void *__wrap_realloc(void *old, size_t bytes) { return refused() ? NULL : __real_realloc(old, bytes); }
void *__wrap_aligned_alloc(size_t align, size_t bytes) { return refused() ? NULL : __real_aligned_alloc(align, bytes); }
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return refused() ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, fd, offset);
}

typedef struct job {
  uly_loaded *loaded;
  pthread_barrier_t start, end;
  int threads, runs;
  _Atomic int failed, during_runs;
} job;

static void run_counted(uly_comm *comm, void *context) {
  job *j = context;
  int64_t symbols[SCALE_N_SYMBOLS] = {1, 9};
  uly_bound *bound = NULL;
  uly_error error;
  uly_bind_options options = {.symbols = symbols, .comms = {comm}, .threads = j->threads};
  float x[9 * SCALE_D] = {0}, y[9 * SCALE_D];
  void *tensors[] = {x, y};
  if (uly_bind(j->loaded, &options, &error, &bound) != ULY_OK) atomic_fetch_add(&j->failed, 1);
  if (comm->rank == 0) atomic_store(&allocations, 0);
  pthread_barrier_wait(&j->start);
  is_watched = 1;
  for (int i = 0; bound && i < j->runs; i++)
    if (uly_run(bound, tensors, &error) != ULY_OK) atomic_fetch_add(&j->failed, 1);
  is_watched = 0;
  pthread_barrier_wait(&j->end);
  if (comm->rank == 0) atomic_store(&j->during_runs, atomic_load(&allocations));
  pthread_barrier_wait(&j->start);
  uly_bound_destroy(bound);
}

static uly_loaded *load(const fx_program *f) {
  uly_loaded *loaded;
  uly_error error;
  assert_int_equal(uly_loaded_create(&f->model, &error, &loaded), ULY_OK);
  assert_int_equal(uly_param_seed(loaded, 1, &error), ULY_OK);
  return loaded;
}

static void runs_allocate_nothing(void **state) {
  (void)state;
  fx_program *f = scale_program();
  job j = {.loaded = load(f), .threads = 2, .runs = 20};
  for (int n = 1; n <= 3; n++) {
    pthread_barrier_init(&j.start, NULL, (unsigned)n);
    pthread_barrier_init(&j.end, NULL, (unsigned)n);
    run_ranks(n, 20, run_counted, &j);
    pthread_barrier_destroy(&j.start);
    pthread_barrier_destroy(&j.end);
    assert_int_equal(atomic_load(&j.failed), 0);
    assert_int_equal(atomic_load(&j.during_runs), 0);
  }
  uly_loaded_destroy(j.loaded);
  fx_destroy(f);
}

// Everything from the tables to a run, on one rank. True where it worked.
static bool whole_life(const fx_program *f, uly_comm *comm, uly_error *error) {
  uly_loaded *loaded = NULL;
  uly_bound *bound = NULL;
  int64_t symbols[SCALE_N_SYMBOLS] = {1, 9};
  float x[9 * SCALE_D] = {0}, y[9 * SCALE_D];
  void *tensors[] = {x, y};
  uly_bind_options options = {.symbols = symbols, .comms = {comm}, .threads = 2};
  uly_status status = uly_loaded_create(&f->model, error, &loaded);
  if (status == ULY_OK) status = uly_param_seed(loaded, 1, error);
  if (status == ULY_OK) status = uly_bind(loaded, &options, error, &bound);
  if (status == ULY_OK) status = uly_run(bound, tensors, error);
  uly_bound_destroy(bound);
  uly_loaded_destroy(loaded);
  return status == ULY_OK;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  fx_program *f = scale_program();
  int n = 0;
  for (bool worked = false; !worked && n < 500;) {
    uly_error error = {0};
    atomic_store(&allocations, 0);
    atomic_store(&fails_at, ++n);
    is_watched = 1;
    worked = whole_life(f, NULL, &error);
    is_watched = 0;
    atomic_store(&fails_at, 0);
    if (!worked && error.status != ULY_EXHAUSTED) fail_msg("allocation %d failed with status %d, \"%s\"", n, (int)error.status, error.text);
  }
  assert_in_range(n, 20, 499);
  fx_destroy(f);
}

typedef struct fallible {
  const fx_program *f;
  _Atomic int worked;
  uly_error error[MAX_RANKS];
} fallible;

static void life_of_rank(uly_comm *comm, void *context) {
  fallible *j = context;
  is_watched = comm->rank == 1;
  if (whole_life(j->f, comm, &j->error[comm->rank]))
    atomic_fetch_add(&j->worked, 1);
  else
    comm->ops->abort(comm, j->error[comm->rank].text); // as a host does whose model did not load
  is_watched = 0;
}

// The same where rank 1 of 3 has no memory: the others do not wait for it, and learn why.
static void a_rank_without_memory(void **state) {
  (void)state;
  fx_program *f = scale_program();
  int n = 0;
  for (int worked = 0; worked != 3 && n < 500;) {
    fallible j = {.f = f};
    atomic_store(&allocations, 0);
    atomic_store(&fails_at, ++n);
    run_ranks(3, 20, life_of_rank, &j);
    atomic_store(&fails_at, 0);
    worked = atomic_load(&j.worked);
    if (worked != 3 && j.error[1].status != ULY_EXHAUSTED) fail_msg("allocation %d failed with status %d, \"%s\"", n, (int)j.error[1].status, j.error[1].text);
    if (worked != 3 && !strstr(j.error[0].text, "memory")) fail_msg("allocation %d: rank 0 says \"%s\"", n, j.error[0].text);
  }
  assert_in_range(n, 20, 499);
  fx_destroy(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs_allocate_nothing), cmocka_unit_test(every_allocation_may_fail),
                                     cmocka_unit_test(a_rank_without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
